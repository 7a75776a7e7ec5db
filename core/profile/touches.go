package profile

import (
	"iter"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// FirstTouch is the first access to a line within a segment.
type FirstTouch struct {
	Line      trace.Line
	Reference uint64 // number of the reference in the whole trace, starting at 0
	Kind      trace.Kind
}

// code codes a first touch as its difference from the previous first touch, and sets *last to the
// first touch.
func (t *FirstTouch) code(c *codec.Coder, last *FirstTouch) {
	c.Delta(&t.Reference, &last.Reference)
	c.Near(&t.Line, &last.Line)
	codec.Below(c, &t.Kind, trace.NumKinds)
}

// FirstTouches is a list of first touches in the order of the references. The list is stored in
// memory as it is encoded in a file, which needs 3 bytes for each first touch if lines are accessed
// in ascending order, and seldom more than 8 bytes. A slice of FirstTouch would need 24 bytes.
type FirstTouches struct {
	start   uint64 // number of references before the segment
	length  int
	last    FirstTouch // the previous first touch for the next first touch of the list
	encoded []byte
}

// Reset empties the list and reuses its memory. The parameter start is the number of references
// before the segment.
func (l *FirstTouches) Reset(start uint64) {
	*l = FirstTouches{start: start, last: FirstTouch{Reference: start}, encoded: l.encoded[:0]}
}

// Append appends a first touch.
func (l *FirstTouches) Append(t FirstTouch) {
	c := codec.Coder{Out: l.encoded}
	t.code(&c, &l.last)
	l.encoded = c.Out
	l.length++
}

// Len returns the number of first touches.
func (l *FirstTouches) Len() int { return l.length }

// Clip returns a copy of the list that shares memory with the list. Appending to one of the two
// does not change the other. The copy becomes invalid if the list is reset and extended, because
// the list then overwrites the shared memory.
func (l *FirstTouches) Clip() FirstTouches {
	clipped := *l
	clipped.encoded = slices.Clip(l.encoded)
	return clipped
}

// All yields the first touches.
func (l *FirstTouches) All() iter.Seq[FirstTouch] {
	return func(yield func(FirstTouch) bool) {
		c, last, t := codec.Reader(l.encoded), FirstTouch{Reference: l.start}, FirstTouch{}
		for range l.length {
			if t.code(c, &last); !yield(t) {
				return
			}
		}
	}
}

// code codes the list. The list of a decoded profile aliases the data of the profile.
func (l *FirstTouches) code(c *coder, start uint64) {
	length := c.Length(l.length, 3)
	if !c.Reads() {
		c.Out = append(c.Out, l.encoded...)
		return
	}
	l.Reset(start)
	rest, from := c.In.Rest(), c.In.Offset()
	for t := (FirstTouch{}); l.length < length && !c.Failed(); l.length++ {
		t.code(c.Coder, &l.last)
	}
	if length > 0 {
		l.encoded = slices.Clip(rest[:c.In.Offset()-from])
	}
}
