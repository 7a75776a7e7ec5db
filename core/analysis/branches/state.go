package branches

import (
	"encoding/binary"
	"errors"
	"sort"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
)

// The form in which a segment keeps the stacks of its threads, all of it uv: unsigned
// LEB128 varints; a list is its length and then its members. Blocks are by number + 1, 0
// for none.
//
//	0, or 1 if the analysis was given up
//	list of threads, ascending, each: number; flags: 1 based, 2 reached; returned; before;
//	  list of the latest blocks of invocations, from the bottom;
//	  list of blocks that were reached below, each: block, first block of a function
//	  that was come to behind it
//	list of calls by name, ascending, each: block - that of the call before; function;
//	  number of calls

// state writes the state.
func (a *Analysis) state() []byte {
	if a.gone {
		return []byte{1}
	}
	b := []byte{0}
	threads := make([]*thread, 0, len(a.threads))
	for _, t := range a.threads {
		if t.at != 0 || t.returned != 0 || len(t.reaches) > 0 {
			threads = append(threads, t)
		}
	}
	sort.Slice(threads, func(i, j int) bool { return threads[i].number < threads[j].number })
	b = appendNumbers(b, uint32(len(threads)))
	for _, t := range threads {
		b = t.append(b)
	}
	return a.counts.appendCalls(b)
}

func (t *thread) append(b []byte) []byte {
	flags, before := uint32(0), uint32(0)
	if t.based {
		flags |= 1
	}
	if t.returned != 0 {
		if before = t.before; t.reached {
			flags |= 2
		}
	}
	b = appendNumbers(b, t.number, flags, t.returned, before)
	frames := t.frames()
	b = appendNumbers(appendNumbers(b, uint32(len(frames))), frames...)
	b = appendNumbers(b, uint32(len(t.reaches)))
	for _, r := range t.reaches {
		b = appendNumbers(b, r.block, r.then)
	}
	return b
}

//go:noinline
func appendNumbers(b []byte, numbers ...uint32) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

func (c *counts) appendCalls(b []byte) []byte {
	type made struct {
		call
		n uint64
	}
	var list []made
	for caller, function := range c.callee {
		if function != 0 {
			list = append(list, made{call{uint32(caller), function - 1}, c.made[caller]})
		}
	}
	for key, at := range c.otherAt {
		list = append(list, made{key, c.other[at]})
	}
	sort.Slice(list, func(i, j int) bool {
		x, y := list[i].call, list[j].call
		return x.caller < y.caller || x.caller == y.caller && x.function < y.function
	})
	b = appendNumbers(b, uint32(len(list)))
	last := uint32(0)
	for _, m := range list {
		b = binary.AppendUvarint(appendNumbers(b, m.caller-last, m.function), m.n)
		last = m.caller
	}
	return b
}

var errState = errors.New("the blocks of the part of the trace cannot be read; analyse the trace again from its start")

// Restore implements analysis.Analysis.
func (a *Analysis) Restore(p *profile.Profile) error {
	threads, err := a.load(p)
	if err != nil {
		return err
	}
	for _, from := range threads {
		t := a.thread(from.number)
		*t = *from
	}
	return nil
}

// Append implements analysis.Analysis.
func (a *Analysis) Append(next *profile.Profile) error {
	threads, err := a.load(next)
	if err != nil || a.gone {
		return err
	}
	for _, from := range threads {
		if err := a.join(a.thread(from.number), from); err != nil {
			return err
		}
	}
	return nil
}

// load adds what a profile counts but for where its threads came from and are, which it
// gives.
func (a *Analysis) load(p *profile.Profile) ([]*thread, error) {
	if p.Segment == nil || p.Segment.Blocks == nil {
		return nil, errState
	}
	c := blocks.NewRunDecoder(p.Blocks)
	if len(p.Blocks) > 0 {
		if err := a.loadCounts(c); err != nil {
			return nil, err
		}
	}
	d := codec.NewDecoder(p.Segment.Blocks)
	if d.UintBelow(2) == 1 {
		a.gone = true
		return nil, d.Err()
	}
	threads := make([]*thread, 0, d.Length(6))
	for range cap(threads) {
		t, err := a.loadThread(d)
		if err != nil {
			return nil, err
		}
		threads = append(threads, t)
	}
	at := uint64(0)
	for range d.Length(3) {
		at += a.block(d)
		function, n := d.UintBelow(1<<32), d.Uint()
		if d.Err() != nil || at >= uint64(len(a.code.nodes)) || function >= uint64(len(a.code.nameOf)) {
			return nil, errState
		}
		a.counts.call(uint32(at), uint32(function), n)
	}
	if d.Err() != nil || len(d.Rest()) > 0 {
		return nil, errState
	}
	return threads, nil
}

// loadCounts adds the counts of a profile, and takes in its program where it tells more
// than is known.
func (a *Analysis) loadCounts(c *blocks.RunDecoder) error {
	a.learn(a.program())
	if err := c.Err(); err != nil {
		return err
	}
	if told := c.Encoded(); len(told) > 0 {
		p, err := c.Program()
		if err != nil {
			return err
		}
		if len(p.Blocks)+1 > len(a.code.nodes) {
			a.learn(p)
			a.encoded.bytes, a.encoded.blocks, a.encoded.functions = told, len(p.Blocks), len(p.Functions)
		}
	}
	return c.Each(len(a.code.nodes)-1, len(a.code.nameOf), func(b int, taken []uint64, left, resumed uint64) bool {
		first, end := a.code.nodes[b+1].edge, a.code.endOf(uint32(b)+1)
		if uint64(len(taken)) != uint64(end-first) {
			return false
		}
		for i, n := range taken {
			a.counts.taken[first+uint32(i)] += n
		}
		a.counts.left[b+1] += left
		a.counts.resumed[b+1] += resumed
		return true
	})
}

// block reads a block's number, 0 for none.
func (a *Analysis) block(d *codec.Decoder) uint64 { return d.UintBelow(uint64(len(a.code.nodes))) }

func (a *Analysis) loadThread(d *codec.Decoder) (*thread, error) {
	t := &thread{number: uint32(d.UintBelow(1 << 32))}
	flags := d.UintBelow(4)
	t.based, t.reached = flags&1 != 0, flags&2 != 0
	t.returned, t.before = uint32(a.block(d)), uint32(a.block(d))
	for range d.Length(1) {
		n := uint32(a.block(d))
		if n == 0 || a.counts.left[n] == 0 {
			return nil, errState
		}
		a.counts.left[n]--
		t.stack = append(t.stack, n)
	}
	t.pop()
	for range d.Length(2) {
		r := reach{uint32(a.block(d)), uint32(a.block(d))}
		if r.block != 0 {
			if a.counts.resumed[r.block] == 0 {
				return nil, errState
			}
			a.counts.resumed[r.block]--
		} else if r.then == 0 || len(t.reaches) > 0 {
			return nil, errState
		}
		t.reaches = append(t.reaches, r)
	}
	if d.Err() != nil || t.reached && (t.returned == 0 && t.at == 0 || len(t.reaches) == 0) {
		return nil, errState
	}
	return t, nil
}

// join has a thread go on as it does in the segment that follows.
func (a *Analysis) join(t, next *thread) error {
	based := false
	for _, r := range next.reaches {
		if r.block != 0 {
			if err := a.arrive(t, r.block); err != nil {
				return err
			}
			if based = t.based && len(t.stack) == 0; a.code.nodes[r.block].returns {
				t.leave()
			} else {
				t.pop()
			}
		}
		if r.then != 0 {
			a.called(t, r.then)
		}
	}
	frames := next.frames()
	if len(frames) > 0 {
		if t.at != 0 {
			t.stack = append(t.stack, t.at)
		} else {
			t.based = based && next.based
		}
		t.stack = append(t.stack, frames...)
		t.pop()
	}
	t.fresh = false
	if t.returned = next.returned; t.returned == 0 || !next.reached {
		t.before, t.reached = next.before, next.reached && t.returned != 0
	}
	a.gone = a.gone || len(t.stack) >= mostFrames
	return nil
}
