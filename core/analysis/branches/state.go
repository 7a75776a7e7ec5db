package branches

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
)

// The binary encoding of the call stacks of a segment's threads. All numbers are uv, unsigned
// LEB128 varints; a list is encoded as its length and then its members. A block is encoded as its
// number + 1; 0 means none.
//
//	0, or 1 if the analysis was stopped and no other field follows
//	list of call paths except path 0, each after its parent
//	  parent; 2 + function, or 0 for a path that began before the segment, or 1 for the path of
//	  all calls beyond the limits; calls; recursive calls; calls back to the parent's function
//	for each path: number of instructions
//	list of threads, ascending, each
//	  thread number; flags: 1 beganEarlier, 2 reached; returned; before;
//	  path of the latest record; path of the records before the first block;
//	  list of invocations, from the bottom of the stack, each: latest block; path
//	  list of continuations, each: block; first block of the function that was entered
//	  immediately after the block; path; path of the next lower invocation
//	list of calls by name, ascending, each
//	  calling block − calling block of the previous element; function; number of calls

func (a *Analysis) state() []byte {
	c := codec.Writer([]byte{})
	a.codeState(c)
	return c.Out
}

// codeState reads or writes whether the analysis was stopped and, if not, the paths, threads and
// calls. When reading, it adds the calls to the counts. codeState returns the threads and the
// paths.
func (a *Analysis) codeState(c *codec.Coder) (threads []*thread, listed paths) {
	gone := a.gone && !c.Reads()
	if c.Flag(&gone); gone {
		a.gone = true
		return nil, paths{}
	}
	listed, number := a.codePaths(c)
	var calls []made
	if !c.Reads() {
		for _, t := range a.threads {
			if !t.blank() || t.start != 0 {
				threads = append(threads, t)
			}
		}
		sort.Slice(threads, func(i, j int) bool { return threads[i].number < threads[j].number })
		calls = a.counts.list()
	}
	codec.Slice(c, &threads, 6, func(t **thread) {
		if c.Reads() {
			*t = new(thread)
		}
		a.codeThread(c, *t, func(n *uint32) {
			if !c.Reads() {
				listed := number[*n]
				c.U32(&listed)
				return
			}
			codec.Below(c, n, uint64(len(listed.list)))
		})
	})
	last := uint64(0)
	codec.Slice(c, &calls, 3, func(m *made) {
		caller := uint64(m.caller)
		c.Delta(&caller, &last)
		codec.Below(c, &m.function, uint64(len(a.code.nameOf)))
		c.U64(&m.n)
		if c.Check(caller < uint64(len(a.code.nodes)), errState.Error()); c.Reads() && !c.Failed() {
			a.counts.call(uint32(caller), m.function, m.n)
		}
	})
	return threads, listed
}

// codePaths reads or writes the call paths in the order of results. When writing, it returns the
// number of each path in this order. When reading, it returns the paths.
func (a *Analysis) codePaths(c *codec.Coder) (listed paths, number []uint32) {
	var list []path
	if !c.Reads() {
		order := a.paths.sorted()
		number = make([]uint32, len(order))
		for i, n := range order {
			number[n] = uint32(i)
			list = append(list, a.paths.list[n])
			list[i].parent = number[list[i].parent]
		}
		list = list[1:]
	}
	next := uint64(0)
	codec.Slice(c, &list, 5, func(p *path) {
		next++
		codec.Below(c, &p.parent, next)
		of := uint64(p.function) + 2
		switch p.function {
		case below:
			of = 0
		case further:
			of = 1
		}
		codec.Below(c, &of, uint64(len(a.code.nameOf))+2)
		if p.function = uint32(of) - 2; of == 0 {
			p.function = below
		} else if of == 1 {
			p.function = further
		}
		c.U64s(&p.calls, &p.again, &p.back)
	})
	listed = newPaths(true)
	if c.Reads() {
		listed.list = append(listed.list, list...)
		for i := range listed.list {
			listed.setDepth(uint32(i))
			c.U64(&listed.list[i].instructions)
		}
		return listed, nil
	}
	for _, n := range a.paths.sorted() {
		instructions := a.paths.list[n].instructions
		c.U64(&instructions)
	}
	return listed, number
}

// codeThread reads or writes a thread. When reading, t must be empty. For each frame that it reads,
// codeThread decrements the count of invocations that ended in the frame's block.
func (a *Analysis) codeThread(c *codec.Coder, t *thread, path func(*uint32)) {
	block := func(n *uint32) { codec.Below(c, n, uint64(len(a.code.nodes))) }
	based, reached, before, frames, under := t.beganEarlier, t.reached, t.before, t.frames(), t.framePaths()
	if t.returned == 0 {
		reached, before = false, 0
	}
	c.U32(&t.number)
	c.Flags(&based, &reached)
	block(&t.returned)
	block(&before)
	path(&t.row)
	path(&t.start)
	at := 0
	codec.Slice(c, &frames, 2, func(n *uint32) {
		block(n)
		if c.Reads() {
			under = append(under, 0)
		}
		path(&under[at])
		if at++; c.Reads() && decrement(c, a.counts.left, *n) {
			t.stack, t.under = append(t.stack, *n), append(t.under, under[at-1])
		}
	})
	if c.Reads() {
		t.beganEarlier, t.reached, t.before = based, reached, before
		t.pop()
	}
	codec.Slice(c, &t.continuations, 4, func(r *continuation) {
		block(&r.block)
		if block(&r.then); c.Reads() && r.block != 0 {
			decrement(c, a.counts.resumed, r.block)
		} else {
			c.Check(r.then != 0 && len(t.continuations) == 1, errState.Error())
		}
		path(&r.path)
		path(&r.lower)
	})
	t.unstarted = t.unstarted || c.Reads() && a.segment && t.blank()
	c.Check(!t.reached || (t.returned != 0 || t.at != 0) && len(t.continuations) > 0, errState.Error())
}

// decrement decrements the count of a block, and reports whether the count was positive.
func decrement(c *codec.Coder, counts []uint64, block uint32) bool {
	if c.Check(block != 0 && counts[block] > 0, errState.Error()); c.Failed() {
		return false
	}
	counts[block]--
	return true
}

type made struct {
	call
	n uint64
}

func (c *counts) list() (list []made) {
	for caller, function := range c.callee {
		if function != 0 {
			list = append(list, made{call{uint32(caller), function - 1}, c.made[caller]})
		}
	}
	for key, at := range c.otherAt {
		list = append(list, made{key, c.other[at]})
	}
	sort.Slice(list, func(i, j int) bool {
		x, y := &list[i], &list[j]
		return cmp.Or(cmp.Compare(x.caller, y.caller), cmp.Compare(x.function, y.function)) < 0
	})
	return list
}

var errState = errors.New("the saved block counts of this part of the trace are damaged; analyse the trace again from its start")

// Restore implements [contract.Analysis].
func (a *Analysis) Restore(p *profile.Profile) error {
	threads, listed, err := a.addProfile(p)
	if err != nil || a.gone {
		return err
	}
	if a.paths.restore(&listed, a.segment); len(a.paths.list) != len(listed.list) {
		return errState
	}
	a.adopted = nil
	for n := range listed.list {
		a.adopted = append(a.adopted, uint32(n))
	}
	for _, from := range threads {
		t := a.thread(from.number)
		*t = *from
	}
	return nil
}

// restore replaces the paths with the paths of a saved run.
func (p *paths) restore(listed *paths, segment bool) {
	*p = newPaths(segment)
	p.list = slices.Clone(listed.list)
	for n, of := range p.list {
		p.setDepth(uint32(n))
		switch {
		case of.function == outside || of.function == below:
		case of.function == further && of.parent == 0:
			p.rest = uint32(n)
		default:
			p.at.Add(uint64(of.parent)<<32|uint64(of.function), uint32(n))
		}
	}
}

// Append implements [contract.Analysis].
func (a *Analysis) Append(next *profile.Profile) error {
	threads, listed, err := a.addProfile(next)
	if err != nil || a.gone {
		return err
	}
	if !a.hasRoomFor(len(listed.list), listed.deepest) {
		return ErrManyPaths
	}
	known := make([]uint32, len(listed.list))
	for _, from := range threads {
		if err := a.replayContinuations(a.thread(from.number), from, known); err != nil {
			return err
		}
	}
	a.paths.appendPaths(&listed, known)
	a.adopted = known
	for _, from := range threads {
		a.joinThread(a.thread(from.number), from, known)
	}
	if a.segment && a.paths.exceedsLimits() {
		return ErrManyPaths
	}
	return nil
}

// Joins implements [contract.Joiner]. Joins assumes the worst case: all call paths of the segment
// are new and begin at the deepest open path. A segment can be appended if the run then stays
// within its limits.
func (a *Analysis) Joins(next *profile.Profile) (now, later bool) {
	paths, deepest := 0, uint32(0)
	if next != nil && next.Segment != nil {
		paths, deepest = sizeOf(next.Segment.Blocks)
	}
	return a.hasRoomFor(1+paths, deepest), a.hasRoomFor(1, 0)
}

// sizeOf returns the number of call paths in an encoded segment, not counting the first path, and
// the greatest depth of these paths. sizeOf ignores encoding errors, because Append reports them.
func sizeOf(segment []byte) (paths int, deepest uint32) {
	c := codec.Reader(segment)
	gone := false
	if c.Flag(&gone); gone {
		return 0, 0
	}
	paths = int(c.In.UintBelow(math.MaxInt32))
	depths := []uint32{0}
	for len(depths) <= paths && !c.Failed() {
		parent, of, n := uint64(0), uint64(0), uint64(0)
		codec.Below(c, &parent, uint64(len(depths)))
		c.U64s(&of, &n, &n, &n)
		depth := uint32(0)
		if of > 0 && !c.Failed() {
			depth = depths[parent] + 1
		}
		depths, deepest = append(depths, depth), max(deepest, depth)
	}
	return paths, deepest
}

// hasRoomFor reports whether the run stays within its limits if the given number of call paths is
// added. The parameter deepest is the maximum depth of the added paths, relative to the existing
// paths that they extend. When two segments are joined, the limits are checked only afterwards,
// because most segments have the same paths. Because of recursion, a joined path may be shallower
// than the sum of the depths, but it is never deeper.
func (a *Analysis) hasRoomFor(paths int, deepest uint32) bool {
	if a.gone || a.segment {
		return true
	}
	return len(a.paths.list)+paths <= MostPaths && (a.paths.deepest+deepest <= MostDepth || a.openDepth()+deepest <= MostDepth)
}

// openDepth returns the greatest depth of the paths from which the next records may continue.
// openDepth ignores the path that counts all calls beyond the limits, because no other path begins
// there.
func (a *Analysis) openDepth() (deepest uint32) {
	look := func(n uint32) {
		if at := &a.paths.list[n]; at.function != further {
			deepest = max(deepest, at.depth)
		}
	}
	for _, t := range a.threads {
		look(t.row)
		look(t.path)
		for _, n := range t.under {
			look(n)
		}
	}
	return deepest
}

// addProfile adds the counts of a profile to the analysis, and returns the profile's threads and
// their paths.
func (a *Analysis) addProfile(p *profile.Profile) ([]*thread, paths, error) {
	if p.Segment == nil || p.Segment.Blocks == nil {
		return nil, paths{}, errState
	}
	c := blocks.NewRunDecoder(p.Blocks)
	if len(p.Blocks) > 0 {
		if err := a.loadCounts(c); err != nil {
			return nil, paths{}, err
		}
	}
	d := codec.Reader(p.Segment.Blocks)
	threads, listed := a.codeState(d)
	if d.Failed() || d.More() {
		return nil, paths{}, errState
	}
	return threads, listed, nil
}

// loadCounts adds the counts of a profile. If the profile's program is larger than the known
// program, it also adds the program.
func (a *Analysis) loadCounts(c *blocks.RunDecoder) error {
	a.addProgram(a.program())
	if err := c.Err(); err != nil {
		return err
	}
	if told := c.Encoded(); len(told) > 0 {
		p, err := c.Program()
		if err != nil {
			return err
		}
		if len(p.Blocks)+1 > len(a.code.nodes) {
			a.addProgram(p)
			a.encoded.bytes, a.encoded.blocks, a.encoded.functions = slices.Clone(told), len(p.Blocks), len(p.Functions)
		}
	}
	return c.Each(len(a.code.nodes)-1, make([]uint64, len(a.code.nameOf)), func(b int, x *blocks.Counts) bool {
		first, end := a.code.nodes[b+1].edge, a.code.endOf(uint32(b)+1)
		if uint64(len(x.Taken)) != uint64(end-first) {
			return false
		}
		for i, n := range x.Taken {
			a.counts.taken[first+uint32(i)] += n
		}
		a.counts.left[b+1] += x.Left
		a.counts.resumed[b+1] += x.Resumed
		return true
	})
}

// replayContinuations moves a thread through the blocks of the next segment that belong to
// invocations from before the segment, and finds the paths of these invocations.
func (a *Analysis) replayContinuations(t, next *thread, known []uint32) error {
	if next.start != 0 {
		known[next.start] = t.row
	}
	based := false
	for i := range next.continuations {
		r := &next.continuations[i]
		if r.block != 0 {
			if err := a.enterInnerBlock(t, r.block); err != nil {
				return err
			}
			known[r.path] = t.path
			if based = t.beganEarlier && len(t.stack) == 0; a.code.nodes[r.block].returns {
				t.leave()
			} else {
				t.pop()
			}
		}
		if r.then != 0 {
			a.countCaller(t, r.then)
		}
		if r.lower != 0 {
			known[r.lower] = a.topPath(t)
		}
	}
	next.beganEarlier = next.beganEarlier && based
	return nil
}

// joinThread adds to a thread the invocations that are still active at the end of the next segment.
func (a *Analysis) joinThread(t, next *thread, known []uint32) {
	if next.blank() {
		return
	}
	if frames := next.frames(); len(frames) > 0 {
		if t.at == 0 {
			t.beganEarlier = next.beganEarlier
		}
		t.push()
		t.stack = append(t.stack, frames...)
		for _, path := range next.framePaths() {
			t.under = append(t.under, known[path])
		}
		t.pop()
	}
	t.unstarted, t.row = false, known[next.row]
	if t.returned = next.returned; t.returned == 0 || !next.reached {
		t.before, t.reached = next.before, next.reached && t.returned != 0
	}
	a.gone = a.gone || len(t.stack) >= mostFrames
}
