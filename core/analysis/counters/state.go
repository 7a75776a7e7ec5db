package counters

import (
	"errors"
	"maps"
	"math/bits"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
)

// A segment encodes the number of accesses to each byte as a list of pages of 512 bytes, ascending.
// Each page consists of
//
//	uv page number − previous page number, or the page number of the first page
//	the counters of words, half words and bytes, with 1, 2 and 8 masks; for each of these sizes
//	  u8 1 if any counter is not 0, otherwise 0 and no masks; for each mask
//	    8 bytes with a bit for each of 64 counters · for each bit that is set: uv count
//	list of functions, ascending, each
//	  uv function + 1, or 0 if the function is unknown · 64 bytes: set of the bytes touched
//
// where uv is an unsigned LEB128 varint, and masks and sets are little-endian.

func (t *touchedBytes) encode() []byte {
	c := codec.Writer([]byte{})
	t.code(c)
	return c.Out
}

var errState = errors.New("the saved access counts of bytes are damaged; analyse the trace again from its start")

// decode adds the counts of an encoded state.
func (t *touchedBytes) decode(state []byte) error {
	c := codec.Reader(state)
	if t.code(c); c.Failed() || c.More() {
		return errState
	}
	return nil
}

// code reads or writes the pages. When reading, it adds the counts of the pages to the existing
// counts.
func (t *touchedBytes) code(c *codec.Coder) {
	var numbers []uint64
	if !c.Reads() {
		numbers = slices.Sorted(maps.Keys(t.pages))
	}
	last := uint64(0)
	const least = 3 + 1 + 1 // the minimum length of a page: its number, three flags, and the number of functions
	codec.Slice(c, &numbers, least, func(number *uint64) {
		c.Delta(number, &last)
		if c.Check(*number < 1<<(64-pageBits), errState.Error()); !c.Failed() {
			t.codePage(c, *number)
		}
	})
}

func (t *touchedBytes) codePage(c *codec.Coder, number uint64) {
	p := t.pageAt(number)
	for _, size := range []uint8{8, 4, 1} {
		t.codeCounters(c, p, granule{page: number, bytes: size})
	}
	var by []touchedBy
	if !c.Reads() {
		// sort a copy, because p.by is in the order of the functions' latest accesses to the page
		by = slices.Clone(p.by)
		sort.Slice(by, func(i, j int) bool { return by[i].function < by[j].function })
	}
	codec.Slice(c, &by, 1+64, func(x *touchedBy) {
		c.U32(&x.function)
		if c.Words(x.set[:]); c.Reads() {
			set := p.setOf(x.function)
			for i, word := range x.set {
				set[i] |= word
			}
		}
	})
}

// codeCounters reads or writes the counters of words, half words or bytes of a page. The parameter
// g selects the granularity.
func (t *touchedBytes) codeCounters(c *codec.Coder, p *page, g granule) {
	list, there := p.counters(g.bytes), false
	full := func(i int) uint64 { return t.fullCount(granule{g.page, g.bytes, uint16(i)}, list[i]) }
	for i := 0; i < len(list) && !there && !c.Reads(); i++ {
		there = full(i) != 0
	}
	if c.Flag(&there); !there {
		return
	}
	if list == nil {
		list = p.newCounters(g.bytes)
	}
	for first := 0; first < len(list); first += 64 {
		var mask uint64
		var counts [64]uint64
		for i := 0; i < len(counts) && !c.Reads(); i++ {
			if counts[i] = full(first + i); counts[i] != 0 {
				mask |= 1 << i
			}
		}
		for c.Word(&mask); mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros64(mask)
			if c.U64(&counts[i]); c.Reads() {
				g.index = uint16(first + i)
				t.addCount(g, &list[first+i], counts[i])
			}
		}
	}
}

// counters returns the counters of words, half words or bytes, or nil if there are none.
func (p *page) counters(bytes uint8) []uint32 {
	switch {
	case bytes == 8:
		return p.words[:]
	case bytes == 4 && p.halves != nil:
		return p.halves[:]
	case bytes == 1 && p.bytes != nil:
		return p.bytes[:]
	}
	return nil
}

func (p *page) newCounters(bytes uint8) []uint32 {
	if bytes == 4 {
		p.halves = new([pageBytes / 4]uint32)
	} else {
		p.bytes = new([pageBytes]uint32)
	}
	return p.counters(bytes)
}

func (t *touchedBytes) addCount(g granule, counter *uint32, n uint64) {
	sum := uint64(*counter) + n&(1<<32-1)
	*counter = uint32(sum)
	if wraps := sum>>32 + n>>32; wraps != 0 {
		t.wraps[g] += wraps
	}
}
