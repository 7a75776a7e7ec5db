package ir

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// layout is the module's data layout: sizes and alignments of types in memory (the LLVM Language Reference,
// "Data Layout"). Alignments are in bytes.
type layout struct {
	bigEndian      bool
	pointers       map[uint32]uint64 // size of a pointer in bits, by address space
	ints           []alignment       // in ascending order of bits
	floats         []alignment
	vectors        []alignment
	aggregateAlign uint64
}

type alignment struct{ bits, align uint64 }

// parseLayout reads a layout string, and uses LLVM's defaults for missing parts.
func parseLayout(text string) layout {
	l := layout{
		pointers:       map[uint32]uint64{0: 64},
		ints:           []alignment{{1, 1}, {8, 1}, {16, 2}, {32, 4}, {64, 4}},
		floats:         []alignment{{16, 2}, {32, 4}, {64, 8}, {128, 16}},
		vectors:        []alignment{{64, 8}, {128, 16}},
		aggregateAlign: 1,
	}
	for part := range strings.SplitSeq(text, "-") {
		if part != "" {
			l.set(part)
		}
	}
	return l
}

func (l *layout) set(part string) {
	fields := strings.Split(part[1:], ":")
	switch part[0] {
	case 'E':
		l.bigEndian = true
	case 'p':
		l.setPointer(fields)
	case 'i':
		l.ints = setAlignment(l.ints, fields)
	case 'f':
		l.floats = setAlignment(l.floats, fields)
	case 'v':
		l.vectors = setAlignment(l.vectors, fields)
	case 'a':
		if len(fields) > 1 {
			l.aggregateAlign = max(bitsToBytes(fields[1]), 1)
		}
	}
}

func (l *layout) setPointer(fields []string) {
	space := uint64(0)
	if fields[0] != "" {
		space, _ = strconv.ParseUint(fields[0], 10, 32)
	}
	if len(fields) > 1 {
		if n := bitsToBytes(fields[1]); 1 <= n && n <= 16 {
			l.pointers[uint32(space)] = 8 * n
		}
	}
}

// bitsToBytes reads a number of bits and returns the corresponding number of bytes, or 0 if the
// number is not plausible.
func bitsToBytes(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > 1<<16 || n%8 != 0 || n != 0 && n&(n-1) != 0 {
		return 0
	}
	return n / 8
}

func setAlignment(list []alignment, fields []string) []alignment {
	if len(fields) < 2 {
		return list
	}
	n, err := strconv.ParseUint(fields[0], 10, 32)
	align := bitsToBytes(fields[1])
	if err != nil || align == 0 {
		return list
	}
	i, found := slices.BinarySearchFunc(list, n, func(a alignment, n uint64) int { return cmp.Compare(a.bits, n) })
	if found {
		list[i].align = align
		return list
	}
	return slices.Insert(list, i, alignment{n, align})
}

func (l *layout) pointerBits(space uint32) uint64 {
	if n, ok := l.pointers[space]; ok {
		return n
	}
	return l.pointers[0]
}

// intAlign returns the alignment of an integer of n bits. An unlisted width has the alignment of
// the next larger listed width or, if no larger width is listed, of the largest listed width.
func (l *layout) intAlign(n uint64) uint64 {
	for _, a := range l.ints {
		if a.bits >= n {
			return a.align
		}
	}
	return l.ints[len(l.ints)-1].align
}

// exactAlign returns the alignment of a float or vector. An unlisted width is aligned to its size,
// rounded up to a power of two.
func exactAlign(list []alignment, n, bytes uint64) uint64 {
	for _, a := range list {
		if a.bits == n {
			return a.align
		}
	}
	return 1 << bits.Len64(max(bytes, 1)-1)
}
