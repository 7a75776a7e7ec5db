package sgl

import (
	"io"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Folding folds a trace into a file, in a memory that is bounded however long and
// irregular the trace is: what is finished is written. Rows of traces that tell neither
// sites nor PCs fold little, so they get sites, as they do in a container.
type Folding struct {
	folder *loops.Folder
	w      *Writer
	told   trace.Header // with the last batch
	size   loops.Size
	err    error

	namer *sgt.Namer // of a trace without sites and PCs
	sites []uint32   // of a batch
	view  trace.Batch
}

// NewFolding begins a file; window is as for [loops.NewFolder].
func NewFolding(w io.Writer, window int) *Folding {
	f := &Folding{folder: loops.NewFolder(window), w: NewWriter(w)}
	f.folder.Give(0, func(t *loops.Tree) error {
		f.count(t)
		return f.w.Write(t, f.told)
	})
	return f
}

// Write adds the rows of a batch of a trace that has that header.
func (f *Folding) Write(b *trace.Batch, h trace.Header) error {
	if b.Site == nil && b.PC == nil && h.Program == nil {
		b = f.named(b, h)
	}
	f.told = f.header(h)
	if f.err == nil {
		f.err = f.folder.Consume(b)
	}
	return f.err
}

// named gives a batch with sites.
func (f *Folding) named(b *trace.Batch, h trace.Header) *trace.Batch {
	if f.namer == nil {
		f.namer = sgt.NewNamer()
	}
	if n := b.Len(); n > len(f.sites) {
		f.sites = make([]uint32, n)
	}
	b.View(&f.view, 0, b.Len())
	f.view.Site = f.sites[:b.Len()]
	f.namer.Name(b, h, f.view.Site)
	return &f.view
}

// header gives a header with the sites that rows got.
func (f *Folding) header(h trace.Header) trace.Header {
	if f.namer != nil && h.Program == nil {
		h.Program, h.Sites = f.namer.Program(), true
	}
	return h
}

// Rows is the number of rows in the file so far.
func (f *Folding) Rows() uint64 { return f.w.rows }

// Bytes is the number of bytes in the file so far.
func (f *Folding) Bytes() uint64 { return f.w.bytes }

// Size says how large the trees are that are in the file so far, in all.
func (f *Folding) Size() loops.Size { return f.size }

func (f *Folding) count(t *loops.Tree) {
	s := t.Size()
	f.size.Nodes += s.Nodes
	f.size.Leaves += s.Leaves
	f.size.Loops += s.Loops
	f.size.Wild += s.Wild
	f.size.WildBytes += s.WildBytes
}

// Close ends the file: with the rows that are left, what is known of the trace in the
// end, and how the run ended.
func (f *Folding) Close(h trace.Header, e sgt.End) error {
	if f.err == nil {
		t := f.folder.Finish()
		f.count(t)
		f.err = f.w.Write(t, f.header(h))
	}
	if f.err == nil {
		f.err = f.w.Close(f.header(h), e)
	}
	return f.err
}
