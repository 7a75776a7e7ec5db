package sasmm

import (
	"encoding/binary"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// section stores the executions of a region. If executions are divided as printed in the
// paper, it stores the executions of the whole trace. The executions are stored by block,
// together with the order of the blocks.
type section struct {
	tracks []track
	at     []uint32 // by block: 1 + the number of its track; 0: no track yet
	order  order
	bytes  int64 // approximate number of bytes of memory in use
	limit  int64
	cores  int
}

// track stores the executions of one block. For each execution, it stores the number of the shape,
// and for each row, the difference between the address and the expected address. Each row of a
// shape has a stride, which is the difference between its addresses in the last two executions with
// this shape. The expected address is the last address plus the stride.
//
// Expectations are reset at anchors. Therefore, reading can start at any anchor.
type track struct {
	block    uint32
	parallel bool
	total    uint64 // number of executions
	data     []byte
	anchors  []int // position, in the field "data", of every execution whose number is a multiple of anchorInterval
	shapes   []shape
	encode   []addressPredictor // by shape: the address predictor for encoding
	last     int                // number of the shape of the last execution
	share    division
	reader   cursor   // reader for private traces and serial blocks
	cores    []cursor // for the shared trace: one cursor per core
	next     uint64   // number of the next execution of the block
	first    uint64   // number of executions that core 0 has performed so far
}

// anchorInterval is the number of executions from one anchor to the next.
const anchorInterval = 256

// shape is the sequence of cells in an execution, without addresses and arguments.
type shape []cell

// cell contains the columns of a row, without its address and argument.
type cell struct {
	pc      trace.Addr
	site    uint32
	bytes   uint32
	kind    trace.Kind
	private bool
}

// hasArg reports whether rows of kind k have an argument.
func hasArg(k trace.Kind) bool { return !k.IsReference() && k >= trace.Alloc && k != trace.BareBlock }

// addressPredictor predicts the addresses of the rows in executions with one shape.
type addressPredictor struct {
	// 1 + the number of the anchor at which the expectations were last reset; 0 if they were never
	// reset
	from  uint64
	again bool // whether there was an execution after the reset
	rows  []expectation
}

type expectation struct{ last, stride uint64 }

// resetAt resets the expectations at an anchor, unless they have already been reset at this anchor.
func (e *addressPredictor) resetAt(anchor uint64, rows int) {
	if e.from == anchor+1 {
		e.again = true
		return
	}
	e.from, e.again = anchor+1, false
	e.rows = slices.Grow(e.rows[:0], rows)[:rows]
	clear(e.rows)
}

// update adapts the expectation to an address. The stride is known after the second address.
func (x *expectation) update(addr uint64, again bool) {
	if again {
		x.stride = addr - x.last
	}
	x.last = addr
}

func unzigzag(n uint64) uint64 { return n>>1 ^ -(n & 1) }

// execution contains the rows of one execution of a block.
type execution struct {
	block uint32
	cells []cell
	addrs []trace.Addr
	args  []uint64
}

func (x *execution) reset(block uint32) {
	x.block, x.cells, x.addrs, x.args = block, x.cells[:0], x.addrs[:0], x.args[:0]
}

func (x *execution) add(c cell, addr trace.Addr, arg uint64) {
	x.cells, x.addrs, x.args = append(x.cells, c), append(x.addrs, addr), append(x.args, arg)
}

// noBlock is the block number of rows that belong to no block.
const noBlock = ^uint32(0)

// reset removes all executions, but keeps most of the memory for reuse.
func (s *section) reset() {
	for i := range s.tracks {
		s.at[s.tracks[i].block+1] = 0
	}
	s.tracks, s.bytes = s.tracks[:0], 0
	s.order.reset()
}

// trackOf returns the number of a block's track, and adds the track if necessary.
func (s *section) trackOf(block uint32) uint32 {
	i := uint64(block + 1) // noBlock + 1 overflows to 0
	for uint64(len(s.at)) <= i {
		s.at = append(s.at, make([]uint32, max(64, min(uint64(len(s.at)), 1<<20)))...)
	}
	if s.at[i] == 0 {
		if len(s.tracks) < cap(s.tracks) {
			s.tracks = s.tracks[:len(s.tracks)+1]
		} else {
			s.tracks = append(s.tracks, track{})
		}
		s.tracks[len(s.tracks)-1].reset(block)
		s.at[i] = uint32(len(s.tracks))
		s.bytes += 512
	}
	return s.at[i] - 1
}

func (t *track) reset(block uint32) {
	*t = track{block: block, data: t.data[:0], anchors: t.anchors[:0], shapes: t.shapes[:0], encode: t.encode[:0]}
}

// add stores an execution, and returns false if the execution does not fit in memory.
func (s *section) add(x *execution, parallel bool) bool {
	n := s.trackOf(x.block)
	t := &s.tracks[n]
	before := len(t.data)
	anchor := t.total / anchorInterval
	if t.total%anchorInterval == 0 {
		t.anchors = append(t.anchors, len(t.data))
		s.bytes += 8
	}
	i := t.shapeNumber(x)
	if i == len(t.shapes) {
		t.shapes = append(t.shapes, slices.Clone(x.cells))
		if len(t.encode) < cap(t.encode) {
			t.encode = t.encode[:i+1]
			t.encode[i].from = 0
		} else {
			t.encode = append(t.encode, addressPredictor{})
		}
		s.bytes += 64 + int64(len(x.cells))*int64(40+16*s.cores)
	}
	t.last = i
	e := &t.encode[i]
	e.resetAt(anchor, len(x.cells))
	t.data = binary.AppendUvarint(t.data, uint64(i))
	for row := range x.cells {
		expect := &e.rows[row]
		t.data = binary.AppendVarint(t.data, int64(x.addrs[row]-expect.last-expect.stride))
		expect.update(x.addrs[row], e.again)
		if hasArg(x.cells[row].kind) {
			t.data = binary.AppendUvarint(t.data, x.args[row])
		}
	}
	t.total++
	t.parallel = t.parallel || parallel
	s.bytes += int64(len(t.data)-before) + s.order.add(n)
	return s.bytes <= s.limit
}

// shapeNumber returns the number of the shape of an execution, or len(t.shapes) if the shape is new.
// Usually, the shape equals the shape of the last execution.
func (t *track) shapeNumber(x *execution) int {
	if len(t.shapes) == 0 || slices.Equal(t.shapes[t.last], x.cells) {
		return t.last
	}
	// Search backwards, because recent shapes are the most likely.
	for i := len(t.shapes) - 1; i >= 0 && len(t.shapes)-i <= mostTried; i-- {
		if slices.Equal(t.shapes[i], x.cells) {
			return i
		}
	}
	return len(t.shapes)
}

// mostTried is the maximum number of shapes that are compared with a new execution. If the
// execution differs from all these shapes, its shape is added as a new shape, even if the shape
// equals an older shape.
const mostTried = 64

// cursor reads a track's executions in ascending order, and can skip executions.
type cursor struct {
	next   uint64 // number of the next execution
	at     int    // position of this execution in the data of the track
	decode []addressPredictor
}

func (c *cursor) read(t *track, n uint64, x *execution) {
	if n/anchorInterval > c.next/anchorInterval {
		c.next, c.at = n/anchorInterval*anchorInterval, t.anchors[n/anchorInterval]
	}
	for c.next < n {
		c.step(t, x)
	}
	c.step(t, x)
}

func (c *cursor) step(t *track, x *execution) {
	i := int(c.uvarint(t))
	cells := t.shapes[i]
	for len(c.decode) < len(t.shapes) {
		c.decode = append(c.decode, addressPredictor{})
	}
	e := &c.decode[i]
	e.resetAt(c.next/anchorInterval, len(cells))
	x.reset(t.block)
	for row := range cells {
		expect := &e.rows[row]
		addr := expect.last + expect.stride + unzigzag(c.uvarint(t))
		expect.update(addr, e.again)
		arg := uint64(0)
		if hasArg(cells[row].kind) {
			arg = c.uvarint(t)
		}
		x.add(cells[row], addr, arg)
	}
	c.next++
}

func (c *cursor) uvarint(t *track) uint64 {
	if b := t.data[c.at]; b < 0x80 {
		c.at++
		return uint64(b)
	}
	n, length := binary.Uvarint(t.data[c.at:])
	c.at += length
	return n
}

// order is a compressed sequence of tracks. The predicted next track is the track that last
// followed the current track. The data alternate between the number of consecutive correct
// predictions and the number of a mispredicted track.
type order struct {
	data []byte
	// index: 1 + track, or 0 for the beginning; value: 1 + the track that last followed, or 0 if
	// unknown
	guess []uint32
	now   uint32 // 1 + the last track; 0: none yet
	run   uint64 // number of correct predictions since the last misprediction
	total uint64
}

func (o *order) reset() { *o = order{data: o.data[:0], guess: o.guess[:0]} }

// add appends a track, and returns the number of additional bytes.
func (o *order) add(n uint32) (bytes int64) {
	for uint64(len(o.guess)) <= uint64(max(n, o.now)) {
		o.guess = append(o.guess, 0)
	}
	o.total++
	if o.guess[o.now] == n+1 {
		o.run++
	} else {
		before := len(o.data)
		o.data = binary.AppendUvarint(binary.AppendUvarint(o.data, o.run), uint64(n))
		o.guess[o.now], o.run = n+1, 0
		bytes = int64(len(o.data) - before)
	}
	o.now = n + 1
	return bytes
}

// orderReader reads a sequence of tracks.
type orderReader struct {
	of       *order
	at       int
	guess    []uint32
	now      uint32
	run      uint64 // number of correct predictions before the next misprediction; valid only if runKnown is true
	runKnown bool
	done     uint64
}

func (r *orderReader) reset(o *order) {
	*r = orderReader{of: o, guess: slices.Grow(r.guess[:0], len(o.guess))[:len(o.guess)]}
	clear(r.guess)
}

// nextTrack returns the number of the next track, or false at the end of the sequence.
func (r *orderReader) nextTrack() (n uint32, ok bool) {
	if r.done == r.of.total {
		return 0, false
	}
	r.done++
	if !r.runKnown && r.at < len(r.of.data) {
		run, length := binary.Uvarint(r.of.data[r.at:])
		r.run, r.at, r.runKnown = run, r.at+length, true
	}
	if r.runKnown && r.run == 0 {
		instead, length := binary.Uvarint(r.of.data[r.at:])
		r.at, r.runKnown = r.at+length, false
		n = uint32(instead)
		r.guess[r.now] = n + 1
	} else {
		r.run--
		n = r.guess[r.now] - 1
	}
	r.now = n + 1
	return n, true
}
