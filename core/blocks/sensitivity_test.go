package blocks

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// totalOf returns the total cost of the program.
func totalOf(t *rapid.T, s *System, cost []float64) *big.Rat {
	visits, err := s.Rational()
	if err != nil {
		return nil
	}
	sum := new(big.Rat)
	for b, n := range visits {
		sum.Add(sum, new(big.Rat).Mul(n, new(big.Rat).SetFloat64(cost[b])))
	}
	return sum
}

// TestSensitivityEqualsDifferences compares the derivatives with difference quotients of rational
// solutions.
func TestSensitivityEqualsDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		c, err := s.Solve()
		if err != nil {
			return
		}
		cost := make([]float64, len(s.program.Blocks))
		for b := range cost {
			cost[b] = float64(rapid.IntRange(0, 9).Draw(t, "cost"))
		}
		list, total, err := s.Sensitivity(c, cost)
		if err != nil {
			t.Fatal(err)
		}
		base := totalOf(t, s, cost)
		ahead, err := s.costAhead(c, cost)
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := base.Float64(); math.Abs(total-want) > (c.Error+1e-12)*want {
			t.Fatalf("total = %g, want %g", total, want)
		}
		for _, in := range list {
			w, leaves := s.Weights(in.Block)
			weights := append(append([]uint64{}, w...), leaves)
			sum := uint64(0)
			for _, x := range weights {
				sum += x
			}
			// Increase and decrease the edge's integer weight by one millionth.
			scale := uint64(1) << min(20, bits.LeadingZeros64(sum)-2)
			if scale < 1<<20 || sum == 0 {
				continue
			}
			at := func(step int64) (*big.Rat, *big.Rat) {
				changed, all := make([]uint64, len(weights)), uint64(0)
				for i, x := range weights {
					changed[i] = x * scale
					if i == in.Way {
						changed[i] += uint64(step * int64(x))
					}
					all += changed[i]
				}
				if err := s.Set(in.Block, changed[:len(w)], changed[len(w)]); err != nil {
					t.Fatal(err)
				}
				return totalOf(t, s, cost), fraction(changed[in.Way], all)
			}
			more, p := at(1)
			less, q := at(-1)
			if err := s.Set(in.Block, append([]uint64{}, weights[:len(w)]...), leaves); err != nil {
				t.Fatal(err)
			}
			if more == nil || less == nil {
				continue // the recursion almost diverges
			}
			up, down := new(big.Rat).Sub(more, base), new(big.Rat).Sub(base, less)
			if up.Cmp(down) != 0 {
				bend, _ := up.Quo(up.Sub(up, down), new(big.Rat).Sub(more, less)).Float64()
				if math.Abs(bend) > 1e-4 {
					continue // the total is not linear between the two weights
				}
			}
			want, _ := more.Sub(more, less).Quo(more, p.Sub(p, q)).Float64()
			// A slope may be a small difference between two large costs, so the tolerance depends
			// on the costs.
			if math.Abs(in.Slope-want) > 1e-3*math.Abs(want)+1e-13*c.Visits[in.Block]*slices.Max(ahead) {
				t.Fatalf("block %d, edge %d: slope %g, want %g", in.Block, in.Way, in.Slope, want)
			}
		}
	})
}

// TestOutermostBranchMattersMost checks that the branches of a loop nest are sorted from the
// outermost to the innermost loop. The trip count of an outer loop scales the counts of all loops
// inside it.
func TestOutermostBranchMattersMost(t *testing.T) {
	s, err := NewSystem(nest(3))
	if err != nil {
		t.Fatal(err)
	}
	s.Enter(0, 1)
	cost := make([]float64, 8)
	for b := range cost {
		cost[b] = 1
	}
	for d, trips := range []uint64{10, 20, 30} {
		set(t, s, 1+d, trips, 1)
	}
	c, err := s.Solve()
	if err != nil {
		t.Fatal(err)
	}
	list, total, err := s.Sensitivity(c, cost)
	if err != nil {
		t.Fatal(err)
	}
	// The blocks outside the first loop are the entry, the exit, and the loop's last test. The
	// blocks outside the second loop also include the tests and latches of the first loop. In each
	// iteration of the first loop, these blocks include the last test of the second loop. The
	// blocks outside each deeper loop are determined in the same way.
	outside := 3.0
	entries := 1.0
	for i, trips := range []float64{10, 20, 30} {
		if in := list[2*i]; in.Block != 1+i || math.Abs(math.Abs(in.Weight)-(total-outside)/total) > 1e-9 {
			t.Errorf("loop %d: influence on the total (%g) = %+v, want block %d with weight %g", i, total, in, 1+i, (total-outside)/total)
		}
		outside += 2*entries*trips + entries*trips // the tests and latches of the loop, and the last test in each run of the next inner loop
		entries *= trips
	}
}
