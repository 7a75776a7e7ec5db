package sgt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
)

// slack is the number of bytes that a decoder may read beyond the end of a part before it detects
// the end. This number is at least the size of a [window] plus the length of a nine-byte number.
const slack = window + 16

// window is the size, in bytes, of a part of the chunk that contains all values of a full queue.
// Loops access this part with masked indices, so that no bounds checks are needed.
const window = 1 << 16

// These errors occur in chunks whose checksums are correct.
var (
	errControl = errors.New("the steps of the chunk do not follow the format")
	errBlock   = errors.New("the chunk has a step for a block that no table contains")
	errTickets = errors.New("the tickets of the chunk do not follow the format")
	errRest    = errors.New("the chunk contains bytes or values that none of its steps uses")
)

// decoder decodes the steps of one thread chunk by chunk. decoder returns an error only after all
// rows before the error have been returned.
type decoder struct {
	slots
	blocks table[decodedBlock]
	cells  table[cell]
	plans  []plan // the plan of each block

	packed         bytes.Reader
	unpacker       *lz4.Reader
	content        []byte // the chunk's three parts, followed by slack bytes
	control, value int    // reading positions in content
	ticket         int
	controlEnd     int
	valueEnd       int
	ticketEnd      int
	ring           []uint32 // slots of the blocks in the loop that is being repeated
	// slot of the last step's block, including queued steps
	before      uint32
	previous    uint64
	run         uint64       // number of remaining expected steps of the last long token
	waiting     bool         // whether the step after the run has not been decoded yet
	last        stepAfterRun // the step after the run
	steps       uint64       // number of remaining steps of the chunk
	ticketNow   uint64
	ticketSteps uint64 // number of remaining steps of the ticket

	vals    [MaxValues + 1]uint64 // values of the last step of a block that is not straight
	pending pending
	queue   queue // the next steps, which precede the run
	split   bool  // whether fillByColumn is used instead of fillByRow
}

type stepAfterRun struct {
	misses  uint64 // bit mask of the mispredicted values
	follows uint64 // how the token identifies the step's block: followsNext, followsOther or followsNew
	off     uint64 // for followsNew: zigzag(number of the step's block − number of the expected block)
}

// decodedBlock is the state of a block that occurs in the chunk.
type decodedBlock struct {
	// low half: slot of the block that most recently followed this block; high half: the value of
	// the low half before its last change
	links  uint64
	scaled uint32 // bit mask of the scaled values among the block's first 32 values
	// linkNarrow accepts a step if its mask of mispredicted values is below this limit
	below uint8
	// index of the block's first cell; the block has one cell for each value or, if it is straight,
	// for each row
	first  uint32
	number uint32
	count  uint32 // number of rows of each step, unless the form is varying
	width  uint8  // number of the block's values
	lead   uint8  // number of rows before the rows with values; only for straight blocks
	rows   uint8  // number of rows of a step; only for straight blocks
	form   form
}

// next returns the slot of the block that most recently followed this block.
func (b *decodedBlock) next() uint32 { return uint32(b.links) }

// follow records that the block in the given slot has followed this block.
func (b *decodedBlock) follow(slot uint32) { b.links = b.links<<32 | uint64(slot) }

// cell contains the predictor's state for a value. In straight blocks, the cell also describes the
// row whose address is the value. The cell of a row without a value repeats the previous value, so
// that the row does not affect the prediction of later values.
type cell struct {
	last, stride, link uint64
	mask               uint64 // all ones if the row has a value, otherwise 0
	pick               uint64 // all ones to predict by link (previous value + link), 0 to predict by stride (last + stride)
	missed             uint64 // all ones if the last prediction missed, 0 if it hit
	bytes, site        uint32
	kind               trace.Kind
	scale              uint8
	scaled             uint8 // 1 if the value's differences are encoded with a scale
}

// predict returns the value predicted by the selected predictor, and the value predicted by the
// other predictor.
func (v *cell) predict(previous uint64) (now, other uint64) {
	byStride, byLink := v.last+v.stride, previous+v.link
	both := byStride ^ byLink
	now = byStride ^ both&v.pick
	return now, now ^ both
}

// miss updates the predictors after a misprediction, but not the field "last". The parameter "off"
// is the difference from the last value, and "other" is the prediction of the predictor that was
// not selected.
func (v *cell) miss(now, previous, other, off uint64) {
	pick, stride := v.pick, v.stride
	if now == other {
		pick = ^pick
	}
	if v.missed != 0 {
		stride = off
	}
	v.pick, v.stride, v.missed, v.link = pick, stride, ^uint64(0), now-previous
}

// learn updates the state with a value. If the prediction missed, the parameter "missed" is all
// ones, and "off" is the difference from the last value. The parameter "other" is the prediction of
// the predictor that was not selected.
func (v *cell) learn(now, previous, other, off, missed uint64) {
	pick := v.pick ^ missed
	if now != other {
		pick = v.pick
	}
	v.pick = pick
	v.stride ^= (v.stride ^ off) & missed & v.missed
	v.link ^= (v.link ^ (now - previous)) & missed
	v.last, v.missed = now, missed
}

// pending contains the rows of the current step that have not been written yet. The values of the
// step are in the field "vals".
type pending struct {
	rows []planRow
	// if the next row to decode is a range: number of bytes of this range that previous rows have covered
	bytes uint64
}

// prefix reads a prefix varint at b[at:]. Only the longest varints take a branch.
func prefix(b []byte, at int) (v uint64, next int) {
	word := binary.LittleEndian.Uint64(b[at : at+8 : at+8])
	t := bits.TrailingZeros64(word | 1<<8)
	if t == 8 {
		return binary.LittleEndian.Uint64(b[at+1:]), at + 9
	}
	return word << (uint(56-8*t) & 63) >> (uint(57-7*t) & 63), at + 1 + t
}

// begin starts to decode a chunk. The field "content" must contain the chunk's three parts.
func (d *decoder) begin(c *chunk, plans []plan) error {
	d.forget()
	d.blocks.used, d.cells.used, d.plans = 0, 0, plans
	d.control, d.controlEnd = 0, int(c.controlBytes)
	d.value, d.valueEnd = d.controlEnd, d.controlEnd+int(c.valueBytes)
	d.ticket, d.ticketEnd = d.valueEnd, d.valueEnd+int(c.ticketBytes)
	d.previous, d.run, d.waiting, d.steps, d.ticketSteps = 0, 0, false, c.steps, 0
	d.queue.empty()
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

// nextTicket reads the next ticket. The first ticket of a chunk is stored as 0.
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

func (d *decoder) ticketDone() bool { return d.ticketSteps == 0 && !d.queue.someValues() }

// slot returns the slot of a block. The block must have a plan.
func (d *decoder) slot(block uint32) uint32 {
	at := d.at(block, len(d.plans))
	if at.chunk == d.chunk {
		return at.slot
	}
	*at = slotAt{d.chunk, uint32(d.blocks.used)}
	p := &d.plans[block]
	b := decodedBlock{
		links: uint64(at.slot)<<32 | uint64(at.slot), number: block,
		first: uint32(d.cells.used), count: uint32(len(p.rows)), width: uint8(len(p.scales)), form: p.form,
	}
	if p.form == straight {
		b.lead, b.rows = p.lead, uint8(len(p.rows))
		if b.rows <= narrow {
			b.below = 1 << b.width
		}
	}
	d.addConstants(p.rows[:b.lead])
	for i, scale := range p.scales {
		b.scaled |= uint32(min(scale, 1)) << i
		d.cells.add(p.cell(i, scale))
	}
	if p.form == straight {
		d.addConstants(p.rows[b.lead+b.width:])
	}
	d.blocks.add(b)
	return at.slot
}

// addConstants adds a cell for each row that has no value.
func (d *decoder) addConstants(rows []planRow) {
	for i := range rows {
		d.cells.add(cell{bytes: rows[i].bytes, kind: rows[i].kind, site: rows[i].site, pick: ^uint64(0)})
	}
}

// cell returns the predictor's state for a value at the beginning of a chunk.
func (p *plan) cell(value int, scale uint8) cell {
	c := cell{scale: scale, scaled: min(scale, 1), mask: ^uint64(0), missed: ^uint64(0)}
	if p.form == straight {
		r := &p.rows[int(p.lead)+value]
		c.bytes, c.site, c.kind = r.bytes, r.site, r.kind
	}
	return c
}

func (d *decoder) cellsOf(b *decodedBlock) []cell {
	return d.cells.all[b.first+uint32(b.lead):][:b.width]
}

func (d *decoder) rowsOf(b *decodedBlock) []cell { return d.cells.all[b.first:][:b.rows] }

// fill writes the rows of steps into c until c is full. The parameter "row" is the index in c of
// the first row to write. The parameter "most" limits the number of steps. fill returns the index
// after the last row, and the number of steps that remain to be processed. A step counts as
// processed when it is in the queue, even if its rows have not been written yet.
func (d *decoder) fill(c *columns, row int, most uint64) (int, uint64, error) {
	for row < len(c.addr) {
		var err error
		switch q := &d.queue; {
		case q.someValues():
			if d.split {
				row, err = d.fillByColumn(c, row)
			} else {
				row, err = d.fillByRow(c, row)
			}
		case q.wrong != nil:
			err = q.wrong
		case most == 0:
			return row, 0, nil
		case q.someSteps():
			if n := d.link(most); n > 0 {
				most -= n
			} else if q.wrong == nil {
				row, most, err = d.specials(c, row, most)
			}
		case d.waiting:
			row, most, err = d.long(c, row, most)
		default:
			if d.expand(); !q.someSteps() {
				err = d.token()
			}
		}
		if err != nil {
			return row, most, err
		}
	}
	return row, most, nil
}

// long decodes the steps of a long token: a run of expected steps, and the step that follows them.
func (d *decoder) long(c *columns, row int, most uint64) (int, uint64, error) {
	if d.run == 0 {
		d.waiting = false
		d.steps--
		if err := d.enterBlock(d.last); err != nil {
			return row, most, err
		}
		row, err := d.step(c, row, d.before, d.last.misses)
		return row, most - 1, err
	}
	n := min(d.run, most)
	if n >= enoughToRepeat {
		next, done := d.loop(c, row, n)
		d.run -= done
		d.steps -= done
		if done > 0 {
			return next, most - done, nil
		}
	}
	// Queue only steps that fit into c, so that the next batch can detect a loop.
	d.run -= d.queue.expect(min(n, uint64(len(c.addr)-row)))
	return row, most, nil
}

// token reads the next token: a run of expected steps and the step after them.
func (d *decoder) token() (err error) {
	if d.control >= d.controlEnd {
		return errControl
	}
	token, at := prefix(d.content, d.control)
	d.last, d.run = stepAfterRun{misses: token >> 4, follows: token & followsMask}, token>>2&longRun
	if d.run == longRun {
		var more uint64
		more, at = prefix(d.content, at)
		if d.run += more; d.run < more {
			return errControl
		}
	}
	if d.last.follows == followsNew {
		d.last.off, at = prefix(d.content, at)
	}
	if d.control = at; at > d.controlEnd || d.run >= d.steps || d.last.follows > followsNew {
		return errControl
	}
	d.waiting = true
	return nil
}

// enoughToRepeat is the minimum number of steps for which a search for a loop saves time.
const enoughToRepeat = 16

// mostInLoop is the maximum number of rows, and of steps, in one round of a loop that
// [decoder.loop] repeats.
const mostInLoop = 64

// loop writes the rows of up to n expected steps if these steps repeat a loop of straight blocks.
// In a run of expected steps, only the values change. From the second round on, each value grows by
// a constant amount per round. This amount is the value's stride or, if the value is predicted by
// link, the growth of the previous value. loop decodes two rounds step by step, and then computes
// all further rounds value by value.
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

// findLoop stores the slots of the next expected blocks in d.ring, until the first block is
// expected again. findLoop returns the number of these steps and the number of their rows, or 0
// steps if there is no loop.
func (d *decoder) findLoop() (steps uint64, width int) {
	first := d.blocks.all[d.before].next()
	d.ring = d.ring[:0]
	for slot := first; ; {
		b := &d.blocks.all[slot]
		if width += int(b.rows); b.form != straight || width > mostInLoop || len(d.ring) == mostInLoop {
			return 0, 0
		}
		d.ring = append(d.ring, slot)
		if slot = b.next(); slot == first {
			return uint64(len(d.ring)), width
		}
	}
}

// round writes the rows of one round of the loop whose blocks are listed in d.ring.
func (d *decoder) round(c *columns, row int) int {
	for _, slot := range d.ring {
		b := &d.blocks.all[slot]
		cells := d.rowsOf(b)
		d.correct(cells, c.addr[row:row+len(cells)], 0)
		c.describe(row, cells)
		row += len(cells)
	}
	return row
}

// repeat writes the rows of further rounds. The parameter "width" is the number of rows in a round.
func (d *decoder) repeat(c *columns, row, width, rounds int) int {
	grows := d.lastGrows()
	end := row + rounds*width
	i := row
	for _, slot := range d.ring {
		b := &d.blocks.all[slot]
		cells := d.rowsOf(b)
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
			for r := i; v.mask == 0 && r < end; r += width {
				c.addr[r] = 0
			}
			v.last, d.previous = addr, addr
			i++
		}
	}
	d.before = d.ring[len(d.ring)-1]
	c.repeatRows(row-width, row, end)
	return end
}

// lastGrows returns the amount by which the last value of a round grows from one round to the next.
func (d *decoder) lastGrows() (grows uint64) {
	for _, slot := range slices.Backward(d.ring) {
		for _, v := range slices.Backward(d.rowsOf(&d.blocks.all[slot])) {
			if v.pick == 0 {
				return v.stride
			}
			grows += v.link // if every value is predicted by link, the result is the sum of all links
		}
	}
	return grows
}

// step writes the rows of a step. The parameter "slot" is the slot of the step's block. The block
// may have any form.
func (d *decoder) step(c *columns, row int, slot uint32, misses uint64) (int, error) {
	b := &d.blocks.all[slot]
	if misses>>b.width != 0 {
		return row, errControl
	}
	cells, to := d.cellsOf(b), d.vals[:b.width]
	direct := b.form == straight && row+int(b.rows) <= len(c.addr)
	if direct {
		cells, misses = d.rowsOf(b), misses<<b.lead
		to = c.addr[row : row+len(cells)]
	}
	if d.correct(cells, to, misses); d.value > d.valueEnd {
		return row, errControl
	}
	if direct {
		c.describe(row, cells)
		return row + len(cells), nil
	}
	return d.rows(c, row, &d.plans[b.number]), nil
}

// enterBlock finds the block of a step, and records that this block was executed last.
func (d *decoder) enterBlock(s stepAfterRun) error {
	was := &d.blocks.all[d.before]
	slot := was.next()
	switch s.follows {
	case followsOther:
		slot = uint32(was.links >> 32)
	case followsNew:
		if err := d.follow(s.off); err != nil {
			return err
		}
		slot = d.blocks.all[d.before].next()
	}
	if was := &d.blocks.all[d.before]; slot != was.next() {
		was.follow(slot)
	}
	d.before = slot
	return nil
}

// follow changes the expected block. The parameter "off" is the zigzag-encoded difference between
// the numbers of the new and the old expected block.
func (d *decoder) follow(off uint64) error {
	number := uint64(d.blocks.all[d.blocks.all[d.before].next()].number) + unzigzag(off)
	if number >= uint64(len(d.plans)) {
		return errBlock
	}
	slot := d.slot(uint32(number)) // the method "slot" may move the blocks in memory
	if was := &d.blocks.all[d.before]; slot != was.next() {
		was.follow(slot)
	}
	return nil
}

// one decodes the next step of the ticket, and returns the step's values instead of its rows. The
// values are valid until the next call. A caller must use either the method "one" or the method
// "fill" for all steps.
func (d *decoder) one() (block uint32, values []uint64, err error) {
	slot, misses, err := d.next()
	if err != nil {
		return 0, nil, err
	}
	b := &d.blocks.all[slot]
	values = d.vals[:b.width]
	if misses>>b.width != 0 {
		return 0, nil, errControl
	}
	if d.correct(d.cellsOf(b), values, misses); d.value > d.valueEnd {
		return 0, nil, errControl
	}
	d.steps--
	d.ticketSteps--
	return b.number, values, nil
}

// next reads the next step from the tokens.
func (d *decoder) next() (slot uint32, misses uint64, err error) {
	if !d.waiting {
		if err := d.token(); err != nil {
			return 0, 0, err
		}
	}
	var s stepAfterRun
	if d.run == 0 {
		s, d.waiting = d.last, false
	} else {
		d.run--
	}
	err = d.enterBlock(s)
	return d.before, s.misses, err
}

// correct computes the values of a step, and updates the predictors. The set bits of the parameter
// "misses" mark the mispredicted values.
func (d *decoder) correct(cells []cell, to []uint64, misses uint64) {
	to = to[:len(cells)]
	for i := range cells {
		v := &cells[i]
		now, other := v.predict(d.previous)
		var off, missed uint64
		if misses>>uint(i)&1 != 0 {
			off, d.value = difference(d.content, d.value, v.scale)
			now, missed = v.last+off, ^uint64(0)
		}
		v.learn(now, d.previous, other, off, missed)
		d.previous, to[i] = now, now&v.mask
	}
}

// difference reads, at b[at:], the difference between a value and the last value of its site.
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

// end returns an error unless the whole chunk has been read.
func (d *decoder) end() error {
	if d.control != d.controlEnd || d.queue.someSteps() || d.value != d.valueEnd || d.ticket != d.ticketEnd || d.waiting {
		return errRest
	}
	return nil
}

// table is a list whose capacity is a power of two. Indices can therefore be limited by a mask,
// which is faster than a comparison.
type table[T any] struct {
	all  []T // entries, followed by free capacity
	used int
}

// add appends an entry, and may move all entries in memory.
func (t *table[T]) add(entry T) {
	if t.used == len(t.all) {
		t.all = append(t.all, make([]T, max(t.used, 16))...)
	}
	t.all[t.used] = entry
	t.used++
}
