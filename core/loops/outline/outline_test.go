package outline_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/trace"
)

// random returns a loop at the given nesting depth, which contains random loops and leaves.
func random(rng *rand.Rand, depth int, site *uint32, falls bool) loops.Item {
	steps := func(n int, most int64) (list []int64) {
		for range n {
			list = append(list, rng.Int64N(most+1))
			if rng.IntN(4) == 0 {
				list[len(list)-1] *= -1
			}
		}
		return list
	}
	it := loops.Item{Trips: 1 + rng.Uint64N(5), Steps: make([]int64, depth)}
	if depth > 0 && rng.IntN(2) == 0 {
		it.Steps = steps(depth, 2)
		for i := range it.Steps {
			if !falls {
				it.Steps[i] = max(it.Steps[i], -it.Steps[i])
			}
		}
	}
	for range 1 + rng.IntN(3) {
		if depth < 3 && rng.IntN(2) == 0 {
			it.Body = append(it.Body, random(rng, depth+1, site, falls))
			continue
		}
		*site++
		kind := trace.Kind(rng.IntN(2))
		if rng.IntN(6) == 0 {
			kind = trace.BlockEntry
		}
		r := loops.Reference{Site: *site, Bytes: 1 << rng.UintN(4), Kind: kind}
		it.Body = append(it.Body, loops.Leaf(r, 1<<20+rng.Uint64N(4000), steps(depth+1, 100)...))
	}
	return it
}

// naive is a reference implementation that executes a nest iteration by iteration.
type naive struct {
	runs, trips, references, own, least, most []uint64 // indexed by loop, in pre-order
	touched                                   map[uint32]map[trace.Addr]bool
}

func size(it *loops.Item) int {
	if !it.IsLoop() {
		return 0
	}
	n := 1
	for i := range it.Body {
		n += size(&it.Body[i])
	}
	return n
}

func (n *naive) run(it *loops.Item, at []uint64, k int, around []int, first int) {
	value := it.Addr
	if it.IsLoop() {
		value = it.Trips
	}
	for i, s := range it.Steps {
		value += at[i] * uint64(s)
	}
	if !it.IsLoop() {
		if !it.Ref.Kind.IsReference() {
			return
		}
		n.own[around[len(around)-1]]++
		for _, l := range around {
			n.references[l]++
		}
		if n.touched != nil && slices.Contains(around, first) && slices.Max(append([]uint64{0}, at[:slices.Index(around, first)]...)) == 0 {
			if n.touched[it.Ref.Site] == nil {
				n.touched[it.Ref.Site] = map[trace.Addr]bool{}
			}
			for b := range uint64(it.Ref.Bytes) {
				n.touched[it.Ref.Site][value+b] = true
			}
		}
		return
	}
	trips := uint64(max(0, int64(value)))
	n.runs[k]++
	n.trips[k] += trips
	n.least[k], n.most[k] = min(n.least[k], trips), max(n.most[k], trips)
	for i := range trips {
		below := k + 1
		for b := range it.Body {
			n.run(&it.Body[b], append(slices.Clone(at), i), below, append(slices.Clone(around), k), first)
			below += size(&it.Body[b])
		}
	}
}

func newNaive(it *loops.Item, first int) *naive {
	n := &naive{}
	for _, list := range []*[]uint64{&n.runs, &n.trips, &n.references, &n.own, &n.least, &n.most} {
		*list = make([]uint64, size(it))
	}
	for i := range n.least {
		n.least[i] = ^uint64(0)
	}
	if first >= 0 {
		n.touched = map[uint32]map[trace.Addr]bool{}
	}
	n.run(it, nil, 0, nil, first)
	return n
}

func outlined(t *testing.T, most int, items ...loops.Item) *outline.Outline {
	t.Helper()
	tree, err := (&loops.Nest{Items: items}).Build()
	if err != nil {
		t.Fatal(err)
	}
	return outline.New(tree, most)
}

func TestOutlineMatchesRun(t *testing.T) {
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var site uint32
		falls := seed%3 == 0
		it := random(rng, 0, &site, falls)
		o := outlined(t, 100, it)
		want := newNaive(&it, -1)
		if o.References != want.references[0] || len(o.Loops) != size(&it) {
			t.Fatalf("seed %d: %d references in %d loops, want %d in %d", seed, o.References, len(o.Loops), want.references[0], size(&it))
		}
		for k, l := range o.Loops {
			at := &it
			for _, number := range o.Path(k)[1:] {
				at = &at.Body[number]
			}
			if k > 0 && size(at) != l.End-k || o.Path(k)[0] != 0 || len(o.Path(k)) != l.Depth+1 {
				t.Fatalf("seed %d: Path(%d) = %v, which does not match the outline", seed, k, o.Path(k))
			}
			if l.Trips != want.trips[k] || l.Runs != want.runs[k] || l.References != want.references[k] || l.Own != want.own[k] {
				t.Fatalf("seed %d: loop %d is %+v, want %d runs, %d iterations, %d references, %d of them outside inner loops", seed, k, l, want.runs[k], want.trips[k], want.references[k], want.own[k])
			}
			if !falls && (l.Least != want.least[k] || l.Most != want.most[k]) {
				t.Fatalf("seed %d: loop %d has trip counts from %d to %d, want %d to %d", seed, k, l.Least, l.Most, want.least[k], want.most[k])
			}
		}
	}
}

func TestArraysMatchTouchedBytes(t *testing.T) {
	exact := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var site uint32
		it := random(rng, 0, &site, false)
		o := outlined(t, 100, it)
		apart := func(r loops.Reference) string { return strconv.Itoa(int(r.Site)) }
		const line = 32
		for k := range o.Loops {
			want := newNaive(&it, k)
			for _, a := range o.Arrays(k, line, apart) {
				set := want.touched[a.Refs[0].Site]
				low, high, lines := ^uint64(0), uint64(0), map[uint64]bool{}
				for addr := range set {
					low, high = min(low, addr), max(high, addr+1)
					lines[addr/line] = true
				}
				if a.Base != low || a.Extent != high-low {
					t.Fatalf("seed %d: the array of loop %d has %d bytes from %#x on, want %d bytes from %#x on", seed, k, a.Extent, a.Base, high-low, low)
				}
				if a.Exact {
					exact++
				} else if a.Touched < uint64(len(set)) {
					t.Fatalf("seed %d: Touched = %d, want at least %d bytes", seed, a.Touched, len(set))
				}
				if a.Exact && (a.Touched != uint64(len(set)) || a.Lines != uint64(len(lines))) {
					t.Fatalf("seed %d: loop %d touches %d bytes in %d lines, want %d in %d", seed, k, a.Touched, a.Lines, len(set), len(lines))
				}
			}
		}
	}
	if exact < 1000 {
		t.Errorf("%d exact arrays, want at least 1000", exact)
	}
}

func load(site uint32) loops.Reference {
	return loops.Reference{Site: site, Bytes: 8, Kind: trace.Load}
}

// gemm returns the tree of a product of matrices of n × n doubles.
func gemm(n uint64) loops.Item {
	n8 := int64(8 * n)
	store := load(4)
	store.Kind = trace.Store
	return loops.Loop(n, loops.Loop(n,
		loops.Leaf(load(1), 3<<32, n8, 8),
		loops.Loop(n, loops.Leaf(load(2), 1<<32, n8, 0, 8), loops.Leaf(load(3), 2<<32, 0, 8, n8)),
		loops.Leaf(store, 3<<32, n8, 8),
	))
}

func TestOutlineOfMatrixProduct(t *testing.T) {
	const n = 1 << 13
	o := outlined(t, 10, gemm(n), gemm(n))
	if len(o.Loops) != 3 || o.References != 2*(2*n*n*n+2*n*n) {
		t.Fatalf("%d loops with %d references, want 3 loops", len(o.Loops), o.References)
	}
	inner := o.Loops[2]
	if inner.Runs != 2*n*n || inner.Trips != 2*n*n*n || inner.References != 4*n*n*n || inner.Depth != 2 || inner.Least != n || inner.Most != n || o.Loops[0].End != 3 {
		t.Errorf("the innermost loop is %+v", inner)
	}
	names := map[uint32]string{1: "C", 2: "A", 3: "B"} // the store has no variable name
	name := func(r loops.Reference) string { return names[r.Site] }
	arrays := o.Arrays(1, 64, name)
	if len(arrays) != 3 || arrays[2].Name != "C" || arrays[2].Stores != 2*n*n || arrays[2].References != 4*n*n {
		t.Fatalf("%+v", arrays)
	}
	a, b, c := arrays[0], arrays[1], arrays[2]
	if a.Extent != 8*n || a.Touched != 8*n || a.Utilisation(64) != 1 || !slices.Equal(a.Strides, []int64{8 * n, 0, 8}) {
		t.Errorf("A is %+v", a)
	}
	if b.Extent != 8*n*n || b.Touched != 8*n*n || !b.Exact || !slices.Equal(b.Strides, []int64{0, 8, 8 * n}) {
		t.Errorf("B is %+v", b)
	}
	if c.Mixed || c.Extent != 8*n || !slices.Equal(c.Strides, []int64{8 * n, 8}) {
		t.Errorf("C is %+v", c)
	}
	if column := o.Arrays(2, 64, name)[1]; column.Name != "B" || column.Utilisation(64) != 0.125 || column.Lines != n || column.Extent != 8*n*(n-1)+8 {
		t.Errorf("the column of B is %+v", column)
	}
}

// TestArraysAreBounded checks that Arrays limits the number of ranges that it returns for a complex
// pattern.
func TestArraysAreBounded(t *testing.T) {
	far := loops.Loop(1<<40, loops.Loop(1<<20, loops.Leaf(load(1), 1<<62, 1<<21, 1<<40)))
	o := outlined(t, 10, far)
	if a := o.Arrays(0, 64, func(loops.Reference) string { return "" })[0]; a.Exact || a.Touched == 0 {
		t.Errorf("%+v", a)
	}
}

func TestOutlineListsLargestNests(t *testing.T) {
	var items []loops.Item
	for i := range uint64(20) {
		items = append(items, loops.Loop(2+i, loops.Leaf(load(uint32(i)), 1<<20, 8)), loops.Leaf(load(99), 5))
	}
	o := outlined(t, 5, items...)
	if len(o.Loops) != 5 || o.Nests != 5 || o.LeftOut != 15 || o.Straight != 20 {
		t.Fatalf("%+v", o)
	}
	sum := o.Straight + o.LeftOutReferences
	for i, l := range o.Loops {
		if sum += l.References; l.First != 2*(15+i) || l.Count != 16+i || len(o.Refs(i)) != 1 {
			t.Errorf("loop %d is %+v", i, l)
		}
	}
	if sum != o.References {
		t.Errorf("the loops have %d references in total, want %d", sum, o.References)
	}
}

func TestArraysOfIrregularReferences(t *testing.T) {
	n := loops.Nest{Items: []loops.Item{loops.Loop(3, loops.Item{Ref: load(1), Wild: true}, loops.Leaf(load(2), 4096, 8))}}
	n.SetWild(load(1), []trace.Addr{5, 1 << 40, 77})
	tree, err := n.Build()
	if err != nil {
		t.Fatal(err)
	}
	o := outline.New(tree, 10)
	arrays := o.Arrays(0, 64, func(loops.Reference) string { return "x" })
	if len(arrays) != 2 || !arrays[0].Wild || arrays[0].References != 3 || arrays[1].Wild {
		t.Errorf("%+v", arrays)
	}
}
