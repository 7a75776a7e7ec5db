//go:build js && wasm

package file

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall/js"
	"testing"
	"testing/iotest"
)

func pattern(size int) []byte {
	data := make([]byte, size)
	x := uint32(1)
	for i := range data {
		x = x*1664525 + 1013904223
		data[i] = byte(x >> 24)
	}
	return data
}

// newFile creates a browser File with the given data. The File consists of several parts, to limit
// the memory use.
func newFile(data []byte, times int) js.Value {
	part := js.Global().Get("Uint8Array").New(len(data))
	js.CopyBytesToJS(part, data)
	parts := js.Global().Get("Array").New()
	for range times {
		parts.Call("push", part)
	}
	return js.Global().Get("File").New(parts, "some.din")
}

// The map "sources" contains all kinds of sources, not only the kind that this browser would use.
var sources = map[string]func(blob js.Value) source{
	"chosen": newSource,
	"own buffers": func(b js.Value) source {
		return &stream{b.Call("stream").Call("getReader", map[string]any{"mode": "byob"}), true}
	},
	"plain stream": func(b js.Value) source { return &stream{b.Call("stream").Call("getReader"), false} },
	"slices":       func(b js.Value) source { return &slicing{blob: b} },
}

func open(t testing.TB, blob js.Value, from func(js.Value) source) *File {
	t.Helper()
	f, err := Open(blob)
	if err != nil {
		t.Fatal(err)
	}
	f.source.cancel()
	f.source = from(blob)
	f.ahead = f.source.begin(js.Undefined())
	return f
}

func TestReadAll(t *testing.T) {
	for name, from := range sources {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{0, 1, smallRead, smallBuffer + 1, ownBufferBytes, 2*sliceBytes + 5} {
				want := pattern(size)
				f := open(t, newFile(want, 1), from)
				got, err := io.ReadAll(f)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("file of %d bytes: read %d bytes, error %v, want the bytes of the file", size, len(got), err)
				}
				if f.BytesRead() != uint64(size) || f.Size() != uint64(size) {
					t.Errorf("file of %d bytes: BytesRead = %d, Size = %d", size, f.BytesRead(), f.Size())
				}
				if _, err := f.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("Read after the end: %v, want io.EOF", err)
				}
			}
		})
	}
}

// TestReadLengths checks that reads of all lengths, in which small and large reads alternate,
// return the same bytes.
func TestReadLengths(t *testing.T) {
	want := pattern(9 << 20)
	for name, from := range sources {
		t.Run(name, func(t *testing.T) {
			f := open(t, newFile(want, 1), from)
			var got []byte
			for length := 1; ; length = length*5%9_000_011 + 1 {
				p := make([]byte, length)
				n, err := f.Read(p)
				got = append(got, p[:n]...)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, want) {
				t.Error("the bytes from reads of various lengths differ from the file")
			}
		})
	}
}

func TestReaderContract(t *testing.T) {
	want := pattern(300_000)
	f, err := Open(newFile(want, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(f, want); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesNonFiles(t *testing.T) {
	for _, v := range []js.Value{js.Undefined(), js.Null(), js.ValueOf("path"), js.ValueOf(map[string]any{})} {
		if _, err := Open(v); err == nil {
			t.Errorf("Open opened %v, want an error", v)
		}
	}
}

// The type "fails" is a source whose second chunk cannot be read.
type fails struct{ source }

func (s *fails) begin(spare js.Value) js.Value {
	if !spare.IsUndefined() {
		why := js.Global().Get("DOMException").New("it is gone", "NotReadableError")
		return js.Global().Get("Promise").Call("reject", why)
	}
	return s.source.begin(spare)
}

func TestReadErrorContainsPosition(t *testing.T) {
	f := open(t, newFile(pattern(12<<20), 1), func(b js.Value) source { return &fails{&slicing{blob: b}} })
	got, err := io.ReadAll(f)
	var failed *ReadError
	if !errors.As(err, &failed) || failed.Offset != uint64(len(got)) || len(got) == 0 ||
		!strings.Contains(err.Error(), "some.din: ") || !strings.Contains(err.Error(), "NotReadableError: it is gone") {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if _, again := f.Read(make([]byte, 1)); again != err {
		t.Errorf("second Read after an error: %v, want the same error", again)
	}
}

func TestCloseBeforeEndOfFile(t *testing.T) {
	f, err := Open(newFile(pattern(12<<20), 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(f, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	f.Close()
	if _, err := f.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("Read after Close: %v", err)
	}
}

// BenchmarkRead reads 256 MiB. The File consists of parts in memory, so it is as fast as a file
// that the operating system has cached.
func BenchmarkRead(b *testing.B) {
	blob := newFile(pattern(16<<20), 16)
	for name, from := range sources {
		for _, length := range []int{4 << 10, 64 << 10, 1 << 20} {
			b.Run(name+"/"+map[int]string{4 << 10: "4KiB", 64 << 10: "64KiB", 1 << 20: "1MiB"}[length], func(b *testing.B) {
				p := make([]byte, length)
				b.SetBytes(256 << 20)
				for b.Loop() {
					f := open(b, blob, from)
					for {
						if _, err := f.Read(p); err == io.EOF {
							break
						} else if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("WASMTEST_URL") == "" {
		println("skipped: local files need a browser; run with go test -exec=wasmtest (tools/wasmtest)")
		return
	}
	os.Exit(m.Run())
}
