package change

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// naiveSearch is a reference implementation of Search. naiveSearch counts all misses of every
// candidate, one candidate at a time.
func naiveSearch(n *loops.Nest, c misses.Cache, most int, wanted func(Change) bool) (found []Outcome) {
	for _, alternatives := range candidates(n, c) {
		var best Outcome
		for _, by := range alternatives {
			if o, err := Try(n, c, nil, by); wanted(by) && err == nil && (best.Change == nil || o.After < best.After) {
				best = o
			}
		}
		if best.Change != nil && best.Saved() >= worthwhile {
			found = append(found, best)
		}
	}
	slices.SortStableFunc(found, func(a, b Outcome) int { return cmp.Compare(a.After, b.After) })
	return found[:min(most, len(found))]
}

func all(Change) bool { return true }

func notTiles(c Change) bool {
	_, tile := c.(Tile)
	return !tile
}

// TestSearchStopsEarly checks that the result of a search does not change if counting stops early,
// or if several candidates are counted at the same time.
func TestSearchStopsEarly(t *testing.T) {
	c := misses.Cache{LineBytes: 64, Sets: 64, Ways: 8}
	columns := func(trips uint64) loops.Item {
		return loops.Loop(trips, loops.Loop(trips, loops.Leaf(load(1), atA, 8, 4096), loops.Leaf(load(2), atB, 4096, 8)))
	}
	for name, n := range map[string]*loops.Nest{
		"product": gemm(70, 560), "product with conflicts": gemm(64, 1024), "columns": {Items: []loops.Item{columns(400)}},
		"twice": {Items: []loops.Item{columns(300), columns(300)}},
	} {
		for _, most := range []int{1, 4} {
			for _, wanted := range []func(Change) bool{all, notTiles} {
				got, stopped, err := Search(n, c, Count, most, wanted, nil)
				if want := naiveSearch(n, c, most, wanted); err != nil || stopped || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
					t.Errorf("%s, at most %d outcomes: Search = %+v, want %+v", name, most, got, want)
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n, small := drawn(t), misses.Cache{LineBytes: 64, Sets: 4, Ways: 2}
		most := rapid.IntRange(1, 4).Draw(t, "most")
		got, _, err := Search(n, small, Count, most, nil, nil)
		if want := naiveSearch(n, small, most, all); err == nil && (len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want)) {
			t.Errorf("Search = %+v, want %+v", got, want)
		}
	})
}

// TestEstimatedMisses checks that, for loops with equal iterations, the estimated number of misses
// is close to the exact number. The test covers loops before and after changes, and small and large
// caches and TLBs.
func TestEstimatedMisses(t *testing.T) {
	for _, size := range [][3]uint64{{180, 420, 150}, {96, 256, 256}, {400, 64, 300}} {
		rows, inner, columns := size[0], size[1], size[2]
		ref := func(site uint32) loops.Reference { return loops.Reference{Site: site, Kind: trace.Load, Bytes: 8} }
		n := &loops.Nest{Items: []loops.Item{loops.Loop(rows, loops.Loop(columns, loops.Loop(inner,
			loops.Leaf(ref(1), 1<<20, int64(8*inner), 0, 8),
			loops.Leaf(ref(2), 1<<24+64, 0, 8, int64(8*columns))),
		))}}
		for _, c := range []misses.Cache{{LineBytes: 64, Sets: 64, Ways: 12}, {LineBytes: 64, Sets: 1024, Ways: 16}, {LineBytes: 4096, Sets: 1, Ways: 64}} {
			for _, changes := range [][]Change{nil, {Interchange{Path{0, 0}, 1}}, {Interchange{Path{0}, 1}}, {Tile{Path{0}, []uint64{0, 16}}}, {Tile{Path{0, 0}, []uint64{0, 128}}}} {
				exact, err := Misses(n, c, nil, changes...)
				if err != nil {
					t.Fatal(err)
				}
				estimate, err := Estimate(n, c, func(uint64) bool { return true }, changes...)
				if err != nil {
					t.Fatal(err)
				}
				if off := float64(estimate)/float64(exact) - 1; max(off, -off) > 0.1 {
					t.Errorf("%v, %v, %v: Estimate = %d misses, want %d (error %+.1f %%)", size, c, changes, estimate, exact, 100*off)
				}
			}
		}
	}
}
