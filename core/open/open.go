// Package open finds out what a trace file is and reads it.
//
//  1. While the first bytes are the magic number of a packing (an LZ4 frame,
//     gzip, zstd, xz), the stream is unpacked, and unpacked again if something
//     packed comes out. Our own container, and folded traces, though made of LZ4
//     frames, are not unpacked: they are formats.
//  2. The formats are asked in an explicit order (see [Formats]) whether they
//     recognise the beginning; the first that does reads the trace.
//     [Options.Format] names one instead.
//
// A stream that breaks gives every row before the break and then a
// [*trace.DamageError]: Cut when it ends too early, else because its bytes are
// wrong. Errors of the reader underneath are given on as they are. Plain text
// has no end of its own: where it is cut in the middle of a line, that line is
// a [*trace.SyntaxError], unless what is left of it is a reference too. The
// same goes for the legacy frames of LZ4, which can be cut between two blocks
// of 8 MiB without a trace of it, and for any file cut between two frames.
package open

import (
	"bufio"
	"io"

	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

const (
	beginning = 16 << 10 // unpacked bytes that formats may look at
	deepest   = 4        // packings inside each other
)

// Options say how to open a trace; the zero value finds everything out.
type Options struct {
	// Format is the name of the trace's format, one of [Formats]. "" finds out.
	Format string
	// Packings are those that are read besides LZ4. They are apart
	// because they are large: a program has only those that it names.
	Packings []Packing
	// Watch, if not nil, is asked before everything that is read or unpacked. Its
	// error ends the trace as the file's own would: a few bytes may unpack to blank
	// lines without end, in which Next would find no row to come back with.
	Watch func() error
	// Strict stops a container at the first chunk that cannot be read; otherwise
	// it is left out, and told of at the end.
	Strict bool
}

// Trace is an opened trace.
type Trace struct {
	reader   trace.Reader
	format   string
	packings []string
	unpacked *counter
}

// Open finds out what r gives and prepares to read it; name is for messages.
//
// Besides errors of r there are: [*EmptyError]; [*UnknownError] when no format
// recognises it; [*PackingError] for a packing that is not among
// [Options.Packings]; [*trace.DamageError] when it breaks before the first
// line; [*trace.OptionError] for the name of a format that does not exist.
func Open(name string, r io.Reader, o Options) (*Trace, error) {
	chosen, err := find(o.Format)
	if err != nil {
		return nil, err
	}
	source := &origin{reader: r, watch: o.Watch}
	t := &Trace{}
	stream := bufio.NewReaderSize(source, 4*beginning)
	for {
		head, err := stream.Peek(beginning)
		if len(head) == 0 && err != io.EOF {
			return nil, err
		}
		if len(head) == 0 {
			return nil, &EmptyError{File: name, Packings: t.packings}
		}
		if isOwn(head, chosen) {
			break
		}
		p, err := packingOf(name, head, o.Packings)
		if err != nil {
			return nil, err
		}
		if p == nil {
			break
		}
		if len(t.packings) == deepest {
			return nil, &UnknownError{File: name, Packings: t.packings, Head: first(head), Tried: []Refusal{{p.Name, "it is packed more than four times"}}}
		}
		t.packings = append(t.packings, p.Name)
		stream = bufio.NewReaderSize(newLayer(name, *p, stream, source), beginning)
	}
	if chosen == nil {
		head, broken := stream.Peek(beginning)
		if chosen, err = recognise(name, head, t.packings); err != nil {
			if broken != nil && broken != io.EOF {
				err = broken // there may be too little to recognise
			}
			return nil, err
		}
	}
	t.format = chosen.Name
	t.unpacked = &counter{reader: stream}
	t.reader = chosen.New(name, t.unpacked, o)
	return t, nil
}

// isOwn tells whether head begins a file of ours, which is made of LZ4 frames but is
// not packed; chosen is the format that it shall have, or nil.
func isOwn(head []byte, chosen *Format) bool {
	_, container := sgt.Recognise(head)
	_, folded := sgl.Recognise(head)
	return container && (chosen == nil || chosen.Name == "sgt") || folded && (chosen == nil || chosen.Name == "sgl")
}

// Next fills b as [trace.Reader] says.
func (t *Trace) Next(b *trace.Batch) error { return t.reader.Next(b) }

// Select asks a format that knows events for some; others give references only.
func (t *Trace) Select(kinds trace.Kinds) {
	if s, ok := t.reader.(trace.Selector); ok {
		s.Select(kinds)
	}
}

// Container gives the reader of a trace that is our own container, else nil.
func (t *Trace) Container() *sgt.Reader {
	r, _ := t.reader.(*sgt.Reader)
	return r
}

// Mover gives the reader of a trace that is our own container, and not packed again:
// its chunks are where it says in the file. Else nil.
func (t *Trace) Mover() trace.Mover {
	if r := t.Container(); r != nil && len(t.packings) == 0 {
		return r
	}
	return nil
}

// Expect passes on what the index of the file says: see [sgt.Reader.Expect]. It reports
// false, and does nothing, where the trace is no container, or is packed again.
func (t *Trace) Expect(o trace.Outline) bool {
	r := t.Container()
	if r == nil || len(t.packings) > 0 {
		return false
	}
	r.Expect(o)
	return true
}

// Header tells what the trace had so far.
func (t *Trace) Header() trace.Header {
	if d, ok := t.reader.(trace.Describer); ok {
		return d.Header()
	}
	return trace.Header{Format: t.format}
}

// Format is the name of the trace's format.
func (t *Trace) Format() string { return t.format }

// Packings are the names of what the trace was packed in, outermost first.
func (t *Trace) Packings() []string { return t.packings }

// Unpacked is the number of bytes that the format has read, after unpacking.
func (t *Trace) Unpacked() int64 { return t.unpacked.bytes }

// counter counts what is read through it.
type counter struct {
	reader io.Reader
	bytes  int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.bytes += int64(n)
	return n, err
}
