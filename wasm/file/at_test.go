//go:build js && wasm

package file

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"syscall/js"
	"testing"
	"testing/iotest"
)

// TestReadAt checks that the method ReadAt returns the correct bytes for any part of a file,
// whatever was read before.
func TestReadAt(t *testing.T) {
	want := pattern(3*windowBytes + 5)
	f, err := OpenAt(newFile(want, 1))
	if err != nil || f.Size() != int64(len(want)) {
		t.Fatal(f, err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		at := rng.IntN(len(want))
		p := make([]byte, 1<<rng.IntN(22))
		n, err := f.ReadAt(p, int64(at))
		if end := min(len(want), at+len(p)); !bytes.Equal(p[:n], want[at:end]) || (n < len(p)) != (err == io.EOF) {
			t.Fatalf("ReadAt(%d bytes, %d) = %d, %v, want the bytes of the file", len(p), at, n, err)
		}
	}
	if err := iotest.TestReader(io.NewSectionReader(f, 0, f.Size()), want); err != nil {
		t.Error(err)
	}
	if n, err := f.ReadAt(make([]byte, 5), f.Size()); n != 0 || err != io.EOF {
		t.Errorf("ReadAt after the end = %d, %v, want 0 and io.EOF", n, err)
	}
}

func TestReadAtErrors(t *testing.T) {
	f, err := OpenAt(newFile(pattern(100), 1))
	if err != nil {
		t.Fatal(err)
	}
	f.blob = f.blob.Call("slice", 0, 50) // the file is shorter now
	var failed *ReadError
	if n, err := f.ReadAt(make([]byte, 10), 7); n != 0 || !errors.As(err, &failed) || failed.Offset != 7 {
		t.Errorf("%d, %v", n, err)
	}
	for _, v := range []js.Value{js.Undefined(), js.Null(), js.ValueOf("path"), js.ValueOf(map[string]any{})} {
		if _, err := OpenAt(v); err == nil {
			t.Errorf("OpenAt opened %v, want an error", v)
		}
	}
}
