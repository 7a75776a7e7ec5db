// Package open detects the format of a trace file and reads it.
//
//  1. The stream is decompressed as long as it begins with the magic number of a compression format
//     (an LZ4 frame, gzip, zstd, xz, zip, snappy). Containers and loop-compressed traces of this
//     project also consist of LZ4 frames, but are treated as trace formats.
//  2. The trace is read by the first of the [Formats] that recognises the beginning of the trace,
//     unless [Options.Format] selects a format.
//
// For a damaged stream, the reader returns every record before the damage and then a
// [*trace.DamageError]. The field Cut of the DamageError is true if the stream ends too early, and
// false if bytes of the stream are wrong. Errors of the underlying reader are returned unchanged.
// Text has no end mark: if a text trace is truncated within a line, the incomplete line either
// causes a [*trace.SyntaxError] or happens to be a valid reference. Truncation between two LZ4
// frames, or between two blocks of 8 MiB in legacy frames, cannot be detected.
package open

import (
	"bufio"
	"io"

	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

const (
	beginning = 16 << 10 // number of decompressed bytes from which a format is recognised
	deepest   = 4        // maximum number of nested compressions
)

// Options contains the options for opening a trace. With the zero value, the format is detected.
type Options struct {
	// Format is the name of the trace's format, one of [Formats]; "" means that the format is detected.
	Format string
	// Packings lists the compression formats that are supported in addition to LZ4. The decoders
	// are large, so a program links only the decoders that it lists.
	Packings []Packing
	// Watch, if not nil, is called before each read and decompression. If Watch returns an error,
	// the trace ends as it does after a read error. Without Watch, a single call to Next might take
	// forever, because a few bytes can decompress to an enormous number of blank lines.
	Watch func() error
	// If Strict is true, the first chunk of a container that cannot be read ends the trace. If
	// Strict is false, such chunks are skipped, and the error is returned at the end.
	Strict bool
}

// Trace is an open trace.
type Trace struct {
	reader   trace.Reader
	format   string
	packings []string
	unpacked *counter
}

// Open detects the format of the trace in r. Error messages refer to the trace by the given name.
//
// The error is an error of r, or one of the following: an [*EmptyError], an [*UnknownError] if no
// format recognises r, a [*PackingError] if the compression format is not in [Options.Packings], a
// [*trace.DamageError] for damage before the first line, or a [*trace.OptionError] for an unknown
// [Options.Format].
func Open(name string, r io.Reader, o Options) (*Trace, error) {
	chosen, err := find(o.Format)
	if err != nil {
		return nil, err
	}
	stream, unpacked, err := unpack(name, r, chosen, o)
	if err != nil {
		return nil, err
	}
	t := &Trace{packings: unpacked}
	if chosen == nil {
		head, broken := stream.Peek(beginning)
		var unknown *UnknownError
		if chosen, unknown = recognise(name, head, t.packings); unknown != nil {
			unknown.Content = stream
			if broken != nil && broken != io.EOF {
				// report the damage instead of an unknown format, because the damage may have cut
				// off bytes that identify the format
				return nil, broken
			}
			return nil, unknown
		}
	}
	t.format = chosen.Name
	t.unpacked = &counter{reader: stream}
	t.reader = chosen.New(name, t.unpacked, o)
	return t, nil
}

// Unpack returns the decompressed content of r, which may be in any supported compression format,
// or uncompressed. Unpack returns the same errors as [Open].
func Unpack(name string, r io.Reader, o Options) (*bufio.Reader, error) {
	stream, _, err := unpack(name, r, nil, o)
	return stream, err
}

// unpack decompresses r, and returns the names of the compression formats, outermost first. The
// parameter "chosen" is the required trace format, or nil.
func unpack(name string, r io.Reader, chosen *Format, o Options) (stream *bufio.Reader, packings []string, err error) {
	source := &origin{reader: r, watch: o.Watch}
	stream = bufio.NewReaderSize(source, 4*beginning)
	for {
		head, err := stream.Peek(beginning)
		if len(head) == 0 && err != io.EOF {
			return nil, nil, err
		}
		if len(head) == 0 {
			return nil, nil, &EmptyError{File: name, Packings: packings}
		}
		if isOwn(head, chosen) {
			return stream, packings, nil
		}
		p, err := packingOf(name, head, o.Packings)
		if err != nil {
			return nil, nil, err
		}
		if p == nil {
			return stream, packings, nil
		}
		if len(packings) == deepest {
			return nil, nil, &UnknownError{File: name, Packings: packings, Head: first(head), Tried: []Refusal{{p.Name, "the file is compressed more than four times"}}}
		}
		packings = append(packings, p.Name)
		stream = bufio.NewReaderSize(&layer{file: name, packing: *p, packed: stream, source: source}, beginning)
	}
}

// isOwn reports whether a file that begins with head is in a format of this project. Files in this
// project's formats consist of LZ4 frames, but do not count as compressed. The parameter "chosen"
// is the required format, or nil.
func isOwn(head []byte, chosen *Format) bool {
	_, container := sgt.Recognise(head)
	_, folded := sgl.Recognise(head)
	return container && (chosen == nil || chosen.Name == "sgt") || folded && (chosen == nil || chosen.Name == "sgl")
}

// Next fills b as specified by [trace.Reader].
func (t *Trace) Next(b *trace.Batch) error { return t.reader.Next(b) }

// Select selects the kinds of records to read. Select has no effect on formats that have only
// references.
func (t *Trace) Select(kinds trace.Kinds) {
	if s, ok := t.reader.(trace.Selector); ok {
		s.Select(kinds)
	}
}

// Container returns the reader if the trace is a stackglass container, and nil otherwise.
func (t *Trace) Container() *sgt.Reader {
	r, _ := t.reader.(*sgt.Reader)
	return r
}

// Mover returns a reader that can move to any chunk, or nil. The result is nil unless the trace is
// a stackglass container without additional compression, because only then do chunk offsets refer
// to the file.
func (t *Trace) Mover() trace.Mover {
	if r := t.Container(); r != nil && len(t.packings) == 0 {
		return r
	}
	return nil
}

// Expect passes o, the outline from the file's index, to [sgt.Reader.Expect]. Expect returns false
// if the trace is not a container, or has additional compression.
func (t *Trace) Expect(o trace.Outline) bool {
	r, ok := t.Mover().(*sgt.Reader)
	if ok {
		r.Expect(o)
	}
	return ok
}

// Header describes the part of the trace that has been read.
func (t *Trace) Header() trace.Header {
	if d, ok := t.reader.(trace.Describer); ok {
		return d.Header()
	}
	return trace.Header{Format: t.format}
}

// Format returns the name of the trace's format.
func (t *Trace) Format() string { return t.format }

// Packings returns the names of the trace's compression formats, outermost first.
func (t *Trace) Packings() []string { return t.packings }

// Unpacked returns the number of decompressed bytes that have been read so far.
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
