package state

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
)

// Tab is a view of a result.
type Tab uint8

// The tabs of a result.
const (
	TabDiagnosis Tab = iota
	TabLocality
	TabCaches
	TabAssociativity
	TabCode
	TabCalls
	TabThreads
	TabCommunication
	TabLoops
	TabBlocks
	TabCounters
	TabFootprint
	TabData
	numTabs
)

// tabs contains the name of each tab, its slug in the URL, and a function that returns the reason
// why the tab has nothing to show for a profile, or "".
var tabs = [numTabs]struct {
	name, slug string
	missing    func(*profile.Profile) string
}{
	TabDiagnosis:     {"Diagnosis", "diagnosis", nothingMissing},
	TabLocality:      {"Locality", "locality", nothingMissing},
	TabCaches:        {"Caches", "caches", nothingMissing},
	TabAssociativity: {"Associativity", "associativity", missingSets},
	TabCode:          {"Code", "code", missingSites},
	TabCalls:         {"Calls", "calls", missingCalls},
	TabThreads:       {"Threads", "threads", missingThreads},
	TabCommunication: {"Communication", "communication", missingCommunication},
	TabLoops:         {"Loops", "loops", missingLoops},
	TabBlocks:        {"Blocks and runtime", "blocks", missingBlocks},
	TabCounters:      {"Counters", "counters", missingInstructions},
	TabFootprint:     {"Footprint", "footprint", missingFootprint},
	TabData:          {"Data", "data", missingData},
}

// TabGroup is a group of views on one subject. The digit key with the group's position in
// TabGroups opens the group.
type TabGroup struct {
	Name string
	Tabs []Tab
}

// TabGroups lists the groups of all tabs, in the order in which they appear on the page.
func TabGroups() []TabGroup {
	return []TabGroup{
		{"Diagnosis", []Tab{TabDiagnosis}},
		{"Code", []Tab{TabCode, TabCalls, TabLoops}},
		{"Memory", []Tab{TabCaches, TabLocality, TabAssociativity, TabFootprint}},
		{"Threads", []Tab{TabThreads, TabCommunication}},
		{"Compute", []Tab{TabBlocks, TabCounters}},
		{"Data", []Tab{TabData}},
	}
}

// Group returns the index of the tab's group.
func (t Tab) Group() int {
	return slices.IndexFunc(TabGroups(), func(g TabGroup) bool { return slices.Contains(g.Tabs, t) })
}

func nothingMissing(*profile.Profile) string { return "" }

// Tabs returns all tabs.
func Tabs() []Tab {
	list := make([]Tab, numTabs)
	for i := range list {
		list[i] = Tab(i)
	}
	return list
}

// Name returns the tab's title.
func (t Tab) Name() string { return tabs[t].name }

// Slug returns the tab's name in the URL.
func (t Tab) Slug() string { return tabs[t].slug }

// Missing explains why the tab has nothing to show for a profile. Missing returns "" if there is
// something to show, or if the profile is nil because it does not exist yet.
func (t Tab) Missing(p *profile.Profile) string {
	if p == nil {
		return ""
	}
	return tabs[t].missing(p)
}

// TabOf returns the tab with a slug, or the first tab if the slug is unknown.
func TabOf(slug string) Tab {
	for i := range tabs {
		if tabs[i].slug == slug {
			return Tab(i)
		}
	}
	return TabDiagnosis
}
