package communication

import "github.com/stackglass/stackglass/core/profile"

// windows are equal windows of references with their flows. Their size doubles to keep at most
// profile.MaxFlowWindows.
type windows struct {
	size, next uint64   // references of a window; number of the first one behind the last window
	first      uint64   // number of the first window: 0 but in later segments
	open       bool     // there is one
	counted    flows    // what those that are closed hold
	closed     []window // but the last one
	spare      []window // room for others
}

type window []placed

type placed struct {
	place uint32
	counts
}

// leastWindow is the least number of references in a window.
const leastWindow = 1024

func (w *windows) init() { w.size = leastWindow }

// begin begins with the window of a reference.
func (w *windows) begin(start uint64) {
	w.size, w.next = sizeFor(start), start
	w.first = start / w.size
}

// sizeFor returns the window size of a run that begins with reference 0 and has come to this one.
func sizeFor(reference uint64) (size uint64) {
	for size = leastWindow; reference/size >= profile.MaxFlowWindows; size *= 2 {
	}
	return size
}

// now returns the number of the current window.
func (w *windows) now() uint32 { return uint32(w.next/w.size - 1) }

// turn begins a window with reference number done. It reports whether windows doubled.
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

// double joins windows in pairs.
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
