package loops

import (
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

type row struct {
	Reference
	Addr trace.Addr
}

// naive is a simple reference implementation of the expansion of a tree. The function computes the
// parameters of each iteration separately.
func naive(t *Tree) (rows []row) {
	read := make([]cursor, len(t.refs))
	var unfold func(id uint32, p []uint64)
	unfold = func(id uint32, p []uint64) {
		s := t.shapes.all[id]
		if !s.loop {
			addr := p[0]
			if s.wild {
				addr, _ = read[s.ref].next(&t.streams[s.ref])
			}
			rows = append(rows, row{t.refs[s.ref], addr})
			return
		}
		for i := range uint64(max(0, int64(p[0]))) {
			for _, it := range s.items {
				now := make([]uint64, it.params)
				for j := range now {
					now[j] = p[1+int(it.at)+j] + i*s.steps[int(it.at)+j]
				}
				unfold(it.shape, now)
			}
		}
	}
	at := 0
	for _, id := range t.nodes {
		unfold(id, t.params[at:at+t.shapes.all[id].params])
		at += t.shapes.all[id].params
	}
	return rows
}

func rowsIn(b *trace.Batch) []row {
	all := make([]row, b.Len())
	for i := range all {
		r := row{Reference: Reference{Kind: b.Kind[i], Bytes: b.Bytes[i]}, Addr: b.Addr[i]}
		if b.PC != nil {
			r.PC = b.PC[i]
		}
		if b.Site != nil {
			r.Site = b.Site[i]
		}
		if b.Thread != nil {
			r.Thread = b.Thread[i]
		}
		if b.Arg != nil {
			r.Arg = b.Arg[i]
		}
		all[i] = r
	}
	return all
}

// batch converts rows to a batch with the given columns.
func batch(all []row, has columns) *trace.Batch {
	b := trace.NewBatch(len(all))
	if has.thread {
		b.NeedThread()
	}
	if has.pc {
		b.NeedPC()
	}
	if has.site {
		b.NeedSite()
	}
	if has.arg {
		b.NeedArg()
	}
	for _, r := range all {
		b.Append(r.Kind, r.Addr, r.Bytes, r.Thread, r.PC)
		i := b.Len() - 1
		if has.site {
			b.Site[i] = r.Site
		}
		if has.arg {
			b.Arg[i] = r.Arg
		}
	}
	return b
}

// nest is a loop or a reference of a program's source code.
type nest struct {
	site   uint32
	kind   trace.Kind
	base   uint64
	coeffs []uint64 // coefficients of the surrounding loops' induction variables, by depth
	random bool     // whether the address or the trip count depends on data
	sparse bool     // whether some iterations skip the item
	loop   bool
	trips  int
	per    int // the change in the trip count per iteration of the surrounding loop
	body   []nest
}

// drawNest draws random statements of a loop body at the given depth.
func drawNest(t *rapid.T, depth int, sites *uint32) (body []nest) {
	for range rapid.IntRange(1, 4).Draw(t, "statements") {
		*sites++
		n := nest{site: *sites, kind: rapid.SampledFrom([]trace.Kind{trace.Load, trace.Store, trace.Modify, trace.BlockEntry, trace.Call, trace.Return}).Draw(t, "kind")}
		if rapid.IntRange(0, 9).Draw(t, "shared") == 0 {
			n.site = 1
		}
		if n.kind.IsReference() {
			n.base = rapid.Uint64().Draw(t, "base")
			for range depth {
				n.coeffs = append(n.coeffs, rapid.SampledFrom([]uint64{0, 8, 64, 800, ^uint64(7)}).Draw(t, "step"))
			}
			n.random = rapid.IntRange(0, 7).Draw(t, "random") == 0
		}
		n.sparse = rapid.IntRange(0, 15).Draw(t, "sparse") == 0
		if depth < 4 && rapid.IntRange(0, 2).Draw(t, "is a loop") > 0 {
			n.loop = true
			n.trips = rapid.IntRange(0, 7).Draw(t, "trips")
			n.per = rapid.SampledFrom([]int{0, 0, 0, 1, 2, -1}).Draw(t, "more trips")
			n.body = drawNest(t, depth+1, sites)
		}
		body = append(body, n)
	}
	return body
}

// execute executes a nest, and appends its rows until there are "limit" rows.
func execute(body []nest, at []uint64, chance func(uint64) uint64, all []row, limit int) []row {
	for i := range body {
		n := &body[i]
		if len(all) >= limit || n.sparse && chance(4) == 0 {
			continue
		}
		if n.loop {
			trips := n.trips
			if len(at) > 0 {
				trips += n.per * int(at[len(at)-1])
			}
			if n.random {
				trips = int(chance(9))
			}
			for i := range max(trips, 0) {
				all = execute(n.body, append(at, uint64(i)), chance, all, limit)
			}
			continue
		}
		addr := n.base
		for d, c := range n.coeffs {
			addr += c * at[d]
		}
		if n.random {
			addr = chance(1 << 40)
		}
		bytes := uint32(8)
		if !n.kind.IsReference() {
			bytes = 0
		}
		all = append(all, row{Reference{Site: n.site, Kind: n.kind, Bytes: bytes}, addr})
	}
	return all
}

// drawRows draws a random trace that consists of nests, interleaved nests, or random rows.
func drawRows(t *rapid.T) (all []row, has columns) {
	seed := rapid.Uint64().Draw(t, "seed")
	chance := func(n uint64) uint64 {
		seed = mix(seed)
		return seed % n
	}
	const most = 3000
	var sites uint32
	has = columns{thread: rapid.Bool().Draw(t, "threads"), pc: rapid.Bool().Draw(t, "PCs"), site: rapid.IntRange(0, 3).Draw(t, "sites") > 0, arg: rapid.Bool().Draw(t, "args")}
	all = execute(drawNest(t, 0, &sites), nil, chance, nil, most)
	switch rapid.IntRange(0, 3).Draw(t, "mixed") {
	case 0:
		other := execute(drawNest(t, 0, &sites), nil, chance, nil, most)
		all = interleave(all, other, chance)
	case 1:
		for range rapid.IntRange(1, 400).Draw(t, "noise") {
			all = append(all, row{Reference{Site: uint32(chance(5)), Bytes: uint32(chance(3)), Kind: trace.Kind(chance(2))}, chance(1 << chance(60))})
		}
	}
	for i := range all {
		r := &all[i]
		if has.pc {
			r.PC = uint64(r.Site) * 4
		}
		if has.thread {
			r.Thread = r.Site % 2
		}
		if has.arg && r.Kind == trace.BlockEntry {
			r.Arg = uint64(r.Site % 3)
		}
		if !has.site {
			r.Site = 0
		}
	}
	return all, has
}

func interleave(a, b []row, chance func(uint64) uint64) (all []row) {
	for len(a) > 0 && len(b) > 0 {
		n := min(1+int(chance(9)), len(a))
		m := min(1+int(chance(9)), len(b))
		all = append(append(all, a[:n]...), b[:m]...)
		a, b = a[n:], b[m:]
	}
	return append(append(all, a...), b...)
}

// unfold expands a tree in batches of the given number of rows.
func unfold(t tracetest.Failer, tree *Tree, rows int) (all []row) {
	t.Helper()
	e, b := tracetest.Spoil(tree.Expand()), trace.NewBatch(rows)
	for {
		if err := e.Next(b); err != nil {
			if b.Len() > 0 {
				t.Fatalf("Next returned %d rows and the error %v, want rows or an error", b.Len(), err)
			}
			if err.Error() != "EOF" {
				t.Fatalf("%v", err)
			}
			return all
		}
		all = append(all, rowsIn(b)...)
	}
}

// fold folds rows in batches of the given sizes.
func fold(t tracetest.Failer, window int, whole *trace.Batch, rows func() int) *Tree {
	t.Helper()
	f := NewFolder(window)
	var view trace.Batch
	for lo := 0; lo < whole.Len(); {
		hi := min(lo+rows(), whole.Len())
		if err := f.Consume(whole.View(&view, lo, hi)); err != nil {
			t.Fatalf("%v", err)
		}
		lo = hi
	}
	return f.Finish()
}
