package loops

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// interpret executes a nest according to its documentation, and returns at most the given number of
// rows.
func interpret(n *Nest, most int) (rows []row) {
	wild := map[Reference][]trace.Addr{}
	for r := range n.streams {
		wild[r] = slices.Collect(n.Wild(r))
	}
	var run func(items []Item, at []uint64)
	run = func(items []Item, at []uint64) {
		for i := range items {
			it := &items[i]
			value := it.Addr + it.Trips // whether one of the trip counts is 0
			for d := range at {
				value += at[d] * uint64(it.Step(d))
			}
			switch {
			case len(rows) >= most:
			case it.IsLoop():
				for j := int64(0); j < int64(value) && len(rows) < most; j++ {
					run(it.Body, append(slices.Clone(at), uint64(j)))
				}
			case it.Wild:
				rows = append(rows, row{it.Ref, wild[it.Ref][0]})
				wild[it.Ref] = wild[it.Ref][1:]
			default:
				rows = append(rows, row{it.Ref, value})
			}
		}
	}
	run(n.Items, nil)
	return rows
}

// drawItems draws random items of a loop body at the given nesting depth.
func drawItems(t *rapid.T, depth int) (items []Item) {
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		var it Item
		if depth < 4 && rapid.IntRange(0, 2).Draw(t, "is a loop") > 0 {
			it = Loop(uint64(rapid.IntRange(-1, 5).Draw(t, "trips")), drawItems(t, depth+1)...)
			for range depth {
				it.Steps = append(it.Steps, rapid.SampledFrom([]int64{0, 0, 0, 1, 2, -1}).Draw(t, "more trips"))
			}
		} else {
			it.Ref = Reference{Site: rapid.Uint32Range(0, 3).Draw(t, "site"), Bytes: 8, Kind: rapid.SampledFrom([]trace.Kind{trace.Load, trace.Store}).Draw(t, "kind")}
			if it.Wild = rapid.IntRange(0, 9).Draw(t, "wild") == 0; !it.Wild {
				it.Addr = rapid.Uint64().Draw(t, "address")
				for range rapid.IntRange(0, depth).Draw(t, "steps") {
					it.Steps = append(it.Steps, rapid.SampledFrom([]int64{0, 8, 64, -800, math.MinInt64}).Draw(t, "step"))
				}
			}
		}
		items = append(items, it)
	}
	return items
}

// TestNestMatchesDescription checks that a built tree expands to the rows of its nest, and that the
// nest can be restored from the tree.
func TestNestMatchesDescription(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 5000
		n := Nest{Items: drawItems(t, 0)}
		for site := range uint32(4) {
			for _, kind := range []trace.Kind{trace.Load, trace.Store} {
				addrs := make([]trace.Addr, most)
				for i := range addrs {
					addrs[i] = mix(uint64(i) ^ uint64(site))
				}
				n.SetWild(Reference{Site: site, Bytes: 8, Kind: kind}, addrs)
			}
		}
		want := interpret(&n, most)
		if len(want) == most {
			t.Skip("too long")
		}
		tree, err := n.Build()
		if err != nil {
			t.Fatalf("%v", err)
		}
		if tree.Rows() != uint64(len(want)) {
			t.Fatalf("%d rows, want %d", tree.Rows(), len(want))
		}
		has := columns{site: true}
		if !tree.has.site {
			has = columns{}
		}
		checkSameRows(t, unfold(t, tree, rapid.IntRange(1, 100).Draw(t, "rows a batch")), rowsIn(batch(want, has)))
		again := tree.Nest()
		checkSameRows(t, interpret(again, most), want)
		twice, err := again.Build()
		if err != nil {
			t.Fatalf("building the restored nest: %v", err)
		}
		if twice.rows != tree.rows || !slices.Equal(twice.params, tree.params) || !reflect.DeepEqual(twice.Nest(), again) {
			t.Fatalf("building the restored nest yields a different tree")
		}
		copied := n.Clone()
		for i := range copied.Items {
			for j := range copied.Items[i].Body {
				copied.Items[i].Body[j].Ref.Site++
			}
		}
		checkSameRows(t, interpret(&n, most), want)
	})
}

// TestFoldedTreesAsNests checks that a Folder's trees can be converted to nests and back.
func TestFoldedTreesAsNests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, has := drawRows(t)
		tree := fold(t, 0, batch(all, has), func() int { return 100 })
		built, err := tree.Nest().Build()
		if err != nil {
			t.Fatalf("%v", err)
		}
		if built.rows != tree.rows || built.has != tree.has {
			t.Fatalf("the rebuilt tree has %d rows and columns %v, want %d and %v", built.rows, built.has, tree.rows, tree.has)
		}
		checkSameRows(t, unfold(t, built, 100), all)
	})
}

// TestCountLargeNests checks that a tree's rows are counted without expanding the tree.
func TestCountLargeNests(t *testing.T) {
	one := Leaf(Reference{Bytes: 8}, 0)
	triangle := func(n uint64) Nest { // three nested loops over k < j < i < n
		k := Item{Body: []Item{one}, Trips: 0, Steps: []int64{0, 1}}
		j := Item{Body: []Item{k}, Trips: 0, Steps: []int64{1}}
		return Nest{Items: []Item{Loop(n, j)}}
	}
	const n = 2000
	for _, c := range []struct {
		name string
		nest Nest
		rows uint64
	}{
		{"box", Nest{Items: []Item{Loop(1<<20, Loop(1<<20, Loop(1<<20, one)))}}, 1 << 60},
		{"box that is too large", Nest{Items: []Item{Loop(1<<30, Loop(1<<30, Loop(1<<30, one)))}}, math.MaxUint64},
		{"triangle", Nest{Items: []Item{Loop(1<<30, Item{Body: []Item{one}, Trips: 1 << 30, Steps: []int64{-1}})}}, 1<<29<<30 + 1<<29},
		{"pyramid", triangle(n), n * (n - 1) * (n - 2) / 6},
		{"never", Nest{Items: []Item{Loop(0, one), Loop(^uint64(0), one)}}, 0},
	} {
		tree, err := c.nest.Build()
		if err != nil || tree.Rows() != c.rows {
			t.Errorf("%s: %v rows, error %v, want %d", c.name, tree.Rows(), err, c.rows)
		}
	}
}

func TestInvalidNests(t *testing.T) {
	one := Leaf(Reference{Bytes: 8}, 0)
	wild := Reference{Site: 1, Bytes: 8}
	for _, c := range []struct {
		nest Nest
		want string
	}{
		{Nest{Items: []Item{one, Loop(2, one, Leaf(Reference{}, 0, 1, 2))}}, "loops: item 1.1: 2 steps, want at most 1, one for each loop around the item"},
		{Nest{Items: []Item{{Trips: 3}}}, "loops: item 0: a loop without a body, want a body with at least one item, or a leaf without a trip count"},
		{Nest{Items: []Item{{Ref: Reference{Kind: 200}}}}, "loops: item 0: kind 200, want a kind of trace record"},
		{Nest{Items: []Item{{Ref: wild, Wild: true}}}, "loops: item 0: an irregular leaf without addresses, want addresses for the leaf's reference, set with SetWild"},
		{Nest{Items: []Item{Loop(2, Item{Ref: wild, Wild: true})}, streams: map[Reference]*stream{wild: {packed: []byte{0}, count: 1}}},
			"loops: the nest: the number of addresses of an irregular reference is 1, want 2, one for each record"},
		{Nest{Items: []Item{Loop(1<<40, Item{Body: []Item{one}, Trips: 5, Steps: []int64{-1}})}},
			"loops: item 0: trip counts that may be negative, and too many iterations to check all of them, want trip counts that are never negative"},
	} {
		_, err := c.nest.Build()
		var wrong *NestError
		if !errors.As(err, &wrong) || err.Error() != c.want {
			t.Errorf("Build: error %v, want a NestError: %s", err, c.want)
		}
	}
}
