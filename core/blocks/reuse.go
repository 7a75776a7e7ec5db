package blocks

import (
	"math"

	"github.com/stackglass/stackglass/core/profile"
)

// Reuse is the conditional reuse profile P(Δ|block) of a block (MODELS §13.2).
type Reuse struct {
	References    uint64
	profile.Reuse // binned distances: misses of caches at the edge of a bin are exact
}

// Reuse returns the reuse of every block of the run: the sum over the block's sites.
func (r *Run) Reuse(s *profile.Sites) []Reuse {
	blocks := make([]Reuse, len(r.Program.Blocks))
	for i := range s.Code {
		site := &s.Code[i]
		if uint64(site.Number) >= uint64(len(r.Program.Sites)) {
			continue
		}
		b := r.Program.Sites[site.Number].Block
		if uint64(b) >= uint64(len(blocks)) {
			continue
		}
		of := &blocks[b]
		of.References += site.References()
		of.Cold += site.Reuse.Cold
		of.Bins = profile.Union(of.Bins, site.Reuse.Bins,
			func(x, y *profile.BinCount) int { return int(x.Bin) - int(y.Bin) },
			func(x, y *profile.BinCount) { x.Count += y.Count })
	}
	return blocks
}

// SampledReuse is the conditional reuse profile of a block from a sample of its executions,
// which the paper calls windows.
type SampledReuse struct {
	Executions uint64 // of the block, with references
	Windows    uint64 // in the sample
	profile.Reuse
}

// Accuracy returns 1 − E/2, where E is the sum over bins of the absolute difference of
// the two normalised profiles (MODELS §8.4). It is 1 for equal profiles, and 0 if exactly
// one of them is empty.
func Accuracy(a, b *profile.Reuse) float64 {
	n, m := float64(a.Accesses()), float64(b.Accesses())
	if n == 0 || m == 0 {
		if n == m {
			return 1
		}
		return 0
	}
	off := math.Abs(float64(a.Cold)/n - float64(b.Cold)/m)
	x, y := a.Bins, b.Bins
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].Bin < y[0].Bin:
			off += float64(x[0].Count) / n
			x = x[1:]
		case len(x) == 0 || y[0].Bin < x[0].Bin:
			off += float64(y[0].Count) / m
			y = y[1:]
		default:
			off += math.Abs(float64(x[0].Count)/n - float64(y[0].Count)/m)
			x, y = x[1:], y[1:]
		}
	}
	return 1 - off/2
}
