package change

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// A compiler creates copies of references. Each copy has a separate site.
type compiler struct {
	codes []Code // indexed by site
}

// copied returns the copy of a leaf for one iteration of the innermost loop. The argument line is
// the source line. If lanes is greater than 1, the copy is a vector instruction, which accesses the
// elements of several iterations, one per lane.
func (c *compiler) copied(leaf loops.Item, line uint32, iteration int64, lanes uint64) loops.Item {
	it := leaf
	depth := len(leaf.Steps) - 1
	it.Steps = slices.Clone(leaf.Steps)
	it.Addr += uint64(iteration * leaf.Steps[depth])
	if leaf.Steps[depth] < 0 {
		it.Addr -= (lanes - 1) * uint64(leaf.Ref.Bytes)
	}
	it.Ref.Bytes *= uint32(lanes)
	it.Ref.Site = uint32(len(c.codes))
	c.codes = append(c.codes, Code{File: "a.c", Line: line, Column: 5, Lanes: lanes})
	return it
}

func (c *compiler) code(r loops.Reference) Code { return c.codes[r.Site] }

// compile unrolls and vectorises an innermost loop. The parameter depth is the number of loops
// around this loop. Each iteration of the result performs copies·lanes iterations of the original
// loop. compile peels off the first iterations, and executes the last iterations in a separate loop
// or as straight-line code.
func (c *compiler) compile(l loops.Item, depth int, copies, lanes uint64, peeled, rest int, inLoop bool) (list []loops.Item) {
	each := copies * lanes
	beside := func(iteration int64) {
		for i, leaf := range l.Body {
			it := c.copied(leaf, uint32(i+1), iteration, 1)
			it.Steps = it.Steps[:depth]
			list = append(list, it)
		}
	}
	for i := range peeled {
		beside(int64(i))
	}
	main := loops.Item{Trips: (l.Trips - uint64(peeled) - uint64(rest)) / each}
	for _, kind := range []trace.Kind{trace.Load, trace.Store} {
		for i, leaf := range l.Body {
			if leaf.Ref.Kind != kind {
				continue
			}
			by, wide := leaf.Steps[depth], uint64(1)
			if magnitude(by) == uint64(leaf.Ref.Bytes) {
				wide = lanes
			}
			for turn := uint64(0); turn < each; turn += wide {
				it := c.copied(leaf, uint32(i+1), int64(peeled)+int64(turn), wide)
				it.Steps[depth] = by * int64(each)
				main.Body = append(main.Body, it)
			}
		}
	}
	list = append(list, main)
	if done := int64(l.Trips) - int64(rest); inLoop && rest > 1 {
		last := loops.Item{Trips: uint64(rest)}
		for i, leaf := range l.Body {
			last.Body = append(last.Body, c.copied(leaf, uint32(i+1), done, 1))
		}
		list = append(list, last)
	} else {
		for i := range rest {
			beside(done + int64(i))
		}
	}
	return list
}

// TestRollUndoesUnrolling compares rolled nests with the original loops.
func TestRollUndoesUnrolling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var body []loops.Item
		bytes := rapid.SampledFrom([]uint32{4, 8}).Draw(t, "bytes")
		for i := range rapid.IntRange(1, 4).Draw(t, "references") {
			r := loops.Reference{Bytes: bytes, Kind: rapid.SampledFrom([]trace.Kind{trace.Load, trace.Store}).Draw(t, "kind")}
			by := int64(bytes)
			steps := []int64{by, -by, 2 * by, 4096, -800, 0}
			if i == 0 {
				steps = steps[:5]
			}
			body = append(body, loops.Leaf(r, trace.Addr(i+1)<<32, rapid.SampledFrom([]int64{0, 8, 4096}).Draw(t, "outer"), rapid.SampledFrom(steps).Draw(t, "step")))
		}
		// A compiler moves loads before stores, so the loads also come first in the source.
		slices.SortStableFunc(body, func(a, b loops.Item) int { return int(a.Ref.Kind) - int(b.Ref.Kind) })
		if body[0].Steps[1] == 0 {
			body[0].Steps[1] = 4096
		}
		copies, lanes := rapid.Uint64Range(1, 5).Draw(t, "copies"), rapid.SampledFrom([]uint64{1, 2, 4}).Draw(t, "lanes")
		peeled := rapid.IntRange(0, 2).Draw(t, "peeled")
		rest := rapid.IntRange(0, int(copies*lanes)-1).Draw(t, "rest")
		inner := loops.Loop(copies*lanes*rapid.Uint64Range(2, 5).Draw(t, "trips")+uint64(peeled)+uint64(rest), body...)
		c := &compiler{}
		compiled := &loops.Nest{Items: []loops.Item{loops.Loop(3, c.compile(inner, 1, copies, lanes, peeled, rest, rapid.Bool().Draw(t, "in a loop"))...)}}
		before := rowsOfNest(t, compiled)
		r := Roll(compiled, c.code)
		if !slices.Equal(before, rowsOfNest(t, compiled)) {
			t.Fatal("Roll changed the compiled nest")
		}
		lined := func(n *loops.Nest) (list []string) {
			for _, a := range rowsOfNest(t, n) {
				list = append(list, fmt.Sprintf("%v of %d bytes at %x", a.ref.Kind, a.ref.Bytes, a.addr))
			}
			return list
		}
		got, want := lined(r.Nest), lined(&loops.Nest{Items: []loops.Item{loops.Loop(3, inner)}})
		if !slices.Equal(got, want) {
			t.Fatalf("%d copies of %d lanes, %d peeled and %d remaining iterations: got %d references, want %d\ngot  %v\nwant %v", copies, lanes, peeled, rest, len(got), len(want), got[:min(20, len(got))], want[:min(20, len(want))])
		}
		if copies*lanes > 1 {
			for _, it := range compiled.Items[0].Body {
				if it.IsLoop() && it.Trips > 1 && len(it.Body) > len(body) {
					if got := r.Copies(it.Body[0].Ref); got != copies*lanes {
						t.Fatalf("Copies = %d, want %d", got, copies*lanes)
					}
				}
			}
		}
	})
}

// TestRollKeepsReferences checks that Roll does not remove any access to an element.
func TestRollKeepsReferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawn(t)
		if rapid.Bool().Draw(t, "unrolled") {
			n = &loops.Nest{Items: []loops.Item{loops.Loop(2, loops.Loop(3, n.Items...))}}
			eachBelow(n.Items, func(it *loops.Item) {
				if len(it.Steps) > 0 || !it.IsLoop() {
					it.Steps = append([]int64{0, 0}, it.Steps...)
				}
			})
			trimSteps(&n.Items[0], 0)
		}
		lines := rapid.Uint32Range(1, 3).Draw(t, "lines")
		code := func(r loops.Reference) Code { return Code{Line: 1 + r.Site%lines, Lanes: uint64(1 + r.Site%2)} }
		elements := func(n *loops.Nest) map[access]int {
			number := map[access]int{}
			for _, a := range rowsOfNest(t, n) {
				if !a.ref.Kind.IsReference() {
					continue
				}
				lanes := uint64(a.ref.Bytes) / 4
				for lane := range lanes {
					number[access{loops.Reference{Kind: a.ref.Kind}, a.addr + 4*lane}]++
				}
			}
			return number
		}
		before, after := elements(n), elements(Roll(n, code).Nest)
		for of, number := range before {
			if after[of] < number {
				t.Fatalf("%v at %x: %d accesses, want %d", of.ref.Kind, of.addr, after[of], number)
			}
		}
	})
}

// TestRollFindsLoops checks that Compiled and Find convert between the paths of rolled and compiled
// loops.
func TestRollFindsLoops(t *testing.T) {
	c := &compiler{}
	inner := loops.Loop(11, loops.Leaf(loops.Reference{Bytes: 8, Kind: trace.Load}, atA, 0, 8))
	list := c.compile(inner, 1, 4, 1, 0, 3, true)
	list = append(list, loops.Loop(5, c.copied(loops.Leaf(loops.Reference{Bytes: 8, Kind: trace.Load}, atB, 0, 8), 9, 0, 1)))
	r := Roll(&loops.Nest{Items: []loops.Item{loops.Loop(3, list...)}}, c.code)
	if body := r.Nest.Items[0].Body; len(body) != 2 || body[0].Trips != 11 || body[1].Trips != 5 {
		t.Fatalf("%+v", r.Nest.Items)
	}
	for _, of := range []struct{ rolled, compiled Path }{{Path{0}, Path{0}}, {Path{0, 0}, Path{0, 0}}, {Path{0, 1}, Path{0, 2}}} {
		if got := r.Compiled(of.rolled); !slices.Equal(got, of.compiled) {
			t.Errorf("Compiled(%v) = %v, want %v", of.rolled, got, of.compiled)
		}
		if got, ok := r.Find(of.compiled); !ok || !slices.Equal(got, of.rolled) {
			t.Errorf("Find(%v) = %v, want %v", of.compiled, got, of.rolled)
		}
	}
	if got, ok := r.Find(Path{0, 1}); !ok || !slices.Equal(got, Path{0, 0}) {
		t.Errorf("Find of the remainder loop = %v, want 1.1", got)
	}
	if _, ok := r.Find(Path{0, 3}); ok {
		t.Error("Find found a loop that does not exist")
	}
}

// TestRollKeepsLoopsThatWereNotUnrolled uses loops that were not unrolled, but contain similar
// references. Roll must not change these loops.
func TestRollKeepsLoopsThatWereNotUnrolled(t *testing.T) {
	at := func(site uint32, addr trace.Addr, by int64) loops.Item {
		return loops.Leaf(loops.Reference{Site: site, Bytes: 8, Kind: trace.Load}, addr, by)
	}
	for name, body := range map[string][]loops.Item{
		"fields of a structure":       {at(1, atA, 16), at(2, atA+8, 16)},
		"neighbours on the same line": {at(1, atA, 8), at(1, atA+8, 8)},
		"copies that leave a gap":     {at(1, atA, 32), at(1, atA+8, 32)},
		"an array that advances less": {at(1, atA, 32), at(1, atA+8, 32), at(1, atA+16, 32), at(1, atA+24, 32), at(3, atB, 8)},
		"the same element, twice":     {at(1, atA, 0), at(1, atA, 0)},
	} {
		n := &loops.Nest{Items: []loops.Item{loops.Loop(10, body...)}}
		r := Roll(n, func(r loops.Reference) Code { return Code{File: "a.c", Line: 1, Column: r.Site} })
		if !slices.Equal(rowsOfNest(t, n), rowsOfNest(t, r.Nest)) || r.Nest.Items[0].Trips != 10 {
			t.Errorf("%s: %+v", name, r.Nest.Items)
		}
	}
}

// TestElementsOfRolledLoops checks that Elements returns the element size only for loops over
// consecutive elements.
func TestElementsOfRolledLoops(t *testing.T) {
	copies := func(step int64) (body []loops.Item) {
		for i := range int64(8) {
			body = append(body, loops.Leaf(loops.Reference{Bytes: 4, Kind: trace.Load}, atA+trace.Addr(i*step), 8*step))
		}
		return body
	}
	for name, test := range map[string]struct {
		body []loops.Item
		want uint64
	}{
		"one array":             {copies(4), 4},
		"backwards":             {copies(-4), 4},
		"beside a constant":     {append(copies(4), loops.Leaf(loops.Reference{Site: 1, Bytes: 8, Kind: trace.Load}, atB, 0)), 4},
		"a row in each step":    {copies(64), 0},
		"not unrolled":          {copies(4)[:1], 0},
		"beside another stride": {append(copies(4), withStride(copies(64), 1)...), 0},
		"two arrays":            {append(copies(4), withStride(copies(4), 1)...), 4},
	} {
		n := &loops.Nest{Items: []loops.Item{loops.Loop(10, test.body...)}}
		r := Roll(n, func(r loops.Reference) Code { return Code{File: "a.c", Line: r.Site + 1} })
		if got := r.Elements(Path{0}); got != test.want {
			t.Errorf("%s: Elements = %d bytes, want %d", name, got, test.want)
		}
		words := Tile{Outer: Path{0}, Trips: []uint64{16}}.Words(Names{Elements: r.Elements})
		if got := strings.Contains(words, "16 elements (64 bytes)"); got != (test.want == 4) {
			t.Errorf("%s: Words() = %q", name, words)
		}
	}
}

// withStride adds references with a different stride to a second array.
func withStride(list []loops.Item, site uint32) []loops.Item {
	for i := range list {
		list[i].Ref.Site, list[i].Addr = site, list[i].Addr+atB-atA
	}
	return list
}

// TestFuseUnequalLoops checks that the additional iterations of the longer loop are executed at the
// end.
func TestFuseUnequalLoops(t *testing.T) {
	for _, trips := range [][2]uint64{{100, 103}, {108, 100}, {100, 100}} {
		a, b := loops.Leaf(load(1), atA, 0, 8), loops.Leaf(store(2), atB, 0, 16)
		n := &loops.Nest{Items: []loops.Item{loops.Loop(2, loops.Loop(trips[0], a), loops.Loop(trips[1], b))}}
		var want []access
		for range 2 {
			for i := range max(trips[0], trips[1]) {
				if i < trips[0] {
					want = append(want, access{a.Ref, atA + 8*i})
				}
				if i < trips[1] {
					want = append(want, access{b.Ref, atB + 16*i})
				}
			}
		}
		if err := (Fuse{First: Path{0, 0}}).Apply(n); err != nil {
			t.Fatal(trips, err)
		}
		if got := rowsOfNest(t, n); !slices.Equal(got, want) {
			t.Errorf("%v iterations: %d references, want %d", trips, len(got), len(want))
		}
	}
	n := &loops.Nest{Items: []loops.Item{loops.Loop(100, loops.Leaf(load(1), atA, 8)), loops.Loop(150, loops.Leaf(store(2), atB, 8))}}
	if err := (Fuse{First: Path{0}}).Apply(n); err == nil {
		t.Error("Fuse accepted loops of 100 and 150 iterations")
	}
}
