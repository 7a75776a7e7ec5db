package scaling

import (
	"math"
	"math/big"
)

// approximate finds a law for values that no polynomial fits.
func (f *fitter) approximate(values []float64) Law {
	best := f.powerLaw(values)
	if len(f.points) < 3 {
		return best
	}
	for _, j := range f.varied {
		for _, kind := range []Kind{Logarithmic, Linearithmic} {
			if l, ok := f.logarithmic(values, j, kind); ok && l.Off < best.Off {
				best = l
			}
		}
	}
	return best
}

// logarithmic fits a + b log n or a n + b n log n, where n is the j-th parameter.
func (f *fitter) logarithmic(values []float64, j int, kind Kind) (l Law, ok bool) {
	var rows [][]float64
	for _, p := range f.points {
		if p[j] < 1 {
			return l, false
		}
		row := []float64{1, log2(p[j])}
		if kind == Linearithmic {
			row[0] *= float64(p[j])
			row[1] *= float64(p[j])
		}
		rows = append(rows, row)
	}
	c, ok := leastSquares(rows, values)
	if !ok {
		return l, false
	}
	l = Law{Kind: kind, A: c[0], B: c[1], Of: j}
	l.Off = f.relativeError(&l, values)
	return l, true
}

// relativeError returns the largest relative error of a law in the runs.
func (f *fitter) relativeError(l *Law, values []float64) (off float64) {
	for i, v := range values {
		off = max(off, math.Abs(l.At(f.points[i])-v)/max(1, math.Abs(v)))
	}
	return off
}

// powerLaw fits a product of powers to the logarithms of the values. If there are too few points,
// the law omits the last parameters. Values of 0 are ignored.
func (f *fitter) powerLaw(values []float64) Law {
	l := Law{Kind: PowerLaw, Exponents: make([]float64, len(f.points[0]))}
	for of := f.varied; ; of = of[:len(of)-1] {
		var rows [][]float64
		var logs []float64
		for i, p := range f.points {
			if values[i] <= 0 {
				continue
			}
			row := []float64{1}
			for _, j := range of {
				row = append(row, math.Log(math.Max(1, float64(p[j]))))
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
	l.Off = f.relativeError(&l, values)
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
		if l := f.countLaw(whole); l.Kind == Polynomial && l.Checked > 0 && l.isDistance() {
			return l
		}
	}
	if spread <= max(1, near*mean) {
		return Law{Kind: PowerLaw, Factor: last}
	}
	best := f.monomialSum(values, terms, near)
	if best.Off > near {
		best = f.powerLaw(values)
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
	for terms := 1; terms <= termLimit && best.Off > near; terms++ {
		f.choose(nil, terms, func(of []int) {
			if degree(f.monomials[of[0]].Powers) > maxDistance {
				return
			}
			var rows [][]float64
			for _, p := range f.points {
				var row []float64
				for _, i := range of {
					row = append(row, power(p, f.monomials[i].Powers))
				}
				rows = append(rows, row)
			}
			c, ok := leastSquares(rows, values)
			if !ok || c[0] < 0 {
				return
			}
			l := Law{Kind: Sum}
			for k, i := range of {
				factor := new(big.Rat)
				if factor.SetFloat64(c[k]) == nil {
					return
				}
				l.Terms = append(l.Terms, Term{factor, f.monomials[i].Powers})
			}
			if l.Off = f.relativeError(&l, values); l.Off < best.Off {
				best = l
			}
		})
	}
	return best
}

// maxDistance is the maximum degree of the law of a distance.
const maxDistance = 3

func degree(powers []int) (n int) {
	for _, p := range powers {
		n += p
	}
	return n
}
