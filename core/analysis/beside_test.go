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
