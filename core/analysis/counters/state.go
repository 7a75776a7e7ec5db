package counters

import (
	"encoding/binary"
	"errors"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
)

// The form in which a segment keeps the accesses of each byte: a list of pages of
// 512 bytes, ascending, each
//
//	uv number − the one before it (of the first: number)
//	counters of words, 1 mask of 8 bytes; of half words, 2; of bytes, 8:
//	  u8 1 if there are any, then for each mask: the mask, and uv of each counter
//	  that has a bit in it
//	uv functions, ascending, each: uv function + 1, 0 for none; 64 bytes: its set
//
// where uv is an unsigned LEB128 varint and masks and sets are little-endian.

// encode writes the state.
func (t *touched) encode() []byte {
	numbers := make([]uint64, 0, len(t.pages))
	for number := range t.pages {
		numbers = append(numbers, number)
	}
	sort.Slice(numbers, func(i, j int) bool { return numbers[i] < numbers[j] })
	b := binary.AppendUvarint([]byte{}, uint64(len(numbers)))
	last := uint64(0)
	for _, number := range numbers {
		p := t.pages[number]
		b = binary.AppendUvarint(b, number-last)
		b = t.encodeCounters(b, number, 8, p.words[:])
		b = t.encodeCounters(b, number, 4, p.halvesOrNone())
		b = t.encodeCounters(b, number, 1, p.bytesOrNone())
		by := append([]touchedBy{}, p.by...) // their order shows who was last
		sort.Slice(by, func(i, j int) bool { return by[i].function < by[j].function })
		b = binary.AppendUvarint(b, uint64(len(by)))
		for i := range by {
			b = binary.AppendUvarint(b, uint64(by[i].function))
			for _, word := range by[i].set {
				b = binary.LittleEndian.AppendUint64(b, word)
			}
		}
		last = number
	}
	return b
}

func (p *page) halvesOrNone() []uint32 {
	if p.halves == nil {
		return nil
	}
	return p.halves[:]
}

func (p *page) bytesOrNone() []uint32 {
	if p.bytes == nil {
		return nil
	}
	return p.bytes[:]
}

func (t *touched) encodeCounters(b []byte, number uint64, bytes uint8, counters []uint32) []byte {
	any := uint64(0)
	for i, n := range counters {
		any |= t.full(granule{number, bytes, uint16(i)}, n)
	}
	if any == 0 {
		return append(b, 0)
	}
	b = append(b, 1)
	for first := 0; first < len(counters); first += 64 {
		var mask uint64
		for i, n := range counters[first : first+64] {
			if t.full(granule{number, bytes, uint16(first + i)}, n) != 0 {
				mask |= 1 << i
			}
		}
		b = binary.LittleEndian.AppendUint64(b, mask)
		for i, n := range counters[first : first+64] {
			if mask>>i&1 != 0 {
				b = binary.AppendUvarint(b, t.full(granule{number, bytes, uint16(first + i)}, n))
			}
		}
	}
	return b
}

var errState = errors.New("the accesses of each byte cannot be read; analyse the trace again from its start")

// decode adds a written state to what is there.
func (t *touched) decode(state []byte) error {
	d := codec.NewDecoder(state)
	number := uint64(0)
	const least = 3 + 1 + 1 // a page: number, three flags, no functions
	for range d.Length(least) {
		number += d.Uint()
		if d.Err() != nil || number >= 1<<(64-pageBits) {
			return errState
		}
		p := t.pageAt(number)
		t.decodeCounters(d, p, number, 8)
		t.decodeCounters(d, p, number, 4)
		t.decodeCounters(d, p, number, 1)
		for range d.Length(1 + 64) {
			set := p.setOf(uint32(d.UintBelow(1 << 32)))
			for i := range set {
				set[i] |= d.Word()
			}
		}
	}
	if d.Err() != nil || len(d.Rest()) > 0 {
		return errState
	}
	return nil
}

func (t *touched) decodeCounters(d *codec.Decoder, p *page, number uint64, bytes uint8) {
	if d.UintBelow(2) == 0 {
		return
	}
	for index := 0; index < pageBytes/int(bytes); index += 64 {
		mask := d.Word()
		for i := range 64 {
			if mask>>i&1 != 0 {
				t.addCount(p, granule{number, bytes, uint16(index + i)}, d.Uint())
			}
		}
	}
}

// addCount adds n to a counter.
func (t *touched) addCount(p *page, g granule, n uint64) {
	var counter *uint32
	switch g.bytes {
	case 8:
		counter = &p.words[g.index]
	case 4:
		if p.halves == nil {
			p.halves = new([pageBytes / 4]uint32)
		}
		counter = &p.halves[g.index]
	default:
		if p.bytes == nil {
			p.bytes = new([pageBytes]uint32)
		}
		counter = &p.bytes[g.index]
	}
	sum := uint64(*counter) + n&(1<<32-1)
	*counter = uint32(sum)
	if wraps := sum>>32 + n>>32; wraps != 0 {
		t.wraps[g] += wraps
	}
}
