package sgt

import (
	"encoding/binary"
	"math/bits"
)

// queue holds steps that short tokens stand for, one number each:
//
//	bit 5        the block is the other one
//	from bit 6   the values that miss
//	opNew        the block is a new one; zigzag of it minus the expected one is
//	             in the upper half
//
// So 0 is an expected step.
type queue struct {
	at, end int // the steps that are left: ops from at up to end
	ops     [opsRoom + opsSlack]uint64
}

const (
	opOther  = 1 << 5
	opMiss   = 1 << opMisses
	opMisses = 6
	opNew    = 1 << 31
	opsRoom  = 1024
	opsSlack = 16                 // what is written in one go behind the last one
	mostRun  = enoughToRepeat - 1 // expected steps of a short token
)

func (q *queue) empty()     { q.at, q.end = 0, 0 }
func (q *queue) some() bool { return q.at < q.end }

// take takes the next step.
func (q *queue) take() behind {
	op := q.ops[q.at]
	q.at++
	s := behind{misses: op & (opNew - 1) >> opMisses, follows: op / opOther & 1}
	if op >= opNew {
		s.follows, s.off = followsNew, op>>32
	}
	return s
}

// expect fills an empty queue with up to n expected steps and says how many.
func (q *queue) expect(n uint64) uint64 {
	n = min(n, opsRoom)
	q.at, q.end = 0, int(n)
	clear(q.ops[:n])
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

// expand fills an empty queue with the steps of the next tokens, up to one that
// is long. A token tells of a run of expected steps, whose length can hardly be
// foretold; carried out as they come, runs would cost a wrongly predicted branch
// each. So their steps are written without looking how many they are, and the
// next ones over those that are too many.
func (d *decoder) expand() {
	q, content, control, controlEnd := &d.queue, d.content, d.control, d.controlEnd
	at, end := 0, int(min(opsRoom, d.steps))
	for control < controlEnd {
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
		*(*[8]uint64)(q.ops[at:]) = [8]uint64{}
		if run > 8 {
			*(*[8]uint64)(q.ops[at+8:]) = [8]uint64{}
		}
		at += int(run)
		q.ops[at] = op
		at++
		control = next
	}
	d.control, q.at, q.end = control, 0, at
}
