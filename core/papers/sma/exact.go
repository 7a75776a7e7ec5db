package sma

import (
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
)

// Exact are exact counts of an array in a loop, over the whole run, and the class that
// they amount to.
type Exact struct {
	Accesses uint64 // of lines
	First    uint64 // misses in the first iteration of each run of the loop
	Rest     uint64 // misses in the other iterations
	RestFull uint64 // the same, in a fully associative cache of as many lines
	RestCold uint64 // the first accesses of the run to a line, among Rest and RestFull
}

// Misses are all of them.
func (e Exact) Misses() uint64 { return e.First + e.Rest }

// Class is the one that the counts amount to. Cold misses are for no want of room or
// ways: an array of which each line misses once is FIRST_MISS, whichever iteration touches
// the line first.
func (e Exact) Class() Class {
	again, full := e.Rest-e.RestCold, e.RestFull-e.RestCold
	switch {
	case e.Misses() == 0:
		return AlwaysHit
	case e.Misses() == e.Accesses:
		return AlwaysMiss
	case again == 0:
		return FirstMiss
	case full < again-again/2: // half of an odd number is more
		return ConfMiss
	case e.First == 0:
		return FirstHit
	}
	return CapMiss
}

// Exact counts exactly what each array of a loop does: of loop number n of the result, by
// [Loop.Arrays]. The loop's first iteration is taken out of it, as a loop that runs once,
// and the tree that this makes is given to [misses.Run]. ok is false where that cannot be
// done: of the root, of loops that do not run in some iterations of those around, and of
// trees that misses cannot count.
func (r *Result) Exact(t *loops.Tree, c misses.Cache, n int) (list []Exact, ok bool) {
	l := &r.Loops[n]
	if l.Around < 0 {
		return nil, false
	}
	if t.Rows() == math.MaxUint64 {
		return nil, false
	}
	p := peeled{at: l.Path}
	nest := t.Nest()
	nest.Items = p.items(nest.Items, nil, outside)
	apart, err := nest.Build()
	if err != nil || apart.Rows() != t.Rows() {
		return nil, false
	}
	counted, err := misses.Run(apart, c)
	if err != nil {
		return nil, false
	}
	leaves := map[string]int{}
	for i := range r.Leaves {
		if of := r.Leaves[i].Path; len(of) > len(l.Path) && slices.Equal(of[:len(l.Path)], l.Path) {
			leaves[key(of)] = i
		}
	}
	by, starts := make([]Exact, len(r.Leaves)), counted.Starts()
	for _, of := range p.nodes {
		leaf, known := leaves[key(of.path)]
		if !known {
			continue // a loop, or an event
		}
		start := int(starts[of.top])
		if start < 0 {
			return nil, false // too many nodes for counts of each
		}
		e, n := &by[leaf], counted.Nodes[start+of.number]
		e.Accesses += n.Accesses
		if of.place == first {
			e.First += n.Misses
		} else {
			e.Rest += n.Misses
			e.RestFull += n.Full
			e.RestCold += n.Cold
		}
	}
	for i := range l.Arrays {
		var sum Exact
		for _, leaf := range l.Arrays[i].Leaves {
			e := by[leaf]
			sum.Accesses += e.Accesses
			sum.First += e.First
			sum.Rest += e.Rest
			sum.RestFull += e.RestFull
			sum.RestCold += e.RestCold
		}
		list = append(list, sum)
	}
	return list, true
}

// key makes a path a key of a map.
func key(path []int) string {
	var b []byte
	for _, i := range path {
		for ; i >= 0x80; i >>= 7 {
			b = append(b, byte(i)|0x80)
		}
		b = append(b, byte(i))
	}
	return string(b)
}

// where an item is.
type where uint8

const (
	outside where = iota // of the loop whose first iteration is taken out
	first                // in its first iteration
	rest                 // in the others
)

// peeled takes the first iteration out of the loop at a path.
type peeled struct {
	at          []int
	nodes       []peeledNode // of that loop, in pre-order
	top, number int          // of the item that comes: of the node at the top of the new tree, from 0, and in it, in pre-order
}

// peeledNode is a node of the new tree.
type peeledNode struct {
	path        []int // of the old one
	place       where
	top, number int
}

// items gives the items of the new tree.
func (p *peeled) items(items []loops.Item, path []int, place where) (list []loops.Item) {
	for i := range items {
		it := items[i]
		at := append(path[:len(path):len(path)], i)
		if !slices.Equal(at, p.at) {
			list = append(list, p.item(it, at, place))
			continue
		}
		one := it
		one.Trips, one.Steps = 1, nil
		others := advanced(it, len(at)-1)
		others.Trips = it.Trips - 1
		list = append(list, p.item(one, at, first), p.item(others, at, rest))
	}
	return list
}

func (p *peeled) item(it loops.Item, at []int, place where) loops.Item {
	if place != outside {
		p.nodes = append(p.nodes, peeledNode{at, place, p.top, p.number})
	}
	p.number++
	if it.IsLoop() {
		it.Body = p.items(it.Body, at, place)
	}
	if len(at) == 1 {
		p.top++
		p.number = 0
	}
	return it
}

// advanced gives a loop whose body is as it is in the iteration after the first of the
// loop at a depth.
func advanced(it loops.Item, depth int) loops.Item {
	it.Body = slices.Clone(it.Body)
	for i := range it.Body {
		in := &it.Body[i]
		step := uint64(0)
		if depth < len(in.Steps) {
			step = uint64(in.Steps[depth])
		}
		if in.IsLoop() {
			in.Trips += step
			*in = advanced(*in, depth)
		} else {
			in.Addr += step
		}
	}
	return it
}
