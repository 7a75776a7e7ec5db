package simulate

import "github.com/stackglass/stackglass/core/trace"

// bound counts the misses of Belady's optimal replacement (OPT) for the accesses to one cache. A
// second pass is not necessary, because whether an access hits under OPT can be decided from the
// preceding accesses. A line can stay in a set between two accesses to the line if fewer than
// ways-1 other lines stay at each access to the set in between. If each decision is made at the
// second of the two accesses, as many lines as possible stay (Carlisle and Lloyd, On the k-coloring
// of intervals, 1995; Jain and Lin, Back to the Future, ISCA 2016, use this decision to retain
// lines). The accessed line always occupies a way, because the simulated caches do not bypass
// lines.
//
// Each set has a list of nodes, which cover the accesses after the last access at which no further
// line could stay. The list contains one node for each line that can still hit. On average, the
// time per access is proportional to the number of ways. Memory use is proportional to the number
// of distinct lines.
type bound struct {
	index
	most   uint32 // maximum number of lines, other than the accessed line, that can stay in a set at an access: ways - 1
	misses uint64
	nodes  []boundNode // the end node of each set's ring, followed by the nodes of lines
	at     map[trace.Line]uint32
	unused []uint32
}

// boundNode covers an interval of accesses to one set. The interval begins after the last access to
// this node's line, and ends with the last access to the next node's line. kept is the maximum
// number of lines that stay in the set at any access of the interval.
type boundNode struct {
	line        trace.Line
	older, next uint32
	kept        uint32
}

func newBound(where index, ways uint64) *bound {
	b := &bound{index: where, most: uint32(min(ways-1, 1<<32-1)), at: map[trace.Line]uint32{}, nodes: make([]boundNode, where.sets)}
	for i := range b.nodes {
		b.nodes[i] = boundNode{older: uint32(i), next: uint32(i)}
	}
	return b
}

// access processes a demand access.
func (b *bound) access(line trace.Line) {
	end := uint32(b.set(line))
	newest := b.nodes[end].older
	n, found := b.at[line]
	switch {
	case !found:
		b.misses++
	case n == newest:
		return
	default:
		// Every node of the list has room for another line, so this line stays and the access hits.
		for i := b.nodes[newest].older; ; i = b.nodes[i].older {
			b.nodes[i].kept++
			if i == n {
				break
			}
		}
		if older := b.nodes[n].older; older != end {
			b.nodes[older].kept = max(b.nodes[older].kept, b.nodes[n].kept)
		}
		b.unlink(n)
	}
	b.add(line, end)
	b.dropOverfull(end)
}

func (b *bound) unlink(n uint32) {
	older, next := b.nodes[n].older, b.nodes[n].next
	b.nodes[older].next, b.nodes[next].older = next, older
	b.unused = append(b.unused, n)
	delete(b.at, b.nodes[n].line)
}

// add inserts a node for a line as the newest node of the line's set.
func (b *bound) add(line trace.Line, end uint32) {
	n := uint32(len(b.nodes))
	if last := len(b.unused) - 1; last >= 0 {
		n, b.unused = b.unused[last], b.unused[:last]
	} else {
		b.nodes = append(b.nodes, boundNode{})
	}
	newest := b.nodes[end].older
	b.nodes[n] = boundNode{line: line, older: newest, next: end}
	b.nodes[newest].next, b.nodes[end].older = n, n
	b.at[line] = n
}

// dropOverfull removes the newest node that has no room for another line, and all older nodes. The
// lines of these nodes cannot stay until a later access. The newest node of the list is exempt,
// because it does not cover any access yet.
func (b *bound) dropOverfull(end uint32) {
	n := b.nodes[b.nodes[end].older].older
	for ; n != end && b.nodes[n].kept < b.most; n = b.nodes[n].older {
	}
	for n != end {
		older := b.nodes[n].older
		b.unlink(n)
		n = older
	}
}
