package scaling

import (
	"cmp"
	"math"
	"math/big"
	"slices"
)

// maxOthers is the maximum number of laws in [Law.Others].
const maxOthers = 8

// sum is a sum that is tried as an approximate law. Each part is multiplied by a coefficient.
type sum struct {
	parts [][]Term // in descending order of growth
	// known means that the sum is a multiple of the exact law of another count, as in a branch that
	// the program takes in a certain share of the iterations of a loop.
	known bool
}

// sumsOfTerms returns the sums of one or two monomials of the same family.
func (f *fitter) sumsOfTerms() (sums []sum) {
	families, highest := f.families[1:], maxDegreeBeside[len(f.varied)]
	switch len(families) {
	case 0: // a parameter is less than 1
		families = []*family{f.newFamily(highest)}
	case 2:
		families = append([]*family{f.newFamily(highest, Log)}, families...)
	}
	one := big.NewRat(1, 1)
	for i, g := range families {
		for count := 1; count <= 2; count++ {
			choose(len(g.monomials), nil, count, func(of []int) {
				var s sum
				beside := false
				for _, k := range of {
					t := g.monomials[k]
					t.Factor = one
					s.parts = append(s.parts, []Term{t})
					beside = beside || t.Raised != nil
				}
				if beside || i == 0 {
					sums = append(sums, s)
				}
			})
		}
	}
	return sums
}

// addKnown adds the multiples of a checked exact law to the sums.
func (f *fitter) addKnown(l *Law) {
	if l.Checked == 0 || len(l.Terms) == 0 || degree(l.Terms[0].Powers)+degree(l.Terms[0].Raised) == 0 ||
		slices.ContainsFunc(f.sums, func(s sum) bool { return s.known && equalTerms(s.parts[0], l.Terms) }) {
		return
	}
	f.sums = append(f.sums, sum{parts: [][]Term{l.Terms}, known: true})
}

func equalTerms(x, y []Term) bool {
	return slices.EqualFunc(x, y, func(s, t Term) bool {
		return s.Factor.Cmp(t.Factor) == 0 && slices.Equal(s.Powers, t.Powers) && slices.Equal(s.Raised, t.Raised) && s.Function == t.Function
	})
}

// approximate finds a law for values that no exact law fits. Each law is fitted to all runs except
// one, in turn, and predicts the value of that run. The law with the smallest error is chosen. The
// error of a sum of two monomials counts twice, and the error of a multiple of an exact law counts
// half. Other laws that are at most twice as wrong are stored in Others.
func (f *fitter) approximate(values []float64) Law {
	type trial struct {
		law   Law
		error float64 // root mean square of the relative errors, times the weight of the law's form
	}
	all := allRuns(values)
	var trials []trial
	try := func(weight float64, fit func(runs []int) (Law, bool)) {
		l, ok := fit(all)
		if !ok {
			return
		}
		l.Off = f.relativeError(&l, values)
		squares := 0.0
		for i := range all {
			without, ok := fit(slices.Delete(slices.Clone(all), i, i+1))
			if !ok {
				return
			}
			off := relative(without.At(f.points[i]), values[i])
			l.LeftOut = max(l.LeftOut, off)
			squares += off * off
		}
		l.smallest, l.largest = f.limits()
		trials = append(trials, trial{l, weight * math.Sqrt(squares/float64(len(all)))})
	}
	try(1, func(runs []int) (Law, bool) { return f.powerLaw(values, runs), true })
	for i := range f.sums {
		s := &f.sums[i]
		weight := float64(len(s.parts))
		if s.known {
			weight = 0.5
		}
		if len(s.parts) < len(values)-1 {
			try(weight, func(runs []int) (Law, bool) { return f.fitSum(s.parts, values, runs) })
		}
	}
	slices.SortStableFunc(trials, func(x, y trial) int { return cmp.Compare(x.error, y.error) })
	best := trials[0].law
	for _, t := range trials[1:] {
		if len(best.Others) < maxOthers && t.error <= 2*trials[0].error {
			best.Others = append(best.Others, t.law)
		}
	}
	return best
}

// limits returns the smallest and the largest value of each parameter in the runs.
func (f *fitter) limits() (smallest, largest []int64) {
	smallest, largest = slices.Clone(f.points[0]), slices.Clone(f.points[0])
	for _, p := range f.points {
		for j, v := range p {
			smallest[j], largest[j] = min(smallest[j], v), max(largest[j], v)
		}
	}
	return smallest, largest
}

// relative returns the relative difference of a predicted value from the true value. Differences
// from values less than 1 are absolute.
func relative(predicted, value float64) float64 {
	return math.Abs(predicted-value) / max(1, math.Abs(value))
}

// relativeError returns the largest relative error of a law in the runs.
func (f *fitter) relativeError(l *Law, values []float64) (off float64) {
	for i, v := range values {
		off = max(off, relative(l.At(f.points[i]), v))
	}
	return off
}

// fitSum fits a sum to the values of the given runs. ok is false if the runs do not determine the
// coefficients, or if the sum decreases for large parameters.
func (f *fitter) fitSum(parts [][]Term, values []float64, runs []int) (l Law, ok bool) {
	rows, list := make([][]float64, len(runs)), make([]float64, len(runs))
	for i, run := range runs {
		for k := range parts {
			of := Law{Kind: Sum, Terms: parts[k]}
			rows[i] = append(rows[i], of.At(f.points[run]))
		}
		list[i] = values[run]
	}
	c, ok := leastSquares(rows, list)
	if !ok || c[0] < 0 {
		return l, false
	}
	l.Kind = Sum
	for k := range parts {
		by := new(big.Rat)
		if by.SetFloat64(c[k]) == nil {
			return l, false
		}
		for _, t := range parts[k] {
			t.Factor = new(big.Rat).Mul(by, t.Factor)
			l.Terms = append(l.Terms, t)
		}
	}
	return l, true
}

// powerLaw fits a product of powers to the logarithms of the values of the given runs. If there are
// too few runs, the law omits the last parameters. Values of 0 are ignored.
func (f *fitter) powerLaw(values []float64, runs []int) Law {
	l := Law{Kind: PowerLaw, Exponents: make([]float64, len(f.points[0]))}
	for of := f.varied; ; of = of[:len(of)-1] {
		var rows [][]float64
		var logs []float64
		for _, i := range runs {
			if values[i] <= 0 {
				continue
			}
			row := []float64{1}
			for _, j := range of {
				row = append(row, math.Log(math.Max(1, float64(f.points[i][j]))))
			}
			rows, logs = append(rows, row), append(logs, math.Log(values[i]))
		}
		if len(rows) == 0 {
			break
		}
		c, ok := solveLeast(rows, logs, nil)
		if !ok && len(of) > 0 {
			continue
		}
		if ok {
			l.Factor = math.Exp(c[0])
			for i, j := range of {
				l.Exponents[j] = c[1+i]
			}
		}
		break
	}
	return l
}

// leastSquares returns the coefficients with the smallest sum of squared relative errors.
func leastSquares(rows [][]float64, values []float64) ([]float64, bool) {
	weights := make([]float64, len(values))
	for i, v := range values {
		weights[i] = 1 / max(1, math.Abs(v))
	}
	return solveLeast(rows, values, weights)
}

// solveLeast solves the normal equations for scaled columns. ok is false if the points do not
// determine the coefficients.
func solveLeast(rows [][]float64, values, weights []float64) (c []float64, ok bool) {
	n := len(rows[0])
	if len(rows) < n {
		return nil, false
	}
	scale := make([]float64, n)
	for i, row := range rows {
		for j, v := range row {
			if weights != nil {
				v *= weights[i]
			}
			scale[j] += v * v
		}
	}
	for j := range scale {
		if scale[j] = math.Sqrt(scale[j]); scale[j] == 0 {
			return nil, false
		}
	}
	m := make([][]float64, n)
	for j := range m {
		m[j] = make([]float64, n+1)
	}
	for i, row := range rows {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		for j := range n {
			for k := range n {
				m[j][k] += w * w * row[j] / scale[j] * row[k] / scale[k]
			}
			m[j][n] += w * w * row[j] / scale[j] * values[i]
		}
	}
	for j := range n {
		pivot := j
		for k := j; k < n; k++ {
			if math.Abs(m[k][j]) > math.Abs(m[pivot][j]) {
				pivot = k
			}
		}
		if m[j], m[pivot] = m[pivot], m[j]; math.Abs(m[j][j]) < 1e-12 {
			return nil, false
		}
		for k := range n {
			if k != j {
				by := m[k][j] / m[j][j]
				for i := j; i <= n; i++ {
					m[k][i] -= by * m[j][i]
				}
			}
		}
	}
	for j := range n {
		c = append(c, m[j][n]/m[j][j]/scale[j])
	}
	return c, true
}

// closeEnough is the maximum relative error of a law of distances. closeInBins is the maximum
// relative error if only the bins of the distances are known. Each power of two has four bins.
const closeEnough, closeInBins = 0.02, 0.125

// distanceLaw finds a law for distances in lines, given one distance for each run. It returns the
// first law in the following list that fits: a polynomial that fits more runs than it has terms; a
// constant, if all distances differ by at most one line; a monomial, or a sum of two monomials,
// that is close to the distances; a power law whose exponent is nearly an integer. If none of these
// laws fits, it returns the distance in the largest run as a constant law. The reason is usually
// that the proportions of the classes of distances change from run to run.
//
// If only the bins of the distances are known, a larger error is accepted. Sums of two monomials
// are not tried in this case, because they would fit the borders of the bins.
func (f *fitter) distanceLaw(values []float64, bins bool) Law {
	near, terms := closeEnough, min(2, len(values)-1)
	if bins {
		near, terms = closeInBins, 1
	}
	last := values[len(values)-1]
	mean, spread := 0.0, 0.0
	whole := make([]uint64, len(values))
	exact := true
	for i, v := range values {
		whole[i] = uint64(v)
		exact = exact && float64(whole[i]) == v
		mean += v / float64(len(values))
	}
	for _, v := range values {
		spread = max(spread, math.Abs(v-mean))
	}
	if spread == 0 {
		return Law{Kind: PowerLaw, Factor: last}
	}
	if exact && !bins {
		if l, ok := f.exactCount(whole); ok && l.Checked > 0 && l.isDistance() {
			return l
		}
	}
	if spread <= max(1, near*mean) {
		return Law{Kind: PowerLaw, Factor: last}
	}
	best := f.monomialSum(values, terms, near)
	if best.Off > near {
		best = f.powerLaw(values, allRuns(values))
		best.Off = f.relativeError(&best, values)
		for _, x := range best.Exponents {
			if math.Abs(x-math.Round(x)) > nearWhole || x < 0 || x > maxDistance {
				best.Off = math.Inf(1)
			}
		}
	}
	if best.Off > near && !bins {
		// The distances of a class may follow several laws with the same growth. A quantile may
		// then follow a different law in each run, so a larger error is accepted.
		near = closeInBins
		best = f.monomialSum(values, 1, near)
	}
	if best.Off > near {
		return Law{Kind: PowerLaw, Factor: last}
	}
	return best
}

// nearWhole is the maximum difference between the exponent of a power law for distances and the
// nearest integer.
const nearWhole = 0.25

// isDistance reports whether a polynomial is plausible as the law of a distance: the polynomial
// must grow, but not too fast.
func (l *Law) isDistance() bool {
	return l.Terms[0].Factor.Sign() > 0 && degree(l.Terms[0].Powers) <= maxDistance
}

// monomialSum returns the monomial that is closest to the distances. If no monomial is close enough
// and termLimit is at least 2, it returns the closest sum of two monomials.
func (f *fitter) monomialSum(values []float64, termLimit int, near float64) Law {
	best := Law{Kind: Sum, Off: math.Inf(1)}
	monomials, all := f.families[0].monomials, allRuns(values)
	for terms := 1; terms <= termLimit && best.Off > near; terms++ {
		choose(len(monomials), nil, terms, func(of []int) {
			if degree(monomials[of[0]].Powers) > maxDistance {
				return
			}
			var list [][]Term
			for _, i := range of {
				t := monomials[i]
				t.Factor = big.NewRat(1, 1)
				list = append(list, []Term{t})
			}
			l, ok := f.fitSum(list, values, all)
			if !ok {
				return
			}
			if l.Off = f.relativeError(&l, values); l.Off < best.Off {
				best = l
			}
		})
	}
	return best
}

// allRuns returns the indices of all runs.
func allRuns(values []float64) []int {
	all := make([]int, len(values))
	for i := range all {
		all[i] = i
	}
	return all
}

// maxDistance is the maximum degree of the law of a distance.
const maxDistance = 3

func degree(powers []int) (n int) {
	for _, p := range powers {
		n += p
	}
	return n
}
