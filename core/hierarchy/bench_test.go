package hierarchy_test

import (
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// dense returns a profile with many distinct stack distances, like the profile of a program that
// sorts 20,000 keys. Each stack distance occurs once in the profile.
func dense() *profile.Profile {
	l := profile.Locality{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load, Cold: 22494}}}
	for d := range uint64(22494) {
		l.Kinds[0].Distances.AddN(d, 1+1_000_000/(1+d))
	}
	return &profile.Profile{Locality: []profile.Locality{l}}
}

// BenchmarkPredict predicts three levels with SDCM. Each iteration starts from a new profile.
func BenchmarkPredict(b *testing.B) {
	p := dense()
	h, err := hierarchy.Preset("i7-4770K")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := hierarchy.Predict(p, h); err != nil {
			b.Fatal(err)
		}
	}
}

// In each iteration, BenchmarkPredictNext changes the size of one level, like a user who moves a
// slider.
func BenchmarkPredictNext(b *testing.B) {
	asker := hierarchy.NewAsker(dense())
	h, err := hierarchy.Preset("i7-4770K")
	if err != nil {
		b.Fatal(err)
	}
	for size := uint64(1); b.Loop(); size = size%4000 + 1 {
		h.Levels[1].SizeBytes = size * 8 * 64
		if _, _, err := asker.Predict(h, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlainSum computes the hits in one of the three levels of BenchmarkPredict by summing
// SDCM's probabilities one by one.
func BenchmarkPlainSum(b *testing.B) {
	p := dense()
	curve := profile.NewCurve(p.Locality[0].Histogram(trace.AllKinds))
	for b.Loop() {
		var sum float64
		for d := range curve.From(0) {
			sum += hierarchy.HitProbability(d, 512, 8)
		}
		if sum <= 0 {
			b.Fatal(sum)
		}
	}
}
