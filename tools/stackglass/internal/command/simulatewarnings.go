package command

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// simulatedDoubts returns warnings about the hierarchy and the placement of threads.
func simulatedDoubts(h hierarchy.Hierarchy, s *simulation, l *loadedFile, r simulate.Result) (list []string) {
	if h.About != "" {
		list = append(list, h.Name+": "+h.About)
	}
	if r.Folded > 0 {
		list = append(list, l.name+": there are more threads than the maximum of "+strconv.Itoa(simulate.MaxCores)+" cores; "+
			"the remaining "+plural(uint64(r.Folded), "thread")+" are assigned to the cores round-robin; to choose which threads share a core, use --cores")
	}
	if usesStrides(h) && !s.instructions {
		list = append(list, l.name+": the trace does not record which instruction made each reference, so stride prefetchers treat all references as references of one instruction")
	}
	if text := s.warmupWarning(r); text != "" {
		list = append(list, l.name+": "+text)
	}
	if text := hierarchy.OrderDoubt(l.Profile); text != "" {
		list = append(list, string(text))
	}
	if s.r.cores == "" {
		var cores [][]uint32
		for _, c := range r.Cores {
			cores = append(cores, c.Threads)
		}
		list = append(list, sharersDoubts(h, cores)...)
	}
	return list
}

// idleCaches returns the names of the caches and TLBs for instructions if no instruction fetch
// reached the simulation, and the reason. Otherwise, names is empty.
func (s *simulation) idleCaches(h hierarchy.Hierarchy, l *loadedFile) (names, reason string) {
	caches := slices.Concat(h.Instructions, h.Translation().Instructions)
	if len(caches) == 0 || l.Profile.Totals.References[trace.Fetch] > 0 {
		return "", ""
	}
	var list []string
	for _, c := range caches {
		list = append(list, c.Name)
	}
	names = strings.Join(list, ", ")
	switch {
	case !l.Profile.Input.Kinds.Has(trace.Fetch):
		return names, "--kinds excludes instruction fetches"
	case s.r.firstSet("skip", "limit", "threads") != "":
		return names, "the selected part of the trace has no instruction fetches"
	}
	return names, "the trace has no instruction fetches"
}

// idleWarning returns the warning about caches and TLBs that received no instruction fetches.
func (s *simulation) idleWarning(l *loadedFile, names, reason string) string {
	text := l.name + ": not simulated: " + names + ", because " + reason
	if l.Profile.Input.Kinds.Has(trace.Fetch) {
		text += "; to record instruction fetches, run: stackglass trace --with valgrind -- PROGRAM"
	}
	return text
}

// isPreset reports whether the hierarchy is a preset. A user who selects a preset has not requested
// its instruction caches explicitly, so a missing instruction cache is a fact and not a warning.
func (s *simulation) isPreset() bool {
	_, err := hierarchy.Preset(s.named)
	return s.named != "" && err == nil
}

// warmupWarning returns a warning if no reference follows the warm-up, or "".
func (s *simulation) warmupWarning(r simulate.Result) string {
	switch last := len(r.Levels) - 1; {
	case r.WarmingUp && s.warmupShare > 0:
		l := &r.Levels[last]
		return "the warm-up did not end: it ends when " + strconv.FormatFloat(100*s.warmupShare, 'g', -1, 64) + "% of " +
			plural(l.Cache.Lines()*uint64(l.Caches), "line") + " of " + l.Cache.Name + " are filled, but the trace fills only " + plural(l.Resident, "line") +
			"; the counts therefore include all references; to end the warm-up earlier, use --warmup N"
	case r.WarmingUp:
		return "the warm-up did not end: the simulation ended after " + plural(r.References, "reference") +
			"; the counts therefore include all references; to end the warm-up earlier, use --warmup with a smaller number"
	case r.References == 0 && s.warmup > 0:
		return "the warm-up ends with the last reference, so no reference is counted; to end the warm-up earlier, use --warmup with a smaller number"
	}
	return ""
}
