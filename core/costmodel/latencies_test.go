package costmodel_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/pipeline"
)

// levelsOf returns a hierarchy with these latencies. The last latency is the latency of memory. 0
// means that the latency is not given.
func levelsOf(latencies ...float64) (h hierarchy.Hierarchy) {
	names := []string{"L1", "L2", "L3", "L4"}
	last := len(latencies) - 1
	for i, cycles := range latencies[:last] {
		h.Levels = append(h.Levels, hierarchy.Cache{Name: names[i], SizeBytes: 1 << (12 + i), Ways: 4, LineBytes: 64, LatencyCycles: cycles})
	}
	h.Memory.LatencyCycles = latencies[last]
	return h
}

func latenciesOf(h hierarchy.Hierarchy) (list []float64) {
	for _, c := range h.Levels {
		list = append(list, c.LatencyCycles)
	}
	return append(list, h.Memory.LatencyCycles)
}

// TestCompleteLatencies checks that missing latencies are read from the processor's description, or
// set to typical values if the description does not contain them. A warning must list these
// latencies.
func TestCompleteLatencies(t *testing.T) {
	described, err := pipeline.Read([]byte("name: toy\ndispatch: 4\nports: P0\nlevels:\n  L1: latency 5, size 1KiB\n  L2: latency 20, size 4KiB\n  memory: latency 400\nclasses:\n  load: latency 5, uops 1, ports P0\n"))
	if err != nil {
		t.Fatal(err)
	}
	clocked := levelsOf(4, 14, 50, 0)
	clocked.ClockGHz = 2.4
	for _, c := range []struct {
		h      hierarchy.Hierarchy
		p      *pipeline.Processor
		want   []float64
		names  string
		others string // levels that the warning must not list
	}{
		{levelsOf(4, 14, 50, 300), described, []float64{4, 14, 50, 300}, "", ""},
		{levelsOf(4, 14, 50, 0), described, []float64{4, 14, 50, 400}, "memory 400", "L1 L2 L3"},
		{levelsOf(0, 0, 0, 0), described, []float64{5, 20, 70, 400}, "L1 5, L2 20, L3 70, memory 400", ""},
		{levelsOf(0, 0, 0), nil, []float64{4, 14, 300}, "L1 4, L2 14, memory 300", ""},
		{levelsOf(4, 0, 50, 300), described, []float64{4, 20, 50, 300}, "L2 20", "L1 L3 memory"},
		{levelsOf(4, 0, 9, 300), described, []float64{4, 6, 9, 300}, "L2 6", ""}, // the latency of L2 is between the latencies of L1 and L3
		{levelsOf(0, 3, 20), described, []float64{0, 3, 20}, "L1 ", ""},
		{levelsOf(4, 14, 500, 0), described, []float64{4, 14, 500, 1000}, "memory 1000", ""},
		{clocked, nil, []float64{4, 14, 50, 240}, "memory 240", ""},
	} {
		h, warnings := costmodel.CompleteLatencies(c.h, c.p)
		text := ""
		for _, w := range warnings {
			text += string(w)
		}
		for i, got := range latenciesOf(h) {
			if want := c.want[i]; want > 0 && got != want {
				t.Errorf("latencies %v were completed to %v, want %v", latenciesOf(c.h), latenciesOf(h), c.want)
			}
		}
		if (text == "") != (c.names == "") || !strings.Contains(text, c.names) {
			t.Errorf("%v: warning %q, want it to contain %q", latenciesOf(c.h), text, c.names)
		}
		assumed, _, _ := strings.Cut(text, " (")
		for _, name := range strings.Fields(c.others) {
			if strings.Contains(assumed, name+" ") {
				t.Errorf("%v: warning %q contains %s, whose latency was given", latenciesOf(c.h), text, name)
			}
		}
	}
}

// TestCompleteLatenciesAscend checks that given latencies do not change, and that the completed
// latencies are in ascending order if the given latencies are.
func TestCompleteLatenciesAscend(t *testing.T) {
	p, err := pipeline.Named("sapphirerapids-measured")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		stated := make([]float64, rapid.IntRange(2, 5).Draw(t, "levels"))
		at := 1.0
		for i := range stated {
			at *= rapid.Float64Range(1.5, 9).Draw(t, "step")
			if rapid.Bool().Draw(t, "stated") {
				stated[i] = at
			}
		}
		h, _ := costmodel.CompleteLatencies(levelsOf(stated...), p)
		before := 0.0
		for i, cycles := range latenciesOf(h) {
			if cycles <= before || stated[i] > 0 && cycles != stated[i] {
				t.Fatalf("%v become %v", stated, latenciesOf(h))
			}
			before = cycles
		}
	})
}
