package sgt

import (
	"encoding/binary"
	"math/bits"
)

// queue holds what short tokens stand for, on its way to rows. First come steps,
// one number each:
//
//	bit 5        the block is the other one
//	from bit 6   the values that miss
//	opNew        the block is a new one; zigzag of it minus the expected one is
//	             in the upper half
//
// So 0 is an expected step. [decoder.link] makes of them values, one number
// each: the index of the cell and, above it, missedValue. A step of a block that
// is neither straight nor single is a special one: its slot, specialValue, and
// which of its values miss from bit specialMisses on.
//
// Three loops, of tokens, of blocks and of values, so that what one of them
// cannot foretell does not hold up the others.
type queue struct {
	stepAt, stepEnd   int // the steps that are left
	valueAt, valueEnd int // the values that are left, of earlier steps
	steps             [stepRoom + stepSlack]uint64
	values            [valueRoom + valueSlack]uint64
	wrong             error // with the next of the steps
}

const (
	opOther  = 1 << 5
	opMisses = 6
	opNew    = 1 << 31

	missedValue   = 1 << 32
	specialValue  = 1 << 33
	specialMisses = 34

	mostQueuedMisses = 24 // values of a short token that can miss: four bytes hold no more

	stepRoom   = 1024
	stepSlack  = 16 // what is written in one go behind the last one
	valueRoom  = 2048
	valueSlack = MaxValues + 4
	mostRun    = enoughToRepeat - 1 // expected steps of a short token
)

func (q *queue) empty()           { q.stepAt, q.stepEnd, q.valueAt, q.valueEnd, q.wrong = 0, 0, 0, 0, nil }
func (q *queue) someSteps() bool  { return q.stepAt < q.stepEnd }
func (q *queue) someValues() bool { return q.valueAt < q.valueEnd }

// expect fills an empty queue with up to n expected steps and says how many.
func (q *queue) expect(n uint64) uint64 {
	n = min(n, stepRoom)
	q.stepAt, q.stepEnd = 0, int(n)
	clear(q.steps[:n])
	return n
}

// followsMask takes what block follows from a token.
const followsMask = 3

// tokenBytes is how many bytes a token has, by the first of them, which also says
// whether there is more of the run, in one byte; 0: more than four.
var tokenBytes = func() (n [256]uint8) {
	for first := range n {
		more := bits.TrailingZeros8(uint8(first))
		if more > 3 {
			continue
		}
		n[first] = uint8(more + 1)
		if run := first >> (more + 1) >> 2 & longRun; run == longRun {
			n[first]++
		}
	}
	return n
}()

// shortToken is a token of one byte: its run, and the operation of the step
// behind it.
type shortToken struct {
	op  uint16
	run uint8 // more than shortRun: it has more bytes
}

const shortRun = longRun - 1

var shortTokens = func() (t [256]shortToken) {
	for first := range t {
		token := first >> 1
		run, follows := token>>2&longRun, token&followsMask
		if first&1 == 0 || run > shortRun || follows > followsOther {
			run = longRun
		}
		t[first] = shortToken{uint16(token>>4<<opMisses | token&1*opOther), uint8(run)}
	}
	return t
}()

// expand fills the queue, which has no steps, with those of the next tokens, up to one that
// is long. A token tells of a run of expected steps, whose length can hardly be
// foretold; carried out as they come, runs would cost a wrongly predicted branch
// each. So their steps are written without looking how many they are, and the
// next ones over those that are too many.
func (d *decoder) expand() {
	q, content, control, controlEnd := &d.queue, d.content, d.control, d.controlEnd
	at, end := 0, int(min(stepRoom, d.steps))
	for control < controlEnd {
		if t := &shortTokens[content[control]]; t.run <= shortRun && at < end-shortRun {
			*(*[shortRun]uint64)(q.steps[at:]) = [shortRun]uint64{}
			at += int(t.run)
			q.steps[at] = uint64(t.op)
			at++
			control++
			continue
		}
		word := binary.LittleEndian.Uint64(content[control : control+8 : control+8])
		next := control + int(tokenBytes[word&0xff])
		more := uint(bits.TrailingZeros64(word | 1<<8))
		word >>= (more + 1) & 63
		width := (7*more + 7) & 63
		token, behind := word&(1<<width-1), word>>width
		run := token >> 2 & longRun
		long := (run + 1) >> 2
		if next == control || long&^behind != 0 {
			break
		}
		run += behind >> 1 & 0x7f & -long
		op := token>>4<<opMisses | token&1*opOther
		if run > mostRun || at+int(run) >= end || next > controlEnd {
			break
		}
		if follows := token & followsMask; follows > followsOther {
			if follows > followsNew {
				break
			}
			var off uint64
			if off, next = prefix(content, next); off >= 1<<32 || next > controlEnd {
				break
			}
			op |= opNew | off<<32
		}
		*(*[4]uint64)(q.steps[at:]) = [4]uint64{}
		if run > 4 {
			*(*[12]uint64)(q.steps[at+4:]) = [12]uint64{}
		}
		at += int(run)
		q.steps[at] = op
		at++
		control = next
	}
	d.control, q.stepAt, q.stepEnd = control, 0, at
}

// link makes values of up to most steps, as many as there is room for, and says
// of how many steps. It stops before a step that cannot be.
func (d *decoder) link(most uint64) uint64 {
	q := &d.queue
	from := q.stepAt
	end := min(q.stepEnd, from+int(min(most, stepRoom)))
	q.valueAt, q.valueEnd = 0, 0
	d.linkStraight(end)
	for q.stepAt < end && q.valueEnd < valueRoom && q.wrong == nil {
		q.wrong = d.linkOther()
		d.linkStraight(end)
	}
	steps := uint64(q.stepAt - from)
	d.steps -= steps
	return steps
}

// linkStraight goes on with steps of known straight and single blocks up to end. What block
// comes next hangs on the one before and on nothing else.
func (d *decoder) linkStraight(end int) {
	q := &d.queue
	blocks, steps, at, out := d.blocks, q.steps[:end], q.stepAt, q.valueEnd
	before := uint64(d.before)
	was := &blocks[before]
	for at < len(steps) && out < valueRoom {
		op := steps[at]
		links := bits.RotateLeft64(was.links, int(op))
		misses, b := op>>opMisses, &blocks[uint32(links)]
		if misses >= b.below || op >= opNew {
			break
		}
		was.links = links
		was, before = b, links
		cell := uint64(b.first)
		four := (*[2]uint64)(q.values[out:])
		four[0] = cell | misses&1*missedValue
		four[1] = cell + 1 | misses>>1&1*missedValue
		if b.rows > 2 {
			linkMore(q.values[out:], cell, misses, uint64(b.rows))
		}
		out += int(b.rows)
		at++
	}
	d.before, q.stepAt, q.valueEnd = uint32(before), at, out
}

// linkOther goes on with a step of a new block, or of one that is neither.
func (d *decoder) linkOther() error {
	q := &d.queue
	op := &q.steps[q.stepAt]
	if *op >= opNew {
		off := *op >> 32
		*op &= opNew - 1
		return d.follow(off) // the block is the expected one now
	}
	was := &d.blocks[d.before]
	links := bits.RotateLeft64(was.links, int(*op))
	b, misses := &d.blocks[uint32(links)], *op>>opMisses
	if b.below != 0 || misses>>b.width != 0 {
		return errControl
	}
	was.links, d.before = links, uint32(links)
	q.values[q.valueEnd] = uint64(d.before) | specialValue | misses<<specialMisses
	q.valueEnd++
	q.stepAt++
	return nil
}

// linkMore writes the values of a step behind the second.
func linkMore(to []uint64, cell, misses, rows uint64) {
	for k := uint64(2); k < rows; k++ {
		to[k] = cell + k | misses>>k&1*missedValue
	}
}
