package analysis_test

import (
	"bytes"
	"io"
	"math"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// rangeTrace returns a trace of small references and of references that span megabytes, at addresses
// within pages and at the end of the address space.
func rangeTrace() *trace.Batch {
	whole := &trace.Batch{PC: []trace.Addr{}}
	for i := range uint64(3) {
		whole.Append(trace.Store, 5000*i, 8, 0, 1)
		whole.Append(trace.RangeRead, 1<<32+3000*i+1, uint32(9<<20+i), 0, 2)
		whole.Append(trace.RangeWrite, 1<<32, 5<<20, 0, 3)
		whole.Append(trace.Load, 1<<32+1<<20, 4, 0, 1)
	}
	whole.Append(trace.RangeRead, math.MaxUint64-(7<<20), 6<<20, 0, 4)
	return whole
}

// TestLongRangesAreSplit checks that no step processes more than a few megabytes of a reference,
// and that dividing references in this way does not change the results.
func TestLongRangesAreSplit(t *testing.T) {
	whole := rangeTrace()
	spec := analysis.Spec{LineBytes: []uint32{2048, 4096}, Kinds: trace.AllKinds, Utilisation: []uint64{1 << 20}}
	reader := tracetest.NewReader(whole, 100)
	r, err := analysis.NewRunner(spec, reader)
	if err != nil {
		t.Fatal(err)
	}
	for steps := 0; ; steps++ {
		before := r.Progress()
		if err := r.Step(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if lines := r.Progress().Lines - before.Lines; lines > 4<<20/2048+1 {
			t.Errorf("step %d touches %d lines of 2048 bytes, want at most 4 MiB", steps, lines)
		}
	}
	p := checked(t, r.Profile(profile.State{}))
	for i, size := range spec.LineBytes {
		want, references := naiveLocality(whole, spec, uint64(size))
		twin := profile.Profile{Input: p.Input, Totals: p.Totals, Locality: []profile.Locality{want}}
		got := profile.Profile{Input: p.Input, Totals: p.Totals, Locality: p.Locality[i : i+1]}
		if p.Totals.References != references || got.Digest() != twin.Digest() {
			t.Errorf("lines of %d bytes: the profile differs from the reference implementation's", size)
		}
	}
	equalSites(t, "ranges", p.Sites, sitesByDefinition(&trace.Program{}, whole, spec, 2048))

	mergeable := spec
	mergeable.Mergeable = true
	want := run(t, mergeable, tracetest.NewReader(whole, 100))
	for steps := range 12 {
		got := resumed(t, mergeable, steps, func() trace.Reader { return tracetest.NewReader(whole, 100) })
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Errorf("saving the run after %d steps changes the result", steps)
		}
	}
}
