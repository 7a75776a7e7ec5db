package stack

import "runtime"

// lists contains the lists for 2^most sets. The lists are stored in pages, which are created at the
// first visit.
type lists struct {
	most  int     // binary logarithm of the number of sets of these lists
	least int     // binary logarithm of the smallest number of sets for which these lists are combined
	turn  []uint8 // by list: number of entries by which the list is rotated
	pages []*listPage
	late  [2]uint64 // numbers of unmarked and marked visits with depth MaxWays or more
}

// listPage contains neighbouring lists. Lists that are combined are in the same page.
type listPage [pageLists]list

const pageLists = 128

// have writes to the memory of a new page before the page is read. If memory is read first, the
// operating system maps it twice, and the second mapping interrupts the other processors.
func (p *listPage) have() {
	const each = 4096 / (8 * MaxWays) // number of lists in a memory page of the operating system
	for i := 0; i < pageLists; i += each {
		p[i][0] = 0
	}
}

// list contains the entries of a set in order. An entry consists of the number of a move and the
// last bits of the line's number. The value 0 means that there is no entry, and compares as older
// than any entry. The list is a ring: in a full list, a new entry replaces the oldest entry, and
// the list is rotated by one entry, which takes a single store. A list that is not full is never
// rotated, so its newest half is in one cache line.
type list [MaxWays]uint64

const (
	half      = MaxWays / 2
	numberBit = 32 // lowest bit of the number of the move in an entry
)

// entryOf returns the entry for a move of a line.
func entryOf(number, line uint32) uint64 { return uint64(number)<<numberBit | uint64(uint16(line)) }

// makeLists returns empty lists. It allocates the pages of the lists only if there are few sets.
func makeLists(least, most int) lists {
	l := lists{most: most, least: least, turn: make([]uint8, 1<<most), pages: make([]*listPage, max(1, 1<<most/pageLists))}
	for i := range l.pages {
		if l.near() {
			l.pages[i] = new(listPage)
		}
	}
	return l
}

// near reports whether there are so few lists that they stay in the processor's cache without
// prefetching.
func (l *lists) near() bool { return l.most <= nearLists }

// of returns the index of the list for a line. Lists that are combined have neighbouring indices.
func (l *lists) of(line uint32) (place uint32) {
	place = line & uint32(len(l.turn)-1)
	return (place<<((l.most-l.least)&31) | place>>(l.least&31)) & uint32(len(l.turn)-1)
}

// beside returns the number of newer lines that share a line's set among 2^b sets, but not among
// 2^(b+1) sets. n is the number of newer lines in the line's set among 2^(b+1) sets. beside
// combines several lists.
func (l *lists) beside(p *listPage, place uint32, b, n int, after uint64) (beside int) {
	step := uint32(1) << (b - l.least)
	for k := step; k < 1<<(l.most-l.least) && n+beside < MaxWays; k += 2 * step {
		list, turn := &p[(place^k)%pageLists], l.turn[place^k]
		if few && list[at(turn, 3)] < after {
			beside += since(list[at(turn, 0)], after) + since(list[at(turn, 1)], after) + since(list[at(turn, 2)], after)
			continue
		}
		beside += list.newer(turn, after)
	}
	return beside
}

// few is set for WebAssembly, where calls are expensive. If few is set, callers count inline if
// there are fewer than four newer entries, which is the most frequent case.
const few = runtime.GOARCH == "wasm"

// at returns the index of the kth newest entry; k counts from 0.
func at(turn uint8, k int) int { return (int(turn) + half - 1 - k) & (MaxWays - 1) }

// newer returns the number of entries with a value of at least after. It selects one half of the
// list, counts whole quarters of this half, and then counts the entries of one quarter. It has no
// branches, because branches would be mispredicted.
func (l *list) newer(turn uint8, after uint64) int {
	first := 0
	if l[at(turn, half-1)] >= after {
		if l[at(turn, MaxWays-1)] >= after {
			return MaxWays
		}
		first = half
		turn -= half
	}
	if runtime.GOARCH == "wasm" {
		n := 4 * (since(l[at(turn, 3)], after) + since(l[at(turn, 7)], after) + since(l[at(turn, 11)], after))
		return first + n + since(l[at(turn, n)], after) + since(l[at(turn, n+1)], after) + since(l[at(turn, n+2)], after)
	}
	quarter := 0
	if l[at(turn, 3)] >= after {
		quarter++
	}
	if l[at(turn, 7)] >= after {
		quarter++
	}
	if l[at(turn, 11)] >= after {
		quarter++
	}
	n := 4 * quarter
	a, b, c := l[at(turn, n)], l[at(turn, n+1)], l[at(turn, n+2)]
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

// since returns 1 if the value of an entry is at least after, and otherwise 0. It uses arithmetic,
// because the compiler emits branches for WebAssembly if the address of a load depends on a
// comparison.
func since(entry, after uint64) int { return int((after - 1 - entry) >> 63) }

// insert puts an entry behind the n newest entries, and replaces the entry in this position.
func (l *list) insert(turn uint8, n int, entry uint64) {
	p := at(turn, n)
	for ; n > 0; n-- {
		next := (p + 1) & (MaxWays - 1)
		l[p] = l[next]
		p = next
	}
	l[p] = entry
}

// above returns the number of newer entries, which must be below MaxWays. It also counts the newer
// entries that share a finer set with a line, in the lanes of [recency.finer].
func (l *list) above(turn uint8, line uint32, after uint64, finer *[setBits + 1]uint64) (n int, lanes uint64) {
	for e := l[at(turn, 0)]; e >= after; e = l[at(turn, n)] {
		lanes += finer[common(uint64(line), e)]
		n++
	}
	return n, lanes
}

// toFront combines above and insert.
func (l *list) toFront(turn uint8, entry, after uint64, finer *[setBits + 1]uint64) (n int, lanes uint64) {
	for carry := entry; ; n++ {
		p := at(turn, n)
		e := l[p]
		l[p] = carry
		if e < after {
			return n, lanes
		}
		lanes += finer[common(entry, e)]
		carry = e
	}
}

// push puts an entry at the front of a list, in place of the oldest entry.
func (l *lists) push(p *listPage, place uint32, entry uint64) {
	turn := l.turn[place] + 1
	l.turn[place] = turn
	p[place%pageLists][at(turn, 0)] = entry
}

// touch prefetches the entries that a visit to a list reads, and creates the list's page.
func (l *lists) touch(place uint32) (sink uint64) {
	p := l.pages[place/pageLists]
	if p == nil {
		p = new(listPage)
		p.have()
		l.pages[place/pageLists] = p
	}
	list, turn := &p[place%pageLists], l.turn[place]
	return list[at(turn, 0)] + list[at(turn, half-1)]
}

// copyTo copies lists to empty lists for more sets. turns contains the rotations of the lists.
func (p *listPage) copyTo(more *lists, turns []uint8) {
	for i := range min(len(turns), pageLists) {
		for k := range MaxWays {
			entry := p[i][at(turns[i], k)]
			if entry == 0 {
				break
			}
			place := more.of(uint32(entry))
			more.touch(place)
			list := &more.pages[place/pageLists][place%pageLists]
			list[at(0, list.newer(0, never<<numberBit))] = entry // only full lists are rotated
		}
	}
}
