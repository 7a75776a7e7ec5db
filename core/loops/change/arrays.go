package change

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// Array is a range of bytes that overlapping references cover.
type Array struct{ First, Last trace.Addr }

// Bytes returns the length of the array in bytes.
func (a Array) Bytes() uint64 { return a.Last - a.First + 1 }

func (a Array) has(addr trace.Addr) bool { return a.First <= addr && addr <= a.Last }

func (a Array) String() string {
	return "0x" + strconv.FormatUint(a.First, 16) + "–0x" + strconv.FormatUint(a.Last, 16)
}

// Arrays returns the arrays of a nest, ordered by address. Overlapping ranges of references belong
// to one array. A wild reference has irregular addresses: each of its addresses outside these
// ranges is a separate array.
func Arrays(n *loops.Nest) []Array {
	var all []Array
	wild := map[loops.Reference]bool{}
	eachLeaf(n.Items, nil, func(leaf *loops.Item, around []*loops.Item) {
		if leaf.Wild {
			wild[leaf.Ref] = true
			return
		}
		low, high := byteRange(leaf, around)
		if low <= high {
			all = append(all, Array{low, high})
		}
	})
	for r := range wild {
		bytes := max(1, trace.Addr(r.Bytes))
		for addr := range n.Wild(r) {
			all = append(all, Array{addr, max(addr, addr+bytes-1)})
			if len(all) > 1<<16 {
				all = join(all)
			}
		}
	}
	return join(all)
}

// wrapAroundError returns an error text if a reference wraps around the end of the address space,
// and "" otherwise. A reference that wraps around does not belong to any array, so nothing can be
// moved.
func wrapAroundError(n *loops.Nest) (why string) {
	eachLeaf(n.Items, nil, func(leaf *loops.Item, around []*loops.Item) {
		if low, high := byteRange(leaf, around); !leaf.Wild && low > high {
			why = "a reference wraps around from the highest address to 0"
		}
	})
	return why
}

func join(all []Array) []Array {
	slices.SortFunc(all, func(x, y Array) int { return cmp.Compare(x.First, y.First) })
	joined := all[:0]
	for _, a := range all {
		if last := len(joined) - 1; last >= 0 && a.First <= joined[last].Last {
			joined[last].Last = max(joined[last].Last, a.Last)
		} else {
			joined = append(joined, a)
		}
	}
	return joined
}

// maxNeighbourDistance is the maximum distance in bytes between arrays that move together. If a
// program allocates more memory for an array, the arrays that it allocates immediately afterwards
// also move.
const maxNeighbourDistance = 4096

// move is a change of an array's address.
type move struct {
	from Array
	by   uint64 // change of the address, modulo 2^64
}

// makeRoom returns the moves that make room for an array that grows by the given number of bytes.
// An array moves if it begins close to the end of the grown array or of another moved array. The
// distances between moved arrays do not change.
func makeRoom(arrays []Array, grown Array, bytes uint64) (moves []move) {
	end, by := grown.Last, (bytes+63)&^63
	for _, a := range arrays {
		if a.First <= grown.Last {
			continue
		}
		if a.First-end > max(maxNeighbourDistance, by) {
			break
		}
		moves = append(moves, move{a, by})
		end = a.Last
	}
	return moves
}

func moved(moves []move, addr trace.Addr) trace.Addr {
	i, found := slices.BinarySearchFunc(moves, addr, func(m move, addr trace.Addr) int {
		switch {
		case m.from.Last < addr:
			return -1
		case m.from.First > addr:
			return 1
		}
		return 0
	})
	if found {
		return addr + moves[i].by
	}
	return addr
}

// moveAll applies moves to all references of a nest.
func moveAll(n *loops.Nest, moves []move) {
	if len(moves) == 0 {
		return
	}
	to := func(addr trace.Addr) trace.Addr { return moved(moves, addr) }
	eachLeaf(n.Items, nil, func(leaf *loops.Item, around []*loops.Item) {
		if !leaf.Wild {
			low, _ := byteRange(leaf, around)
			leaf.Addr += to(low) - low
		}
	})
	mapWild(n, to)
}

// mapWild applies a function to the addresses of all wild references.
func mapWild(n *loops.Nest, to func(trace.Addr) trace.Addr) {
	done := map[loops.Reference]bool{}
	eachLeaf(n.Items, nil, func(leaf *loops.Item, _ []*loops.Item) {
		if !leaf.Wild || done[leaf.Ref] {
			return
		}
		done[leaf.Ref] = true
		var addrs []trace.Addr
		changed := false
		for addr := range n.Wild(leaf.Ref) {
			now := to(addr)
			changed = changed || now != addr
			addrs = append(addrs, now)
		}
		if changed {
			n.SetWild(leaf.Ref, addrs)
		}
	})
}
