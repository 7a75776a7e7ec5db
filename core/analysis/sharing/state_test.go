package sharing_test

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// A run that is saved and restored has the same result as an uninterrupted run.
func TestSaveRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := multithreaded(200).Draw(t, "trace")
		threads, _ := ascending(b)
		spec := analysis.Spec{Analyses: analysis.Sharing, LineBytes: []uint32{16, 64}, Mergeable: rapid.Bool().Draw(t, "mergeable")}
		spec.Cores, spec.Domains = grouped(t, threads)
		rows := rapid.IntRange(1, 50).Draw(t, "rows")
		want := analyse(t, spec, tracetest.NewReader(b, rows))
		var saved []byte
		for range rapid.IntRange(1, 2).Draw(t, "stops") {
			runner := resumed(t, spec, tracetest.NewReader(b, rows), saved)
			runSteps(t, runner, rapid.IntRange(0, 1+b.Len()/rows).Draw(t, "steps"))
			saved = runner.Save()
		}
		runner := resumed(t, spec, tracetest.NewReader(b, rows), saved)
		runSteps(t, runner, b.Len()+1)
		if got := runner.Finish(profile.State{}); !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatal("the result of the resumed run differs from the result of the uninterrupted run")
		}
	})
}

// resumed returns a runner that continues from a saved state, or that begins at the start of the
// trace if the parameter saved is nil.
func resumed(t rapid.TB, spec analysis.Spec, r trace.Reader, saved []byte) *analysis.Runner {
	t.Helper()
	runner, err := analysis.NewRunner(spec, tracetest.Spoil(r))
	if err == nil && saved != nil {
		err = runner.Restore(saved)
	}
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

// runSteps runs n steps, or fewer steps if the run ends earlier.
func runSteps(t rapid.TB, runner *analysis.Runner, n int) {
	t.Helper()
	for range n {
		if err := runner.Step(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// savedProfile returns the profile of an unfinished run with three threads.
func savedProfile(t rapid.TB) (*profile.Profile, sharing.Options) {
	spec := analysis.Spec{Analyses: analysis.Sharing, Cores: [][]uint32{{1, 2}}, Domains: [][]uint32{{1, 2}, {3}, {4}}}
	b := batchOf("abAcbaBdDaxyzXab", 1, 1, 2, 1, 3, 3, 3, 2, 1, 3, 1, 3, 2, 1, 3, 1)
	runner := resumed(t, spec, tracetest.NewReader(b, 0), nil)
	runSteps(t, runner, 2)
	p, err := profile.Decode(profileInState(t, runner.Save()))
	if err != nil {
		t.Fatal(err)
	}
	return p, sharing.Options{LineBytes: []uint32{64}, Cores: spec.Cores, Domains: spec.Domains}
}

// profileInState returns the profile in a runner's saved state. Five numbers precede the profile in
// the state.
func profileInState(t rapid.TB, saved []byte) []byte {
	d := codec.NewDecoder(saved)
	for range 5 {
		d.Uint()
	}
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	return d.Rest()
}

// FuzzRestore checks that a run with a damaged state is either rejected or continued, without a
// panic.
func FuzzRestore(f *testing.F) {
	p, options := savedProfile(f)
	f.Add(p.Segment.Sharing)
	f.Fuzz(func(t *testing.T, state []byte) {
		p, _ := savedProfile(t)
		p.Segment.Sharing = state
		pass := locality.New(options.LineBytes, 0, false, stack.AllSetNumbers)
		a := sharing.New(options, pass)
		if err := a.Restore(p); err != nil {
			return
		}
		if err := pass.Restore(p); err != nil {
			t.Fatal(err)
		}
		b := batchOf("abABcdyzZA", 1, 2, 3, 4, 5, 3, 2, 1, 1, 3)
		if err := a.Consume(b); err != nil {
			t.Fatal(err)
		}
		if err := pass.Consume(b); err != nil {
			t.Fatal(err)
		}
		out := &profile.Profile{Segment: &profile.Segment{}}
		a.Result(out, true)
		if n := len(out.Sharing[0].Cores); n < 2 || n > profile.MaxCores {
			t.Fatalf("the restored run has %d cores", n)
		}
	})
}

// Restore rejects a state whose threads are grouped differently.
func TestRestoreRejectsOtherGroups(t *testing.T) {
	p, options := savedProfile(t)
	restore := func(o sharing.Options) error {
		return sharing.New(o, locality.New(o.LineBytes, 0, false, stack.AllSetNumbers)).Restore(p)
	}
	if err := restore(options); err != nil {
		t.Fatal(err)
	}
	others := options
	others.Cores = nil
	if restore(others) == nil {
		t.Error("Restore accepts a state with different cores")
	}
	others = options
	others.Domains = slices.Clone(options.Domains[:1])
	if restore(others) == nil {
		t.Error("Restore accepts a state with different domains")
	}
	p.Segment.Sharing = nil
	if restore(options) == nil {
		t.Error("Restore accepts results without a state")
	}
}
