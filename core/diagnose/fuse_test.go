package diagnose

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// TestReuseAcrossLoops uses two loops that access the bytes of one array. The compiler unrolled
// these loops by different factors. The test checks that each load of the second loop uses data
// that the first loop accesses. If the loops iterate over different arrays or different rows, no
// load of the second loop uses data of the first loop.
func TestReuseAcrossLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := uint64(1) << rapid.Uint64Range(0, 5).Draw(t, "bytes")
		unroll := []uint64{rapid.Uint64Range(1, 8).Draw(t, "first"), rapid.Uint64Range(1, 8).Draw(t, "second")}
		sign := rapid.SampledFrom([]int64{1, -1}).Draw(t, "sign")
		body := func(start uint64, row int64, unroll uint64) (list []loops.Item) {
			for i := range unroll {
				ref := loops.Reference{Kind: trace.Load, Bytes: uint32(bytes)}
				list = append(list, loops.Leaf(ref, start+uint64(sign)*i*bytes, row, sign*int64(unroll*bytes)))
			}
			return list
		}
		first := body(1<<20, 1<<12, unroll[0])
		for _, c := range []struct {
			name  string
			start uint64
			row   int64
			want  bool
		}{{"the same", 1 << 20, 1 << 12, true}, {"another array", 1 << 21, 1 << 12, false}, {"another row", 1 << 20, 1 << 13, false}} {
			for i, load := range body(c.start, c.row, unroll[1]) {
				found := false
				for _, before := range first {
					found = found || again(&before, &load, 1)
				}
				if found != c.want {
					t.Errorf("%s: load %d uses data of the first loop: %t, want %t", c.name, i, found, c.want)
				}
			}
		}
	})
}

// TestMoveStatementsIntoInnerLoop checks that, in a nest of three loops, the statements outside the innermost loop can
// be moved into it. After these statements have been moved, any two of the loops can be
// interchanged.
func TestMoveStatementsIntoInnerLoop(t *testing.T) {
	counter := loops.Leaf(loaded, 800)
	n := &loops.Nest{Items: []loops.Item{loops.Loop(3, counter, loops.Loop(4, counter, loops.Loop(5, loops.Leaf(loaded, 1<<20, 8, 4096, 1<<16), counter), counter))}}
	pairs := 0
	for _, of := range sinkable(n) {
		by := change.Interchange{Outer: of.path, Below: of.below}
		if err := by.Apply(of.nest); err != nil {
			t.Errorf("%v: %v", by, err)
			continue
		}
		pairs++
		tree, err := of.nest.Build()
		if err != nil {
			t.Fatal(err)
		}
		if rows := tree.Rows(); len(of.path) == 1 && rows != 3*4*5*5 {
			t.Errorf("change %v: %d references, want %d", by, rows, 3*4*5*5)
		}
	}
	if pairs != 3 {
		t.Errorf("%d pairs of interchangeable loops, want 3", pairs)
	}
	if list := sinkable(&loops.Nest{Items: []loops.Item{loops.Loop(3, loops.Loop(4, counter), loops.Loop(4, counter))}}); len(list) > 0 {
		t.Errorf("%d pairs of interchangeable loops in a nest with adjacent inner loops, want none", len(list))
	}
}

// TestLoopEntries checks that tiling the inner loop increases the number of entries to the
// innermost loop, and that tiling the outer loop does not change it.
func TestLoopEntries(t *testing.T) {
	n := &loops.Nest{Items: []loops.Item{loops.Loop(6, loops.Loop(60, loops.Leaf(loaded, 1<<20, 0, 8)))}}
	for _, c := range []struct {
		trips []uint64
		want  float64
	}{{[]uint64{0, 10}, 36}, {[]uint64{0, 25}, 18}, {[]uint64{2, 0}, 6}} {
		changed := n.Clone()
		if err := (change.Tile{Outer: change.Path{0}, Trips: c.trips}).Apply(changed); err != nil {
			t.Fatal(err)
		}
		if got := entries(changed.Items, 1); got != c.want {
			t.Errorf("tile sizes %v: %v entries, want %v", c.trips, got, c.want)
		}
	}
}

// TestLoopCopies checks that two loops over the same data are treated as different code if they
// have no reference in common.
func TestLoopCopies(t *testing.T) {
	load := func(site uint32, addr trace.Addr, by int64) loops.Item {
		return loops.Leaf(loops.Reference{Site: site, Kind: trace.Load, Bytes: 8}, addr, by)
	}
	first := loops.Loop(40, load(1, 1<<20, 8))
	for name, c := range map[string]struct {
		second loops.Item
		want   bool
	}{
		"another call":       {loops.Loop(40, load(2, 1<<20, 8)), true},
		"unrolled":           {loops.Loop(10, load(2, 1<<20, 32), load(3, 1<<20+8, 32), load(4, 1<<20+16, 32), load(5, 1<<20+24, 32)), true},
		"the same code":      {loops.Loop(40, load(1, 1<<20, 8)), false},
		"other data":         {loops.Loop(40, load(2, 1<<21, 8)), false},
		"the rest":           {loops.Loop(3, load(2, 1<<20+320, 8)), false},
		"a part of the data": {loops.Loop(20, load(2, 1<<20, 8)), false},
	} {
		if got := copies(&first, &c.second, 0); got != c.want {
			t.Errorf("%s: copies = %t, want %t", name, got, c.want)
		}
	}
}
