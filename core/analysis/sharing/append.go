package sharing

import (
	"errors"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// A segment is appended as follows (MODELS §9). First, its results are added. These results are
// correct, except for each core's first access to a line in the segment. The notes of the segment
// are then processed in order, to find earlier accesses to these lines:
//
//  1. The directories show which accesses are foreign or overlapped (MODELS §6.6). A store
//     invalidates its line in all cores that have the line and have not touched the line in the
//     segment.
//  2. The stacks of each core yield the distances. The first touches are replayed on the private
//     stack, as in package locality. The coherent stack from before the segment is placed below the
//     segment's coherent stack (stack.Below).
//  3. The stacks of domains also yield distances. The stack of all cores belongs to package
//     locality, which appends the segment later. Distances on this stack are counted when package
//     locality resolves the first touches of the segment.
//
// Finally, the lines of the segment are pushed onto the stacks. If no earlier access to the line of
// a note was found, the note is kept, because this analysis may itself be a segment that will be
// appended to earlier segments.

// ErrManyCores reports that the segments together have more threads or groups of threads than there
// can be cores.
var ErrManyCores = errors.New("the segments together have more than 64 threads or groups of threads, so their assignment to cores depends on the whole trace; " +
	"group the threads by core, or analyse the whole trace in one run")

// Append implements [contract.Analysis]. Append must be called before the locality analysis appends
// the segment.
func (a *Analysis) Append(next *profile.Profile) error {
	references := next.Totals.AllReferences()
	switch {
	case references == 0:
		return nil
	case a.absent || next.Segment.Sharing == nil:
		a.absent = true
		return nil
	case slices.ContainsFunc(next.Locality, func(l profile.Locality) bool { return l.Sets == nil }):
		return errState
	case !a.seen:
		err := a.Restore(next)
		for _, s := range a.sizes {
			if err == nil && a.running && s.follower != nil {
				s.follower.BeginCores()
				s.follower.JoinCores(nil, nil)
			}
		}
		return err
	}
	o := a.options
	o.Mergeable = true // segments are always mergeable
	r := &loader{codec.Reader(next.Segment.Sharing), &Analysis{options: o}}
	r.a.cores.reset(a.options.Cores)
	if r.threads(); r.Failed() {
		return errState
	}
	to, err := a.cores.join(&r.a.cores, a.running)
	if err != nil {
		return err
	}
	if !a.running && len(a.cores.list) > 1 {
		a.createStacks()
	}
	for i, s := range a.sizes {
		if err := s.append(r, to, next, i); err != nil {
			return err
		}
	}
	if r.More() {
		return errState
	}
	return nil
}

// Joins reports whether a segment can be appended, which is possible only if each thread or each
// group of threads has its own core.
func (a *Analysis) Joins(next *profile.Profile) (now, later bool) {
	n := len(a.cores.of)
	if next != nil {
		for _, t := range next.Totals.Threads {
			if _, known := a.cores.of[t]; !known {
				n++
			}
		}
	}
	return n <= profile.MaxCores, n <= profile.MaxCores
}

// Alone reports whether all references so far, and all references of the given threads, belong to a
// single core. The sharing analysis need not read such a segment, unless the result must be
// mergeable.
func (a *Analysis) Alone(threads []uint32) bool {
	if a.running || a.absent || a.options.Mergeable || !a.seen {
		return false
	}
	for _, t := range threads {
		if _, known := a.cores.of[t]; !known {
			return false
		}
	}
	return true
}

// Several reports whether more than one core has appeared.
func (a *Analysis) Several() bool { return a.running }

// join adds the cores of the next segment, and returns their numbers in this analysis. A segment
// without threads belongs to the only core, or to the core of thread 0 if there are several cores.
func (c *Grouping) join(next *Grouping, several bool) (to []uint8, err error) {
	for i := range next.list {
		for _, t := range next.list[i].threads {
			to = append(to[:i], c.core(t))
		}
	}
	switch {
	case len(next.list) > 0:
	case several:
		to = []uint8{c.core(0)}
	case len(c.list) > 0:
		to = []uint8{0}
	}
	if c.turn > 0 || next.turn > 0 {
		return nil, ErrManyCores
	}
	return to, nil
}

func (s *lineSize) append(r *loader, to []uint8, next *profile.Profile, i int) error {
	lines, touches := locality.StackOf(next, s.bytes), &next.Segment.Lines[i].FirstTouches
	if len(next.Sharing) > 0 {
		if i >= len(next.Sharing) || next.Sharing[i].LineBytes != s.bytes || len(next.Sharing[i].Cores) != len(to) {
			return errState
		}
		p := r.part(&next.Sharing[i], lines)
		if r.Failed() || !p.beginsWith(touches) {
			return errState
		}
		return s.join(p, to)
	}
	stores := r.stores(uint64(touches.Len()))
	switch {
	case r.Failed() || len(to) > 1:
		return errState
	case s.analysis.running:
		s.addCores(len(s.analysis.cores.list))
		return s.join(s.singleCorePart(&next.Locality[i], touches, lines, stores, to[0]), to)
	}
	s.joint = &segmentJoin{stores: stores, touches: touches.Len()}
	return nil
}

// singleCorePart returns the state of a segment with a single core as a sizePart.
func (s *lineSize) singleCorePart(l *profile.Locality, touches *profile.FirstTouches, lines []trace.Line, stores []store, core uint8) *sizePart {
	h, cold := l.Histogram(trace.AllKinds)
	all := profile.StackCounts{Cold: cold, Distances: *h, Sets: *l.Sets}
	p := &sizePart{notes: singleCoreNotes(touches, stores)}
	p.cores = []corePart{{&profile.Core{Private: all, Coherent: profile.CoherentCounts{StackCounts: all}}, lines, stack.CoherentState(lines)}}
	p.lines.reset(len(stores))
	for _, store := range stores {
		p.lines.entry(store.line).last = 1
	}
	for _, d := range s.allDomains() {
		var of domainPart
		if d.has(core) {
			of = domainPart{stack: lines, overlaps: []uint64{0}, touchers: make([]toucher, len(lines))}
			of.Domain, of.members = &profile.Domain{Sets: all.Sets}, []*profile.Member{{Cold: cold, Distances: *h}}
			for i := range of.touchers {
				of.touchers[i].holders = 1
			}
		}
		p.domains = append(p.domains, of)
	}
	return p
}

// beginsWith reports whether the notes and the given list contain the same first touches of lines,
// in the same order.
func (p *sizePart) beginsWith(touches *profile.FirstTouches) bool {
	var seen directory
	seen.reset(touches.Len())
	notes := p.notes
	next := func() (line trace.Line, found bool) {
		for len(notes) > 0 && !found {
			if notes[0].op() == touched {
				e := seen.entry(notes[0].line)
				line, found, e.last = notes[0].line, e.last == 0, 1
			}
			notes = notes[1:]
		}
		return line, found
	}
	for t := range touches.All() {
		if line, found := next(); !found || line != t.Line {
			return false
		}
	}
	_, more := next()
	return !more
}
