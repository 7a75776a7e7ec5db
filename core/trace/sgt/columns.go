package sgt

import "github.com/stackglass/stackglass/core/trace"

// columns are the columns of a batch that is being filled, of equal length; absent ones are nil.
type columns struct {
	addr  []trace.Addr
	bytes []uint32
	kind  []trace.Kind
	site  []uint32
	arg   []uint64 // 0 by default
}

// describe writes the columns of a straight block's rows that do not depend on values.
func (c *columns) describe(row int, cells []cell) {
	kind := c.kind[row:][:len(cells)]
	bytes, site := c.bytes[row:][:len(cells)], c.site[row:][:len(cells)]
	for i := range cells {
		v := &cells[i]
		kind[i], bytes[i], site[i] = v.kind, v.bytes, v.site
	}
}

// plain writes a row of a plan for a step with these values.
func (c *columns) plain(row int, r *planRow, vals *[MaxValues + 1]uint64) {
	c.addr[row], c.bytes[row], c.kind[row], c.site[row] = vals[r.addr], r.bytes, r.kind, r.site
	if c.arg != nil && r.how != sizedRow {
		c.arg[row] = vals[r.arg] + r.more
	}
}

// copyOn repeats the rows from pattern up to row until end, except for their addresses.
func (c *columns) copyOn(pattern, row, end int) {
	copyOn(c.kind, pattern, row, end)
	copyOn(c.bytes, pattern, row, end)
	copyOn(c.site, pattern, row, end)
}

// copyOn doubles the length of each copy.
func copyOn[T any](column []T, pattern, row, end int) {
	for row < end {
		row += copy(column[row:end], column[pattern:row])
	}
}

// rows writes the rows of the step in vals, as many as fit; the others wait in pending.
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

// drain writes waiting rows, as many as fit.
func (d *decoder) drain(c *columns, row int) int {
	p := &d.pending
	for len(p.rows) > 0 && row < len(c.addr) {
		r := &p.rows[0]
		if r.how == unlessGoing && d.vals[r.addr] != 0 {
			p.rows = p.rows[1:]
			continue
		}
		c.plain(row, r, &d.vals)
		if r.how == sizedRow && d.part(c, row, r) {
			row++
			continue
		}
		p.rows, p.bytes = p.rows[1:], 0
		row++
	}
	return row
}

// part writes a row of a reference whose size is a value, and reports whether more rows of it follow.
func (d *decoder) part(c *columns, row int, r *planRow) bool {
	p := &d.pending
	left := d.vals[r.arg] - p.bytes
	c.addr[row] += p.bytes
	c.bytes[row] = uint32(min(left, mostBytes))
	p.bytes += mostBytes
	return left > mostBytes
}
