package profile

import (
	"iter"
	"math/bits"
)

const (
	blockLen = 1 << 8 // counters in a block
	pageLen  = 1 << 8 // blocks in a page
	maxPages = 1 << 16

	// MaxDistance is the longest distance that a histogram takes.
	MaxDistance = blockLen*pageLen*maxPages - 2
)

// Histogram counts occurrences of each distance exactly, however long
// (MODELS §2). The zero value is empty and ready.
//
// Counters are in blocks of 256 consecutive distances, which are allocated on demand. They
// have 8 bits until one of the block overflows, and then 32. So a histogram takes little more
// than a byte for each distinct line of a trace with widely spread distances, and far less if
// there are few distances. A map counts how often a counter of 32 bits wrapped.
type Histogram struct {
	pages []*[pageLen]block
	wraps map[uint64]uint64 // distance → times that its counter wrapped
	bytes uint64            // of pages and blocks
}

// block has counters of one width, or none if it is empty.
type block struct {
	narrow *[blockLen]uint8
	wide   *[blockLen]uint32
}

// Add counts one occurrence of distance d ≤ MaxDistance.
func (h *Histogram) Add(d uint64) {
	if i := d / (blockLen * pageLen); i < uint64(len(h.pages)) && h.pages[i] != nil {
		b := &h.pages[i][d/blockLen%pageLen]
		if b.wide != nil {
			c := &b.wide[d%blockLen]
			*c++
			if *c == 0 {
				h.wrap(d, 1)
			}
			return
		}
		if b.narrow != nil && b.narrow[d%blockLen] != 1<<8-1 {
			b.narrow[d%blockLen]++
			return
		}
	}
	h.AddN(d, 1)
}

// AddN counts n occurrences of distance d ≤ MaxDistance.
func (h *Histogram) AddN(d, n uint64) {
	if n == 0 {
		return
	}
	b := h.block(d)
	if b.wide == nil {
		if b.narrow == nil {
			b.narrow = new([blockLen]uint8)
			h.bytes += blockLen
		}
		c := &b.narrow[d%blockLen]
		if n < 1<<8-uint64(*c) {
			*c += uint8(n)
			return
		}
		h.widen(b)
	}
	c := &b.wide[d%blockLen]
	sum := uint64(*c) + n&(1<<32-1)
	*c = uint32(sum)
	if times := sum>>32 + n>>32; times != 0 {
		h.wrap(d, times)
	}
}

// block returns the block that counts d.
func (h *Histogram) block(d uint64) *block {
	i := d / (blockLen * pageLen)
	for uint64(len(h.pages)) <= i {
		h.pages = append(h.pages, nil)
	}
	if h.pages[i] == nil {
		h.pages[i] = new([pageLen]block)
		h.bytes += pageLen * 16
	}
	return &h.pages[i][d/blockLen%pageLen]
}

func (h *Histogram) widen(b *block) {
	b.wide = new([blockLen]uint32)
	for i, c := range b.narrow {
		b.wide[i] = uint32(c)
	}
	b.narrow = nil
	h.bytes += blockLen * 3
}

func (h *Histogram) wrap(d, times uint64) {
	if h.wraps == nil {
		h.wraps = map[uint64]uint64{}
	}
	h.wraps[d] += times
}

// MemoryBytes returns approximately the memory that the counters take.
func (h *Histogram) MemoryBytes() uint64 { return h.bytes }

// Count returns the number of occurrences of distance d.
func (h *Histogram) Count(d uint64) uint64 {
	i := d / (blockLen * pageLen)
	if i >= uint64(len(h.pages)) || h.pages[i] == nil {
		return 0
	}
	switch b := &h.pages[i][d/blockLen%pageLen]; {
	case b.wide != nil:
		return uint64(b.wide[d%blockLen]) + h.wraps[d]<<32
	case b.narrow != nil:
		return uint64(b.narrow[d%blockLen])
	}
	return 0
}

// All yields each distance that occurs, ascending, with its count.
func (h *Histogram) All() iter.Seq2[uint64, uint64] {
	return func(yield func(d, count uint64) bool) {
		for i, page := range h.pages {
			if page == nil {
				continue
			}
			for j := range page {
				first := (uint64(i)*pageLen + uint64(j)) * blockLen
				if !h.yieldBlock(&page[j], first, yield) {
					return
				}
			}
		}
	}
}

func (h *Histogram) yieldBlock(b *block, first uint64, yield func(d, count uint64) bool) bool {
	switch {
	case b.narrow != nil:
		for k, c := range b.narrow {
			if c != 0 && !yield(first+uint64(k), uint64(c)) {
				return false
			}
		}
	case b.wide != nil:
		for k, c := range b.wide {
			count := uint64(c)
			if h.wraps != nil {
				count += h.wraps[first+uint64(k)] << 32
			}
			if count != 0 && !yield(first+uint64(k), count) {
				return false
			}
		}
	}
	return true
}

// Total returns the number of occurrences of all distances.
func (h *Histogram) Total() uint64 {
	var total uint64
	for _, c := range h.All() {
		total += c
	}
	return total
}

// Rounded returns a histogram in which every distance is rounded down to the given number
// of significant binary digits. It counts as many occurrences below d as h does, for every
// d that has no more significant digits than that.
func (h *Histogram) Rounded(digits int) *Histogram {
	to := new(Histogram)
	for d, count := range h.All() {
		after := max(bits.Len64(d)-digits, 0)
		to.AddN(d>>after<<after, count)
	}
	return to
}

// Merge adds the counts of other.
func (h *Histogram) Merge(other *Histogram) {
	for d, c := range other.All() {
		h.AddN(d, c)
	}
}
