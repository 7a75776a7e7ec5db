//go:build js && wasm

package main

import (
	"errors"
	"io"
	"syscall/js"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/open"
	"github.com/stackglass/stackglass/wasm/file"
)

// predictCores answers what several cores would do, from the file that the page attached.
func predictCores(q answers.MulticoreQuestion, attachment any, goOn func() bool, give func(*answers.MulticoreReply)) {
	predict.Answer(q, func() (trace.Reader, io.Closer, error) {
		blob, ok := attachment.(js.Value)
		if !ok {
			return nil, nil, errors.New("no file came with the question; choose it again")
		}
		f, err := file.Open(blob)
		if err != nil {
			return nil, nil, err
		}
		r, err := open.Open(q.Name, f, open.Options{Format: q.Format, Packings: packings[:len(packings)-2]})
		if err != nil {
			_ = f.Close()
			return nil, nil, err
		}
		return r, f, nil
	}, goOn, give)
}
