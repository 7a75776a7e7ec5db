package communication

import "github.com/stackglass/stackglass/core/profile"

// windows tells what goes between threads over the run: equal windows of
// references, twice as long whenever there would be more than
// profile.MaxFlowWindows.
type windows struct {
	size, next uint64   // references of a window; number of the first one behind the last window
	first      uint64   // number of the first window: 0 but in later segments
	open       bool     // there is one
	counted    flows    // what those that are closed hold
	closed     []window // but the last one
	spare      []window // room for others
}

// window holds flows, ascending by place.
type window []placed

// placed are counts at a place in flows.
type placed struct {
	place uint32
	counts
}

// leastWindow is the least number of references in a window.
const leastWindow = 1024

func (w *windows) init() { w.size = leastWindow }

// begin has the first window be the one of a reference.
func (w *windows) begin(start uint64) {
	w.size, w.next = sizeFor(start), start
	w.first = start / w.size
}

// sizeFor is the size of the window of a reference, in a run that begins with number 0.
func sizeFor(reference uint64) (size uint64) {
	for size = leastWindow; reference/size >= profile.MaxFlowWindows; size *= 2 {
	}
	return size
}

// now is the number of the window that the run is in.
func (w *windows) now() uint32 { return uint32(w.next/w.size - 1) }

// turn begins a window with reference number done. It tells whether they are twice as
// long from now on.
func (w *windows) turn(done uint64, f *flows) (doubled bool) {
	if w.open {
		last := w.since(*f, w.room())
		w.closed = append(w.closed, last)
		w.count(last)
	}
	if doubled = w.first+uint64(len(w.closed)) == profile.MaxFlowWindows; doubled {
		w.double()
	}
	w.open, w.next = true, (done/w.size+1)*w.size
	return doubled
}

// double joins windows in twos.
func (w *windows) double() {
	first, to := w.first/2, 0
	for i := 0; i < len(w.closed); to++ {
		last := i
		if (w.first+uint64(i))%2 == 0 && i+1 < len(w.closed) {
			last++
			x, y := w.closed[i], w.closed[last]
			w.closed[to] = merged(w.room(), x, y)
			w.spare = append(w.spare, x, y)
		} else {
			w.closed[to] = w.closed[i]
		}
		i = last + 1
	}
	w.closed, w.first, w.size = w.closed[:to], first, 2*w.size
}

// count adds to what closed windows hold.
func (w *windows) count(last window) {
	if w.counted == nil && len(last) > 0 {
		w.counted = make(flows, mostThreads*mostThreads)
	}
	for _, c := range last {
		w.counted[c.place].events += c.events
		w.counted[c.place].transfers += c.transfers
	}
}

// room gives an empty window.
func (w *windows) room() window {
	last := len(w.spare) - 1
	if last < 0 {
		return nil
	}
	room := w.spare[last][:0]
	w.spare = w.spare[:last]
	return room
}

// since appends to last what is in f and not in closed windows.
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

// merged appends two windows to sum, joined.
func merged(sum, x, y window) window {
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0].place < y[0].place:
			sum, x = append(sum, x[0]), x[1:]
		case x[0].place > y[0].place:
			sum, y = append(sum, y[0]), y[1:]
		default:
			both := x[0]
			both.events += y[0].events
			both.transfers += y[0].transfers
			sum, x, y = append(sum, both), x[1:], y[1:]
		}
	}
	return append(append(sum, x...), y...)
}
