package scaling

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// naiveFunctions returns the values of log2 n rounded up, log2 n rounded down, and the root, by
// doubling.
func naiveFunctions(n int64) (up, down, root int64) {
	for size := int64(1); size < n; size *= 2 {
		up++
	}
	for size := n; size > 1; size /= 2 {
		down++
	}
	for root = 1; root*root < int64(1)<<up; root *= 2 {
	}
	return up, down, root
}

// TestFunctions compares the functions of laws with doubling.
func TestFunctions(t *testing.T) {
	for n := int64(1); n < 5000; n++ {
		up, down, root := naiveFunctions(n)
		if LogUp.value(n) != float64(up) || LogDown.value(n) != float64(down) || Root.value(n) != float64(root) {
			t.Fatalf("n = %d: %v, %v, %v, want %d, %d, %d", n, LogUp.value(n), LogDown.value(n), Root.value(n), up, down, root)
		}
		if n&(n-1) == 0 && Log.value(n) != float64(up) {
			t.Fatalf("log2 %d = %v, want %d", n, Log.value(n), up)
		}
	}
	for _, n := range []int64{0, -1, math.MinInt64} {
		if LogUp.value(n) != 0 || LogDown.value(n) != 0 || Log.value(n) != 0 || Root.value(n) != 1 {
			t.Errorf("the functions of %d and of 1 differ", n)
		}
	}
}

// TestLawsWithFunctions checks that a sum of products of powers and logarithms is found, and yields
// the exact value for a larger input, if there are two more runs than terms.
func TestLawsWithFunctions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		powersOfTwo := rapid.Bool().Draw(t, "powers of two")
		down := rapid.Bool().Draw(t, "down")
		var factors [4][3]int64 // for each power of n and of the logarithm
		terms := 0
		for range rapid.IntRange(1, 2).Draw(t, "terms") {
			c := &factors[rapid.IntRange(0, 3).Draw(t, "power")][rapid.IntRange(0, 2).Draw(t, "logs")]
			if *c == 0 {
				terms++
			}
			*c = rapid.Int64Range(1, 9).Draw(t, "factor")
		}
		value := func(n int64) (sum uint64) {
			log, below, _ := naiveFunctions(n)
			if down {
				log = below
			}
			power := int64(1)
			for a := range factors {
				sum += uint64(power * (factors[a][0] + factors[a][1]*log + factors[a][2]*log*log))
				power *= n
			}
			return sum
		}
		sizes, at := []int64{1000, 1500, 2100, 2900, 4200}, int64(20_000)
		if powersOfTwo {
			sizes, at = []int64{8, 16, 32, 64, 128}, 2048
		}
		var runs []Run
		for _, n := range sizes[:terms+2] {
			runs = append(runs, Run{Parameters: []int64{n}, Counts: []uint64{value(n)}})
		}
		m, err := Fit([]string{"n"}, runs)
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.Predict([]int64{at}, Kept)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Counts[0]; !got.IsWhole || got.Whole != value(at) {
			t.Fatalf("predicted %+v with the law %s, want %d", got, m.Counts[0].String(m.Names), value(at))
		}
		if low, high := m.Counts[0].Interval([]int64{at}); low != p.Counts[0].Executions || high != low {
			t.Fatalf("interval from %v to %v, want only %v", low, high, p.Counts[0].Executions)
		}
	})
}

// transform counts the loops of a fast Fourier transform: iterations of the bit reversal, exchanges,
// stages, and butterflies.
func transform(n int64) Run {
	var reversal, exchanges, stages, butterflies uint64
	for i, j := int64(1), int64(0); i < n; i++ {
		b := n >> 1
		for ; j&b != 0; b >>= 1 {
			j ^= b
			reversal++
		}
		j ^= b
		if i < j {
			exchanges++
		}
	}
	for length := int64(2); length <= n; length *= 2 {
		stages++
		for range n / length {
			butterflies += uint64(length / 2)
		}
	}
	return Run{Parameters: []int64{n}, Counts: []uint64{reversal, exchanges, stages, butterflies}}
}

// TestTransform checks that the counts of a fast Fourier transform with 4 times as many points as in the
// largest run are predicted exactly.
func TestTransform(t *testing.T) {
	m := fit(t, []string{"n"}, transform(16), transform(32), transform(64), transform(128), transform(256))
	for b, want := range []string{"n − log2 n − 1", "1/2 n − 1/2 2^⌈½ log2 n⌉", "log2 n", "1/2 n log2 n"} {
		if got := m.Counts[b].String(m.Names); got != want {
			t.Errorf("law %s, want %s", got, want)
		}
	}
	if e, err := predict(t, m, Kept, 1024).Check(transform(1024).Counts); err != nil || e.Wrong != 0 {
		t.Errorf("%+v, error %v", e, err)
	}
	// The logarithm of 200 is not an integer, so the count is not certain.
	if low, high := m.Counts[2].Interval([]int64{200}); low > 7 || high < 8 {
		t.Errorf("interval of log2 200 from %v to %v, want an interval that contains 7 and 8", low, high)
	}
}

// mergeSort sorts random numbers, and counts the merges, the copied elements, and the elements that are
// copied from each half of a merge.
func mergeSort(n int64) Run {
	r := rand.New(rand.NewPCG(uint64(n), 3))
	a, b := make([]int, n), make([]int, n)
	for i := range a {
		a[i] = r.Int()
	}
	var merges, copies, first uint64
	for w := int64(1); w < n; w *= 2 {
		for i := int64(0); i < n; i += 2 * w {
			merges++
			middle, end := min(i+w, n), min(i+2*w, n)
			x, y := i, middle
			for k := i; k < end; k++ {
				copies++
				if x < middle && (y >= end || a[x] <= a[y]) {
					first++
					b[k] = a[x]
					x++
				} else {
					b[k] = a[y]
					y++
				}
			}
		}
		a, b = b, a
	}
	return Run{Parameters: []int64{n}, Counts: []uint64{merges, copies, first, copies - first}}
}

// TestMergeSort checks that the counts of a merge sort are predicted within 1 %, and that the
// interval of each count contains the true count.
func TestMergeSort(t *testing.T) {
	m := fit(t, []string{"n"}, mergeSort(1000), mergeSort(1500), mergeSort(2000), mergeSort(2500), mergeSort(3000))
	for _, n := range []int64{10_000, 16_384} {
		truth := mergeSort(n)
		p := predict(t, m, Kept, n)
		var got, want float64
		for b, c := range truth.Counts {
			low, high := m.Counts[b].Interval([]int64{n})
			if f := float64(c); f < low || f > high {
				t.Errorf("n = %d, block %d: interval from %v to %v, want an interval that contains %d; the law is %s", n, b, low, high, c, m.Counts[b].String(m.Names))
			}
			got, want = got+p.Counts[b].Executions, want+float64(c)
		}
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("n = %d: predicted %.0f executions, want %.0f", n, got, want)
		}
	}
}

// TestIntervals checks that an interval contains the prediction, that only certain predictions have
// intervals of width 0, and that no interval contains negative numbers.
func TestIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var runs []Run
		for i := range rapid.Int64Range(2, 5).Draw(t, "runs") {
			runs = append(runs, Run{Parameters: []int64{4 + 3*i}, Counts: []uint64{rapid.Uint64Range(0, 1<<rapid.IntRange(0, 60).Draw(t, "bits")).Draw(t, "count")}})
		}
		m, err := Fit([]string{"n"}, runs)
		if err != nil {
			t.Fatal(err)
		}
		at := []int64{rapid.Int64Range(1, 1<<20).Draw(t, "at")}
		l := &m.Counts[0]
		low, high := l.Interval(at)
		got := l.count(at).Executions
		if v := l.at(at).At(at); v >= 0 && v < maxExecutions && !(low >= 0 && low <= got && got <= high) {
			t.Fatalf("interval from %v to %v, want an interval that contains %v; the law is %s", low, high, got, l.String(m.Names))
		}
		if l.isCertain(at) && low != high {
			t.Fatalf("the certain law %s has an interval from %v to %v", l.String(m.Names), low, high)
		}
	})
}

// TestUndecidedLaw checks that a law with as many terms as there are runs has an interval, and that
// an approximate law replaces the law where its value would be negative.
func TestUndecidedLaw(t *testing.T) {
	l := Law{Kind: Exact, Others: []Law{{Kind: Sum, LeftOut: 0.5}}}
	for power, factor := range []int64{40, -2} {
		l.Terms = append(l.Terms, Term{Factor: big.NewRat(factor, 1), Powers: []int{power}})
	}
	l.Others[0].Terms = []Term{{Factor: big.NewRat(8, 1), Powers: []int{0}}}
	for n, want := range map[int64][3]float64{10: {20, 4, 20}, 100: {8, 4, 12}} {
		low, high := l.Interval([]int64{n})
		if got := [3]float64{l.count([]int64{n}).Executions, low, high}; got != want {
			t.Errorf("n = %d: value and limits %v, want %v", n, got, want)
		}
	}
}
