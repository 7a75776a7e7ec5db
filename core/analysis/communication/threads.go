package communication

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
)

// mostThreads is how many threads are told apart: those behind are the last one.
const mostThreads = profile.MaxThreads

// threads assigns slots in the order of first references.
type threads struct {
	numbers []uint32 // by slot
	beyond  uint32   // threads that share the last slot with the one that came first
	slotOf  map[uint32]uint8
	latest  uint32
	known   bool // there is a latest one
}

// slot returns the slot of a thread, which becomes the latest one.
func (t *threads) slot(number uint32) uint8 {
	t.latest, t.known = number, true
	slot, known := t.slotOf[number]
	if !known {
		slot = t.add(number)
	}
	return slot
}

func (t *threads) add(number uint32) uint8 {
	if t.slotOf == nil {
		t.slotOf = map[uint32]uint8{}
	}
	slot := uint8(mostThreads - 1)
	if len(t.numbers) < mostThreads {
		slot = uint8(len(t.numbers))
		t.numbers = append(t.numbers, number)
	} else {
		t.beyond++
	}
	t.slotOf[number] = slot
	return slot
}

type counts struct{ events, transfers uint64 }

// add adds n events, of which the first may be a transfer.
func (c *counts) add(from source, n uint64) {
	c.events += n
	if from.transfer {
		c.transfers++
	}
}

func (c *counts) join(other counts) {
	c.events += other.events
	c.transfers += other.transfers
}

// flows are counts by from*mostThreads + to; nil if there are none.
type flows []counts

func (f *flows) add(from source, to uint8, n uint64) {
	f.at(placeOf(from.thread, to)).add(from, n)
}

func (f *flows) at(place uint32) *counts {
	if *f == nil {
		*f = make(flows, mostThreads*mostThreads)
	}
	return &(*f)[place]
}

func placeOf(from, to uint8) uint32 {
	return uint32(from%mostThreads)*mostThreads + uint32(to%mostThreads)
}

// others returns the threads that share the last slot with its first one, ascending.
func (t *threads) others() (list []uint32) {
	for number, slot := range t.slotOf {
		if t.numbers[slot] != number {
			list = append(list, number)
		}
	}
	slices.Sort(list)
	return list
}
