// Package memory computes the average latency of memory accesses from the hit ratios of a hierarchy
// (MODELS §13.1; Santhi and Chennupati, Compute Node Models, LA-UR-17-20754, part 2).
//
//  1. A reuse profile P(Δ) counts accesses by stack distance ([Profile]). The profile of a
//     program is the sum of its blocks' profiles, weighted by their accesses ([Mix]).
//
//  2. Each level of a hierarchy has a hit ratio P(h_i), a fraction of all accesses
//     ([Profile.Hits]). The ratio is exact for a fully associative cache. For a set-associative
//     cache, the stack distance cache model computes the ratio (MODELS §5). Each level is treated
//     as if every access reached it.
//
//  3. An access that reaches level i has missed in all levels above it. The share of these accesses
//     that hit in level i ([Conditional]) is
//
//     P_i = (P(h_i) − P(h_i−1)) / (1 − P(h_i−1))
//
//     The average latency from a load to the use of its value is
//
//     E(λ) = P_1 λ_1 + (1 − P_1) [P_2 λ_2 + (1 − P_2) [… λ_RAM]]
//
// # Errata of the slides
//
//   - The slides do not state that P_hit2 is a conditional hit ratio. If P_hit2 were a fraction of
//     all accesses, as in P(hit) = Σ P(hit|d) P(d), hits in the first level would also count as
//     hits in the second level.
//   - The slides weight a block by its executions, P(BB_i) = N_i / Σ N_j. However, P(Δ) is a
//     distribution over references, so the correct weight of a block with r_i references per
//     execution is N_i r_i.
//
// # Limits
//
// The results are only averages: overlapping accesses, prefetches, write-backs and the bandwidth of
// buses are not modelled. Exclusive levels, and levels with other replacement policies, are treated
// as non-exclusive LRU levels. If the trace of a whole run is available, package hierarchy models
// more of these details.
package memory

import (
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Conditional converts cumulative hit ratios, which are fractions of all accesses, to hit ratios of
// the accesses that reach each level. The result for a level is 1 if no access reaches the level,
// and 0 if the level's cumulative ratio is less than the ratio of the level above.
func Conditional(cumulative []float64) []float64 {
	list := make([]float64, len(cumulative))
	above := 0.0
	for i, p := range cumulative {
		p = max(p, above)
		list[i] = 1
		if above < 1 {
			list[i] = (p - above) / (1 - above)
		}
		above = p
	}
	return list
}

// AverageLatency returns the average latency E(λ) of accesses, where cumulative[i] is the share of
// accesses that hit at level i of h or at a level above. known reports whether the latencies of all
// levels with hits are known. The error is a [*trace.OptionError].
func AverageLatency(h hierarchy.Hierarchy, cumulative []float64) (cycles float64, known bool, err error) {
	if len(h.Levels) == 0 || len(cumulative) != len(h.Levels) {
		return 0, false, &trace.OptionError{Option: "hit ratios", Got: strconv.Itoa(len(cumulative)), Want: "one for each level of the hierarchy (" + strconv.Itoa(len(h.Levels)) + ")"}
	}
	for i, p := range cumulative {
		if !(p >= 0 && p <= 1) {
			return 0, false, &trace.OptionError{Option: "hit ratio of " + h.Levels[i].Name, Got: strconv.FormatFloat(p, 'g', -1, 64), Want: "a share from 0 to 1"}
		}
	}
	cycles, known = h.Memory.LatencyCycles, h.Memory.LatencyCycles > 0
	ratios := Conditional(cumulative)
	for i := len(ratios) - 1; i >= 0; i-- {
		switch latency := h.Levels[i].LatencyCycles; ratios[i] {
		case 0:
		case 1:
			cycles, known = latency, latency > 0
		default:
			cycles = ratios[i]*latency + (1-ratios[i])*cycles
			known = known && latency > 0
		}
	}
	return cycles, known, nil
}
