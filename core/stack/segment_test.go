package stack_test

import (
	"bytes"
	"slices"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
)

// Segment is a sequence of events on an initially empty [stack.Coherent], with the data needed to
// append it to earlier events (MODELS §9).
type Segment struct {
	numbers stack.SetNumbers
	first   int // number of the first event
	answers Answers
	steps   []step // the events that depend on earlier segments, in order
	state   []byte
}

// step is an event that affects the stack below the segment's stack.
type step struct {
	stacktest.Event
	again  bool   // whether the event accesses a line that was lost in the segment
	filled uint32 // mask of the numbers of sets for which the access filled a hole of the segment's stack
	number int    // number of the event
}

// everywhere is a mask with a bit for each number of sets.
const everywhere = 1<<stack.SetCounts - 1

// NewSegment processes events and returns them as a segment. The parameter first is the number of
// the first event.
func NewSegment(numbers stack.SetNumbers, events []stacktest.Event, first int) *Segment {
	s, m := &Segment{numbers: numbers, first: first}, stack.NewCoherent(numbers)
	m.NoteHoles()
	s.answers = Answers{make([]uint32, len(events)), make([]uint32, len(events)), nil}
	touched := map[trace.Line]bool{}
	for i, e := range events {
		Do(m, []stack.Op{e.Op}, []trace.Line{e.Line}, s.answers.Out[i:], s.answers.Lost[i:])
		at := step{Event: e, number: first + i, again: touched[e.Line]}
		if filled := m.Filled(); len(filled) > 0 {
			at.filled = filled[0]
		}
		switch {
		case e.Op != stack.AccessOp:
			if !touched[e.Line] {
				s.add(at)
			}
		case !touched[e.Line] || s.answers.Out[i] == stack.Lost && at.filled != everywhere:
			s.add(at)
		}
		touched[e.Line] = touched[e.Line] || e.Op == stack.AccessOp
	}
	s.answers.Depths, s.state = m.Depths(), m.State()
	return s
}

// add appends a step. If there are several stores to an untouched line, only the first store is a
// step.
func (s *Segment) add(at step) {
	if at.Op == stack.LoseOp && slices.ContainsFunc(s.steps, func(x step) bool { return x.Event == at.Event }) {
		return
	}
	s.steps = append(s.steps, at)
}

// touched reports whether the segment has accessed a line.
func (s *Segment) touched(line trace.Line) bool {
	return slices.ContainsFunc(s.steps, func(x step) bool { return x.Event == stacktest.Event{Op: stack.AccessOp, Line: line} })
}

// Append returns the segment that consists of s followed by next.
func (s *Segment) Append(t TB, next *Segment) *Segment {
	t.Helper()
	r, err := stack.NewBelow(s.numbers, s.state)
	if err != nil {
		t.Fatalf("%v", err)
	}
	sum := &Segment{numbers: s.numbers, first: s.first, steps: slices.Clone(s.steps)}
	sum.answers = Answers{slices.Concat(s.answers.Out, next.answers.Out), slices.Concat(s.answers.Lost, next.answers.Lost), new(stack.SetDepths)}
	for _, at := range next.steps {
		out, lost := &sum.answers.Out[at.number-s.first], &sum.answers.Lost[at.number-s.first]
		known := s.touched(at.Line)
		switch {
		case at.again:
			known, at.filled = false, r.Again(at.Line, at.filled)
		case at.Op == stack.LoseOp:
			if known {
				*out = r.Lose(at.Line)
			}
		case at.Op == stack.AskOp:
			if known {
				*out = r.Depth(at.Line)
			}
		default:
			*out, *lost, at.filled = r.Touch(at.Line, at.filled)
			known, at.again = false, known
			if *out < stack.Lost {
				continue
			}
		}
		if !known && (!at.again || at.filled != everywhere) {
			sum.add(at)
		}
	}
	for _, depths := range []*stack.SetDepths{s.answers.Depths, next.answers.Depths, r.Depths()} {
		sum.answers.Depths.Add(depths)
	}
	if sum.state, err = r.Join(next.state); err != nil {
		t.Fatalf("%v", err)
	}
	return sum
}

// EqualAppended splits events into segments of the given lengths and joins neighbouring segments
// until one segment is left. The function pick chooses which neighbours are joined next.
// EqualAppended compares the answers of the remaining segment with lists with holes, and its final
// stack and its steps with a segment that was created from all events at once.
func EqualAppended(t TB, numbers stack.SetNumbers, events []stacktest.Event, lengths []int, pick func(pairs int) int) {
	t.Helper()
	var parts []*Segment
	at := 0
	for _, n := range lengths {
		parts = append(parts, NewSegment(numbers, events[at:at+n], at))
		at += n
	}
	for len(parts) > 1 {
		i := pick(len(parts) - 1)
		parts = slices.Replace(parts, i, i+2, parts[i].Append(t, parts[i+1]))
	}
	whole, want := NewSegment(numbers, events, 0), Coherent(events).forSetNumbers(numbers)
	parts[0].answers.same(t, events, &want)
	if !bytes.Equal(parts[0].state, whole.state) {
		t.Fatalf("the joined segments end with a different stack than one segment of all events")
	}
	for i, at := range parts[0].steps {
		if i >= len(whole.steps) || at != whole.steps[i] {
			t.Fatalf("step %d of the joined segments differs from the same step of a single segment: %+v", i, at)
		}
	}
	if len(parts[0].steps) < len(whole.steps) {
		t.Fatalf("the joined segments have %d steps, want %d, as in one segment", len(parts[0].steps), len(whole.steps))
	}
}
