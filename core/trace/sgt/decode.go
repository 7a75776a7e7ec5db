package sgt

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// slack is how far behind the parts of a chunk its decoder may read: a step of
// MaxValues misses, each two numbers of nine bytes, before it looks whether they
// were there, and a number of eight bytes at the end.
const slack = MaxValues*2*9 + 16

// What can be wrong with a chunk whose checksum is right.
var (
	errControl = errors.New("its steps do not follow the format")
	errBlock   = errors.New("it has a step of a block that no table tells of")
	errTickets = errors.New("its tickets do not follow the format")
	errRest    = errors.New("it holds more than its steps")
)

// decoder reads the steps of one thread, a chunk after the other.
//
// A chunk that goes wrong in the middle gives the rows before that.
type decoder struct {
	slots
	blocks []decodedBlock
	cells  []cell
	plans  []plan // by block number

	content         []byte // the three parts and slack
	control, value  int    // where in content to go on
	ticket          int
	controlEnd      int
	valueEnd        int
	ticketEnd       int
	ring            []uint32 // slots of the loop that is being repeated
	before          uint32   // slot of the last step's block
	previous        uint64
	run             uint64 // expected steps that the last token still stands for
	waiting         bool   // the step behind the run is not made yet
	misses, follows uint64 // of it: values, and which block it is of
	off             uint64 // zigzag of its block minus the expected one
	steps           uint64 // that the chunk still holds
	ticketNow       uint64
	ticketSteps     uint64 // that the ticket still holds

	vals    [MaxValues + 1]uint64 // of the last step that was not straight
	pending pending
}

// decodedBlock is a block that occurs in the chunk.
type decodedBlock struct {
	next   uint32 // slot of the block that followed
	other  uint32 // slot of the one that did before it
	number uint32
	first  uint32 // its cells, first up to first+width
	width  uint8
	form   form
	kind   trace.Kind // of the row of a single block
	site   uint32     // the same
}

// cell is the state of a value and, in straight blocks, the row of which it is
// the address: what a step needs of a value lies together.
type cell struct {
	last, stride, link uint64
	pick               uint64 // all ones: predict by link
	bytes, site        uint32
	kind               trace.Kind
	scale              uint8
	sure               bool
}

// pending is a step in vals whose rows are not all given yet.
type pending struct {
	rows  []planRow
	bytes uint64 // of the first row's range that were given
}

// prefix reads a prefix varint at b[at:], without a branch for its length but
// for the longest.
func prefix(b []byte, at int) (v uint64, next int) {
	word := binary.LittleEndian.Uint64(b[at:])
	t := bits.TrailingZeros64(word | 1<<8)
	if t == 8 {
		return binary.LittleEndian.Uint64(b[at+1:]), at + 9
	}
	return word << (uint(56-8*t) & 63) >> (uint(57-7*t) & 63), at + 1 + t
}

// begin starts a chunk, whose parts are in content.
func (d *decoder) begin(c *chunk, plans []plan) error {
	d.forget()
	d.blocks, d.cells, d.plans = d.blocks[:0], d.cells[:0], plans
	d.control, d.controlEnd = 0, int(c.controlBytes)
	d.value, d.valueEnd = d.controlEnd, d.controlEnd+int(c.valueBytes)
	d.ticket, d.ticketEnd = d.valueEnd, d.valueEnd+int(c.ticketBytes)
	d.previous, d.run, d.waiting, d.steps, d.ticketSteps = 0, 0, false, c.steps, 0
	d.pending = pending{}
	d.ticketNow = 0
	if len(plans) == 0 {
		return errBlock
	}
	d.before = d.slot(0)
	if err := d.nextTicket(); err != nil || d.ticketNow != 0 {
		return errTickets
	}
	d.ticketNow = c.firstTicket
	return nil
}

// nextTicket takes the next ticket of a chunk that holds more steps. The first
// one is given as 0.
func (d *decoder) nextTicket() error {
	if d.ticket >= d.ticketEnd {
		return errTickets
	}
	var more uint64
	d.ticketSteps, d.ticket = prefix(d.content, d.ticket)
	more, d.ticket = prefix(d.content, d.ticket)
	before := d.ticketNow
	if d.ticketNow += more; d.ticketNow < before || d.ticketSteps == 0 || d.ticketSteps > d.steps || d.ticket > d.ticketEnd {
		return errTickets
	}
	return nil
}

// slot gives the slot of a block, which has a plan.
func (d *decoder) slot(block uint32) uint32 {
	at := d.at(block, len(d.plans))
	if at.chunk == d.chunk {
		return at.slot
	}
	*at = slotAt{d.chunk, uint32(len(d.blocks))}
	p := &d.plans[block]
	d.blocks = append(d.blocks, decodedBlock{
		next: at.slot, other: at.slot, number: block, first: uint32(len(d.cells)), width: uint8(len(p.scales)), form: p.form,
	})
	if p.form == single {
		b := &d.blocks[at.slot]
		b.kind, b.site = p.rows[0].kind, p.rows[0].site
	}
	for i, scale := range p.scales {
		c := cell{scale: scale}
		if p.form == straight {
			c.bytes, c.site, c.kind = p.rows[i].bytes, p.rows[i].site, p.rows[i].kind
		}
		d.cells = append(d.cells, c)
	}
	return at.slot
}

// cellsOf gives the cells of a block.
func (d *decoder) cellsOf(b *decodedBlock) []cell { return d.cells[b.first:][:b.width] }

// fill writes the rows of the next steps, but of no more than most, into c from
// a row on, until it is full. It gives the row behind the last one and the steps
// that are left of most.
func (d *decoder) fill(c *columns, row int, most uint64) (int, uint64, error) {
	var err error
	for most > 0 && row < len(c.addr) {
		if !d.waiting {
			if row, most, err = d.short(c, row, most); err != nil || most == 0 {
				return row, most, err
			}
		}
		if !d.waiting {
			if err = d.token(); err != nil {
				return row, most, err
			}
		}
		if d.run > 0 {
			next, done := d.expected(c, row, min(d.run, most))
			row, most, d.steps, d.run = next, most-done, d.steps-done, d.run-done
			continue
		}
		if row, err = d.missed(c, row); err != nil {
			return row, most, err
		}
		most--
		d.steps--
	}
	return row, most, nil
}

// followsMask takes what block follows from a token.
const followsMask = 3

// short carries tokens of short runs and straight blocks out, as long as there
// are no others and their rows fit; then it leaves a token, or the rest of one,
// to its slower siblings. All irregular code goes by here, so that it is one
// function whose state stays in registers: apart it takes twice the time.
func (d *decoder) short(c *columns, row int, most uint64) (int, uint64, error) {
	addrs := c.addr
	kinds, bytes, sites := c.kind[:len(addrs)], c.bytes[:len(addrs)], c.site[:len(addrs)]
	content, blocks, cells := d.content, d.blocks, d.cells
	before, previous, value, allowed := d.before, d.previous, d.value, most
	for most > 0 && d.control < d.controlEnd {
		token, at := prefix(content, d.control)
		run, follows, off := token>>2&longRun, token&followsMask, uint64(0)
		if run == longRun || run >= most || follows > followsNew {
			break
		}
		if follows == followsNew {
			if off, at = prefix(content, at); at > d.controlEnd {
				break
			}
		}
		d.control = at
		most -= run + 1
		slot := blocks[before].next
		for ; run > 0; run-- {
			b := &blocks[slot]
			if b.form == single && row < len(addrs) {
				c.single(row, b)
				row++
				before, slot = slot, b.next
				continue
			}
			if b.form != straight || row+int(b.width) > len(addrs) {
				break
			}
			values := cells[b.first:][:b.width]
			for i := range values {
				v := &values[i]
				byStride, byLink := v.last+v.stride, previous+v.link
				previous = byStride ^ (byStride^byLink)&v.pick
				v.last, v.sure = previous, true
				addrs[row], kinds[row], bytes[row], sites[row] = previous, v.kind, v.bytes, v.site
				row++
			}
			before, slot = slot, b.next
		}
		misses, fits := token>>4, run == 0
		if fits && follows != followsNext {
			if follows == followsNew {
				slot, fits = d.known(uint64(blocks[slot].number) + unzigzag(off))
			} else {
				slot = blocks[before].other
			}
		}
		b := &blocks[slot]
		alone := b.form == single && row < len(addrs)
		if !fits || !alone && b.form != straight || row+int(b.width) > len(addrs) || misses>>b.width != 0 {
			d.run, d.misses, d.follows, d.off, d.waiting = run, misses, follows, off, true
			most += run + 1
			break
		}
		if follows != followsNext {
			blocks[before].next, blocks[before].other = slot, blocks[before].next
		}
		before = slot
		if alone {
			c.single(row, b)
			row++
			continue
		}
		values := cells[b.first:][:b.width]
		for i := range values {
			v := &values[i]
			byStride, byLink := v.last+v.stride, previous+v.link
			now := byStride ^ (byStride^byLink)&v.pick
			if misses>>uint(i)&1 == 0 {
				v.sure = true
			} else {
				var z, low uint64
				z, value = prefix(content, value)
				if v.scale != 0 {
					if z&1 != 0 {
						low, value = prefix(content, value)
					}
					z >>= 1
				}
				d := unzigzag(z)<<(v.scale&7) | low
				now = v.last + d
				v.miss(d, now, byStride, byLink, previous)
			}
			v.last, previous = now, now
			addrs[row], kinds[row], bytes[row], sites[row] = now, v.kind, v.bytes, v.site
			row++
		}
		if value > d.valueEnd {
			return row - len(values), most, errControl
		}
	}
	d.before, d.previous, d.value = before, previous, value
	d.steps -= allowed - most
	return row, most, nil
}

// known gives the slot of a block that was in the chunk before.
func (d *decoder) known(number uint64) (slot uint32, ok bool) {
	if number >= uint64(len(d.of)) || number >= uint64(len(d.plans)) || d.of[number].chunk != d.chunk {
		return 0, false
	}
	return d.of[number].slot, true
}

// miss takes note of a value that was not as predicted; d is what it is off the
// last one.
func (v *cell) miss(d, now, byStride, byLink, previous uint64) {
	if v.pick == 0 && now == byLink {
		v.pick = ^uint64(0)
	} else if v.pick != 0 && now == byStride {
		v.pick = 0
	}
	if v.sure {
		v.sure = false
	} else {
		v.stride = d
	}
	v.link = now - previous
}

// token takes the next token: a run of expected steps and a step behind them.
func (d *decoder) token() (err error) {
	if d.control >= d.controlEnd {
		return errControl
	}
	token, at := prefix(d.content, d.control)
	d.misses, d.run, d.follows, d.off = token>>4, token>>2&longRun, token&followsMask, 0
	if d.run == longRun {
		var more uint64
		more, at = prefix(d.content, at)
		if d.run += more; d.run < more {
			return errControl
		}
	}
	if d.follows == followsNew {
		d.off, at = prefix(d.content, at)
	}
	if d.control = at; at > d.controlEnd || d.run >= d.steps || d.follows > followsNew {
		return errControl
	}
	d.waiting = true
	return nil
}

// expected makes the rows of up to n expected steps. Runs are long where a loop
// runs, so that most of the time goes by here, step after step.
func (d *decoder) expected(c *columns, row int, n uint64) (next int, done uint64) {
	if n >= enoughToRepeat {
		if next, done = d.loop(c, row, n); done > 0 {
			return next, done
		}
	}
	before, previous := d.before, d.previous
	addrs, blocks := c.addr, d.blocks
	kinds, bytes, sites := c.kind[:len(addrs)], c.bytes[:len(addrs)], c.site[:len(addrs)]
	slot := blocks[before].next
	for done < n {
		b := &blocks[slot]
		if b.form == single && row < len(addrs) {
			c.single(row, b)
			row++
			before, slot = slot, b.next
			done++
			continue
		}
		if b.form != straight || row+int(b.width) > len(addrs) {
			break
		}
		cells := d.cellsOf(b)
		for i := range cells {
			v := &cells[i]
			byStride, byLink := v.last+v.stride, previous+v.link
			previous = byStride ^ (byStride^byLink)&v.pick
			v.last, v.sure = previous, true
			addrs[row], kinds[row], bytes[row], sites[row] = previous, v.kind, v.bytes, v.site
			row++
		}
		before, slot = slot, b.next
		done++
	}
	d.before, d.previous = before, previous
	if done == 0 {
		return d.expectedSlowly(c, row), 1
	}
	return row, done
}

// expectedSlowly makes the rows of one expected step of any form.
func (d *decoder) expectedSlowly(c *columns, row int) int {
	d.before = d.blocks[d.before].next
	b := &d.blocks[d.before]
	d.correct(d.cellsOf(b), d.vals[:b.width], 0)
	return d.rows(c, row, &d.plans[b.number])
}

// enoughToRepeat is the number of steps from which on it is worth looking for a
// loop among them.
const enoughToRepeat = 16

// mostInLoop is the most values, and steps, of a loop that [decoder.loop] finds.
const mostInLoop = 64

// loop makes the rows of up to n expected steps, if they go round in a loop of
// straight blocks. In a run of expected steps nothing changes but values. So
// from the second time round on, every value grows by the same amount each time:
// its stride or, where it hangs on the value before it, what that one grows by.
// Two rounds are made one step after the other, the others value by value.
func (d *decoder) loop(c *columns, row int, n uint64) (next int, done uint64) {
	steps, width := d.findLoop()
	if steps == 0 || width == 0 || n < 4*steps || len(c.addr)-row < 4*width {
		return row, 0
	}
	rounds := min(n/steps, uint64((len(c.addr)-row)/width))
	for range 2 {
		row = d.round(c, row)
	}
	return d.repeat(c, row, width, int(rounds-2)), rounds * steps
}

// findLoop puts the slots of the blocks that are expected next into d.ring, up
// to the one with which they begin again, and gives the number of these steps
// and of their values; no steps if there is no such loop.
func (d *decoder) findLoop() (steps uint64, width int) {
	first := d.blocks[d.before].next
	d.ring = d.ring[:0]
	for slot := first; ; {
		b := &d.blocks[slot]
		if width += int(b.width); b.form != straight || width > mostInLoop || len(d.ring) == mostInLoop {
			return 0, 0
		}
		d.ring = append(d.ring, slot)
		if slot = b.next; slot == first {
			return uint64(len(d.ring)), width
		}
	}
}

// round makes the rows of one round of the loop in d.ring.
func (d *decoder) round(c *columns, row int) int {
	for _, slot := range d.ring {
		b := &d.blocks[slot]
		cells := d.cellsOf(b)
		d.correct(cells, c.addr[row:row+len(cells)], 0)
		c.describe(row, cells)
		row += len(cells)
	}
	return row
}

// repeat makes the rows of so many more rounds; width is the number of rows of
// one.
func (d *decoder) repeat(c *columns, row, width, rounds int) int {
	grows := d.lastGrows()
	end := row + rounds*width
	i := row
	for _, slot := range d.ring {
		b := &d.blocks[slot]
		cells := d.cellsOf(b)
		for k := range cells {
			v := &cells[k]
			if v.pick == 0 {
				grows = v.stride
			}
			addr := v.last
			for r := i; r < end; r += width {
				addr += grows
				c.addr[r] = addr
			}
			v.last, d.previous = addr, addr
			i++
		}
	}
	d.before = d.ring[len(d.ring)-1]
	c.copyOn(row-width, row, end)
	return end
}

// lastGrows is what the last value of a round grows by.
func (d *decoder) lastGrows() (grows uint64) {
	for _, slot := range slices.Backward(d.ring) {
		for _, v := range slices.Backward(d.cellsOf(&d.blocks[slot])) {
			if v.pick == 0 {
				return v.stride
			}
			grows += v.link // all hang on each other: once around
		}
	}
	return grows
}

// missed makes the rows of the step behind a run: of another block than is
// expected, or with values that miss.
func (d *decoder) missed(c *columns, row int) (int, error) {
	if err := d.turn(); err != nil {
		return row, err
	}
	b := &d.blocks[d.before]
	cells := d.cellsOf(b)
	direct := b.form == straight && row+len(cells) <= len(c.addr)
	to := d.vals[:len(cells)]
	if direct {
		to = c.addr[row : row+len(cells)]
	}
	if d.correct(cells, to, d.misses); d.value > d.valueEnd {
		return row, errControl
	}
	if direct {
		c.describe(row, cells)
		return row + len(cells), nil
	}
	return d.rows(c, row, &d.plans[b.number]), nil
}

// turn goes to the block of the step behind a run.
func (d *decoder) turn() error {
	before, slot := d.before, d.blocks[d.before].next
	switch d.follows {
	case followsOther:
		slot = d.blocks[before].other
	case followsNew:
		number := uint64(d.blocks[slot].number) + unzigzag(d.off)
		if number >= uint64(len(d.plans)) {
			return errBlock
		}
		slot = d.slot(uint32(number))
	}
	if was := &d.blocks[before]; d.follows != followsNext {
		was.next, was.other = slot, was.next
	}
	d.before, d.waiting = slot, false
	if d.misses>>d.blocks[slot].width != 0 {
		return errControl
	}
	return nil
}

// one decodes the next step of a ticket that has some left, without making rows:
// its block's number, and its values, which are valid until the next one.
func (d *decoder) one() (block uint32, values []uint64, err error) {
	if !d.waiting {
		if err := d.token(); err != nil {
			return 0, nil, err
		}
	}
	misses := uint64(0)
	if d.run > 0 {
		d.run--
		d.before = d.blocks[d.before].next
	} else {
		if err := d.turn(); err != nil {
			return 0, nil, err
		}
		misses = d.misses
	}
	b := &d.blocks[d.before]
	values = d.vals[:b.width]
	if d.correct(d.cellsOf(b), values, misses); d.value > d.valueEnd {
		return 0, nil, errControl
	}
	d.steps--
	d.ticketSteps--
	return b.number, values, nil
}

// correct makes the values of a step, of which those with a bit in misses miss.
func (d *decoder) correct(cells []cell, to []uint64, misses uint64) {
	to = to[:len(cells)]
	for i := range cells {
		v := &cells[i]
		byStride, byLink := v.last+v.stride, d.previous+v.link
		now := byStride ^ (byStride^byLink)&v.pick
		if misses>>uint(i)&1 == 0 {
			v.sure = true
		} else {
			var off uint64
			off, d.value = difference(d.content, d.value, v.scale)
			now = v.last + off
			v.miss(off, now, byStride, byLink, d.previous)
		}
		v.last, d.previous, to[i] = now, now, now
	}
}

// difference takes from b[at:] what a value is off its site's last one.
func difference(b []byte, at int, scale uint8) (d uint64, next int) {
	z, at := prefix(b, at)
	if scale == 0 {
		return unzigzag(z), at
	}
	d = unzigzag(z>>1) << (scale & 7)
	if z&1 != 0 {
		var low uint64
		low, at = prefix(b, at)
		d |= low
	}
	return d, at
}

// end wants the chunk to be used up.
func (d *decoder) end() error {
	if d.control != d.controlEnd || d.value != d.valueEnd || d.ticket != d.ticketEnd || d.waiting {
		return errRest
	}
	return nil
}
