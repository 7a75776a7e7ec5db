// Package sgl reads and writes loop-compressed traces (.sgl files). FORMAT.md in package loops
// describes every byte, with an annotated example.
//
// A file consists of the same kinds of frames as a container of package sgt, with the same tables
// for the program, the threads and the capture. However, a file contains trees instead of chunks of
// steps.
//
//  1. [Writer] writes trees in order, together with the header of the trace. A trace consists of
//     one tree, or of several trees if it is too irregular to fit in memory as one tree.
//  2. [Reader] returns the expanded records like any other trace reader, so that every analysis can
//     read a loop-compressed trace. Before the Reader expands a tree, the Reader removes the
//     records of unwanted kinds from the tree.
//  3. [Folding] compresses a trace into a file as the records arrive. A Folding keeps only one tree
//     in memory at a time.
//  4. [ReadTree] reads a file into a tree, for analyses that do not expand the tree.
package sgl

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Version is the newest file version that this package writes and reads.
const Version = 1

const (
	tagFile = "SGL."
	tagTree = "TREE"
)

// Writer writes a loop-compressed trace to a file. A Writer stops at the first error.
// [Writer.Close] returns this error.
type Writer struct {
	out          io.Writer
	err          error
	begun        bool
	tables       sgt.Tables
	format       string // format of the original trace, if known
	facts        []trace.Fact
	writtenFacts int // number of header facts that have been written
	rows         uint64
	bytes        uint64 // number of bytes written
	buffer       []byte
	form         []byte // the encoding of a tree
	body         []byte // the body of a tree's frame
}

// NewWriter returns a writer for a new file.
func NewWriter(w io.Writer) *Writer { return &Writer{out: w} }

// Write adds a tree with the next records of a trace. The argument h is the current header of the
// trace. This header must contain all data of the previous header.
func (w *Writer) Write(t *loops.Tree, h trace.Header) error {
	w.writeHeader(h)
	w.form = t.Append(w.form[:0])
	w.body = sgt.AppendPacked(binary.AppendUvarint(w.body[:0], flagsOf(h)), w.form)
	if len(w.body) > 1<<29 && w.err == nil {
		w.err = errors.New("the tree has more than 2^29 bytes, want several smaller trees; set a limit with loops.Folder.Give")
	}
	if w.rows += t.Rows(); w.rows < t.Rows() {
		w.rows = ^uint64(0)
	}
	w.buffer = sgt.AppendFrame(w.buffer, tagTree, w.body)
	return w.flush()
}

// writeHeader writes the data of a header that have not been written yet.
func (w *Writer) writeHeader(h trace.Header) {
	w.begin()
	if h.Format != w.format && h.Format != "sgl" {
		w.format = h.Format
		w.facts = append(w.facts, trace.Fact{Name: "format", Value: h.Format})
	}
	w.facts = append(w.facts, h.Capture[min(w.writtenFacts, len(h.Capture)):]...)
	w.writtenFacts = len(h.Capture)
	h.Capture = w.facts
	w.buffer = w.tables.Append(w.buffer, h)
}

// begin writes the first frame, unless it has already been written.
func (w *Writer) begin() {
	if w.begun {
		return
	}
	w.begun = true
	body := binary.AppendUvarint(nil, Version)
	body = binary.AppendUvarint(body, Version) // the oldest version of the reader that can read the file
	w.buffer = sgt.AppendFrame(w.buffer, tagFile, body)
}

func (w *Writer) flush() error {
	if w.err == nil {
		_, w.err = w.out.Write(w.buffer)
		w.bytes += uint64(len(w.buffer))
	}
	w.buffer = w.buffer[:0]
	return w.err
}

// Close writes the remaining data of the final header h, and how the run ended.
func (w *Writer) Close(h trace.Header, e sgt.End) error {
	w.writeHeader(h)
	w.buffer = sgt.AppendDone(w.buffer, e, w.rows)
	return w.flush()
}

// columnsOf lists the Boolean fields of a header, which a file stores as bits.
func columnsOf(h *trace.Header) [5]*bool {
	return [...]*bool{&h.Threads, &h.PCs, &h.Sizes, &h.Sites, &h.Sliced}
}

func flagsOf(h trace.Header) (flags uint64) {
	for i, is := range columnsOf(&h) {
		if *is {
			flags |= 1 << i
		}
	}
	return flags
}

// Recognise reports whether head is the beginning of a loop-compressed trace. If ok is false,
// reason states why head is not the beginning of a loop-compressed trace.
func Recognise(head []byte) (reason string, ok bool) {
	if sgt.BeginsWith(head, tagFile) {
		return "", true
	}
	return `bytes 8 to 11 are not "SGL."`, false
}

// Reader expands the trees of a file, one at a time and in order.
type Reader struct {
	name   string
	kinds  trace.Kinds
	file   file
	rows   *loops.Expander // rows of the current tree; nil if the next tree must be read
	header trace.Header    // header before the current tree
	err    error           // the error at which reading stopped
}

// NewReader returns a reader of the file r. The name is used in error messages.
func NewReader(name string, r io.Reader) *Reader {
	return &Reader{
		name: name, kinds: trace.AllKinds, header: trace.Header{Format: "sgl"},
		file: file{name: name, frames: sgt.NewFrames(r)},
	}
}

// Select sets the kinds of records to read. Select must be called before the first Next.
func (r *Reader) Select(kinds trace.Kinds) { r.kinds = kinds }

// Header returns the header of the trace, as far as the file has been read.
func (r *Reader) Header() trace.Header { return r.header }

// Ending returns how the run ended. Ending must be called after all records have been read.
func (r *Reader) Ending() sgt.Ending { return r.file.frames.Ending() }

// Next implements [trace.Reader]. If the file is truncated or damaged, Next returns the records of
// all trees before the damage, and then a [*trace.DamageError]. If a tree has too many records,
// Next returns a [*TooLongError].
func (r *Reader) Next(b *trace.Batch) error {
	for r.err == nil {
		if r.rows == nil {
			r.open()
			continue
		}
		switch err := r.rows.Next(b); {
		case err == nil:
			return nil
		case err == io.EOF:
			r.rows = nil
		default:
			r.err = r.treeError(err)
		}
	}
	b.Reset()
	return r.err
}

// TooLongError reports that a file represents too many records to read one by one.
type TooLongError struct {
	File string
	Err  *loops.UnfoldError
}

func (e *TooLongError) Error() string { return e.File + ": " + e.Err.Error() }
func (e *TooLongError) Unwrap() error { return e.Err }

// Nameless returns the message without the file's name.
func (e *TooLongError) Nameless() string { return e.Err.Error() }

// treeError adds the file's name and position to an error in a tree.
func (r *Reader) treeError(err error) error {
	if long, ok := errors.AsType[*loops.UnfoldError](err); ok {
		return &TooLongError{File: r.name, Err: long}
	}
	return r.file.withPosition(err)
}

func (r *Reader) open() {
	tree, err := r.file.next()
	r.header = r.file.header()
	if err != nil {
		r.err = err
		return
	}
	r.rows = r.chosen(tree).Expand()
}

func (r *Reader) chosen(t *loops.Tree) *loops.Tree {
	p := r.header.Program
	bare := r.kinds.Has(trace.BareBlock) && !r.kinds.Has(trace.BlockEntry) && p != nil
	return t.Map(func(of loops.Reference) (loops.Reference, bool) {
		if bare && of.Kind == trace.BlockEntry && p.IsBare(of.Site) {
			of.Kind = trace.BareBlock
		}
		return of, r.kinds.Has(of.Kind)
	})
}

// ReadTree reads a whole file into one tree. The name is used in error messages. If there is an
// error, the tree contains the records before the error.
func ReadTree(name string, r io.Reader) (*loops.Tree, trace.Header, error) {
	f := file{name: name, frames: sgt.NewFrames(r)}
	var trees []*loops.Tree
	for {
		t, err := f.next()
		if err == nil {
			trees = append(trees, t)
			continue
		}
		if err == io.EOF {
			err = nil
		}
		return loops.Join(trees...), f.header(), err
	}
}

type file struct {
	name   string
	frames *sgt.Frames
	begun  bool
	flags  uint64 // union of the flags of all trees so far
	at     uint64 // position of the last frame
}

var (
	errFirst  = errors.New("the file does not begin with the header of a loop-compressed trace")
	errSecond = errors.New("a second loop-compressed trace begins here, but loop-compressed traces cannot be concatenated; compress the original traces together")
)

// header returns the header of the trace, as far as the file has been read.
func (f *file) header() trace.Header {
	inner := f.frames.Header()
	h := trace.Header{Format: "sgl", Program: inner.Program, Capture: inner.Capture, Extent: trace.ExtentOf(inner.Capture)}
	for i, is := range columnsOf(&h) {
		*is = f.flags>>i&1 != 0
	}
	return h
}

// next returns the next tree. The caller must stop at the first error.
func (f *file) next() (*loops.Tree, error) {
	for {
		frame, err := f.frames.Next()
		switch {
		case err == io.EOF && f.begun && f.frames.Ending().Known:
			return nil, io.EOF
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return nil, &trace.DamageError{File: f.name, Layer: "sgl", Offset: int64(f.frames.At()), Cut: true, Err: io.ErrUnexpectedEOF}
		case err != nil:
			f.at = f.frames.At()
			return nil, f.withPosition(err)
		}
		f.at = frame.At
		switch {
		case !f.begun:
			err = f.begin(frame)
		case frame.Tag == tagFile:
			err = errSecond
		case frame.Tag == tagTree:
			t, err := f.tree(frame.Body)
			if err != nil {
				return nil, f.withPosition(err)
			}
			return t, nil
		}
		if err != nil {
			return nil, f.withPosition(err)
		}
	}
}

func (f *file) tree(body []byte) (*loops.Tree, error) {
	flags, n := binary.Uvarint(body)
	form, err := sgt.Unpack(body[max(n, 0):])
	if err != nil {
		return nil, err
	}
	t, err := loops.Decode(form)
	if err == nil {
		f.flags |= flags
	}
	return t, err
}

func (f *file) begin(frame sgt.Frame) error {
	f.begun = true
	version, n := binary.Uvarint(frame.Body)
	needs, m := binary.Uvarint(frame.Body[max(n, 0):])
	switch {
	case frame.Tag != tagFile || n <= 0 || m <= 0:
		return errFirst
	case needs > Version:
		return &sgt.VersionError{File: f.name, Version: version, Needs: needs}
	}
	return nil
}

// withPosition adds the file's name and position to an error.
func (f *file) withPosition(err error) error {
	if version, ok := errors.AsType[*sgt.VersionError](err); ok {
		return version
	}
	return &trace.DamageError{File: f.name, Layer: "sgl", Offset: int64(f.at), Err: err}
}

// Folding is a writer that compresses a trace into a file. The memory of a Folding is bounded, even
// for long or irregular traces. Records without sites and PCs compress badly, so Folding assigns
// sites to such records, as in a container.
type Folding struct {
	folder *loops.Folder
	w      *Writer
	header trace.Header // header of the last batch
	size   loops.Size
	err    error

	namer *sgt.Namer // assigns sites to the records of a trace without sites and PCs
	sites []uint32   // the assigned sites of a batch
	view  trace.Batch
}

// NewFolding begins a new file. The argument window has the same meaning as in [loops.NewFolder].
func NewFolding(w io.Writer, window int) *Folding {
	f := &Folding{folder: loops.NewFolder(window), w: NewWriter(w)}
	f.folder.Give(0, f.write)
	return f
}

func (f *Folding) write(t *loops.Tree) error {
	f.size.Add(t.Size())
	return f.w.Write(t, f.header)
}

// Write adds the records of a batch. h is the current header of the trace.
func (f *Folding) Write(b *trace.Batch, h trace.Header) error {
	if b.Site == nil && b.PC == nil && h.Program == nil {
		b = f.assignSites(b, h)
	}
	f.header = f.withSites(h)
	if f.err == nil {
		f.err = f.folder.Consume(b)
	}
	return f.err
}

// assignSites returns a copy of the batch in which every record has a site.
func (f *Folding) assignSites(b *trace.Batch, h trace.Header) *trace.Batch {
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
