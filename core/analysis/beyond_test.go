package analysis_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// spills contains specs of runs that begin in memory and may spill later.
var spills = []analysis.Spec{
	{}, {LineBytes: []uint32{32, 128}, Utilisation: []uint64{4096}, Previous: true}, {Analyses: analysis.Locality},
	{Analyses: analysis.Sites | analysis.Counters}, {Analyses: analysis.Sharing, Cores: [][]uint32{{0, 1}}}, {Kinds: trace.AllKinds, Limit: 2000},
}

// A run may start to spill at any step. The profile is then byte-identical to the profile of a run
// that spills from the start, even if the run is saved and restored.
func TestSpill(t *testing.T) {
	p := allocatingProgram()
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 9))
		whole := tracetest.Rows(p, allocatingSteps(rng, p, 1+rng.IntN(6000))...)
		spec, rows, lines := spills[seed%uint64(len(spills))], 1+rng.IntN(500), 1+rng.IntN(300)
		reader := func() trace.Reader { return tracetest.NewProgramReader(p, whole, rows) }
		want := run(t, spec.Beyond(locality.Budget{Lines: lines, Shelf: new(stacktest.Shelf)}), reader())

		budget := locality.Budget{Lines: lines, Shelf: new(stacktest.Shelf)}
		runner, err := analysis.NewRunner(spec, reader())
		if err != nil {
			t.Fatal(err)
		}
		for err == nil && rng.IntN(8) != 0 {
			err = runner.Step()
		}
		now, ok := runner.Spill(budget)
		if _, again := runner.Spill(budget); !ok || again {
			t.Fatalf("seed %d: the first call of Spill returned %t, and the second call %t; want true and false", seed, ok, again)
		}
		for lives := 0; err != io.EOF; lives++ {
			if err = runner.Step(); err != nil || rng.IntN(6) != 0 || lives > 20 {
				continue
			}
			state := runner.Save()
			if runner, err = analysis.NewRunner(now, reader()); err != nil {
				t.Fatal(err)
			}
			if err = runner.Restore(state); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if got := checked(t, runner.Finish(profile.State{})); !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the profile differs from the profile of a run that spilled from its start", seed)
		}
	}
}

// If the spill store fails while a run moves its state into the store, the run ends and keeps its
// counts.
func TestSpillFailure(t *testing.T) {
	whole := randomTrace(rand.New(rand.NewPCG(2, 9)), 3000)
	for fails := 1; fails < 4; fails++ {
		runner, err := analysis.NewRunner(analysis.Spec{LineBytes: []uint32{32, 64, 128}}, tracetest.NewReader(whole, 1000))
		if err != nil {
			t.Fatal(err)
		}
		if err := runner.Step(); err != nil {
			t.Fatal(err)
		}
		if _, ok := runner.Spill(locality.Budget{Shelf: &stacktest.Shelf{Fails: fails}}); !ok {
			t.Fatal("Spill returned false, want true")
		}
		if err := runner.Step(); !errors.Is(err, stacktest.ErrShelf) {
			t.Errorf("if call %d to the spill store fails, the run ends with %v, want the spill store's error", fails, err)
		}
		if p := checked(t, runner.Finish(profile.State{})); !p.State.Partial || p.Locality[0].Lines() == 0 {
			t.Errorf("if call %d to the spill store fails, the profile has the state %+v and %d lines", fails, p.State, p.Locality[0].Lines())
		}
	}
}

// If a reference accesses more lines than a segment may contain, segments end in the middle of the
// reference, even in a spilled run.
func TestSpillInTheMiddleOfAReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	whole := randomTrace(rng, 2047) // just before the end of a window
	for range 3 {
		whole.Append(trace.RangeRead, 1<<30, 9<<20, 1, 0)
		whole.Append(trace.RangeWrite, 1<<30+5<<20, 9<<20, 0, 0)
		for range 1 + rng.IntN(1100) {
			whole.Append(trace.Load, 1<<30+rng.Uint64N(14<<20), 8, 0, 0)
		}
	}
	spec := analysis.Spec{Analyses: analysis.Sets, LineBytes: []uint32{512, 1024}, Kinds: trace.AllKinds}
	want := run(t, spec, tracetest.NewReader(whole, 100)).Encode()
	for seed := range 8 {
		runner, err := analysis.NewRunner(spec, tracetest.NewReader(whole, 100))
		if err != nil {
			t.Fatal(err)
		}
		for range seed * 4 {
			_ = runner.Step()
		}
		if _, ok := runner.Spill(locality.Budget{Lines: 1 + rng.IntN(20_000), Shelf: new(stacktest.Shelf)}); !ok {
			t.Fatal("Spill returned false, want true")
		}
		for err == nil {
			if err = runner.Step(); rng.IntN(40) == 0 {
				checked(t, runner.Profile(profile.State{}))
			}
		}
		if err != io.EOF || !bytes.Equal(checked(t, runner.Finish(profile.State{})).Encode(), want) {
			t.Fatalf("spilling after %d steps changes the profile (%v)", seed*4, err)
		}
	}
}
