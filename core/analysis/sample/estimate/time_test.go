package estimate

import (
	"math"
	"testing"

	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestTimeSampleIsUnbiased checks each power-of-two bin that contains at least 1 % of the
// accesses. For each bin, the mean share over 200 seeds must equal the true share within three
// standard errors. By chance, one bin in 300 exceeds this limit, and one bin in three exceeds one
// standard error. In addition, the sum of the squared deviations, in standard errors, must not
// exceed the 99.9 % quantile of its approximate distribution, a χ² distribution with one degree of
// freedom per bin.
func TestTimeSampleIsUnbiased(t *testing.T) {
	const seeds = 200
	for name, lines := range map[string][]trace.Line{
		"loop and random": generated(100_000, tracetest.Mixed(3, tracetest.Strided(64, 1<<17), tracetest.Uniform(1<<12, 5))),
		"zipf":            generated(100_000, tracetest.Zipf(1<<14, 1.1, 7)),
	} {
		t.Run(name, func(t *testing.T) {
			truth := distanceShares(exact(lines))
			var sum, squares [profile.WindowBins]float64
			for seed := range uint64(seeds) {
				l, _ := sampled(sample.Options{Mode: profile.TimeSample, Gap: 300, Seed: seed}, lines)
				for bin, x := range distanceShares(l) {
					sum[bin] += x
					squares[bin] += x * x
				}
			}
			chi2, degrees := 0., 0.
			for bin, want := range truth {
				if want < 0.01 {
					continue
				}
				mean := sum[bin] / seeds
				deviation := math.Sqrt(max(0, squares[bin]/seeds-mean*mean) / seeds)
				t.Logf("bin %d: the estimated share is %.4f ± %.4f, and the exact share is %.4f", bin, mean, deviation, want)
				if math.Abs(mean-want) > 3*deviation {
					t.Errorf("bin %d has a share of %.4f of the accesses, want %.4f ± %.4f", bin, mean, want, deviation)
				}
				chi2, degrees = chi2+(mean-want)*(mean-want)/(deviation*deviation), degrees+1
			}
			if most := quantileOfChi2(degrees); chi2 > most {
				t.Errorf("χ² is %.1f for %.0f bins, want at most %.1f", chi2, degrees, most)
			} else {
				t.Logf("χ² is %.1f for %.0f bins; the limit is %.1f", chi2, degrees, most)
			}
		})
	}
}

// quantileOfChi2 returns the 0.999 quantile of the χ² distribution (Wilson and Hilferty, 1931).
func quantileOfChi2(degrees float64) float64 {
	const normal = 3.09 // the 0.999 quantile of the normal distribution
	x := 1 - 2/(9*degrees) + normal*math.Sqrt(2/(9*degrees))
	return degrees * x * x * x
}

// distanceShares returns the share of accesses in each bin of distances.
func distanceShares(l *profile.Locality) (shares [profile.WindowBins]float64) {
	counts, cold := l.Histogram(trace.AllKinds)
	for d, n := range counts.All() {
		shares[profile.DistanceBin(d)] += float64(n) / float64(l.Accesses())
	}
	shares[profile.ColdBin] = float64(cold) / float64(l.Accesses())
	return shares
}

// TestEveryAccessSampled checks that the result is exact if the mean gap is one, which means that
// every access is sampled.
func TestEveryAccessSampled(t *testing.T) {
	lines := generated(10_000, tracetest.Mixed(3, tracetest.Strided(64, 1<<14), tracetest.Uniform(1<<8, 5)))
	s := newTime(1, 3)
	out, want := distances(s, lines), make([]uint32, len(lines))
	stack.NewExact().Distances(lines, want)
	for i := range out {
		if want[i] == stack.Cold {
			want[i] = passed
		}
		if out[i] != want[i] {
			t.Fatalf("access %d has distance %d, want %d", i, out[i], want[i])
		}
	}
	if lines := exact(lines).Lines(); uint64(len(s.watched)) != lines {
		t.Errorf("%d lines are watched at the end, want all %d lines", len(s.watched), lines)
	}
}
