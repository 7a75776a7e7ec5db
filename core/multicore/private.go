package multicore

import (
	"sort"

	"github.com/stackglass/stackglass/core/multicore/tape"
	"github.com/stackglass/stackglass/core/trace"
)

// coreShift is the bit position of the core's number in private addresses: for core c, 2^48·c is
// added to the addresses of the sequential run. Programs use only addresses below 2^48, so the
// addresses of different cores never collide. 2^48 is a multiple of the number of sets × the line
// size of every cache, so no reference moves to a different set.
const coreShift = 48

// stagger is an additional offset between the stacks of successive cores. Without this offset, the
// threads' stacks would use the same sets of a shared cache and evict each other's lines. LLVM's
// runtime places each thread's frames one cache line higher than the frames of the previous thread
// (KMP_STKOFFSET).
const stagger = 64

// stackBytes is the assumed stack size if the trace does not contain the size: the usual size for a
// main thread.
const stackBytes = 8 << 20

// privacy determines which rows of a region have addresses that are private to the executing core.
type privacy struct {
	ranges []Range
	// The private stack below the function that forks consists of the addresses [low, high).
	low, high trace.Addr
}

// offset returns the number that is added to the private addresses of a core.
func (v *privacy) offset(core int) trace.Addr {
	d := trace.Addr(core) << coreShift
	if len(v.ranges) == 0 {
		d += trace.Addr(core) * stagger
	}
	return d
}

// isPrivate reports whether an address in a region is private.
func (v *privacy) isPrivate(addr trace.Addr) bool {
	if len(v.ranges) == 0 {
		return addr-v.low < v.high-v.low
	}
	n := sort.Search(len(v.ranges), func(n int) bool { return v.ranges[n].High > addr })
	return n < len(v.ranges) && addr >= v.ranges[n].Low
}

// addressKinds contains the kinds of rows that have a data address.
const addressKinds trace.Kinds = trace.AllKinds | 1<<trace.Alloc | 1<<trace.Free

// markPrivate marks the rows of a page that have private addresses.
func (v *privacy) markPrivate(p *tape.Page) {
	if len(v.ranges) == 0 {
		v.markStack(p)
		return
	}
	private := p.Grow()
	for i, a := range p.Addr {
		private[i] = 0
		if v.isPrivate(a) && addressKinds.Has(p.Kind[i]) {
			private[i] = 1
		}
	}
}

func (v *privacy) markStack(p *tape.Page) {
	low, bytes := v.low, v.high-v.low
	found := false
	for _, a := range p.Addr {
		found = found || a-low < bytes
	}
	if !found {
		return
	}
	private := p.Grow()
	for i, a := range p.Addr {
		private[i] = 0
		if a-low < bytes && addressKinds.Has(p.Kind[i]) {
			private[i] = 1
		}
	}
}
