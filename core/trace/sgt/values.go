package sgt

import (
	"encoding/binary"
	"math/bits"
)

// The values in the queue become rows in one of two equivalent ways: [decoder.inTurn] and [decoder.inSteps].

// differences decodes the differences of the values that miss. If there are too few, the queue ends.
func (d *decoder) differences() {
	q := &d.queue
	for i := d.shortDifferences(0); i < q.missEnd; i = d.shortDifferences(i + 1) {
		at := q.misses[i]
		v := &d.cells.all[uint32(q.values[at])]
		off, after := difference(d.content, d.value, v.scale)
		if after > d.valueEnd {
			q.valueEnd, q.wrong = int(at), errControl
			break
		}
		d.value, q.offs[i] = after, off
	}
}

// shortDifferences decodes from the i-th value that misses on, up to one whose difference has more than
// eight bytes, or is missing. It returns the index of that one.
func (d *decoder) shortDifferences(i int) int {
	q, cells := &d.queue, d.cells.all
	if len(cells) == 0 {
		return i
	}
	content := (*[window + 16]byte)(d.content[d.value:])
	at, left, end := 0, d.valueEnd-d.value, q.missEnd
	for i < end {
		value := q.values[q.misses[i&(valueRoom-1)]&(valueRoom-1)]
		v := &cells[int(value)&(len(cells)-1)]
		word := binary.LittleEndian.Uint64(content[at&(window-1):])
		t := bits.TrailingZeros64(word | 1<<8)
		z := word << (uint(56-8*t) & 63) >> (uint(57-7*t) & 63)
		scaled := uint64(v.scaled)
		next := at + 1 + t
		if uint64(t>>3)|z&scaled|uint64(left-next)>>63 != 0 {
			break
		}
		at = next
		q.offs[i&(valueRoom-1)] = unzigzag(z>>(scaled&63)) << (v.scale & 63)
		i++
	}
	d.value += at
	return i
}

// inTurn writes the rows of values in the queue, row by row, the fastest way natively. Misses are
// unpredictable in irregular code, and a mispredicted branch costs as much as several values, so it is the
// only branch that depends on the trace.
//
// It is one function, with [difference] inlined by hand, so that its state stays in registers: calls cost a
// quarter of the time.
func (d *decoder) inTurn(c *columns, row int) (next int, err error) {
	q, cells := &d.queue, d.cells.all
	if len(cells) == 0 {
		return row, nil
	}
	values := q.values[q.valueAt:q.valueEnd]
	values = values[:min(len(values), len(c.addr)-row)]
	addrs, kinds := c.addr[row:][:len(values)], c.kind[row:][:len(values)]
	bytes, sites := c.bytes[row:][:len(values)], c.site[row:][:len(values)]
	content, previous, at, end := d.content, d.previous, d.value, d.valueEnd
	done := len(values)
	for i, value := range values {
		v := &cells[int(value)&(len(cells)-1)]
		now, other := v.predict(previous)
		if value < 1<<missedShift {
			v.missed = 0
		} else {
			z, after := prefix(content, at)
			low := uint64(0)
			if z&uint64(v.scaled) != 0 {
				low, after = prefix(content, after)
			}
			z >>= v.scaled & 1
			if at = after; at > end {
				done, err = i, errControl
				break
			}
			off := unzigzag(z)<<(v.scale&63) | low
			now = v.last + off
			v.miss(now, previous, other, off)
		}
		v.last, previous = now, now
		addrs[i], kinds[i], bytes[i], sites[i] = now&v.mask, v.kind, v.bytes, v.site
	}
	d.previous, d.value = previous, at
	q.valueAt += done
	return row + done, err
}

// inSteps writes the rows of values in the queue column by column: first differences, then addresses, then
// the rest. The loops have no branches and few live values, because in WebAssembly every taken branch goes
// through a jump table, for which registers are saved.
func (d *decoder) inSteps(c *columns, row int) (next int, err error) {
	q := &d.queue
	if q.valueAt == 0 {
		d.differences()
	}
	values := q.values[q.valueAt:q.valueEnd]
	values = values[:min(len(values), len(c.addr)-row)]
	d.addresses(c.addr[row:], values)
	d.describe(c, row, values)
	q.valueAt += len(values)
	if len(values) == 0 {
		err = q.wrong
	}
	return row + len(values), err
}

// addresses computes the addresses of values in the queue, without a branch for misses.
func (d *decoder) addresses(addrs, values []uint64) {
	q, cells := &d.queue, d.cells.all
	if len(cells) == 0 {
		return
	}
	previous, miss := d.previous, q.missAt
	addrs = addrs[:len(values)]
	for i, value := range values {
		v := &cells[int(value)&(len(cells)-1)]
		now, other := v.predict(previous)
		off, missed := q.offs[miss&(valueRoom-1)], -(value >> missedShift)
		now ^= (now ^ (v.last + off)) & missed
		v.learn(now, previous, other, off, missed)
		previous = now
		addrs[i] = now & v.mask
		miss -= int(missed)
	}
	d.previous, q.missAt = previous, miss
}

// describe writes the columns that do not depend on values, of the rows of values in the queue.
func (d *decoder) describe(c *columns, row int, values []uint64) {
	cells := d.cells.all
	if len(cells) == 0 {
		return
	}
	kinds := c.kind[row:][:len(values)]
	bytes, sites := c.bytes[row:][:len(values)], c.site[row:][:len(values)]
	for i, value := range values {
		v := &cells[int(value)&(len(cells)-1)]
		kinds[i], bytes[i], sites[i] = v.kind, v.bytes, v.site
	}
}
