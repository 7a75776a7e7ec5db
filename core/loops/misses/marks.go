package misses

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/trace"
)

// marks is a set of lines, stored as pages of bits.
type marks struct {
	keys   []uint64 // hash table with open addressing: 1 + the number of a page, or 0 if the slot is empty
	at     []int32  // by slot of the hash table: the index of the page in pages
	pages  []page
	shift  uint
	number uint64 // number of the most recently used page
	last   *page
	full   bool // set if there were too many lines to mark
}

// maxPages limits the memory of marks to about 70 MB, which is sufficient for 2^29 contiguous
// lines.
const maxPages = 1 << 17

// page marks 4096 lines.
type page struct {
	words  [pageLines / 64]uint64
	marked int
}

const pageLines = 4096

func newMarks() *marks {
	return &marks{keys: make([]uint64, 64), at: make([]int32, 64), shift: 64 - 6}
}

// find returns the page with the given number, or nil if it does not exist.
func (m *marks) find(number uint64) *page {
	if m.last != nil && m.number == number {
		return m.last
	}
	slot := m.slot(number)
	if m.keys[slot] == 0 {
		return nil
	}
	m.number, m.last = number, &m.pages[m.at[slot]]
	return m.last
}

func (m *marks) slot(number uint64) int {
	mask := len(m.keys) - 1
	slot := int(number * 0x9e3779b97f4a7c15 >> m.shift)
	for m.keys[slot] != 0 && m.keys[slot] != number+1 {
		slot = (slot + 1) & mask
	}
	return slot
}

// ensurePage returns the page with the given number, and creates it if necessary.
func (m *marks) ensurePage(number uint64) *page {
	if p := m.find(number); p != nil {
		return p
	}
	if len(m.pages) == maxPages {
		m.full = true
		return m.last
	}
	if 2*len(m.pages) >= len(m.keys) {
		keys, at := m.keys, m.at
		m.keys, m.at, m.shift = make([]uint64, 2*len(keys)), make([]int32, 2*len(keys)), m.shift-1
		for i, key := range keys {
			if key != 0 {
				slot := m.slot(key - 1)
				m.keys[slot], m.at[slot] = key, at[i]
			}
		}
	}
	slot := m.slot(number)
	m.keys[slot], m.at[slot] = number+1, int32(len(m.pages))
	m.pages = append(m.pages, page{})
	m.number, m.last = number, &m.pages[len(m.pages)-1]
	return m.last
}

// add marks a line, and reports whether it was unmarked before.
func (m *marks) add(line trace.Line) bool {
	p := m.ensurePage(line / pageLines)
	word, bit := &p.words[line/64%(pageLines/64)], uint64(1)<<(line%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	p.marked++
	return true
}

// addSpan marks a span of lines, and returns the number of lines that were unmarked before.
func (m *marks) addSpan(s span) (fresh uint64) {
	for first := s.first; ; {
		last := min(s.last, first|(pageLines-1))
		p := m.ensurePage(first / pageLines)
		before := p.marked
		if before < pageLines {
			p.add(int(first%pageLines), int(last%pageLines))
		}
		fresh += uint64(p.marked - before)
		if last == s.last || m.full {
			return fresh
		}
		first = last + 1
	}
}

func (p *page) add(first, last int) {
	for word := first / 64; word <= last/64; word++ {
		fresh := p.mask(word, first, last) &^ p.words[word]
		p.words[word] |= fresh
		p.marked += bits.OnesCount64(fresh)
	}
}

// mask returns a mask of the bits that represent the lines from first to last in one word of a
// page.
func (p *page) mask(word, first, last int) uint64 {
	bits := ^uint64(0)
	if word == first/64 {
		bits <<= first % 64
	}
	if word == last/64 {
		bits &= ^uint64(0) >> (63 - last%64)
	}
	return bits
}

// firstUnmarked returns the first unmarked line of a span. If all lines are marked, the result
// "found" is false.
func (m *marks) firstUnmarked(s span) (line trace.Line, found bool) {
	for first := s.first; ; {
		last := min(s.last, first|(pageLines-1))
		p := m.find(first / pageLines)
		if p == nil {
			return first, true
		}
		if p.marked < pageLines {
			lo, hi := int(first%pageLines), int(last%pageLines)
			for word := lo / 64; word <= hi/64; word++ {
				if open := p.mask(word, lo, hi) &^ p.words[word]; open != 0 {
					return first&^(pageLines-1) + uint64(64*word+bits.TrailingZeros64(open)), true
				}
			}
		}
		if last == s.last {
			return 0, false
		}
		first = last + 1
	}
}
