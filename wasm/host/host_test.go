//go:build js && wasm

package host

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall/js"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	klauspost "github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/open"
	opengzip "github.com/stackglass/stackglass/core/open/gzip"
	opensnappy "github.com/stackglass/stackglass/core/open/snappy"
	"github.com/stackglass/stackglass/core/open/xz"
	openzip "github.com/stackglass/stackglass/core/open/zip"
	"github.com/stackglass/stackglass/core/open/zstd"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/wasm/idb"
	"github.com/stackglass/stackglass/wasm/unpack"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/web"
	ulikunitz "github.com/ulikunitz/xz"
)

// The test binary is also the program that the analysis worker and the unpackers run.
func TestMain(m *testing.M) {
	var err error
	switch js.Global().Get("name").String() {
	case web.Helper, "analysis":
		die()
		if err = Run(); err == nil {
			return
		}
	case soakName:
		if err = soakHost().Serve(); err == nil {
			return
		}
	case unpack.Name:
		err = unpack.Serve([]open.Packing{opengzip.Packing, zstd.Packing, xz.Packing, openzip.Packing, opensnappy.Packing})
	}
	if err != nil {
		panic(err)
	}
	if os.Getenv("WASMTEST_URL") == "" {
		println("skipped: web workers need a browser; run with go test -exec=wasmtest (tools/wasmtest)")
		return
	}
	os.Exit(m.Run())
}

const jobNumber = 5

// A run consists of a worker that is ready for a Start message, and the store in which the worker
// keeps results.
type run struct {
	t     testing.TB
	store *idb.Store
	workers.Carrier
}

var stores int

// newRun opens a new store and starts a worker. The parameter "settings" contains additional
// parameters for the worker.
func newRun(t testing.TB, settings string) *run {
	t.Helper()
	stores++
	name := "host test " + strconv.Itoa(stores)
	store, err := idb.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, store: store}
	r.spawn(settings)
	t.Cleanup(func() {
		store.Close()
		js.Global().Get("indexedDB").Call("deleteDatabase", name)
	})
	return r
}

// The method "spawn" starts a worker that replaces the previous worker.
func (r *run) spawn(settings string) {
	r.t.Helper()
	r.spawnAs(Name, settings)
}

func (r *run) spawnAs(program, settings string) {
	r.t.Helper()
	base := os.Getenv("WASMTEST_URL")
	script := base + "src/wasm/worker/worker.js?wasm=" + base + "test.wasm"
	unpackers := "&unpack=" + js.Global().Call("encodeURIComponent", script).String()
	carrier, err := web.Spawn(script+"&store=host+test+"+strconv.Itoa(stores)+settings+unpackers, program)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Carrier = carrier
	r.t.Cleanup(func() { carrier.Close() })
	r.next(workers.TypeReady)
}

func (r *run) start(s workers.Start, file js.Value) {
	r.t.Helper()
	if err := r.Send(workers.Message{Type: workers.TypeStart, Job: jobNumber, Body: s.Encode(), Attachment: file}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *run) send(t workers.Type) {
	r.t.Helper()
	if err := r.Send(workers.Message{Type: t, Job: jobNumber}); err != nil {
		r.t.Fatal(err)
	}
}

// The method "next" returns the next message of the given type, and drops all earlier messages of
// other types.
func (r *run) next(want workers.Type) workers.Message {
	r.t.Helper()
	for {
		m, err := r.Receive()
		if err != nil {
			r.t.Fatal(err)
		}
		if m.Type == want {
			return m
		}
		if m.Type == workers.TypeFailed || m.Type == workers.TypeDone {
			r.t.Fatalf("%v: %.200q", m.Type, m.Body)
		}
	}
}

func (r *run) progress() workers.Progress {
	r.t.Helper()
	p, err := workers.DecodeProgress(r.next(workers.TypeProgress).Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *run) done() (workers.Done, *profile.Profile) {
	r.t.Helper()
	d, err := workers.DecodeDone(r.next(workers.TypeDone).Body)
	if err != nil {
		r.t.Fatal(err)
	}
	p, err := profile.Decode(d.Profile)
	if err != nil {
		r.t.Fatal(err)
	}
	return d, p
}

func (r *run) entry() profile.Entry {
	r.t.Helper()
	list, err := r.store.List()
	if err != nil || len(list) != 1 {
		r.t.Fatalf("entries of the store = %+v, %v, want one", list, err)
	}
	return list[0]
}

// The function "din" returns a trace of n references that visit 2^log2Lines lines in an irregular
// order.
func din(n, log2Lines int) []byte {
	b := make([]byte, 0, 12*n)
	x := uint32(1)
	for i := range n {
		x = x*1664525 + 1013904223
		b = append(b, '0'+byte(i&1), ' ')
		b = strconv.AppendUint(b, uint64(x>>(32-log2Lines))<<6, 16)
		b = append(b, '\n')
	}
	return b
}

// newFile creates a File that contains the given bytes several times.
func newFile(b []byte, times int) js.Value {
	part := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(part, b)
	parts := js.Global().Get("Array").New()
	for range times {
		parts.Call("push", part)
	}
	return js.Global().Get("File").New(parts, "a.din")
}

// The function "direct" analyses a trace in this program, without a worker, a file or a store.
func direct(t *testing.T, b []byte) *profile.Profile {
	t.Helper()
	return directly(t, analysis.Spec{}, b)
}

func directly(t *testing.T, spec analysis.Spec, b []byte) *profile.Profile {
	t.Helper()
	reader, err := open.Open("direct", bytes.NewReader(b), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := analysis.NewRunner(spec, reader)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return r.Finish(profile.State{})
}

func TestCompleteRun(t *testing.T) {
	b := din(500_000, 12)
	r := newRun(t, "")
	r.start(workers.Start{Key: "k", Name: "a.din"}, newFile(b, 1))
	d, _ := r.done()
	if !d.Kept || !bytes.Equal(d.Profile, direct(t, b).Encode()) {
		t.Errorf("kept = %t, problem = %q, equal to a run without a worker = %t; want a kept and equal result", d.Kept, d.Problem, bytes.Equal(d.Profile, direct(t, b).Encode()))
	}
	if e := r.entry(); e.State != profile.EntryComplete || e.Digest != d.Digest {
		t.Errorf("entry %+v", e)
	}
	if kept, err := r.store.Get("k"); err != nil || !bytes.Equal(kept, d.Profile) {
		t.Errorf("stored result = %d bytes, %v, want the bytes of the sent result", len(kept), err)
	}
}

// TestRunOfCompressedFile checks that a file's profile is the same for every compression format.
func TestRunOfCompressedFile(t *testing.T) {
	b := din(200_000, 12)
	want := direct(t, b).Encode()
	r := newRun(t, "")
	for name := range packers {
		r.start(workers.Start{Key: "k", Name: "a.din"}, newFile(packedBy(t, name, b), 1))
		if d, _ := r.done(); !bytes.Equal(d.Profile, want) {
			t.Errorf("%s: the profile differs from the profile of the uncompressed file", name)
		}
	}
}

var packers = map[string]func(io.Writer) (io.WriteCloser, error){
	"lz4":    func(w io.Writer) (io.WriteCloser, error) { return lz4.NewWriter(w), nil },
	"snappy": func(w io.Writer) (io.WriteCloser, error) { return snappy.NewBufferedWriter(w), nil },
	"zip":    newZipWriter,
	"gzip":   func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"zstd":   func(w io.Writer) (io.WriteCloser, error) { return klauspost.NewWriter(w) },
	"xz":     func(w io.Writer) (io.WriteCloser, error) { return ulikunitz.NewWriter(w) },
}

// zipWriter writes a ZIP archive with one member.
type zipWriter struct {
	io.Writer
	archive *zip.Writer
}

func newZipWriter(out io.Writer) (io.WriteCloser, error) {
	archive := zip.NewWriter(out)
	member, err := archive.Create("trace")
	return zipWriter{member, archive}, err
}

func (w zipWriter) Close() error { return w.archive.Close() }

func packedBy(t testing.TB, packing string, b []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w, err := packers[packing](&packed)
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// TestTruncatedAndDamagedFilesInUnpacker checks that, if an unpacker reports a truncated or damaged
// file, the result contains the report.
func TestTruncatedAndDamagedFilesInUnpacker(t *testing.T) {
	b := din(300_000, 12)
	r := newRun(t, "")
	for _, packing := range unpack.Names() {
		whole := packedBy(t, packing, b)
		damaged := bytes.Clone(whole)
		damaged[len(damaged)*3/4] ^= 1
		for want, file := range map[string][]byte{"truncated": whole[:len(whole)*3/4], "damaged": damaged} {
			if (packing == "gzip" || packing == "zip") && want == "damaged" {
				continue // these formats have only one checksum, at the end, so damage first appears as an invalid line
			}
			r.start(workers.Start{Key: "k", Name: "a.din"}, newFile(file, 1))
			_, p := r.done()
			reason := "the " + packing + " stream is " + want
			if n := p.Totals.AllReferences(); !p.State.Partial || !strings.Contains(p.State.Reason, reason) || n == 0 || n >= 300_000 {
				t.Errorf("%s: references = %d, state = %+v, want the reason %q", packing, n, p.State, reason)
			}
		}
	}
}

// TestNoUnpacker checks that, if an unpacker cannot be loaded, the run reports this, and the host
// continues to serve.
func TestNoUnpacker(t *testing.T) {
	r := newRun(t, "&unpack=none.js")
	b := din(1000, 8)
	r.start(workers.Start{Key: "k", Name: "a.din.xz"}, newFile(packedBy(t, "xz", b), 1))
	failed, err := workers.DecodeFailed(r.next(workers.TypeFailed).Body)
	if err != nil || !strings.Contains(failed.Problem, "a.din.xz is compressed with xz, and the decompression program could not be loaded") {
		t.Errorf("%q, %v", failed.Problem, err)
	}
	r.start(workers.Start{Key: "k", Name: "a.din"}, newFile(b, 1))
	if d, _ := r.done(); !bytes.Equal(d.Profile, direct(t, b).Encode()) {
		t.Error("the profile of the next run differs from the profile of a run without a worker")
	}
}

func TestPauseAndCancel(t *testing.T) {
	part := din(1_000_000, 14)
	for name, part := range map[string][]byte{"plain": part, "zstd": packedBy(t, "zstd", part)} {
		t.Run(name, func(t *testing.T) { pauseAndCancel(t, newFile(part, 25)) })
	}
}

// pauseAndCancel analyses a file of 25 million references, pauses the run and cancels it.
func pauseAndCancel(t *testing.T, file js.Value) {
	r := newRun(t, "")
	r.start(workers.Start{Key: "k", Name: "a.din"}, file)
	r.progress()
	r.next(workers.TypeSnapshot)
	asked := time.Now()
	r.send(workers.TypePause)
	p := r.progress()
	for !p.Paused {
		p = r.progress()
	}
	t.Logf("paused after %v", time.Since(asked))
	r.send(workers.TypeResume)
	if after := r.progress(); after.Paused || after.References != p.References {
		t.Errorf("progress after the pause = %+[2]v, want more than %+[1]v before the pause", p, after)
	}
	asked = time.Now()
	r.send(workers.TypeCancel)
	for !r.progress().Ending {
	}
	t.Logf("cancelled after %v", time.Since(asked))
	_, result := r.done()
	if n := result.Totals.AllReferences(); !result.State.Partial || n < p.References || n >= 25_000_000 {
		t.Errorf("%+v, %d references", result.State, n)
	}
	if e := r.entry(); e.State != profile.EntryPartial {
		t.Errorf("entry %+v", e)
	}
}

// TestResumeAfterTheWorkerIsKilled checks that, if a worker is killed during a run, a new worker
// resumes from its checkpoint. The run's result must be byte-identical to the result of an
// uninterrupted run.
func TestResumeAfterTheWorkerIsKilled(t *testing.T) {
	const times = 4
	part := din(1_000_000, 14)
	want := direct(t, bytes.Repeat(part, times)).Encode()
	for name, part := range map[string][]byte{"plain": part, "zstd": packedBy(t, "zstd", part)} {
		t.Run(name, func(t *testing.T) { killAndResume(t, newFile(part, times), want) })
	}
}

func killAndResume(t *testing.T, file js.Value, want []byte) {
	r := newRun(t, "&checkpoint=100000")
	r.start(workers.Start{Key: "k", Name: "a.din"}, file)
	for {
		r.progress()
		if list, err := r.store.List(); err != nil {
			t.Fatal(err)
		} else if len(list) > 0 {
			break
		}
	}
	r.Close()
	e := r.entry()
	if e.State != profile.EntryInterrupted || e.Done <= 0 || e.Done >= 1 {
		t.Fatalf("entry %+v", e)
	}
	r.spawn("")
	r.start(workers.Start{Key: "k", Name: "a.din", Resume: true}, file)
	if p := r.progress(); p.References < e.References {
		t.Errorf("first progress after the run was resumed = %d references, want %d", p.References, e.References)
	}
	d, _ := r.done()
	if !bytes.Equal(d.Profile, want) {
		t.Error("the profile differs from the profile of an uninterrupted run")
	}
	if e := r.entry(); e.State != profile.EntryComplete {
		t.Errorf("entry %+v", e)
	}
}

func TestProblemsAreSentences(t *testing.T) {
	r := newRun(t, "")
	for text, want := range map[string]string{"": "empty", "\x89PNG and so on": "a.din"} {
		r.start(workers.Start{Key: "k", Name: "a.din"}, newFile([]byte(text), 1))
		failed, err := workers.DecodeFailed(r.next(workers.TypeFailed).Body)
		if err != nil || !bytes.Contains([]byte(failed.Problem), []byte(want)) {
			t.Errorf("problem of a file with %q = %q, %v, want %q in it", text, failed.Problem, err, want)
		}
	}
}

// BenchmarkCancel cancels a run while a model with millions of lines is growing. The benchmark
// measures the time until Cancel is answered, and the time until the result arrives.
func BenchmarkCancel(b *testing.B) {
	file := newFile(din(4_000_000, 22), 5)
	var answer, result time.Duration
	for b.Loop() {
		r := newRun(b, "")
		r.start(workers.Start{Key: "k", Name: "a.din"}, file)
		for r.progress().References < 8_000_000 {
		}
		asked := time.Now()
		r.send(workers.TypeCancel)
		for !r.progress().Ending {
		}
		answer = max(answer, time.Since(asked))
		r.next(workers.TypeDone)
		result = max(result, time.Since(asked))
		r.Close()
	}
	b.ReportMetric(float64(answer.Milliseconds()), "ms/answer")
	b.ReportMetric(float64(result.Milliseconds()), "ms/result")
}

// BenchmarkRealTrace measures how long a worker takes to read, unpack and analyse a trace from
// $STACKGLASS_DATA, including snapshots and storage.
func BenchmarkRealTrace(b *testing.B) {
	base := os.Getenv("STACKGLASS_DATA_URL")
	if base == "" {
		b.Skip("skipped: there are no traces, because STACKGLASS_DATA_URL is not set")
	}
	for _, name := range []string{"gemm", "jacobi2d", "sort"} {
		b.Run(name, func(b *testing.B) {
			response, err := web.Await(js.Global().Call("fetch", base+"traces/"+name+".lackey.lz4"))
			if err != nil {
				b.Fatal(err)
			}
			blob, err := web.Await(response.Call("blob"))
			if err != nil {
				b.Fatal(err)
			}
			r := newRun(b, "")
			var references uint64
			for b.Loop() {
				r.start(workers.Start{Key: "k", Name: name}, blob)
				d, err := workers.DecodeDone(r.next(workers.TypeDone).Body)
				if err != nil {
					b.Fatal(err)
				}
				p, err := profile.Decode(d.Profile)
				if err != nil {
					b.Fatal(err)
				}
				references += p.Totals.AllReferences()
			}
			b.ReportMetric(float64(references)/1e6/b.Elapsed().Seconds(), "Mrefs/s")
		})
	}
}
