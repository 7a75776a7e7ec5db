package profile

import "iter"

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
// Counters are 32 bits wide, in blocks of 256 consecutive distances made when
// first needed, so a histogram takes little more than four bytes for each
// distinct line of the trace, and far less where distances are few. A counter
// that wraps leaves its 2^32 in a map.
type Histogram struct {
	pages []*[pageLen]*[blockLen]uint32
	wraps map[uint64]uint64 // distance → times that its counter wrapped
}

// Add counts one occurrence of distance d ≤ MaxDistance.
func (h *Histogram) Add(d uint64) {
	c := h.counter(d)
	*c++
	if *c == 0 {
		h.wrap(d, 1)
	}
}

// AddN counts n occurrences of distance d ≤ MaxDistance.
func (h *Histogram) AddN(d, n uint64) {
	if n == 0 {
		return
	}
	c := h.counter(d)
	sum := uint64(*c) + n&(1<<32-1)
	*c = uint32(sum)
	if times := sum>>32 + n>>32; times != 0 {
		h.wrap(d, times)
	}
}

// counter gives the place where d is counted, made if need be.
func (h *Histogram) counter(d uint64) *uint32 {
	i := d / (blockLen * pageLen)
	if i < uint64(len(h.pages)) {
		if page := h.pages[i]; page != nil {
			if block := page[d/blockLen%pageLen]; block != nil {
				return &block[d%blockLen]
			}
		}
	}
	return h.newCounter(d)
}

func (h *Histogram) newCounter(d uint64) *uint32 {
	i := d / (blockLen * pageLen)
	for uint64(len(h.pages)) <= i {
		h.pages = append(h.pages, nil)
	}
	if h.pages[i] == nil {
		h.pages[i] = new([pageLen]*[blockLen]uint32)
	}
	block := &h.pages[i][d/blockLen%pageLen]
	if *block == nil {
		*block = new([blockLen]uint32)
	}
	return &(*block)[d%blockLen]
}

func (h *Histogram) wrap(d, times uint64) {
	if h.wraps == nil {
		h.wraps = map[uint64]uint64{}
	}
	h.wraps[d] += times
}

// Count is the number of occurrences of distance d.
func (h *Histogram) Count(d uint64) uint64 {
	i := d / (blockLen * pageLen)
	if i >= uint64(len(h.pages)) || h.pages[i] == nil {
		return 0
	}
	block := h.pages[i][d/blockLen%pageLen]
	if block == nil {
		return 0
	}
	return uint64(block[d%blockLen]) + h.wraps[d]<<32
}

// All yields each distance that occurs, ascending, with its count.
func (h *Histogram) All() iter.Seq2[uint64, uint64] {
	return func(yield func(d, count uint64) bool) {
		for i, page := range h.pages {
			if page == nil {
				continue
			}
			for j, block := range page {
				if block == nil {
					continue
				}
				first := (uint64(i)*pageLen + uint64(j)) * blockLen
				if !h.yieldBlock(block, first, yield) {
					return
				}
			}
		}
	}
}

func (h *Histogram) yieldBlock(block *[blockLen]uint32, first uint64, yield func(d, count uint64) bool) bool {
	for k, c := range block {
		count := uint64(c)
		if h.wraps != nil {
			count += h.wraps[first+uint64(k)] << 32
		}
		if count != 0 && !yield(first+uint64(k), count) {
			return false
		}
	}
	return true
}

// Total is the number of occurrences of all distances.
func (h *Histogram) Total() uint64 {
	var total uint64
	for _, c := range h.All() {
		total += c
	}
	return total
}

// Merge adds the counts of other.
func (h *Histogram) Merge(other *Histogram) {
	for d, c := range other.All() {
		h.AddN(d, c)
	}
}
