package scaling

import (
	"encoding/binary"
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
	Terms []Term // the terms of the kinds Exact and Sum; with no terms, the law is 0
	// number of runs that confirm the law, in addition to the runs that determine its coefficients
	Checked int

	// The value of a power law is Factor times each parameter raised to its power.
	Factor    float64
	Exponents []float64
	Off       float64 // largest relative error of the law over all runs

	// Others contains approximate laws that describe the runs nearly as well. They determine the
	// interval of a value that is not certain.
	Others []Law
	// LeftOut is the largest relative error of the value of a run that an approximate law predicts
	// if it is fitted to the other runs.
	LeftOut float64

	smallest, largest []int64 // the range of the parameters of the runs; nil for an exact law
}

// Kind is the form of a law.
type Kind uint8

// The kinds of laws.
const (
	Exact    Kind = iota // a sum of terms that fits the runs exactly
	PowerLaw             // a power law, c n^x
	Sum                  // a sum of terms that approximates the runs
)

// Function is a function of a parameter that can occur in a term in addition to the parameter's
// powers.
type Function uint8

// The functions. If the parameters of all runs are powers of two, exact laws contain Log and Root,
// and otherwise LogUp or LogDown.
const (
	Log     Function = iota // log2 n
	LogUp                   // ⌈log2 n⌉, the number of times that 1 is doubled until it is at least n
	LogDown                 // ⌊log2 n⌋, the number of times that n can be halved
	Root                    // 2^⌈½ log2 n⌉, the smallest power of two that is at least √n
)

// Term is a term of a sum: a factor, the powers of the parameters, and the powers of a function of
// the parameters.
type Term struct {
	Factor   *big.Rat
	Powers   []int    // the power of each parameter
	Function Function // log2, for example
	Raised   []int    // the power of the function of each parameter; nil: no function
}

// At returns the value of the law for the given parameters.
func (l *Law) At(at []int64) float64 {
	switch l.Kind {
	case Exact:
		if v, ok := l.exactValue(at); ok {
			f, _ := v.Float64()
			return f
		}
		fallthrough
	case Sum:
		v := 0.0
		for i := range l.Terms {
			f, _ := l.Terms[i].Factor.Float64()
			v += f * l.Terms[i].real(at)
		}
		return v
	}
	v := l.Factor
	for j, x := range l.Exponents {
		if x != 0 {
			v *= math.Pow(math.Max(1, float64(at[j])), x)
		}
	}
	return v
}

// value returns the value of the function. The logarithm of a number less than 1 is 0.
func (f Function) value(n int64) float64 {
	up := bits.Len64(uint64(max(n, 1) - 1))
	switch {
	case f == LogUp:
		return float64(up)
	case f == Root:
		return float64(uint64(1) << ((up + 1) / 2))
	case n < 1:
		return 0
	case f == LogDown:
		return float64(bits.Len64(uint64(n)) - 1)
	}
	return math.Log2(float64(n))
}

// real returns the value of the term in floating point, without the factor.
func (t *Term) real(at []int64) float64 {
	v := power(at, t.Powers)
	for j, p := range t.Raised {
		for range p {
			v *= t.Function.value(at[j])
		}
	}
	return v
}

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
	if l.Kind == PowerLaw {
		s := "about " + short(l.Factor)
		for j, x := range l.Exponents {
			if x != 0 {
				s += " " + names[j] + "^" + short(x)
			}
		}
		return s
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
		text := factor.RatString()
		if l.Kind == Sum {
			f, _ := factor.Float64()
			text = short(f)
		}
		parts := t.factors(names)
		if len(parts) == 0 || text != "1" {
			parts = append([]string{text}, parts...)
		}
		s.WriteString(strings.Join(parts, " "))
	}
	return s.String()
}

// factors formats the powers of the parameters and of their logarithms.
func (t *Term) factors(names []string) (parts []string) {
	add := func(base, raised string, power int) {
		switch {
		case power == 1:
			parts = append(parts, base)
		case power > 1:
			parts = append(parts, raised+"^"+strconv.Itoa(power))
		}
	}
	for j, p := range t.Powers {
		add(names[j], names[j], p)
	}
	for j, p := range t.Raised {
		switch name := "log2 " + names[j]; t.Function {
		case Log:
			add(name, "("+name+")", p)
		case LogUp:
			add("⌈"+name+"⌉", "⌈"+name+"⌉", p)
		case LogDown:
			add("⌊"+name+"⌋", "⌊"+name+"⌋", p)
		case Root:
			add("2^⌈½ "+name+"⌉", "2^⌈½ "+name+"⌉", p)
		}
	}
	return parts
}

// fitter finds laws for numbers that have one value in each run.
type fitter struct {
	points   [][]int64 // the parameters of each run
	varied   []int
	families []*family // the polynomials, followed by the families with functions
	sums     []sum     // the sums that are tried as approximate laws
	exact    map[string]exactCount
	counts   map[string]Law
}

// family is a set of terms whose sums are tried as exact laws.
type family struct {
	functions bool         // whether the monomials contain functions
	monomials []Term       // in descending order of degree
	at        [][]*big.Int // the value of each monomial in each run
	residues  [][]uint64   // the values modulo prime
	supports  [][]support  // supports[n-1] contains the supports with n terms
}

// support is a choice of monomials. It contains the inverse of a square matrix: the values of the
// monomials in as many runs as there are monomials.
type support struct {
	of       []int      // indices of the chosen monomials
	points   []int      // indices of the runs that determine the coefficients
	residues []uint64   // the inverse modulo prime
	inverse  []*big.Rat // nil: not yet computed
}

// prime is the modulus of a fast test whether a sum fits: a sum that fits also fits modulo a prime.
const prime = 1<<31 - 1

const (
	maxTerms = 4
	// maxSupports is the maximum number of choices of monomials that are tried for each number of
	// terms.
	maxSupports = 4000
	// fewestBits is the length of the coefficient 1 in bits, including its sign.
	fewestBits = 2
	// saving is the number of bits by which the description of a sum with functions must be shorter
	// than the counts if it has more than two terms. A few of these sums fit arbitrary counts by
	// chance, but save only a few bits.
	saving = 8
	// maxDenominator limits the denominators of coefficients.
	maxDenominator = 1 << 16
)

// maxDegree is the maximum degree of polynomials, indexed by the number of varying parameters.
// maxDegreeBeside is the maximum degree in the families with functions. mostRaised is the maximum
// power of each function.
var (
	maxDegree       = [maxParameters + 1]int{0, 6, 4, 3, 3}
	maxDegreeBeside = [maxParameters + 1]int{0, 3, 2, 1, 1}
	mostRaised      = [...]int{Log: 2, LogUp: 2, LogDown: 2, Root: 1}
)

func newFitter(m *Model) *fitter {
	f := &fitter{varied: m.varied, exact: map[string]exactCount{}, counts: map[string]Law{}}
	for i := range m.runs {
		f.points = append(f.points, m.runs[i].Parameters)
	}
	f.families = []*family{f.newFamily(maxDegree[len(m.varied)])}
	for _, functions := range f.functions() {
		f.families = append(f.families, f.newFamily(maxDegreeBeside[len(m.varied)], functions...))
	}
	f.sums = f.sumsOfTerms()
	return f
}

// functions returns the functions in each family of exact laws with functions.
func (f *fitter) functions() [][]Function {
	powers := len(f.varied) > 0
	for _, p := range f.points {
		for _, j := range f.varied {
			if p[j] < 1 {
				return nil
			}
			powers = powers && isPowerOfTwo(p[j])
		}
	}
	switch {
	case len(f.varied) == 0:
		return nil
	case powers:
		return [][]Function{{Root, Log}}
	}
	return [][]Function{{LogUp}, {LogDown}}
}

func isPowerOfTwo(n int64) bool { return n > 0 && n&(n-1) == 0 }

// newFamily returns the family of the monomials up to the given degree, and of the products of these
// monomials with powers of the given functions.
func (f *fitter) newFamily(highest int, functions ...Function) *family {
	g := &family{functions: len(functions) > 0}
	for degree := highest; degree >= 0; degree-- {
		var plain family
		f.addMonomials(&plain, make([]int, len(f.points[0])), 0, degree)
		for _, t := range plain.monomials {
			for _, of := range functions {
				for power := mostRaised[of]; power > 0; power-- {
					for _, j := range f.varied {
						raised := make([]int, len(t.Powers))
						raised[j] = power
						g.monomials = append(g.monomials, Term{Powers: t.Powers, Function: of, Raised: raised})
					}
				}
			}
			g.monomials = append(g.monomials, t)
		}
	}
	for i := range g.monomials {
		var values []*big.Int
		var residues []uint64
		for _, p := range f.points {
			v, ok := g.monomials[i].monomial(p)
			if !ok {
				v = new(big.Int) // only approximate laws contain such terms
			}
			values = append(values, v)
			residues = append(residues, new(big.Int).Mod(v, big.NewInt(prime)).Uint64())
		}
		g.at, g.residues = append(g.at, values), append(g.residues, residues)
	}
	return g
}

// ofTerms returns the supports with the given number of terms. It computes the supports on the
// first call, and then caches them.
func (g *family) ofTerms(terms, runs int) []support {
	for len(g.supports) < terms {
		var list []support
		total := 0
		choose(len(g.monomials), nil, len(g.supports)+1, func(of []int) {
			if total++; total <= maxSupports {
				if s, ok := g.support(of, runs); ok {
					list = append(list, s)
				}
			}
		})
		g.supports = append(g.supports, list)
	}
	return g.supports[terms-1]
}

// addMonomials adds the monomials of the given degree that contain only the j-th and later varied
// parameters.
func (f *fitter) addMonomials(g *family, powers []int, j, degree int) {
	if j == len(f.varied)-1 || len(f.varied) == 0 {
		powers = slices.Clone(powers)
		if j < len(f.varied) {
			powers[f.varied[j]] = degree
		}
		g.monomials = append(g.monomials, Term{Powers: powers})
		return
	}
	for p := degree; p >= 0; p-- {
		powers[f.varied[j]] = p
		f.addMonomials(g, powers, j+1, degree-p)
	}
	powers[f.varied[j]] = 0
}

// choose adds the given number of monomials to the chosen monomials, in all possible ways, and
// calls yield for each resulting choice. The argument all is the number of monomials.
func choose(all int, chosen []int, count int, yield func([]int)) {
	if count == 0 {
		yield(slices.Clone(chosen))
		return
	}
	first := 0
	if len(chosen) > 0 {
		first = chosen[len(chosen)-1] + 1
	}
	for i := first; i+count <= all; i++ {
		choose(all, append(chosen, i), count-1, yield)
	}
}

// support inverts the matrix of the monomials' values. It chooses the last runs whose matrix is
// invertible, because larger inputs distinguish terms better.
func (g *family) support(of []int, all int) (s support, ok bool) {
	n := len(of)
	s.of = of
	runs := make([]int, n)
	for i := range runs {
		runs[i] = all - n + i
	}
	for {
		if s.residues = g.invertResidues(of, runs); s.residues != nil {
			s.points = slices.Clone(runs)
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

// invertResidues is like invert, modulo prime.
func (g *family) invertResidues(of, runs []int) []uint64 {
	n := len(of)
	m := make([][2 * maxTerms]uint64, n)
	for i, run := range runs {
		for j := range of {
			m[i][j] = g.residues[of[j]][run]
		}
		m[i][n+i] = 1
	}
	for c := range n {
		pivot := slices.IndexFunc(m[c:], func(row [2 * maxTerms]uint64) bool { return row[c] != 0 })
		if pivot < 0 {
			return nil
		}
		m[c], m[c+pivot] = m[c+pivot], m[c]
		by := inverseOf(m[c][c])
		for j := range m[c] {
			m[c][j] = m[c][j] * by % prime
		}
		for i := range m {
			if times := m[i][c]; i != c && times != 0 {
				for j := range m[i] {
					m[i][j] = (m[i][j] + (prime-times)*m[c][j]) % prime
				}
			}
		}
	}
	var inverse []uint64
	for i := range m {
		inverse = append(inverse, m[i][n:2*n]...)
	}
	return inverse
}

// inverseOf returns the inverse of x modulo prime, which is x to the power of prime - 2.
func inverseOf(x uint64) uint64 {
	y := uint64(1)
	for e := prime - 2; e > 0; e >>= 1 {
		if e&1 != 0 {
			y = y * x % prime
		}
		x = x * x % prime
	}
	return y
}

// invert returns the inverse of the matrix of the monomials' values (a row for each run, a column
// for each monomial), or nil if the matrix is singular. Coefficient i of a polynomial is the
// product of row i of the inverse and the values to fit.
func (g *family) invert(of, runs []int) []*big.Rat {
	n := len(of)
	m := make([][]*big.Rat, n)
	for i, run := range runs {
		m[i] = make([]*big.Rat, 2*n)
		for j := range of {
			m[i][j] = new(big.Rat).SetInt(g.at[of[j]][run])
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

// exactCount is a result of fitter.exactCount.
type exactCount struct {
	law Law
	ok  bool
}

// exactCount finds the exact law of a count, given its value in each run.
func (f *fitter) exactCount(values []uint64) (Law, bool) {
	key := keyOf(values)
	if of, known := f.exact[key]; known {
		return of.law, of.ok
	}
	var of exactCount
	if slices.Max(values) <= math.MaxInt64 {
		whole := make([]int64, len(values))
		for i, v := range values {
			whole[i] = int64(v)
		}
		of.law, of.ok = f.exactLaw(whole, bitLength(whole))
	}
	f.exact[key] = of
	return of.law, of.ok
}

// countLaw finds the law of a count, given its value in each run. If no run checks an exact law,
// the law's field Others contains approximate laws.
func (f *fitter) countLaw(values []uint64) Law {
	key := keyOf(values)
	if l, known := f.counts[key]; known {
		return l
	}
	l, ok := f.exactCount(values)
	if !ok || l.Checked == 0 {
		list := make([]float64, len(values))
		for i, v := range values {
			list[i] = float64(v)
		}
		about := f.approximate(list)
		if ok {
			l.Others = append([]Law{about}, about.Others...)
		} else {
			l = about
		}
	}
	f.counts[key] = l
	return l
}

func keyOf(values []uint64) string {
	key := make([]byte, 0, 8*len(values))
	for _, v := range values {
		key = binary.LittleEndian.AppendUint64(key, v)
	}
	return string(key)
}

func bitLength(values []int64) float64 {
	n := 0
	for _, v := range values {
		n += bits.Len64(magnitude(v))
	}
	return float64(n)
}

// magnitude returns the absolute value.
func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// exactLaw finds the sum of terms with the shortest description. The description must be shorter
// than limit bits. Polynomials are preferred. Sums with functions are tried only if no polynomial
// fits, or if no run checks the polynomial. A run must check them, because they are many, and they
// must grow.
func (f *fitter) exactLaw(values []int64, limit float64) (best Law, ok bool) {
	low, high := slices.Min(values), slices.Max(values)
	switch {
	case low == 0 && high == 0:
		return Law{Checked: len(values)}, true
	case low == high:
		one := Term{Factor: new(big.Rat).SetInt64(low), Powers: make([]int, len(f.points[0]))}
		return Law{Terms: []Term{one}, Checked: len(values) - 1}, true
	}
	best, limit, ok = f.families[0].shortest(f.points, values, limit)
	if ok && best.Checked > 0 {
		return best, ok
	}
	for _, g := range f.families[1:] {
		if l, length, found := g.shortest(f.points, values, limit); found && l.Checked > 0 && l.Terms[0].Factor.Sign() > 0 {
			best, ok, limit = l, true, length
		}
	}
	return best, ok
}

// shortest returns the sum with the shortest description, and the length of the description. A sum
// that no run checks is returned only if its coefficients are plausible.
func (g *family) shortest(points [][]int64, values []int64, limit float64) (best Law, length float64, ok bool) {
	length = limit
	for n := 1; n <= min(maxTerms, len(values)); n++ {
		chosen := choices(len(g.monomials), n)
		if g.functions && n > 2 {
			chosen += saving
		}
		if length <= chosen+float64(n*fewestBits) {
			break
		}
		list := g.ofTerms(n, len(points))
		for i := range list {
			if terms, bits := g.fitSupport(points, &list[i], values, length-chosen); terms != nil {
				l := Law{Terms: terms, Checked: len(values) - n}
				if l.Checked > 0 || !slices.ContainsFunc(terms, func(t Term) bool { return !isPlausible(t.Factor) }) {
					best, ok, length = l, true, bits+chosen
				}
			}
		}
	}
	return best, length, ok
}

// isPlausible reports whether a coefficient can occur in the number of integer points of a nest of
// at most four loops whose trip counts are divided by powers of two: its denominator has no prime
// factor greater than 3. An arbitrary list of counts usually yields other denominators.
func isPlausible(c *big.Rat) bool {
	d := c.Denom().Int64()
	for _, p := range []int64{2, 3} {
		for d%p == 0 {
			d /= p
		}
	}
	return d == 1
}

// choices returns the base-2 logarithm of the number of ways to choose k of n items.
func choices(n, k int) (bits float64) {
	for i := range k {
		bits += math.Log2(float64(n-i) / float64(i+1))
	}
	return bits
}

// fitSupport returns the sum of the monomials of s that fits all values, together with the total
// length of its coefficients in bits. It returns nil if the length would reach limit.
func (g *family) fitSupport(points [][]int64, s *support, values []int64, limit float64) (terms []Term, length float64) {
	n := len(s.of)
	if n < len(values) && !g.mayFit(s, values) {
		return nil, 0
	}
	if s.inverse == nil {
		if s.inverse = g.invert(s.of, s.points); s.inverse == nil {
			return nil, 0
		}
	}
	for i := range n {
		c := new(big.Rat)
		for k, run := range s.points {
			c.Add(c, new(big.Rat).Mul(s.inverse[i*n+k], new(big.Rat).SetInt64(values[run])))
		}
		if c.Sign() == 0 || c.Denom().BitLen() > bits.Len(maxDenominator) {
			return nil, 0
		}
		length += float64(fewestBits - 1 + c.Num().BitLen() + 2*(c.Denom().BitLen()-1))
		if length >= limit {
			return nil, 0
		}
		t := g.monomials[s.of[i]]
		t.Factor = c
		terms = append(terms, t)
	}
	l := Law{Terms: terms}
	for run, v := range values {
		if slices.Contains(s.points, run) {
			continue
		}
		if got, ok := l.exactValue(points[run]); !ok || !got.IsInt() || !got.Num().IsInt64() || got.Num().Int64() != v {
			return nil, 0
		}
	}
	return terms, length
}

// mayFit checks modulo prime whether the sum also fits the runs that do not determine its
// coefficients.
func (g *family) mayFit(s *support, values []int64) bool {
	n := len(s.of)
	var c [maxTerms]uint64
	for i := range n {
		for k, run := range s.points {
			c[i] += s.residues[i*n+k] * residue(values[run]) % prime
		}
		c[i] %= prime
	}
	for run, v := range values {
		sum := uint64(0)
		for i := range n {
			sum += c[i] * g.residues[s.of[i]][run] % prime
		}
		if sum%prime != residue(v) {
			return false
		}
	}
	return true
}

func residue(v int64) uint64 { return uint64((v%prime + prime) % prime) }

// exactValue evaluates an exact law. ok is false if the value contains a logarithm that is not an
// integer.
func (l *Law) exactValue(at []int64) (sum *big.Rat, ok bool) {
	sum = new(big.Rat)
	for i := range l.Terms {
		t := &l.Terms[i]
		m, ok := t.monomial(at)
		if !ok {
			return nil, false
		}
		sum.Add(sum, new(big.Rat).Mul(t.Factor, new(big.Rat).SetInt(m)))
	}
	return sum, true
}

// monomial returns the value of the term without its factor. ok is false if a logarithm is not an
// integer.
func (t *Term) monomial(at []int64) (n *big.Int, ok bool) {
	n = big.NewInt(1)
	for j, power := range t.Powers {
		for range power {
			n.Mul(n, big.NewInt(at[j]))
		}
	}
	for j, power := range t.Raised {
		if power > 0 && t.Function == Log && at[j] > 0 && !isPowerOfTwo(at[j]) {
			return nil, false
		}
		for range power {
			n.Mul(n, big.NewInt(int64(t.Function.value(at[j]))))
		}
	}
	return n, true
}
