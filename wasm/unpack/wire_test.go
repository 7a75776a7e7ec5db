//go:build js && wasm

package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall/js"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/open"
)

// The test binary is also the program that the unpackers run.
func TestMain(m *testing.M) {
	if js.Global().Get("name").String() == Name {
		if err := Serve(append([]open.Packing{toy, poisonous, panics, hungry, mute}, packings...)); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// The types panics, hungry and mute are decoders that fail.
var (
	panics = open.Packing{Name: "panics", New: func(io.Reader) (io.Reader, error) { panic("on purpose") }}
	hungry = open.Packing{Name: "hungry", New: func(io.Reader) (io.Reader, error) {
		var all [][]byte
		for {
			all = append(all, make([]byte, 256<<20))
			runtime.KeepAlive(all)
		}
	}}
	mute = open.Packing{Name: "mute", New: func(io.Reader) (io.Reader, error) { select {} }}
)

// The decoder "poisonous" works like the decoder "toy", but also sends messages that no unpacker
// sends.
var poisonous = open.Packing{Name: "poisonous", New: func(r io.Reader) (io.Reader, error) {
	poison(js.Global())
	return toy.New(r)
}}

// The function "poison" sends messages that neither side would send.
func poison(remote js.Value) {
	buffer := js.Global().Get("ArrayBuffer").New(8)
	nested := js.ValueOf(map[string]any{})
	nested.Set("self", nested)
	for _, p := range []any{
		nil, 5, "text", true, nested, []any{1, 2}, map[string]any{}, map[string]any{"kind": "packed"}, map[string]any{"kind": -1},
		map[string]any{"kind": 0, "bytes": buffer}, map[string]any{"kind": 13, "text": "gone"}, map[string]any{"kind": 1e300},
		map[string]any{"kind": js.Global().Get("NaN")}, map[string]any{"exited": "text"}, map[string]any{"bytes": buffer, "length": 1e9},
		map[string]any{"kind": 99, "spare": map[string]any{"byteLength": 1e9}},
	} {
		remote.Call("postMessage", p)
	}
}

// TestInvalidMessagesAreDropped checks that messages that neither side would send have no effect.
func TestInvalidMessagesAreDropped(t *testing.T) {
	file := bytes.Repeat([]byte{1}, 200_000)
	r, p := unpackedBy(t, newWorkers(t), "poisonous", bytes.NewReader(file))
	poison(p.remote)
	if n, err := io.Copy(io.Discard, r); err != nil || n != 100*int64(len(file)) {
		t.Errorf("%d bytes, %v", n, err)
	}
	for _, c := range []struct{ length, want int }{{5, 5}, {8, 8}, {9, 0}, {-1, 0}} {
		buffer := js.Global().Get("ArrayBuffer").New(8)
		event := js.ValueOf(map[string]any{"data": map[string]any{"kind": int(unpacked), "bytes": buffer, "length": c.length}})
		w := newWire(js.Global())
		w.receive(event)
		if m := <-w.inbox; len(m.bytes) != c.want {
			t.Errorf("a message of length %d in a buffer of 8 bytes yields %d bytes, want %d", c.length, len(m.bytes), c.want)
		}
	}
}

func inBrowser(t testing.TB) (base string) {
	t.Helper()
	if base = os.Getenv("WASMTEST_URL"); base == "" {
		t.Skip("skipped: web workers need a browser; run with go test -exec=wasmtest (tools/wasmtest)")
	}
	return base
}

func scriptOf(base, program string) string {
	return base + "src/wasm/worker/worker.js?wasm=" + base + program
}

func newWorkers(t testing.TB) *Workers {
	t.Helper()
	w := &Workers{Script: scriptOf(inBrowser(t), "test.wasm")}
	t.Cleanup(w.Close)
	return w
}

// unpackedBy reads a compressed file that is unpacked in a worker.
func unpackedBy(t testing.TB, w *Workers, packing string, source io.Reader) (*reader, *wire) {
	t.Helper()
	p, err := w.start()
	if err != nil {
		t.Fatal(err)
	}
	return newReader(p, packing, source), p
}

func TestRealWorkerSameAsWithoutWorker(t *testing.T) {
	w := newWorkers(t)
	text := din(80_000)
	for i, p := range w.Packings() {
		whole := pack(t, p.Name, text)
		damaged := bytes.Clone(whole)
		damaged[len(damaged)/2] ^= 1
		for what, file := range map[string][]byte{"whole": whole, "cut": whole[:len(whole)/2], "damaged": damaged} {
			r, err := p.New(bufio.NewReader(bytes.NewReader(file)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			want, end := direct(packings[i], file, 1<<40)
			if !bytes.Equal(got, want) || wordsOf(err) != end {
				t.Errorf("%s, %s: %d bytes and the error %v, want %d bytes and %s, as without a worker", p.Name, what, len(got), err, len(want), end)
			}
		}
	}
}

// TestMemoryIsBounded checks that buffers are reused in both directions, so that the memory does
// not depend on the length of the stream.
func TestMemoryIsBounded(t *testing.T) {
	file := bytes.Repeat([]byte{1}, 2_000_000)
	r, p := unpackedBy(t, newWorkers(t), "toy", bytes.NewReader(file))
	if n, err := io.Copy(io.Discard, r); err != nil || n != 100*int64(len(file)) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if len(p.buffers)+len(p.spares) > 3*ahead || len(p.freed) > 2*ahead {
		t.Errorf("after 200 MB: buffers = %d, spare buffers = %d, freed slices = %d; want a small number of each", len(p.buffers), len(p.spares), len(p.freed))
	}
}

// TestUnpackerStopsWithTheAnalysis checks that, if the receiver does not read, the unpacker sends
// no more parts than may be in flight.
func TestUnpackerStopsWithTheAnalysis(t *testing.T) {
	source := &counted{reader: bytes.NewReader(bytes.Repeat([]byte{1}, 10*ahead*packedBytes))}
	r, p := unpackedBy(t, newWorkers(t), "toy", source)
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for len(p.inbox) < ahead-1 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // give the decompressor time to send further messages
	unread := 0
	for len(p.inbox) > 0 {
		if m := <-p.inbox; m.kind == unpacked {
			unread++
		}
	}
	if unread > ahead-1 || source.bytes > (ahead+2)*packedBytes {
		t.Errorf("waiting parts = %d, want at most %d; bytes read from the file = %d", unread, ahead-1, source.bytes)
	}
}

func TestUnavailableWorker(t *testing.T) {
	base := inBrowser(t)
	for _, c := range []struct{ script, packing, want string }{
		{base + "src/none.js", "zstd", "could not be loaded (the worker's script could not be loaded)"},
		{scriptOf(base, "none.wasm"), "zstd", "404"},
		{"https://stackglass.example/worker.js", "zstd", "could not be loaded ("},
		{scriptOf(base, "test.wasm"), "panics", "crashed (panic: on purpose)"},
		{scriptOf(base, "test.wasm"), "hungry", "out of memory"},
		{scriptOf(base, "test.wasm"), "rar", "there is no decompressor for rar"},
	} {
		w := &Workers{Script: c.script}
		r, err := w.packing(c.packing).New(strings.NewReader("packed"))
		if err == nil {
			_, err = r.Read(make([]byte, 1))
		}
		var unpacker *open.UnpackerError
		if !errors.As(err, &unpacker) || !strings.Contains(unpacker.Err.Error(), c.want) {
			t.Errorf("%s, %s: error = %v, want %q in it", c.script, c.packing, err, c.want)
		}
		w.Close()
	}
}

// TestCloseEndsUnpackers checks that the method Close ends an unpacker in any state, and can be
// called twice.
func TestCloseEndsUnpackers(t *testing.T) {
	w := newWorkers(t)
	_, p := unpackedBy(t, w, "mute", strings.NewReader("packed"))
	if m := p.take(); m.kind != ready {
		t.Fatalf("kind of the first message = %d, text = %q; want the kind ready", m.kind, m.text)
	}
	w.Close()
	if !p.closed || len(w.running) > 0 {
		t.Errorf("closed = %t, running unpackers = %d; want true and 0", p.closed, len(w.running))
	}
	w.Close()
}

func TestLateUnpacker(t *testing.T) {
	_, p := unpackedBy(t, newWorkers(t), "mute", strings.NewReader("packed"))
	p.inbox = make(chan message) // no message arrives
	late := make(chan time.Time, 1)
	late <- time.Time{}
	p.late = late
	if m := p.take(); m.kind != gone || !strings.Contains(m.text, "no data arrived within 120 seconds") {
		t.Errorf("got %+v", m)
	}
}

// BenchmarkUnpack compares the speed of unpacking in a worker with the speed of unpacking in the
// same program.
func BenchmarkUnpack(b *testing.B) {
	w := newWorkers(b)
	text := bytes.Repeat(din(20_000), 200)
	for i, p := range w.Packings() {
		whole := pack(b, p.Name, text)
		for name, packing := range map[string]open.Packing{"worker": p, "in place": packings[i]} {
			b.Run(p.Name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					r, err := packing.New(bufio.NewReader(bytes.NewReader(whole)))
					if err == nil {
						_, err = io.Copy(io.Discard, r)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
