package estimate

import (
	"testing"

	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestLongRun compares the accuracy with the accuracies in Kulkarni's Table 1, which are 95.9 % to
// 98.6 %. In a run of 10^9 accesses, of which at most 10 % are analysed, the accuracy must be at
// least 98.6 %. The accuracy depends on the number of samples, which is 16,000 in this test.
func TestLongRun(t *testing.T) {
	accesses := uint64(1_000_000_000)
	gap, least := uint64(60_000), 0.986
	if !soak {
		accesses, gap, least = 4_000_000, 4_000, 0.95
	}
	pattern := tracetest.Mixed(1,
		tracetest.Strided(8, 1<<14), tracetest.Strided(8, 1<<20), tracetest.Zipf(1<<16, 1.2, 2), tracetest.Uniform(1<<10, 3))
	a := sample.Options{Mode: profile.TimeSample, Gap: gap, Seed: 1}.Locality([]uint32{64}).(*Analysis)
	s := a.sizes[0]
	s.appendRow(0, profile.MinWindow)
	full, truth := stack.NewExact(), profile.KindLocality{Kind: trace.Load}
	var loads [maxLines]trace.Kind
	var lines [maxLines]trace.Line
	var out [maxLines]uint32
	for done := uint64(0); done < accesses; done += maxLines {
		pattern.Fill(lines[:])
		for i := range lines {
			lines[i] /= 64
		}
		copy(s.Lines[:], lines[:])
		s.settle(maxLines, loads[:])
		full.Distances(lines[:], out[:])
		for _, d := range out {
			if d == stack.Cold {
				truth.Cold++
			} else {
				truth.Distances.Add(uint64(d))
			}
		}
	}
	l, size := s.result()
	alike := profile.Accuracy(&l, &profile.Locality{LineBytes: 64, Kinds: []profile.KindLocality{truth}})
	share := float64(size.Analysed) / float64(l.Accesses())
	t.Logf("%d accesses, %d samples: the accuracy is %.2f %%, and %.2f %% of the accesses were analysed", l.Accesses(), size.Samples, 100*alike, 100*share)
	if alike < least {
		t.Errorf("the accuracy is %.4f, want at least %.4f", alike, least)
	}
	if soak && share > 0.1 {
		t.Errorf("a share of %.4f of the accesses was analysed, want at most 0.1", share)
	}
}
