package loops

import "runtime"

// A running loop predicts whole iterations. If all iterations have the same number of rows, each
// predicted row equals the corresponding row of the previous iteration except for the address,
// which grows by the step of its leaf. Whole iterations can therefore be compared column by column,
// in a fraction of the time that [Folder.predicted] takes.

const (
	// minimum number of iterations in a sweep; shorter sweeps are slower than single steps
	leastSwept = 4
	maxSwept   = 1 << 12 // maximum number of rows in an iteration of a sweep
)

// sweptRow describes a row of the trace that every iteration repeats.
type sweptRow struct {
	step uint64 // step of the row's address from one iteration to the next
	ref  uint32
	wild bool
}

// sweep consumes whole iterations, from row i on, of a loop that has just begun an iteration. Its
// result has the same meaning as the result of [Folder.predicted].
func (f *Folder) sweep(c *rows, i int) (next int) {
	w := &f.walk
	t := &w.frames[w.begun-1]
	here := f.tree.rows - uint64(len(c.Addr)-i)
	began, rows := t.began, here-t.began
	if t.began = here; began == 0 || rows > min(maxSwept, uint64(i), uint64(len(c.Addr)-i)/leastSwept) || t.trips-t.done < leastSwept || !f.foresee(t, int(rows)) {
		return i
	}
	period, first := int(rows), i
	most := i + int(min(uint64((len(c.Addr)-i)/period), t.trips-t.done))*period
	for size := period; i < most; size *= 2 { // doubling the number of rows each time limits the number of comparisons after a mismatch
		end := min(i+size, most)
		equal := c.repeats(i, end, period)
		for i+period <= equal && f.grows(c.Addr[i-period:i+period]) {
			i += period
		}
		if i < end {
			break
		}
	}
	if i == first {
		return i
	}
	f.record(c, first, i)
	times := uint64((i - first) / period)
	w.depth, t.pos, t.at = w.begun, 0, 0
	if t.done += times; t.done == t.trips {
		t.pos, t.done = len(t.items), t.trips-1 // the position after the last item of the last iteration
	} else {
		for j, step := range t.steps {
			t.cur[j] += step * times
		}
	}
	t.began = here + uint64(i-first)
	w.settle(f.tree.shapes.all)
	return i
}

// foresee lists the rows of an iteration. It reports whether all iterations have the given number
// of rows.
func (f *Folder) foresee(t *frame, rows int) bool {
	if t.foreseen {
		return len(t.rows) == rows
	}
	t.foreseen, t.rows = true, t.rows[:0]
	for _, at := range t.counts[1:] {
		if t.steps[at-1] != 0 {
			return false
		}
	}
	all, w := f.tree.shapes.all, &f.ahead
	w.depth, w.stuck = 0, false
	w.enter(&shape{leafy: t.leafy, items: t.items, steps: t.steps}, 1, t.cur)
	for w.settle(all); w.depth > 0 && !w.stuck && len(t.rows) <= rows; w.settle(all) {
		at := w.depth - 1
		for d := range w.depth {
			at += w.frames[d].at
		}
		of := &w.frames[w.depth-1]
		it := &of.items[of.pos]
		t.rows = append(t.rows, sweptRow{t.steps[at], it.ref, it.wild})
		of.pos++
		of.at++
	}
	if w.depth > 0 {
		t.rows = t.rows[:0]
	}
	return len(t.rows) == rows
}

// grows reports whether each address of an iteration equals the corresponding address of the
// previous iteration plus the step.
func (f *Folder) grows(addrs []uint64) bool {
	rows := f.walk.frames[f.walk.begun-1].rows
	before, now := addrs[:len(rows)], addrs[len(rows):][:len(rows)]
	for k := range rows {
		if r := &rows[k]; now[k]-before[k] != r.step && !r.wild {
			return false
		}
	}
	return true
}

// record records the rows of whole iterations as if they had been consumed one by one.
func (f *Folder) record(c *rows, first, end int) {
	rows := f.walk.frames[f.walk.begun-1].rows
	last, times := end-len(rows), uint64((end-first)/len(rows))
	f.wilds = f.wilds[:0]
	for k := range rows {
		r := &rows[k]
		h := f.habit(r.ref, c.contextOf(last+k))
		h.seen += times
		h.last = c.Addr[last+k]
		if r.wild {
			f.wilds = append(f.wilds, k)
		}
	}
	if len(f.wilds) == 0 {
		return
	}
	for ; first < end; first += len(rows) {
		for _, k := range f.wilds {
			f.tree.streams[rows[k].ref].add(c.Addr[first+k])
		}
	}
}

// repeats compares the rows from i to end with the rows one period earlier, ignoring addresses. It
// returns the index of the first row that differs, or end.
func (c *rows) repeats(i, end, period int) int {
	end = repeats(c.Site, i, end, period)
	end = repeats(c.Kind, i, end, period)
	end = repeats(c.Bytes, i, end, period)
	end = repeats(c.context, i, end, period)
	if c.has.thread {
		end = repeats(c.Thread, i, end, period)
	}
	if c.has.pc {
		end = repeats(c.PC, i, end, period)
	}
	if c.has.arg {
		end = repeats(c.Arg, i, end, period)
	}
	return end
}

const block = 64 // number of rows compared at once

func repeats[T comparable](column []T, i, end, period int) int {
	if len(column) == 0 {
		return end
	}
	if runtime.GOARCH != "wasm" { // Go compares arrays byte by byte on WebAssembly
		for i+block <= end && *(*[block]T)(column[i:]) == *(*[block]T)(column[i-period:]) {
			i += block
		}
	}
	if i >= end {
		return i
	}
	now := column[i:end]
	before := column[i-period:][:len(now)]
	for k, v := range now {
		if v != before[k] {
			return i + k
		}
	}
	return end
}
