package blocks

import "github.com/stackglass/stackglass/core/profile"

// SampledReuse is the conditional reuse profile of a block, from a sample of its executions,
// which the paper calls windows. [Reuse] is from all of them.
type SampledReuse struct {
	Executions uint64 // of the block, those without references left out
	Windows    uint64 // that were looked at
	Reuse
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
	off := apart(float64(a.Cold)/n, float64(b.Cold)/m)
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
			off += apart(float64(x[0].Count)/n, float64(y[0].Count)/m)
			x, y = x[1:], y[1:]
		}
	}
	return 1 - off/2
}

func apart(x, y float64) float64 {
	if x < y {
		return y - x
	}
	return x - y
}
