//go:build js && wasm

package main

import (
	"errors"
	"io"
	"syscall/js"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/wasm/file"
)

// openTrace opens the file that the page attached.
func openTrace(name, format string, attachment any) (trace.Reader, io.Closer, error) {
	blob, ok := attachment.(js.Value)
	if !ok {
		return nil, nil, errors.New("no file came with the question; choose it again")
	}
	f, err := file.Open(blob)
	if err != nil {
		return nil, nil, err
	}
	r, err := open.Open(name, f, open.Options{Format: format, Packings: packings})
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return r, f, nil
}
