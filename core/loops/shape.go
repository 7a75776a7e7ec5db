package loops

import "slices"

// shape is what nodes have in common that differ only in their parameters. A
// leaf has one parameter, its address (0 of a wild one); a loop has its trip count
// and then those of the items of its body in order, as they are in its first
// iteration.
type shape struct {
	ref    uint32 // of a leaf
	loop   bool
	wild   bool
	items  []item   // the body of a loop
	steps  []uint64 // of each parameter of the body, from one iteration to the next: one less than params
	trips  []int32  // which of the parameters are trip counts, ascending
	params int
	leaves int  // in the tree below
	loops  int  // with this one
	height int  // of them, the most inside each other
	leafy  bool // a loop with leaves among its items
	flat   bool // a loop over leaves, no two of them wild ones of the same reference
}

// item is a node of a body.
type item struct {
	shape  uint32
	ref    uint32 // of a leaf
	at     int32  // its first parameter in the body's
	params int32
	loop   bool
	wild   bool
}

// shapes numbers shapes: equal ones have equal numbers.
type shapes struct {
	all   []shape
	first map[uint64]uint32 // 1 + the newest shape with this hash
	next  []uint32          // by shape: 1 + the one before it with the same hash
	parts parts
}

// parts is where the parts of shapes are.
type parts struct {
	items pool[item]
	steps pool[uint64]
	trips pool[int32]
}

// clear forgets all shapes, and keeps their memory for others.
func (s *shapes) clear() {
	s.all, s.next = s.all[:0], s.next[:0]
	clear(s.first)
	s.parts.items.used, s.parts.steps.used, s.parts.trips.used = 0, 0, 0
}

// pool is memory for many short lists.
type pool[T any] struct {
	blocks [][]T
	used   int // of the blocks; the last of them has room still
}

// take gives a list of n.
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

// leaf adds the shape of a leaf, which is new.
func (s *shapes) leaf(ref uint32, wild bool) uint32 {
	return s.add(shape{ref: ref, wild: wild, params: 1, leaves: 1})
}

func (s *shapes) add(n shape) uint32 {
	s.all = append(s.all, n)
	s.next = append(s.next, 0)
	return uint32(len(s.all) - 1)
}

// loop gives the shape of a loop over these shapes.
func (s *shapes) loop(body []uint32, steps []uint64) uint32 {
	h := uint64(len(body))
	for _, of := range body {
		h = mix(h ^ uint64(of))
	}
	for _, step := range steps {
		h = mix(h ^ step)
	}
	for id := s.first[h]; id != 0; id = s.next[id-1] {
		if s.all[id-1].is(body, steps) {
			return id - 1
		}
	}
	id := s.add(s.newLoop(body, steps))
	s.next[id] = s.first[h]
	s.first[h] = id + 1
	return id
}

func (s *shapes) newLoop(body []uint32, steps []uint64) shape {
	n := shape{loop: true, items: s.parts.items.take(len(body)), steps: s.parts.steps.take(len(steps)), params: 1, loops: 1, height: 1}
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

// wildTwice tells whether two wild leaves of a body have the same reference.
func (n *shape) wildTwice() bool {
	for i := range n.items {
		if !n.items[i].wild {
			continue
		}
		for j := range n.items[:i] {
			if n.items[j].wild && n.items[j].ref == n.items[i].ref {
				return true
			}
		}
	}
	return false
}

// is tells whether the loop has this body.
func (n *shape) is(body []uint32, steps []uint64) bool {
	return n.over(body) && slices.Equal(n.steps, steps)
}

// over tells whether the loop is one over these shapes.
func (n *shape) over(body []uint32) bool {
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

// mix is the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
