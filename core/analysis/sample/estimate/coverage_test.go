package estimate

import (
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// If soak is true, as in "make soak", the tests use the number of seeds that their comments state.
var soak = os.Getenv("STACKGLASS_SOAK") != ""

// TestIntervalsCoverExactCurve checks each power-of-two capacity from 1 KiB to the footprint. For
// 90 of 100 seeds, the interval must contain the true value, or the estimate must be within 20 % of
// the true value.
func TestIntervalsCoverExactCurve(t *testing.T) {
	seeds := 6
	if soak {
		seeds = 100
	}
	for _, name := range tracetest.RealTraces {
		lines := linesOf(t, name)
		truth := exact(lines)
		for _, text := range []string{"space=0.01", "space=0.1", "lines=512", "time=10000"} {
			t.Run(name+"/"+text, func(t *testing.T) {
				o, err := sample.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				held, within := map[uint64]int{}, map[uint64]int{}
				var alike float64
				capacities := capacitiesOf(truth)
				for seed := range seeds {
					o.Seed = uint64(seed)
					l, size := sampled(o, lines)
					alike += profile.Accuracy(l, truth) / float64(seeds)
					for _, c := range capacities {
						ok, in := covered(truth, l, size, c)
						if ok {
							held[c]++
						}
						if in {
							within[c]++
						}
					}
				}
				text := ""
				for _, c := range capacities {
					text += " " + strconv.Itoa(within[c])
					if held[c]*100 < seeds*90-100 && seeds < 100 || held[c]*100 < seeds*90 && seeds >= 100 {
						t.Errorf("%d lines: the interval contains the true value in %d of %d runs", c, held[c], seeds)
					}
				}
				t.Logf("the accuracy is %.4f; of %d seeds, the interval contains the true value for this number of seeds, by capacity:%s", alike, seeds, text)
			})
		}
	}
}

// capacitiesOf returns the powers of two from 16 lines up to the footprint.
func capacitiesOf(l *profile.Locality) (list []uint64) {
	for c := uint64(16); c <= l.Lines(); c *= 2 {
		list = append(list, c)
	}
	return list
}

// covered compares the estimate for a capacity with the true value. The second result reports
// whether the interval contains the true value. The first result reports whether the interval
// contains the true value or the estimate is within 20 % of the true value.
func covered(truth, l *profile.Locality, size *profile.SampledSize, capacity uint64) (ok, inside bool) {
	want, got := float64(curve(truth).Misses(capacity)), float64(curve(l).Misses(capacity))
	p := profile.Profile{Sampled: &profile.Sampled{Sizes: []profile.SampledSize{*size}}}
	b, bounded := p.MissBounds(64, capacity)
	inside = bounded && float64(b.Low) <= want && want <= float64(b.High)
	return inside || math.Abs(got-want) <= want/5, inside
}
