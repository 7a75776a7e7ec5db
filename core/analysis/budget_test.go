package analysis_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// If the lines of a run do not fit in memory, the profile is byte-identical to the profile of a run
// with enough memory, even if an intermediate profile is requested.
func TestBudget(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		whole := randomTrace(rng, 1+rng.IntN(9000))
		spec := analysis.Spec{Kinds: trace.AllKinds, LineBytes: [][]uint32{{64}, {32, 128}, {16}}[seed%3], Analyses: analysis.Locality}
		if seed%2 == 0 {
			spec.Analyses = analysis.Sets | analysis.Counters
		}
		rows := 1 + rng.IntN(500)
		want := run(t, spec, tracetest.NewReader(whole, rows))

		shelf := new(stacktest.Shelf)
		spec.Budget = &locality.Budget{Lines: 1 + rng.IntN(300), Shelf: shelf}
		runner, err := analysis.NewRunner(spec, tracetest.NewReader(whole, rows))
		if err != nil {
			t.Fatal(err)
		}
		for rng.IntN(4) != 0 {
			_ = runner.Step()
		}
		checked(t, runner.Profile(profile.State{}))
		finish(t, runner)
		if got := checked(t, runner.Finish(profile.State{})); !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: a budget of %d lines changes the profile", seed, spec.Budget.Lines)
		}
	}
}

// A saved run can continue from its last two states, even though the spill store has changed since
// the earlier state was saved.
func TestBudgetRestore(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 8))
		whole := randomTrace(rng, 1+rng.IntN(9000))
		spec := analysis.Spec{Kinds: trace.AllKinds, LineBytes: [][]uint32{{64}, {32, 128}}[seed%2], Analyses: analysis.Sets}
		rows := 1 + rng.IntN(500)
		want := run(t, spec, tracetest.NewReader(whole, rows))

		spec.Budget = &locality.Budget{Lines: 1 + rng.IntN(300), Shelf: new(stacktest.Shelf)}
		var saved [2][]byte // the last two states, older state first
		for lives := 0; ; lives++ {
			runner, err := analysis.NewRunner(spec, tracetest.NewReader(whole, rows))
			if err != nil {
				t.Fatal(err)
			}
			if from := saved[rng.IntN(2)]; from != nil {
				if err := runner.Restore(from); err != nil {
					t.Fatalf("seed %d, after %d interruptions: %v", seed, lives, err)
				}
				saved = [2][]byte{nil, from}
			}
			for err == nil && (lives > 20 || rng.IntN(30) != 0) {
				if err = runner.Step(); err == nil && rng.IntN(8) == 0 {
					saved = [2][]byte{saved[1], runner.Save()}
				}
			}
			if err == nil {
				continue // the run is interrupted
			}
			if err != io.EOF {
				t.Fatal(err)
			}
			if got := checked(t, runner.Finish(profile.State{})); !bytes.Equal(got.Encode(), want.Encode()) {
				t.Fatalf("seed %d: after %d interruptions, the profile differs from the profile of an uninterrupted run", seed, lives+1)
			}
			break
		}
	}
}

// If the spill store fails, the run ends, and its profile is marked as incomplete.
func TestBudgetFailure(t *testing.T) {
	whole := randomTrace(rand.New(rand.NewPCG(3, 7)), 6000)
	for fails := 1; ; fails++ {
		shelf := &stacktest.Shelf{Fails: fails}
		spec := analysis.Spec{Kinds: trace.AllKinds, Budget: &locality.Budget{Lines: 50, Shelf: shelf}}
		runner, err := analysis.NewRunner(spec, tracetest.NewReader(whole, 200))
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			err = runner.Step()
		}
		p := checked(t, runner.Finish(profile.State{}))
		if shelf.Calls() < fails {
			if fails < 20 || p.State.Partial {
				t.Fatalf("the run made %d calls to the spill store and ended in state %v", shelf.Calls(), p.State)
			}
			return
		}
		if !errors.Is(err, stacktest.ErrShelf) {
			t.Fatalf("if call %d to the spill store fails, the run ends with %v", fails, err)
		}
		if !p.State.Partial || !strings.Contains(p.State.Reason, stacktest.ErrShelf.Error()) {
			t.Fatalf("if call %d to the spill store fails, the profile has the state %+v", fails, p.State)
		}
	}
}

func TestBudgetErrors(t *testing.T) {
	for name, spec := range map[string]analysis.Spec{
		"mergeable":   {Mergeable: true},
		"sites":       {Analyses: analysis.Sites},
		"sharing":     {Analyses: analysis.Sharing},
		"utilisation": {Utilisation: []uint64{4096}},
	} {
		spec.Budget = &locality.Budget{Shelf: new(stacktest.Shelf)}
		var option *trace.OptionError
		if _, err := analysis.NewRunner(spec, tracetest.NewReader(new(trace.Batch), 1)); !errors.As(err, &option) || option.Option != "spill" {
			t.Errorf("%s: %v, want a different error", name, err)
		}
	}
}
