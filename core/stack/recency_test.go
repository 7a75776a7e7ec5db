package stack_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
)

// The results are the same whether the lists follow accesses or follow falls from the top array.
func TestBothListUpdateModes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		lines := stacktest.Random(rng, rapid.IntRange(1, 5000).Draw(t, "accesses"))
		shift := rapid.IntRange(0, 16).Draw(t, "shift")
		for i := range lines {
			lines[i] = lines[i] << shift % (1 << 61)
		}
		numbers := rapid.SampledFrom([]stack.SetNumbers{stack.AllSetNumbers, stack.MostSetNumbers, stack.SetNumbers(rapid.Uint32Range(0, uint32(stack.AllSetNumbers)).Draw(t, "some"))}).Draw(t, "numbers")
		m, twin := stack.NewSets(numbers), new(stacktest.Naive)
		if rapid.Bool().Draw(t, "few numbers") {
			m.FewNumbers()
		}
		got, want := make([]uint32, len(lines)), make([]uint32, len(lines))
		twin.Distances(lines, want)
		for at := 0; at < len(lines); {
			n := min(rapid.IntRange(1, 1500).Draw(t, "batch"), len(lines)-at)
			m.Distances(lines[at:at+n], got[at:])
			m.Stamp(rapid.Bool().Draw(t, "stamp all"))
			m.Follow(rapid.Bool().Draw(t, "follow accesses"))
			check(m)
			at += n
		}
		if !slices.Equal(m.Stack(), twin.Stack()) {
			t.Error("the stack differs from the reference implementation's")
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("access %d of %d: distance %d, want %d", i, len(lines), got[i], want[i])
			}
		}
		if *m.Depths() != *depthsForSets(numbers, stacktest.DepthsInLists(lines)) {
			t.Error("the depths differ from the reference implementation's")
		}
	})
}

// depthsForSets returns a copy that contains only the depths for one set and for the given numbers
// of sets.
func depthsForSets(numbers stack.SetNumbers, depths *stack.SetDepths) *stack.SetDepths {
	some := new(stack.SetDepths)
	for a := range depths {
		if a == 0 || numbers>>a&1 != 0 {
			some[a] = depths[a]
		}
	}
	return some
}

// The results do not depend on which lines have stamps.
func TestStampedLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		lines := stacktest.Random(rng, rapid.IntRange(1, 5000).Draw(t, "accesses"))
		m, twin := stack.NewExact(), new(stacktest.Naive)
		got, want := make([]uint32, len(lines)), make([]uint32, len(lines))
		for at := 0; at < len(lines); {
			n := min(rapid.IntRange(1, 1500).Draw(t, "batch"), len(lines)-at)
			m.Distances(lines[at:at+n], got[at:])
			twin.Distances(lines[at:at+n], want[at:])
			m.Stamp(rapid.Bool().Draw(t, "all"))
			check(m)
			at += n
			if !slices.Equal(got[:at], want[:at]) {
				t.Fatalf("the distances differ from the reference implementation's:\n%d, want\n%d", got[:at], want[:at])
			}
			if !slices.Equal(m.Stack(), twin.Stack()) {
				t.Fatalf("after %d accesses the stack differs from the reference implementation's", at)
			}
		}
	})
}

// Whenever a trace changes from a pointer chase to a small loop, or back, the lists switch to the
// other of two modes. In one mode, the lists follow accesses. In the other mode, they follow falls
// from the top array.
func TestSwitchBetweenListUpdateModes(t *testing.T) {
	m := stack.NewSets(stack.AllSetNumbers)
	var lines []trace.Line
	phase := func(accesses []trace.Line, want bool) {
		t.Helper()
		lines = append(lines, accesses...)
		m.Distances(accesses, make([]uint32, len(accesses)))
		if got := m.Stamps(); got != want {
			t.Fatalf("after %d accesses, Stamps() = %t, want %t", len(lines), got, want)
		}
	}
	loop := make([]trace.Line, 5000)
	for i := range loop {
		loop[i] = trace.Line(i % 12)
	}
	for range 3 {
		phase(Chase(5000, 20_000), true)
		phase(loop, false)
	}
	if *m.Depths() != *stacktest.DepthsInLists(lines) {
		t.Error("the depths differ from the reference implementation's")
	}
}
