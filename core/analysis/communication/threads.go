package communication

import (
	"sort"

	"github.com/stackglass/stackglass/core/profile"
)

// mostThreads is how many threads are told apart: those behind are the last one.
const mostThreads = profile.MaxThreads

// threads gives threads their slots, in the order of their first reference.
type threads struct {
	numbers []uint32 // by slot
	beyond  uint32   // threads that share the last slot with the one that came first
	slotOf  map[uint32]uint8
	latest  uint32
	known   bool // there is a latest one
}

// slot gives the slot of a thread, which is the latest one from now on.
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

// counts are events and transfers.
type counts struct{ events, transfers uint64 }

func (c *counts) add(from source) {
	c.events++
	if from.transfer {
		c.transfers++
	}
}

// flows are counts by threads, from*mostThreads + to; nil until there are some.
type flows []counts

func (f *flows) add(from source, to uint8) {
	if *f == nil {
		*f = make(flows, mostThreads*mostThreads)
	}
	(*f)[int(from.thread%mostThreads)*mostThreads+int(to%mostThreads)].add(from)
}

// others are the threads that share the last slot with the one that came first,
// ascending.
func (t *threads) others() (list []uint32) {
	for number, slot := range t.slotOf {
		if t.numbers[slot] != number {
			list = append(list, number)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return list
}
