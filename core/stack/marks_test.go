package stack_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
)

// Marked accesses are counted separately. Marks do not change other results.
func TestMarkedDepths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		lines := stacktest.Random(rng, rapid.IntRange(1, 3000).Draw(t, "accesses"))
		shift := rapid.IntRange(0, 16).Draw(t, "shift")
		marked := make([]bool, len(lines))
		run, often := rapid.IntRange(1, 600).Draw(t, "run"), rapid.IntRange(2, 20).Draw(t, "often")
		for i := range lines {
			lines[i] = lines[i] << shift % (1 << 61)
			marked[i] = i/run%often == 0
		}
		numbers := rapid.SampledFrom([]stack.SetNumbers{stack.AllSetNumbers, stack.MostSetNumbers}).Draw(t, "numbers")
		m := stack.NewSets(numbers)
		if rapid.Bool().Draw(t, "few numbers") {
			m.FewNumbers()
		}
		out := make([]uint32, len(lines))
		for at := 0; at < len(lines); {
			n := min(rapid.IntRange(1, 1500).Draw(t, "batch"), len(lines)-at)
			if rapid.Bool().Draw(t, "marks") {
				m.DistancesMarked(lines[at:at+n], marked[at:at+n], out[at:])
			} else {
				m.Distances(lines[at:at+n], out[at:])
				clear(marked[at : at+n])
			}
			m.Stamp(rapid.Bool().Draw(t, "stamp all"))
			m.Follow(rapid.Bool().Draw(t, "follow accesses"))
			check(m)
			at += n
		}
		want := make([]uint32, len(lines))
		new(stacktest.Naive).Distances(lines, want)
		for i := range want {
			if out[i] != want[i] {
				t.Fatalf("access %d: distance %d, want %d", i, out[i], want[i])
			}
		}
		if *m.Depths() != *depthsForSets(numbers, stacktest.DepthsInLists(lines)) {
			t.Error("the depths differ from the reference implementation's")
		}
		if *m.MarkedDepths() != *depthsForSets(numbers, stacktest.MarkedDepths(lines, marked)) {
			t.Error("the depths of marked accesses differ from the reference implementation's")
		}
	})
}
