package sasmm

import (
	"encoding/binary"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// section stores the executions of the trace or region within which executions are counted. The
// executions are stored by block, together with the order of the blocks.
type section struct {
	tracks []track
	at     []uint32 // by block: 1 + the number of its track; 0: no track yet
	order  order
	bytes  int64 // approximate number of bytes of memory in use
	limit  int64
	cores  int
}

// track stores the executions of one block: for each execution, the number of its shape, and for
// each row, the difference between its address and the expected address. The expected address
// continues the stride of the same row in the last two executions with this shape.
//
// Expectations are reset at anchors, so that reading can start at an anchor.
type track struct {
	block    uint32
	parallel bool
	total    uint64 // number of executions
	data     []byte
	anchors  []int // positions in data of every often-th execution
	shapes   []shape
	encode   []expected // expectations for each shape, for encoding
	last     int        // the shape of the last execution
	share    share
	reader   cursor   // reads private traces and serial blocks
	cores    []cursor // for the shared trace: one cursor per core
	next     uint64   // number of the next execution of the block
	first    uint64   // number of core 0's executions so far
}

// often is the number of executions between two resets of the expectations.
const often = 256

// shape is an execution without its addresses and arguments.
type shape []cell

// cell is a row without its address and argument.
type cell struct {
	pc      trace.Addr
	site    uint32
	bytes   uint32
	kind    trace.Kind
	private bool
}

// argued reports whether rows of a kind have an argument.
func argued(k trace.Kind) bool { return !k.IsReference() && k >= trace.Alloc && k != trace.BareBlock }

// expected predicts the addresses of a shape's rows.
type expected struct {
	// 1 + the number of the anchor at which the expectations were reset; 0 if they were never reset
	from  uint64
	again bool // whether there was an execution after the reset
	rows  []expectation
}

type expectation struct{ last, stride uint64 }

// since resets the expectations unless they were already reset at this anchor.
func (e *expected) since(anchor uint64, rows int) {
	if e.from == anchor+1 {
		e.again = true
		return
	}
	e.from, e.again = anchor+1, false
	e.rows = slices.Grow(e.rows[:0], rows)[:rows]
	clear(e.rows)
}

// seen updates the expectation after an address. The stride is known after the second address.
func (x *expectation) seen(addr uint64, again bool) {
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
	anchor := t.total / often
	if t.total%often == 0 {
		t.anchors = append(t.anchors, len(t.data))
		s.bytes += 8
	}
	i := t.shape(x)
	if i == len(t.shapes) {
		t.shapes = append(t.shapes, slices.Clone(x.cells))
		if len(t.encode) < cap(t.encode) {
			t.encode = t.encode[:i+1]
			t.encode[i].from = 0
		} else {
			t.encode = append(t.encode, expected{})
		}
		s.bytes += 64 + int64(len(x.cells))*int64(40+16*s.cores)
	}
	t.last = i
	e := &t.encode[i]
	e.since(anchor, len(x.cells))
	t.data = binary.AppendUvarint(t.data, uint64(i))
	for row := range x.cells {
		expect := &e.rows[row]
		t.data = binary.AppendVarint(t.data, int64(x.addrs[row]-expect.last-expect.stride))
		expect.seen(x.addrs[row], e.again)
		if argued(x.cells[row].kind) {
			t.data = binary.AppendUvarint(t.data, x.args[row])
		}
	}
	t.total++
	t.parallel = t.parallel || parallel
	s.bytes += int64(len(t.data)-before) + s.order.add(n)
	return s.bytes <= s.limit
}

// shape returns the number of an execution's shape, or len(t.shapes) if the shape is new. Usually
// the shape is the same as in the last execution.
func (t *track) shape(x *execution) int {
	if len(t.shapes) == 0 || slices.Equal(t.shapes[t.last], x.cells) {
		return t.last
	}
	// Search backwards, because the shape is usually one of the latest shapes.
	for i := len(t.shapes) - 1; i >= 0 && len(t.shapes)-i <= mostTried; i-- {
		if slices.Equal(t.shapes[i], x.cells) {
			return i
		}
	}
	return len(t.shapes)
}

// mostTried is the maximum number of shapes that are compared. If none of these shapes is equal,
// the shape is added even if an equal shape exists.
const mostTried = 64

// cursor reads a track's executions in ascending order, and can skip executions.
type cursor struct {
	next   uint64 // number of the next execution
	at     int    // position of this execution in data
	decode []expected
}

func (c *cursor) read(t *track, n uint64, x *execution) {
	if n/often > c.next/often {
		c.next, c.at = n/often*often, t.anchors[n/often]
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
		c.decode = append(c.decode, expected{})
	}
	e := &c.decode[i]
	e.since(c.next/often, len(cells))
	x.reset(t.block)
	for row := range cells {
		expect := &e.rows[row]
		addr := expect.last + expect.stride + unzigzag(c.uvarint(t))
		expect.seen(addr, e.again)
		arg := uint64(0)
		if argued(cells[row].kind) {
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

// order is a compressed sequence of tracks. The guess for the next track is the track that followed
// the current track the last time. The data alternate between a number of consecutive correct
// guesses and the number of a track that was guessed wrongly.
type order struct {
	data  []byte
	guess []uint32 // by track: 1 + the track that followed it the last time; 0: unknown
	now   uint32   // 1 + the last track; 0: none yet
	run   uint64   // number of correct guesses since the last wrong guess
	total uint64
}

func (o *order) reset() { *o = order{data: o.data[:0], guess: o.guess[:0]} }

// add appends a track and returns the number of bytes that it needs.
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
	of    *order
	at    int
	guess []uint32
	now   uint32
	run   uint64 // number of correct guesses before the next wrong guess; valid only if told is set
	told  bool
	done  uint64
}

func (r *orderReader) reset(o *order) {
	*r = orderReader{of: o, guess: slices.Grow(r.guess[:0], len(o.guess))[:len(o.guess)]}
	clear(r.guess)
}

// next returns the next track, or false at the end.
func (r *orderReader) next() (n uint32, ok bool) {
	if r.done == r.of.total {
		return 0, false
	}
	r.done++
	if !r.told && r.at < len(r.of.data) {
		run, length := binary.Uvarint(r.of.data[r.at:])
		r.run, r.at, r.told = run, r.at+length, true
	}
	if r.told && r.run == 0 {
		instead, length := binary.Uvarint(r.of.data[r.at:])
		r.at, r.told = r.at+length, false
		n = uint32(instead)
		r.guess[r.now] = n + 1
	} else {
		r.run--
		n = r.guess[r.now] - 1
	}
	r.now = n + 1
	return n, true
}
