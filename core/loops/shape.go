package loops

import "slices"

// shape contains the common properties of nodes that differ only in their parameters. The only
// parameter of a leaf is its address, or 0 if the leaf is wild. The parameters of a loop are its
// trip count, followed by the parameters of its body's items in the first iteration.
type shape struct {
	ref    uint32 // the reference, if the shape is a leaf
	loop   bool
	wild   bool
	items  []item   // the body of a loop
	steps  []uint64 // by parameter of the body: the amount that each iteration adds
	trips  []int32  // indices of the parameters that are trip counts, in ascending order
	params int
	leaves int  // number of leaves in the subtree
	loops  int  // number of loops in the subtree, including the loop itself
	height int  // number of loops in the deepest nest
	leafy  bool // whether the shape is a loop with at least one leaf among its items
	// whether the shape is a loop that contains only leaves, and no two wild leaves have the same
	// reference
	flat bool
}

// item is a node in the body of a loop.
type item struct {
	shape  uint32
	ref    uint32 // the reference, if the shape is a leaf
	at     int32  // index of the item's first parameter among the parameters of the body
	params int32
	loop   bool
	wild   bool
}

// shapes assigns numbers to shapes. Equal loops have equal numbers.
type shapes struct {
	all   []shape
	first map[uint64]uint32 // by hash: 1 + the most recent shape with this hash
	next  []uint32          // by shape: 1 + the previous shape with the same hash, or 0 if there is none
	parts parts
}

// parts contains the memory in which the lists of all shapes are stored.
type parts struct {
	items pool[item]
	steps pool[uint64]
	trips pool[int32]
}

// clear removes all shapes, but keeps their memory for reuse.
func (s *shapes) clear() {
	s.all, s.next = s.all[:0], s.next[:0]
	clear(s.first)
	s.parts.items.used, s.parts.steps.used, s.parts.trips.used = 0, 0, 0
}

// pool is memory for many short lists.
type pool[T any] struct {
	blocks [][]T
	used   int // number of blocks in use; only the last block has free space
}

func (p *pool[T]) take(n int) []T {
	const usual = 4096
	for {
		if p.used > 0 {
			b := &p.blocks[p.used-1]
			if at := len(*b); cap(*b)-at >= n {
				*b = (*b)[:at+n]
				return (*b)[at : at+n : at+n]
			}
		}
		if p.used == len(p.blocks) {
			p.blocks = append(p.blocks, make([]T, max(n, usual)))
		}
		p.blocks[p.used] = p.blocks[p.used][:0]
		p.used++
	}
}

func (s *shapes) leaf(ref uint32, wild bool) uint32 {
	return s.add(shape{ref: ref, wild: wild, params: 1, leaves: 1})
}

func (s *shapes) add(n shape) uint32 {
	s.all = append(s.all, n)
	s.next = append(s.next, 0)
	return uint32(len(s.all) - 1)
}

func (s *shapes) loop(body []uint32, steps []uint64) uint32 {
	h := uint64(len(body))
	for _, id := range body {
		h = mix(h ^ uint64(id))
	}
	for _, step := range steps {
		h = mix(h ^ step)
	}
	for id := s.first[h]; id != 0; id = s.next[id-1] {
		if n := &s.all[id-1]; n.hasBody(body) && slices.Equal(n.steps, steps) {
			return id - 1
		}
	}
	id := s.add(s.newLoop(body, steps))
	s.next[id] = s.first[h]
	s.first[h] = id + 1
	return id
}

func (s *shapes) newLoop(body []uint32, steps []uint64) shape {
	n := shape{
		loop: true, params: 1, loops: 1, height: 1,
		items: s.parts.items.take(len(body)), steps: s.parts.steps.take(len(steps)),
	}
	trips := 1
	for _, of := range body {
		trips += len(s.all[of].trips)
	}
	n.trips = append(s.parts.trips.take(trips)[:0], 0)
	copy(n.steps, steps)
	for i, id := range body {
		of := &s.all[id]
		n.items[i] = item{shape: id, ref: of.ref, at: int32(n.params - 1), params: int32(of.params), loop: of.loop, wild: of.wild}
		for _, trip := range of.trips {
			n.trips = append(n.trips, int32(n.params)+trip)
		}
		n.params += of.params
		n.leaves += of.leaves
		n.loops += of.loops
		n.leafy = n.leafy || !of.loop
		n.height = max(n.height, 1+of.height)
	}
	n.flat = n.loops == 1 && !n.wildTwice()
	return n
}

// wildTwice reports whether any two wild leaves in a body have the same reference.
func (n *shape) wildTwice() bool {
	for i, it := range n.items {
		if it.wild && slices.ContainsFunc(n.items[:i], func(o item) bool { return o.wild && o.ref == it.ref }) {
			return true
		}
	}
	return false
}

// hasBody reports whether the body of the loop consists of the given shapes.
func (n *shape) hasBody(body []uint32) bool {
	if len(n.items) != len(body) {
		return false
	}
	for i := range body {
		if n.items[i].shape != body[i] {
			return false
		}
	}
	return true
}

// mix applies the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// walk is an odometer: a position in the iterations of a nest. The position is at a leaf unless the
// walk is stuck.
type walk struct {
	frames []frame // frames of the loops around the position, outermost first
	depth  int     // number of frames in use; 0 if there is no position
	// depth of the loop in which the last call of settle began an iteration (1 for the outermost
	// loop); 0 if this call began no iteration
	begun int
	stuck bool // whether the position is at a loop with a trip count of 0 or less, in a body without leaves
	skips bool // whether to skip loops with a trip count of 0 or less even in bodies without leaves
}

// frame is a running loop.
type frame struct {
	flat  bool // the field "flat" of the loop's shape
	leafy bool // the field "leafy" of the loop's shape
	items []item
	steps []uint64
	cur   []uint64 // parameters of the body in this iteration, one for each step
	pos   int      // index of the next item
	at    int      // index in cur of the next item's first parameter
	done  uint64   // number of completed iterations
	trips uint64

	counts []int32    // the field "trips" of the loop's shape
	began  uint64     // number of the first row of this iteration; 0 in the first iteration
	listed bool       // whether the field "rows" has been computed
	rows   []sweptRow // the rows of an iteration; empty if iterations have different numbers of rows
}

// enter begins the first iteration of a loop. The slice "start" contains the parameters of the
// loop's body in this iteration.
func (w *walk) enter(s *shape, trips uint64, start []uint64) *frame {
	if w.depth == len(w.frames) {
		w.frames = append(w.frames, frame{})
	}
	t := &w.frames[w.depth]
	w.depth++
	t.flat, t.leafy, t.items, t.steps, t.cur = s.flat, s.leafy, s.items, s.steps, append(t.cur[:0], start...)
	t.pos, t.at, t.done, t.trips = 0, 0, 0, trips
	t.counts, t.began, t.listed = s.trips, 0, false
	return t
}

// settle moves the position forwards to the next leaf or to the end of the nest. Before the call,
// the position must be after an item or before a loop.
func (w *walk) settle(all []shape) {
	w.begun = 0
	for w.depth > 0 {
		t := &w.frames[w.depth-1]
		if t.pos == len(t.items) {
			if t.done++; t.done < t.trips {
				t.nextIteration()
				w.begun = w.depth
				continue
			}
			w.depth--
			w.begun = 0
			if w.depth > 0 {
				above := &w.frames[w.depth-1]
				above.pos++
				above.at += 1 + len(t.cur)
			}
			continue
		}
		if !t.items[t.pos].loop {
			return
		}
		trips := t.cur[t.at]
		if int64(trips) < 1 && (w.skips || t.leafy) {
			t.at += int(t.items[t.pos].params)
			t.pos++
			continue
		}
		if int64(trips) < 1 {
			w.stuck = true
			return
		}
		s := &all[t.items[t.pos].shape]
		w.enter(s, trips, t.cur[t.at+1:t.at+s.params])
	}
}

func (t *frame) nextIteration() {
	t.pos, t.at = 0, 0
	cur := t.cur[:len(t.steps)]
	for i, step := range t.steps {
		cur[i] += step
	}
}

// isIterationEmpty reports whether the current iteration of the outermost loop has had no rows so
// far.
func (w *walk) isIterationEmpty() bool {
	for d := range w.depth {
		if t := &w.frames[d]; d > 0 && t.done > 0 || t.hasPassedItem() {
			return false
		}
	}
	return true
}

// hasPassedItem reports whether the position has passed an item in this iteration. It ignores loops
// that do not run.
func (t *frame) hasPassedItem() bool {
	return slices.ContainsFunc(t.items[:t.pos], func(it item) bool { return !it.loop || int64(t.cur[it.at]) > 0 })
}
