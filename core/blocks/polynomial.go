package blocks

import (
	"math/big"
	"strconv"
)

// Polynomial is a count as it depends on a parameter n: the coefficients of 1, n, n^2
// and so on, the last of which is not 0; none at all is 0 for every n. nil is no
// polynomial of the degree that was asked for.
type Polynomial []*big.Rat

// Polynomials gives the counts of all blocks as polynomials in a parameter of the
// sheet, of a degree up to the one given; other parameters have values, or the
// sheet's. Loops whose trips grow with the parameter have such counts. They are found
// by exact counts for degree + 1 values of the parameter, from its present one up, and
// hold for two more: a count that is no polynomial fulfils that by bad luck only, one
// with floor, ceil, min or max in it just as far as these do not switch.
func (m *Model) Polynomials(parameter string, degree int, values map[string]*big.Rat) ([]Polynomial, error) {
	const most = 20
	if degree < 0 || degree > most {
		return nil, &Error{Block: -1, Why: "polynomials of degree " + strconv.Itoa(degree), Do: "ask for 0 to " + strconv.Itoa(most)}
	}
	if _, ok := m.sheet.named[parameter]; !ok {
		return nil, &Error{Sheet: m.sheet.file, Block: -1, Why: "there is no parameter " + parameter, Do: "define it: " + parameter + " = NUMBER"}
	}
	from, why := m.sheet.getter(values)(parameter)
	if why != "" {
		return nil, &Error{Sheet: m.sheet.file, Block: -1, Why: why}
	}
	counts, err := m.sample(parameter, from, degree+3, values)
	if again := m.Set(values); err == nil {
		err = again
	}
	if err != nil {
		return nil, err
	}
	list := make([]Polynomial, len(m.System.program.Blocks))
	column := make([]*big.Rat, len(counts))
	for b := range list {
		for i := range counts {
			column[i] = counts[i][b]
		}
		list[b] = interpolate(from, column, degree)
	}
	return list, nil
}

// sample gives the counts for n values of a parameter, one apart.
func (m *Model) sample(parameter string, from *big.Rat, n int, values map[string]*big.Rat) (counts [][]*big.Rat, err error) {
	with := map[string]*big.Rat{}
	for name, v := range values {
		with[name] = v
	}
	for i := range n {
		with[parameter] = new(big.Rat).Add(from, big.NewRat(int64(i), 1))
		if err := m.Set(with); err != nil {
			return nil, err
		}
		visits, err := m.System.Rational()
		if err != nil {
			return nil, err
		}
		counts = append(counts, visits)
	}
	return counts, nil
}

// interpolate finds the polynomial through values at from, from + 1 and so on, by
// Newton's differences; nil if it has a higher degree.
func interpolate(from *big.Rat, values []*big.Rat, degree int) Polynomial {
	differences := make([]*big.Rat, len(values))
	for i, v := range values {
		differences[i] = new(big.Rat).Set(v)
	}
	for order := 1; order < len(values); order++ {
		for i := len(values) - 1; i >= order; i-- {
			differences[i].Sub(differences[i], differences[i-1])
			differences[i].Quo(differences[i], big.NewRat(int64(order), 1))
		}
	}
	for _, d := range differences[degree+1:] {
		if d.Sign() != 0 {
			return nil
		}
	}
	// Horner's scheme: multiply by n − (from + i), and add the next difference.
	list := Polynomial{}
	for i := degree; i >= 0; i-- {
		at := new(big.Rat).Add(from, big.NewRat(int64(i), 1))
		next := append(Polynomial{new(big.Rat)}, list...)
		for k := range list {
			next[k] = new(big.Rat).Sub(next[k], new(big.Rat).Mul(at, list[k]))
		}
		next[0].Add(next[0], differences[i])
		list = next
	}
	for len(list) > 0 && list[len(list)-1].Sign() == 0 {
		list = list[:len(list)-1]
	}
	return list
}

// At is the polynomial's value.
func (p Polynomial) At(n *big.Rat) *big.Rat {
	sum := new(big.Rat)
	for i := len(p) - 1; i >= 0; i-- {
		sum.Add(sum.Mul(sum, n), p[i])
	}
	return sum
}

// Text writes the polynomial in a parameter of that name, the highest power first:
// "1/4*n^2 + n".
func (p Polynomial) Text(parameter string) string {
	text := ""
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].Sign() == 0 {
			continue
		}
		c := new(big.Rat).Abs(p[i]).RatString()
		switch {
		case text == "" && p[i].Sign() < 0:
			text = "-"
		case text != "" && p[i].Sign() < 0:
			text += " - "
		case text != "":
			text += " + "
		}
		switch {
		case i == 0:
			text += c
			continue
		case c != "1":
			text += c + "*"
		}
		text += parameter
		if i > 1 {
			text += "^" + strconv.Itoa(i)
		}
	}
	if text == "" {
		return "0"
	}
	return text
}
