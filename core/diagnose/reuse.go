package diagnose

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// reuse assigns separate addresses to each thread's memory if a thread allocates memory that
// another thread has freed, or if threads use the same stack one after the other. Threads that ran
// one after the other in the recording, because the machine was busy, run at the same time in a
// replay, and then need separate memory.
type reuse struct {
	stacks []extent           // by thread number: stacks that overlap the stack of an earlier thread
	last   map[trace.Addr]use // last allocation of blocks, by address
	heap   []extent           // the blocks that move, ordered by address
	number trace.Addr         // number of ranges moved so far
}

// extent is a range of memory, and the distance by which it moves.
type extent struct{ low, high, by trace.Addr }

// use records the thread that last allocated a block.
type use struct {
	thread uint32
	by     trace.Addr
}

// apartBy is the distance between moved ranges of memory.
const apartBy trace.Addr = 1 << 48

const mostUses = 1 << 16

// newReuse finds the threads whose stacks overlap the stack of an earlier thread.
func (r *run) newReuse() *reuse {
	u := &reuse{last: map[trace.Addr]use{}}
	if r.cost.program == nil {
		return u
	}
	threads := r.cost.program.Threads
	for i, t := range threads {
		if t.StackLow >= t.StackHigh || !slices.ContainsFunc(threads[:i], func(of trace.Thread) bool { return of.StackLow < t.StackHigh && t.StackLow < of.StackHigh }) {
			continue
		}
		for int(t.Number) >= len(u.stacks) && t.Number < 1<<16 {
			u.stacks = append(u.stacks, extent{})
		}
		if int(t.Number) < len(u.stacks) {
			u.number++
			u.stacks[t.Number] = extent{t.StackLow, t.StackHigh, u.number * apartBy}
		}
	}
	return u
}

// allocated records a block that a thread allocates.
func (u *reuse) allocated(thread uint32, addr trace.Addr, bytes uint64) {
	end := addr + min(bytes, ^addr)
	if len(u.heap) > 0 {
		u.heap = slices.DeleteFunc(u.heap, func(e extent) bool { return e.low < end && addr < e.high })
	}
	before, known := u.last[addr]
	now := use{thread, before.by}
	if known && before.thread != thread && u.number < 1<<12 {
		u.number++
		now.by = u.number * apartBy
	}
	if known || len(u.last) < mostUses {
		u.last[addr] = now
	}
	if now.by != 0 {
		i, _ := slices.BinarySearchFunc(u.heap, addr, func(e extent, addr trace.Addr) int { return cmp.Compare(e.low, addr) })
		u.heap = slices.Insert(u.heap, i, extent{addr, end, now.by})
	}
}

// move returns the new address of an address that a thread uses.
func (u *reuse) move(thread uint32, addr trace.Addr) trace.Addr {
	if int(thread) < len(u.stacks) {
		if e := &u.stacks[thread]; addr >= e.low && addr < e.high {
			return addr + e.by
		}
	}
	if len(u.heap) == 0 || addr < u.heap[0].low || addr >= u.heap[len(u.heap)-1].high {
		return addr
	}
	i, found := slices.BinarySearchFunc(u.heap, addr, func(e extent, addr trace.Addr) int { return cmp.Compare(e.low, addr) })
	if !found {
		i--
	}
	if i >= 0 && addr < u.heap[i].high {
		return addr + u.heap[i].by
	}
	return addr
}
