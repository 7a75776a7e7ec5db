package loops

import "runtime"

// A running loop predicts whole iterations. If all iterations have the same number of rows, each
// predicted row equals the corresponding row of the previous iteration except for the address,
// which grows by the step of its leaf. Whole iterations can therefore be compared column by column,
// in a fraction of the time that [Folder.consumePredicted] takes.

const (
	// minimum number of iterations in a sweep; a shorter sweep is slower than consuming rows one by
	// one
	leastSwept = 4
	maxSwept   = 1 << 12 // maximum number of rows per iteration of a sweep
)

// sweptRow describes a row that every iteration of a loop repeats.
type sweptRow struct {
	step uint64 // step of the row's address from one iteration to the next
	ref  uint32
	wild bool
}

// sweep consumes whole iterations of a loop, starting with row i. The loop must have just
// begun an iteration. The result has the same meaning as the result of
// [Folder.consumePredicted].
func (f *Folder) sweep(c *rows, i int) (next int) {
	w := &f.walk
	t := &w.frames[w.begun-1]
	here := f.tree.rows - uint64(len(c.Addr)-i)
	began, rows := t.began, here-t.began
	if t.began = here; began == 0 || rows > min(maxSwept, uint64(i), uint64(len(c.Addr)-i)/leastSwept) || t.trips-t.done < leastSwept || !f.listIteration(t, int(rows)) {
		return i
	}
	period, first := int(rows), i
	most := i + int(min(uint64((len(c.Addr)-i)/period), t.trips-t.done))*period
	for size := period; i < most; size *= 2 { // the number of rows doubles, which limits the number of unnecessary comparisons after a mismatch
		end := min(i+size, most)
		equal := c.compareRows(i, end, period)
		for i+period <= equal && f.addressesAdvance(c.Addr[i-period:i+period]) {
			i += period
		}
		if i < end {
			break
		}
	}
	if i == first {
		return i
	}
	f.recordRows(c, first, i)
	times := uint64((i - first) / period)
	w.depth, t.pos, t.at = w.begun, 0, 0
	if t.done += times; t.done == t.trips {
		t.pos, t.done = len(t.items), t.trips-1 // move to the position after the last item of the last iteration
	} else {
		for j, step := range t.steps {
			t.cur[j] += step * times
		}
	}
	t.began = here + uint64(i-first)
	w.settle(f.tree.shapes.all)
	return i
}

// listIteration lists the rows of one iteration, and reports whether all iterations have the given
// number of rows.
func (f *Folder) listIteration(t *frame, rows int) bool {
	if t.listed {
		return len(t.rows) == rows
	}
	t.listed, t.rows = true, t.rows[:0]
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

// addressesAdvance reports whether each address of an iteration equals the address in the previous
// iteration plus the step. It ignores wild rows.
func (f *Folder) addressesAdvance(addrs []uint64) bool {
	rows := f.walk.frames[f.walk.begun-1].rows
	before, now := addrs[:len(rows)], addrs[len(rows):][:len(rows)]
	for k := range rows {
		if r := &rows[k]; now[k]-before[k] != r.step && !r.wild {
			return false
		}
	}
	return true
}

// recordRows updates the habits and the wild addresses as if the rows of whole iterations had been
// consumed one by one.
func (f *Folder) recordRows(c *rows, first, end int) {
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

// compareRows compares the rows [i, end) with the rows one period earlier. It compares all columns
// except the address. It returns the index of the first row that differs. If no row differs, it
// returns the parameter "end".
func (c *rows) compareRows(i, end, period int) int {
	end = compareColumn(c.Site, i, end, period)
	end = compareColumn(c.Kind, i, end, period)
	end = compareColumn(c.Bytes, i, end, period)
	end = compareColumn(c.context, i, end, period)
	if c.has.thread {
		end = compareColumn(c.Thread, i, end, period)
	}
	if c.has.pc {
		end = compareColumn(c.PC, i, end, period)
	}
	if c.has.arg {
		end = compareColumn(c.Arg, i, end, period)
	}
	return end
}

const block = 64 // number of rows compared at once

func compareColumn[T comparable](column []T, i, end, period int) int {
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
