package state

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
)

// Tab is a view of a result.
type Tab uint8

// The tabs.
const (
	TabDiagnosis Tab = iota
	TabLocality
	TabCaches
	TabAssociativity
	TabCode
	TabThreads
	TabCommunication
	TabLoops
	TabBlocks
	TabCounters
	TabFootprint
	numTabs
)

// tabs contains, for each tab, its name, its slug in the URL, and why it has nothing to show for a
// profile: "" if it has. alone says that it cannot show two runs.
var tabs = [numTabs]struct {
	name, slug string
	missing    func(*profile.Profile) string
	alone      string
}{
	TabDiagnosis:     {"Diagnosis", "diagnosis", nothingMissing, ""},
	TabLocality:      {"Locality", "locality", nothingMissing, ""},
	TabCaches:        {"Caches", "caches", nothingMissing, ""},
	TabAssociativity: {"Associativity", "associativity", missingSets, "Maps of sets and ways cannot be compared yet: look at A alone and at B alone. The Caches view compares any one of these caches."},
	TabCode:          {"Code", "code", missingSites, ""},
	TabThreads:       {"Threads", "threads", missingThreads, ""},
	TabCommunication: {"Communication", "communication", missingCommunication, ""},
	TabLoops:         {"Loops", "loops", missingLoops, "Loops of two runs cannot be compared yet: look at A alone and at B alone."},
	TabBlocks:        {"Blocks and runtime", "blocks", missingBlocks, ""},
	TabCounters:      {"Counters", "counters", missingInstructions, ""},
	TabFootprint:     {"Footprint", "footprint", missingFootprint, "Footprints of two runs cannot be compared here yet: look at A alone and at B alone, or run “stackglass compare A B --on footprint”."},
}

// TabGroup is the views of one subject. Its number key is its place.
type TabGroup struct {
	Name string
	Tabs []Tab
}

// TabGroups lists all tabs, in the order of the page.
func TabGroups() []TabGroup {
	return []TabGroup{
		{"Diagnosis", []Tab{TabDiagnosis}},
		{"Code", []Tab{TabCode, TabLoops}},
		{"Memory", []Tab{TabCaches, TabLocality, TabAssociativity, TabFootprint}},
		{"Threads", []Tab{TabThreads, TabCommunication}},
		{"Compute", []Tab{TabBlocks, TabCounters}},
	}
}

// Group returns the index of the tab's group.
func (t Tab) Group() int {
	return slices.IndexFunc(TabGroups(), func(g TabGroup) bool { return slices.Contains(g.Tabs, t) })
}

func nothingMissing(*profile.Profile) string { return "" }

// Tabs lists them all.
func Tabs() []Tab {
	list := make([]Tab, numTabs)
	for i := range list {
		list[i] = Tab(i)
	}
	return list
}

// Name returns the tab's title.
func (t Tab) Name() string { return tabs[t].name }

// Slug names the tab in the URL.
func (t Tab) Slug() string { return tabs[t].slug }

// Alone says that the tab shows one run only; "" if it compares two.
func (t Tab) Alone() string { return tabs[t].alone }

// Missing says why the tab has nothing to show for a profile; "" if it has, and while
// the profile is nil: not there yet.
func (t Tab) Missing(p *profile.Profile) string {
	if p == nil {
		return ""
	}
	return tabs[t].missing(p)
}

// TabOf returns the tab with a slug; the first tab for an unknown slug.
func TabOf(slug string) Tab {
	for i := range tabs {
		if tabs[i].slug == slug {
			return Tab(i)
		}
	}
	return TabDiagnosis
}
