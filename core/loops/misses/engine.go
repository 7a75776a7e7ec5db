package misses

import (
	"math"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// engine simulates a tree in a cache.
type engine struct {
	*layout
	sets  uint64
	state state
	few   *frames // the state if its type is *frames; nil otherwise
	full  *stack  // the only LRU stack if the cache is fully associative; nil otherwise
	tally tally
	reads []loops.Addresses // wild addresses of each reference

	firsts *firstTouchCounter // non-nil if the engine only counts first touches
	begins func(node int)     // called before each top-level node runs; may be nil

	plain  bool     // whether to simulate every iteration, as the reference implementation in tests does
	queue  []access // accesses that have not been simulated yet
	weight uint64   // number of accesses that each access in the queue represents
	depth  int
	curs   [][]uint64 // by depth: parameters of the running loop
	plans  []*plan
	series []*series
	transcript
	done         uint64 // number of simulated accesses
	jumps        uint64 // number of jumps over periods
	progressions int    // number of jumps over iterations with varying inner trip counts
	varying      int    // number of running loops with varying inner trip counts
	*pauser
}

const queueLength = 512

func newEngine(l *layout, sets, ways uint64) *engine {
	e := &engine{layout: l, sets: sets, state: newState(sets, ways), weight: 1, pauser: new(pauser)}
	refs := len(l.tree.References())
	e.tally.arrays = l.arrays
	e.tally.counts = make([]hits, e.nodes+refs)
	e.reads = make([]loops.Addresses, refs)
	for ref := range refs {
		e.reads[ref] = l.tree.Addresses(ref)
	}
	e.queue = make([]access, 0, queueLength)
	for _, b := range l.blocks.all {
		if b != nil {
			b.skip, b.patience = 0, 0
		}
	}
	return e
}

// countEvictions makes the engine count evictions.
func (e *engine) countEvictions() {
	e.tally.out = make([]uint64, len(e.reads)*len(e.arrays.columns))
	e.state.track()
}

func (e *engine) run() {
	e.few, _ = e.state.(*frames)
	if s, ok := e.state.(*stacks); ok && e.sets == 1 {
		e.full = &s.all[0]
	}
	e.tally.weight = e.weight
	at, tops, blocks := 0, e.tops, e.layout.loops
	made := uint64(0) // number of references outside loops that have not been added to the field "done" yet
	for i, id := range e.shapes {
		if i%maxAtOnce == 0 {
			e.spend(int(made))
			e.done += made
			made = 0
		}
		if e.over || e.firsts != nil && e.firsts.marks.full {
			return
		}
		if e.begins != nil {
			e.begins(i)
		}
		f := &e.forms[id]
		p := e.params[at : at+int(f.size) : at+int(f.size)]
		at += len(p)
		switch {
		case f.kind == noReference:
		case f.kind == oneLeaf:
			of, addr := &e.flats[f.first], p[0]
			if of.wild {
				addr, _ = e.reads[of.ref].Next()
			}
			e.accessOne(addr, of, e.nodes+int(of.ref))
			made++
		case len(tops) > 0 && int(tops[0].node) == i:
			made += e.runTop(f, blocks[0], p, int(tops[0].start))
			tops, blocks = tops[1:], blocks[1:]
		default:
			made += e.runShort(f, p, -1)
		}
	}
	e.done += made
}

// maxAtOnce is the number of top-level nodes that run between two calls of the caller's function
// goOn.
const maxAtOnce = 1 << 12

// runTop runs a top-level loop that is counted node by node. The argument "at" is the index of the
// loop's first counter.
func (e *engine) runTop(f *form, b *block, p []uint64, at int) (made uint64) {
	switch {
	case f.kind == oneLoop && f.short(p[0]):
		return e.runShort(f, p, at)
	case !b.events || b.wilds:
		e.runLoop(b, p, at)
		e.flush()
	}
	return 0
}

// runShort runs a short loop over references. The argument "at" is the index of the loop's first
// counter. If this index is negative, accesses are counted separately for each reference.
func (e *engine) runShort(f *form, p []uint64, at int) (made uint64) {
	items := e.flats[f.first : f.first+f.items]
	start := p[1 : 1+len(items)]
	for i := uint64(0); int64(i) < int64(p[0]); i++ {
		for j := range items {
			of := &items[j]
			if of.bytes == 0 {
				continue
			}
			to := at + 1 + j
			if at < 0 {
				to = e.nodes + int(of.ref)
			}
			addr := start[j] + i*of.step
			if of.wild {
				addr, _ = e.reads[of.ref].Next()
			}
			e.accessOne(addr, of, to)
			made++
		}
	}
	return made
}

// accessOne simulates a reference immediately, without the queue, which must be empty. The
// reference must not be in a loop whose iterations can be skipped.
func (e *engine) accessOne(addr trace.Addr, of *flatReference, at int) {
	line := addr >> e.shift
	if line < (addr+uint64(of.bytes-1))>>e.shift {
		e.accessSeveral(addr, of, at)
		return
	}
	switch {
	case e.few != nil:
		e.tally.counts[at].accesses++
		if set := int(e.few.set(line)) * e.few.ways; e.few.held[set] != line {
			e.few.moveToFront(&access{line, uint32(at), of.ref}, set, &e.tally)
		} else if e.few.last != nil {
			e.few.last[set] = of.ref
		}
	case e.full != nil:
		e.tally.counts[at].accesses++
		if a := (access{line, uint32(at), of.ref}); e.full.order[e.full.next-1] != line {
			e.full.moveToTop(&a, &e.tally)
		} else {
			e.full.touchTop(&a, &e.tally)
		}
	default:
		e.queue = append(e.queue, access{line, uint32(at), of.ref})
		e.state.touch(e.queue, &e.tally)
		e.queue = e.queue[:0]
	}
}

// accessSeveral simulates a reference to more than one line.
func (e *engine) accessSeveral(addr trace.Addr, of *flatReference, at int) {
	line, last := addr>>e.shift, (addr+uint64(of.bytes-1))>>e.shift
	e.done += last - line // the caller has already counted the access to the first line
	for ; line <= last; line++ {
		e.queue = append(e.queue, access{line, uint32(at), of.ref})
		if len(e.queue) == queueLength || line == last {
			e.state.touch(e.queue, &e.tally)
			e.queue = e.queue[:0]
		}
	}
}

func (e *engine) flush() {
	if e.open > 0 {
		if last := len(e.cuts) - 1; last < 0 || len(e.lines)-e.cuts[last] > e.state.lines()+e.state.lines()/4 {
			e.writeState()
		}
		for i := range e.queue {
			e.lines = append(e.lines, e.queue[i].line)
		}
	}
	e.tally.weight = e.weight
	e.state.touch(e.queue, &e.tally)
	e.done += uint64(len(e.queue))
	e.spend(len(e.queue))
	e.queue = e.queue[:0]
}

// accessLeaf queues the accesses of a leaf. It reads the address of a wild leaf from the list of
// its reference.
func (e *engine) accessLeaf(b *block, addr trace.Addr, at int) {
	if b.wild {
		addr, _ = e.reads[b.ref].Next()
	}
	if b.counted {
		e.queueReference(addr, b.bytes, at, uint32(b.ref))
	}
}

// queueReference queues the accesses of a reference, one per line, in ascending order.
func (e *engine) queueReference(addr trace.Addr, bytes uint64, at int, ref uint32) {
	line, last := addr>>e.shift, (addr+bytes-1)>>e.shift
	for {
		e.queue = append(e.queue, access{line, uint32(at), ref})
		if len(e.queue) == queueLength {
			e.flush()
		}
		if line >= last {
			return
		}
		line++
	}
}

// setWeight sets the number of accesses that each of the following simulated accesses represents.
func (e *engine) setWeight(weight uint64) {
	if weight != e.weight {
		e.flush()
		e.weight = weight
	}
}

// copyParams enters a loop, and returns a copy of the parameters of the loop's body.
func (e *engine) copyParams(start []uint64) []uint64 {
	if e.depth == len(e.curs) {
		e.curs = append(e.curs, nil)
		e.plans = append(e.plans, new(plan))
		e.series = append(e.series, new(series))
	}
	cur := append(e.curs[e.depth][:0], start...)
	e.curs[e.depth] = cur
	e.depth++
	return cur
}

// runLoop runs a loop. The argument "at" is the index of the loop's first counter.
func (e *engine) runLoop(b *block, p []uint64, at int) {
	if int64(p[0]) < 1 || b.makesNoReferences(p[1:]) {
		return
	}
	if e.firsts != nil && !b.wilds {
		e.flush()
		e.firsts.countLoop(b, p, at, indices(len(b.leaves)))
		return
	}
	trips := p[0]
	cur := e.copyParams(p[1:])
	w, s := e.plans[e.depth-1], e.series[e.depth-1]
	w.begin(e, b, cur, trips)
	s.begin(e, b, trips)
	still := b.slow && !b.wilds && !b.varies && !e.plain
	jumped := uint64(0)
	if b.varies {
		e.varying++
	}
	for i := uint64(0); i < trips && !e.over; {
		jump := uint64(0)
		if i == w.next {
			jump = w.check(e, b, cur, i, trips, at)
		}
		if i == s.next && jump == 0 {
			jump = s.check(e, b, cur, i, trips, at)
		}
		if jump > 0 {
			advance(cur, b.steps, jump)
			i += jump
			jumped += jump
			continue
		}
		if b.flat && !still {
			n := min(min(trips, w.next)-i, 1<<12)
			e.runLeaves(b, cur, n, at)
			i += n
			continue
		}
		n := uint64(1)
		if still {
			n = b.sameLineIterations(cur, min(trips, w.next)-i)
		}
		e.body(b, cur, at)
		if n < 3 {
			n = 1
		} else {
			// The next n - 1 iterations access the same lines, so the cache has the same state
			// before each of them. Instead of these iterations, simulate this iteration again, with
			// the weight n - 1.
			e.note(n)
			outside := e.weight
			e.setWeight(outside * (n - 1))
			e.body(b, cur, at)
			e.setWeight(outside)
		}
		advance(cur, b.steps, n)
		i += n
	}
	w.finish(b)
	s.finish(e)
	if b.varies {
		e.varying--
	}
	e.note(uint64(at), trips-jumped)
	e.depth--
}

// runLeaves runs the given number of iterations of a loop whose items are all leaves.
func (e *engine) runLeaves(b *block, cur []uint64, iterations uint64, at int) {
	if e.few != nil && e.open == 0 && !b.wilds {
		e.runLeavesFewWays(b, cur, iterations, at)
		return
	}
	items, cur, steps := b.items, cur[:len(b.items)], b.steps[:len(b.items)]
	for range iterations {
		for j := range items {
			it := &items[j]
			addr := cur[j]
			cur[j] = addr + steps[j]
			if it.wild {
				addr, _ = e.reads[it.ref].Next()
			}
			if !it.counted {
				continue
			}
			line := addr >> e.shift
			if line < (addr+it.bytes-1)>>e.shift {
				e.queueReference(addr, it.bytes, at+1+j, uint32(it.ref))
				continue
			}
			n := len(e.queue)
			e.queue = e.queue[:n+1]
			e.queue[n] = access{line, uint32(at + 1 + j), uint32(it.ref)}
			if n+1 == queueLength {
				e.flush()
			}
		}
	}
}

// runLeavesFewWays works like runLeaves, but only for a cache with few ways, and without the queue.
func (e *engine) runLeavesFewWays(b *block, cur []uint64, iterations uint64, at int) {
	e.flush()
	f, t, ways := e.few, &e.tally, e.few.ways
	t.weight = e.weight
	items, cur, steps := b.items, cur[:len(b.items)], b.steps[:len(b.items)]
	made, references := uint64(0), uint64(0)
	for j := range items {
		if items[j].counted {
			t.counts[at+1+j].accesses += iterations * e.weight
			references++
		}
	}
	for range iterations {
		for j := range items {
			it := &items[j]
			addr := cur[j]
			cur[j] = addr + steps[j]
			if !it.counted {
				continue
			}
			line, last := addr>>e.shift, (addr+it.bytes-1)>>e.shift
			if set := int(f.set(line)) * ways; f.held[set] != line {
				f.moveToFront(&access{line, uint32(at + 1 + j), uint32(it.ref)}, set, t)
			} else if f.last != nil {
				f.last[set] = uint32(it.ref)
			}
			for line < last {
				line++
				made++
				t.counts[at+1+j].accesses += e.weight
				if set := int(f.set(line)) * ways; f.held[set] != line {
					f.moveToFront(&access{line, uint32(at + 1 + j), uint32(it.ref)}, set, t)
				} else if f.last != nil {
					f.last[set] = uint32(it.ref)
				}
			}
		}
		if made += references; made >= pauseEvery {
			e.done += made
			e.spend(int(made))
			made = 0
		}
	}
	e.done += made
	e.spend(int(made))
}

func advance(cur, steps []uint64, iterations uint64) {
	for i, step := range steps {
		cur[i] += step * iterations
	}
}

func (e *engine) body(b *block, cur []uint64, at int) {
	for i := range b.items {
		it := &b.items[i]
		switch {
		case !it.loop:
			e.accessLeaf(it.block, cur[it.at], at+it.node)
		case !it.events || it.wilds:
			e.runLoop(it.block, cur[it.at:it.at+it.n], at+it.node)
		}
	}
}

// referencesPerIteration estimates the number of references in one iteration of a loop.
func (b *block) referencesPerIteration(cur []uint64) (n float64) {
	for i := range b.items {
		it := &b.items[i]
		switch {
		case it.loop && !it.events:
			n += float64(max(0, int64(cur[it.at]))) * it.referencesPerIteration(cur[it.at+1:it.at+it.n])
		case it.counted:
			n++
		}
	}
	return n
}

// larger than any iteration number
const noIteration = math.MaxUint64
