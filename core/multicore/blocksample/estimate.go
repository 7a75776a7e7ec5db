package blocksample

import (
	"math"

	"github.com/stackglass/stackglass/core/hierarchy"
)

// Estimate is the estimated hit ratio of all cores' caches at one level, from sampled windows.
type Estimate struct {
	Caches   []Rate
	Mean     Rate    // unweighted mean over the caches that have accesses
	Global   Rate    // mean over the caches, weighted by their accesses
	Accesses float64 // number of line accesses of all caches, sampled or not
	Windows  uint64  // number of sampled windows
	Of       uint64  // number of windows, sampled or not
	Looked   uint64  // number of accesses in sampled windows
}

// Interval95 is half the width of a 95 % confidence interval, in standard errors.
const Interval95 = 1.959964

// Bounds returns the 95 % confidence interval of a hit ratio.
func (r *Rate) Bounds() (low, high float64) {
	return max(0, r.HitRate-Interval95*r.Off), min(1, r.HitRate+Interval95*r.Off)
}

// Of returns the estimated hit ratio of a level with the given number of caches. Callers pass one
// stack for each cache that is used, and the blocks of the whole run. The list of blocks may be nil
// for the weighting [Counted]. The error is a *trace.OptionError.
func Of(stacks []*Stack, caches int, blocks []Block, by Weighting, c hierarchy.Cache) (Estimate, error) {
	var e Estimate
	variance, known := 0.0, 0.0
	for k, s := range stacks {
		weights := s.Counted()
		if by != Counted && caches == 1 {
			weights = ForShared(blocks, by)
		} else if by != Counted {
			weights = ForPrivate(blocks, caches, k, by)
		}
		r, err := s.Rate(weights, c)
		if err != nil {
			return e, err
		}
		e.Caches = append(e.Caches, r)
		accesses := 0.0
		for b := range s.Blocks {
			x := &s.Blocks[b]
			accesses += float64(x.Accesses)
			e.Windows += x.Windows
			e.Of += x.Executions
			for _, counts := range x.groups {
				for _, n := range counts {
					e.Looked += n.n
				}
			}
		}
		e.Accesses += accesses
		if r.Weight == 0 {
			continue
		}
		known += accesses
		e.Global.HitRate += accesses * r.HitRate
		e.Global.Weight += accesses * r.Weight
		e.Global.Unknown += accesses * r.Unknown
		e.Global.Method = r.Method
		variance += accesses * accesses * r.Off * r.Off
	}
	e.Mean = Mean(e.Caches)
	if known > 0 {
		g := &e.Global
		g.HitRate, g.Weight, g.Unknown, g.Off = g.HitRate/known, g.Weight/known, g.Unknown/known, math.Sqrt(variance)/known
	}
	return e, nil
}
