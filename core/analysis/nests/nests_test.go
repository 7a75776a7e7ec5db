package nests_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/analysis/nests"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// rows returns n references. The function addr chooses the site and the address of each reference.
// If the parameter sites is 0, the rows have no sites.
func rows(n, sites int, addr func(i int) (site uint32, addr trace.Addr)) *trace.Batch {
	b := trace.NewBatch(n)
	for i := range n {
		site, at := addr(i)
		b.Addr, b.Bytes, b.Kind = append(b.Addr, at), append(b.Bytes, 8), append(b.Kind, trace.Load)
		if sites > 0 {
			b.Site = append(b.Site, site)
		}
	}
	return b
}

// irregular returns rows with random sites and addresses.
func irregular(n int) *trace.Batch {
	rng := rand.New(rand.NewPCG(1, 2))
	return rows(n, 64, func(int) (uint32, trace.Addr) { return rng.Uint32N(64), rng.Uint64N(1<<30) &^ 7 })
}

// regular returns the references of a sweep over an array.
func regular(n, sites int) *trace.Batch {
	return rows(n, sites, func(i int) (uint32, trace.Addr) { return uint32(i % max(1, sites)), uint64(i) * 8 })
}

func analysed(t *testing.T, o nests.Options, parts ...*trace.Batch) (*nests.Analysis, *profile.Profile) {
	t.Helper()
	a := nests.New(o)
	for _, b := range parts {
		if err := a.Consume(b); err != nil {
			t.Fatal(err)
		}
	}
	p := &profile.Profile{}
	a.Result(p, false)
	return a, p
}

// TestAnalysisStopsIfTraceIsIrregular checks that the analysis stops in exactly two cases: if about
// 130,000 rows do not compress, or if rows have no sites.
func TestAnalysisStopsIfTraceIsIrregular(t *testing.T) {
	o := nests.Options{MostBytes: nests.MostBytes, IfRegular: true}
	for _, c := range []struct {
		name  string
		parts []*trace.Batch
		kept  bool
	}{
		{"a sweep", []*trace.Batch{regular(1<<19, 3)}, true},
		{"a sweep without code", []*trace.Batch{regular(1<<19, 0)}, false},
		{"a short sweep without code", []*trace.Batch{regular(100, 0)}, false},
		{"a sweep after a few irregular rows", []*trace.Batch{irregular(1 << 17), regular(1<<17, 3)}, true},
		{"irregular", []*trace.Batch{irregular(1 << 19)}, false},
		{"a sweep after too many irregular rows", []*trace.Batch{irregular(1 << 19), regular(1<<19, 3)}, false},
	} {
		a, p := analysed(t, o, c.parts...)
		if (len(p.Loops) > 0) != c.kept || p.Loops != nil != c.kept {
			t.Errorf("%s: the profile has %d bytes of loops, want loops: %v", c.name, len(p.Loops), c.kept)
		}
		always, q := analysed(t, nests.Options{MostBytes: nests.MostBytes}, c.parts...)
		if len(q.Loops) == 0 || c.kept && string(p.Loops) != string(q.Loops) {
			t.Errorf("%s: the profile has %d bytes of loops without IfRegular, but %d with IfRegular", c.name, len(q.Loops), len(p.Loops))
		}
		if !always.Reads() || a.Reads() != c.kept && len(c.parts[0].Addr) >= 1<<17 {
			t.Errorf("%s: Reads() = %v with IfRegular, want %v; %v without IfRegular, want true", c.name, a.Reads(), c.kept, always.Reads())
		}
	}
}

// TestRestoreBeforeAndAfterStop saves runs at three positions: shortly before the analysis stops,
// shortly after it stops, and in irregular rows that are followed by regular rows.
func TestRestoreBeforeAndAfterStop(t *testing.T) {
	o := nests.Options{MostBytes: nests.MostBytes, IfRegular: true}
	trace := []*trace.Batch{irregular(1<<18 + 1<<17), regular(1<<17, 3), irregular(1 << 18)}
	_, want := analysed(t, o, trace...)
	for cut := range len(trace) + 1 {
		saved := &profile.Profile{}
		a, _ := analysed(t, o, trace[:cut]...)
		a.Result(saved, true)
		for _, b := range trace[:cut] {
			saved.Totals.References[b.Kind[0]] += uint64(b.Len())
		}
		b := nests.New(o)
		if cut > 0 {
			if err := b.Restore(saved); err != nil {
				t.Fatal(err)
			}
		}
		for _, rest := range trace[cut:] {
			if err := b.Consume(rest); err != nil {
				t.Fatal(err)
			}
		}
		got := &profile.Profile{}
		if b.Result(got, false); string(got.Loops) != string(want.Loops) || (got.Loops == nil) != (want.Loops == nil) {
			t.Errorf("a run that is saved before batch %d has %d bytes of loops, want %d", cut, len(got.Loops), len(want.Loops))
		}
	}
}

// TestNumberOfUnpredictedRecords checks how many rows are not predicted. The analysis spends most
// of its time on these rows.
func TestNumberOfUnpredictedRecords(t *testing.T) {
	for _, c := range []struct {
		b           *trace.Batch
		least, most uint64
	}{{regular(1<<16, 1), 1, 8}, {irregular(1 << 16), 1 << 15, 1 << 16}} {
		f := loops.NewFolder(0)
		if err := f.Consume(c.b); err != nil {
			t.Fatal(err)
		}
		if n := f.Unpredicted(); n < c.least || n > c.most {
			t.Errorf("%d rows were not predicted, want %d to %d", n, c.least, c.most)
		}
	}
}
