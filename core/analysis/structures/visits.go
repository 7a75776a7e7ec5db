package structures

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// visits finds the members of an element that are used together. A visit to an element ends when
// profile.VisitReferences references have passed since the last access to the element, so at most
// profile.VisitReferences visits are unfinished at the same time.
type visits struct {
	list   [window]visit // the unfinished visits; unused entries have no elements
	free   []uint8
	recent [window]uint8     // 1 + the index of the visit to which each of the latest references belongs, by reference number; 0: none
	table  [tableSlots]uint8 // hash table from elements to visits: 1 + the index of the visit; 0: empty slot
	now    uint64            // number of the last reference
	shared [profile.MostPaired]uint8
}

type visit struct {
	base     trace.Addr
	elements uint32 // 1 + an index in Analysis.elements
	used     memberSet
	last     uint64 // number of the last reference to the element
}

const (
	window     = profile.VisitReferences
	tableSlots = 4 * window
	tableMask  = tableSlots - 1
)

type memberSet [4]uint64

func (s *memberSet) add(member int) {
	if member < 256 {
		s[member>>6] |= 1 << (member & 63)
	}
}

func (s *memberSet) unite(with memberSet) {
	for i, word := range with {
		s[i] |= word
	}
}

func (v *visits) init() {
	for i := range v.list {
		v.free = append(v.free, uint8(len(v.list)-1-i))
	}
}

// skipReference records a reference that does not belong to an element.
func (v *visits) skipReference(a *Analysis) { v.recent[v.nextReference(a)] = 0 }

// nextReference begins the next reference, and ends the visit whose last reference leaves the window.
func (v *visits) nextReference(a *Analysis) (at uint64) {
	v.now++
	at = v.now % window
	if n := v.recent[at]; n != 0 {
		if x := &v.list[n-1]; x.elements != 0 && v.now-x.last >= window {
			a.endVisit(x, 1)
			v.remove(n)
		}
	}
	return at
}

// recordElement records a reference to members of the element at address base.
func (v *visits) recordElement(a *Analysis, elements uint32, base trace.Addr, used memberSet) {
	at := v.nextReference(a)
	slot := hash(base, elements+1)
	for ; v.table[slot] != 0; slot = (slot + 1) & tableMask {
		if x := &v.list[v.table[slot]-1]; x.base == base && x.elements == elements+1 {
			break
		}
	}
	n := v.table[slot]
	if n == 0 {
		n = v.free[len(v.free)-1] + 1
		v.free = v.free[:len(v.free)-1]
		v.table[slot] = n
		v.list[n-1] = visit{base: base, elements: elements + 1}
	}
	x := &v.list[n-1]
	x.used.unite(used)
	x.last = v.now
	v.recent[at] = n
}

func hash(base trace.Addr, elements uint32) uint64 {
	h := (base ^ uint64(elements)<<48) * 0x9e3779b97f4a7c15
	return h >> 40 & tableMask
}

// remove removes a visit from the hash table, and closes the gap in the table.
func (v *visits) remove(n uint8) {
	x := &v.list[n-1]
	slot := hash(x.base, x.elements)
	for v.table[slot] != n {
		slot = (slot + 1) & tableMask
	}
	for next := (slot + 1) & tableMask; v.table[next] != 0; next = (next + 1) & tableMask {
		y := &v.list[v.table[next]-1]
		if home := hash(y.base, y.elements); (next-home)&tableMask >= (next-slot)&tableMask {
			v.table[slot], slot = v.table[next], next
		}
	}
	v.table[slot] = 0
	x.elements = 0
	v.free = append(v.free, n-1)
}

// endVisit adds a visit to the counts. If the parameter sign is -1, it subtracts the visit.
func (a *Analysis) endVisit(x *visit, sign int64) {
	e, one := &a.elements[x.elements-1], uint64(sign)
	e.visits += one
	e.starts[x.base%uint64(a.lineBytes)/profile.StartBytes] += one
	list := a.visits.shared[:0]
	for word, set := range x.used {
		for ; set != 0; set &= set - 1 {
			m := word<<6 | bits.TrailingZeros64(set)
			if m >= len(e.members)-1 {
				continue
			}
			e.members[m].visits += one
			if m >= profile.MostPaired {
				continue
			}
			for _, other := range list {
				e.together[profile.Pairs(m)+int(other)] += one
			}
			list = append(list, uint8(m))
		}
	}
}
