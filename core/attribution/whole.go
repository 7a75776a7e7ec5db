package attribution

import (
	"math"
	"sort"
)

// Whole rounds the numbers in a list, and one more number (rest), to integers. The sum of the
// integers is the rounded sum of all numbers. Whole rounds up the numbers with the largest
// fractions, and rounds down all other numbers.
func Whole(list []float64, rest float64) (rounded []uint64, wholeRest uint64) {
	all := append(list[:len(list):len(list)], rest)
	rounded = make([]uint64, len(all))
	sum, order := 0.0, make([]int, len(all))
	for i, x := range all {
		x = max(0, x)
		sum += x
		rounded[i], order[i] = uint64(x), i
	}
	left := uint64(math.Round(sum))
	for _, n := range rounded {
		left -= min(left, n)
	}
	fraction := func(i int) float64 { _, f := math.Modf(max(0, all[i])); return f }
	sort.SliceStable(order, func(x, y int) bool { return fraction(order[x]) > fraction(order[y]) })
	for _, i := range order[:min(left, uint64(len(order)))] {
		rounded[i]++
	}
	return rounded[:len(list)], rounded[len(list)]
}
