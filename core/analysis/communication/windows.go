package communication

import "github.com/stackglass/stackglass/core/profile"

// windows tells what goes between threads over the run: equal windows of
// references, twice as long whenever there would be more than
// profile.MaxFlowWindows.
type windows struct {
	size, next uint64   // references of a window; number of the first one behind the last window
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

// turn begins a window with reference number done.
func (w *windows) turn(done uint64, f *flows) {
	if done > 0 {
		last := w.since(*f, w.room())
		w.closed = append(w.closed, last)
		w.count(last)
	}
	if len(w.closed) == profile.MaxFlowWindows {
		for i := range profile.MaxFlowWindows / 2 {
			x, y := w.closed[2*i], w.closed[2*i+1]
			w.closed[i] = merged(w.room(), x, y)
			w.spare = append(w.spare, x, y)
		}
		w.closed = w.closed[:profile.MaxFlowWindows/2]
		w.size *= 2
	}
	w.next = done + w.size
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
