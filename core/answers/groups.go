package answers

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
)

// AbsentThreads returns a sentence for each group of --cores or --domains with threads that the
// trace does not have. The sentence begins with the group.
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

// KnownThreads returns the threads of a group that made references.
func KnownThreads(p *profile.Profile, group []uint32) (known []uint32) {
	for _, t := range group {
		if _, found := slices.BinarySearch(p.Totals.Threads, t); found {
			known = append(known, t)
		}
	}
	return known
}

// ManyThreads returns warnings about communication that is left out because of the number of
// threads. caches: the question is about transfers between caches.
func ManyThreads(p *profile.Profile, caches bool) (doubts []string) {
	if n := p.Communication.Beyond; n > 0 {
		doubts = append(doubts, "there are more than "+strconv.Itoa(profile.MaxThreads)+" threads; the "+strconv.FormatUint(uint64(n)+1, 10)+
			" that come last are taken for one, and what goes between these is left out")
	}
	if !caches || p.Communication.Sources == nil || len(p.Sharing) == 0 {
		return doubts
	}
	if cores := len(p.Sharing[0].Cores); cores > 0 && cores < len(p.Totals.Threads) {
		doubts = append(doubts, strconv.Itoa(len(p.Totals.Threads))+" threads run on "+strconv.Itoa(cores)+
			" cores; those on one core have its cache in common, so what goes between them is not among the transfers from cache to cache or from memory")
	}
	return doubts
}
