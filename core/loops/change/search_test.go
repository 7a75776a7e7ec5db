package change

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"pgregory.net/rapid"
)

// naiveSearch counts every candidate completely, one after another.
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

// TestSearchStopsEarly checks that the result of a search does not change if counts are stopped
// early and several candidates are counted at a time.
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
				got, stopped, err := Search(n, c, most, wanted, nil)
				if want := naiveSearch(n, c, most, wanted); err != nil || stopped || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
					t.Errorf("%s, best %d: %+v, want %+v", name, most, got, want)
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n, small := drawn(t), misses.Cache{LineBytes: 64, Sets: 4, Ways: 2}
		most := rapid.IntRange(1, 4).Draw(t, "most")
		got, _, err := Search(n, small, most, nil, nil)
		if want := naiveSearch(n, small, most, all); err == nil && (len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want)) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
