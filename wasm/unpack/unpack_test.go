package unpack

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/snappy"
	klauspost "github.com/klauspost/compress/zstd"
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/open"
	opengzip "github.com/stackglass/stackglass/core/open/gzip"
	opensnappy "github.com/stackglass/stackglass/core/open/snappy"
	"github.com/stackglass/stackglass/core/open/xz"
	openzip "github.com/stackglass/stackglass/core/open/zip"
	"github.com/stackglass/stackglass/core/open/zstd"
	"github.com/stackglass/stackglass/core/trace"
	ulikunitz "github.com/ulikunitz/xz"
	"pgregory.net/rapid"
)

var packings = []open.Packing{opengzip.Packing, zstd.Packing, xz.Packing, openzip.Packing, opensnappy.Packing}

// A pipe is a [port] between goroutines. The pipe checks that both sides follow the protocol.
// Neither side may ever have more messages in flight than allowed, or use memory after it has freed
// this memory.
type pipe struct {
	out  chan<- message
	in   <-chan message
	slow func()        // called before each message, to give the other side time to run
	done chan struct{} // closed when the side that analyses closes the pipe
}

func newPipe(slow func()) (analyser, unpacker *pipe) {
	there, back := make(chan message, mostWaiting), make(chan message, mostWaiting)
	done := make(chan struct{})
	return &pipe{there, back, slow, done}, &pipe{back, there, slow, done}
}

func (p *pipe) post(m message) {
	p.slow()
	m.bytes = bytes.Clone(m.bytes)
	select {
	case p.out <- m:
	default:
		// Do not continue, because the test would wait for the lost message.
		panic("no room for a message of kind " + strconv.Itoa(int(m.kind)) + ": more messages are in flight than the protocol allows")
	}
}

func (p *pipe) take() message {
	p.slow()
	select {
	case m := <-p.in:
		return m
	case <-p.done:
		runtime.Goexit() // the goroutine ends at once, as a worker would
		panic("unreachable")
	}
}

func (p *pipe) free(bytes []byte) {
	for i := range bytes {
		bytes[i] = 0xee
	}
}

func (p *pipe) close() { close(p.done) }

func (p *pipe) isClosed() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func atOnce() {}

// The function "started" returns the reader that package open would receive for a compressed file
// if the file is decompressed at the other end of a pipe.
func started(packings []open.Packing, name string, source io.Reader, slow func()) *reader {
	analyser, unpacker := newPipe(slow)
	go func() { _ = serve(unpacker, packings) }()
	return newReader(analyser, name, source)
}

// The function "linked" returns compression formats that are unpacked at the other end of a pipe.
func linked() []open.Packing {
	var list []open.Packing
	for _, name := range Names() {
		list = append(list, open.Packing{Name: name, New: func(r io.Reader) (io.Reader, error) {
			return started(packings, name, r, atOnce), nil
		}})
	}
	return list
}

// The function "din" returns a trace of n references that compresses poorly.
func din(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var b []byte
	for i := range n {
		b = append(b, '0'+byte(i&1), ' ')
		b = strconv.AppendUint(b, random.Uint64()>>16, 16)
		b = append(b, '\n')
	}
	return b
}

// zipWriter writes a ZIP archive with one member.
type zipWriter struct {
	io.Writer
	archive *zip.Writer
}

func newZipWriter(out io.Writer) (zipWriter, error) {
	archive := zip.NewWriter(out)
	member, err := archive.Create("trace")
	return zipWriter{member, archive}, err
}

func (w zipWriter) Close() error { return w.archive.Close() }

func pack(t testing.TB, name string, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch name {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "xz":
		w, err = ulikunitz.NewWriter(&out)
	case "snappy":
		w = snappy.NewBufferedWriter(&out)
	case "zip":
		w, err = newZipWriter(&out)
	default:
		w, err = klauspost.NewWriter(&out)
	}
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// wordsOf returns a short text that describes an error. The text distinguishes the kinds of errors
// that package open distinguishes.
func wordsOf(err error) string {
	switch {
	case err == nil:
		return "whole"
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return "cut"
	}
	return err.Error()
}

// The function "direct" is the reference implementation, which unpacks without a worker.
func direct(p open.Packing, packed []byte, most int64) ([]byte, string) {
	r, err := p.New(bufio.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return nil, wordsOf(err)
	}
	text, err := io.ReadAll(io.LimitReader(r, most))
	return text, wordsOf(err)
}

func checkSame(t testing.TB, p open.Packing, packed []byte, most int64) {
	t.Helper()
	text, end := direct(p, packed, most)
	r := started(packings, p.Name, bytes.NewReader(packed), atOnce)
	got, err := io.ReadAll(io.LimitReader(r, most))
	if r.err == nil {
		r.port.close()
	}
	if !bytes.Equal(got, text) || wordsOf(err) != end {
		t.Fatalf("%s stream of %d bytes: read %d bytes and the error %q, want %d bytes and %q, as without a worker", p.Name, len(packed), len(got), wordsOf(err), len(text), end)
	}
}

// TestSameResultAsWithoutWorker checks that a stream with many parts has the same result as without
// a worker, whether it is complete, truncated or damaged.
func TestSameResultAsWithoutWorker(t *testing.T) {
	text := din(80_000)
	for _, p := range packings {
		whole := pack(t, p.Name, text)
		if len(whole) < (ahead+2)*packedBytes || len(text) < ahead*unpackedBytes {
			t.Fatalf("%s: %d compressed and %d decompressed bytes do not fill the window", p.Name, len(whole), len(text))
		}
		checkSame(t, p, whole, 1<<40)
		checkSame(t, p, append(bytes.Clone(whole), "and a rest"...), 1<<40)
		random := rand.New(rand.NewPCG(3, 4))
		for range 3 {
			at := random.IntN(len(whole))
			checkSame(t, p, whole[:at], 1<<40)
			wrong := bytes.Clone(whole)
			wrong[at] ^= 1 << random.IntN(8)
			checkSame(t, p, wrong, 1<<40)
		}
	}
}

// TestSameErrorsAsWithoutWorker checks that an error in a file is reported after the same records
// as without a worker, and that it contains the same byte offset and the same reason.
func TestSameErrorsAsWithoutWorker(t *testing.T) {
	text := din(40_000)
	for _, p := range packings {
		whole := pack(t, p.Name, text)
		damaged := bytes.Clone(whole)
		damaged[len(damaged)/2] ^= 1
		for what, file := range map[string][]byte{
			"empty": pack(t, p.Name, nil), "whole": whole, "cut": whole[:len(whole)/2], "damaged": damaged,
			"truncated within the first bytes": whole[:7],
		} {
			rows, said := rowsOf(file, packings)
			got, says := rowsOf(file, linked())
			if got != rows || says != said {
				t.Errorf("%s, %s: %d records and the error %q, want %d records and %q, as without a worker", p.Name, what, got, says, rows, said)
			}
			if what == "cut" && !strings.Contains(says, "the "+p.Name+" stream is truncated after") {
				t.Errorf("%s, truncated: error = %q", p.Name, says)
			}
		}
	}
}

func rowsOf(file []byte, packings []open.Packing) (rows int, said string) {
	tr, err := open.Open("a.din", bytes.NewReader(file), open.Options{Packings: packings})
	if err != nil {
		return 0, err.Error()
	}
	b, err := trace.ReadAll(tr)
	if err != nil {
		said = err.Error()
	}
	return b.Len(), said
}

// TestNestedUnpackers checks that unpackers can be nested, so that an unpacker's output is the next
// unpacker's input.
func TestNestedUnpackers(t *testing.T) {
	text := din(1000)
	file := pack(t, "zstd", pack(t, "xz", pack(t, "zstd", text)))
	if rows, said := rowsOf(file, linked()); rows != 1000 || said != "" {
		t.Errorf("%d rows, %q", rows, said)
	}
	if _, said := rowsOf(file[:len(file)-9], linked()); !strings.Contains(said, "a.din: the zstd stream is truncated") {
		t.Errorf("cut: %q", said)
	}
}

// TestSourceErrorIsReturned checks that an error from the source is returned unchanged, after all
// data that was unpacked before it.
func TestSourceErrorIsReturned(t *testing.T) {
	gone := errors.New("the disk is gone")
	for _, p := range packings {
		whole := pack(t, p.Name, din(40_000))
		source := io.MultiReader(bytes.NewReader(whole[:len(whole)*3/4]), iotest.ErrReader(gone))
		r := started(packings, p.Name, source, atOnce)
		text, err := io.ReadAll(r)
		want, _ := direct(p, whole[:len(whole)*3/4], 1<<40)
		if err != gone || !bytes.Equal(text, want) {
			t.Errorf("%s: %d bytes and the error %v, want %d bytes and the error of the source", p.Name, len(text), err, len(want))
		}
		if _, again := r.Read(make([]byte, 1)); again != gone {
			t.Errorf("%s: error of the next read = %v, want the same error", p.Name, again)
		}
	}
}

// The variable "toy" is a compression format whose decoder unpacks each byte to a number of bytes
// that depends on the byte's value. Many compressed bytes may therefore decompress to nothing, and
// one compressed byte may decompress to many.
var toy = open.Packing{Name: "toy", New: func(r io.Reader) (io.Reader, error) {
	return &repeats{source: r.(io.ByteReader)}, nil
}}

type repeats struct {
	source io.ByteReader
	times  int
}

func (r *repeats) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if r.times == 0 {
			c, err := r.source.ReadByte()
			if err != nil {
				return n, err
			}
			r.times = int(c) * 100
			continue
		}
		p[n] = byte(r.times)
		n, r.times = n+1, r.times-1
	}
	return n, nil
}

// The reader "counted" counts the bytes that are read.
type counted struct {
	reader io.Reader
	bytes  int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.bytes += n
	return n, err
}

// TestReadingIsDeterministic checks that the position in the file depends only on the number of
// unpacked bytes, and not on the speed of the two sides. This position must never be far beyond the
// bytes that are needed for the unpacked data.
func TestReadingIsDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var file []byte
		for range rapid.IntRange(1, 6).Draw(rt, "stretches") {
			c := rapid.SampledFrom([]byte{0, 0, 1, 200}).Draw(rt, "byte")
			n := rapid.IntRange(1, 400_000).Draw(rt, "times")
			file = append(file, bytes.Repeat([]byte{c}, n/(4*int(c)+1))...)
		}
		var first []int
		for run := range 3 {
			slow := atOnce
			if run > 0 {
				random := rand.New(rand.NewPCG(uint64(run), 1))
				slow = func() { pauseAtRandom(random.Uint64()) }
			}
			reads := progressOf(t, file, lock(slow))
			if run == 0 {
				first = reads
			} else if !equal(reads, first) {
				rt.Fatalf("positions in the file = %[2]v, want %[1]v, as in the first run", first, reads)
			}
		}
	})
}

// The function "lock" returns a function that calls f under a lock, so that goroutines do not draw
// random numbers at the same time.
func lock(f func()) func() {
	turn := make(chan struct{}, 1)
	return func() {
		turn <- struct{}{}
		f()
		<-turn
	}
}

func pauseAtRandom(n uint64) {
	for range n % 5 {
		runtime.Gosched()
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// progressOf unpacks a file with the decoder "toy", and records the position in the file after each
// read.
func progressOf(t testing.TB, file []byte, slow func()) (reads []int) {
	t.Helper()
	source := &counted{reader: bytes.NewReader(file)}
	r := started([]open.Packing{toy}, "toy", source, slow)
	needed := 0 // the number of the file's bytes that are required to unpack the data so far
	unpackedSoFar, described := 0, 0
	for buffer := make([]byte, 100_000); ; {
		n, err := r.Read(buffer)
		unpackedSoFar += n
		for described < unpackedSoFar && needed < len(file) {
			described += int(file[needed]) * 100
			needed++
		}
		if bound := needed + most(file) + ahead*packedBytes; source.bytes > bound {
			t.Fatalf("bytes read from the file = %[1]d for %[2]d decompressed bytes, which require %[3]d bytes; want at most %[4]d", source.bytes, unpackedSoFar, needed, bound)
		}
		reads = append(reads, source.bytes)
		if err != nil {
			if err != io.EOF {
				t.Fatal(err)
			}
			return reads
		}
	}
}

// The function "most" returns the maximum number of file bytes that the unpacked parts in flight
// require. These bytes include runs of zeros, which unpack to nothing.
func most(file []byte) int {
	longest, length, credit := 0, 0, 0
	for _, c := range file {
		length++
		credit += int(c) * 100
		if credit > (ahead+2)*unpackedBytes {
			longest, length, credit = max(longest, length), 0, 0
		}
	}
	return max(longest, length) + packedBytes
}

// The function "scripted" returns a reader for an unpacker that sends the given messages.
func scripted(says ...message) *reader {
	analyser, unpacker := newPipe(atOnce)
	for _, m := range says {
		unpacker.post(m)
	}
	return newReader(analyser, "zstd", strings.NewReader("packed"))
}

// TestNoUnpacker checks that, if there is no unpacker, the error contains the file's name, the
// reason and advice. The reason in the state of a result must contain the same text without the
// file's name.
func TestNoUnpacker(t *testing.T) {
	const file = "\x28\xb5\x2f\xfd and so on"
	runs := message{kind: ready, number: protocolVersion}
	some := message{kind: unpacked, bytes: []byte("0 40\n1 80\n")}
	for _, c := range []struct {
		says []message
		rows int
		want string
	}{
		{[]message{{kind: gone, text: "Failed to fetch"}}, 0,
			`a.zst is compressed with zstd, and the decompression program could not be loaded (Failed to fetch): this program is downloaded when it is first needed, so go online and reload the page; or decompress the file first, with zstd -d`},
		{[]message{runs, some, {kind: gone, text: "panic: x"}}, 2,
			`a.zst is compressed with zstd, and the decompression program crashed (panic: x): reload the page and try again; or decompress the file first, with zstd -d`},
		{[]message{{kind: ready, number: 7}}, 0,
			`a.zst is compressed with zstd, and the decompression program is from a different version of this site (7, want 1): reload the page; or decompress the file first, with zstd -d`},
	} {
		packing := open.Packing{Name: "zstd", New: func(io.Reader) (io.Reader, error) { return scripted(c.says...), nil }}
		tr, err := open.Open("a.zst", strings.NewReader(file), open.Options{Packings: []open.Packing{packing}})
		if err == nil {
			b, readErr := trace.ReadAll(tr)
			if err = readErr; b.Len() != c.rows {
				t.Errorf("records = %d, want %d", b.Len(), c.rows)
			}
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("got\n%v\nwant\n%s", err, c.want)
			continue
		}
		if reason := analysis.StateAfter(err, 2).Reason; strings.Contains(reason, "a.zst") || !strings.Contains(reason, "the trace is compressed with zstd, and the decompression program") {
			t.Errorf("reason %q", reason)
		}
	}
}

// TestEndClosesTheUnpacker checks that, at the end of a stream, the unpacker is closed and frees
// its memory, and that later messages are ignored.
func TestEndClosesTheUnpacker(t *testing.T) {
	for _, k := range []kind{whole, cut, damaged, gone} {
		r := scripted(message{kind: ready, number: protocolVersion}, message{kind: k}, message{kind: unpacked, bytes: []byte("late")})
		if text, _ := io.ReadAll(r); len(text) > 0 || !r.port.(*pipe).isClosed() {
			t.Errorf("kind %d: %q; closed: %t", k, text, r.port.(*pipe).isClosed())
		}
	}
}

// TestStreamEndsBeforeDecoderStarts checks that, if the file ends before the decoder can start, the
// error says that the stream is truncated.
func TestStreamEndsBeforeDecoderStarts(t *testing.T) {
	early := open.Packing{Name: "early", New: func(io.Reader) (io.Reader, error) { return nil, io.EOF }}
	if _, err := started([]open.Packing{early}, "early", strings.NewReader(""), atOnce).Read(make([]byte, 1)); err != io.ErrUnexpectedEOF {
		t.Errorf("got %v", err)
	}
}

func TestUnknownPacking(t *testing.T) {
	analyser, unpacker := newPipe(atOnce)
	newReader(analyser, "rar", strings.NewReader(""))
	if err := serve(unpacker, packings); err == nil || err.Error() != "there is no decompressor for rar" {
		t.Errorf("got %v", err)
	}
}

func FuzzSameAsWithoutWorker(f *testing.F) {
	for i, p := range packings {
		whole := pack(f, p.Name, din(20))
		f.Add(whole, uint8(i))
		f.Add(whole[:len(whole)/2], uint8(i))
	}
	f.Fuzz(func(t *testing.T, file []byte, packing uint8) {
		p := packings[int(packing)%len(packings)]
		checkSame(t, p, file, 1<<20) // the output is limited, because a few bytes may unpack to gigabytes
	})
}
