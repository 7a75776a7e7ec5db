package profile_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// sampledProfile returns a small profile that contains all data that a sampled profile may contain.
func sampledProfile() *profile.Profile {
	p := &profile.Profile{Sampled: &profile.Sampled{
		Mode: profile.TimeSample, Seed: 7, Threshold: 1 << 60, MostLines: 9, Gap: 100, On: 3, Period: 5, Read: 40,
		Sizes: []profile.SampledSize{{LineBytes: 64, Threshold: math.MaxUint64, Analysed: 30, Samples: 20, Lines: 10, Censored: 4,
			Bounds: []profile.Bound{{Low: 40, High: 40}, {Low: 30, High: 40}, {Low: 20, High: 25}}}},
	}}
	p.Input.Kinds = trace.DataKinds
	p.Totals.References[trace.Load] = 40
	k := profile.KindLocality{Kind: trace.Load, Cold: 1}
	k.Distances.AddN(5, 39) // these distances exceed the estimated number of lines
	row := profile.WindowRow{profile.ColdBin: 1}
	row[profile.DistanceBin(5)] = 39
	p.Locality = []profile.Locality{{LineBytes: 64, Kinds: []profile.KindLocality{k},
		Windows: profile.Windows{References: profile.MinWindow, Rows: []profile.WindowRow{row}}}}
	return p
}

func TestEncodeSampled(t *testing.T) {
	p := sampledProfile()
	back, err := profile.Decode(p.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Encode(), p.Encode()) || back.Sampled.Sizes[0].Bounds[2] != (profile.Bound{Low: 20, High: 25}) {
		t.Errorf("encoding and decoding changes %+v to %+v", p.Sampled, back.Sampled)
	}
	exact := sampledProfile()
	exact.Sampled = nil
	if exact.Digest() == p.Digest() {
		t.Error("a profile of estimates has the same digest as a profile of exact counts")
	}
	var check *profile.CheckError
	if err := exact.Check(); !errors.As(err, &check) {
		t.Errorf("Check() = %v, want an error, because in an exact profile, every distance is smaller than the number of lines", err)
	}
}

func TestSampledCheck(t *testing.T) {
	for name, damage := range map[string]func(*profile.Sampled){
		"fewer references read":              func(s *profile.Sampled) { s.Read = 39 },
		"another line size":                  func(s *profile.Sampled) { s.Sizes[0].LineBytes = 32 },
		"no line size":                       func(s *profile.Sampled) { s.Sizes = nil },
		"more samples than accesses":         func(s *profile.Sampled) { s.Sizes[0].Samples = 31 },
		"more censored samples than samples": func(s *profile.Sampled) { s.Sizes[0].Censored = 21 },
		"an interval with swapped bounds":    func(s *profile.Sampled) { s.Sizes[0].Bounds[1].Low = 41 },
		"too many capacities":                func(s *profile.Sampled) { s.Sizes[0].Bounds = make([]profile.Bound, profile.SiteBins+1) },
	} {
		p := sampledProfile()
		damage(p.Sampled)
		var check *profile.CheckError
		if _, err := profile.Decode(p.Encode()); !errors.As(err, &check) {
			t.Errorf("%s: Check() = %v, want a CheckError", name, err)
		}
	}
}

func TestMissBounds(t *testing.T) {
	p := sampledProfile()
	for _, c := range []struct {
		capacity uint64
		want     profile.Bound
	}{
		{0, profile.Bound{Low: 40, High: 40}},
		{1, profile.Bound{Low: 30, High: 40}},
		{2, profile.Bound{Low: 20, High: 25}},
		{1 << 40, profile.Bound{Low: 20, High: 25}}, // the last interval applies to larger caches
	} {
		if b, ok := p.MissBounds(64, c.capacity); !ok || b != c.want {
			t.Errorf("MissBounds for %d lines = %v, %v, want %v", c.capacity, b, ok, c.want)
		}
	}
	p.Sampled.Sizes[0].Bounds = make([]profile.Bound, 14)
	p.Sampled.Sizes[0].Bounds[8], p.Sampled.Sizes[0].Bounds[9] = profile.Bound{Low: 8, High: 9}, profile.Bound{Low: 6, High: 7}
	if b, _ := p.MissBounds(64, 9); b != (profile.Bound{Low: 6, High: 9}) {
		t.Errorf("MissBounds between 8 and 10 lines = %v, want an interval that contains both intervals", b)
	}
	if _, ok := p.MissBounds(32, 1); ok {
		t.Error("MissBounds returns an interval for a line size that was not sampled")
	}
}

func TestAccuracyOfHistograms(t *testing.T) {
	of := func(near, far, cold uint64) *profile.Locality {
		k := profile.KindLocality{Cold: cold}
		k.Distances.AddN(0, near)
		k.Distances.AddN(1000, far)
		return &profile.Locality{Kinds: []profile.KindLocality{k}}
	}
	for _, c := range []struct {
		a, b *profile.Locality
		want float64
	}{
		{of(1, 2, 1), of(10, 20, 10), 1},
		{of(1, 0, 0), of(0, 1, 0), 0},
		{of(2, 1, 1), of(1, 2, 1), 0.75},
	} {
		if got := profile.Accuracy(c.a, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("the accuracy is %v, want %v", got, c.want)
		}
	}
}
