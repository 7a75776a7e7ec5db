package misses

import (
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// naive is a simple reference implementation. The implementation simulates the accesses one by one,
// and represents each set as a list.
type naive struct {
	e     *engine // provides the layout and the lists of addresses, but does not simulate
	cache Cache
	sets  [][]trace.Line     // most recently used first
	last  map[trace.Line]int // the last reference to each line
	seen  map[trace.Line]bool
	nodes []Counts
	out   []uint64
	loose bool // whether accesses are counted separately for each reference
}

func newNaive(l *layout, c Cache) *naive {
	e := newEngine(l, c.Sets, c.Ways)
	return &naive{e: e, cache: c, sets: make([][]trace.Line, c.Sets), last: map[trace.Line]int{}, seen: map[trace.Line]bool{}, nodes: make([]Counts, len(e.tally.counts)), out: make([]uint64, len(e.reads)*len(l.arrays.columns))}
}

func (n *naive) run() {
	i, tops := 0, n.e.tops
	for node := range n.e.tree.Nodes() {
		at := 0
		if n.loose = len(tops) == 0 || int(tops[0].node) != i; !n.loose {
			at, tops = int(tops[0].start), tops[1:]
		}
		n.node(node, node.Params(), at)
		i++
	}
}

func (n *naive) node(node loops.Node, p []uint64, at int) {
	if !node.IsLoop() {
		r, _, wild := node.Leaf()
		addr := p[0]
		if wild {
			addr, _ = n.e.reads[node.Ref()].Next()
		}
		if n.loose {
			at = n.e.nodes + node.Ref()
		}
		if r.Kind.IsReference() {
			shift := n.e.shift
			line, last := addr>>shift, (addr+max(1, uint64(r.Bytes))-1)>>shift
			n.access(line, at, node.Ref())
			for line++; line <= last; line++ {
				n.access(line, at, node.Ref())
			}
		}
		return
	}
	for i := int64(0); i < int64(p[0]); i++ {
		first, number := 1, at+1
		for j := range node.Len() {
			item, steps := node.Item(j)
			now := slices.Clone(p[first : first+len(steps)])
			for k, step := range steps {
				now[k] += step * uint64(i)
			}
			n.node(item, now, number)
			first += len(steps)
			number += n.e.blocks.of(item).nodes
		}
	}
}

func (n *naive) access(line trace.Line, at, ref int) {
	set := &n.sets[line%n.cache.Sets]
	n.nodes[at].Accesses++
	if i := slices.Index(*set, line); i >= 0 {
		*set = slices.Delete(*set, i, i+1)
	} else {
		n.nodes[at].Misses++
		if !n.seen[line] {
			n.seen[line] = true
			n.nodes[at].Cold++
		}
		if len(*set) == int(n.cache.Ways) {
			last := len(*set) - 1
			n.out[ref*len(n.e.arrays.columns)+int(n.e.arrays.columnOf[n.last[(*set)[last]]])]++
			*set = (*set)[:last]
		}
	}
	*set = slices.Insert(*set, 0, line)
	n.last[line] = ref
}

// content returns the lines of a set, most recently used first.
func content(s state, set int) (lines []trace.Line) {
	if f, ok := s.(*frames); ok {
		return slices.DeleteFunc(slices.Clone(f.held[set*f.ways:(set+1)*f.ways]), func(l trace.Line) bool { return l == noLine })
	}
	k := &s.(*stacks).all[set]
	for at := k.next - 1; at >= k.tail; at-- {
		if k.isLive(at) {
			lines = append(lines, k.order[at])
		}
	}
	return lines
}

// A drawing generates a random nest, in which different references sometimes access the same lines.
type drawing struct {
	t     *rapid.T
	bases []uint64
	left  float64 // maximum number of references that can still be added to the nest
}

func (d *drawing) items(depth int, times float64) (items []loops.Item) {
	t := d.t
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		most := min(60, d.left/times)
		if depth < 4 && most >= 2 && rapid.IntRange(0, 3).Draw(t, "is a loop") > min(depth, 2)-1 {
			trips := uint64(rapid.IntRange(1, int(most)).Draw(t, "trips"))
			it := loops.Item{Trips: trips}
			if depth > 0 && rapid.IntRange(0, 5).Draw(t, "triangular") == 0 {
				for range depth {
					it.Steps = append(it.Steps, rapid.SampledFrom([]int64{0, 1, -1, 2, -3}).Draw(t, "more trips"))
				}
				times *= 2
			}
			it.Body = d.items(depth+1, times*float64(trips))
			items = append(items, it)
			continue
		}
		d.left -= times
		items = append(items, d.leaf(depth))
	}
	return items
}

func (d *drawing) leaf(depth int) loops.Item {
	t := d.t
	r := loops.Reference{
		Site:  rapid.Uint32Range(1, 4).Draw(t, "site"),
		Bytes: rapid.SampledFrom([]uint32{0, 1, 4, 8, 8, 8, 16, 64, 200}).Draw(t, "bytes"),
		Kind:  rapid.SampledFrom([]trace.Kind{trace.Load, trace.Load, trace.Store, trace.Modify, trace.BlockEntry}).Draw(t, "kind"),
	}
	addr := rapid.SampledFrom(d.bases).Draw(t, "base")
	if rapid.IntRange(0, 2).Draw(t, "apart") == 0 {
		addr += uint64(rapid.IntRange(-300, 300).Draw(t, "offset"))
	}
	if rapid.IntRange(0, 20).Draw(t, "wild") == 0 {
		return loops.Item{Ref: r, Wild: true}
	}
	it := loops.Leaf(r, addr)
	for range depth {
		it.Steps = append(it.Steps, rapid.SampledFrom([]int64{0, 0, 8, 8, 8, 64, 128, 256, 800, 4, 24, 192, 4096, -8, -64, -800, 1}).Draw(t, "step"))
	}
	return it
}

// drawTree draws a random tree with at most about maxReferences references.
func drawTree(t *rapid.T, maxReferences float64) *loops.Tree {
	d := drawing{t: t, left: maxReferences}
	base := uint64(0x100000)
	for range rapid.IntRange(1, 4).Draw(t, "arrays") {
		d.bases = append(d.bases, base)
		base += uint64(rapid.SampledFrom([]int{8, 64, 512, 1000, 4096, 65536, 1 << 24}).Draw(t, "apart"))
	}
	n := loops.Nest{Items: d.items(0, 1)}
	d.setWild(&n, n.Items)
	tree, err := n.Build()
	if err != nil || tree.Rows() > uint64(10*maxReferences) {
		t.Skip("the triangular nest is too large")
	}
	return tree
}

// drawTriangle draws a random nest whose inner loops have affine upper bounds.
func drawTriangle(t *rapid.T) *loops.Tree {
	step := func() int64 {
		return rapid.SampledFrom([]int64{0, 8, 8, 64, 512, 800, 1024, -8, -64, 1032}).Draw(t, "step")
	}
	bases := []uint64{0x100000, 0x100000 + uint64(rapid.SampledFrom([]int{64, 4096, 40_000, 1 << 20}).Draw(t, "apart")), 1 << 24}
	leaf := func(depth int) loops.Item {
		it := loops.Leaf(loops.Reference{Site: 1, Bytes: 8}, rapid.SampledFrom(bases).Draw(t, "base"))
		it.Ref.Site = uint32(it.Addr>>12) + uint32(depth)
		for range depth {
			it.Steps = append(it.Steps, step())
		}
		return it
	}
	body := func(depth int) (items []loops.Item) {
		for range rapid.IntRange(1, 3).Draw(t, "references") {
			items = append(items, leaf(depth))
		}
		return items
	}
	grow := rapid.SampledFrom([]int64{1, 1, -1, 2, 0}).Draw(t, "more trips")
	outer := int64(rapid.IntRange(20, 150).Draw(t, "trips"))
	start := int64(rapid.IntRange(0, 100).Draw(t, "inner trips"))
	if grow < 0 {
		start += outer
	}
	inner := upTo(start, []int64{grow}, body(2)...)
	if rapid.IntRange(0, 2).Draw(t, "three deep") == 0 {
		outer = min(outer, 60)
		inner = upTo(start%40, []int64{grow}, append(body(2), upTo(start, []int64{0, rapid.SampledFrom([]int64{0, 1, -1}).Draw(t, "more")}, body(3)...))...)
	}
	items := []loops.Item{inner}
	if rapid.Bool().Draw(t, "before") {
		items = append(body(1), items...)
	}
	if rapid.Bool().Draw(t, "behind") {
		items = append(items, upTo(start+8, []int64{-grow}, body(2)...))
	}
	nest := loops.Nest{Items: []loops.Item{loops.Loop(uint64(outer), items...)}}
	if rapid.Bool().Draw(t, "again") {
		nest.Items = []loops.Item{loops.Loop(2, loops.Loop(uint64(outer), wrapInLoop(items)...))}
	}
	tree, err := nest.Build()
	if err != nil || tree.Rows() > 300_000 {
		t.Skip("the nest is too large")
	}
	return tree
}

// wrapInLoop wraps the items in a further loop, in which all their steps are 0.
func wrapInLoop(items []loops.Item) []loops.Item {
	items = slices.Clone(items)
	for i := range items {
		items[i].Steps = append([]int64{0}, items[i].Steps...)
		items[i].Body = wrapInLoop(items[i].Body)
	}
	return items
}

// For each reference with irregular addresses (field Wild), setWild adds enough addresses for all
// executions of the reference to the nest.
func (d *drawing) setWild(n *loops.Nest, items []loops.Item) {
	for _, it := range items {
		d.setWild(n, it.Body)
		if it.Wild {
			addrs := make([]trace.Addr, 40_000)
			seed := rapid.Uint64().Draw(d.t, "seed")
			for i := range addrs {
				seed = seed*6364136223846793005 + 1442695040888963407
				addrs[i] = d.bases[0] + seed>>52
			}
			n.SetWild(it.Ref, addrs)
		}
	}
}

func drawCache(t *rapid.T) Cache {
	return Cache{
		LineBytes: rapid.SampledFrom([]uint64{8, 16, 32, 64, 64, 64, 128}).Draw(t, "line size in bytes"),
		Sets:      rapid.SampledFrom([]uint64{1, 1, 1, 2, 3, 4, 8, 5, 16, 64}).Draw(t, "sets"),
		Ways:      rapid.SampledFrom([]uint64{1, 2, 2, 3, 4, 8, 17, 40}).Draw(t, "ways"),
	}
}
