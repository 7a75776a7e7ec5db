package multicore

import (
	"sort"

	"github.com/stackglass/stackglass/core/multicore/tape"
	"github.com/stackglass/stackglass/core/trace"
)

// coreShift determines the private addresses of the cores: for core c, 2^48·c is added to the
// addresses of the sequential run. Programs use only addresses below 2^48, so addresses never
// collide. 2^48 is a multiple of the number of sets × the line size of every cache, so no reference
// moves to a different set.
const coreShift = 48

// stagger is an additional offset between the stacks of successive cores. Without this offset, the
// threads' stacks would use the same sets of a shared cache and evict each other's lines. LLVM's
// runtime places each thread's frames a line higher than the frames of the previous thread
// (KMP_STKOFFSET).
const stagger = 64

// stackBytes is the stack size that is assumed if the trace does not contain it: the usual size for
// a main thread.
const stackBytes = 8 << 20

// privacy determines which rows of a region have addresses that are private to the executing core.
type privacy struct {
	ranges []Range
	// The private stack below the function that forks consists of the addresses [low, high).
	low, high trace.Addr
}

// distance returns the offset that is added to the private addresses of a core.
func (v *privacy) distance(core int) trace.Addr {
	d := trace.Addr(core) << coreShift
	if len(v.ranges) == 0 {
		d += trace.Addr(core) * stagger
	}
	return d
}

// has reports whether an address in a region is private.
func (v *privacy) has(addr trace.Addr) bool {
	if len(v.ranges) == 0 {
		return addr-v.low < v.high-v.low
	}
	n := sort.Search(len(v.ranges), func(n int) bool { return v.ranges[n].High > addr })
	return n < len(v.ranges) && addr >= v.ranges[n].Low
}

// moves contains the kinds of rows with a data address.
const moves trace.Kinds = trace.AllKinds | 1<<trace.Alloc | 1<<trace.Free

// mark marks the private rows of a page.
func (v *privacy) mark(p *tape.Page) {
	if len(v.ranges) == 0 {
		v.markStack(p)
		return
	}
	private := p.Grow()
	for i, a := range p.Addr {
		private[i] = 0
		if v.has(a) && moves.Has(p.Kind[i]) {
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
		if a-low < bytes && moves.Has(p.Kind[i]) {
			private[i] = 1
		}
	}
}
