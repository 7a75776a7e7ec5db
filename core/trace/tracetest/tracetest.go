// Package tracetest provides hand-built, generated and real traces for tests and benchmarks.
//
//   - [Lines] and [Of] build traces of a few references.
//   - [NewReader] replays a trace in batches of any size. The reader overwrites the batch of the
//     previous call, so that a consumer that kept a reference to the batch fails its test. [Spoil]
//     makes any other reader overwrite its batches in the same way.
//   - [Stream] generates references from a [Pattern]. The same seed always yields the same
//     references.
//   - [Small] returns real traces of a few kilobytes, and [RealText] returns the large traces in
//     $STACKGLASS_DATA.
//
// Unlike the rest of core, this package reads files and the environment, so only tests and
// benchmarks may import it.
package tracetest

import (
	"io"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Ref is one reference.
type Ref struct {
	Kind   trace.Kind
	Addr   trace.Addr
	Bytes  uint32
	Thread uint32
	PC     trace.Addr
}

// Of builds a trace from individual references. The trace has a thread column if any reference has
// a thread, and a PC column if any reference has a PC.
func Of(refs ...Ref) *trace.Batch {
	b := trace.NewBatch(len(refs))
	for _, r := range refs {
		if r.Thread != 0 {
			b.NeedThread()
		}
		if r.PC != 0 {
			b.NeedPC()
		}
	}
	for _, r := range refs {
		b.Append(r.Kind, r.Addr, r.Bytes, r.Thread, r.PC)
	}
	return b
}

// Lines builds a trace from a notation that is common in papers, such as "a b a" or "1:La 2:Sa".
// Each letter a to z represents a line of lineBytes bytes. The letter may be preceded by a thread
// number and a colon, and by L, S or M for the kind (default: a load). Each reference accesses one
// byte. Lines panics if it finds another word, because the test is then wrong.
func Lines(lineBytes int, words string) *trace.Batch {
	var refs []Ref
	for _, word := range strings.Fields(words) {
		var r Ref
		rest := word
		if thread, after, found := strings.Cut(word, ":"); found {
			n, err := strconv.ParseUint(thread, 10, 32)
			if err != nil {
				panic("tracetest: the thread in " + word + " is not a number")
			}
			r.Thread, rest = uint32(n), after
		}
		if len(rest) == 2 {
			kind := strings.IndexByte("LSM", rest[0])
			if kind < 0 {
				panic("tracetest: the kind in " + word + " is not L, S or M")
			}
			r.Kind, rest = trace.Kind(kind), rest[1:]
		}
		if len(rest) != 1 || rest[0] < 'a' || rest[0] > 'z' {
			panic("tracetest: the line in " + word + " is not a letter a to z")
		}
		r.Addr, r.Bytes = trace.Addr(int(rest[0]-'a'+1)*lineBytes), 1
		refs = append(refs, r)
	}
	return Of(refs...)
}

// Reader replays a trace.
type Reader struct {
	whole *trace.Batch
	rows  int // maximum number of rows in a batch
	next  int // index of the next row in the field "whole"
}

// NewReader returns a reader that replays the given batch. The argument "rows" limits the number of
// rows that one call of Next returns. If "rows" is less than 1, only the capacity of the batch
// passed to Next limits this number. The reader overwrites the rows of the previous call.
func NewReader(whole *trace.Batch, rows int) *Reader { return &Reader{whole: whole, rows: rows} }

// Next implements [trace.Reader].
func (r *Reader) Next(b *trace.Batch) error {
	spoil(b)
	rows := min(b.Cap(), r.whole.Len()-r.next)
	if r.rows > 0 {
		rows = min(rows, r.rows)
	}
	if r.next == r.whole.Len() {
		return io.EOF
	}
	b.AppendRows(r.whole, r.next, r.next+rows)
	r.next += rows
	return nil
}

// Rewind makes the reader start again at the beginning.
func (r *Reader) Rewind() { r.next = 0 }

// Header describes the columns of the trace.
func (r *Reader) Header() trace.Header {
	h := trace.Header{Format: "test", Threads: r.whole.Thread != nil, PCs: r.whole.PC != nil}
	for _, bytes := range r.whole.Bytes {
		h.Sizes = h.Sizes || bytes != 0
	}
	return h
}

// Spoil returns a reader that reads from r, and overwrites a batch before it is filled again.
func Spoil(r trace.Reader) trace.Reader { return spoiling{r} }

type spoiling struct{ trace.Reader }

func (s spoiling) Next(b *trace.Batch) error {
	spoil(b)
	return s.Reader.Next(b)
}

// spoil overwrites the rows of b and its unused capacity, and then empties b.
func spoil(b *trace.Batch) {
	b.Resize(b.Cap())
	b.Spoil()
	b.Reset()
}

// Broken returns a reader that returns the first rows of the given batch, and then the error err.
// The argument "rows" is the number of these rows. After a syntax error, the reader continues with
// the remaining rows. After any other error, every further call returns err again.
func Broken(whole *trace.Batch, rows int, err error) trace.Reader {
	return &broken{Reader: NewReader(whole, 0), rows: rows, err: err}
}

type broken struct {
	*Reader
	rows int
	err  error
}

func (r *broken) Next(b *trace.Batch) error {
	if r.err == nil {
		return r.Reader.Next(b)
	}
	if r.Reader.rows = r.rows - r.next; r.Reader.rows > 0 {
		return r.Reader.Next(b)
	}
	spoil(b)
	err := r.err
	if r.Reader.rows = 0; trace.IsSyntax(err) {
		r.err = nil
	}
	return err
}

// Part returns rows [lo, hi) of the given batch. The result shares the memory of this batch.
func Part(whole *trace.Batch, lo, hi int) *trace.Batch { return whole.View(&trace.Batch{}, lo, hi) }
