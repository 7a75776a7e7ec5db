package change

import (
	"errors"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

func load(site uint32) loops.Reference {
	return loops.Reference{Site: site, Bytes: 8, Kind: trace.Load}
}

func store(site uint32) loops.Reference {
	return loops.Reference{Site: site, Bytes: 8, Kind: trace.Store}
}

const atA, atB, atC = 0x10000000, 0x20000000, 0x30000000

// gemm returns the nest of a matrix product whose rows have the given number of bytes.
func gemm(n uint64, row int64) *loops.Nest {
	return &loops.Nest{Items: []loops.Item{loops.Loop(n, loops.Loop(n,
		loops.Leaf(load(1), atC, row, 8),
		loops.Loop(n, loops.Leaf(load(2), atA, row, 0, 8), loops.Leaf(load(3), atB, 0, 8, row)),
		loops.Leaf(store(4), atC, row, 8),
	))}}
}

type access struct {
	ref  loops.Reference
	addr trace.Addr
}

// rowsOfNest returns the references of a nest, in order.
func rowsOfNest(t interface{ Fatalf(string, ...any) }, n *loops.Nest) (all []access) {
	var run func(items []loops.Item, at []uint64)
	wild := map[loops.Reference][]trace.Addr{}
	run = func(items []loops.Item, at []uint64) {
		for i := range items {
			it := &items[i]
			if it.IsLoop() {
				trips := it.Trips
				for d, j := range at {
					trips += j * uint64(stepAt(it, d))
				}
				for j := int64(0); j < int64(trips); j++ {
					run(it.Body, append(slices.Clone(at), uint64(j)))
				}
				continue
			}
			addr := it.Addr
			for d, j := range at {
				addr += j * uint64(stepAt(it, d))
			}
			if it.Wild {
				if wild[it.Ref] == nil {
					wild[it.Ref] = slices.Collect(n.Wild(it.Ref))
				}
				addr = wild[it.Ref][0]
				wild[it.Ref] = wild[it.Ref][1:]
			}
			all = append(all, access{it.Ref, addr})
		}
	}
	run(n.Items, nil)
	return all
}

func missesOf(t *testing.T, n *loops.Nest, c misses.Cache) uint64 {
	t.Helper()
	tree, err := n.Build()
	if err != nil {
		t.Fatal(err)
	}
	r, err := misses.Run(tree, c)
	if err != nil {
		t.Fatal(err)
	}
	return r.Total.Misses
}

// TestPadding uses a product of matrices of 128 × 128 doubles, and pads each row of b by one line.
// Without padding, each column maps to eight sets of a 32 KiB cache. The actual program, compiled
// with the padding, had 266,240 misses.
func TestPadding(t *testing.T) {
	c := misses.Cache{LineBytes: 64, Sets: 64, Ways: 8}
	n := gemm(128, 1024)
	before := missesOf(t, n, c)
	pad := Pad{Array: atB + 5000, Bytes: 64}
	if err := pad.Apply(n); err != nil {
		t.Fatal(err)
	}
	small, want := gemm(16, 1024), gemm(16, 1024)
	want.Items[0].Body[0].Body[1].Body[1].Steps = []int64{0, 8, 1088}
	if err := pad.Apply(small); err != nil {
		t.Fatal(err)
	}
	if got, want := rowsOfNest(t, small), rowsOfNest(t, want); !slices.Equal(got, want) {
		t.Error("the padded nest makes different references than the expected nest")
	}
	if got := missesOf(t, n, c); got != 266240 || before < 2_000_000 {
		t.Errorf("%d misses before padding and %d after, want more than 2,000,000 before and 266,240 after", before, got)
	}
	words := pad.Words(Names{Array: func(trace.Addr) string { return "b" }, Element: func(trace.Addr) uint64 { return 8 }})
	if want := "pad each row of b by 8 elements (64 bytes)"; words != want {
		t.Errorf("Words() = %q, want %q", words, want)
	}
}

// TestSearch checks that Search finds the changes that save the most misses of a matrix product.
func TestSearch(t *testing.T) {
	c := misses.Cache{LineBytes: 64, Sets: 64, Ways: 8}
	found, stopped, err := Search(gemm(128, 1024), c, Count, 3, nil, nil)
	if err != nil || stopped || len(found) == 0 {
		t.Fatalf("Search = %v, stopped %v, error %v, want results", found, stopped, err)
	}
	best := found[0]
	if pad, ok := best.Change.(Pad); !ok || pad.Array != atB || best.Saved() < 0.87 {
		t.Errorf("the best change is %#v, which saves %.3f of the misses, want padding of b, which saves at least 0.87", best.Change, best.Saved())
	}
	for _, o := range found {
		again, err := Try(gemm(128, 1024), c, nil, o.Change)
		if err != nil || again.Before != o.Before || again.After != o.After {
			t.Errorf("Try(%#v) = %+v, error %v, want %+v", o.Change, again, err, o)
		}
		if o.Change.Words(Names{}) == "" || o.Change.Illegal() == "" {
			t.Errorf("%#v has no description", o.Change)
		}
	}
	asked := 0
	if _, stopped, err = Search(gemm(128, 1024), c, Count, 3, nil, func() bool { asked++; return asked < 20 }); !stopped || err != nil {
		t.Errorf("Search: stopped = %v, error %v, want true and no error", stopped, err)
	}
	walk := &loops.Nest{Items: []loops.Item{loops.Loop(512, loops.Loop(512, loops.Leaf(load(1), atA, 8, 4096)))}}
	if found, _, _ = Search(walk, c, Count, 1, nil, nil); len(found) != 1 || found[0].After != 32768 {
		t.Errorf("Search of a traversal by columns = %+v, want a change with 32,768 misses", found)
	}
}

// TestInterchangeTraversal checks that interchanging turns a traversal by columns (262,144 misses)
// into a traversal by rows (32,768 misses).
func TestInterchangeTraversal(t *testing.T) {
	n := &loops.Nest{Items: []loops.Item{loops.Loop(512, loops.Loop(512, loops.Leaf(load(1), atA, 8, 4096)))}}
	c := misses.Cache{LineBytes: 64, Sets: 64, Ways: 4}
	if got := missesOf(t, n, c); got != 262144 {
		t.Errorf("%d misses before the interchange, want 262,144", got)
	}
	if err := (Interchange{Path{0}, 1}).Apply(n); err != nil {
		t.Fatal(err)
	}
	if got := missesOf(t, n, c); got != 32768 {
		t.Errorf("%d misses after the interchange, want 32,768", got)
	}
}

// drawn returns a random, partly rectangular nest over arrays that are far apart.
func drawn(t *rapid.T) *loops.Nest {
	arrays := []trace.Addr{atA, atB, atC}
	if rapid.Bool().Draw(t, "side by side") { // the arrays are at most a page apart
		arrays = []trace.Addr{atB - 4096, atB, atB + 1024}
	}
	depth := 0
	var items func() []loops.Item
	items = func() (list []loops.Item) {
		for range rapid.IntRange(1, 2).Draw(t, "items") {
			if depth < 3 && rapid.IntRange(0, 3).Draw(t, "loop") > 0 {
				it := loops.Item{Trips: rapid.Uint64Range(1, 6).Draw(t, "trips")}
				if rapid.IntRange(0, 5).Draw(t, "triangle") == 0 && depth > 0 {
					it.Steps = make([]int64, depth)
					it.Steps[rapid.IntRange(0, depth-1).Draw(t, "by")] = 1
				}
				depth++
				it.Body = items()
				depth--
				list = append(list, it)
				continue
			}
			it := loops.Leaf(load(uint32(len(list))), rapid.SampledFrom(arrays).Draw(t, "array")+8*rapid.Uint64Range(0, 9).Draw(t, "at"))
			for range depth {
				it.Steps = append(it.Steps, rapid.SampledFrom([]int64{0, 8, 64, 128, -8, 512}).Draw(t, "step"))
			}
			if rapid.IntRange(0, 5).Draw(t, "event") == 0 {
				it = loops.Leaf(loops.Reference{Site: 9, Kind: trace.BlockEntry}, 0)
			}
			list = append(list, it)
		}
		return list
	}
	return &loops.Nest{Items: items()}
}

func isReference(a access) bool { return a.ref.Kind.IsReference() }

func references(all []access) []access {
	return slices.DeleteFunc(slices.Clone(all), func(a access) bool { return !isReference(a) })
}

func compareAccesses(a, b access) int {
	if a.addr != b.addr {
		return int(int64(a.addr - b.addr))
	}
	return int(a.ref.Site) - int(b.ref.Site)
}

// TestChangedOrderKeepsReferences checks that interchanging, tiling and fusing yield the same
// references in a different order. If a change does not apply to a nest, the nest must remain
// unchanged.
func TestChangedOrderKeepsReferences(t *testing.T) {
	applied := 0
	rapid.Check(t, func(t *rapid.T) {
		n := drawn(t)
		was := rowsOfNest(t, n)
		at := Path{rapid.IntRange(0, 1).Draw(t, "item")}
		if rapid.Bool().Draw(t, "deeper") {
			at = append(at, rapid.IntRange(0, 1).Draw(t, "inner"))
		}
		var c Change
		switch rapid.IntRange(0, 2).Draw(t, "change") {
		case 0:
			c = Interchange{at, rapid.IntRange(1, 2).Draw(t, "below")}
		case 1:
			c = Tile{at, rapid.SliceOfN(rapid.Uint64Range(0, 4), 1, 3).Draw(t, "sizes")}
		default:
			c = Fuse{First: at, More: rapid.IntRange(0, 2).Draw(t, "more loops")}
		}
		before := n.Clone()
		err := c.Apply(n)
		now := rowsOfNest(t, n)
		if _, err := n.Build(); err != nil {
			t.Fatalf("%#v: %v", c, err)
		}
		var refused *Error
		switch {
		case errors.As(err, &refused):
			if !slices.Equal(rowsOfNest(t, before), now) {
				t.Fatalf("%#v was rejected, but changed the nest", c)
			}
			return
		case err != nil:
			t.Fatalf("error %v has an unexpected type", err)
		}
		applied++
		a, b := references(was), references(now)
		slices.SortStableFunc(a, compareAccesses)
		slices.SortStableFunc(b, compareAccesses)
		if !slices.Equal(a, b) {
			t.Fatalf("%#v changes %+v to %+v\nwith the references %v, want %v", c, before.Items, n.Items, b, a)
		}
	})
	t.Logf("%d applied", applied)
	if applied == 0 {
		t.Error("no random change was applicable")
	}
}

// TestOrderOfChangedLoops checks that changed loops access memory in the same order as loops that
// were written by hand.
func TestOrderOfChangedLoops(t *testing.T) {
	const n, m, row = 7, 10, 256
	nest := func() *loops.Nest {
		return &loops.Nest{Items: []loops.Item{loops.Loop(n, loops.Loop(m, loops.Leaf(load(1), atA, row, 8), loops.Loop(2, loops.Leaf(load(2), atB, 8, row, 1024))))}}
	}
	body := func(all *[]access, i, j uint64) {
		*all = append(*all, access{load(1), atA + i*row + 8*j})
		for k := range uint64(2) {
			*all = append(*all, access{load(2), atB + 8*i + row*j + 1024*k})
		}
	}
	check := func(c Change, want []access) {
		t.Helper()
		changed := nest()
		if err := c.Apply(changed); err != nil {
			t.Fatal(err)
		}
		if got := rowsOfNest(t, changed); !slices.Equal(got, want) {
			t.Errorf("%#v: got the rows %v, want %v", c, got, want)
		}
	}
	var swapped, tiled, strips []access
	for j := range uint64(m) {
		for i := range uint64(n) {
			body(&swapped, i, j)
		}
	}
	check(Interchange{Path{0}, 1}, swapped)
	const ti, tj = 3, 4
	for ii := uint64(0); ii < n; ii += ti {
		for jj := uint64(0); jj < m; jj += tj {
			for i := ii; i < min(ii+ti, n); i++ {
				for j := jj; j < min(jj+tj, m); j++ {
					body(&tiled, i, j)
				}
			}
		}
	}
	check(Tile{Path{0}, []uint64{ti, tj}}, tiled)
	for jj := uint64(0); jj < m; jj += tj {
		for i := range uint64(n) {
			for j := jj; j < min(jj+tj, m); j++ {
				body(&strips, i, j)
			}
		}
	}
	check(Tile{Path{0}, []uint64{0, tj}}, strips)
	for sizes, want := range map[[2]uint64]bool{{ti, tj}: true, {0, tj}: true, {n, 0}: false, {n + 1, m}: false, {n, m - 1}: true} {
		if got := (Tile{Path{0}, sizes[:]}).Divides(nest()); got != want {
			t.Errorf("Divides with tile sizes %v = %v, want %v", sizes, got, want)
		}
	}
}

// TestGrowingArrayMovesLaterArrays checks that, if an array grows, the arrays directly after it
// move exactly once.
func TestGrowingArrayMovesLaterArrays(t *testing.T) {
	rows := func(site uint32, at trace.Addr) loops.Item {
		return loops.Loop(8, loops.Loop(8, loops.Leaf(load(site), at, 64, 8)))
	}
	n := &loops.Nest{Items: []loops.Item{rows(1, 0x10000), rows(2, 0x10200), rows(3, 0x10400)}}
	if err := (Pad{Array: 0x10000, Bytes: 64}).Apply(n); err != nil {
		t.Fatal(err)
	}
	for i, want := range []loops.Item{loops.Leaf(load(1), 0x10000, 128, 8), loops.Leaf(load(2), 0x10400, 64, 8), loops.Leaf(load(3), 0x10600, 64, 8)} {
		if got := n.Items[i].Body[0].Body[0]; got.Addr != want.Addr || !slices.Equal(got.Steps, want.Steps) {
			t.Errorf("array %d is at 0x%x with steps %v, want 0x%x and %v", i, got.Addr, got.Steps, want.Addr, want.Steps)
		}
	}
	between := &loops.Nest{Items: []loops.Item{loops.Loop(64, loops.Leaf(load(1), 0x10000, 8), loops.Leaf(load(2), 0x10200, 8), loops.Leaf(load(3), 0x10400, 8))}}
	if err := (Records{Arrays: []trace.Addr{0x10000, 0x10400}}).Apply(between); err != nil {
		t.Fatal(err)
	}
	if b := between.Items[0].Body[1]; !slices.Equal(b.Steps, []int64{8}) || b.Addr < 0x10400 {
		t.Errorf("the array in between is at 0x%x with steps %v, want 0x10400 or higher and step 8", b.Addr, b.Steps)
	}
	// with this padding, rows would begin before address 0
	low := &loops.Nest{Items: []loops.Item{loops.Loop(4, loops.Loop(8, loops.Leaf(load(1), 0x30, 64, 8)), loops.Leaf(load(1), 0x28, 64))}}
	_ = (Pad{Array: 0x30, Bytes: 64}).Apply(low)
	over := &loops.Nest{Items: []loops.Item{loops.Loop(4, loops.Leaf(load(1), 8, -8))}}
	if err := (Align{Bytes: 64}).Apply(over); err == nil {
		t.Error("Align accepted a reference that wraps around to address 0")
	}
}

// TestIrregularOrder checks that changes do not reorder irregular references, because the effect on
// their addresses is unknown.
func TestIrregularOrder(t *testing.T) {
	wild := loops.Item{Ref: load(1), Wild: true}
	nest := func(items ...loops.Item) *loops.Nest {
		n := &loops.Nest{Items: items}
		n.SetWild(load(1), []trace.Addr{0, 0x1000, 0, 0x1000})
		return n
	}
	square := nest(loops.Loop(2, loops.Loop(2, wild)))
	for _, c := range []Change{Interchange{Path{0}, 1}, Tile{Path{0}, []uint64{1, 1}}} {
		if err := c.Apply(square); err == nil {
			t.Errorf("%#v was applied to a nest with irregular references", c)
		}
	}
	if err := (Fuse{First: Path{0}}).Apply(nest(loops.Loop(2, wild), loops.Loop(2, wild))); err == nil {
		t.Error("Fuse accepted two loops with the same irregular reference")
	}
	event := loops.Leaf(loops.Reference{Kind: trace.BlockEntry}, 0)
	two := nest(loops.Loop(2, loops.Leaf(load(2), 64, 8)), event, loops.Loop(2, loops.Leaf(load(3), 640, 8)))
	four := func() *loops.Nest {
		n := nest()
		for i := range trace.Addr(4) {
			n.Items = append(n.Items, loops.Loop(2, loops.Leaf(load(uint32(i)), 64+i<<20, 8)))
		}
		return n
	}
	once, inTurn := four(), four()
	if err := (Fuse{First: Path{1}, More: 1}).Apply(once); err != nil || len(once.Items) != 2 {
		t.Errorf("fusing three of four loops: error %v, %d loops, want 2", err, len(once.Items))
	}
	for range 2 {
		if err := (Fuse{First: Path{1}}).Apply(inTurn); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(rowsOfNest(t, once), rowsOfNest(t, inTurn)) {
		t.Error("fusing three loops is not the same as fusing two loops twice")
	}
	if words := (Fuse{First: Path{1}, More: 1}).Words(Names{}); words != "fuse loop 2 with loop 3 and loop 4" {
		t.Errorf("Words() = %q, want \"fuse loop 2 with loop 3 and loop 4\"", words)
	}
	sameLine := Names{Loop: func(Path) string { return "the loop at line 9" }}
	if words := (Interchange{Outer: Path{0}, Below: 1}).Words(sameLine); words != "interchange the loop at line 9 and a loop around it" {
		t.Errorf("Words() = %q, want different words for the two loops", words)
	}
	if err := (Fuse{First: Path{1}, More: 2}).Apply(four()); err == nil {
		t.Error("Fuse accepted four loops, but only three exist")
	}
	if err := (Fuse{First: Path{0}}).Apply(two); err != nil || len(rowsOfNest(t, two)) != 5 {
		t.Errorf("Fuse: error %v, %d references, want 5", err, len(rowsOfNest(t, two)))
	}
}

// TestLayoutsMoveElements checks that a layout change is a one-to-one mapping of addresses, and
// keeps the order of the references.
func TestLayoutsMoveElements(t *testing.T) {
	applied := 0
	rapid.Check(t, func(t *rapid.T) {
		n := drawn(t)
		was := rowsOfNest(t, n)
		var c Change
		switch rapid.IntRange(0, 2).Draw(t, "change") {
		case 0:
			c = Pad{Array: atB + 16, Bytes: 8 * rapid.Uint64Range(1, 20).Draw(t, "bytes")}
		case 1:
			c = Align{Bytes: 1 << rapid.IntRange(3, 12).Draw(t, "log"), Array: rapid.SampledFrom([]trace.Addr{0, atB + 16}).Draw(t, "array")}
		default:
			c = Records{Arrays: []trace.Addr{atC + 16, atA + 16}}
		}
		before := n.Clone()
		err := c.Apply(n)
		now := rowsOfNest(t, n)
		if err != nil {
			if !slices.Equal(rowsOfNest(t, before), now) {
				t.Fatalf("%#v was rejected, but changed the nest", c)
			}
			return
		}
		applied++
		to, from := map[trace.Addr]trace.Addr{}, map[trace.Addr]trace.Addr{}
		if len(was) != len(now) {
			t.Fatalf("%d rows, want %d", len(now), len(was))
		}
		for i := range was {
			if was[i].ref != now[i].ref {
				t.Fatalf("reference %d is %+v, want %+v", i, now[i].ref, was[i].ref)
			}
			if !isReference(was[i]) {
				continue
			}
			if x, known := to[was[i].addr]; known && x != now[i].addr {
				t.Fatalf("%#v of %+v: address 0x%x is mapped to both 0x%x and 0x%x", c, before.Items, was[i].addr, x, now[i].addr)
			}
			if x, known := from[now[i].addr]; known && x != was[i].addr {
				t.Fatalf("%#v of %+v: addresses 0x%x and 0x%x are both mapped to 0x%x", c, before.Items, was[i].addr, x, now[i].addr)
			}
			to[was[i].addr], from[now[i].addr] = now[i].addr, was[i].addr
		}
	})
	t.Logf("%d applied", applied)
	if applied == 0 {
		t.Error("no random change was applicable")
	}
}

// TestFuseUnrolled checks that loops over the same bytes can be fused even if their unrolling
// factors differ.
func TestFuseUnrolled(t *testing.T) {
	load, store := loops.Reference{Site: 1, Bytes: 16, Kind: trace.Load}, loops.Reference{Site: 2, Bytes: 16, Kind: trace.Store}
	n := &loops.Nest{Items: []loops.Item{
		loops.Loop(600, loops.Leaf(load, 0x10000, 32), loops.Leaf(load, 0x10010, 32)),
		loops.Loop(400, loops.Leaf(store, 0x10000, 48), loops.Leaf(store, 0x10010, 48), loops.Leaf(store, 0x10020, 48)),
	}}
	if err := (Fuse{First: Path{0}}).Apply(n); err != nil {
		t.Fatal(err)
	}
	tree, err := n.Build()
	if err != nil {
		t.Fatal(err)
	}
	e, b := tree.Expand(), trace.NewBatch(0)
	at, rows := map[trace.Kind]trace.Addr{trace.Load: 0x10000, trace.Store: 0x10000}, 0
	for e.Next(b) == nil {
		for i, kind := range b.Kind {
			if b.Addr[i] != at[kind] {
				t.Fatalf("row %d: %x, want %x", rows, b.Addr[i], at[kind])
			}
			if ahead := int64(at[trace.Load]) - int64(at[trace.Store]); ahead < 0 || ahead > 96 {
				t.Fatalf("row %d: the loops are %d bytes apart, want 0 to 96", rows, ahead)
			}
			at[kind] += 16
			rows++
		}
	}
	if rows != 2400 {
		t.Error(rows, "rows")
	}
	other := &loops.Nest{Items: []loops.Item{loops.Loop(600, loops.Leaf(load, 0x10000, 16)), loops.Loop(400, loops.Leaf(store, 0x10000, 16))}}
	if err := (Fuse{First: Path{0}}).Apply(other); err == nil {
		t.Error("Fuse accepted loops over different data")
	}
}
