package profile

import (
	"iter"
	"math/bits"
	"slices"
)

const (
	blockLen = 1 << 8 // number of counters in a block
	pageLen  = 1 << 8 // number of blocks in a page
	maxPages = 1 << 16

	// MaxDistance is the longest distance that a histogram can count.
	MaxDistance = blockLen*pageLen*maxPages - 2
)

// Histogram counts the occurrences of each stack distance separately, however long the distance is
// (MODELS §2). The zero value is an empty histogram, ready for use.
//
// Counters are stored in blocks, which are allocated on demand. A block counts 256 consecutive
// distances. The counters of a block have 8 bits until one of them overflows, and then 32 bits. A
// histogram therefore needs little more than one byte per distinct line if the distances of a trace
// are widely spread, and much less memory if there are few different distances. A map records how
// often each 32-bit counter has wrapped around.
type Histogram struct {
	pages []*[pageLen]block
	wraps map[uint64]uint64 // for each distance: the number of times that its counter has wrapped around
	bytes uint64            // total size of pages and blocks
}

// block contains counters of 8 bits, counters of 32 bits, or no counters if the block is empty.
type block struct {
	narrow *[blockLen]uint8
	wide   *[blockLen]uint32
}

// Add counts one occurrence of distance d, which must be at most MaxDistance.
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

// AddN counts n occurrences of distance d, which must be at most MaxDistance.
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

// block returns the block that contains the counter of distance d.
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

// MemoryBytes returns the approximate number of bytes of memory that the counters need.
func (h *Histogram) MemoryBytes() uint64 { return h.bytes }

// Count returns the number of times that distance d has been counted.
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

// All yields each distance that occurs, in ascending order, and its count.
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

// Rounded returns a histogram in which every distance is rounded down to the given number of
// significant binary digits. For every limit with at most this number of digits, rounding does not
// change the number of distances below the limit.
func (h *Histogram) Rounded(digits int) *Histogram {
	to := new(Histogram)
	for d, count := range h.All() {
		after := max(bits.Len64(d)-digits, 0)
		to.AddN(d>>after<<after, count)
	}
	return to
}

// Merge adds the counts of the other histogram.
func (h *Histogram) Merge(other *Histogram) {
	for d, c := range other.All() {
		h.AddN(d, c)
	}
}

const (
	// SetCounts is the number of rows of a [SetTable]: for 2^0 to 2^16 sets.
	SetCounts = 17
	// MaxWays is the maximum number of ways for which a [SetTable] contains counts.
	MaxWays = 32
)

// SetTable counts accesses by their stack distance within the set, for each number of sets 2^a
// (MODELS §4). Depths[a][d] is the number of accesses at distance d in a cache of 2^a sets, which
// means that d other lines of the same set have been accessed since the last access to the line. In
// an LRU cache of 2^a sets and w ways, exactly the accesses with d < w hit. Row 0, for a single
// set, equals the beginning of the histogram.
type SetTable struct {
	Depths [SetCounts][MaxWays]uint64
	// Bit a of Omitted is set if accesses in 2^a sets were not counted. Row a is then zero. Row 0,
	// for a single set, is always counted.
	Omitted uint32
}

// Hits returns the exact number of accesses that hit in an LRU cache with this number of sets and
// ways. The result ok is false if the number of sets is not a power of two, or if the table has no
// counts for this number of sets or ways.
func (t *SetTable) Hits(sets, ways uint64) (hits uint64, ok bool) {
	if t == nil || sets == 0 || sets&(sets-1) != 0 || sets >= 1<<SetCounts || ways == 0 || ways > MaxWays {
		return 0, false
	}
	a := bits.TrailingZeros64(sets)
	return sum(t.Depths[a][:ways]), t.Counts(a)
}

// Counts reports whether accesses in 2^a sets were counted.
func (t *SetTable) Counts(a int) bool { return t.Omitted>>a&1 == 0 }

// Omits reports whether the hits of a cache are unknown only because the table omits the row for
// the cache's number of sets.
func (t *SetTable) Omits(sets, ways uint64) bool {
	return t != nil && sets > 0 && sets&(sets-1) == 0 && sets < 1<<SetCounts && ways <= MaxWays && !t.Counts(bits.TrailingZeros64(sets))
}

// Omit removes the rows for some numbers of sets. Bit a of the parameter "omitted" represents 2^a
// sets.
func (t *SetTable) Omit(omitted uint32) {
	t.Omitted |= omitted
	for a := range t.Depths {
		if !t.Counts(a) {
			t.Depths[a] = [MaxWays]uint64{}
		}
	}
}

// Add adds the counts of the other table. The sum contains only the rows that both tables contain.
func (t *SetTable) Add(other *SetTable) {
	defer t.Omit(other.Omitted)
	for a := range t.Depths {
		for d := range t.Depths[a] {
			t.Depths[a][d] += other.Depths[a][d]
		}
	}
}

func (t *SetTable) empty() bool { return t.Depths == [SetCounts][MaxWays]uint64{} }

// Counted returns the set table, or nil if distances within sets were not counted. For a sample of
// lines, distances within sets are never counted.
func (c *StackCounts) Counted() *SetTable {
	if c.Sets.empty() && c.Distances.Total() > 0 {
		return nil
	}
	return &c.Sets
}

// Counted returns the set table of the shared stack, or nil if distances within sets were not
// counted.
func (d *Domain) Counted() *SetTable {
	if d.Sets.empty() && slices.ContainsFunc(d.Members, func(m Member) bool { return m.Distances.Total() > 0 }) {
		return nil
	}
	return &d.Sets
}

// check compares a table with the histogram of the same accesses. The row for one set must equal
// the beginning of the histogram. A row must not count more accesses than the histogram counts at
// finite distances. With more sets, the distance of an access within its set cannot be larger
// (MODELS §4).
func (t *SetTable) check(h *Histogram) error {
	for d, n := range t.Depths[0] {
		if n != h.Count(uint64(d)) {
			return &CheckError{"a set table differs from the histogram in the row for a single set"}
		}
	}
	if !t.Counts(0) || t.Omitted>>SetCounts != 0 {
		return &CheckError{"a set table omits the mandatory row for a single set, or states that it omits a row that does not exist"}
	}
	finite, last := h.Total(), 0
	for a := range t.Depths {
		if !t.Counts(a) {
			if t.Depths[a] != [MaxWays]uint64{} {
				return &CheckError{"a set table has counts for numbers of sets that the table omits"}
			}
			continue
		}
		var sum, before uint64
		for d, n := range t.Depths[a] {
			var carry uint64
			if sum, carry = bits.Add64(sum, n, 0); carry != 0 || sum > finite {
				return &CheckError{"a set table counts more accesses than the trace contains"}
			}
			if a > 0 {
				if before += t.Depths[last][d]; before > sum {
					return &CheckError{"a set table has fewer hits with more sets and the same number of ways"}
				}
			}
		}
		last = a
	}
	return nil
}
