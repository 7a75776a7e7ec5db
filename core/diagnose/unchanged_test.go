package diagnose

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// drawRun returns a run of one thread with a few nests. Each site is in one nest.
func drawRun(t *rapid.T) *run {
	p := &profile.Profile{Totals: profile.Totals{}, Sites: &profile.Sites{LineBytes: 64}}
	var n loops.Nest
	for range rapid.IntRange(1, 4).Draw(t, "nests") {
		var body []loops.Item
		outer, inner := rapid.Uint64Range(1, 8).Draw(t, "outer"), rapid.Uint64Range(1, 300).Draw(t, "inner")
		for range rapid.IntRange(1, 3).Draw(t, "references") {
			site := uint32(len(p.Sites.Code))
			step := rapid.SampledFrom([]int64{0, 8, 64, 4096, 8192, 1 << 16, -24}).Draw(t, "step")
			addr := 1<<30 + 8*rapid.Uint64Range(0, 1<<16).Draw(t, "address")
			body = append(body, loops.Leaf(loops.Reference{Site: site, Kind: trace.Load, Bytes: 8}, addr, rapid.SampledFrom([]int64{0, 64, 1 << 18}).Draw(t, "outer step"), step))
			s := profile.Site{Number: site, Kind: trace.Load, Bytes: 8}
			s.Strides[profile.ConstantStride] = outer * inner
			p.Sites.Code = append(p.Sites.Code, s)
		}
		n.Items = append(n.Items, loops.Loop(outer, loops.Loop(inner, body...)))
	}
	tree, err := n.Build()
	if err != nil {
		t.Fatal(err)
	}
	p.Loops = tree.Append(nil)
	l, err := answers.NewLoops(p, mostNests)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{p: p, loops: l, out: &Diagnosis{}, hashed: make([]bool, 2)}
	r.GoOn = func() bool { return true }
	r.Machine = hierarchy.Hierarchy{Levels: []hierarchy.Cache{
		{Name: "L1", SizeBytes: 16 << 10, Ways: 4, LineBytes: 64}, {Name: "L2", SizeBytes: 96 << 10, Ways: 12, LineBytes: 64}}}
	r.cost = &costs{latency: []float64{10, 100}, run: measure{overlap: slices.Repeat([]float64{1}, len(p.Sites.Code))}}
	return r
}

// TestCountingEqualsReplaying compares counting in the loops with replaying the trace. Both methods
// must yield the same misses and address translations for each site, and the same accesses and
// misses for each loop.
func TestCountingEqualsReplaying(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counted := drawRun(t)
		costs := *counted.cost
		replayed := &run{Options: counted.Options, p: counted.p, loops: counted.loops, out: counted.out, hashed: counted.hashed, cost: &costs}
		counted.count(translations[0].level(), translations[1].level())
		counted.takeTranslations()
		of := replayed.again(nil, nil, pageShift, true)
		if of == nil || counted.cost.overheads == nil {
			t.Fatal("the run was not replayed, or its translations were not counted")
		}
		replayed.cost.replay = of
		for k, want := range replayed.exactMisses() {
			if got := counted.exactMisses()[k]; !slices.Equal(got, want) {
				t.Errorf("misses in level %d: %v counted, %v replayed", k+1, got, want)
			}
		}
		got, want := counted.cost.overheads, of.overheads()
		for i := range want.split {
			if got.walks[i] != want.walks[i] || got.split[i] != want.split[i] || got.second[i]+got.walks[i] != want.second[i]+want.walks[i] {
				t.Errorf("site %d: counted %v translations, %v walks and %v splits, replayed %v, %v and %v", i, got.second[i], got.walks[i], got.split[i], want.second[i], want.walks[i], want.split[i])
			}
		}
		for k, want := range replayed.inLoops() {
			for loop, got := range counted.inLoops()[k] {
				if near := func(a, b float64) bool { return magnitude(int64(a-b)) == 0 }; !near(got.accesses, want[loop].accesses) || !near(got.misses, want[loop].misses) {
					t.Errorf("loop %d in level %d: counted %v, replayed %v", loop, k+1, got, want[loop])
				}
			}
		}
	})
}
