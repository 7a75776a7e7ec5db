package state

import "github.com/stackglass/stackglass/core/profile"

// Tab is a view of a result: its place in the row of tabs.
type Tab uint8

// The tabs, in the order of their number keys.
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

// tabs says for each tab what it is called, what the URL calls it, and why it has
// nothing to show for a profile: "" where it has. alone says that it cannot show two runs.
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

func nothingMissing(*profile.Profile) string { return "" }

// Tabs lists them all.
func Tabs() []Tab {
	list := make([]Tab, numTabs)
	for i := range list {
		list[i] = Tab(i)
	}
	return list
}

// Name is the tab's title.
func (t Tab) Name() string { return tabs[t].name }

// Slug names the tab in the URL.
func (t Tab) Slug() string { return tabs[t].slug }

// Key is its number key; "" behind the tenth.
func (t Tab) Key() string {
	if t >= 10 {
		return ""
	}
	return string(rune('0' + (t+1)%10))
}

// Alone says in a sentence that the tab shows one run only; "" where it compares two.
func (t Tab) Alone() string { return tabs[t].alone }

// Missing says why the tab has nothing to show for a profile; "" where it has, and while
// the profile is nil: not there yet.
func (t Tab) Missing(p *profile.Profile) string {
	if p == nil {
		return ""
	}
	return tabs[t].missing(p)
}

// TabOf is the tab of a slug; the first one of a slug that is none.
func TabOf(slug string) Tab {
	for i := range tabs {
		if tabs[i].slug == slug {
			return Tab(i)
		}
	}
	return TabDiagnosis
}
