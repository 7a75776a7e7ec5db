package state

import (
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
)

// Tab is a view of a result.
type Tab uint8

// The tabs, in the order of their number keys.
const (
	TabOverview Tab = iota
	TabLocality
	TabCaches
	TabAssociativity
	TabCode
	TabThreads
	TabCommunication
	TabLoops
	TabBlocks
	TabCounters
	numTabs
)

// Tabs lists them all.
func Tabs() []Tab {
	list := make([]Tab, numTabs)
	for i := range list {
		list[i] = Tab(i)
	}
	return list
}

var tabs = [numTabs]struct{ name, slug, missing string }{
	TabOverview: {"Overview", "overview", ""},
	TabLocality: {"Locality", "locality", ""},
	TabCaches:   {"Caches", "caches", ""},
	TabAssociativity: {"Associativity", "associativity",
		"This profile has no table of sets: it was made by an earlier version, or without “sets” among its analyses. Analyse its trace again. The Caches view models sets with SDCM meanwhile."},
	TabCode: {"Code", "code",
		"This trace does not tell which code made its references. A program compiled with “stackglass cc” does, and so do programs run by “stackglass trace”, " +
			"and traces of other tools with instruction addresses: drop one here. Profiles that were made before sites were counted have none either: analyse their trace again."},
	TabThreads: {"Threads", "threads",
		"This trace tells of one thread only, or does not say which thread made a reference, so there is nobody to share with. Overview, Caches and Code say all there is. " +
			"A program with threads that is compiled with “stackglass cc” tells them, and so do gem5, drmemtrace and csv traces with a column for it: drop one here, or try the demos with several threads."},
	TabCommunication: {"Communication", "communication",
		"This trace tells of one thread only, or does not say which thread made a reference, so nothing goes from one to another. " +
			"A program with threads that is compiled with “stackglass cc” tells them, and so do gem5, drmemtrace and csv traces with a column for it: drop one here, or try the demos with several threads."},
	TabLoops: {"Loops", "loops",
		"This analysis did not fold its trace into loops: that is done where it is asked for. Analyse the trace again with “Fold loops” in the settings, " +
			"or with “stackglass analyze --analyses loops -o file.sgp”, and drop that file here."},
	TabBlocks: {"Blocks and runtime", "blocks",
		"This analysis does not tell how often each block of the program ran: its trace tells of no blocks, or it was made without “blocks” among its analyses. A program compiled with “stackglass cc” tells them: drop its .sgt trace here. " +
			"Or drop a module of LLVM IR (.ll, from “clang -S -emit-llvm”): its branches can be set by hand, without any run."},
	TabCounters: {"Counters", "counters",
		"This trace tells no instructions, so operations and branches cannot be counted. A program compiled with “stackglass cc” tells them: drop its .sgt trace here. " +
			"For any other trace, “Count each byte's accesses” in the settings gives its loads and stores by size, its unique bytes and its memory usage. References by kind are in the Overview."},
}

// Name is the tab's title.
func (t Tab) Name() string { return tabs[t].name }

// Slug names the tab in the URL.
func (t Tab) Slug() string { return tabs[t].slug }

// Key is its number key.
func (t Tab) Key() string { return string(rune('0' + (t+1)%10)) }

// Missing says why the tab is empty for a profile, nil while it is not there
// yet; "" where it is not.
func (t Tab) Missing(p *profile.Profile) string {
	if t == TabThreads && (p == nil || len(p.Sharing) > 0 || Predictable(p)) {
		return ""
	}
	if t == TabCommunication && (p == nil || p.Communication != nil) {
		return ""
	}
	if t == TabCommunication && len(p.Totals.Threads) > 1 {
		return "Which thread uses what another thread wrote is missing in this analysis: " + answers.NoCommunication(p) + ". Analyse the trace again with communication, " +
			"or run “stackglass analyze --analyses sharing,communication -o file.sgp” and drop that file here."
	}
	if t == TabLoops && (p == nil || len(p.Loops) > 0) {
		return ""
	}
	if t == TabLoops && p.Loops != nil {
		return "The trace does not fold: its tree of loops grew beyond the memory that it may take, and was given up. What hangs on data, as in sparse matrices, hash tables and lists, is long in loops. " +
			"Fold a part of the trace: “stackglass loops --limit 10000000” takes its first ten million references."
	}
	if t == TabThreads && len(p.Totals.Threads) > 1 {
		return "This analysis has one stack for all " + Plural(uint64(len(p.Totals.Threads)), "thread", "threads") +
			" of the trace: it was made before stacks were kept by thread, or without “sharing” among its analyses, or its lines did not fit in memory. Analyse the trace again, with more memory in the settings or of a sample (space=0.01)."
	}
	if p != nil && t == TabCode && p.Sites == nil && p.Input.Header.Sites {
		return "This trace tells which code made its references, but this analysis does not: its lines did not fit in memory, or it was made without “sites” among its analyses. " +
			"Analyse the trace again, with more memory in the settings or of a sample (space=0.01)."
	}
	if t == TabCounters && (p == nil || p.Counters != nil) || t == TabCode && (p == nil || p.Sites != nil) ||
		t == TabAssociativity && (p == nil || hasSets(p)) || t == TabBlocks && (p == nil || len(p.Blocks) > 0) {
		return ""
	}
	return tabs[t].missing
}

// hasSets tells whether a profile has a table of sets for each line size.
func hasSets(p *profile.Profile) bool {
	for i := range p.Locality {
		if p.Locality[i].Sets == nil {
			return false
		}
	}
	return len(p.Locality) > 0
}

// TabOf is the tab of a slug; the first one of a slug that is none.
func TabOf(slug string) Tab {
	for i := range tabs {
		if tabs[i].slug == slug {
			return Tab(i)
		}
	}
	return TabOverview
}
