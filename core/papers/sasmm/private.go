package sasmm

import (
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// coreBits is the first of the bits of private addresses that hold the number of the core.
const coreBits = 48

// movable reports whether those bits of an address are free: all 0, or all 1 as in kernels.
func movable(addr trace.Addr) bool {
	top := addr >> (coreBits - 1)
	return top <= 1 || top >= 1<<17-2
}

// moved returns a core's address for a private address of core 0.
func moved(addr trace.Addr, core int) trace.Addr { return addr ^ trace.Addr(core)<<coreBits }

// stackBytes is the assumed stack size if the trace does not say it, usual for a main thread.
const stackBytes = 8 << 20

// fork notes the frame in which a region begins.
func (r *Reader) fork(frame trace.Addr) {
	r.frame, r.low = frame, frame-min(frame, stackBytes)
	if r.known == nil {
		return
	}
	for i := range r.known.Threads {
		if t := &r.known.Threads[i]; t.StackLow < frame && frame <= t.StackHigh {
			r.low = t.StackLow
		}
	}
}

// isPrivate reports whether a reference of a parallel block is to the thread's own memory. It also applies
// to other blocks, because only the end shows which are parallel; core 0, which has the others, never
// moves addresses.
func (r *Reader) isPrivate(addr trace.Addr, site uint32) bool {
	o := &r.options
	if o.Shared == nil && o.Ranges == nil {
		return addr < r.frame && addr >= r.low
	}
	if uint64(site) < uint64(len(o.Shared)) && o.Shared[site] {
		return false
	}
	if o.Ranges == nil {
		return true
	}
	i := sort.Search(len(o.Ranges), func(i int) bool { return o.Ranges[i].High > addr })
	return i < len(o.Ranges) && o.Ranges[i].Low <= addr
}
