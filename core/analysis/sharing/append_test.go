package sharing_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// If a trace is cut into segments of any length and these segments are joined in any grouping, the
// profile is byte-identical to the profile of the whole trace, except for results that segments do
// not have.
func TestAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := multithreaded(150).Draw(t, "trace")
		threads, _ := ascending(b)
		spec := analysis.Spec{Analyses: analysis.Sharing, LineBytes: []uint32{16, 64}, Mergeable: true}
		if rapid.Bool().Draw(t, "default") {
			spec.Analyses, spec.LineBytes = analysis.Default, nil
		}
		spec.SetNumbers = rapid.SampledFrom([]stack.SetNumbers{0, 0, stack.MostSetNumbers, 1<<1 | 1<<6, 1}).Draw(t, "numbers of sets")
		if rapid.Bool().Draw(t, "grouped") {
			spec.Cores, spec.Domains = grouped(t, threads)
		}
		if rapid.IntRange(0, 3).Draw(t, "some threads") == 0 {
			spec.Threads = threads[:(1+len(threads))/2]
		}
		if rapid.IntRange(0, 3).Draw(t, "some kinds") == 0 {
			spec.Kinds = 1<<trace.Load | 1<<trace.Modify | 1<<trace.RangeWrite
		}
		if rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
			spec.Limit = uint64(rapid.IntRange(1, b.Len()).Draw(t, "limit"))
		}
		want := asSegment(analyse(t, spec, tracetest.NewReader(b, 0)))
		plain := spec
		plain.Mergeable = false
		if spec.Analyses == analysis.Sharing && analyse(t, plain, tracetest.NewReader(b, 0)).Digest() != want.Digest() {
			t.Fatal("the result of a mergeable run differs from the result of a run that is not mergeable")
		}
		var parts []*profile.Profile
		for lo := 0; lo < b.Len() || len(parts) == 0; {
			hi := lo + rapid.IntRange(0, b.Len()-lo).Draw(t, "length")
			parts = append(parts, analyse(t, spec, tracetest.NewReader(b.View(new(trace.Batch), lo, hi), rapid.IntRange(1, 50).Draw(t, "rows"))))
			spec.Start += parts[len(parts)-1].Totals.AllReferences()
			lo = hi
		}
		for len(parts) > 1 {
			i := rapid.IntRange(0, len(parts)-2).Draw(t, "pair")
			parts = slices.Replace(parts, i, i+2, join(t, spec, parts[i], parts[i+1]))
		}
		same(t, asSegment(parts[0]), want)
	})
}

// join appends segment b to segment a.
func join(t rapid.TB, spec analysis.Spec, a, b *profile.Profile) *profile.Profile {
	t.Helper()
	joined, err := analysis.JoinSegments(spec, a, b)
	if err == nil {
		err = joined.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

// asSegment removes the results that segments do not have from a profile.
func asSegment(p *profile.Profile) *profile.Profile {
	p.Communication, p.NoCommunication, p.Segment.Communication = nil, profile.AbsenceUnknown, nil
	return p
}

func same(t rapid.TB, got, want *profile.Profile) {
	t.Helper()
	if got.Digest() != want.Digest() {
		t.Fatal("the joined result differs from the result of the whole trace")
	}
	if !bytes.Equal(got.Segment.Sharing, want.Segment.Sharing) {
		t.Fatal("the joined state of the stacks differs from the state of the whole trace")
	}
	if !bytes.Equal(got.Encode(), want.Encode()) {
		t.Fatal("the joined state differs from the state of the whole trace")
	}
}
