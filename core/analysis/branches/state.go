package branches

import (
	"cmp"
	"errors"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
)

// The binary encoding of the call stacks of a segment's threads. All numbers are uv, unsigned
// LEB128 varints; a list is encoded as its length and then its members. A block is encoded as its
// number + 1; 0 means none.
//
//	0, or 1 if the analysis was stopped
//	list of threads, ascending, each: number; flags: 1 based, 2 reached; returned; before;
//	  list of the latest blocks of invocations, from the bottom;
//	  list of blocks that were reached below, each: block, first block of a function
//	  that was entered after it
//	list of calls by name, ascending, each: block - the previous call's; function;
//	  number of calls

func (a *Analysis) state() []byte {
	c := codec.Writer([]byte{})
	a.codeState(c)
	return c.Out
}

// codeState reads or writes whether the analysis was stopped, and if it was not, the threads and
// calls. It adds the calls that it reads to the counts, and returns the threads.
func (a *Analysis) codeState(c *codec.Coder) (threads []*thread) {
	gone := a.gone && !c.Reads()
	if c.Flag(&gone); gone {
		a.gone = true
		return nil
	}
	var calls []made
	if !c.Reads() {
		for _, t := range a.threads {
			if t.at != 0 || t.returned != 0 || len(t.reaches) > 0 {
				threads = append(threads, t)
			}
		}
		sort.Slice(threads, func(i, j int) bool { return threads[i].number < threads[j].number })
		calls = a.counts.list()
	}
	codec.Slice(c, &threads, 6, func(t **thread) {
		if c.Reads() {
			*t = new(thread)
		}
		a.codeThread(c, *t)
	})
	last := uint64(0)
	codec.Slice(c, &calls, 3, func(m *made) {
		caller := uint64(m.caller)
		c.Delta(&caller, &last)
		codec.Below(c, &m.function, uint64(len(a.code.nameOf)))
		c.U64(&m.n)
		if c.Check(caller < uint64(len(a.code.nodes)), errState.Error()); c.Reads() && !c.Failed() {
			a.counts.call(uint32(caller), m.function, m.n)
		}
	})
	return threads
}

// codeThread reads or writes a thread, which must be empty for reading. After reading, the thread's
// frames no longer count as left.
func (a *Analysis) codeThread(c *codec.Coder, t *thread) {
	block := func(n *uint32) { codec.Below(c, n, uint64(len(a.code.nodes))) }
	based, reached, before, frames := t.based, t.reached, t.before, t.frames()
	if t.returned == 0 {
		reached, before = false, 0
	}
	c.U32(&t.number)
	c.Flags(&based, &reached)
	block(&t.returned)
	block(&before)
	codec.Slice(c, &frames, 1, func(n *uint32) {
		if block(n); c.Reads() && take(c, a.counts.left, *n) {
			t.stack = append(t.stack, *n)
		}
	})
	if c.Reads() {
		t.based, t.reached, t.before = based, reached, before
		t.pop()
	}
	codec.Slice(c, &t.reaches, 2, func(r *reach) {
		block(&r.block)
		if block(&r.then); c.Reads() && r.block != 0 {
			take(c, a.counts.resumed, r.block)
		} else {
			c.Check(r.then != 0 && len(t.reaches) == 1, errState.Error())
		}
	})
	c.Check(!t.reached || (t.returned != 0 || t.at != 0) && len(t.reaches) > 0, errState.Error())
}

// take removes one count of a block, if there is one.
func take(c *codec.Coder, counts []uint64, block uint32) bool {
	if c.Check(block != 0 && counts[block] > 0, errState.Error()); c.Failed() {
		return false
	}
	counts[block]--
	return true
}

type made struct {
	call
	n uint64
}

func (c *counts) list() (list []made) {
	for caller, function := range c.callee {
		if function != 0 {
			list = append(list, made{call{uint32(caller), function - 1}, c.made[caller]})
		}
	}
	for key, at := range c.otherAt {
		list = append(list, made{key, c.other[at]})
	}
	sort.Slice(list, func(i, j int) bool {
		x, y := &list[i], &list[j]
		return cmp.Or(cmp.Compare(x.caller, y.caller), cmp.Compare(x.function, y.function)) < 0
	})
	return list
}

var errState = errors.New("the block counts of this part of the trace cannot be read; analyse the trace again from its start")

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

// load adds the counts of a profile to the analysis, and returns the profile's threads.
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
	d := codec.Reader(p.Segment.Blocks)
	threads := a.codeState(d)
	if d.Failed() || d.More() {
		return nil, errState
	}
	return threads, nil
}

// loadCounts adds the counts of a profile, and also its program if that is larger than the known
// one.
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
			a.encoded.bytes, a.encoded.blocks, a.encoded.functions = slices.Clone(told), len(p.Blocks), len(p.Functions)
		}
	}
	return c.Each(len(a.code.nodes)-1, make([]uint64, len(a.code.nameOf)), func(b int, x *blocks.Counts) bool {
		first, end := a.code.nodes[b+1].edge, a.code.endOf(uint32(b)+1)
		if uint64(len(x.Taken)) != uint64(end-first) {
			return false
		}
		for i, n := range x.Taken {
			a.counts.taken[first+uint32(i)] += n
		}
		a.counts.left[b+1] += x.Left
		a.counts.resumed[b+1] += x.Resumed
		return true
	})
}

// join continues a thread with its part of the following segment.
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
