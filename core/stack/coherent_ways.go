package stack

import "github.com/stackglass/stackglass/core/trace"

// ways are the stacks of sets of a [Coherent], for each number of sets from 2^1 on:
// a list a set of its topmost MaxWays entries, the ids of lines, and holes. What
// falls off its end never comes back by itself, so what is deeper does not matter.
//
// A line that is on top with some number of sets is so with more, and coming there
// again changes nothing: walks end there.
type ways struct {
	lists  [SetCounts]wayLists
	depths [SetCounts][MaxWays]uint64 // of the lines that moved, from 1 on
	deeper [SetCounts]uint64
}

// wayLists are those of one number of sets: the topmost entries side by side, for
// most walks see no others, and what is below them in pages, so that memory grows
// with the sets in use.
type wayLists struct {
	first []uint32 // 0: no entry
	holes []uint8  // by set: how many of its entries are holes
	below []*wayPage
}

type wayPage [pageSets]wayList

// wayList is what is below the topmost entry; 0 ends a short one.
type wayList [MaxWays - 1]uint32

func (w *ways) reset() {
	for a := 1; a < SetCounts; a++ {
		w.lists[a] = wayLists{make([]uint32, 1<<a), make([]uint8, 1<<a), make([]*wayPage, (1<<a+pageSets-1)/pageSets)}
	}
}

// list gives what is below the topmost entry of a set.
func (l *wayLists) list(set int) *wayList {
	p := l.below[set/pageSets]
	if p == nil {
		p = new(wayPage)
		l.below[set/pageSets] = p
	}
	return &p[set%pageSets]
}

// move moves a line to the top and counts how deep it was.
func (w *ways) move(line trace.Line, id uint32) {
	for a := 1; a < SetCounts; a++ {
		l := &w.lists[a]
		set := int(line) & (len(l.first) - 1)
		first := l.first[set]
		if first == id {
			return
		}
		l.first[set] = id
		if d := l.shift(set, first, id); d < MaxWays {
			w.depths[a][d]++
		} else {
			w.deeper[a]++
		}
	}
}

// push puts a line on top that is in no list.
func (w *ways) push(line trace.Line, id uint32) {
	for a := 1; a < SetCounts; a++ {
		l := &w.lists[a]
		set := int(line) & (len(l.first) - 1)
		first := l.first[set]
		l.first[set] = id
		if first != 0 {
			l.shift(set, first, id)
		}
	}
}

// shift moves the topmost entry and those below it down, to the topmost hole or to
// the place of a line, which becomes a hole if it is below that. It gives how deep
// the line was, or MaxWays. Nothing moves past a hole, so that none falls off the end.
func (l *wayLists) shift(set int, first, id uint32) int {
	if l.holes[set] == 0 {
		return l.list(set).moveDown(first, id)
	}
	if l.below[set/pageSets] == nil { // the hole is all there is
		l.holes[set] = 0
		return MaxWays
	}
	list := l.list(set)
	at := 0 // below the hole
	for entry := first; entry != holeID; at++ {
		if entry == id {
			return at
		}
		list[at], entry = entry, list[at]
	}
	for ; at < len(list); at++ {
		if list[at] == id {
			list[at] = holeID
			return at + 1
		}
	}
	l.holes[set]--
	return MaxWays
}

// moveDown is shift where there are no holes.
func (l *wayList) moveDown(entry, id uint32) int {
	for i, here := range l {
		l[i] = entry
		if here == id {
			return i + 1
		}
		if here == 0 {
			break
		}
		entry = here
	}
	return MaxWays
}

// fall moves a line from above the others that came into the array, whose number
// in its set is given in lanes, to below them.
func (w *ways) fall(line trace.Line, id uint32, above uint64) {
	for a := 1; above != 0; a++ {
		l := &w.lists[a]
		set := int(line) & (len(l.first) - 1)
		list := l.list(set)
		places := list[:above&laneMask]
		if l.first[set] == id {
			l.first[set], places[0] = places[0], id
		}
		for i, here := range places {
			if here == id && i+1 < len(places) {
				places[i], places[i+1] = places[i+1], id
			}
		}
		above >>= laneBits
	}
}

// lose makes holes of a line. A line is never deeper with more sets.
func (w *ways) lose(line trace.Line, id uint32) {
	for a := setBits; a > 0; a-- {
		if !w.lists[a].lose(int(line)&(1<<a-1), id) {
			return
		}
	}
}

func (l *wayLists) lose(set int, id uint32) bool {
	if l.first[set] == id {
		l.first[set] = holeID
		l.holes[set]++
		return true
	}
	if l.below[set/pageSets] == nil {
		return false
	}
	for i, here := range l.below[set/pageSets][set%pageSets] {
		if here == id {
			l.below[set/pageSets][set%pageSets][i] = holeID
			l.holes[set]++
			return true
		}
	}
	return false
}
