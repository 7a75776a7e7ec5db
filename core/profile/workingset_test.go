package profile_test

import (
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// withWorkingSets returns a profile with three windows of one access each. The first and the last
// access are to the same line.
func withWorkingSets() *profile.Profile {
	p := &profile.Profile{Input: profile.Input{Kinds: trace.DataKinds}}
	p.Totals.References[trace.Load] = 2*profile.MinWindow + 1
	l := profile.Locality{LineBytes: 64, Kinds: make([]profile.KindLocality, 1)}
	l.Kinds[0].Cold = 2
	l.Kinds[0].Distances.AddN(0, 2*profile.MinWindow-2)
	l.Kinds[0].Distances.AddN(1, 1)
	l.Windows = profile.Windows{References: profile.MinWindow, Rows: make([]profile.WindowRow, 3), Distinct: []uint64{1, 1, 1}}
	for i := range 2 {
		l.Windows.Rows[i][profile.ColdBin] = 1
		l.Windows.Rows[i][0] = profile.MinWindow - 1
	}
	l.Windows.Rows[2][1] = 1
	p.Locality = []profile.Locality{l}
	p.Segment = &profile.Segment{Lines: []profile.SegmentLines{{
		Stack: []trace.Line{1, 2}, WorkingSets: [][]uint64{{2, 1}, {2}},
	}}}
	return p
}

func TestEncodeWorkingSets(t *testing.T) {
	p := withWorkingSets()
	got, err := profile.Decode(p.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Locality[0].Windows.Distinct, p.Locality[0].Windows.Distinct) ||
		!slices.EqualFunc(got.Segment.Lines[0].WorkingSets, p.Segment.Lines[0].WorkingSets, slices.Equal[[]uint64]) {
		t.Errorf("encoding and decoding changes the working sets to %v, %v", got.Locality[0].Windows.Distinct, got.Segment.Lines[0].WorkingSets)
	}
	p.Locality[0].Windows.Distinct, p.Segment.Lines[0].WorkingSets = nil, nil // older profiles have no working sets
	if got, err = profile.Decode(p.Encode()); err != nil || got.Locality[0].Windows.Distinct != nil || got.Segment.Lines[0].WorkingSets != nil {
		t.Errorf("Decode of a profile without working sets = %v, want no error", err)
	}
}

func TestCheckWorkingSets(t *testing.T) {
	for name, breakIt := range map[string]func(w *profile.Windows, larger *[][]uint64){
		"more windows than rows":              func(w *profile.Windows, _ *[][]uint64) { w.Distinct = []uint64{1, 1, 1, 1} },
		"fewer lines than first accesses":     func(w *profile.Windows, _ *[][]uint64) { w.Distinct[1] = 0 },
		"more lines than accesses":            func(w *profile.Windows, _ *[][]uint64) { w.Distinct[2] = 2 },
		"more lines than in the run":          func(w *profile.Windows, _ *[][]uint64) { w.Distinct[0] = 3 },
		"only larger windows":                 func(w *profile.Windows, _ *[][]uint64) { w.Distinct = nil },
		"no larger windows":                   func(_ *profile.Windows, larger *[][]uint64) { *larger = nil },
		"no single window at the end":         func(_ *profile.Windows, larger *[][]uint64) { *larger = (*larger)[:1] },
		"a list after the single window":      func(_ *profile.Windows, larger *[][]uint64) { *larger = append(*larger, []uint64{2}) },
		"a missing larger window":             func(_ *profile.Windows, larger *[][]uint64) { (*larger)[0] = []uint64{2} },
		"a single window with too few lines":  func(_ *profile.Windows, larger *[][]uint64) { (*larger)[1][0] = 1 },
		"a larger window with too many lines": func(_ *profile.Windows, larger *[][]uint64) { (*larger)[0][1] = 3 },
		"too many lists":                      func(_ *profile.Windows, larger *[][]uint64) { *larger = make([][]uint64, 63) },
	} {
		p := withWorkingSets()
		breakIt(&p.Locality[0].Windows, &p.Segment.Lines[0].WorkingSets)
		checkInvalid(t, name, p)
	}
	p := withWorkingSets()
	p.Segment.Start = ^uint64(0) - 5
	if p.Check() == nil {
		t.Error("Check() = nil for a segment that begins at the largest number, want an error")
	}
}
