package sgl

import (
	"io"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Folding folds a trace into a file, in a memory that is bounded however long and
// irregular the trace is: what is finished is written.
type Folding struct {
	folder *loops.Folder
	w      *Writer
	told   trace.Header // with the last batch
	err    error
}

// NewFolding begins a file; window is as for [loops.NewFolder].
func NewFolding(w io.Writer, window int) *Folding {
	f := &Folding{folder: loops.NewFolder(window), w: NewWriter(w)}
	f.folder.Give(0, func(t *loops.Tree) error { return f.w.Write(t, f.told) })
	return f
}

// Write adds the rows of a batch of a trace that has that header.
func (f *Folding) Write(b *trace.Batch, h trace.Header) error {
	f.told = h
	if f.err == nil {
		f.err = f.folder.Consume(b)
	}
	return f.err
}

// Rows is the number of rows in the file so far.
func (f *Folding) Rows() uint64 { return f.w.rows }

// Bytes is the number of bytes in the file so far.
func (f *Folding) Bytes() uint64 { return f.w.bytes }

// Close ends the file: with the rows that are left, what is known of the trace in the
// end, and how the run ended.
func (f *Folding) Close(h trace.Header, e sgt.End) error {
	if f.err == nil {
		f.err = f.w.Write(f.folder.Finish(), h)
	}
	if f.err == nil {
		f.err = f.w.Close(h, e)
	}
	return f.err
}
