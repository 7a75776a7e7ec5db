package stack

import "math/bits"

// stamps is an ordered set of timestamps. The set consists of a bitmap of live stamps and a tree
// that counts the live stamps. To count the live stamps that are newer than a given stamp, the set
// reads only a few words. No loop or branch depends on the stamp.
//
//	block   65,536 stamps: their bitmap, and five levels of nodes of fan-out 4,
//	        which cover 256, 1,024, … 65,536 stamps. A node is a word of four
//	        lanes of 16 bits; lane c counts the live stamps in the node's
//	        children before child c
//	wide    levels of fan-out 4 above the blocks: nodes of four 32-bit lanes
//
// Lanes contain prefix sums, so a query reads one lane per level. An update adds one to all lanes
// after a child in a single addition. The addend is a constant, shifted by the position of the
// child.
type stamps struct {
	blocks []block
	wide   [][][2]uint64
	next   uint32 // the next stamp that push returns
	live   uint32 // number of live stamps: the sum of popcount(bits) over the blocks
}

// block contains the bitmap and the nodes of 65,536 stamps, in three pages of memory. With separate
// arrays for the levels, an access would touch six pages.
type block struct {
	bits  [blockWords]uint64
	by256 [256]uint64 // each node covers 256 stamps; in the next levels, 1,024, 4,096, 16,384 and 65,536 stamps
	by1k  [64]uint64
	by4k  [16]uint64
	by16k [4]uint64
	by64k [1]uint64
}

const (
	blockStamps = 1 << 16
	blockWords  = blockStamps / 64
	blockBytes  = 8 * (blockWords + 256 + 64 + 16 + 4 + 1)
	maxStamps   = 1<<32 - 4*blockStamps

	laneStep = 0x0001_0001_0001_0000 // adds one to lanes 1, 2 and 3
)

// wideStep[c] adds one to the lanes after child c.
var wideStep = [4][2]uint64{{1 << 32, 1<<32 | 1}, {0, 1<<32 | 1}, {0, 1 << 32}, {0, 0}}

// reset allocates memory for at least the given number of stamps (capacity). After the call, the
// first stamps are live, and the parameter "live" is their number.
func (t *stamps) reset(capacity, live uint32) {
	t.next, t.live = live, live
	n := int((uint64(capacity) + blockStamps - 1) / blockStamps)
	if cap(t.blocks) < n || cap(t.blocks) > 4*n {
		t.blocks = make([]block, n)
	}
	t.blocks = t.blocks[:n]
	for i := range t.blocks {
		first := uint64(i) * blockStamps
		t.blocks[i].fill(uint32(min(max(uint64(live), first)-first, blockStamps)))
	}
	t.wide = t.wide[:0]
	for child := uint64(blockStamps); n > 1; child *= 4 {
		n = (n + 3) / 4
		nodes := make([][2]uint64, n)
		for i := range nodes {
			first := uint64(i) * 4 * child
			have := max(uint64(live), first) - first
			nodes[i] = [2]uint64{min(have, child) << 32, min(have, 2*child) | min(have, 3*child)<<32}
		}
		t.wide = append(t.wide, nodes)
	}
}

// fill sets the bitmap and the nodes of a block so that the first stamps of the block are live, and
// all other stamps are not. The parameter "live" is the number of live stamps.
func (b *block) fill(live uint32) {
	clear(b.bits[:])
	for i := range b.bits[:live/64] {
		b.bits[i] = ^uint64(0)
	}
	if live%64 != 0 {
		b.bits[live/64] = 1<<(live%64) - 1
	}
	child := uint64(64)
	for _, nodes := range [...][]uint64{b.by256[:], b.by1k[:], b.by4k[:], b.by16k[:], b.by64k[:]} {
		for i := range nodes {
			first := uint64(i) * 4 * child
			have := max(uint64(live), first) - first
			nodes[i] = min(have, child)<<16 | min(have, 2*child)<<32 | min(have, 3*child)<<48
		}
		child *= 4
	}
}

// count recomputes the counts from the bitmaps of live stamps.
func (t *stamps) count() {
	t.live = 0
	perBlock, counts := make([]uint64, len(t.blocks)), make([]uint64, blockWords)
	for i := range t.blocks {
		b := &t.blocks[i]
		for w, word := range b.bits {
			counts[w] = uint64(bits.OnesCount64(word))
		}
		for _, nodes := range [...][]uint64{b.by256[:], b.by1k[:], b.by4k[:], b.by16k[:], b.by64k[:]} {
			for n := range nodes {
				c := counts[4*n : 4*n+4]
				nodes[n] = c[0]<<16 | (c[0]+c[1])<<32 | (c[0]+c[1]+c[2])<<48
				counts[n] = c[0] + c[1] + c[2] + c[3]
			}
		}
		perBlock[i] = counts[0]
		t.live += uint32(counts[0])
	}
	for _, nodes := range t.wide {
		for n := range nodes {
			var c [4]uint64
			copy(c[:], perBlock[4*n:min(4*n+4, len(perBlock))])
			nodes[n] = [2]uint64{c[0] << 32, (c[0] + c[1]) | (c[0]+c[1]+c[2])<<32}
			perBlock[n] = c[0] + c[1] + c[2] + c[3]
		}
		perBlock = perBlock[:len(nodes)]
	}
}

// older returns, for each word of the bitmaps, the number of live stamps in all earlier words.
// Callers that need the ranks of many stamps use this result, because a call of rank for each stamp
// would be slower.
func (t *stamps) older() []uint32 {
	older, sum := make([]uint32, 0, len(t.blocks)*blockWords), uint32(0)
	for i := range t.blocks {
		for _, word := range t.blocks[i].bits {
			older = append(older, sum)
			sum += uint32(bits.OnesCount64(word))
		}
	}
	return older
}

// full reports whether there is no stamp left for push.
func (t *stamps) full() bool { return int(t.next/blockStamps) >= len(t.blocks) }

// push adds and returns a new live stamp, which is newer than all other stamps.
func (t *stamps) push() uint32 {
	s := t.next
	t.next++
	t.live++
	b := &t.blocks[s/blockStamps]
	w := s / 64 % blockWords
	b.bits[w] |= 1 << (s & 63)
	b.by256[w>>2] += laneStep << (w & 3 * 16)
	b.by1k[w>>4] += laneStep << (w >> 2 & 3 * 16)
	b.by4k[w>>6] += laneStep << (w >> 4 & 3 * 16)
	b.by16k[w>>8] += laneStep << (w >> 6 & 3 * 16)
	b.by64k[0] += laneStep << (w >> 8 & 3 * 16)
	w = s / blockStamps
	for _, nodes := range t.wide {
		step, n := &wideStep[w&3], &nodes[w>>2]
		n[0] += step[0]
		n[1] += step[1]
		w >>= 2
	}
	return s
}

// remove removes a live stamp and returns the number of newer live stamps.
func (t *stamps) remove(s uint32) (newer uint32) {
	b := &t.blocks[s/blockStamps]
	w := s / 64 % blockWords
	word, bit := b.bits[w], uint64(1)<<(s&63)
	b.bits[w] = word &^ bit
	older := uint64(bits.OnesCount64(word & (bit - 1)))
	older += removeFromNode(&b.by256[w>>2], w)
	older += removeFromNode(&b.by1k[w>>4], w>>2)
	older += removeFromNode(&b.by4k[w>>6], w>>4)
	older += removeFromNode(&b.by16k[w>>8], w>>6)
	older += removeFromNode(&b.by64k[0], w>>8)
	w = s / blockStamps
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

// removeFromNode subtracts a removed stamp from the prefix sums of a node, and returns the number
// of live stamps in the preceding children. The last two bits of the parameter "child" are the
// index of the child that contains the stamp.
func removeFromNode(node *uint64, child uint32) (before uint64) {
	n, shift := *node, child&3*16
	*node = n - laneStep<<shift
	return n >> shift & 0xffff
}

// rank returns the number of live stamps that are older than s. Renumbering replaces each live
// stamp by its rank.
func (t *stamps) rank(s uint32) uint32 {
	b := &t.blocks[s/blockStamps]
	w := s / 64 % blockWords
	rank := uint64(t.olderInWord(s))
	rank += lane(b.by256[w>>2], w) + lane(b.by1k[w>>4], w>>2) + lane(b.by4k[w>>6], w>>4) +
		lane(b.by16k[w>>8], w>>6) + lane(b.by64k[0], w>>8)
	w = s / blockStamps
	for _, nodes := range t.wide {
		rank += nodes[w>>2][w>>1&1] >> (w & 1 * 32) & 0xffffffff
		w >>= 2
	}
	return uint32(rank)
}

// olderInWord returns the number of live stamps that are older than s and in the same word of the
// bitmap.
func (t *stamps) olderInWord(s uint32) uint32 {
	word := t.blocks[s/blockStamps].bits[s/64%blockWords]
	return uint32(bits.OnesCount64(word & (1<<(s&63) - 1)))
}

func lane(node uint64, child uint32) uint64 { return node >> (child & 3 * 16) & 0xffff }

// touch loads the word of the bitmap that contains s into the processor's cache.
func (t *stamps) touch(s uint32) uint64 {
	if i := int(s / blockStamps); i < len(t.blocks) {
		return t.blocks[i].bits[s/64%blockWords]
	}
	return 0
}
