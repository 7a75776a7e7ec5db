package hierarchy

import "github.com/stackglass/stackglass/core/profile"

// Simulated is the method of numbers that were not predicted but counted, by
// running the trace through the caches (package simulate).
const Simulated Method = "simulated"

// Counted are the demand accesses that were counted at a level.
type Counted struct{ Accesses, Misses uint64 }

// Measured lays out what was counted at each level of h as [Predict] lays out
// what it expects, with the times and bytes that follow.
func Measured(h Hierarchy, levels []Counted, totals *profile.Totals) Prediction {
	out := Prediction{References: totals.AllReferences()}
	for i, n := range levels {
		out.Levels = append(out.Levels, Level{
			Cache: h.Levels[i], Method: Simulated,
			Accesses: float64(n.Accesses), Misses: float64(n.Misses), Hits: float64(n.Accesses - n.Misses),
		})
		out.MemoryAccesses = float64(n.Misses)
	}
	out.time(h)
	out.move(h, totals)
	return out
}
