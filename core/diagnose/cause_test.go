package diagnose

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// TestReasonForIrregularAccesses checks that a finding says that the data is larger than a cache
// only if the code accesses the data again.
func TestReasonForIrregularAccesses(t *testing.T) {
	r := &run{Options: Options{Machine: hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1"}, {Name: "L2"}}}}}
	if got := r.irregularReason(&place{level: 1, wait: 100, never: 10}); !strings.Contains(got, "larger than L2") {
		t.Errorf("irregularReason = %q, want it to say that the data is larger than L2", got)
	}
	if got := r.irregularReason(&place{level: 1, wait: 100, never: 95}); !strings.Contains(got, "for the first time") {
		t.Errorf("irregularReason = %q, want it to say that the lines are accessed for the first time", got)
	}
	r.p = &profile.Profile{Sites: &profile.Sites{Code: make([]profile.Site, 2)}}
	r.p.Sites.Code[0].Strides[profile.IrregularStride], r.p.Sites.Code[1].Strides[profile.UnitStride] = 9, 9
	r.cost = &costs{site: [][]float64{{40, 10}, {0, 90}}, run: measure{misses: [][]float64{{9, 9}, {9, 9}}}}
	if got := r.irregularReason(&place{sites: []int{0, 1}, level: 1, wait: 140, never: 90}); !strings.Contains(got, "larger than L1") {
		t.Errorf("irregularReason = %q, want it to name L1, in which the irregular references miss", got)
	}
}

// TestFillsAndCopies checks that a finding about code that fills memory does not say that the code
// copies memory.
func TestFillsAndCopies(t *testing.T) {
	for reads, want := range map[bool]string{false: "fill less memory", true: "copy less"} {
		if got := (&place{reads: reads}).fewerBytes(); !strings.HasPrefix(got, want) {
			t.Errorf("fewerBytes = %q, want %q", got, want)
		}
	}
}

// TestReasonsWhyNoChangeWasTried checks both reasons for which no change is tried: the references
// do not compress, or the profile has no loops.
func TestReasonsWhyNoChangeWasTried(t *testing.T) {
	for want, loops := range map[string][]byte{"do not compress": {}, "contains no loops": nil} {
		r := &run{p: &profile.Profile{Loops: loops}}
		if got := r.untriedHow(); !strings.Contains(got, want) {
			t.Errorf("untriedHow = %q, want %q", got, want)
		}
	}
}

// TestArrayOfNumbersWithIrregularIndices checks that an array of numbers that is accessed at
// irregular indices is not mistaken for an array of structures.
func TestArrayOfNumbersWithIrregularIndices(t *testing.T) {
	for name, c := range map[string]struct {
		stride    profile.Stride
		structure uint32
		grain     uint64
		want      bool
	}{
		"numbers at irregular indices":    {profile.IrregularStride, 0, 4, true},
		"structures at irregular indices": {profile.IrregularStride, 1, 24, false},
		"elements larger than an access":  {profile.IrregularStride, 0, 24, false},
		"a column of a table of numbers":  {profile.ConstantStride, 0, 4, false},
	} {
		p := &profile.Profile{Sites: &profile.Sites{LineBytes: 64, Code: make([]profile.Site, 2)}}
		stored := &p.Sites.Code[0] // the stores are in order, and use every byte
		stored.Strides[profile.ConstantStride] = 1000
		stored.Reuse.Used = []profile.Utilisation{{Fetched: 100, BytesUsed: 6400}}
		loaded := &p.Sites.Code[1]
		loaded.Number, loaded.Bytes = 1, 4
		loaded.Strides[c.stride] = 1000
		loaded.Reuse.Used = []profile.Utilisation{{Fetched: 900, BytesUsed: 900 * 4}}
		r := &run{p: p, cost: &costs{program: &trace.Program{Sites: []trace.Site{{}, {Structure: c.structure}}}, replay: &counts{sites: []siteCounts{{}, {grain: c.grain}}}}}
		if got := r.scattersScalars(&place{sites: []int{0, 1}}); got != c.want {
			t.Errorf("%s: scattersScalars = %t, want %t", name, got, c.want)
		}
	}
}

// TestMissesOnEvictedLines checks that two kinds of misses do not count as misses on evicted lines:
// each core's first accesses, and accesses to lines that another core has invalidated.
func TestMissesOnEvictedLines(t *testing.T) {
	for name, c := range map[string]struct {
		private, all uint64  // number of first accesses, counted for each core (private) and for all cores together (all)
		invalidated  float64 // share of the misses in L1
		cycles       float64
		level        int
	}{
		"first accesses":                   {100, 40, 0, 0, 0},
		"invalidated lines":                {40, 40, 60, 0, 0},
		"lines that L1 evicts":             {40, 40, 0, 600, 0},
		"lines that the last level evicts": {60, 0, 40, 400, 1},
	} {
		p := &profile.Profile{Sites: &profile.Sites{Code: []profile.Site{{Reuse: profile.Reuse{Cold: c.all}}}, Coherent: &profile.CoherentSites{Code: []profile.CoherentReuse{{Cold: c.private}}}}}
		r := &run{p: p, cost: &costs{levels: make([]attribution.Attribution, 2), site: [][]float64{{600, 400}}, run: measure{misses: [][]float64{{100}, {40}}, coherence: [][]float64{{c.invalidated}, nil}}}}
		r.Machine.Levels = []hierarchy.Cache{{Name: "L1", SharedBy: 1}, {Name: "L3", SharedBy: 8}}
		if cycles, level := r.evicted(&place{sites: []int{0}}); cycles != c.cycles || level != c.level {
			t.Errorf("%s: evicted = %v cycles, level %d; want %v cycles, level %d", name, cycles, level, c.cycles, c.level)
		}
	}
}

// TestHiddenMisses checks that a finding counts the misses that a prefetcher covers only at sites whose
// addresses are irregular. The cost of sites with constant strides does not depend on prefetchers.
func TestHiddenMisses(t *testing.T) {
	r := &run{cost: &costs{run: measure{misses: [][]float64{{300, 100, 0}, {7, 7, 7}}}, covered: []float64{0.5, 1, 1}}}
	for _, c := range []struct {
		scattered []bool
		sites     []int
		want      float64
	}{
		{[]bool{true, true, true}, []int{0, 1}, 250. / 400},
		{[]bool{true, false, true}, []int{0, 1}, 150. / 400},
		{[]bool{false, false, false}, []int{0, 1}, 0},
		{[]bool{true, true, true}, []int{2}, 0},
	} {
		r.cost.run.scattered = c.scattered
		if got := r.hidden(&place{sites: c.sites}); got != c.want {
			t.Errorf("sites %v, irregular %v: a prefetcher hides a share of %v, want %v", c.sites, c.scattered, got, c.want)
		}
	}
}
