// Package sgl reads and writes folded traces as files, .sgl. The bytes are drawn in
// FORMAT.md beside package loops, with an example taken apart.
//
// A file is made of the same frames as a container of package sgt, so that it tells of
// its program, of threads and of the capture by the same tables; where a container has
// chunks of steps it has trees.
//
//  1. [Writer] takes trees, one after the other, and what is known of the trace with
//     each of them. A trace is one tree, or several if it is too irregular for memory.
//  2. [Reader] gives the rows, as any reader of traces: what analyses a trace can
//     analyse a folded one. Rows of kinds that nobody asked for are taken out of the
//     tree before it is unfolded.
//  3. [Folding] folds a trace into a file as it comes, and holds one tree at a time.
//  4. [ReadTree] gives the tree, for what is computed without unfolding.
package sgl

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Version is the newest version of the file that this package writes and reads.
const Version = 1

const (
	tagFile = "SGL."
	tagTree = "TREE"
)

// What a header says in bits.
const (
	hasThreads = 1 << iota
	hasPCs
	hasSizes
	hasSites
	isSliced
)

// Writer writes a file. The first error ends it; [Writer.Close] gives it.
type Writer struct {
	out    io.Writer
	err    error
	begun  bool
	tables sgt.Tables
	format string // of the trace that was folded, as far as it is told
	facts  []trace.Fact
	told   int // of the header's facts
	rows   uint64
	bytes  uint64 // written
	buffer []byte
	form   []byte // of a tree
	body   []byte // of its frame
}

// NewWriter begins a file.
func NewWriter(w io.Writer) *Writer { return &Writer{out: w} }

// Write adds the tree of the rows that come next, of a trace that has that header,
// which tells at least as much as the one before.
func (w *Writer) Write(t *loops.Tree, h trace.Header) error {
	w.tell(h)
	w.form = t.Append(w.form[:0])
	w.body = sgt.AppendPacked(binary.AppendUvarint(w.body[:0], flagsOf(h)), w.form)
	if len(w.body) > 1<<29 && w.err == nil {
		w.err = errors.New("a tree of more than 2^29 bytes, want several smaller ones: fold with a limit")
	}
	if w.rows += t.Rows(); w.rows < t.Rows() {
		w.rows = ^uint64(0)
	}
	w.buffer = sgt.AppendFrame(w.buffer, tagTree, w.body)
	return w.flush()
}

// tell writes what is new in a header.
func (w *Writer) tell(h trace.Header) {
	w.begin()
	if h.Format != w.format && h.Format != "sgl" {
		w.format = h.Format
		w.facts = append(w.facts, trace.Fact{Name: "format", Value: h.Format})
	}
	w.facts = append(w.facts, h.Capture[min(w.told, len(h.Capture)):]...)
	w.told = len(h.Capture)
	h.Capture = w.facts
	w.buffer = w.tables.Append(w.buffer, h)
}

// begin writes the first frame, if it is not written yet.
func (w *Writer) begin() {
	if w.begun {
		return
	}
	w.begun = true
	body := binary.AppendUvarint(nil, Version)
	body = binary.AppendUvarint(body, Version) // the oldest one whose readers understand it
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

// Close writes what became known behind the last tree, and how the run ended.
func (w *Writer) Close(h trace.Header, e sgt.End) error {
	w.tell(h)
	w.buffer = sgt.AppendDone(w.buffer, e, w.rows)
	return w.flush()
}

func flagsOf(h trace.Header) (flags uint64) {
	for i, is := range [...]bool{h.Threads, h.PCs, h.Sizes, h.Sites, h.Sliced} {
		if is {
			flags |= 1 << i
		}
	}
	return flags
}

// headerOf is the inverse of [flagsOf].
func headerOf(flags uint64) trace.Header {
	return trace.Header{
		Format:  "sgl",
		Threads: flags&hasThreads != 0, PCs: flags&hasPCs != 0, Sizes: flags&hasSizes != 0,
		Sites: flags&hasSites != 0, Sliced: flags&isSliced != 0,
	}
}

// Recognise tells whether head, the beginning of a file, is that of a folded trace. The
// reason says why not.
func Recognise(head []byte) (reason string, ok bool) {
	if sgt.BeginsWith(head, tagFile) {
		return "", true
	}
	return "bytes 8 to 11 are not SGL.", false
}

// Reader unfolds a file, from front to back. It holds one tree at a time.
type Reader struct {
	name   string
	kinds  trace.Kinds
	file   file
	rows   *loops.Expander // nil: the next tree is to come
	told   trace.Header    // with the rows that were given
	err    error           // final
	opened bool
}

// NewReader makes a reader of the file that r gives; name is for messages.
func NewReader(name string, r io.Reader) *Reader {
	return &Reader{name: name, kinds: trace.AllKinds, file: file{name: name, frames: sgt.NewFrames(r)}}
}

// Select names the kinds of rows that the reader gives, before the first Next.
func (r *Reader) Select(kinds trace.Kinds) { r.kinds = kinds }

// Header tells what the file told before what was given of it.
func (r *Reader) Header() trace.Header {
	if !r.opened {
		return trace.Header{Format: "sgl"}
	}
	return r.told
}

// Ending tells how the run ended, once everything is read.
func (r *Reader) Ending() sgt.Ending { return r.file.frames.Ending() }

// Next fills b as [trace.Reader] says. A file that was cut or is damaged gives all rows
// of the trees before, and then a [*trace.DamageError]; a tree that stands for too many
// rows gives a [*TooLongError].
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
			r.err = r.refuse(err)
		}
	}
	b.Reset()
	return r.err
}

// TooLongError tells that a file stands for more rows than can be given one by one.
type TooLongError struct {
	File string
	Err  *loops.UnfoldError
}

func (e *TooLongError) Error() string { return e.File + ": " + e.Err.Error() }
func (e *TooLongError) Unwrap() error { return e.Err }

// Nameless is the error without the file's name.
func (e *TooLongError) Nameless() string { return e.Err.Error() }

// refuse makes an error about a tree one of the file.
func (r *Reader) refuse(err error) error {
	if long, ok := errors.AsType[*loops.UnfoldError](err); ok {
		return &TooLongError{File: r.name, Err: long}
	}
	return r.file.damage(err)
}

// open takes the next tree.
func (r *Reader) open() {
	tree, err := r.file.next()
	r.told, r.opened = r.file.header(), true
	if err != nil {
		r.err = err
		return
	}
	r.rows = r.chosen(tree).Expand()
}

// chosen gives the tree of the rows that were asked for.
func (r *Reader) chosen(t *loops.Tree) *loops.Tree {
	p := r.told.Program
	bare := r.kinds.Has(trace.BareBlock) && !r.kinds.Has(trace.BlockEntry) && p != nil
	return t.Map(func(of loops.Reference) (loops.Reference, bool) {
		if bare && of.Kind == trace.BlockEntry && isBare(p, of.Site) {
			of.Kind = trace.BareBlock
		}
		return of, r.kinds.Has(of.Kind)
	})
}

// isBare tells whether a block loads, stores and modifies nothing.
func isBare(p *trace.Program, block uint32) bool {
	if int(block) >= len(p.Blocks) {
		return false
	}
	b := &p.Blocks[block]
	return !slices.ContainsFunc(p.Sites[b.FirstSite:b.FirstSite+b.Sites], func(s trace.Site) bool { return s.Kind <= trace.Modify })
}

// ReadTree reads a whole file into one tree. The name is for messages. With an error,
// the tree is that of what comes before, if there is any.
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

// file reads trees.
type file struct {
	name   string
	frames *sgt.Frames
	begun  bool
	flags  uint64 // of all trees
	at     uint64 // the last frame
}

var (
	errFirst  = errors.New("it does not begin with what a folded trace begins with")
	errSecond = errors.New("another folded trace begins here: files cannot be joined, fold the traces together")
)

// header gives what was told so far.
func (f *file) header() trace.Header {
	h := headerOf(f.flags)
	of := f.frames.Header()
	h.Program, h.Capture = of.Program, of.Capture
	return h
}

// next gives the next tree. The error is final.
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
			return nil, f.damage(err)
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
				return nil, f.damage(err)
			}
			return t, nil
		}
		if err != nil {
			return nil, f.damage(err)
		}
	}
}

// tree reads the body of a tree's frame.
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

// damage makes an error one of the file.
func (f *file) damage(err error) error {
	if version, ok := errors.AsType[*sgt.VersionError](err); ok {
		return version
	}
	return &trace.DamageError{File: f.name, Layer: "sgl", Offset: int64(f.at), Err: err}
}
