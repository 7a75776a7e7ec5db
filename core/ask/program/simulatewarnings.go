package program

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// Doubts returns warnings about the hierarchy and the placement of threads.
func (s *Simulation) Doubts() (list []string) {
	name, r := s.run.Name, &s.Result
	if s.h.About != "" {
		list = append(list, s.h.Name+": "+s.h.About)
	}
	if r.Folded > 0 {
		list = append(list, name+": there are more threads than the maximum of "+strconv.Itoa(simulate.MaxCores)+" cores; "+
			"the remaining "+plural(uint64(r.Folded), "thread")+" are assigned to the cores round-robin; to choose which threads share a core, use --cores")
	}
	if usesStrides(s.h) && !s.instructions {
		list = append(list, name+": the trace does not record which instruction made each reference, so stride prefetchers treat all references as references of one instruction")
	}
	if text := s.warmupWarning(); text != "" {
		list = append(list, name+": "+text)
	}
	if text := hierarchy.OrderDoubt(s.run.Profile); text != "" {
		list = append(list, string(text))
	}
	if s.run.Cores == "" {
		var cores [][]uint32
		for _, c := range r.Cores {
			cores = append(cores, c.Threads)
		}
		list = append(list, SharersDoubts(s.h, cores)...)
	}
	return list
}

// idleCaches returns the names of the caches and TLBs for instructions if no instruction fetch
// reached the simulation, and the reason. Otherwise, names is empty.
func (s *Simulation) idleCaches() (names, reason string) {
	caches, p := slices.Concat(s.h.Instructions, s.h.Translation().Instructions), s.run.Profile
	if len(caches) == 0 || p.Totals.References[trace.Fetch] > 0 {
		return "", ""
	}
	var list []string
	for _, c := range caches {
		list = append(list, c.Name)
	}
	names = strings.Join(list, ", ")
	switch in := &p.Input; {
	case !in.Kinds.Has(trace.Fetch):
		return names, "--kinds excludes instruction fetches"
	case in.Skip > 0 || in.Limit > 0 || in.Threads != nil:
		return names, "the selected part of the trace has no instruction fetches"
	}
	return names, "the trace has no instruction fetches"
}

// idleWarning returns the warning about caches and TLBs that received no instruction fetches.
func (s *Simulation) idleWarning(names, reason string) string {
	text := s.run.Name + ": not simulated: " + names + ", because " + reason
	if s.run.Profile.Input.Kinds.Has(trace.Fetch) {
		text += "; to record instruction fetches, run: stackglass trace --with valgrind -- PROGRAM"
	}
	return text
}

// warmupWarning returns a warning if no reference follows the warm-up, or "".
func (s *Simulation) warmupWarning() string {
	r := &s.Result
	switch last := len(r.Levels) - 1; {
	case r.WarmingUp && s.options.WarmupShare > 0:
		l := &r.Levels[last]
		return "the warm-up did not end: it ends when " + strconv.FormatFloat(100*s.options.WarmupShare, 'g', -1, 64) + "% of " +
			plural(l.Cache.Lines()*uint64(l.Caches), "line") + " of " + l.Cache.Name + " are filled, but the trace fills only " + plural(l.Resident, "line") +
			"; the counts therefore include all references; to end the warm-up earlier, use --warmup N"
	case r.WarmingUp:
		return "the warm-up did not end: the simulation ended after " + plural(r.References, "reference") +
			"; the counts therefore include all references; to end the warm-up earlier, use --warmup with a smaller number"
	case r.References == 0 && s.options.Warmup > 0:
		return "the warm-up ends with the last reference, so no reference is counted; to end the warm-up earlier, use --warmup with a smaller number"
	}
	return ""
}

// SharersOf returns the threads that share each cache of a level, in ascending order. It returns
// nil if the caches are private or all cores share one cache.
func SharersOf(c hierarchy.Cache, cores [][]uint32) (groups [][]uint32) {
	if c.SharedBy <= 1 || uint64(c.SharedBy) >= uint64(len(cores)) {
		return nil
	}
	for group := range slices.Chunk(cores, int(c.SharedBy)) {
		groups = append(groups, slices.Sorted(slices.Values(slices.Concat(group...))))
	}
	return groups
}

// SharersDoubts returns warnings that list the threads that share each cache, because the grouping
// depends on the order in which threads appear.
func SharersDoubts(h hierarchy.Hierarchy, cores [][]uint32) (doubts []string) {
	for _, c := range h.Levels {
		groups := SharersOf(c, cores)
		if groups == nil {
			continue
		}
		var numbers []string
		for _, threads := range groups {
			numbers = append(numbers, answers.NumbersOf(threads))
		}
		doubts = append(doubts, "each "+c.Name+" is shared by "+strconv.FormatUint(uint64(c.SharedBy), 10)+" cores; cores are grouped in the order in which their threads first appear in the trace: threads "+
			strings.Join(numbers, ", then ")+" (to change the groups, use --cores)")
	}
	return doubts
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatUint(n, 10) + " " + noun + "s"
}
