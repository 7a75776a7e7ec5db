package sgl

import (
	"io"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Folding compresses a trace into a file in bounded memory, however long and irregular the trace is.
// Records without sites and PCs fold little, so they get sites, as in a container.
type Folding struct {
	folder *loops.Folder
	w      *Writer
	header trace.Header // of the last batch
	size   loops.Size
	err    error

	namer *sgt.Namer // of a trace without sites and PCs
	sites []uint32   // of a batch
	view  trace.Batch
}

// NewFolding begins a file; window is as for [loops.NewFolder].
func NewFolding(w io.Writer, window int) *Folding {
	f := &Folding{folder: loops.NewFolder(window), w: NewWriter(w)}
	f.folder.Give(0, f.write)
	return f
}

func (f *Folding) write(t *loops.Tree) error {
	f.size.Add(t.Size())
	return f.w.Write(t, f.header)
}

// Write adds the records of a batch of a trace with that header.
func (f *Folding) Write(b *trace.Batch, h trace.Header) error {
	if b.Site == nil && b.PC == nil && h.Program == nil {
		b = f.named(b, h)
	}
	f.header = f.withSites(h)
	if f.err == nil {
		f.err = f.folder.Consume(b)
	}
	return f.err
}

// named returns the batch with sites.
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

// withSites returns a header with the sites that records got.
func (f *Folding) withSites(h trace.Header) trace.Header {
	if f.namer != nil && h.Program == nil {
		h.Program, h.Sites = f.namer.Program(), true
	}
	return h
}

// Rows returns the number of records in the file so far.
func (f *Folding) Rows() uint64 { return f.w.rows }

// Bytes returns the number of bytes in the file so far.
func (f *Folding) Bytes() uint64 { return f.w.bytes }

// Size returns the size of all trees in the file so far.
func (f *Folding) Size() loops.Size { return f.size }

// Close writes the remaining records, the final header, and how the run ended.
func (f *Folding) Close(h trace.Header, e sgt.End) error {
	f.header = f.withSites(h)
	if f.err == nil {
		f.err = f.write(f.folder.Finish())
	}
	if f.err == nil {
		f.err = f.w.Close(f.header, e)
	}
	return f.err
}
