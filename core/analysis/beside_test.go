package analysis_test

import (
	"io"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// An additional consumer receives the selected references of the trace, even if there are no
// analyses.
func TestConsumerReceivesSelectedReferences(t *testing.T) {
	whole := tracetest.Lines(64, "a Sb c Ld Se f Sg h Si Sj k")
	for _, chosen := range []analysis.Analyses{analysis.Default, analysis.None} {
		spec := analysis.Spec{Kinds: 1 << trace.Store, Skip: 1, Limit: 3, Analyses: chosen}
		run, err := analysis.NewRunner(spec, tracetest.NewReader(whole, 4))
		if err != nil {
			t.Fatal(err)
		}
		var lines []trace.Addr
		run.Beside(func(b *trace.Batch) error {
			for _, addr := range b.Addr {
				lines = append(lines, addr/64)
			}
			return nil
		})
		for err == nil {
			err = run.Step()
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		if want := []trace.Addr{5, 7, 9}; !slices.Equal(lines, want) {
			t.Errorf("analyses %v: the consumer received lines %v, want %v", chosen, lines, want)
		}
		p := run.Finish(profile.State{})
		if n := p.Totals.AllReferences(); n != 3 {
			t.Errorf("analyses %v: the run counted %d references, want 3", chosen, n)
		}
		if got, want := len(p.Locality) > 0, chosen == analysis.Default; got != want {
			t.Errorf("analyses %v: the profile has a histogram: %t, want %t", chosen, got, want)
		}
	}
}

// With BesideEvents, the consumer also receives the events that the analyses read, in the order of
// the trace.
func TestConsumerReceivesEvents(t *testing.T) {
	p := markingProgram()
	steps := []tracetest.Step{
		{Block: loadBlock, Thread: 1, Values: []uint64{64}}, {Block: beginBlock, Thread: 1, Values: []uint64{2}},
		{Block: loadBlock, Thread: 1, Values: []uint64{128}}, {Block: endBlock, Thread: 1},
	}
	for chosen, want := range map[analysis.Analyses][]trace.Kind{
		analysis.Regions: {trace.Load, trace.RegionBegin, trace.Load, trace.RegionEnd}, analysis.None: {trace.Load, trace.Load},
	} {
		run, err := analysis.NewRunner(analysis.Spec{Analyses: chosen}, reading(p, tracetest.Rows(p, steps...), 3))
		if err != nil {
			t.Fatal(err)
		}
		var kinds []trace.Kind
		run.BesideEvents(func(program func() *trace.Program) func(*trace.Batch) error {
			return func(b *trace.Batch) error {
				if program().Tags[2] != "write" {
					t.Errorf("the tags are %q", program().Tags)
				}
				kinds = append(kinds, b.Kind...)
				return nil
			}
		})
		for err == nil {
			err = run.Step()
		}
		if err != io.EOF || !slices.Equal(kinds, want) {
			t.Errorf("%v: the consumer received %v (%v), want %v", chosen, kinds, err, want)
		}
	}
}

// If the consumer returns an error, the run ends.
func TestConsumerErrorEndsRun(t *testing.T) {
	run, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.None}, tracetest.NewReader(tracetest.Lines(64, "a b"), 0))
	if err != nil {
		t.Fatal(err)
	}
	run.Beside(func(*trace.Batch) error { return io.ErrShortWrite })
	if err := run.Step(); err != io.ErrShortWrite {
		t.Errorf("%v, want %v", err, io.ErrShortWrite)
	}
}

// A run without analyses can also be saved and resumed.
func TestRestoreWithoutAnalyses(t *testing.T) {
	whole, spec := tracetest.Lines(64, "a Sb c Ld Se f Sg h Si Sj k"), analysis.Spec{Analyses: analysis.None}
	run := func(from []byte, steps int) *analysis.Runner {
		r, err := analysis.NewRunner(spec, tracetest.NewReader(whole, 2))
		if err == nil && from != nil {
			err = r.Restore(from)
		}
		for ; err == nil && steps > 0; steps-- {
			err = r.Step()
		}
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		return r
	}
	saved := run(nil, 3).Save()
	got, want := run(saved, 20).Finish(profile.State{}), run(nil, 20).Finish(profile.State{})
	if got.Digest() != want.Digest() || got.Totals.AllReferences() != 11 {
		t.Errorf("the resumed run counted %d references; its digest equals the digest of the uninterrupted run: %t", got.Totals.AllReferences(), got.Digest() == want.Digest())
	}
}
