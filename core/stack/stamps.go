package stack

import "math/bits"

// stamps is an ordered set of time stamps: a bitmap of those that are live, and
// above it a tree that counts them. It answers, for a live stamp, how many live
// ones are newer, in a walk of a few words without a loop or a branch that
// depends on the stamp.
//
//	bits     one bit a stamp
//	narrow   5 levels, fan-out 4: a word covers 256, 1,024, … 65,536 stamps. It
//	         holds four lanes of 16 bits; lane c counts the live stamps in the
//	         children before child c
//	wide     levels of fan-out 4 above: two words of two 32-bit lanes
//
// Lanes hold prefixes, not counts, so a query reads one lane a level. An update
// adds one to every lane behind a child at once: that is the constant step
// shifted by the child's number.
type stamps struct {
	bits   []uint64
	narrow [narrowLevels][]uint64
	wide   [][][2]uint64
	next   uint32 // the stamp that push gives next
	live   uint32 // popcount(bits)
}

const (
	narrowLevels = 5
	// blockStamps is what one word of the highest narrow level covers; the
	// capacity is a multiple of it.
	blockStamps = 1 << 16
	maxStamps   = 1<<32 - blockStamps

	narrowStep = 0x0001_0001_0001_0000 // + 1 in lanes 1, 2, 3
)

// wideStep[c] adds one to the lanes behind child c.
var wideStep = [4][2]uint64{{1 << 32, 1<<32 | 1}, {0, 1<<32 | 1}, {0, 1 << 32}, {0, 0}}

// reset makes room for capacity stamps, of which the first live ones are live.
func (t *stamps) reset(capacity, live uint32) {
	t.next, t.live = live, live
	words := int(capacity >> 6)
	t.bits = resized(t.bits, words)
	for i := range t.bits[:live>>6] {
		t.bits[i] = ^uint64(0)
	}
	if live&63 != 0 {
		t.bits[live>>6] = 1<<(live&63) - 1
	}
	span := uint64(256)
	for level := range t.narrow {
		t.narrow[level] = resized(t.narrow[level], int(uint64(capacity)/span))
		fillNarrow(t.narrow[level], span, uint64(live))
		span *= 4
	}
	t.wide = t.wide[:0]
	for n := (uint64(capacity) + span - 1) / span; uint64(capacity) > span/4; n = (n + 3) / 4 {
		nodes := make([][2]uint64, n)
		for i := range nodes {
			nodes[i] = wideNode(uint64(live), uint64(i)*span, span/4)
		}
		t.wide = append(t.wide, nodes)
		if n == 1 {
			break
		}
		span *= 4
	}
}

// fillNarrow sets the lanes of a level whose words cover span stamps, when
// exactly the stamps below live are live.
func fillNarrow(nodes []uint64, span, live uint64) {
	child := span / 4
	full := child<<16 | 2*child<<32 | 3*child<<48
	for i := range nodes {
		first := uint64(i) * span
		switch {
		case first+span <= live:
			nodes[i] = full
		case first < live:
			have := live - first
			nodes[i] = min(have, child)<<16 | min(have, 2*child)<<32 | min(have, 3*child)<<48
		}
	}
}

// wideNode gives the lanes of a wide node that starts at first and whose
// children cover child stamps each.
func wideNode(live, first, child uint64) [2]uint64 {
	if live <= first {
		return [2]uint64{}
	}
	have := live - first
	return [2]uint64{min(have, child) << 32, min(have, 2*child) | min(have, 3*child)<<32}
}

// full reports whether push has no stamp left to give.
func (t *stamps) full() bool { return int(t.next>>6) >= len(t.bits) }

// push gives a new stamp, newer than all, and makes it live.
func (t *stamps) push() uint32 {
	s := t.next
	t.next++
	t.live++
	w := s >> 6
	t.bits[w] |= 1 << (s & 63)
	for level := range t.narrow {
		t.narrow[level][w>>2] += narrowStep << (w & 3 * 16 & 63)
		w >>= 2
	}
	for _, nodes := range t.wide {
		step, n := &wideStep[w&3], &nodes[w>>2]
		n[0] += step[0]
		n[1] += step[1]
		w >>= 2
	}
	return s
}

// remove ends a live stamp and gives the number of live ones that are newer.
func (t *stamps) remove(s uint32) (newer uint32) {
	w := s >> 6
	word, bit := t.bits[w], uint64(1)<<(s&63)
	t.bits[w] = word &^ bit
	older := uint64(bits.OnesCount64(word & (bit - 1)))
	for level := range t.narrow {
		n := &t.narrow[level][w>>2]
		shift := w & 3 * 16 & 63
		older += *n >> shift & 0xffff
		*n -= narrowStep << shift
		w >>= 2
	}
	for _, nodes := range t.wide {
		step, n := &wideStep[w&3], &nodes[w>>2]
		older += n[w>>1&1] >> (w & 1 * 32) & 0xffffffff
		n[0] -= step[0]
		n[1] -= step[1]
		w >>= 2
	}
	t.live--
	return t.live - uint32(older)
}

// ranks gives, for each word of the bitmap, the live stamps before it: the new
// stamp of s in a compacted set is ranks[s>>6] plus the live ones before it in
// its word.
func (t *stamps) ranks() []uint32 {
	ranks := make([]uint32, len(t.bits))
	var sum uint32
	for i, word := range t.bits {
		ranks[i] = sum
		sum += uint32(bits.OnesCount64(word))
	}
	return ranks
}

// resized gives a slice of n zeros, in the memory of s when that is enough and
// not much too much.
func resized(s []uint64, n int) []uint64 {
	if cap(s) < n || cap(s) > 4*n {
		return make([]uint64, n)
	}
	s = s[:n]
	clear(s)
	return s
}
