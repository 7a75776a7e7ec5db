package scaling

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Law is a formula that describes a number as a function of the parameters.
type Law struct {
	Kind  Kind
	Terms []Term // the terms of a polynomial; with no terms, the law is 0
	// number of runs that confirm the law, in addition to the runs that determine its coefficients
	Checked int

	// Factor, A and B are the coefficients of the other kinds of laws: Factor times each parameter
	// raised to its power (a power law), A + B log2 n, or A n + B n log2 n. In the last two laws, n
	// is the parameter whose index is the field Of.
	Factor, A, B float64
	Exponents    []float64
	Of           int
	Off          float64 // largest relative error of the law over all runs
}

// Kind is the form of a law.
type Kind uint8

// The kinds of laws.
const (
	Polynomial   Kind = iota // a polynomial that fits the runs exactly
	PowerLaw                 // a power law, c n^x
	Logarithmic              // a + b log2 n
	Linearithmic             // a n + b n log2 n
	Sum                      // a sum of products of powers that approximates the runs
)

// Term is a term of a polynomial: a factor and the powers of the parameters.
type Term struct {
	Factor *big.Rat
	Powers []int // the power of each parameter
}

// At returns the value of the law for the given parameters.
func (l *Law) At(at []int64) float64 {
	switch l.Kind {
	case Polynomial:
		v, _ := l.exactValue(at).Float64()
		return v
	case Sum:
		v := 0.0
		for i := range l.Terms {
			f, _ := l.Terms[i].Factor.Float64()
			v += f * power(at, l.Terms[i].Powers)
		}
		return v
	case Logarithmic:
		return l.A + l.B*log2(at[l.Of])
	case Linearithmic:
		n := float64(at[l.Of])
		return l.A*n + l.B*n*log2(at[l.Of])
	}
	v := l.Factor
	for j, x := range l.Exponents {
		if x != 0 {
			v *= math.Pow(math.Max(1, float64(at[j])), x)
		}
	}
	return v
}

func log2(n int64) float64 { return math.Log2(math.Max(1, float64(n))) }

// power returns the value of a monomial in floating point.
func power(at []int64, powers []int) float64 {
	v := 1.0
	for j, p := range powers {
		for range p {
			v *= float64(at[j])
		}
	}
	return v
}

// String formats the law with the given parameter names.
func (l *Law) String(names []string) string {
	short := func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
	switch l.Kind {
	case PowerLaw:
		s := "about " + short(l.Factor)
		for j, x := range l.Exponents {
			if x != 0 {
				s += " " + names[j] + "^" + short(x)
			}
		}
		return s
	case Logarithmic:
		return "about " + short(l.A) + " + " + short(l.B) + " log2 " + names[l.Of]
	case Linearithmic:
		return "about " + short(l.A) + " " + names[l.Of] + " + " + short(l.B) + " " + names[l.Of] + " log2 " + names[l.Of]
	}
	if len(l.Terms) == 0 {
		return "0"
	}
	var s strings.Builder
	if l.Kind == Sum {
		s.WriteString("about ")
	}
	for i := range l.Terms {
		t := &l.Terms[i]
		factor := new(big.Rat).Abs(t.Factor)
		switch {
		case i > 0 && t.Factor.Sign() < 0:
			s.WriteString(" − ")
		case i > 0:
			s.WriteString(" + ")
		case t.Factor.Sign() < 0:
			s.WriteString("−")
		}
		var parts []string
		for j, p := range t.Powers {
			switch {
			case p == 1:
				parts = append(parts, names[j])
			case p > 1:
				parts = append(parts, names[j]+"^"+strconv.Itoa(p))
			}
		}
		text := factor.RatString()
		if l.Kind == Sum {
			f, _ := factor.Float64()
			text = short(f)
		}
		if len(parts) == 0 || text != "1" {
			parts = append([]string{text}, parts...)
		}
		s.WriteString(strings.Join(parts, " "))
	}
	return s.String()
}

// fitter finds laws for numbers that have one value in each run.
type fitter struct {
	points    [][]int64 // the parameters of each run
	varied    []int
	monomials []Term       // in descending order of degree
	at        [][]*big.Int // the value of each monomial in each run
	supports  [][]support  // supports[n-1] contains the supports with n terms
	known     map[string]Law
}

// support is a choice of monomials. It contains the inverse of a square matrix: the values of the
// monomials in as many runs as there are monomials.
type support struct {
	of      []int // indices of the chosen monomials
	points  []int // indices of the runs that determine the coefficients
	inverse []*big.Rat
	float   []float64
}

const (
	maxTerms = 4
	// maxDegree is the maximum degree of monomials, indexed by the number of varying parameters.
	// maxSupports is the maximum number of choices of monomials that are tried for each number of
	// terms.
	maxSupports = 4000
	// fewestBits is the length of the coefficient 1 in bits, including its sign.
	fewestBits = 2
	// maxDenominator limits the denominators of coefficients.
	maxDenominator = 1 << 16
)

var maxDegree = [maxParameters + 1]int{0, 6, 4, 3, 3}

func newFitter(m *Model) *fitter {
	f := &fitter{varied: m.varied, known: map[string]Law{}}
	for i := range m.runs {
		f.points = append(f.points, m.runs[i].Parameters)
	}
	for degree := maxDegree[len(m.varied)]; degree >= 0; degree-- {
		f.addMonomials(make([]int, len(m.Names)), 0, degree)
	}
	for i := range f.monomials {
		var values []*big.Int
		for _, p := range f.points {
			values = append(values, f.monomials[i].monomial(p))
		}
		f.at = append(f.at, values)
	}
	return f
}

// ofTerms returns the supports with the given number of terms. It computes the supports on the
// first call, and then caches them.
func (f *fitter) ofTerms(terms int) []support {
	for len(f.supports) < terms {
		var list []support
		total := 0
		f.choose(nil, len(f.supports)+1, func(of []int) {
			if total++; total <= maxSupports {
				if s, ok := f.support(of); ok {
					list = append(list, s)
				}
			}
		})
		f.supports = append(f.supports, list)
	}
	return f.supports[terms-1]
}

// addMonomials adds the monomials of the given degree that contain only the j-th and later varied
// parameters.
func (f *fitter) addMonomials(powers []int, j, degree int) {
	if j == len(f.varied)-1 || len(f.varied) == 0 {
		powers = slices.Clone(powers)
		if j < len(f.varied) {
			powers[f.varied[j]] = degree
		}
		f.monomials = append(f.monomials, Term{Powers: powers})
		return
	}
	for p := degree; p >= 0; p-- {
		powers[f.varied[j]] = p
		f.addMonomials(powers, j+1, degree-p)
	}
	powers[f.varied[j]] = 0
}

// choose adds the given number of monomials to the chosen monomials, in all possible ways, and
// calls yield for each resulting choice.
func (f *fitter) choose(chosen []int, count int, yield func([]int)) {
	if count == 0 {
		yield(slices.Clone(chosen))
		return
	}
	first := 0
	if len(chosen) > 0 {
		first = chosen[len(chosen)-1] + 1
	}
	for i := first; i+count <= len(f.monomials); i++ {
		f.choose(append(chosen, i), count-1, yield)
	}
}

// support inverts the matrix of the monomials' values. It chooses the last runs whose matrix is
// invertible, because larger inputs distinguish terms better.
func (f *fitter) support(of []int) (s support, ok bool) {
	n := len(of)
	s.of = of
	runs := make([]int, n)
	for i := range runs {
		runs[i] = len(f.points) - n + i
	}
	for {
		if s.inverse = f.invert(of, runs); s.inverse != nil {
			s.points = slices.Clone(runs)
			for _, r := range s.inverse {
				v, _ := r.Float64()
				s.float = append(s.float, v)
			}
			return s, true
		}
		if !previousRuns(runs) {
			return s, false
		}
	}
}

// previousRuns replaces a choice of runs by the previous choice. It returns false if there is no
// previous choice.
func previousRuns(runs []int) bool {
	for i := range runs {
		if least := i; runs[i] > least {
			runs[i]--
			for k := i - 1; k >= 0; k-- {
				runs[k] = runs[k+1] - 1
			}
			return true
		}
	}
	return false
}

// invert returns the inverse of the matrix of the monomials' values (a row for each run, a column
// for each monomial), or nil if the matrix is singular. Coefficient i of a polynomial is the
// product of row i of the inverse and the values to fit.
func (f *fitter) invert(of, runs []int) []*big.Rat {
	n := len(of)
	m := make([][]*big.Rat, n)
	for i, run := range runs {
		m[i] = make([]*big.Rat, 2*n)
		for j := range of {
			m[i][j] = new(big.Rat).SetInt(f.at[of[j]][run])
			m[i][n+j] = new(big.Rat)
		}
		m[i][n+i].SetInt64(1)
	}
	for c := range n {
		pivot := slices.IndexFunc(m[c:], func(row []*big.Rat) bool { return row[c].Sign() != 0 })
		if pivot < 0 {
			return nil
		}
		m[c], m[c+pivot] = m[c+pivot], m[c]
		by := new(big.Rat).Inv(m[c][c])
		for j := range m[c] {
			m[c][j].Mul(m[c][j], by)
		}
		for i := range m {
			if i == c || m[i][c].Sign() == 0 {
				continue
			}
			times := new(big.Rat).Set(m[i][c])
			for j := range m[i] {
				m[i][j].Sub(m[i][j], new(big.Rat).Mul(times, m[c][j]))
			}
		}
	}
	var inverse []*big.Rat
	for i := range m {
		inverse = append(inverse, m[i][n:]...)
	}
	return inverse
}

// countLaw finds the law of a count, given its value in each run.
func (f *fitter) countLaw(values []uint64) Law {
	key := make([]byte, 0, 8*len(values))
	data := 0
	for _, v := range values {
		for shift := range 8 {
			key = append(key, byte(v>>(8*shift)))
		}
		data += bits.Len64(v)
	}
	if l, ok := f.known[string(key)]; ok {
		return l
	}
	l, ok := f.polynomial(values, data)
	if !ok {
		list := make([]float64, len(values))
		for i, v := range values {
			list[i] = float64(v)
		}
		l = f.approximate(list)
	}
	f.known[string(key)] = l
	return l
}

// polynomial finds the polynomial with the shortest description. The description must be shorter
// than bitLimit, the length of the values themselves in bits.
func (f *fitter) polynomial(values []uint64, bitLimit int) (best Law, ok bool) {
	if slices.Max(values) == 0 {
		return Law{Checked: len(values)}, true
	}
	if slices.Max(values) == slices.Min(values) {
		one := Term{Factor: new(big.Rat).SetUint64(values[0]), Powers: make([]int, len(f.points[0]))}
		return Law{Terms: []Term{one}, Checked: len(values) - 1}, true
	}
	length := float64(bitLimit)
	for n := 1; n <= min(maxTerms, len(values)); n++ {
		chosen := choices(len(f.monomials), n)
		if length <= chosen+float64(n*fewestBits) {
			break
		}
		list := f.ofTerms(n)
		for i := range list {
			if terms, bits := f.fitSupport(&list[i], values, length-chosen); terms != nil {
				best, ok = Law{Terms: terms, Checked: len(values) - n}, true
				length = bits + chosen
			}
		}
	}
	return best, ok
}

// choices returns the base-2 logarithm of the number of ways to choose k of n items.
func choices(n, k int) (bits float64) {
	for i := range k {
		bits += math.Log2(float64(n-i) / float64(i+1))
	}
	return bits
}

// fitSupport returns the polynomial in the monomials of s that fits all values, together with the
// total length of its coefficients in bits. It returns nil if the length would reach bitLimit.
func (f *fitter) fitSupport(s *support, values []uint64, bitLimit float64) (terms []Term, length float64) {
	n := len(s.of)
	if n < len(values) && !f.mayFit(s, values) {
		return nil, 0
	}
	for i := range n {
		c := new(big.Rat)
		for k, run := range s.points {
			c.Add(c, new(big.Rat).Mul(s.inverse[i*n+k], new(big.Rat).SetInt(new(big.Int).SetUint64(values[run]))))
		}
		if c.Sign() == 0 || c.Denom().BitLen() > bits.Len(maxDenominator) {
			return nil, 0
		}
		length += float64(fewestBits - 1 + c.Num().BitLen() + 2*(c.Denom().BitLen()-1))
		if length >= bitLimit {
			return nil, 0
		}
		terms = append(terms, Term{c, f.monomials[s.of[i]].Powers})
	}
	l := Law{Terms: terms}
	for run, v := range values {
		if slices.Contains(s.points, run) {
			continue
		}
		if got := l.exactValue(f.points[run]); !got.IsInt() || !got.Num().IsUint64() || got.Num().Uint64() != v {
			return nil, 0
		}
	}
	return terms, length
}

// mayFit checks in floating point whether the polynomial also fits the runs that do not determine
// its coefficients.
func (f *fitter) mayFit(s *support, values []uint64) bool {
	n := len(s.of)
	var c [maxTerms]float64
	for i := range n {
		for k, run := range s.points {
			c[i] += s.float[i*n+k] * float64(values[run])
		}
	}
	for run, v := range values {
		if slices.Contains(s.points, run) {
			continue
		}
		sum, scale := 0.0, 1.0
		for i := range n {
			term := c[i] * power(f.points[run], f.monomials[s.of[i]].Powers)
			sum += term
			scale += math.Abs(term)
		}
		if math.Abs(sum-float64(v)) > 1e-6*scale {
			return false
		}
	}
	return true
}
