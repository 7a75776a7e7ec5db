// Package open detects the format of a trace file and reads it.
//
//  1. While the first bytes are the magic number of a compression (an LZ4 frame, gzip, zstd, xz),
//     the stream is decompressed. This project's container and loop-compressed traces consist of
//     LZ4 frames, too, but count as formats.
//  2. The first of the [Formats] that recognises the beginning reads the trace, unless
//     [Options.Format] names another one.
//
// A stream that breaks delivers every row before the break and then a [*trace.DamageError]: Cut if
// it ends too early, else because its bytes are wrong. Errors of the reader underneath are returned
// unchanged. Text has no end mark: if it is cut within a line, the incomplete line is a
// [*trace.SyntaxError], or a reference by accident. A cut between two LZ4 frames, or between two
// blocks of 8 MiB of legacy frames, is invisible.
package open

import (
	"bufio"
	"io"

	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

const (
	beginning = 16 << 10 // decompressed bytes that formats may examine
	deepest   = 4        // packings inside each other
)

// Options are options to open a trace; the zero value detects everything.
type Options struct {
	// Format is the name of the trace's format, one of [Formats]; "" detects it.
	Format string
	// Packings are the compressions that are read in addition to LZ4. Their decoders are large, so
	// a program links only the ones that it names.
	Packings []Packing
	// Watch, if not nil, is called before each read and decompression. Its error ends the trace as the
	// file's own would. (A few bytes may decompress to endless blank lines, in which Next finds no row.)
	Watch func() error
	// Strict stops a container at the first chunk that cannot be read; otherwise the chunk is
	// left out, and the error comes at the end.
	Strict bool
}

// Trace is an opened trace.
type Trace struct {
	reader   trace.Reader
	format   string
	packings []string
	unpacked *counter
}

// Open detects the format of r; name is the trace's name in errors.
//
// Besides errors of r there are: [*EmptyError]; [*UnknownError] if no format recognises r;
// [*PackingError] for a compression that is not among [Options.Packings]; [*trace.DamageError] for
// damage before the first line; [*trace.OptionError] for an unknown [Options.Format].
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
		stream = bufio.NewReaderSize(&layer{file: name, packing: *p, packed: stream, source: source}, beginning)
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

// isOwn reports whether head begins a file of ours, which is made of LZ4 frames but is not
// compressed; chosen is the required format, or nil.
func isOwn(head []byte, chosen *Format) bool {
	_, container := sgt.Recognise(head)
	_, folded := sgl.Recognise(head)
	return container && (chosen == nil || chosen.Name == "sgt") || folded && (chosen == nil || chosen.Name == "sgl")
}

// Next fills b as [trace.Reader] says.
func (t *Trace) Next(b *trace.Batch) error { return t.reader.Next(b) }

// Select selects kinds if the format has events; others have references only.
func (t *Trace) Select(kinds trace.Kinds) {
	if s, ok := t.reader.(trace.Selector); ok {
		s.Select(kinds)
	}
}

// Container returns the reader of a trace that is our own container, else nil.
func (t *Trace) Container() *sgt.Reader {
	r, _ := t.reader.(*sgt.Reader)
	return r
}

// Mover returns the reader of a trace that is our own container and not compressed again, so that its
// chunks are at their offsets in the file; otherwise nil.
func (t *Trace) Mover() trace.Mover {
	if r := t.Container(); r != nil && len(t.packings) == 0 {
		return r
	}
	return nil
}

// Expect calls [sgt.Reader.Expect] with the outline from the index of the file. It reports false if
// the trace is no container, or is compressed again.
func (t *Trace) Expect(o trace.Outline) bool {
	r, ok := t.Mover().(*sgt.Reader)
	if ok {
		r.Expect(o)
	}
	return ok
}

// Header describes the trace as far as it was read.
func (t *Trace) Header() trace.Header {
	if d, ok := t.reader.(trace.Describer); ok {
		return d.Header()
	}
	return trace.Header{Format: t.format}
}

// Format is the name of the trace's format.
func (t *Trace) Format() string { return t.format }

// Packings are the names of the compressions of the trace, outermost first.
func (t *Trace) Packings() []string { return t.packings }

// Unpacked is the number of bytes that the format has read, after decompression.
func (t *Trace) Unpacked() int64 { return t.unpacked.bytes }

// counter counts the bytes that are read through it.
type counter struct {
	reader io.Reader
	bytes  int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.bytes += int64(n)
	return n, err
}
