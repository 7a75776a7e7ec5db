package sgt

import (
	"errors"
	"math/bits"
)

// errNeedsValues reports that a step's number of rows depends on its values.
var errNeedsValues = errors.New("the number of rows depends on the values")

// count decodes up to most steps and returns the number of their rows, without computing
// values: only their lengths are read. It returns the steps that remain of most. A decoder
// that counts cannot make rows before [decoder.begin].
func (d *decoder) count(most uint64) (rows, left uint64, err error) {
	for most > 0 && err == nil {
		var steps, of uint64
		switch {
		case d.queue.someSteps():
			steps, of, err = d.countQueued(most)
		case d.waiting && d.run > 0:
			steps = min(d.run, most)
			of, err = d.countRun(steps)
			d.run -= steps
		case d.waiting:
			d.waiting = false
			if err = d.turn(d.last); err == nil {
				steps = 1
				of, err = d.countStep(&d.blocks.all[d.before], d.last.misses)
			}
		default:
			if d.expand(); !d.queue.someSteps() {
				err = d.token()
			}
		}
		rows += of
		most -= steps
		d.steps -= steps
	}
	return rows, most, err
}

// countQueued counts the next steps of the queue, up to most, and their rows.
func (d *decoder) countQueued(most uint64) (steps, rows uint64, err error) {
	q := &d.queue
	if q.steps[q.stepAt] >= opNew {
		if err := d.linkNew(); err != nil {
			return 0, 0, err
		}
	}
	blocks, before, at := d.blocks.all, d.before, q.stepAt
	if len(blocks) == 0 {
		return 0, 0, errBlock
	}
	end := min(q.stepEnd, at+int(min(most, stepRoom)))
	was := &blocks[int(before)&(len(blocks)-1)]
	for ; at < end && err == nil; at++ {
		op := q.steps[at&(stepRoom-1)]
		if op >= opNew {
			break
		}
		links := bits.RotateLeft64(was.links, int(op))
		was.links = links
		before = uint32(links)
		was = &blocks[int(before)&(len(blocks)-1)]
		if misses := op >> opMisses; misses == 0 && was.form != varying {
			rows += uint64(was.count)
			continue
		}
		var of uint64
		of, err = d.countStep(was, op>>opMisses)
		rows += of
	}
	steps = uint64(at - q.stepAt)
	d.before, q.stepAt = before, at
	return steps, rows, err
}

// countStep returns the number of rows of a step of a block, and skips its values.
func (d *decoder) countStep(b *decodedBlock, misses uint64) (rows uint64, err error) {
	if b.form == varying {
		return 0, errNeedsValues
	}
	if misses == 0 {
		return uint64(b.count), nil
	}
	if misses>>b.width != 0 {
		return 0, errControl
	}
	cells := d.cellsOf(b)
	for ; misses != 0; misses &= misses - 1 {
		_, d.value = difference(d.content, d.value, cells[bits.TrailingZeros64(misses)].scale)
	}
	if d.value > d.valueEnd {
		return 0, errControl
	}
	return uint64(b.count), nil
}

// countRun returns the number of rows of n expected steps. These change no block, so that
// once the first of their blocks is expected again, everything repeats.
func (d *decoder) countRun(n uint64) (rows uint64, err error) {
	blocks := d.blocks.all
	first := blocks[d.before].next()
	for done := uint64(0); done < n; {
		d.before = blocks[d.before].next()
		b := &blocks[d.before]
		of, err := d.countStep(b, 0)
		if err != nil {
			return rows, err
		}
		rows += of
		if done++; b.next() == first {
			rounds := n / done
			rows += (rounds - 1) * rows
			for range n % done {
				d.before = blocks[d.before].next()
				rows += uint64(blocks[d.before].count)
			}
			return rows, nil
		}
	}
	return rows, nil
}
