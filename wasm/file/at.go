//go:build js && wasm

package file

import (
	"errors"
	"io"
	"slices"
	"syscall/js"

	"github.com/stackglass/stackglass/workers/web"
)

// At is an io.ReaderAt for a local file, for use by one goroutine. Only workers can use an At,
// because each read blocks the whole worker and its event loop for a few milliseconds.
type At struct {
	name   string
	blob   js.Value
	reader js.Value // a FileReaderSync
	size   int64
	window []byte // the bytes of the window
	at     int64  // the offset of the window in the file
}

// windowBytes is the number of bytes that are read at once. Reading far fewer bytes would take a
// browser nearly as long.
const windowBytes = 1 << 20

// OpenAt prepares to read a File or Blob of the browser.
func OpenAt(blob js.Value) (*At, error) {
	if !isBlob(blob) {
		return nil, errNoFile
	}
	kind := js.Global().Get("FileReaderSync")
	if kind.Type() != js.TypeFunction {
		return nil, errors.New("this browser can read files only sequentially")
	}
	return &At{name: "the file", blob: blob, reader: kind.New(), size: int64(blob.Get("size").Float())}, nil
}

// Size returns the number of bytes in the file.
func (a *At) Size() int64 { return a.size }

// ReadAt implements io.ReaderAt. Errors other than io.EOF have the type *[ReadError].
func (a *At) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		if at < a.at || at >= a.at+int64(len(a.window)) {
			if at < 0 || at >= a.size {
				return n, io.EOF
			}
			if err := a.fill(at); err != nil {
				return n, err
			}
		}
		n += copy(p[n:], a.window[at-a.at:])
	}
	return n, nil
}

// fill reads the window at an offset.
func (a *At) fill(at int64) error {
	end := min(a.size, at+windowBytes)
	buffer, err := web.Try(func() js.Value {
		return a.reader.Call("readAsArrayBuffer", a.blob.Call("slice", at, end))
	})
	if err != nil {
		return &ReadError{Name: a.name, Offset: uint64(at), Cause: errorText(err)}
	}
	bytes := js.Global().Get("Uint8Array").New(buffer)
	if int64(bytes.Length()) != end-at {
		return &ReadError{Name: a.name, Offset: uint64(at), Cause: "the file has become shorter since it was chosen"}
	}
	a.window, a.at = slices.Grow(a.window[:0], windowBytes)[:end-at], at
	js.CopyBytesToGo(a.window, bytes)
	web.Release(bytes)
	return nil
}
