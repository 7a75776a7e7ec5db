package answers_test

import (
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Every loop of a run belongs to exactly one source loop, which has the location of this loop and
// lists the inner loops of this loop. Loops without a location are never joined unless their shapes
// are equal.
func TestSourceLoops(t *testing.T) {
	leaf := func(thread, site uint32, base uint64) loops.Item {
		return loops.Leaf(loops.Reference{Kind: trace.Load, Bytes: 8, Site: site, Thread: thread}, base, 8, 8)
	}
	var items []loops.Item
	for thread := range uint32(3) {
		items = append(items, loops.Loop(10, loops.Loop(uint64(thread)+4, leaf(thread, 0, 4096))), loops.Loop(20, loops.Leaf(loops.Reference{Kind: trace.Load, Bytes: 8, Site: 1, Thread: thread}, 1<<20, 8)))
	}
	items = append(items, loops.Loop(7, loops.Leaf(loops.Reference{Kind: trace.Load, Bytes: 8, Site: 2}, 1<<21, 8)), loops.Loop(5, loops.Leaf(loops.Reference{Kind: trace.Load, Bytes: 4, Site: 2, Thread: 1}, 1<<21, 8)))
	tree, err := (&loops.Nest{Items: items}).Build()
	if err != nil {
		t.Fatal(err)
	}
	l := &answers.Loops{Outline: outline.New(tree, answers.AllNests), LineBytes: 64, Place: func(r loops.Reference) *profile.Site {
		if r.Site == 2 {
			return &profile.Site{Function: "f"} // without a line
		}
		return &profile.Site{Function: "f", File: "f.c", Line: 10 + r.Site}
	}}
	cost := func(loop int) uint64 { return l.Loops[loop].References }
	of := l.SourceLoops(cost)
	var labels []string
	for i := range of {
		labels = append(labels, l.LabelOf(&of[i]))
	}
	if want := []string{"1+", "1.1+", "2+", "7", "8"}; !slices.Equal(labels, want) {
		t.Errorf("the source loops are %q, want %q", labels, want)
	}
	members := answers.Members(of)
	slices.Sort(members)
	if len(members) != len(l.Loops) || len(slices.Compact(members)) != len(l.Loops) {
		t.Errorf("the source loops contain %d loops, want each of the %d loops once", len(members), len(l.Loops))
	}
	if n := l.ReferencesOf(&of[0]); n != 10*(4+5+6) {
		t.Errorf("the first source loop has %d references, want 150", n)
	}
	t1 := l.Table(of)
	for key, want := range map[string]string{"threads": "3", "loops": "3", "runs": "30", "least_trips": "4", "most_trips": "6", "own_references": "150"} {
		if got := t1.Rows[1][t1.Index(key)].Plain(); got != want {
			t.Errorf("column %s = %s, want %s", key, got, want)
		}
	}
	// Nests are ranked by cost.
	of = l.SourceLoops(func(loop int) uint64 { return uint64(loop) })
	if label := l.LabelOf(&of[0]); label != "2+" {
		t.Errorf("unexpected first source loop: %s", label)
	}
}
