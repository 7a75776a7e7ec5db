// Package regions records the beginning and the end of each region that a program has marked with
// stackglass_begin and stackglass_end. The regions of a thread can be nested.
//
// The memory is bounded: if there are more than [profile.MostRegions] regions, some regions with
// the same name, thread and depth are joined. Two successive regions of this kind are joined if the
// number of references between them is less than a threshold, called the gap. The gap is doubled
// until at most [profile.MostRegions] regions remain. For a given gap, a segment never has more
// regions than the whole trace. The result therefore does not depend on how the trace is divided.
//
// The regions that are open at the beginning of a segment are unknown. Depths in a segment are
// therefore relative to the depth at the beginning of the segment, and can be negative. For each
// region that was open at the beginning of the segment, the segment also records the position of
// the region's end.
package regions

import (
	"errors"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Analysis records the regions. Use [New] to create one; the zero value is not usable.
type Analysis struct {
	program func() *trace.Program
	segment bool
	most    int // maximum number of regions

	at      uint64 // number of references so far, in the whole trace
	gap     uint64
	tooMany bool
	off     bool // the regions are unknown, because an earlier version of this program, without this analysis, analysed the beginning of the run
	list    []*region
	latest  map[key]*region // the latest region with each key
	threads map[uint32]*thread
	order   []uint32 // thread numbers, in the order of the threads' first events
}

// key identifies regions that can be joined.
type key struct {
	name   string
	thread uint32
	depth  int64
}

type region struct {
	key
	from, to       uint64 // the field to is set when the region ends
	times, between uint64
	into           *region // the region with which this region was joined; nil: none
}

// thread contains the open regions of a thread, and the ends of the regions that were already open
// at the beginning of the segment.
type thread struct {
	open []*region
	ends []uint64
}

var (
	_ contract.Analysis = (*Analysis)(nil)
	_ contract.Joiner   = (*Analysis)(nil)
)

// New returns an analysis of a trace or of a segment. The parameter start is the number of
// references before the segment. The parameter most is the maximum number of regions.
func New(program func() *trace.Program, segment bool, start uint64, most int) *Analysis {
	return &Analysis{program: program, segment: segment, most: most, at: start, latest: map[key]*region{}, threads: map[uint32]*thread{}}
}

// Takes implements [contract.Analysis].
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) {
	return 1<<trace.RegionBegin | 1<<trace.RegionEnd, false, false
}

// Consume counts references, and records the regions that begin or end between them.
func (a *Analysis) Consume(b *trace.Batch) error {
	if references, marks := countReferences(b.Kind); !marks {
		a.at += references
		return nil
	}
	for i, k := range b.Kind {
		if k.IsReference() {
			a.at++
			continue
		}
		if k != trace.RegionBegin && k != trace.RegionEnd || a.tooMany || a.off {
			continue
		}
		number := uint32(0)
		if b.Thread != nil {
			number = b.Thread[i]
		}
		t := a.thread(number)
		if k == trace.RegionEnd {
			a.endRegion(t, a.at)
			continue
		}
		name := ""
		if p := a.program(); p != nil && b.Addr[i] < uint64(len(p.Tags)) {
			name = p.Tags[b.Addr[i]]
		}
		t.open = append(t.open, a.addRegion(region{key: key{name, number, t.depth()}, from: a.at, times: 1}))
		a.limitRegions()
	}
	return nil
}

// countReferences counts the references of a batch, and reports whether a region begins or ends in
// the batch. Few batches contain the beginning or the end of a region.
func countReferences(kinds []trace.Kind) (references uint64, marks bool) {
	for _, k := range kinds { // no branches, because references and events alternate irregularly
		is := uint64(0)
		if k.IsReference() {
			is = 1
		}
		references += is
	}
	return references, slices.Contains(kinds, trace.RegionBegin) || slices.Contains(kinds, trace.RegionEnd)
}

func (a *Analysis) thread(number uint32) *thread {
	t := a.threads[number]
	if t == nil {
		t = &thread{}
		a.threads[number], a.order = t, append(a.order, number)
	}
	return t
}

// depth returns the number of open regions, relative to the number at the beginning of the segment.
func (t *thread) depth() int64 { return int64(len(t.open)) - int64(len(t.ends)) }

// endRegion ends the innermost open region of a thread. If the beginning of the trace was skipped,
// the ends of regions that began in the skipped part have no effect.
func (a *Analysis) endRegion(t *thread, at uint64) {
	if n := len(t.open); n > 0 {
		t.open[n-1].to = at
		t.open = t.open[:n-1]
	} else if a.segment {
		t.ends = append(t.ends, at)
	}
}

// addRegion adds a region, or joins it with the previous region that has the same key. addRegion
// returns the region that contains the added region.
func (a *Analysis) addRegion(r region) *region {
	if before := a.latest[r.key]; before != nil && before.tryJoin(&r, a.gap) {
		return before
	}
	a.list = append(a.list, &r)
	a.latest[r.key] = &r
	return &r
}

// tryJoin joins r with the next region that has r's key, if fewer than gap references lie between
// the two regions. It reports whether it has joined the regions.
func (r *region) tryJoin(next *region, gap uint64) bool {
	between := next.from - r.to
	if between >= gap {
		return false
	}
	r.to, r.times, r.between = next.to, r.times+next.times, r.between+between+next.between
	return true
}

// limitRegions doubles the gap until the number of regions does not exceed the limit.
func (a *Analysis) limitRegions() {
	for len(a.list) > a.most && !a.tooMany {
		a.enlargeGap(max(1, 2*a.gap))
	}
}

// enlargeGap sets a larger gap, and joins regions if fewer references than this gap lie between the
// regions.
func (a *Analysis) enlargeGap(gap uint64) {
	if gap <= a.gap {
		return
	}
	a.gap = gap
	if gap > 1<<62 { // all regions that could be joined have been joined
		a.dropAll()
		return
	}
	clear(a.latest)
	list := a.list[:0]
	for _, r := range a.list {
		if before := a.latest[r.key]; before != nil && before.tryJoin(r, gap) {
			r.into = before
			continue
		}
		list = append(list, r)
		a.latest[r.key] = r
	}
	clear(a.list[len(list):])
	a.list = list
	for _, t := range a.threads {
		for i, r := range t.open {
			if r.into != nil {
				t.open[i] = r.into
			}
		}
	}
}

// dropAll discards all regions, because there are too many of them.
func (a *Analysis) dropAll() {
	a.tooMany, a.gap = true, 0
	a.list, a.order = nil, nil
	clear(a.latest)
	clear(a.threads)
}

// Result implements [contract.Analysis].
func (a *Analysis) Result(p *profile.Profile, state bool) {
	if state {
		w := codec.Writer(nil)
		a.code(w)
		p.Segment.Regions = w.Out
	}
	if a.off || len(a.list) == 0 && !a.tooMany {
		return
	}
	open := map[*region]bool{}
	for _, t := range a.threads {
		for _, r := range t.open {
			open[r] = true
		}
	}
	p.Regions = &profile.Regions{Gap: a.gap, TooMany: a.tooMany}
	for _, r := range a.list {
		to := r.to
		if open[r] {
			to = a.at
		}
		p.Regions.List = append(p.Regions.List, profile.Region{
			Name: r.name, Thread: r.thread, Depth: uint32(max(r.depth, 0)), From: r.from, To: to, Times: r.times, Between: r.between,
		})
	}
}

// Close does nothing, because Result needs all data.
func (a *Analysis) Close() {}

var errState = errors.New("the marked regions in the checkpoint are damaged; analyse the trace again from its start")

// code reads or writes the state.
func (a *Analysis) code(c *codec.Coder) {
	c.Flags(&a.tooMany, &a.off)
	c.U64s(&a.at, &a.gap)
	last := uint64(0)
	codec.Slice(c, &a.list, 6, func(of **region) {
		if c.Reads() {
			*of = &region{}
		}
		r, depth := *of, uint64((*of).depth)
		c.Text(&r.name)
		c.U32(&r.thread)
		zero := uint64(0)
		c.Near(&depth, &zero)
		r.depth = int64(depth)
		c.Delta(&r.from, &last)
		c.U64s(&r.to, &r.times, &r.between)
	})
	number := map[*region]uint64{}
	for i, r := range a.list {
		number[r] = uint64(i)
	}
	codec.Slice(c, &a.order, 3, func(of *uint32) {
		c.U32(of)
		if c.Reads() {
			a.threads[*of] = &thread{}
		}
		t := a.threads[*of]
		codec.Slice(c, &t.open, 1, func(r **region) {
			n := number[*r]
			if codec.Below(c, &n, uint64(len(a.list))); !c.Failed() {
				*r = a.list[n]
			}
		})
		codec.Slice(c, &t.ends, 1, c.U64)
	})
}

// readState returns an analysis with a saved state.
func (a *Analysis) readState(state []byte, segment bool) (*Analysis, error) {
	next := New(a.program, segment, 0, a.most)
	if state == nil {
		next.off = true
		return next, nil
	}
	r := codec.Reader(state)
	next.code(r)
	if r.Failed() || r.More() || len(next.list) > a.most || len(next.threads) != len(next.order) || next.gap&(next.gap-1) != 0 || next.gap > 1<<62 {
		return nil, errState
	}
	for _, of := range next.list {
		if of.times == 0 || next.latest[of.key] != nil && of.from < next.latest[of.key].to {
			return nil, errState
		}
		next.latest[of.key] = of
	}
	for _, t := range next.threads {
		if slices.Contains(t.open, nil) {
			return nil, errState
		}
	}
	return next, nil
}

// Restore implements [contract.Analysis].
func (a *Analysis) Restore(p *profile.Profile) error {
	saved, err := a.readState(p.Segment.Regions, a.segment)
	if err != nil {
		return err
	}
	at := p.Segment.Start + p.Totals.AllReferences()
	if saved.off {
		saved.at = at
	}
	if saved.at != at {
		return errState
	}
	*a = *saved
	return nil
}

// Joins implements [contract.Joiner]. A segment cannot be appended if it ends more regions than are
// open when the segment begins, because the depths in the segment would then be wrong.
func (a *Analysis) Joins(next *profile.Profile) (now, later bool) {
	if next == nil || a.off || a.tooMany || a.segment {
		return true, true
	}
	of, err := a.readState(next.Segment.Regions, true)
	if err != nil || of.off {
		return true, true
	}
	if of.tooMany {
		return false, true // it is unknown which earlier regions end in the segment
	}
	for number, t := range of.threads {
		if open := a.threads[number]; len(t.ends) > 0 && (open == nil || len(t.ends) > len(open.open)) {
			return false, true
		}
	}
	return true, true
}

// Append implements [contract.Analysis].
func (a *Analysis) Append(next *profile.Profile) error {
	of, err := a.readState(next.Segment.Regions, true)
	if err != nil {
		return err
	}
	a.at += next.Totals.AllReferences()
	if joins, _ := a.Joins(next); of.off || !joins && !of.tooMany {
		a.off = true
	}
	if of.tooMany || a.tooMany || a.off {
		a.dropAll()
		a.tooMany = !a.off
		return nil
	}
	a.enlargeGap(of.gap)
	depths := map[uint32]int64{}
	for _, number := range of.order {
		t := a.thread(number)
		depths[number] = t.depth()
		for _, at := range of.threads[number].ends {
			a.endRegion(t, at)
		}
	}
	in := map[*region]*region{}
	for _, r := range of.list {
		moved := *r
		moved.depth += depths[r.thread]
		in[r] = a.addRegion(moved)
	}
	for _, number := range of.order {
		t := a.threads[number]
		for _, r := range of.threads[number].open {
			t.open = append(t.open, in[r])
		}
	}
	a.limitRegions()
	return nil
}
