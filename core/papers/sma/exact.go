package sma

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
)

// Exact contains the exact counts of an array in a loop, summed over the whole run.
type Exact struct {
	Accesses uint64 // number of line accesses
	First    uint64 // number of misses in first iterations, over all runs of the loop
	Rest     uint64 // number of misses in the other iterations
	RestFull uint64 // number of misses in the other iterations, for a fully associative cache with the same number of lines
	RestCold uint64 // number of cold misses, which are included in Rest and RestFull
}

func (e *Exact) add(o Exact) {
	e.Accesses += o.Accesses
	e.First += o.First
	e.Rest += o.Rest
	e.RestFull += o.RestFull
	e.RestCold += o.RestCold
}

// Misses returns the total number of misses.
func (e Exact) Misses() uint64 { return e.First + e.Rest }

// Class derives the class of the array from the counts. Cold misses are neither capacity nor
// conflict misses: if each line of an array misses once, the class is FIRST_MISS, regardless of
// which iteration touches the line first.
func (e Exact) Class() Class {
	again, full := e.Rest-e.RestCold, e.RestFull-e.RestCold
	switch {
	case e.Misses() == 0:
		return AlwaysHit
	case e.Misses() == e.Accesses:
		return AlwaysMiss
	case again == 0:
		return FirstMiss
	case full < again-again/2: // half of the count "again", rounded up
		return ConfMiss
	case e.First == 0:
		return FirstHit
	}
	return CapMiss
}

// Exact returns exact counts for the arrays of loop number n, in the order of [Loop.Arrays]. Exact
// makes the first iteration of the loop a separate loop, and computes the misses of the resulting
// tree with [misses.Run]. Exact returns false for the root, and for loops that do not run in some
// iterations of outer loops. Exact also returns false if package misses cannot count the misses of
// the tree.
func (r *Result) Exact(t *loops.Tree, c misses.Cache, n int) (list []Exact, ok bool) {
	l := &r.Loops[n]
	if l.Around < 0 || t.Rows() == math.MaxUint64 {
		return nil, false
	}
	p := peeler{at: l.Path}
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
		if path := r.Leaves[i].Path; len(path) > len(l.Path) && slices.Equal(path[:len(l.Path)], l.Path) {
			leaves[key(path)] = i
		}
	}
	by, starts := make([]Exact, len(r.Leaves)), counted.Starts()
	for _, node := range p.nodes {
		leaf, known := leaves[key(node.path)]
		if !known {
			continue // a loop, or an event
		}
		start := int(starts[node.top])
		if start < 0 {
			return nil, false // there are too many nodes for separate counts
		}
		e, n := &by[leaf], counted.Nodes[start+node.number]
		e.Accesses += n.Accesses
		if node.place == first {
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
			sum.add(by[leaf])
		}
		list = append(list, sum)
	}
	return list, true
}

func key(path []int) string {
	var b []byte
	for _, i := range path {
		b = binary.AppendUvarint(b, uint64(i))
	}
	return string(b)
}

// itemPlace is the position of an item relative to the loop whose first iteration becomes a separate
// loop.
type itemPlace uint8

const (
	outside itemPlace = iota // outside of the loop
	first                    // in the loop's first iteration
	rest                     // in the other iterations
)

// peeler builds a tree in which the first iteration of the loop at a path is a separate loop.
type peeler struct {
	at    []int
	nodes []peeledNode // nodes of the loop, in pre-order
	// position of the next item in the new tree: the number of the top-level node, and the number
	// of the item within this node
	top, number int
}

// peeledNode is a node of the tree that peeler builds.
type peeledNode struct {
	path        []int // path in the old tree
	place       itemPlace
	top, number int
}

func (p *peeler) items(items []loops.Item, path []int, place itemPlace) (list []loops.Item) {
	for i := range items {
		it := items[i]
		at := append(path[:len(path):len(path)], i)
		if !slices.Equal(at, p.at) {
			list = append(list, p.item(it, at, place))
			continue
		}
		one := it
		one.Trips, one.Steps = 1, nil
		others := secondIteration(it, len(at)-1)
		others.Trips = it.Trips - 1
		list = append(list, p.item(one, at, first), p.item(others, at, rest))
	}
	return list
}

func (p *peeler) item(it loops.Item, at []int, place itemPlace) loops.Item {
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

// secondIteration returns a loop as it is in the second iteration of the enclosing loop at a depth:
// the addresses and trip counts in its body have advanced by one step.
func secondIteration(it loops.Item, depth int) loops.Item {
	it.Body = slices.Clone(it.Body)
	for i := range it.Body {
		in := &it.Body[i]
		step := uint64(in.Step(depth))
		if in.IsLoop() {
			in.Trips += step
			*in = secondIteration(*in, depth)
		} else {
			in.Addr += step
		}
	}
	return it
}
