package export

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestApportionIsFair checks that the parts add up to the total, and that each part differs by less
// than 1 from its exact share. The test computes exact shares with arbitrary precision.
func TestApportionIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Uint64().Draw(t, "total")
		shares := make([]portion, rapid.IntRange(1, 9).Draw(t, "shares"))
		weights := new(big.Int)
		for i := range shares {
			shares[i].weight = rapid.Uint64Range(0, 1<<59).Draw(t, "weight")
			weights.Add(weights, new(big.Int).SetUint64(shares[i].weight))
		}
		apportion(total, shares)
		sum := uint64(0)
		for i := range shares {
			sum += shares[i].part
			if weights.Sign() == 0 {
				continue
			}
			exact := new(big.Int).Mul(new(big.Int).SetUint64(total), new(big.Int).SetUint64(shares[i].weight))
			floor := exact.Quo(exact, weights).Uint64()
			if part := shares[i].part; part != floor && part != floor+1 {
				t.Fatalf("part %d of the total %d, with weight %d of %d, is %d, want %d or one more", i, total, shares[i].weight, weights, part, floor)
			}
		}
		if want := map[bool]uint64{true: 0, false: total}[weights.Sign() == 0]; sum != want {
			t.Fatalf("the parts of the total %d add up to %d", total, sum)
		}
	})
}
