package sharing_test

import (
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// If a run counts only some stacks and numbers of sets, the counts equal the counts of a run that
// counts all of them.
func TestSelectedStacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := multithreaded(150).Draw(t, "trace")
		threads, _ := ascending(b)
		spec := analysis.Spec{Analyses: analysis.Sharing}
		if rapid.Bool().Draw(t, "grouped") {
			spec.Cores, spec.Domains = grouped(t, threads)
		}
		rows := rapid.IntRange(1, 50).Draw(t, "rows")
		want := analyse(t, spec, tracetest.NewReader(b, rows))
		spec.SetNumbers = rapid.SampledFrom([]stack.SetNumbers{0, stack.MostSetNumbers, 1<<1 | 1<<6, 1}).Draw(t, "numbers of sets")
		spec.Stacks = sharing.Coherent | sharing.Stacks(rapid.IntRange(0, 3).Draw(t, "stacks"))<<1
		got := analyseSome(t, spec, tracetest.NewReader(b, rows))
		if len(got.Sharing) != len(want.Sharing) {
			t.Fatal("the profile has no counts by core")
		}
		for i := range want.Sharing {
			sameStacks(t, spec, &got.Sharing[i], &want.Sharing[i])
		}
		if len(want.Sharing) == 0 || spec.Stacks&sharing.Concurrent != 0 {
			l, all := got.Locality[0], want.Locality[0]
			g, cold := l.Histogram(0xff)
			w, wantCold := all.Histogram(0xff)
			counts := profile.StackCounts{Cold: wantCold, Distances: *w, Sets: *all.Sets}
			sameSome(t, spec, "of all", &profile.StackCounts{Cold: cold, Distances: *g, Sets: *l.Sets}, &counts)
		}
	})
}

// analyseSome analyses a trace without checking the profile, because the counts are meaningless for
// stacks that are not selected.
func analyseSome(t rapid.TB, spec analysis.Spec, r *tracetest.Reader) *profile.Profile {
	t.Helper()
	runner, err := analysis.NewRunner(spec, tracetest.Spoil(r))
	for err == nil {
		err = runner.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return runner.Finish(profile.State{})
}

func sameStacks(t rapid.TB, spec analysis.Spec, got, want *profile.Sharing) {
	t.Helper()
	for k := range want.Cores {
		g, w := &got.Cores[k], &want.Cores[k]
		if !slices.Equal(g.Threads, w.Threads) || g.Coherent.Invalidations != w.Coherent.Invalidations {
			t.Fatalf("core %d has different threads or a different number of invalidations", k)
		}
		sameSome(t, spec, "coherent", &g.Coherent.StackCounts, &w.Coherent.StackCounts)
		sameCounts(t, "lost", &profile.StackCounts{Distances: g.Coherent.Lost}, &profile.StackCounts{Distances: w.Coherent.Lost})
		if spec.Stacks&sharing.Private != 0 {
			sameSome(t, spec, "private", &g.Private, &w.Private)
			sameSome(t, spec, "foreign", &g.Foreign, &w.Foreign)
		}
	}
	for k := range want.Domains {
		if spec.Stacks&sharing.Concurrent == 0 && k == 0 {
			continue
		}
		g, w := &got.Domains[k], &want.Domains[k]
		sameSome(t, spec, "domain", &profile.StackCounts{Sets: g.Sets}, &profile.StackCounts{Sets: w.Sets})
		for m := range w.Members {
			x, y := &g.Members[m], &w.Members[m]
			sameCounts(t, "member", &profile.StackCounts{Cold: x.Cold, Distances: x.Distances}, &profile.StackCounts{Cold: y.Cold, Distances: y.Distances})
			if spec.Stacks&sharing.Private != 0 && x.Change != y.Change {
				t.Fatalf("member %d: Change = %+v, want %+v", m, x.Change, y.Change)
			}
		}
	}
}

// sameSome compares the counts of two runs, but only for the numbers of sets that both runs count.
func sameSome(t rapid.TB, spec analysis.Spec, what string, got, want *profile.StackCounts) {
	t.Helper()
	all := *want
	if spec.SetNumbers != 0 {
		all.Sets.Omit(uint32(stack.AllSetNumbers &^ (spec.SetNumbers | 1)))
	}
	sameCounts(t, what, got, &all)
}
