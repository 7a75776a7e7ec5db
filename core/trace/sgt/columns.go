package sgt

import (
	"encoding/binary"
	"math/bits"

	"github.com/stackglass/stackglass/core/trace"
)

// columns contains the columns of a batch that is being filled. All columns have equal length.
// Missing columns are nil.
type columns struct {
	addr  []trace.Addr
	bytes []uint32
	kind  []trace.Kind
	site  []uint32
	arg   []uint64 // filled with zeros in advance, because not every row has a second value
}

// describe fills the rows of a straight block, but only the columns that do not depend on values.
func (c *columns) describe(row int, cells []cell) {
	kind := c.kind[row:][:len(cells)]
	bytes, site := c.bytes[row:][:len(cells)], c.site[row:][:len(cells)]
	for i := range cells {
		v := &cells[i]
		kind[i], bytes[i], site[i] = v.kind, v.bytes, v.site
	}
}

// plain writes one row of a step. The parameter r describes the row, and vals contains the values
// of the step.
func (c *columns) plain(row int, r *planRow, vals *[MaxValues + 1]uint64) {
	c.addr[row], c.bytes[row], c.kind[row], c.site[row] = vals[r.addr], r.bytes, r.kind, r.site
	if c.arg != nil && r.how != sizedRow {
		c.arg[row] = vals[r.arg] + r.more
	}
}

// repeatRows fills the rows [row, end) by repeating the rows [pattern, row). It fills all columns
// except the addresses.
func (c *columns) repeatRows(pattern, row, end int) {
	repeatColumn(c.kind, pattern, row, end)
	repeatColumn(c.bytes, pattern, row, end)
	repeatColumn(c.site, pattern, row, end)
}

// repeatColumn fills column[row:end] by repeating column[pattern:row]. Each copy is twice as long
// as the previous copy.
func repeatColumn[T any](column []T, pattern, row, end int) {
	for row < end {
		row += copy(column[row:end], column[pattern:row])
	}
}

// rows writes as many rows of a step as fit into c. The values of the step are in the field "vals".
// The remaining rows of the step stay in the field "pending".
func (d *decoder) rows(c *columns, row int, p *plan) int {
	if p.form == varying || row+len(p.rows) > len(c.addr) {
		d.pending = pending{rows: p.rows}
		return d.drain(c, row)
	}
	for i := range p.rows {
		c.plain(row+i, &p.rows[i], &d.vals)
	}
	return row + len(p.rows)
}

func (d *decoder) drain(c *columns, row int) int {
	p := &d.pending
	for len(p.rows) > 0 && row < len(c.addr) {
		r := &p.rows[0]
		if r.how == unlessGoing && d.vals[r.addr] != 0 {
			p.rows = p.rows[1:]
			continue
		}
		c.plain(row, r, &d.vals)
		if r.how == sizedRow && d.writeRangeRow(c, row, r) {
			row++
			continue
		}
		p.rows, p.bytes = p.rows[1:], 0
		row++
	}
	return row
}

// writeRangeRow writes one row of a reference whose size is a value of the step. writeRangeRow
// reports whether the reference needs further rows.
func (d *decoder) writeRangeRow(c *columns, row int, r *planRow) bool {
	p := &d.pending
	left := d.vals[r.arg] - p.bytes
	c.addr[row] += p.bytes
	c.bytes[row] = uint32(min(left, mostBytes))
	p.bytes += mostBytes
	return left > mostBytes
}

// Two equivalent methods convert the values in the queue to rows: [decoder.fillByRow] and
// [decoder.fillByColumn].

// differences decodes the differences of all mispredicted values in the queue. If the chunk
// contains too few differences, the method shortens the queue.
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

// shortDifferences decodes differences from number i on. shortDifferences stops at the first
// difference that is missing or has more than eight bytes. It returns the number of this
// difference.
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

// fillByRow writes the rows for the values in the queue row by row. In native code, fillByRow is
// faster than fillByColumn. In irregular code, the processor cannot foresee for which values the
// trace contains a misprediction, and a mispredicted branch costs as much time as several values.
// Therefore only a single branch depends on the trace: the branch for mispredicted values.
//
// fillByRow is one function with [difference] inlined by hand, so that its state stays in
// registers. If it consisted of several functions, the calls would take a quarter of the run time.
func (d *decoder) fillByRow(c *columns, row int) (next int, err error) {
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

// fillByColumn writes the rows for the values in the queue column by column: first the differences,
// then the addresses, then all other columns. The loops have no branches and few live values,
// because Go's WebAssembly code uses a jump table for every taken branch, and must save registers
// before the branch.
func (d *decoder) fillByColumn(c *columns, row int) (next int, err error) {
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

// addresses computes the addresses of the values in the queue, without a branch for mispredicted
// values.
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

// describe fills the rows for the queued values, but only the columns that do not depend on values.
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
