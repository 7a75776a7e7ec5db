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

func TestCoherent(t *testing.T) { RunCoherent(t) }

// The function few returns random events on a small number of lines. The lines map to few or many
// sets.
func few(t *rapid.T) (events []stacktest.Event) {
	lines := rapid.IntRange(1, 40).Draw(t, "lines")
	stride := trace.Line(1) << rapid.IntRange(0, 6).Draw(t, "stride")
	op := rapid.SampledFrom([]stack.Op{stack.AccessOp, stack.AccessOp, stack.AccessOp, stack.LoseOp, stack.AskOp})
	line := rapid.IntRange(0, lines-1)
	for range rapid.IntRange(0, 200).Draw(t, "events") {
		events = append(events, stacktest.Event{Op: op.Draw(t, "op"), Line: trace.Line(line.Draw(t, "line")) * stride})
	}
	return events
}

func TestCoherentEqualsCaches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { EqualCaches(t, few(t)) })
}

func TestCoherentEqualsLinearLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := few(t)
		cut := rapid.IntRange(0, len(events)).Draw(t, "cut")
		EqualCoherent(t, rapid.SampledFrom(chosen).Draw(t, "numbers"), events, []int{cut, len(events) - cut})
	})
}

func TestRestoreCoherentModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := few(t)
		EqualRestored(t, rapid.SampledFrom(chosen).Draw(t, "numbers"), events, rapid.IntRange(0, len(events)).Draw(t, "cut"))
	})
}

func TestCoherentAllocatesNothing(t *testing.T) {
	events := RandomEvents(rand.New(rand.NewPCG(3, 1)), 3000, 10)
	m, n := stack.NewCoherent(stack.AllSetNumbers), len(events)
	ops, lines, out, lost := make([]stack.Op, n), make([]trace.Line, n), make([]uint32, n), make([]uint32, n)
	for i, e := range events {
		ops[i], lines[i] = e.Op, e.Line
	}
	Do(m, ops, lines, out, lost)
	if n := testing.AllocsPerRun(100, func() { Do(m, ops, lines, out, lost) }); n != 0 {
		t.Errorf("%.1f allocations per batch, want none", n)
	}
}

// FuzzCoherentState lets the fuzzer choose a state. A model must either reject the state, or accept
// it and process further events.
func FuzzCoherentState(f *testing.F) {
	for seed := range uint64(4) {
		m := stack.NewCoherent(stack.AllSetNumbers)
		var a Answers
		a.Run(m, RandomEvents(rand.New(rand.NewPCG(seed, 1)), 300, 5), []int{300})
		f.Add(m.State())
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		m := stack.NewCoherent(stack.AllSetNumbers)
		if m.Restore(state) != nil {
			return
		}
		again := stack.NewCoherent(stack.AllSetNumbers)
		if err := again.Restore(m.State()); err != nil {
			t.Fatal(err)
		}
		var a, b Answers
		events := RandomEvents(rand.New(rand.NewPCG(1, 1)), 300, 5)
		a.Run(m, events, []int{len(events)})
		b.Run(again, events, []int{len(events)})
		if !slices.Equal(a.Out, b.Out) || *a.Depths != *b.Depths {
			t.Error("a model differs from the model that was restored from its state")
		}
	})
}
