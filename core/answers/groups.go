package answers

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
)

// AbsentThreads says, of each group of threads that an analysis was asked to put
// together, which of them it did not find, in sentences that begin with the group.
func AbsentThreads(p *profile.Profile, groups [][]uint32) (doubts []string) {
	threads, whole := p.Totals.Threads, "the trace"
	switch {
	case len(groups) == 0 || p.Totals.AllReferences() == 0:
		return nil
	case len(threads) == 0:
		var names []string
		for _, group := range groups {
			names = append(names, NumbersOf(group))
		}
		return []string{strings.Join(names, "/") + ": the trace does not say which thread made a reference"}
	case p.Input.Threads != nil || p.Input.Skip > 0 || p.Input.Limit > 0:
		whole = "what was analysed of the trace"
	}
	for _, group := range groups {
		switch known := KnownThreads(p, group); len(known) {
		case len(group):
		case 0:
			doubts = append(doubts, NumbersOf(group)+": "+whole+" has none of these threads, but "+NumbersOf(threads))
		default:
			doubts = append(doubts, NumbersOf(group)+": of these threads "+whole+" has only "+NumbersOf(known))
		}
	}
	return doubts
}

// KnownThreads are those of a group that made references.
func KnownThreads(p *profile.Profile, group []uint32) (known []uint32) {
	for _, t := range group {
		if _, found := slices.BinarySearch(p.Totals.Threads, t); found {
			known = append(known, t)
		}
	}
	return known
}
