package stack

import "runtime"

// lists contains the lists for one number of sets, 2^most. The lists are stored in pages, which are
// created at the first visit.
type lists struct {
	most   int     // binary logarithm of the number of sets of these lists
	least  int     // binary logarithm of the smallest number of sets whose depths are computed from these lists
	turn   []uint8 // number of entries by which each list is rotated
	pages  []*listPage
	deeper [2]uint64 // numbers of unmarked and of marked visits with a depth of MaxWays or more
}

// listPage contains lists with consecutive indices. If the counts of several lists are added to
// obtain the count for a smaller number of sets, these lists are in the same page.
type listPage [pageLists]list

const pageLists = 128

// commit writes to the memory of a new page before anything reads it. Otherwise, the operating
// system would map the memory twice, and the second mapping would interrupt the other processors.
func (p *listPage) commit() {
	const each = 4096 / (8 * MaxWays) // number of lists in a memory page
	for i := 0; i < pageLists; i += each {
		p[i][0] = 0
	}
}

// list contains the entries of a set in order of recency. An entry consists of the number of a move
// and the last bits of the line's number. The value 0, which is older than any entry, represents a
// free position. The list is a ring buffer: in a full list, a new entry replaces the oldest entry,
// and the list is rotated by one entry, which takes a single store. A list that is not full is
// never rotated, so its newest half is in one cache line.
type list [MaxWays]uint64

const (
	half      = MaxWays / 2
	numberBit = 32 // index of the lowest bit of the move's number in an entry
)

// entryOf returns the entry for a move of a line.
func entryOf(number, line uint32) uint64 { return uint64(number)<<numberBit | uint64(uint16(line)) }

// makeLists returns empty lists. makeLists allocates the pages of the lists only if there are few
// sets.
func makeLists(least, most int) lists {
	l := lists{most: most, least: least, turn: make([]uint8, 1<<most), pages: make([]*listPage, max(1, 1<<most/pageLists))}
	for i := range l.pages {
		if l.inCache() {
			l.pages[i] = new(listPage)
		}
	}
	return l
}

// inCache reports whether the lists are so few that they stay in the processor's cache without
// prefetching.
func (l *lists) inCache() bool { return l.most <= cachedLists }

// index returns the index of the list for a line. If the counts of several lists are added to
// obtain the count for a smaller number of sets, these lists have consecutive indices.
func (l *lists) index(line uint32) (place uint32) {
	place = line & uint32(len(l.turn)-1)
	return (place<<((l.most-l.least)&31) | place>>(l.least&31)) & uint32(len(l.turn)-1)
}

// newerInSiblings returns the number of newer lines that share a line's set among 2^b sets, but not
// among 2^(b+1) sets. The newer lines are in several lists. The parameter n is the number of newer
// lines in the line's set among 2^(b+1) sets.
func (l *lists) newerInSiblings(p *listPage, place uint32, b, n int, after uint64) (beside int) {
	step := uint32(1) << (b - l.least)
	for k := step; k < 1<<(l.most-l.least) && n+beside < MaxWays; k += 2 * step {
		list, turn := &p[(place^k)%pageLists], l.turn[place^k]
		if inlineShortCounts && list[slot(turn, 3)] < after {
			beside += isNewer(list[slot(turn, 0)], after) + isNewer(list[slot(turn, 1)], after) + isNewer(list[slot(turn, 2)], after)
			continue
		}
		beside += list.newer(turn, after)
	}
	return beside
}

// inlineShortCounts is true for WebAssembly, where calls are expensive. Callers then count inline
// if there are fewer than four newer entries, which is the most frequent case.
const inlineShortCounts = runtime.GOARCH == "wasm"

// slot returns the index of the kth newest entry, counting from 0, in a list with the given
// rotation.
func slot(turn uint8, k int) int { return (int(turn) + half - 1 - k) & (MaxWays - 1) }

// newer returns the number of entries that are greater than or equal to the parameter "after". It
// selects one half of the list, counts whole quarters of this half, and then counts the entries of
// one quarter. The code makes the compiler emit conditional moves, because branches would be
// mispredicted.
func (l *list) newer(turn uint8, after uint64) int {
	first := 0
	if l[slot(turn, half-1)] >= after {
		if l[slot(turn, MaxWays-1)] >= after {
			return MaxWays
		}
		first = half
		turn -= half
	}
	if runtime.GOARCH == "wasm" {
		n := 4 * (isNewer(l[slot(turn, 3)], after) + isNewer(l[slot(turn, 7)], after) + isNewer(l[slot(turn, 11)], after))
		return first + n + isNewer(l[slot(turn, n)], after) + isNewer(l[slot(turn, n+1)], after) + isNewer(l[slot(turn, n+2)], after)
	}
	quarter := 0
	if l[slot(turn, 3)] >= after {
		quarter++
	}
	if l[slot(turn, 7)] >= after {
		quarter++
	}
	if l[slot(turn, 11)] >= after {
		quarter++
	}
	n := 4 * quarter
	a, b, c := l[slot(turn, n)], l[slot(turn, n+1)], l[slot(turn, n+2)]
	if a >= after {
		n++
	}
	if b >= after {
		n++
	}
	if c >= after {
		n++
	}
	return first + n
}

// isNewer returns 1 if entry >= after, and otherwise 0. The function uses arithmetic,
// because the compiler emits branches for WebAssembly if the address of a load depends on a
// comparison.
func isNewer(entry, after uint64) int { return int((after - 1 - entry) >> 63) }

// insert moves the n newest entries back by one position, and stores an entry in front of them.
// insert overwrites the entry behind the n newest entries.
func (l *list) insert(turn uint8, n int, entry uint64) {
	p := slot(turn, n)
	for ; n > 0; n-- {
		next := (p + 1) & (MaxWays - 1)
		l[p] = l[next]
		p = next
	}
	l[p] = entry
}

// countNewer returns the number of newer entries, which must be less than MaxWays. countNewer also
// counts, in the lanes of [recency.finer], the newer entries that share a set with a line if there
// are more sets.
func (l *list) countNewer(turn uint8, line uint32, after uint64, finer *[setBits + 1]uint64) (n int, lanes uint64) {
	for e := l[slot(turn, 0)]; e >= after; e = l[slot(turn, n)] {
		lanes += finer[common(uint64(line), e)]
		n++
	}
	return n, lanes
}

// toFront combines countNewer and insert in one loop.
func (l *list) toFront(turn uint8, entry, after uint64, finer *[setBits + 1]uint64) (n int, lanes uint64) {
	for carry := entry; ; n++ {
		p := slot(turn, n)
		e := l[p]
		l[p] = carry
		if e < after {
			return n, lanes
		}
		lanes += finer[common(entry, e)]
		carry = e
	}
}

// push stores an entry at the front of a list, in place of the oldest entry.
func (l *lists) push(p *listPage, place uint32, entry uint64) {
	turn := l.turn[place] + 1
	l.turn[place] = turn
	p[place%pageLists][slot(turn, 0)] = entry
}

// touch prefetches the entries that a visit to a list reads. If the list's page does not exist,
// touch creates it.
func (l *lists) touch(place uint32) (sink uint64) {
	p := l.pages[place/pageLists]
	if p == nil {
		p = new(listPage)
		p.commit()
		l.pages[place/pageLists] = p
	}
	list, turn := &p[place%pageLists], l.turn[place]
	return list[slot(turn, 0)] + list[slot(turn, half-1)]
}

// copyTo copies the lists of a page to empty lists for a larger number of sets. The parameter
// "turns" contains the rotations of the copied lists.
func (p *listPage) copyTo(more *lists, turns []uint8) {
	for i := range min(len(turns), pageLists) {
		for k := range MaxWays {
			entry := p[i][slot(turns[i], k)]
			if entry == 0 {
				break
			}
			place := more.index(uint32(entry))
			more.touch(place)
			list := &more.pages[place/pageLists][place%pageLists]
			list[slot(0, list.newer(0, never<<numberBit))] = entry // only full lists are rotated, so the rotation of this list is 0
		}
	}
}
