package sample

import (
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// soak makes soak run the tests with as many seeds as the claims state.
var soak = os.Getenv("STACKGLASS_SOAK") != ""

// TestIntervalsCoverTheTruth: at each power of two from 1 KiB to the footprint, the interval
// contains the truth, or the estimate is off by a fifth at most, with 90 of 100 seeds.
func TestIntervalsCoverTheTruth(t *testing.T) {
	seeds := 6
	if soak {
		seeds = 100
	}
	for _, name := range tracetest.RealTraces {
		lines := linesOf(t, name)
		truth := exact(lines)
		for _, text := range []string{"space=0.01", "space=0.1", "lines=512", "time=10000"} {
			t.Run(name+"/"+text, func(t *testing.T) {
				o, err := Parse(text)
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
						t.Errorf("%d lines: the interval held in %d of %d", c, held[c], seeds)
					}
				}
				t.Logf("accuracy %.4f; the truth was within, of %d seeds, by capacity:%s", alike, seeds, text)
			})
		}
	}
}

// capacitiesOf are powers of two from 16 lines up to the footprint.
func capacitiesOf(l *profile.Locality) (list []uint64) {
	for c := uint64(16); c <= l.Lines(); c *= 2 {
		list = append(list, c)
	}
	return list
}

// covered reports in ok whether the interval at a capacity contains the truth or the estimate is
// off by a fifth at most, and in in whether it contains it.
func covered(truth, l *profile.Locality, size *profile.SampledSize, capacity uint64) (ok, in bool) {
	want, got := float64(curve(truth).Misses(capacity)), float64(curve(l).Misses(capacity))
	p := profile.Profile{Sampled: &profile.Sampled{Sizes: []profile.SampledSize{*size}}}
	b, bounded := p.MissBounds(64, capacity)
	in = bounded && float64(b.Low) <= want && want <= float64(b.High)
	return in || math.Abs(got-want) <= want/5, in
}
