package communication

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/profile"
)

const mostThreads = profile.MaxThreads // maximum number of slots; all further threads share the last slot

// threads assigns slots to threads, in the order of their first references.
type threads struct {
	numbers []uint32 // number of each slot's first thread
	beyond  uint32   // number of threads that share the last slot, excluding its first thread
	slotOf  map[uint32]uint8
	latest  uint32
	known   bool // whether latest is valid
}

// slot returns the slot of a thread, and remembers the thread as the latest thread.
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

// add counts an event. If the event is a transfer, it also counts the transfer.
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

// flows contains the counts for each pair of threads, at index from*mostThreads + to; nil: no
// counts.
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

// overflowThreads returns the threads that share the last slot, excluding its first thread, in
// ascending order.
func (t *threads) overflowThreads() (list []uint32) {
	for number, slot := range t.slotOf {
		if t.numbers[slot] != number {
			list = append(list, number)
		}
	}
	slices.Sort(list)
	return list
}

// pairs counts the values that one site wrote and another site used, by data object and by pair of
// threads.
type pairs struct {
	at           index.Table // number of each combination of a site that wrote a value and a pair that used it
	combinations uint32      // number of such combinations
	placed       index.Table // index in the list, by combination and pair of threads
	list         []sitePair
}

type sitePair struct {
	site, pair uint32 // 1 + the slot of the site that stored, and the pair that used the value
	place      uint32 // index in flows
	counts
}

// countsFor returns the counts for a combination of sites and an index in flows.
func (p *pairs) countsFor(site, pair, place uint32) *counts {
	key := p.key(site, pair, place)
	n, known := p.placed.Find(key)
	if !known {
		n = uint32(len(p.list))
		p.placed.Add(key, n)
		p.list = append(p.list, sitePair{site: site, pair: pair, place: place})
	}
	return &p.list[n].counts
}

// key returns the key of a combination of sites and an index in flows.
func (p *pairs) key(site, pair, place uint32) uint64 {
	two := uint64(site)<<32 | uint64(pair)
	n, known := p.at.Find(two)
	if !known {
		n = p.combinations
		p.combinations++
		p.at.Add(two, n)
	}
	return uint64(n)*mostThreads*mostThreads + uint64(place)
}

// windows divides the run into windows with equal numbers of references, and contains the flows in
// each window. The window size doubles if there are more than profile.MaxFlowWindows windows.
type windows struct {
	size, next uint64   // the window size in references, and the number of the first reference after the current window
	open       bool     // there is a current window
	counted    flows    // sum of the counts of all closed windows
	closed     []window // the closed windows
	spare      []window // memory of windows for reuse
}

type window []placed

type placed struct {
	place uint32
	counts
}

const leastWindow = 1024 // initial number of references in a window

func (w *windows) init() { w.size = leastWindow }

// beginWindow closes the current window and begins a new window at the given reference.
func (w *windows) beginWindow(reference uint64, f *flows) {
	if w.open {
		last := w.openCounts(*f, w.room())
		w.closed = append(w.closed, last)
		w.count(last)
	}
	if len(w.closed) == profile.MaxFlowWindows {
		w.joinPairs()
	}
	w.open, w.next = true, (reference/w.size+1)*w.size
}

// joinPairs joins neighbouring windows in pairs.
func (w *windows) joinPairs() {
	for i := 0; i < len(w.closed); i += 2 {
		x, y := w.closed[i], w.closed[i+1]
		w.closed[i/2] = sumWindows(w.room(), x, y)
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

// openCounts appends the counts of the open window to the parameter last, and returns the result.
// The open window has those counts in f that no closed window contains.
func (w *windows) openCounts(f flows, last window) window {
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

// sumWindows adds up the windows x and y, and appends the result to sum.
func sumWindows(sum, x, y window) window {
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
