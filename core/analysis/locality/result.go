package locality

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Result implements [contract.Analysis].
func (a *Analysis) Result(p *profile.Profile, state bool) {
	for _, s := range a.sizes {
		l, above := s.wholeResult()
		p.Locality = append(p.Locality, l)
		if state {
			p.Segment.Lines = append(p.Segment.Lines, profile.SegmentLines{
				FirstTouches: s.firstTouches.Clip(),
				Stack:        s.model.Stack(),
				WorkingSets:  above,
			})
		}
	}
}

// wholeResult returns the result including its working sets, and the working sets of larger windows.
func (s *lineSize) wholeResult() (l profile.Locality, above [][]uint64) {
	l = s.result()
	l.Windows.Distinct, above = s.working.result(len(l.Windows.Rows))
	return l, above
}

func (s *lineSize) result() profile.Locality {
	s.closeRow()
	l := profile.Locality{LineBytes: 1 << s.Shift, Windows: s.windows, Sets: s.setTable()}
	l.Windows.Rows = slices.Clone(s.windows.Rows)
	for k := range trace.NumKinds {
		counts := profile.KindLocality{Kind: trace.Kind(k), Cold: s.cold[k]}
		occurs := s.cold[k] != 0
		for d := range topDepths {
			counts.Distances.AddN(uint64(d), s.top[0][k<<4|d]+s.top[1][k<<4|d])
		}
		// the analysis is closed, so the histogram no longer changes
		if s.model == nil && s.shelved == nil {
			deep := s.deep[k]
			deep.Merge(&counts.Distances)
			counts.Distances = deep
		} else {
			counts.Distances.Merge(&s.deep[k])
		}
		for range counts.Distances.All() {
			occurs = true
			break
		}
		if occurs {
			l.Kinds = append(l.Kinds, counts)
		}
	}
	return l
}

// setTable returns a new set table with all counts so far, or nil if there is no set table.
func (s *lineSize) setTable() *profile.SetTable {
	var t *profile.SetTable
	switch {
	case s.sets != nil:
		t = s.tableOf(s.sets.Depths())
	case s.shelved != nil && s.shelved.Depths() != nil:
		t = s.tableOf(s.shelved.Depths())
	default:
		return s.table
	}
	if s.table != nil {
		t.Add(s.table)
	}
	return t
}

func (s *lineSize) tableOf(depths *stack.SetDepths) *profile.SetTable {
	return &profile.SetTable{Depths: *depths, Omitted: Omitted(s.numbers)}
}

// Omitted returns the numbers of sets that a set table omits, as a bit set.
func Omitted(numbers stack.SetNumbers) uint32 { return uint32(stack.AllSetNumbers &^ (numbers | 1)) }

// Restore implements [contract.Analysis].
func (a *Analysis) Restore(p *profile.Profile) error {
	a.start, a.done = p.Segment.Start, p.Totals.AllReferences()
	for i, s := range a.sizes {
		l, segment := &p.Locality[i], &p.Segment.Lines[i]
		s.continueFrom(l, segment.WorkingSets)
		s.firstTouches = segment.FirstTouches.Clip()
		s.push(segment.Stack)
	}
	return nil
}

// continueFrom makes a new lineSize continue from a saved result.
func (s *lineSize) continueFrom(l *profile.Locality, above [][]uint64) {
	s.add(l)
	s.windows = l.Windows
	s.windows.Rows, s.windows.Distinct = slices.Clone(l.Windows.Rows), nil
	s.working.restore(&l.Windows, above)
	s.recount()
}

func (s *lineSize) add(l *profile.Locality) {
	if l.Sets != nil && (s.sets != nil || s.shelved != nil) {
		table := *l.Sets
		if s.table != nil {
			table.Add(s.table)
		}
		s.table = &table
	}
	for i := range l.Kinds {
		k := &l.Kinds[i]
		s.cold[k.Kind] += k.Cold
		for d, count := range k.Distances.All() {
			if d < topDepths {
				s.top[0][int(k.Kind)<<4|int(d)] += count
			} else {
				s.deep[k.Kind].AddN(d, count)
			}
		}
	}
}

// push pushes lines onto the stack. The lines must be in stack order, most recently used first.
func (s *lineSize) push(lines []trace.Line) {
	PushAll(lines, func(some []trace.Line) {
		if s.sets != nil {
			s.sets.Push(some)
		} else {
			s.model.Distances(some, s.distances[:])
		}
	})
}

// PushAll passes the lines, in reverse order, to the function push, at most MaxLines at a time.
func PushAll(lines []trace.Line, push func([]trace.Line)) {
	var some [MaxLines]trace.Line
	for end := len(lines); end > 0; {
		n := min(end, len(some))
		for i := range n {
			some[i] = lines[end-1-i]
		}
		push(some[:n])
		end -= n
	}
}

// Append implements [contract.Analysis] (MODELS §9). Append replays the first touches of the next
// segment on the stack, which yields their distances in the whole trace. Append then moves the
// lines of the segment to the top of the stack.
func (a *Analysis) Append(next *profile.Profile) error {
	references := next.Totals.AllReferences()
	a.done += references
	for i, s := range a.sizes {
		l, segment := &next.Locality[i], &next.Segment.Lines[i]
		s.closeRow()
		s.add(l)
		s.appendWindows(&l.Windows)
		j := s.working.join(next.Segment.Start, references, false, &l.Windows)
		s.replayTouches(&segment.FirstTouches, j, s.model)
		j.addInnerWindows(&l.Windows, segment.WorkingSets)
		s.push(segment.Stack)
		s.recount()
	}
	return nil
}

func (s *lineSize) appendWindows(next *profile.Windows) {
	w := &s.windows
	coarsen(w, next.References)
	for i := range next.Rows {
		to := next.First + uint64(i) - w.First
		if to == uint64(len(w.Rows)) {
			w.Rows = append(w.Rows, profile.WindowRow{})
		}
		for bin, count := range next.Rows[i] {
			w.Rows[to][bin] += count
		}
	}
}

// replayTouches computes the distances of a segment's first touches on the stack at the beginning
// of the segment. So far, first touches have been counted as cold.
func (s *lineSize) replayTouches(touches *profile.FirstTouches, j segmentJoin, on distancer) {
	batch := make([]profile.FirstTouch, 0, min(touches.Len(), MaxLines))
	for t := range touches.All() {
		if batch = append(batch, t); len(batch) == MaxLines {
			s.replayBatch(batch, j, on)
			batch = batch[:0]
		}
	}
	if len(batch) > 0 {
		s.replayBatch(batch, j, on)
	}
}

// replayBatch implements replayTouches for at most MaxLines first touches.
func (s *lineSize) replayBatch(touches []profile.FirstTouch, j segmentJoin, on distancer) {
	s.measureFirst(touches, on)
	for _, f := range s.followers {
		f.Resolve(touches, s.distances[:len(touches)])
	}
	for i, t := range touches {
		d := s.distances[i]
		j.countAccess(t.Reference, d)
		if d == stack.Cold {
			if s.mergeable {
				s.firstTouches.Append(t)
			}
			continue
		}
		s.cold[t.Kind]--
		if d < topDepths {
			s.top[0][int(t.Kind)<<4|int(d)]++
		} else {
			s.deep[t.Kind].Add(uint64(d))
		}
		row := &s.windows.Rows[t.Reference/s.windows.References-s.windows.First]
		row[profile.ColdBin]--
		row[profile.DistanceBin(uint64(d))]++
	}
}

func (s *lineSize) recount() {
	for d := range topDepths {
		s.counted[d] = s.topAt(d)
	}
}
