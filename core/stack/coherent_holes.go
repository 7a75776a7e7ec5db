package stack

import "math/bits"

// holes is a set of stamps that finds its newest: a bitmap, a bitmap of its nonzero words, and
// so on up to one word.
type holes struct {
	levels [][]uint64 // levels[0] has a bit a stamp
}

// newest returns the highest stamp.
func (h *holes) newest() (stamp uint32, found bool) {
	top := len(h.levels) - 1
	if top < 0 || h.levels[top][0] == 0 {
		return 0, false
	}
	for k := top; k >= 0; k-- {
		stamp = stamp<<6 | uint32(63-bits.LeadingZeros64(h.levels[k][stamp]))
	}
	return stamp, true
}

func (h *holes) add(stamp uint32) {
	if len(h.levels) == 0 || int(stamp>>6) >= len(h.levels[0]) {
		h.grow(stamp)
	}
	for k := range h.levels {
		word := &h.levels[k][stamp>>6]
		before := *word
		*word |= 1 << (stamp & 63)
		if before != 0 {
			return
		}
		stamp >>= 6
	}
}

func (h *holes) remove(stamp uint32) {
	for k := range h.levels {
		word := &h.levels[k][stamp>>6]
		*word &^= 1 << (stamp & 63)
		if *word != 0 {
			return
		}
		stamp >>= 6
	}
}

func (h *holes) grow(stamp uint32) {
	words := int(stamp>>6) + 1
	for k := 0; ; k++ {
		if k == len(h.levels) {
			h.levels = append(h.levels, nil)
		}
		level := h.levels[k]
		if len(level) < words {
			level = append(level, make([]uint64, max(words, 2*len(level))-len(level))...)
			h.levels[k] = level
		}
		if len(level) == 1 {
			return
		}
		if k == len(h.levels)-1 {
			h.levels = append(h.levels, summary(level))
		}
		words = (len(level) + 63) / 64
	}
}

// summary has a bit for each word that is not zero.
func summary(level []uint64) []uint64 {
	s := make([]uint64, (len(level)+63)/64)
	for i, word := range level {
		if word != 0 {
			s[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

// renumber replaces each stamp by its rank among the live ones, which is never above the stamp.
func (h *holes) renumber(rank func(stamp uint32) uint32) {
	if len(h.levels) == 0 {
		return
	}
	for w, word := range h.levels[0] {
		for ; word != 0; word &= word - 1 {
			stamp := uint32(w*64 + bits.TrailingZeros64(word))
			h.remove(stamp)
			h.add(rank(stamp))
		}
	}
}
