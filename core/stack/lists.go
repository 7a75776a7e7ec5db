package stack

import "runtime"

// lists are the lists of one number of sets, in pages that are made when first visited.
type lists struct {
	most  int     // they are of 2^most sets,
	least int     // and sets of down to 2^least are put together from them
	turn  []uint8 // by place: how often its list was turned
	pages []*listPage
}

// listPage are neighbouring lists. Those that are combined are in the same page.
type listPage [pageLists]list

const pageLists = 128

// have writes to new memory before it is read. The system maps what is read first twice, and
// the second time interrupts the other processors.
func (p *listPage) have() {
	const each = 4096 / (4 * MaxWays) // lists in a page of the system
	for i := 0; i < pageLists; i += each {
		p[i][0] = 0
	}
}

// list has the entries of a set in order; 0 stands for none, older than any. It is
// a ring: where it is full and gets another entry, the oldest makes way and the list
// turns by one, which is a single store. It turns only then, so that the newest half
// of a list that is not full keeps to one line of the cache.
type list [MaxWays]uint32

const half = MaxWays / 2

// makeLists makes empty lists. Only pages of few sets are made at once.
func makeLists(least, most int) lists {
	l := lists{most: most, least: least, turn: make([]uint8, 1<<most), pages: make([]*listPage, max(1, 1<<most/pageLists))}
	for i := range l.pages {
		if l.near() {
			l.pages[i] = new(listPage)
		}
	}
	return l
}

// near reports whether the lists are so few that they stay in the cache by themselves.
func (l *lists) near() bool { return l.most <= nearLists }

// of returns the place of a line's list. Lists that are combined are neighbours.
func (l *lists) of(line uint32) (place uint32) {
	place = line & uint32(len(l.turn)-1)
	return (place<<((l.most-l.least)&31) | place>>(l.least&31)) & uint32(len(l.turn)-1)
}

// beside returns how many newer lines a set of 2^b has outside of the set of 2^(b+1) that is
// part of it and has n: several lists are combined.
func (l *lists) beside(p *listPage, place uint32, b, n int, after uint32) (beside int) {
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

// few: callers count less than four newer entries, the common case, themselves, because calls
// are expensive in WebAssembly.
const few = runtime.GOARCH == "wasm"

// at returns the place of the kth newest entry, from 0.
func at(turn uint8, k int) int { return (int(turn) + half - 1 - k) & (MaxWays - 1) }

// newer counts the entries from after on: in one half, by quarters and then within one, without
// branches, which would be hard to predict.
func (l *list) newer(turn uint8, after uint32) int {
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

// since is 1 if an entry is from after on, else 0. It is arithmetic, because for WebAssembly
// the compiler branches for what the address of a load depends on.
func since(entry, after uint32) int { return int((uint64(after) - 1 - uint64(entry)) >> 63) }

// insert puts an entry in front of the n newest ones, in place of the next.
func (l *list) insert(turn uint8, n int, entry uint32) {
	p := at(turn, n)
	for ; n > 0; n-- {
		next := (p + 1) & (MaxWays - 1)
		l[p] = l[next]
		p = next
	}
	l[p] = entry
}

// toFront is newer and insert in one, for a list whose newest half has the place: it rewrites
// that half, without branches.
func (l *list) toFront(turn uint8, entry, after uint32) (n int) {
	for k := 0; k < half; k += 4 {
		pa, pb, pc, pd := at(turn, k), at(turn, k+1), at(turn, k+2), at(turn, k+3)
		a, b, c, d := l[pa], l[pb], l[pc], l[pd]
		carry := d
		if a >= after {
			n++
		}
		if b >= after {
			n++
		}
		if c >= after {
			n++
		}
		if d >= after {
			n++
		}
		if c >= after {
			d = c
		}
		if b >= after {
			c = b
		}
		if a >= after {
			b = a
		}
		if entry >= after {
			a = entry
		}
		l[pa], l[pb], l[pc], l[pd] = a, b, c, d
		entry = carry
	}
	return n
}

// push puts an entry in front of a list in place of the oldest.
func (l *lists) push(p *listPage, place, entry uint32) {
	turn := l.turn[place] + 1
	l.turn[place] = turn
	p[place%pageLists][at(turn, 0)] = entry
}

// move moves a line to the front. It reports whether it was not there.
func (l *lists) move(place, after, now uint32) bool {
	p, turn := l.pages[place/pageLists], l.turn[place]
	list := &p[place%pageLists]
	if newest := &list[at(turn, 0)]; *newest < after {
		first := *newest == 0
		*newest = now
		return first
	}
	if n := list.newer(turn, after); n < MaxWays {
		list.insert(turn, n, now)
	} else {
		l.push(p, place, now)
	}
	return true
}

// touch loads what a visit to a list will read, and to lists combined with it if these are
// many. It makes their page.
func (l *lists) touch(place uint32, beside bool) (sink uint32) {
	p := l.pages[place/pageLists]
	if p == nil {
		p = new(listPage)
		p.have()
		l.pages[place/pageLists] = p
	}
	n := uint32(1)
	if beside && l.most > nearGroup {
		n <<= l.most - l.least
	}
	for k := range n {
		list, turn := &p[(place^k)%pageLists], l.turn[place^k]
		sink += list[at(turn, 0)] + list[at(turn, half-1)]
	}
	return sink
}
