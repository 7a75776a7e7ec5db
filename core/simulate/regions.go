package simulate

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// regions determines which references are counted if Options.Region is set.
type regions struct {
	isCounted func(tag trace.Addr) bool
	open      map[uint32][]bool // for each thread, whether each of its open regions is counted, outermost first
	counted   int               // number of open regions that are counted
	saved     savedCounts       // the counts at the end of the last counted region
}

// markRegion processes the beginning or the end of a region of a thread.
func (s *Simulator) markRegion(kind trace.Kind, tag trace.Addr, thread uint32) {
	r := s.regions
	before := r.counted
	switch open := r.open[thread]; {
	case kind == trace.RegionBegin:
		is := r.isCounted(tag)
		if r.open[thread] = append(open, is); is {
			r.counted++
		}
	case kind == trace.RegionEnd && len(open) > 0:
		last := len(open) - 1
		if r.open[thread] = open[:last]; open[last] {
			r.counted--
		}
	}
	switch {
	case before == 0 && r.counted > 0:
		s.restoreCounts(&r.saved)
	case before > 0 && r.counted == 0:
		r.saved = s.saveCounts()
	}
}

// dropUncounted restores the counts at the end of the last counted region, unless a counted region
// is open.
func (s *Simulator) dropUncounted() {
	if s.regions != nil && s.regions.counted == 0 {
		s.restoreCounts(&s.regions.saved)
	}
}

// savedCounts contains all counts of a simulation. The zero value contains only zeros. Cores and
// caches that were added after the counts were saved are missing, because their counts were 0.
type savedCounts struct {
	memory            Traffic
	references, split uint64
	counts            []Counts          // the counts of all cores, core by core
	bounds            map[*bound]uint64 // the misses under optimal replacement
}

func (s *Simulator) saveCounts() savedCounts {
	saved := savedCounts{memory: s.memory, references: s.references, split: s.split, bounds: map[*bound]uint64{}}
	for _, c := range s.cores {
		for _, counts := range slices.Concat(c.counts, c.icounts) {
			saved.counts = append(saved.counts, *counts)
		}
	}
	s.eachBound(func(b *bound) { saved.bounds[b] = b.misses })
	return saved
}

func (s *Simulator) restoreCounts(saved *savedCounts) {
	s.memory, s.references, s.split = saved.memory, saved.references, saved.split
	left := saved.counts
	for _, c := range s.cores {
		for _, counts := range slices.Concat(c.counts, c.icounts) {
			if *counts = (Counts{}); len(left) > 0 {
				*counts, left = left[0], left[1:]
			}
		}
	}
	s.eachBound(func(b *bound) { b.misses = saved.bounds[b] })
}

func (s *Simulator) eachBound(visit func(*bound)) {
	for _, caches := range slices.Concat(s.caches, s.icaches) {
		for _, cache := range caches {
			if cache.watch != nil && cache.watch.bound != nil {
				visit(cache.watch.bound)
			}
		}
	}
}
