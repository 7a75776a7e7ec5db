package hierarchy

import (
	"math"
	"sort"

	"github.com/stackglass/stackglass/core/profile"
)

// HitProbability returns P(h|Δ), the probability that an access at the given stack distance (in
// lines) hits in a cache with the given numbers of lines and ways (lines ≥ ways ≥ 1) if lines are
// mapped to sets at random. HitProbability implements the stack distance cache model (SDCM;
// SASMM §2.2, MODELS §5). The probability is 1 for distances that are less than the number of ways.
// For a fully associative cache (ways = lines), the probability is 0 for all other distances. The
// absolute error is below 1e-9 for distances up to 2^40.
//
// Suppose that Δ distinct other lines were accessed since the previous access to a line. P(h|Δ) is
// the binomial probability that fewer than "ways" of these Δ lines are in the same set as the
// accessed line. Each of the Δ lines is in this set with probability p = ways/lines:
//
//	P(h|Δ) = Σ_{a<ways} C(Δ,a) p^a (1-p)^(Δ-a)
//
// All terms are positive, and a recurrence computes each term from its neighbour. If the first term
// underflows, the sum starts at the largest term and proceeds in both directions.
func HitProbability(distance, lines, ways uint64) float64 {
	switch {
	case distance < ways:
		return 1
	case ways >= lines:
		return 0
	}
	p := float64(ways) / float64(lines)
	n := float64(distance)
	odds := float64(ways) / float64(lines-ways)
	mode := min(uint64((n+1)*p), ways-1)
	if first := n * math.Log1p(-p); first > -700 {
		return min(1, sumUp(math.Exp(first), n, odds, 0, mode, ways))
	}
	top := binomial(n, float64(mode), p)
	sum := sumUp(top, n, odds, mode, mode, ways)
	term := top
	for a := mode; a > 0 && term > negligible*sum; a-- {
		term *= float64(a) / ((n - float64(a) + 1) * odds)
		sum += term
	}
	return min(1, sum)
}

// negligible is the fraction of a sum below which decreasing terms can be ignored.
const negligible = 1e-18

// sumUp sums the terms with indices from a to ways-1, starting with the given value of term a. The
// terms decrease after the mode.
func sumUp(term, n, odds float64, a, mode, ways uint64) float64 {
	var sum float64
	for ; a < ways; a++ {
		sum += term
		if a > mode && term < negligible*sum {
			break
		}
		term *= (n - float64(a)) / float64(a+1) * odds
	}
	return sum
}

// binomial returns C(n,k) p^k (1-p)^(n-k) by Loader's saddle-point form (C. Loader, Fast and
// Accurate Computation of Binomial Probabilities, 2000), which avoids the cancellation between
// logarithms of factorials.
func binomial(n, k, p float64) float64 {
	if k == 0 {
		return math.Exp(n * math.Log1p(-p))
	}
	if k == n {
		return math.Exp(n * math.Log(p))
	}
	exponent := stirlingError(n) - stirlingError(k) - stirlingError(n-k) -
		deviance(k, n*p) - deviance(n-k, n*(1-p))
	return math.Exp(exponent) * math.Sqrt(n/(2*math.Pi*k*(n-k)))
}

// stirlingError returns the error of Stirling's approximation of the logarithm of n factorial.
func stirlingError(n float64) float64 {
	if n < 16 {
		lg, _ := math.Lgamma(n + 1)
		return lg - (n+0.5)*math.Log(n) + n - 0.5*math.Log(2*math.Pi)
	}
	n2 := n * n
	return (1./12 - (1./360-(1./1260-(1./1680-1./1188/n2)/n2)/n2)/n2) / n
}

// deviance returns x ln(x/m) + m - x, and avoids cancellation.
func deviance(x, m float64) float64 {
	if math.Abs(x-m) >= 0.1*(x+m) {
		return x*math.Log(x/m) + m - x
	}
	v := (x - m) / (x + m)
	sum, power := (x-m)*v, 2*x*v
	for j := 1; ; j++ {
		power *= v * v
		next := sum + power/float64(2*j+1)
		if next == sum {
			return sum
		}
		sum = next
	}
}

// Probabilities above nearlyOne are rounded to 1, and probabilities below nearlyZero are rounded to
// 0.
const (
	nearlyOne  = 1 - 1e-13
	nearlyZero = 1e-12
)

// stepsByRecurrence is the number of steps of the recurrence after which a probability is computed
// directly again. Over these steps, rounding errors accumulate to about 1e-13.
const stepsByRecurrence = 512

// expectedHits returns Σ F(Δ) P(h|Δ) over a curve's distances, for a cache that is not fully
// associative. The probability decreases as the distance grows, so short distances with probability
// 1 and long distances with probability 0 cost nothing. At all other distances, one more line
// between two accesses reduces the hit probability by the probability that exactly this line fills
// the set:
//
//	P(h|Δ+1) = P(h|Δ) - p C(Δ,A-1) p^(A-1) (1-p)^(Δ-A+1)
//
// One multiplication updates the subtracted term for the next distance. Therefore, if a histogram
// contains nearly every distance, each distance costs only a few operations.
func expectedHits(c *profile.Curve, lines, ways uint64) float64 {
	first := sort.Search(c.Len(), func(i int) bool {
		d, _ := c.At(i)
		return HitProbability(d, lines, ways) < nearlyOne
	})
	var hits float64
	var before uint64
	if first > 0 {
		_, before = c.At(first - 1)
		hits = float64(before)
	}
	at := chance{lines: lines, ways: ways}
	for d, upto := range c.From(first) {
		at.moveTo(d)
		if at.hit < nearlyZero {
			break // the probability is even smaller at greater distances
		}
		hits += at.hit * float64(upto-before)
		before = upto
	}
	return hits
}

// chance computes P(h|Δ) for ascending distances.
type chance struct {
	lines, ways uint64
	distance    uint64
	hit         float64 // the hit probability P(h|Δ)
	last        float64 // C(Δ,A-1) p^(A-1) (1-p)^(Δ-A+1), the probability of exactly A-1 other lines in the set
	steps       uint64  // number of steps since the fields "hit" and "last" were computed directly; 0 if these fields have not been computed yet
}

func (c *chance) moveTo(distance uint64) {
	gap := distance - c.distance
	if c.steps == 0 || c.steps+gap > stepsByRecurrence || c.distance < c.ways {
		p := float64(c.ways) / float64(c.lines)
		c.hit, c.steps, c.distance = HitProbability(distance, c.lines, c.ways), 1, distance
		if distance >= c.ways {
			c.last = binomial(float64(distance), float64(c.ways-1), p)
		}
		return
	}
	p := float64(c.ways) / float64(c.lines)
	for ; c.distance < distance; c.distance++ {
		c.hit -= p * c.last
		n := float64(c.distance) + 1
		c.last *= n / (n - float64(c.ways-1)) * (1 - p)
	}
	c.hit = max(0, c.hit)
	c.steps += gap
}
