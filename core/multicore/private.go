package multicore

import (
	"sort"

	"github.com/stackglass/stackglass/core/multicore/tape"
	"github.com/stackglass/stackglass/core/trace"
)

// coreShift places the private addresses of core c c·2^48 bytes higher than in the sequential run.
// No program's addresses are as high, so that they do not collide. The distance is a multiple of
// every cache's sets × line, so that every reference stays in its set.
const coreShift = 48

// stagger is an additional distance of each core's stack. Otherwise threads' stacks would fall into
// the same sets of a shared cache and evict each other. LLVM's runtime places each thread's frames
// a line higher than the previous thread's (KMP_STKOFFSET).
const stagger = 64

// stackBytes is the assumed size of a stack, as for a main thread, if the trace does not state it.
const stackBytes = 8 << 20

// privacy decides which rows of a region move to addresses of the core's own.
type privacy struct {
	ranges []Range
	// The stack below the function that forks is private: addresses from low to high.
	low, high trace.Addr
}

// distance returns by how much private addresses of a core are moved.
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

// moves are the kinds of rows with the address of data.
const moves trace.Kinds = trace.AllKinds | 1<<trace.Alloc | 1<<trace.Free

// mark sets the private rows of a page.
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
