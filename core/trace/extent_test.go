package trace

import (
	"slices"
	"testing"
)

// TestExtentFacts checks that the facts about an extent describe the same extent, that whole threads
// have no such facts, and that other facts and invalid numbers are ignored.
func TestExtentFacts(t *testing.T) {
	others := []Fact{{"tool", "test"}, {"limit of references", "7"}}
	for _, e := range []Extent{{}, {After: 1}, {For: 1<<64 - 1}, {After: 20000, For: 30000}} {
		facts := e.Facts()
		if got := ExtentOf(slices.Concat(others, facts, others)); got != e {
			t.Errorf("the facts %v describe %+v, want %+v", facts, got, e)
		}
		if (len(facts) == 0) != (e == Extent{}) {
			t.Errorf("%+v has the facts %v", e, facts)
		}
	}
	if got := ExtentOf([]Fact{{afterFact, "many"}, {forFact, "-1"}}); got != (Extent{}) {
		t.Errorf("invalid numbers describe %+v, want whole threads", got)
	}
	for _, h := range []Header{{}, {Extent: Extent{After: 3}}} {
		if h.Join(Header{Extent: Extent{After: 3}}); h.Extent.After != 3 {
			t.Errorf("the joined header has the extent %+v", h.Extent)
		}
	}
}
