package profile

import "iter"

const (
	blockShift = 10
	blockLen   = 1 << blockShift
)

// Histogram counts occurrences of each distance exactly, however long
// (MODELS §2). The zero value is empty and ready.
//
// Counters are 32 bits wide, in blocks of 1,024 consecutive distances made when
// first needed, so a histogram takes at most four bytes for each distinct line
// of the trace. A counter that wraps leaves its 2^32 in a map.
type Histogram struct {
	blocks []*[blockLen]uint32
	wraps  map[uint64]uint64 // distance → times that its counter wrapped
}

// Add counts one occurrence of distance d.
func (h *Histogram) Add(d uint64) {
	i := d >> blockShift
	if i >= uint64(len(h.blocks)) || h.blocks[i] == nil {
		h.makeBlock(i)
	}
	c := &h.blocks[i][d&(blockLen-1)]
	*c++
	if *c == 0 {
		h.wrap(d, 1)
	}
}

// AddN counts n occurrences of distance d.
func (h *Histogram) AddN(d, n uint64) {
	if n == 0 {
		return
	}
	i := d >> blockShift
	if i >= uint64(len(h.blocks)) || h.blocks[i] == nil {
		h.makeBlock(i)
	}
	c := &h.blocks[i][d&(blockLen-1)]
	sum := uint64(*c) + n
	*c = uint32(sum)
	if sum>>32 != 0 {
		h.wrap(d, sum>>32)
	}
}

func (h *Histogram) makeBlock(i uint64) {
	for uint64(len(h.blocks)) <= i {
		h.blocks = append(h.blocks, nil)
	}
	h.blocks[i] = new([blockLen]uint32)
}

func (h *Histogram) wrap(d, times uint64) {
	if h.wraps == nil {
		h.wraps = map[uint64]uint64{}
	}
	h.wraps[d] += times
}

// Count is the number of occurrences of distance d.
func (h *Histogram) Count(d uint64) uint64 {
	i := d >> blockShift
	if i >= uint64(len(h.blocks)) || h.blocks[i] == nil {
		return 0
	}
	return uint64(h.blocks[i][d&(blockLen-1)]) + h.wraps[d]<<32
}

// All yields each distance that occurs, ascending, with its count.
func (h *Histogram) All() iter.Seq2[uint64, uint64] {
	return func(yield func(d, count uint64) bool) {
		for i, block := range h.blocks {
			if block == nil {
				continue
			}
			for j, c := range block {
				d := uint64(i)<<blockShift | uint64(j)
				count := uint64(c)
				if h.wraps != nil {
					count += h.wraps[d] << 32
				}
				if count != 0 && !yield(d, count) {
					return
				}
			}
		}
	}
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
