package multicore

import (
	"io"

	"github.com/stackglass/stackglass/core/multicore/tape"
	"github.com/stackglass/stackglass/core/trace"
)

type stage uint8

const (
	newChunk stage = iota
	itsEntry       // the rows in short[1] of the loop, which precede a short chunk
	itsUnits
	behindIt
	itsRest
)

// noMark is the value of the field "until" if the rows do not end at a mark.
const noMark = ^uint64(0)

// cursor reads the rows that one core executes in a phase. It implements [interleave.Stream].
type cursor struct {
	r    *Reader
	core int

	next  int    // number of the next part
	in    *part  // the part of the phase whose units are being read, or nil
	run   uint64 // number of the next run of units, or of the next unit, in the loop of this part
	done  uint64 // number of units of this run that have been read
	row   uint64 // the next row to read
	end   uint64 // row at which to stop
	until uint64 // mark at which to stop if the mark's row precedes the row "end"; noMark if there is no such mark
	stage stage
	units [2]uint64 // range of units of the current chunk

	page  *tape.Page
	moved trace.Batch
	addr  []trace.Addr
	rows  uint64 // number of references that have been read
}

func (c *cursor) begin() {
	c.next, c.in, c.row, c.end, c.stage = 0, nil, 0, 0, newChunk
}

// Next returns the next rows of the core, as a range of a batch, or io.EOF at the end of the phase.
func (c *cursor) Next() (b *trace.Batch, from, to int, err error) {
	for {
		for c.row < c.end {
			p, err := c.at(c.row)
			if err != nil {
				return nil, 0, 0, err
			}
			end := min(c.end, p.End())
			if i := c.until - p.Mark; c.until != noMark && i < uint64(len(p.Marks)) {
				c.end = min(c.end, p.Row+uint64(p.Marks[i]))
				end = min(end, c.end)
			}
			if end <= c.row {
				break
			}
			from, to := int(c.row-p.Row), int(end-p.Row)
			c.row = end
			return c.pageBatch(p, from, to), from, to, nil
		}
		more, err := c.advance()
		if err != nil {
			return nil, 0, 0, err
		}
		if !more {
			c.release()
			return nil, 0, 0, io.EOF
		}
	}
}

// pageBatch returns a batch with the rows of a page. It counts the references in rows [from, to), and
// moves their private addresses.
func (c *cursor) pageBatch(p *tape.Page, from, to int) *trace.Batch {
	for _, k := range p.Kind[from:to] {
		if k.IsReference() {
			c.rows++
		}
	}
	if len(p.Private) == 0 || c.core == 0 {
		return &p.Batch
	}
	if c.addr == nil {
		c.addr = make([]trace.Addr, tape.PageRows)
	}
	distance := c.r.private.offset(c.core)
	private, addr, own := p.Private[from:to], p.Addr[from:to], c.addr[from:to]
	for i, a := range addr {
		own[i] = a + distance&-trace.Addr(private[i])
	}
	c.moved = p.Batch
	c.moved.Addr = c.addr[:p.Len()]
	return &c.moved
}

func (c *cursor) at(row uint64) (*tape.Page, error) {
	if c.page != nil && row >= c.page.Row && row < c.page.End() {
		return c.page, nil
	}
	return c.hold(c.r.tape.Page(row))
}

func (c *cursor) hold(p *tape.Page, err error) (*tape.Page, error) {
	if err != nil {
		return nil, err
	}
	c.release()
	c.page = p
	return p, nil
}

func (c *cursor) release() {
	if c.page != nil {
		c.r.tape.Release(c.page)
		c.page = nil
	}
}

// advance finds the next rows of the core, and returns false if there are no further rows.
func (c *cursor) advance() (more bool, err error) {
	for c.in == nil {
		if c.next == len(c.r.parts) {
			return false, nil
		}
		p := &c.r.parts[c.next]
		c.next++
		switch {
		case p.who == whoShares:
			c.in, c.run, c.done = p, 0, 0
		case p.who == whoWorks && !p.loop.works(c.core, len(c.r.cursors)):
		case p.who != firstCore || c.core == 0:
			c.row, c.end, c.until = p.from, p.to, noMark
			return true, nil
		}
	}
	l := c.in.loop
	switch c.stage {
	case itsEntry:
		c.stage = itsUnits
		c.span(l.short[1])
		return true, nil
	case itsUnits:
		c.stage = behindIt
		return true, c.goTo(l, c.units[0], c.units[1])
	case behindIt:
		c.stage = itsRest
		c.span(l.rowsAfter)
		return true, nil
	case itsRest:
		c.stage = newChunk
		c.span(l.rowsAfterEnd)
		return true, nil
	}
	from, to, err := c.nextUnits(l)
	if err != nil || from == to {
		c.in, c.row, c.end = nil, 0, 0
		return true, err
	}
	if !l.hasChunkRows() {
		return true, c.goTo(l, from, to)
	}
	c.units = [2]uint64{from, to}
	if to-from < l.chunk && l.short[1].from < l.short[1].to {
		c.stage = itsEntry
		c.span(l.short[0])
		return true, nil
	}
	c.stage = itsUnits
	c.span(l.rowsBefore)
	return true, nil
}

func (c *cursor) span(s span) { c.row, c.end, c.until = s.from, s.to, noMark }

// nextUnits returns the range [from, to) of the core's next units. The range is empty if there are no
// further units.
func (c *cursor) nextUnits(l *loop) (from, to uint64, err error) {
	switch {
	case l.assignedAtEnd():
		from, to = c.nextAssigned(l)
		return from, to, nil
	case l.used.Kind == Dynamic:
		return c.nextDynamic(l)
	}
	for more := true; more && from == to; c.run++ {
		from, to, more = l.staticRun(c.core, len(c.r.cursors), c.run)
	}
	return from, to, nil
}

// nextAssigned returns the core's next units in a loop whose units were assigned after the loop
// ended. The result is a run of units. However, if each chunk has rows of its own before or after
// its units, the result is the next chunk of a run. A chunk of a guided schedule is always a whole
// run.
func (c *cursor) nextAssigned(l *loop) (from, to uint64) {
	list := l.runs[c.core]
	if c.run == uint64(len(list)) {
		return 0, 0
	}
	r := list[c.run]
	from, to = r.from+c.done, r.to
	if l.used.Kind == Dynamic && l.hasChunkRows() {
		to = min(to, from+max(l.chunk, 1))
	}
	if c.done = to - r.from; to == r.to {
		c.run, c.done = c.run+1, 0
	}
	return from, to
}

func (c *cursor) goTo(l *loop, from, to uint64) error {
	c.end, c.until = c.in.to, noMark
	if to < l.units {
		c.until = l.mark + to
	}
	p, i, err := c.markAt(l.mark + from)
	if p == nil || err != nil {
		c.row = c.end
		return err
	}
	c.row = p.Row + uint64(p.Marks[i])
	return nil
}

// markAt returns the page that contains a mark, and the index of the mark in this page, or nil if
// no row follows the mark.
func (c *cursor) markAt(mark uint64) (*tape.Page, int, error) {
	if mark >= c.r.tape.Followed() {
		return nil, 0, nil
	}
	p := c.page
	if p == nil || mark-p.Mark >= uint64(len(p.Marks)) {
		var err error
		if p, err = c.hold(c.r.tape.PageOfMark(mark)); err != nil {
			return nil, 0, err
		}
	}
	return p, int(mark - p.Mark), nil
}

// nextDynamic returns the core's next units in a dynamic schedule. If each chunk has rows of its
// own before or after its units, the result is a chunk. Otherwise, the result consists of
// consecutive units of the core in one page.
func (c *cursor) nextDynamic(l *loop) (from, to uint64, err error) {
	for c.run < l.units {
		p, i, err := c.markAt(l.mark + c.run)
		if p == nil || err != nil {
			return 0, 0, err
		}
		here := uint64(len(p.Marks) - i)
		here = min(here, l.units-c.run)
		first := uint64(0)
		for first < here && owner(p.Owners, i+int(first)) != uint8(c.core) {
			first++
		}
		from = c.run + first
		last := first
		if l.hasChunkRows() && first < here {
			chunk := max(l.chunk, 1)
			last += min(chunk-from%chunk, l.units-from)
		} else {
			for last < here && owner(p.Owners, i+int(last)) == uint8(c.core) {
				last++
			}
		}
		to = c.run + last
		if c.run = to; from < to {
			return from, to, nil
		}
	}
	return 0, 0, nil
}

func owner(owners []uint8, i int) uint8 {
	if len(owners) == 0 {
		return 0
	}
	return owners[i]
}
