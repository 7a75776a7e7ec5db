package sites

import (
	"sort"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

type strideCounts = [profile.NumStrides]uint64

// stride is where a site is in its walk, in one thread.
type stride struct {
	last   trace.Addr // of its last reference
	step   uint64     // from the one before to it; 0 behind a first reference, whose next one is then no constant stride but a zero one
	counts strideCounts
}

// seen reports whether there was a reference: the first one counts as irregular.
func (s *stride) seen() bool { return s.counts[profile.IrregularStride] != 0 }

func (s *stride) add(addr trace.Addr, bytes uint32) {
	step := addr - s.last
	class := strideClass(step, s.step, bytes)
	if s.counts[profile.IrregularStride] == 0 {
		class, step = profile.IrregularStride, 0
	}
	s.counts[class&3]++
	s.last, s.step = addr, step
}

// strideClass returns the class of a reference that is step off the one before, which was
// before off its own.
func strideClass(step, before uint64, bytes uint32) profile.Stride {
	size := uint64(max(bytes, 1))
	class := profile.IrregularStride
	if step == before {
		class = profile.ConstantStride
	}
	if step == size || step == -size {
		class = profile.UnitStride
	}
	if step == 0 {
		class = profile.ZeroStride
	}
	return class
}

type strides struct {
	list   []walks // ascending by thread
	latest int     // the thread of the time before
}

type walks struct {
	thread uint32
	sites  []stride
	starts []walkStart // where mergeable
}

// walksOf returns a thread's walks, of at least slots slots, with their starts if asked for.
func (s *strides) walksOf(thread uint32, slots int, starts bool) *walks {
	if s.latest >= len(s.list) || s.list[s.latest].thread != thread {
		s.latest = sort.Search(len(s.list), func(i int) bool { return s.list[i].thread >= thread })
		if s.latest == len(s.list) || s.list[s.latest].thread != thread {
			s.list = append(s.list, walks{})
			copy(s.list[s.latest+1:], s.list[s.latest:])
			s.list[s.latest] = walks{thread: thread}
		}
	}
	w := &s.list[s.latest]
	if missing := slots - len(w.sites); missing > 0 {
		w.sites = append(w.sites, make([]stride, missing)...)
		if starts {
			w.starts = append(w.starts, make([]walkStart, missing)...)
		}
	}
	return w
}

func (s *strides) counts(slot uint32) (sum strideCounts) {
	for i := range s.list {
		if w := s.list[i].sites; int(slot) < len(w) {
			for c, n := range w[slot].counts {
				sum[c] += n
			}
		}
	}
	return sum
}
