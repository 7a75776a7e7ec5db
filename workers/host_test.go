package workers_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/open/gzip"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/profile/memstore"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/local"
)

// A clock advances by a fixed step whenever it is read, so that a run handles messages at the same
// steps on every machine.
type clock struct {
	mu   sync.Mutex
	now  time.Time
	step time.Duration
}

func (c *clock) Now() time.Time { return c.advance(c.step) }

func (c *clock) advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// A fixture is a host with fake dependencies that is connected by a local carrier.
type fixture struct {
	t     *testing.T
	asker workers.Carrier
	host  *workers.Host
	store *memstore.Store
	clock *clock
	end   func() // ends the host, and waits for its end
}

// The type "attached" is the attachment that the tests use. An attachment contains a function that
// opens the file, and the file's size.
type attached struct {
	open func() io.ReadCloser
	size uint64
}

func bytesFile(b []byte) attached {
	return attached{func() io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }, uint64(len(b))}
}

func openTrace(name string, file io.Reader, format string, watch func() error) (trace.Reader, error) {
	return open.Open(name, file, open.Options{Format: format, Packings: []open.Packing{gzip.Packing}, Watch: watch})
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, store: &memstore.Store{}, clock: &clock{now: time.UnixMilli(1_700_000_000_000), step: 5 * time.Millisecond}}
	f.asker, f.host = nil, &workers.Host{
		Store: f.store,
		Now:   f.clock.Now,
		OpenFile: func(a any) (io.ReadCloser, uint64, error) {
			file, ok := a.(attached)
			if !ok {
				return nil, 0, errors.New("no file is attached")
			}
			return file.open(), file.size, nil
		},
		OpenTrace: openTrace,
	}
	return f
}

// The method "serve" starts the host. After serve has been called, the host's fields must not be
// changed.
func (f *fixture) serve() {
	f.t.Helper()
	f.asker, f.host.Carrier = local.Pair()
	ended := make(chan error, 1)
	go func() { ended <- f.host.Serve() }()
	f.end = sync.OnceFunc(func() {
		f.asker.Close()
		if err := <-ended; err != nil {
			f.t.Errorf("Serve: %v", err)
		}
	})
	f.t.Cleanup(f.end)
	f.next(workers.TypeReady)
}

func (f *fixture) start(job uint32, s workers.Start, file any) {
	f.send(workers.Message{Type: workers.TypeStart, Job: job, Body: s.Encode(), Attachment: file})
}

func (f *fixture) send(m workers.Message) {
	f.t.Helper()
	if err := f.asker.Send(m); err != nil {
		f.t.Fatal(err)
	}
}

// The method "next" returns the next message of one of the given types, and drops all earlier
// messages of other types.
func (f *fixture) next(types ...workers.Type) workers.Message {
	f.t.Helper()
	for {
		m, err := f.asker.Receive()
		if err != nil {
			f.t.Fatal(err)
		}
		for _, t := range types {
			if m.Type == t {
				return m
			}
		}
		if m.Type == workers.TypeFailed {
			failed, _ := workers.DecodeFailed(m.Body)
			f.t.Fatalf("failed: %s", failed.Problem)
		}
	}
}

func (f *fixture) progress() workers.Progress {
	f.t.Helper()
	p, err := workers.DecodeProgress(f.next(workers.TypeProgress).Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f *fixture) done() (workers.Done, *profile.Profile) {
	f.t.Helper()
	d, err := workers.DecodeDone(f.next(workers.TypeDone).Body)
	if err != nil {
		f.t.Fatal(err)
	}
	p, err := profile.Decode(d.Profile)
	if err != nil {
		f.t.Fatal(err)
	}
	if sum := p.Digest(); hex.EncodeToString(sum[:]) != d.Digest {
		f.t.Errorf("digest = %s, want %x, the sum of the profile", d.Digest, sum)
	}
	return d, p
}

func (f *fixture) failed() string {
	f.t.Helper()
	m, err := workers.DecodeFailed(f.next(workers.TypeFailed).Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return m.Problem
}

// The method "entry" returns the only entry in the store.
func (f *fixture) entry() profile.Entry {
	f.t.Helper()
	entries, err := f.store.List()
	if err != nil || len(entries) != 1 {
		f.t.Fatalf("entries of the store = %+v, %v", entries, err)
	}
	return entries[0]
}

// The function "din" returns a trace of n references with some locality.
func din(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var b []byte
	for range n {
		b = strconv.AppendInt(b, random.Int64N(2), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(random.ExpFloat64()*20_000), 16)
		b = append(b, '\n')
	}
	return b
}

// The function "direct" analyses a trace without a host.
func direct(t *testing.T, b []byte, spec analysis.Spec) *profile.Profile {
	t.Helper()
	reader, err := openTrace("direct", bytes.NewReader(b), "", nil)
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
	return r.Profile(profile.State{})
}

func wantContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("text = %q, want %q in it", text, part)
		}
	}
}

var spec = analysis.Spec{LineBytes: []uint32{32, 64}}

func TestCompleteRun(t *testing.T) {
	b := din(800_000)
	f := newFixture(t)
	f.serve()
	f.start(7, workers.Start{Key: "k", Name: "a.din", Spec: spec}, bytesFile(b))
	var progress []workers.Progress
	snapshots := 0
	for {
		m := f.next(workers.TypeProgress, workers.TypeSnapshot, workers.TypeDone)
		if m.Job != 7 {
			t.Errorf("received a %v message for job %d", m.Type, m.Job)
		}
		if m.Type == workers.TypeDone {
			f.checkComplete(m, b)
			break
		}
		if m.Type == workers.TypeProgress {
			p, err := workers.DecodeProgress(m.Body)
			if err != nil {
				t.Fatal(err)
			}
			progress = append(progress, p)
			continue
		}
		snapshots++
		p, err := profile.Decode(m.Body)
		if err != nil || !p.State.Partial || p.Totals.AllReferences() == 0 {
			t.Errorf("profile of snapshot %d = %+v, %v, want a partial profile", snapshots, p, err)
		}
	}
	if snapshots == 0 || len(progress) < 3 {
		t.Errorf("snapshots = %d, progress messages = %d", snapshots, len(progress))
	}
	last := progress[len(progress)-1]
	if last.Bytes != uint64(len(b)) || last.TotalBytes != uint64(len(b)) || last.References != 800_000 || last.Lines == 0 || last.Memory == 0 || !last.Ending {
		t.Errorf("last progress = %+v, want the end of the trace", last)
	}
	for i := 1; i < len(progress)-1; i++ { // the last message is sent at the end of the run, before the next message is due
		if d := progress[i].Millis - progress[i-1].Millis; d < 200 || d > 300 {
			t.Errorf("time between two progress messages = %d ms", d)
		}
	}
}

func (f *fixture) checkComplete(m workers.Message, trace []byte) {
	f.t.Helper()
	d, err := workers.DecodeDone(m.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	want := direct(f.t, trace, spec).Encode()
	if !d.Kept || d.Problem != "" || !bytes.Equal(d.Profile, want) {
		f.t.Errorf("kept = %t, problem = %q, equal to a run without a host = %t; want a kept and equal result", d.Kept, d.Problem, bytes.Equal(d.Profile, want))
	}
	e := f.entry()
	if e.Key != "k" || e.Name != "a.din" || e.State != profile.EntryComplete || e.Digest != d.Digest ||
		e.Bytes != uint64(len(d.Profile)) || e.References != 800_000 || e.Reason != "" || e.Created == 0 {
		f.t.Errorf("entry %+v", e)
	}
	if kept, err := f.store.Get("k"); err != nil || !bytes.Equal(kept, d.Profile) {
		f.t.Errorf("stored result = %d bytes, %v, want the bytes of the sent result", len(kept), err)
	}
}

// The type "endless" is a trace that does not end until it is closed.
type endless struct {
	part   []byte
	at     int
	mu     sync.Mutex
	closed bool
}

func (e *endless) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return 0, io.EOF
	}
	n := copy(p, e.part[e.at:])
	e.at = (e.at + n) % len(e.part)
	return n, nil
}

func (e *endless) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

func TestCancel(t *testing.T) {
	f := newFixture(t)
	f.serve()
	file := &endless{part: din(100_000)}
	f.start(1, workers.Start{Key: "k", Name: "endless.din"}, attached{open: func() io.ReadCloser { return file }})
	f.progress()
	f.send(workers.Message{Type: workers.TypeCancel, Job: 2}) // there is no such job
	f.progress()
	f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
	d, p := f.done()
	n := p.Totals.AllReferences()
	if !p.State.Partial || n == 0 || p.State.Reason != "stopped by the user after "+strconv.FormatUint(n, 10)+" references" {
		t.Errorf("state = %+v with %d references, want a cancelled run", p.State, n)
	}
	if e := f.entry(); e.State != profile.EntryPartial || e.References != n || e.Digest != d.Digest || e.Reason != p.State.Reason {
		t.Errorf("entry %+v", e)
	}
	file.mu.Lock()
	defer file.mu.Unlock()
	if !file.closed {
		t.Error("the file of the cancelled run is still open")
	}
}

func TestPauseAndResume(t *testing.T) {
	b := din(600_000)
	f := newFixture(t)
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: spec}, bytesFile(b))
	f.progress()
	f.send(workers.Message{Type: workers.TypePause, Job: 2}) // there is no such job
	f.send(workers.Message{Type: workers.TypePause, Job: 1})
	paused := f.progress()
	for !paused.Paused {
		paused = f.progress()
	}
	still, err := profile.Decode(f.next(workers.TypeSnapshot).Body)
	if err != nil || still.Totals.AllReferences() != paused.References {
		t.Errorf("references at the pause = %d, want the number in the snapshot (error %v)", paused.References, err)
	}
	f.clock.advance(time.Hour)
	f.send(workers.Message{Type: workers.TypePause, Job: 1})
	f.send(workers.Message{Type: workers.TypeResume, Job: 2}) // there is no such job
	f.send(workers.Message{Type: workers.TypeResume, Job: 1})
	after := f.progress()
	if after.Paused || after.References != paused.References || after.Bytes != paused.Bytes {
		t.Errorf("first progress after the pause = %+[2]v, want the references of %+[1]v", paused, after)
	}
	if after.Millis > paused.Millis+100 {
		t.Errorf("run time = %d ms at the pause and %d ms after the pause, want a run time that excludes the pause", paused.Millis, after.Millis)
	}
	if d, _ := f.done(); !bytes.Equal(d.Profile, direct(t, b, spec).Encode()) {
		t.Error("the profile of a run with a pause differs from the profile of a run without a pause")
	}
}

// TestLargeSnapshotsAreRounded checks that a snapshot with many distinct distances is rounded, so
// that the page needs little memory to show successive snapshots. The final result must still be
// exact.
func TestLargeSnapshotsAreRounded(t *testing.T) {
	const lines, most = 200_000, 1 << 10
	random := rand.New(rand.NewPCG(5, 6))
	var b []byte
	for i := range 4 * lines {
		line, kind := int64(i), int64(0)
		if i >= lines {
			line, kind = random.Int64N(lines), random.Int64N(3)
		}
		b = strconv.AppendInt(b, kind, 10)
		b = append(b, ' ')
		b = append(strconv.AppendInt(b, line<<6, 16), '\n')
	}
	sizes := analysis.Spec{LineBytes: []uint32{8, 16, 32, 64}}
	f := newFixture(t)
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: sizes}, bytesFile(b))
	rounded := 0
	for ended := false; !ended; {
		m := f.next(workers.TypeSnapshot, workers.TypeDone)
		encoded := m.Body
		if ended = m.Type == workers.TypeDone; ended {
			d, err := workers.DecodeDone(m.Body)
			if err != nil {
				t.Fatal(err)
			}
			encoded = d.Profile
		}
		p, err := profile.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		var memory, widest uint64
		for _, l := range p.Locality {
			for i := range l.Kinds {
				h := &l.Kinds[i].Distances
				memory += h.MemoryBytes()
				for d := range h.All() {
					widest = max(widest, d>>bits.TrailingZeros64(d))
				}
			}
		}
		switch {
		case ended && widest < most:
			t.Error("the distances of the final result are rounded, want exact distances")
		case ended:
		case memory > 8<<20:
			t.Errorf("size of a snapshot's histograms = %d bytes, want a small snapshot", memory)
		case p.State.Reason == workers.RoundedSnapshot:
			if rounded++; rounded == 1 {
				f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
			}
			if widest >= most {
				t.Errorf("significant bits of a rounded distance = %b, want fewer than %d bits", widest, most)
			}
		}
	}
	if rounded == 0 {
		t.Error("no snapshot has rounded distances")
	}
}

// TestCancelBeforeFirstStep checks that a Cancel message that arrives before the first step ends
// even a very short run.
func TestCancelBeforeFirstStep(t *testing.T) {
	f := newFixture(t)
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din"}, attached{open: func() io.ReadCloser {
		f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
		time.Sleep(100 * time.Millisecond) // the host receives the message within this time
		return io.NopCloser(bytes.NewReader(din(10)))
	}})
	if _, p := f.done(); !p.State.Partial {
		t.Errorf("state %+v", p.State)
	}
}

func TestCancelWhilePaused(t *testing.T) {
	f := newFixture(t)
	f.serve()
	file := &endless{part: din(100_000)}
	f.start(1, workers.Start{Key: "k", Name: "endless.din"}, attached{open: func() io.ReadCloser { return file }})
	f.progress()
	f.send(workers.Message{Type: workers.TypePause, Job: 1})
	f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
	if _, p := f.done(); !p.State.Partial {
		t.Errorf("state %+v", p.State)
	}
}

func TestJobsQueue(t *testing.T) {
	b := din(300_000)
	f := newFixture(t)
	f.serve()
	file := &endless{part: din(100_000)}
	f.start(1, workers.Start{Key: "1", Name: "endless.din"}, attached{open: func() io.ReadCloser { return file }})
	f.progress()
	f.start(2, workers.Start{Key: "2", Name: "a.din"}, bytesFile(b))
	f.start(3, workers.Start{Key: "3", Name: "a.din"}, bytesFile(b))
	f.send(workers.Message{Type: workers.TypeCancel, Job: 2})
	if m := f.next(workers.TypeFailed); m.Job != 2 {
		t.Errorf("failed job = %d", m.Job)
	}
	f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
	if m := f.next(workers.TypeDone); m.Job != 1 {
		t.Errorf("job %d is done", m.Job)
	}
	if m := f.next(workers.TypeDone); m.Job != 3 {
		t.Errorf("job %d is done", m.Job)
	}
}

func packed(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if err := w.Apply(lz4.BlockSizeOption(lz4.Block256Kb)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDamagedFile(t *testing.T) {
	whole := packed(t, din(500_000))
	f := newFixture(t)
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "/home/me/secret.din.lz4"}, bytesFile(whole[:len(whole)/2]))
	d, p := f.done()
	if !d.Kept || !p.State.Partial || p.Totals.AllReferences() == 0 || p.Totals.AllReferences() >= 500_000 {
		t.Errorf("kept %t, state %+v, %d references", d.Kept, p.State, p.Totals.AllReferences())
	}
	wantContains(t, p.State.Reason, "the trace: ", "lz4 stream is truncated")
	if strings.Contains(string(d.Profile), "secret") {
		t.Error("the profile contains the name of the file")
	}
	if e := f.entry(); e.State != profile.EntryPartial || e.Reason != p.State.Reason {
		t.Errorf("entry %+v", e)
	}
}

// The reader "failing" returns an error after its bytes.
type failing struct {
	io.Reader
	err error
}

func (r *failing) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF {
		err = r.err
	}
	return n, err
}

func (r *failing) Close() error { return nil }

type goneError struct{}

func (goneError) Error() string    { return "a.din: the disk is gone: plug it in again" }
func (goneError) Nameless() string { return "the disk is gone: plug it in again" }

func TestReadError(t *testing.T) {
	b := din(300_000)
	gone := goneError{}
	f := newFixture(t)
	f.serve()
	for job, file := range [][]byte{b, packed(t, b)} {
		file := &failing{bytes.NewReader(file[:len(file)*3/4]), gone}
		f.start(uint32(job), workers.Start{Key: "k", Name: "a.din"}, attached{open: func() io.ReadCloser { return file }})
		if _, p := f.done(); !p.State.Partial || !strings.HasSuffix(p.State.Reason, " references: "+gone.Nameless()) || p.Totals.AllReferences() == 0 {
			t.Errorf("state %+v, %d references", p.State, p.Totals.AllReferences())
		}
	}
}

func TestBadRecord(t *testing.T) {
	b := append(din(10_000), "0 xyz\n0 40\n"...)
	f := newFixture(t)
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din"}, bytesFile(b))
	_, p := f.done()
	if p.Totals.AllReferences() != 10_000 {
		t.Errorf("%d references", p.Totals.AllReferences())
	}
	wantContains(t, p.State.Reason, "the trace:10001: ", "xyz")
	f.start(2, workers.Start{Key: "k", Name: "a.din", Spec: analysis.Spec{SkipBad: 1}}, bytesFile(b))
	if _, p := f.done(); p.State.Partial || p.Totals.AllReferences() != 10_001 || p.Totals.BadRecords != 1 {
		t.Errorf("%+v, %+v", p.State, p.Totals)
	}
}

func TestFullStore(t *testing.T) {
	b := din(100_000)
	f := newFixture(t)
	f.store.Quota = 1000
	if err := f.store.Put(profile.Entry{Key: "earlier"}, []byte("kept")); err != nil {
		t.Fatal(err)
	}
	f.host.CheckpointBytes = 100_000
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: spec}, bytesFile(b))
	last := f.progress()
	for !last.Ending {
		last = f.progress()
	}
	wantContains(t, last.Unsaved, "storage")
	d, _ := f.done()
	if d.Kept || !bytes.Equal(d.Profile, direct(t, b, spec).Encode()) {
		t.Errorf("kept %t", d.Kept)
	}
	wantContains(t, d.Problem, "full", "is not kept", "Export this result")
	if e := f.entry(); e.Key != "earlier" {
		t.Errorf("entry %+v", e)
	}
}

func TestNoStore(t *testing.T) {
	f := newFixture(t)
	f.host.Store, f.host.NoStore = nil, "There is no room at all."
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din"}, bytesFile(din(1000)))
	if d, _ := f.done(); d.Kept || d.Problem != "There is no room at all." {
		t.Errorf("%+v", d)
	}
	f.start(2, workers.Start{Key: "k", Name: "a.din", Resume: true}, bytesFile(din(1000)))
	wantContains(t, f.failed(), "cannot resume", "There is no room at all.")
}

func TestNothingToAnalyse(t *testing.T) {
	f := newFixture(t)
	f.serve()
	cases := []struct {
		name  string
		start workers.Start
		file  any
		want  string
	}{
		{"empty", workers.Start{Name: "empty.din"}, bytesFile(nil), "empty.din"},
		{"unknown", workers.Start{Name: "a.png"}, bytesFile([]byte("\x89PNG\r\n\x1a\n and so on")), "a.png"},
		{"format", workers.Start{Name: "a.din", Format: "none"}, bytesFile(din(10)), "none"},
		{"no file", workers.Start{Name: "a.din"}, nil, "no file is attached"},
		{"line size", workers.Start{Name: "a.din", Spec: analysis.Spec{LineBytes: []uint32{48}}}, bytesFile(din(10)), "48"},
		{"first record", workers.Start{Name: "a.din", Format: "din"}, bytesFile([]byte("0 what\n")), "a.din:1: "},
	}
	for i, c := range cases {
		f.start(uint32(i), c.start, c.file)
		if problem := f.failed(); !strings.Contains(problem, c.want) {
			t.Errorf("%s: %q, want %q in it", c.name, problem, c.want)
		}
	}
	f.send(workers.Message{Type: workers.TypeStart, Body: []byte{99}})
	wantContains(t, f.failed(), "reload the page")
	if entries, err := f.store.List(); err != nil || len(entries) != 0 {
		t.Errorf("entries of the store = %+v, %v", entries, err)
	}
}

// The type "panicking" is a reader that panics.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("a bug in a reader") }
func (panicking) Close() error             { return nil }

func TestPanicEndsOnlyTheJob(t *testing.T) {
	b := din(1000)
	f := newFixture(t)
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din"}, attached{open: func() io.ReadCloser { return panicking{} }})
	wantContains(t, f.failed(), "a bug in a reader", "Kept analyses")
	f.start(2, workers.Start{Key: "k", Name: "a.din"}, bytesFile(b))
	if d, _ := f.done(); !d.Kept {
		t.Errorf("%+v", d)
	}
}
