package sharing_test

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
)

// access is one line access of a trace.
type access struct {
	core  int
	line  trace.Line
	write bool
}

// accessesOf returns the line accesses of a trace, with their cores.
func accessesOf(b *trace.Batch, lineBytes uint64, coreOf map[uint32]int) (list []access) {
	for i, addr := range b.Addr {
		write := b.Kind[i] == trace.Store || b.Kind[i] == trace.Modify || b.Kind[i] == trace.RangeWrite
		last := (addr + uint64(max(b.Bytes[i], 1)) - 1) / lineBytes
		for line := addr / lineBytes; line <= last; line++ {
			list = append(list, access{coreOf[b.Thread[i]], line, write})
		}
	}
	return list
}

// distancesOn returns the stack distances of accesses on a stack that several cores share. The
// function selectsCore reports whether a core shares the stack. The accesses of all other cores
// have no distance.
func distancesOn(all []access, selectsCore func(core int) bool) []uint32 {
	var model stacktest.Naive
	distances := make([]uint32, len(all))
	for i, a := range all {
		if selectsCore(a.core) {
			model.Distances([]trace.Line{a.line}, distances[i:])
		}
	}
	return distances
}

// lastBefore returns the index of the last access before index i for which the condition is true,
// or -1 if there is no such access.
func lastBefore(all []access, i int, condition func(a access) bool) int {
	for i--; i >= 0 && !condition(all[i]); i-- {
	}
	return i
}

func add(c *profile.StackCounts, distance uint32) {
	if distance == stack.Cold {
		c.Cold++
	} else {
		c.Distances.Add(uint64(distance))
	}
}

// naiveCore implements views 1 and 3 of a core according to their definitions.
func naiveCore(all []access, core int) (private, foreign profile.StackCounts) {
	distances := distancesOn(all, func(c int) bool { return c == core })
	var lines []trace.Line
	var marked []bool
	for i, a := range all {
		if a.core != core {
			continue
		}
		lines, marked = append(lines, a.line), append(marked, false)
		add(&private, distances[i])
		if last := lastBefore(all, i, func(b access) bool { return b.line == a.line }); last >= 0 && all[last].core != core {
			add(&foreign, distances[i])
			marked[len(lines)-1] = true
		}
	}
	private.Sets.Depths = *stacktest.DepthsInLists(lines)
	foreign.Sets.Depths = *stacktest.MarkedDepths(lines, marked)
	return private, foreign
}

// naiveDomain implements views 2 and 3 of the cores of a domain according to their definitions.
func naiveDomain(all []access, cores []int) (d profile.Domain) {
	isMember := func(c int) bool { return slices.Contains(cores, c) }
	var some []access
	for _, a := range all {
		if isMember(a.core) {
			some = append(some, a)
		}
	}
	d.Members = make([]profile.Member, len(cores))
	shared := distancesOn(some, isMember)
	var lines []trace.Line
	for at, core := range cores {
		m := &d.Members[at]
		private := distancesOn(some, func(c int) bool { return c == core })
		for i, a := range some {
			if a.core != core {
				continue
			}
			if shared[i] == stack.Cold {
				m.Cold++
				continue
			}
			m.Distances.Add(uint64(shared[i]))
			*changeOf(&m.Change, some, i, private[i], shared[i])++
			if last := lastBefore(some, i, func(b access) bool { return b.line == a.line }); some[last].core != core {
				d.Foreign.Distances.Add(uint64(shared[i]))
			}
		}
	}
	marked := make([]bool, len(some))
	for i, a := range some {
		lines = append(lines, a.line)
		last := lastBefore(some, i, func(b access) bool { return b.line == a.line })
		marked[i] = last >= 0 && some[last].core != a.core
	}
	d.Sets.Depths = *stacktest.DepthsInLists(lines)
	d.Foreign.Sets.Depths = *stacktest.MarkedDepths(lines, marked)
	return d
}

// changeOf compares the private distance of access i with its concurrent distance, and returns the
// counter for this kind of change.
func changeOf(c *profile.Change, all []access, i int, private, shared uint32) *uint64 {
	x := all[i]
	since := lastBefore(all, i, func(b access) bool { return b.core == x.core && b.line == x.line })
	if since < 0 {
		return &c.Brought
	}
	own, others := map[trace.Line]bool{}, map[trace.Line]bool{}
	for _, a := range all[since+1 : i] {
		if a.core == x.core {
			own[a.line] = true
		} else {
			others[a.line] = true
		}
	}
	overlap := false
	for line := range own {
		overlap = overlap || others[line]
	}
	switch {
	case others[x.line]:
		return &c.Intercepted
	case private == shared:
		return &c.Same
	case overlap:
		return &c.Overlapped
	}
	return &c.Dilated
}

// counted contains the number of misses of a core, and the number of these misses that would have
// been hits without a store by another core.
type counted struct{ misses, taken uint64 }

// misses returns each core's misses in a simulated private cache. All caches have the given numbers
// of sets and ways, and are kept coherent by invalidation.
func misses(all []access, cores, sets, ways int) []counted {
	caches := make([]stacktest.Private, cores)
	for i := range caches {
		caches[i] = stacktest.Private{Sets: sets, Ways: ways}
	}
	// for each core and line: whether a store by another core has invalidated the line in the
	// core's cache
	taken := map[[2]uint64]bool{}
	counts := make([]counted, cores)
	for _, a := range all {
		for other := range cores {
			if a.write && other != a.core && caches[other].Do(stacktest.Event{Op: stack.LoseOp, Line: a.line}) {
				taken[[2]uint64{uint64(other), a.line}] = true
			}
		}
		key := [2]uint64{uint64(a.core), a.line}
		if !caches[a.core].Do(stacktest.Event{Op: stack.AccessOp, Line: a.line}) {
			counts[a.core].misses++
			if taken[key] {
				counts[a.core].taken++
			}
		}
		delete(taken, key)
	}
	return counts
}
