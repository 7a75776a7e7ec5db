package sgt

import (
	"encoding/binary"
	"math/bits"
)

// queue contains decoded short tokens that are being converted to rows. Tokens first become steps.
// Each step is one number:
//
//	bit 5        the block is the one in other
//	from bit 6   the values that miss: at most 24, for tokens of four bytes
//	opNew the block is another block; the upper half contains the zigzag difference from the expected
//	block
//
// Thus, 0 represents an expected step. [decoder.link] converts steps to values. Each value is one
// number: the index of its cell and, in a higher bit, whether the value is mispredicted.
// [decoder.specials] processes steps of blocks that are not straight.
//
// Tokens, blocks and values are processed in separate loops, so that a mispredicted branch in one
// loop does not stall the other loops. Masks limit the indices, because in WebAssembly a comparison
// would end an optimised region.
type queue struct {
	stepAt, stepEnd   int // range of the remaining steps
	valueAt, valueEnd int // range of the remaining values of earlier steps
	missAt, missEnd   int // range of the remaining mispredicted values
	tokens            int // number of tokens read by expandShort
	written           int // number of elements of the array "steps" that may differ from 0
	steps             [stepRoom]uint64
	values            [valueRoom]uint64
	misses            [valueRoom]uint16 // indices of the mispredicted values in the array "values"
	offs              [valueRoom]uint64 // differences of the mispredicted values
	wrong             error             // the error in the next step, or nil
}

const (
	opOther  = 1 << 5
	opMisses = 6
	opNew    = 1 << 31

	missedShift = 32
	narrow      = 2 // maximum number of rows of a step that linkNarrow accepts

	// The following sizes are powers of two, so that masks can limit the indices.
	stepRoom   = 1024
	valueRoom  = 2048
	mostValues = valueRoom - mostRows // maximum number of values in the queue before the last step is added
	mostRun    = enoughToRepeat - 1   // maximum number of expected steps of a short token
)

func (q *queue) empty()           { q.stepAt, q.stepEnd, q.valueAt, q.valueEnd, q.wrong = 0, 0, 0, 0, nil }
func (q *queue) someSteps() bool  { return q.stepAt < q.stepEnd }
func (q *queue) someValues() bool { return q.valueAt < q.valueEnd }

// expect fills an empty queue with up to n expected steps and returns their number.
func (q *queue) expect(n uint64) uint64 {
	n = min(n, stepRoom)
	q.stepAt, q.stepEnd = 0, int(n)
	clear(q.steps[:n])
	return n
}

// followsMask selects the bits of a token that identify the block of its step.
const followsMask = 3

// tokenBytes maps the first byte of a token to the length of the token in bytes. A token with a
// long run has an additional byte, which the length includes. An element is 0 if the length without
// the additional byte exceeds four bytes.
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

// shortToken is a decoded one-byte token: its run, and the step after the run.
type shortToken struct {
	op  uint16
	run uint8 // greater than shortRun if the token has further bytes
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

// expand fills the empty queue with the steps of the next tokens, up to a long token. A loop over
// the steps of each run would cause mispredicted branches, because the lengths of runs are
// unpredictable. Instead, all elements initially represent expected steps, and each token only
// skips the elements of its run.
func (d *decoder) expand() {
	q := &d.queue
	end := int(min(stepRoom, d.steps))
	clear(q.steps[:q.written])
	at := d.expandShort(0, end, d.control)
	control := d.control + q.tokens
	for control < d.controlEnd {
		word := binary.LittleEndian.Uint64(d.content[control:])
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
		if run > mostRun || at+int(run) >= end || next > d.controlEnd {
			break
		}
		if follows := token & followsMask; follows > followsOther {
			if follows > followsNew {
				break
			}
			var off uint64
			if off, next = prefix(d.content, next); off >= 1<<32 || next > d.controlEnd {
				break
			}
			op |= opNew | off<<32
		}
		at += int(run)
		q.steps[at] = op
		at = d.expandShort(at+1, end, next)
		control = next + q.tokens
	}
	d.control, q.stepAt, q.stepEnd, q.written = control, 0, at, at
}

// expandShort decodes one-byte tokens at content[control:], and returns the new number of steps.
// expandShort stores the number of decoded tokens in q.tokens.
func (d *decoder) expandShort(at, end, control int) int {
	q := &d.queue
	content := (*[window]byte)(d.content[control:])
	n, most := 0, d.controlEnd-control
	for (at+shortRun-end)&(n-most) < 0 {
		t := shortTokens[content[n&(window-1)]]
		if t.run > shortRun {
			break
		}
		at += int(t.run)
		q.steps[at&(stepRoom-1)] = uint64(t.op)
		at++
		n++
	}
	q.tokens = n
	return at
}

// link converts up to the given number of steps to values, as long as the values fit into the
// queue, and returns the number of converted steps. The conversion stops before an invalid step and
// before a step of a block that is not straight.
func (d *decoder) link(most uint64) uint64 {
	q := &d.queue
	from := q.stepAt
	end := min(q.stepEnd, from+int(min(most, stepRoom)))
	q.valueAt, q.valueEnd, q.missAt, q.missEnd = 0, 0, 0, 0
	for d.linkNarrow(end); q.stepAt < end && q.valueEnd < mostValues; d.linkNarrow(end) {
		if q.steps[q.stepAt] >= opNew {
			q.wrong = d.linkNew()
		}
		if q.wrong != nil || !d.linkWide() {
			break
		}
	}
	steps := uint64(q.stepAt - from)
	d.steps -= steps
	return steps
}

// linkNarrow converts the steps before the index "end", as long as the steps belong to known
// straight blocks with few rows. To avoid branches, linkNarrow writes two rows for each step, even
// if the step has fewer rows.
func (d *decoder) linkNarrow(end int) {
	q, blocks := &d.queue, d.blocks.all
	if len(blocks) == 0 {
		return
	}
	at, out, miss := q.stepAt, q.valueEnd, q.missEnd
	before := uint64(d.before)
	was := &blocks[int(before)&(len(blocks)-1)]
	for (at-end)&(out-mostValues) < 0 {
		op := q.steps[at&(stepRoom-1)]
		links := bits.RotateLeft64(was.links, int(op))
		misses, b := op>>opMisses, &blocks[int(links)&(len(blocks)-1)]
		if misses >= uint64(b.below) {
			break
		}
		was.links = links
		was, before = b, links
		cell := uint64(b.first)
		misses <<= b.lead & 63
		m0, m1 := misses&1, misses>>1&1
		q.values[out&(valueRoom-1)] = cell | m0<<missedShift
		q.values[(out+1)&(valueRoom-1)] = cell + 1 | m1<<missedShift
		q.misses[miss&(valueRoom-1)] = uint16(out)
		miss += int(m0)
		q.misses[miss&(valueRoom-1)] = uint16(out + 1)
		miss += int(m1)
		out += int(b.rows)
		at++
	}
	d.before, q.stepAt, q.valueEnd, q.missEnd = uint32(before), at, out, miss
}

// linkWide converts one step if the step's block is straight, and reports whether the block is
// straight.
func (d *decoder) linkWide() bool {
	q, blocks := &d.queue, d.blocks.all
	op := q.steps[q.stepAt]
	was := &blocks[d.before]
	links := bits.RotateLeft64(was.links, int(op))
	b, misses := &blocks[uint32(links)], op>>opMisses
	if b.form != straight || misses>>b.width != 0 {
		return false
	}
	was.links, d.before = links, uint32(links)
	out, miss := q.valueEnd, q.missEnd
	misses <<= b.lead & 63
	for cell := uint64(b.first); cell < uint64(b.first)+uint64(b.rows); cell++ {
		missed := misses & 1
		q.values[out&(valueRoom-1)] = cell | missed<<missedShift
		q.misses[miss&(valueRoom-1)] = uint16(out)
		miss += int(missed)
		out++
		misses >>= 1
	}
	q.valueEnd, q.missEnd = out, miss
	q.stepAt++
	return true
}

// linkNew replaces the expected block by the new block of the next step.
func (d *decoder) linkNew() error {
	op := &d.queue.steps[d.queue.stepAt]
	off := *op >> 32
	*op &= opNew - 1
	return d.follow(off)
}

// specials writes the rows of the next steps, as long as the steps belong to known blocks that are
// not straight. The parameter "most" limits the number of steps. specials returns the same results
// as [decoder.fill].
func (d *decoder) specials(c *columns, row int, most uint64) (int, uint64, error) {
	q := &d.queue
	for row < len(c.addr) && most > 0 && q.someSteps() {
		op := q.steps[q.stepAt]
		was := &d.blocks.all[d.before]
		links := bits.RotateLeft64(was.links, int(op))
		b, misses := &d.blocks.all[uint32(links)], op>>opMisses
		if op >= opNew || b.form == straight && misses>>b.width == 0 {
			break
		}
		was.links, d.before = links, uint32(links)
		q.stepAt++
		d.steps--
		most--
		var err error
		if row, err = d.step(c, row, d.before, misses); err != nil {
			return row, most, err
		}
	}
	return row, most, nil
}
