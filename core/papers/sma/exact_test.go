package sma

import (
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/oracle/kernels"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// lru is a cache with LRU replacement. Each set is a list of lines, most recently used first.
type lru [][]uint64

// hit simulates an access to a line, and reports whether the line was in the cache.
func (c lru) hit(line uint64, ways int) bool {
	set := &c[line%uint64(len(c))]
	i := slices.Index(*set, line)
	if i < 0 {
		*set = slices.Insert(*set, 0, line)
		*set = (*set)[:min(len(*set), ways)]
		return false
	}
	*set = slices.Insert(slices.Delete(*set, i, i+1), 0, line)
	return true
}

// naiveExact simulates a nest, and counts the accesses and misses of each leaf in the iterations of
// the loop that the parameter path selects.
func naiveExact(items []loops.Item, c misses.Cache, path []int) map[string]Exact {
	counts, seen := map[string]Exact{}, map[uint64]bool{}
	sets, full := make(lru, c.Sets), make(lru, 1)
	var run func(items []loops.Item, at []uint64, here []int)
	run = func(items []loops.Item, at []uint64, here []int) {
		for i, it := range items {
			value, where := it.Addr, append(slices.Clone(here), i)
			if it.IsLoop() {
				value = it.Trips
			}
			for d, s := range it.Steps {
				value += at[d] * uint64(s)
			}
			if it.IsLoop() {
				for k := int64(0); k < int64(value); k++ {
					run(it.Body, append(slices.Clone(at), uint64(k)), where)
				}
				continue
			}
			for line := value / c.LineBytes; line <= (value+uint64(it.Ref.Bytes)-1)/c.LineBytes; line++ {
				e := counts[key(where)]
				e.Accesses++
				hit, hitFull := sets.hit(line, int(c.Ways)), full.hit(line, int(c.Lines()))
				if n := len(path); len(where) > n && slices.Equal(where[:n], path) {
					if at[n-1] == 0 && !hit {
						e.First++
					} else if at[n-1] > 0 {
						e.Rest += count(!hit)
						e.RestFull += count(!hitFull)
						e.RestCold += count(!seen[line])
					}
				}
				seen[line] = true
				counts[key(where)] = e
			}
		}
	}
	run(items, nil, nil)
	return counts
}

func count(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// drawItems generates random items for a loop body at the given depth.
func drawItems(t *rapid.T, depth int) (items []loops.Item) {
	for i := range rapid.IntRange(1, 3).Draw(t, "items") {
		if depth < 3 && (depth == 0 || rapid.Bool().Draw(t, "is a loop")) {
			it := loops.Loop(uint64(rapid.IntRange(1, 7).Draw(t, "trips")), drawItems(t, depth+1)...)
			if depth > 0 && rapid.IntRange(0, 3).Draw(t, "triangle") == 0 {
				it.Steps = steps(depth-1, rapid.SampledFrom([]int64{1, 2, -1}).Draw(t, "more trips"))
			}
			items = append(items, it)
			continue
		}
		addr := base + uint64(rapid.SampledFrom([]int{0, 8, 64, 256, 1000, 4096}).Draw(t, "address"))
		it := load(uint32(10*depth+i), addr)
		for range depth {
			it.Steps = append(it.Steps, rapid.SampledFrom([]int64{0, 8, 16, 64, 200, -8, 1024}).Draw(t, "step"))
		}
		items = append(items, it)
	}
	return items
}

func drawCache(t *rapid.T) misses.Cache {
	return misses.Cache{
		LineBytes: rapid.SampledFrom([]uint64{8, 64, 64, 128}).Draw(t, "bytes of a line"),
		Sets:      rapid.SampledFrom([]uint64{1, 2, 3, 4, 8, 16}).Draw(t, "sets"),
		Ways:      rapid.SampledFrom([]uint64{1, 1, 2, 3, 4, 8}).Draw(t, "ways"),
	}
}

// TestExact compares the counts of each array in each loop with a plain simulation that tracks the
// iterations.
func TestExact(t *testing.T) {
	done := 0
	rapid.Check(t, func(t *rapid.T) {
		items, c := drawItems(t, 0), drawCache(t)
		tree, err := (&loops.Nest{Items: items}).Build()
		if err != nil || tree.Rows() > 5000 {
			t.Skip("too long")
		}
		r, err := Analyze(tree, c)
		if err != nil {
			t.Fatal(err)
		}
		for n := range r.Loops {
			got, ok := r.Exact(tree, c, n)
			if !ok {
				continue
			}
			done++
			want := naiveExact(items, c, r.Loops[n].Path)
			for i, of := range r.Loops[n].Arrays {
				var sum Exact
				for _, leaf := range of.Leaves {
					e := want[key(r.Leaves[leaf].Path)]
					sum.Accesses += e.Accesses
					sum.First += e.First
					sum.Rest += e.Rest
					sum.RestFull += e.RestFull
					sum.RestCold += e.RestCold
				}
				if got[i] != sum {
					t.Fatalf("%v, loop %v, array %d: %+v, want %+v", c, r.Loops[n].Path, i, got[i], sum)
				}
			}
		}
	})
	if done == 0 {
		t.Error("Exact failed for every loop")
	}
}

// TestExactClasses checks which class Exact.Class derives from counts.
func TestExactClasses(t *testing.T) {
	for _, c := range []struct {
		counts Exact
		want   Class
	}{
		{Exact{Accesses: 10}, AlwaysHit},
		{Exact{Accesses: 10, First: 2, Rest: 8}, AlwaysMiss},
		{Exact{Accesses: 10, First: 2}, FirstMiss},
		{Exact{Accesses: 10, First: 1, Rest: 5, RestFull: 2}, ConfMiss},
		{Exact{Accesses: 10, Rest: 5, RestFull: 2}, ConfMiss},
		{Exact{Accesses: 10, Rest: 4, RestFull: 2}, FirstHit},
		{Exact{Accesses: 10, First: 1, Rest: 4, RestFull: 2}, CapMiss},
		{Exact{Accesses: 10, First: 1, Rest: 4, RestFull: 9}, CapMiss},
		{Exact{Accesses: 10, First: 1, Rest: 4, RestFull: 4, RestCold: 4}, FirstMiss}, // all misses are cold misses
		{Exact{Accesses: 10, Rest: 4, RestFull: 4, RestCold: 4}, FirstMiss},
		{Exact{Accesses: 10, First: 1, Rest: 5, RestFull: 4, RestCold: 4}, ConfMiss}, // all misses are cold or conflict misses
		{Exact{Accesses: 10, First: 1, Rest: 5, RestFull: 5, RestCold: 4}, CapMiss},
	} {
		if got := c.counts.Class(); got != c.want {
			t.Errorf("class of %+v = %v, want %v", c.counts, got, c.want)
		}
	}
}

// TestExactMatchesThesis checks that the classes derived from exact counts equal the classes of
// the thesis, in cases in which the rules of the thesis are exact.
func TestExactMatchesThesis(t *testing.T) {
	direct := misses.Cache{LineBytes: 64, Sets: 64, Ways: 1}
	items := []loops.Item{loops.Loop(10, loops.Loop(32, load(1, base, 0, 8), load(2, base+way, 0, 8), load(3, base+64*32, 0, 8)))}
	tree, err := (&loops.Nest{Items: items}).Build()
	if err != nil {
		t.Fatal(err)
	}
	r := analyzed(t, direct, items...)
	if got, want := classesByExact(t, r, tree, direct, 1), "ALWAYS_MISS ALWAYS_MISS FIRST_MISS"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// classesByExact classifies the arrays that the leaves of a loop access, using exact counts.
func classesByExact(t *testing.T, r *Result, tree *loops.Tree, c misses.Cache, n int) string {
	t.Helper()
	list, ok := r.Exact(tree, c, n)
	if !ok {
		t.Fatalf("Exact failed for loop %d", n)
	}
	names := make([]string, len(r.Leaves))
	for i, of := range r.Loops[n].Arrays {
		for _, leaf := range of.Leaves {
			names[leaf] = list[i].Class().String()
		}
	}
	text := ""
	for i, name := range names {
		if i > 0 {
			text += " "
		}
		text += name
	}
	return text
}

// TestCountsAddUp checks that, for random trees, the result has as many accesses as the tree, the
// misses do not exceed the accesses, and the levels add up.
func TestCountsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := loops.Nest{Items: drawItems(t, 0)}
		wild := loops.Reference{Site: 99, Bytes: 8}
		n.SetWild(wild, make([]trace.Addr, 10_000))
		if rapid.Bool().Draw(t, "wild") {
			n.Items[0].Body = append(n.Items[0].Body, loops.Item{Ref: wild, Wild: true})
		}
		tree, err := n.Build()
		if err != nil {
			t.Skip("too many wild references")
		}
		r, err := Analyze(tree, drawCache(t))
		if err != nil {
			t.Fatal(err)
		}
		sum := Level{}
		for _, l := range r.Leaves {
			sum.Accesses += l.Levels[0].Accesses
			sum.Misses += l.Levels[0].Misses
			for d, v := range l.Levels {
				if v.Misses < 0 || v.Misses > v.Accesses*(1+1e-9) {
					t.Fatalf("leaf %v: %+v at level %d, want at most as many misses as accesses", l.Path, v, d)
				}
			}
		}
		if !close(sum.Accesses, r.Total.Accesses) || !close(sum.Misses, r.Total.Misses) || !close(sum.Accesses, float64(tree.Rows())) {
			t.Fatalf("the sum of the leaves is %+v and the total is %+v, want equal numbers and %d accesses", sum, r.Total, tree.Rows())
		}
	})
}

func close(x, y float64) bool { return x-y < 1e-6*(1+y) && y-x < 1e-6*(1+y) }

// TestRandomTrees checks that trees with any steps, addresses and trip counts yield either a result
// or an error, even if counts overflow.
func TestRandomTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := loops.Leaf(loops.Reference{Bytes: rapid.Uint32().Draw(t, "bytes"), Kind: trace.Store}, rapid.Uint64().Draw(t, "address"))
		depth := rapid.IntRange(1, 7).Draw(t, "depth")
		for range depth {
			it.Steps = append(it.Steps, rapid.Int64().Draw(t, "step"))
		}
		for d := range depth {
			body := []loops.Item{it}
			if rapid.Bool().Draw(t, "another") {
				body = append(body, loops.Leaf(loops.Reference{Bytes: 8, Site: 1}, rapid.Uint64().Draw(t, "address")))
			}
			it = loops.Loop(1+rapid.Uint64Range(0, 1<<rapid.IntRange(0, 60).Draw(t, "bits")).Draw(t, "trips"), body...)
			if d < depth-1 {
				it.Steps = steps(depth-d-2, rapid.SampledFrom([]int64{0, 0, 1}).Draw(t, "more trips"))
			}
		}
		tree, err := (&loops.Nest{Items: []loops.Item{it}}).Build()
		if err != nil {
			t.Skip("no tree")
		}
		r, err := Analyze(tree, drawCache(t))
		if err == nil && !(r.Total.Misses >= 0 && r.Total.Misses <= r.Total.Accesses*(1+1e-9)) {
			t.Fatalf("%+v", r.Total)
		}
	})
}

func TestInvalidCaches(t *testing.T) {
	strides := kernels.Strides(2, 64, 2)
	tree, err := strides.Nest.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []misses.Cache{{}, {LineBytes: 48, Sets: 1, Ways: 1}, {LineBytes: 64, Ways: 1}, {LineBytes: 64, Sets: 1}, {LineBytes: 64, Sets: 1 << 40, Ways: 1}} {
		if _, err := Analyze(tree, c); err == nil {
			t.Errorf("%v: no error", c)
		}
	}
}
