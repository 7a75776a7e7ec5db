package misses

import (
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// naive is a result in forty lines: every access, one by one, through lists.
type naive struct {
	e     *engine // for numbers of nodes and columns of arrays
	cache Cache
	sets  [][]trace.Line // most recent first
	seen  map[trace.Line]bool
	nodes []Counts
	out   []uint64
}

func newNaive(t *loops.Tree, c Cache) *naive {
	e := newEngine(newLayout(t, c.LineBytes), c.Sets, c.Ways)
	return &naive{e: e, cache: c, sets: make([][]trace.Line, c.Sets), seen: map[trace.Line]bool{}, nodes: make([]Counts, len(e.tally.counts)), out: make([]uint64, len(e.tally.out))}
}

func (n *naive) run() {
	at := 0
	for node := range n.e.tree.Nodes() {
		if node.IsLoop() {
			n.node(node, node.Params(), at)
			at += n.e.blocks.of(node).nodes
		} else {
			n.node(node, node.Params(), n.e.nodes+node.Ref())
		}
	}
}

func (n *naive) node(node loops.Node, p []uint64, at int) {
	if !node.IsLoop() {
		r, _, wild := node.Leaf()
		addr := p[0]
		if wild {
			addr, _ = n.e.reads[node.Ref()].Next()
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
			n.out[int(n.e.columns[ref])*n.e.tally.arrays.shown+int(n.e.tally.arrays.of((*set)[last]))]++
			*set = (*set)[:last]
		}
	}
	*set = slices.Insert(*set, 0, line)
}

// drawnNest is a random nest whose references meet now and then.
type drawing struct {
	t     *rapid.T
	bases []uint64
	left  float64 // references that it may still make
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
	if rapid.IntRange(0, 40).Draw(t, "wild") == 0 {
		return loops.Item{Ref: r, Wild: true}
	}
	it := loops.Leaf(r, addr)
	for range depth {
		it.Steps = append(it.Steps, rapid.SampledFrom([]int64{0, 0, 8, 8, 8, 64, 128, 256, 800, 4, 24, 192, 4096, -8, -64, -800, 1}).Draw(t, "step"))
	}
	return it
}

// drawTree draws a tree of about so many references at most.
func drawTree(t *rapid.T, most float64) *loops.Tree {
	d := drawing{t: t, left: most}
	base := uint64(0x100000)
	for range rapid.IntRange(1, 4).Draw(t, "arrays") {
		d.bases = append(d.bases, base)
		base += uint64(rapid.SampledFrom([]int{8, 64, 512, 1000, 4096, 65536, 1 << 24}).Draw(t, "apart"))
	}
	n := loops.Nest{Items: d.items(0, 1)}
	d.setWild(&n, n.Items)
	tree, err := n.Build()
	if err != nil || tree.Rows() > uint64(10*most) {
		t.Skip("triangles that came out too large")
	}
	return tree
}

// setWild gives every wild reference enough addresses.
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

// drawCache draws a geometry.
func drawCache(t *rapid.T) Cache {
	return Cache{
		LineBytes: rapid.SampledFrom([]uint64{8, 16, 32, 64, 64, 64, 128}).Draw(t, "bytes of a line"),
		Sets:      rapid.SampledFrom([]uint64{1, 1, 1, 2, 3, 4, 8, 5, 16, 64}).Draw(t, "sets"),
		Ways:      rapid.SampledFrom([]uint64{1, 2, 2, 3, 4, 8, 17, 40}).Draw(t, "ways"),
	}
}
