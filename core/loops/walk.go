package loops

import "slices"

// walk is an odometer: a position in the iterations of a nest. It is at a leaf, unless it is stuck.
type walk struct {
	frames []frame // of the loops around the position, the outermost first
	depth  int     // frames in use; 0: nowhere
	stuck  bool    // at a loop that would not run, with no leaf beside it
	skips  bool    // skips such loops, too
}

// frame is a running loop.
type frame struct {
	flat  bool // of its shape
	leafy bool // of its shape
	items []item
	steps []uint64
	cur   []uint64 // the body's parameters in this iteration, as many as steps
	pos   int      // the next item
	at    int      // its first parameter, in cur
	done  uint64   // whole iterations before this one
	trips uint64
}

// enter begins the first iteration of a loop; start are its body's parameters there.
func (w *walk) enter(s *shape, trips uint64, start []uint64) *frame {
	if w.depth == len(w.frames) {
		w.frames = append(w.frames, frame{})
	}
	t := &w.frames[w.depth]
	w.depth++
	t.flat, t.leafy, t.items, t.steps, t.cur = s.flat, s.leafy, s.items, s.steps, append(t.cur[:0], start...)
	t.pos, t.at, t.done, t.trips = 0, 0, 0, trips
	return t
}

// settle moves from behind an item, or from before a loop, to the next leaf or to the end of the nest.
func (w *walk) settle(all []shape) {
	for w.depth > 0 {
		t := &w.frames[w.depth-1]
		if t.pos == len(t.items) {
			if t.done++; t.done < t.trips {
				t.again()
				continue
			}
			w.depth--
			if w.depth > 0 {
				above := &w.frames[w.depth-1]
				above.pos++
				above.at += 1 + len(t.cur)
			}
			continue
		}
		if !t.items[t.pos].loop {
			return
		}
		trips := t.cur[t.at]
		if int64(trips) < 1 && (w.skips || t.leafy) {
			t.at += int(t.items[t.pos].params)
			t.pos++
			continue
		}
		if int64(trips) < 1 {
			w.stuck = true
			return
		}
		s := &all[t.items[t.pos].shape]
		w.enter(s, trips, t.cur[t.at+1:t.at+s.params])
	}
}

// again begins another iteration.
func (t *frame) again() {
	t.pos, t.at = 0, 0
	cur := t.cur[:len(t.steps)]
	for i, step := range t.steps {
		cur[i] += step
	}
}

// untouched reports whether no row of this iteration of the outermost loop came yet.
func (w *walk) untouched() bool {
	for d := range w.depth {
		if t := &w.frames[d]; d > 0 && t.done > 0 || t.passed() {
			return false
		}
	}
	return true
}

// passed reports whether items of this iteration, except loops that do not run, are done.
func (t *frame) passed() bool {
	return slices.ContainsFunc(t.items[:t.pos], func(it item) bool { return !it.loop || int64(t.cur[it.at]) > 0 })
}
