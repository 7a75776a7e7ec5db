package communication

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/profile"
)

const mostThreads = profile.MaxThreads // distinguished; the others share the last slot

// threads assigns slots in the order of first references.
type threads struct {
	numbers []uint32 // by slot
	beyond  uint32   // threads that share the last slot with the first one there
	slotOf  map[uint32]uint8
	latest  uint32
	known   bool // there is a latest one
}

// slot returns the slot of a thread, which becomes the latest one.
func (t *threads) slot(number uint32) uint8 {
	t.latest, t.known = number, true
	if slot, known := t.slotOf[number]; known {
		return slot
	}
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

// add adds an event, which may be a transfer.
func (c *counts) add(from source) {
	c.events++
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

func (f *flows) add(from source, to uint8) {
	f.at(placeOf(from.thread, to)).add(from)
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

// pairs counts values that one site wrote and another used, by data object and threads.
type pairs struct {
	at     index.Table // by the site that wrote, and the pair that used: index of the two
	both   uint32      // number of these
	placed index.Table // by these, and the position in flows: index in list
	list   []sitePair
}

type sitePair struct {
	site, pair uint32 // 1 + the slot of the store; the pair of sites of the reference
	place      uint32 // in flows
	counts
}

// of returns the counts of a pair at a place in flows.
func (p *pairs) of(site, pair, place uint32) *counts {
	key := p.key(site, pair, place)
	n, known := p.placed.Find(key)
	if !known {
		n = uint32(len(p.list))
		p.placed.Add(key, n)
		p.list = append(p.list, sitePair{site: site, pair: pair, place: place})
	}
	return &p.list[n].counts
}

// key numbers the combinations of a pair and a place in flows.
func (p *pairs) key(site, pair, place uint32) uint64 {
	two := uint64(site)<<32 | uint64(pair)
	n, known := p.at.Find(two)
	if !known {
		n = p.both
		p.both++
		p.at.Add(two, n)
	}
	return uint64(n)*mostThreads*mostThreads + uint64(place)
}

// windows are equal windows of references with their flows. Their size doubles to keep at most
// profile.MaxFlowWindows.
type windows struct {
	size, next uint64   // references of a window; number of the first one after the last window
	open       bool     // there is one
	counted    flows    // the counts in closed windows
	closed     []window // but the last one
	spare      []window // room for others
}

type window []placed

type placed struct {
	place uint32
	counts
}

const leastWindow = 1024 // references

func (w *windows) init() { w.size = leastWindow }

// turn begins a window with reference number done.
func (w *windows) turn(done uint64, f *flows) {
	if w.open {
		last := w.since(*f, w.room())
		w.closed = append(w.closed, last)
		w.count(last)
	}
	if len(w.closed) == profile.MaxFlowWindows {
		w.double()
	}
	w.open, w.next = true, (done/w.size+1)*w.size
}

// double joins windows in pairs.
func (w *windows) double() {
	for i := 0; i < len(w.closed); i += 2 {
		x, y := w.closed[i], w.closed[i+1]
		w.closed[i/2] = merged(w.room(), x, y)
		w.spare = append(w.spare, x, y)
	}
	w.closed, w.size = w.closed[:len(w.closed)/2], 2*w.size
}

func (w *windows) count(last window) {
	for _, c := range last {
		w.counted.at(c.place).join(c.counts)
	}
}

func (w *windows) room() window {
	last := len(w.spare) - 1
	if last < 0 {
		return nil
	}
	room := w.spare[last][:0]
	w.spare = w.spare[:last]
	return room
}

// since appends the flows of f that are not in closed windows to last.
func (w *windows) since(f flows, last window) window {
	for place, c := range f {
		if w.counted != nil {
			c.events -= w.counted[place].events
			c.transfers -= w.counted[place].transfers
		}
		if c.events != 0 {
			last = append(last, placed{uint32(place), c})
		}
	}
	return last
}

// merged appends the sum of two windows to sum.
func merged(sum, x, y window) window {
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0].place < y[0].place:
			sum, x = append(sum, x[0]), x[1:]
		case x[0].place > y[0].place:
			sum, y = append(sum, y[0]), y[1:]
		default:
			both := x[0]
			both.join(y[0].counts)
			sum, x, y = append(sum, both), x[1:], y[1:]
		}
	}
	return append(append(sum, x...), y...)
}
