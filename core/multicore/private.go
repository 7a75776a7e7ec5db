package multicore

import (
	"sort"

	"github.com/stackglass/stackglass/core/multicore/tape"
	"github.com/stackglass/stackglass/core/trace"
)

// coreShift is the distance between what is private to two cores: core c has it c·2^48
// bytes higher than the sequential run. No program's address is as high, so nothing
// collides; and the distance is a multiple of every cache's sets × line, so that every
// reference stays in its set.
const coreShift = 48

// stagger is what is added to that on stacks, for each core. Threads' stacks would be at the
// same place in all of their caches, and in one that they share their frames would put each
// other out: LLVM's runtime has each thread's frames lie a line higher than those of the
// thread before (KMP_STKOFFSET).
const stagger = 64

// stackBytes stands for the stack's size where the trace does not tell it, as it is
// usual for a main thread.
const stackBytes = 8 << 20

// privacy tells which rows of a region move to addresses of the core's own.
type privacy struct {
	shared []bool
	ranges []Range
	// What lies from low up to high is private: the stack, below the one of the function
	// that forks.
	low, high trace.Addr
}

// distance is by how much what is private to a core is moved.
func (v *privacy) distance(core int) trace.Addr {
	d := trace.Addr(core) << coreShift
	if v.shared == nil && len(v.ranges) == 0 {
		d += trace.Addr(core) * stagger
	}
	return d
}

// sort tells of each row of a page whether it is private.
func (v *privacy) sort(p *tape.Page) {
	switch {
	case v.shared != nil:
		v.bySite(p)
	case len(v.ranges) > 0:
		v.byRange(p)
	case v.low < v.high:
		v.byStack(p)
	}
}

// has tells whether what a reference of a region is to is private.
func (v *privacy) has(site uint32, addr trace.Addr) bool {
	switch {
	case v.shared != nil:
		return uint64(site) >= uint64(len(v.shared)) || !v.shared[site]
	case len(v.ranges) > 0:
		n := sort.Search(len(v.ranges), func(n int) bool { return v.ranges[n].High > addr })
		return n < len(v.ranges) && addr >= v.ranges[n].Low
	}
	return addr-v.low < v.high-v.low
}

// moves tells the rows whose address says where something lies.
const moves = trace.AllKinds | 1<<trace.Alloc | 1<<trace.Free

func (v *privacy) byStack(p *tape.Page) {
	low, bytes := v.low, v.high-v.low
	some := false
	for _, a := range p.Addr {
		some = some || a-low < bytes
	}
	if !some {
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

func (v *privacy) byRange(p *tape.Page) {
	private := p.Grow()
	for i, a := range p.Addr {
		n := sort.Search(len(v.ranges), func(n int) bool { return v.ranges[n].High > a })
		private[i] = 0
		if n < len(v.ranges) && a >= v.ranges[n].Low && moves.Has(p.Kind[i]) {
			private[i] = 1
		}
	}
}

func (v *privacy) bySite(p *tape.Page) {
	private := p.Grow()
	for i, site := range p.Site {
		private[i] = 0
		if p.Kind[i].IsReference() && (uint64(site) >= uint64(len(v.shared)) || !v.shared[site]) {
			private[i] = 1
		}
	}
}
