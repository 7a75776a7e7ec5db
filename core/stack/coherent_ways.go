package stack

import "github.com/stackglass/stackglass/core/trace"

// ways are the stacks of sets of a [Coherent], for each number of sets from 2^1 on:
// a list a set of its topmost entries, the ids of lines, and holes. What falls off
// its end never comes back by itself, so what is deeper does not matter.
//
// A line that is on top with some number of sets is so with more, and coming there
// again changes nothing: walks end there. With how few sets a line is in no list
// is noted by id, so that nobody looks for what is not there.
type ways struct {
	lists  [SetCounts]wayLists
	gone   []uint8                        // by id: the most sets, 2^a, in whose lists it is not
	depths [SetCounts][listEntries]uint64 // of lines that were found and moved, from 1 on
	late   [SetCounts]uint64              // lines that were not found, by gone
}

// wayLists are those of one number of sets: the topmost entries side by side, for
// most walks see no others, and what is below them in pages, so that memory grows
// with the sets in use.
type wayLists struct {
	sets  []waySet
	below []*wayPage
}

type waySet struct {
	first uint32 // the topmost entry; 0: there is none
	head  uint8  // where in the ring the next one is
	holes uint8  // entries that are holes, the topmost one too
}

type wayPage [pageSets]wayRing

// wayRing is what is below the topmost entry, from head on and around; 0 ends a
// short list. So an entry that pushes all others down is a store.
type wayRing [MaxWays]uint32

const (
	pageSets    = 16
	listEntries = 1 + MaxWays
)

func (w *ways) reset() {
	for a := 1; a < SetCounts; a++ {
		w.lists[a] = wayLists{make([]waySet, 1<<a), make([]*wayPage, (1<<a+pageSets-1)/pageSets)}
	}
	w.gone = []uint8{0} // of what has no id, 0
}

// ring gives what is below the topmost entry of a set.
func (l *wayLists) ring(set int) *wayRing {
	p := l.below[set/pageSets]
	if p == nil {
		p = new(wayPage)
		l.below[set/pageSets] = p
	}
	return &p[set%pageSets]
}

// add puts a line on top that is in no list, whose id may be the next one.
func (w *ways) add(line trace.Line, id uint32) {
	if int(id) == len(w.gone) {
		w.gone = append(w.gone, 0)
	}
	w.push(line, id, setBits)
	w.gone[id] = 0
}

// move moves a line to the top of its lists and counts how deep it was.
func (w *ways) move(line trace.Line, id uint32) {
	gone := int(w.gone[id])
	w.late[gone]++
	w.push(line, id, gone)
	for a := gone + 1; a < SetCounts; a++ {
		l := &w.lists[a]
		set := int(line) & (len(l.sets) - 1)
		s := &l.sets[set]
		first := s.first
		if first == id {
			break
		}
		s.first = id
		ring := l.ring(set)
		d := 0
		if s.holes == 0 {
			d = ring.moveDown(s.head, first, id)
		} else {
			d = ring.fillHole(s.head, first, id)
		}
		w.depths[a][d%listEntries]++
	}
	w.gone[id] = 0
}

// push puts a line on top of its lists of up to 2^most sets, where it is not. It
// fills the topmost hole of a set or pushes its last entry out.
func (w *ways) push(line trace.Line, id uint32, most int) {
	for a := 1; a <= most; a++ {
		l := &w.lists[a]
		set := int(line) & (len(l.sets) - 1)
		s := &l.sets[set]
		first := s.first
		s.first = id
		switch {
		case first == 0:
		case s.holes == 0:
			s.head = (s.head - 1) % MaxWays
			last := &l.ring(set)[s.head]
			w.gone[*last] = uint8(a)
			*last = first
		default:
			s.holes--
			if first != holeID {
				l.ring(set).fillHole(s.head, first, holeID)
			}
		}
	}
}

// moveDown moves a topmost entry and those below it down, to the place of a line,
// whose depth it gives. It is there.
func (r *wayRing) moveDown(head uint8, entry, id uint32) int {
	for d := range len(r) {
		place := &r[(int(head)+d)%len(r)]
		here := *place
		*place = entry
		if here == id {
			return d + 1
		}
		entry = here
	}
	return 0
}

// fillHole does so down to the topmost hole, if the line is below that: its place
// becomes a hole then. Nothing moves past a hole, so that none falls off the end.
func (r *wayRing) fillHole(head uint8, entry, id uint32) int {
	d := 0
	for entry != holeID {
		place := &r[(int(head)+d)%len(r)]
		if d++; *place == id {
			*place = entry
			return d
		}
		entry, *place = *place, entry
	}
	for ; d < len(r); d++ {
		if place := &r[(int(head)+d)%len(r)]; *place == id {
			*place = holeID
			return d + 1
		}
	}
	return 0
}

// count adds what was counted to a table, and gives for each number of sets how
// many lines were not found, or at MaxWays.
func (w *ways) count(t *SetDepths) (deeper [SetCounts]uint64) {
	late := uint64(0)
	for a := setBits; a > 0; a-- {
		late += w.late[a]
		deeper[a] = late + w.depths[a][MaxWays]
		for d, n := range w.depths[a][:MaxWays] {
			t[a][d] += n
		}
	}
	return deeper
}

// fall moves a line from above the others that came into the array, whose number
// in its set is given in lanes, to below them.
func (w *ways) fall(line trace.Line, id uint32, above uint64) {
	for a := 1; above != 0; a++ {
		l := &w.lists[a]
		set := int(line) & (len(l.sets) - 1)
		s, ring := &l.sets[set], l.ring(set)
		next := &ring[s.head%MaxWays]
		if s.first == id {
			s.first, *next = *next, id
		}
		for i := 1; i < int(above&laneMask); i++ {
			place := next
			next = &ring[(int(s.head)+i)%MaxWays]
			if *place == id {
				*place, *next = *next, id
			}
		}
		above >>= laneBits
	}
}

// lose makes holes of a line.
func (w *ways) lose(line trace.Line, id uint32) {
	for a := setBits; a > int(w.gone[id]); a-- {
		l := &w.lists[a]
		set := int(line) & (len(l.sets) - 1)
		s := &l.sets[set]
		s.holes++
		if s.first == id {
			s.first = holeID
			continue
		}
		for i, ring := 0, l.ring(set); i < len(ring); i++ {
			if ring[i] == id {
				ring[i] = holeID
				break
			}
		}
	}
}
