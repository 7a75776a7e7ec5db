package blocks

import (
	"math/big"
	"strconv"
)

// expression is a formula of numbers and parameters, with the functions min, max, floor and ceil:
//
//	sum     = product { ("+" | "-") product }
//	product = power { ("*" | "/") power }
//	power   = ["-"] atom ["^" power]
//	atom    = number | name | name "(" sum { "," sum } ")" | "(" sum ")"
//
// Decimal numbers are exact.
type expression struct {
	// one of + - * / ^, or 'n' (number), 'p' (parameter), 'm' (min), 'M' (max), 'f' (floor), 'c'
	// (ceil), '~' (unary minus)
	operator byte
	number   *big.Rat
	name     string
	of       []*expression
}

// maxDepth limits the nesting depth of an expression. maxDigits limits the digits of each number in
// an expression.
const (
	maxDepth  = 100
	maxDigits = 200
)

type formula struct {
	text  string
	at    int
	depth int
	why   string
}

func (f *formula) fail(why string) *expression {
	if f.why == "" {
		f.why = why
	}
	f.at = len(f.text)
	return &expression{operator: 'n', number: new(big.Rat)}
}

// parseExpression parses an expression. If the text is invalid, the result "problem" is an error
// message; otherwise, it is "".
func parseExpression(text string) (e *expression, problem string) {
	f := &formula{text: text}
	e = f.sum()
	if f.why == "" && f.peek() != 0 {
		f.fail("cannot read " + strconv.Quote(f.text[f.at:]) + ", want an operator")
	}
	return e, f.why
}

func (f *formula) peek() byte {
	for f.at < len(f.text) && (f.text[f.at] == ' ' || f.text[f.at] == '\t') {
		f.at++
	}
	if f.at < len(f.text) {
		return f.text[f.at]
	}
	return 0
}

func (f *formula) sum() *expression {
	if f.depth++; f.depth > maxDepth {
		return f.fail("more than " + strconv.Itoa(maxDepth) + " nested parentheses")
	}
	e := f.product()
	for b := f.peek(); b == '+' || b == '-'; b = f.peek() {
		f.at++
		e = &expression{operator: b, of: []*expression{e, f.product()}}
	}
	f.depth--
	return e
}

func (f *formula) product() *expression {
	e := f.power()
	for b := f.peek(); b == '*' || b == '/'; b = f.peek() {
		f.at++
		e = &expression{operator: b, of: []*expression{e, f.power()}}
	}
	return e
}

func (f *formula) power() *expression {
	if f.depth++; f.depth > maxDepth {
		return f.fail("more than " + strconv.Itoa(maxDepth) + " nested signs and powers")
	}
	defer func() { f.depth-- }()
	if f.peek() == '-' {
		f.at++
		return &expression{operator: '~', of: []*expression{f.power()}}
	}
	e := f.atom()
	if f.peek() == '^' {
		f.at++
		e = &expression{operator: '^', of: []*expression{e, f.power()}}
	}
	return e
}

func (f *formula) atom() *expression {
	switch b := f.peek(); {
	case b == '(':
		f.at++
		e := f.sum()
		f.close()
		return e
	case '0' <= b && b <= '9' || b == '.':
		return f.number()
	case isNameStart(b):
		return f.named()
	case b == 0:
		return f.fail("the expression ends where a number was expected")
	}
	return f.fail("cannot read " + strconv.Quote(f.text[f.at:]) + ", want a number, a parameter or a parenthesis")
}

func (f *formula) close() {
	if f.peek() != ')' {
		f.fail("an opening parenthesis has no closing parenthesis")
		return
	}
	f.at++
}

func (f *formula) number() *expression {
	from := f.at
	for f.at < len(f.text) && ('0' <= f.text[f.at] && f.text[f.at] <= '9' || f.text[f.at] == '.') {
		f.at++
	}
	text := f.text[from:f.at]
	if len(text) > maxDigits {
		return f.fail("a number has more than " + strconv.Itoa(maxDigits) + " digits")
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return f.fail(strconv.Quote(text) + " is not a number")
	}
	return &expression{operator: 'n', number: n}
}

func isNameStart(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' || b == '_' }

func (f *formula) named() *expression {
	from := f.at
	for f.at < len(f.text) && (isNameStart(f.text[f.at]) || '0' <= f.text[f.at] && f.text[f.at] <= '9') {
		f.at++
	}
	name := f.text[from:f.at]
	if f.peek() != '(' {
		return &expression{operator: 'p', name: name}
	}
	f.at++
	e := &expression{of: []*expression{f.sum()}}
	for f.peek() == ',' {
		f.at++
		e.of = append(e.of, f.sum())
	}
	f.close()
	switch {
	case name == "min" && len(e.of) > 1:
		e.operator = 'm'
	case name == "max" && len(e.of) > 1:
		e.operator = 'M'
	case name == "floor" && len(e.of) == 1:
		e.operator = 'f'
	case name == "ceil" && len(e.of) == 1:
		e.operator = 'c'
	default:
		return f.fail("there is no function " + name + " with " + strconv.Itoa(len(e.of)) + " arguments, want min, max, floor or ceil")
	}
	return e
}

// isName reports whether text can be the name of a parameter.
func isName(text string) bool {
	f := &formula{text: text}
	if !isNameStart(f.peek()) || text == "rest" || text == "trip" {
		return false
	}
	e := f.named()
	return f.why == "" && e.operator == 'p' && f.at == len(text)
}

// value returns the value of the expression. It calls getParameter for each parameter in the
// expression. If there is an error, the result "problem" is an error message; otherwise, it is "".
func (e *expression) value(getParameter func(name string) (*big.Rat, string)) (v *big.Rat, problem string) {
	switch e.operator {
	case 'n':
		return e.number, ""
	case 'p':
		return getParameter(e.name)
	}
	values := make([]*big.Rat, len(e.of))
	for i, of := range e.of {
		if values[i], problem = of.value(getParameter); problem != "" {
			return nil, problem
		}
	}
	v, problem = e.apply(values)
	if problem == "" && (v.Num().BitLen() > 1<<16 || v.Denom().BitLen() > 1<<16) {
		problem = "the value of the expression has more than 65,536 bits"
	}
	return v, problem
}

func (e *expression) apply(of []*big.Rat) (v *big.Rat, why string) {
	v = new(big.Rat)
	switch e.operator {
	case '~':
		v.Neg(of[0])
	case '+':
		v.Add(of[0], of[1])
	case '-':
		v.Sub(of[0], of[1])
	case '*':
		v.Mul(of[0], of[1])
	case '/':
		if of[1].Sign() == 0 {
			return nil, "division by 0"
		}
		v.Quo(of[0], of[1])
	case '^':
		return power(of[0], of[1])
	case 'f', 'c':
		q, r := new(big.Int).DivMod(of[0].Num(), of[0].Denom(), new(big.Int))
		if e.operator == 'c' && r.Sign() != 0 {
			q.Add(q, big.NewInt(1))
		}
		v.SetInt(q)
	case 'm', 'M':
		v = of[0]
		for _, x := range of[1:] {
			if c := x.Cmp(v); c < 0 && e.operator == 'm' || c > 0 && e.operator == 'M' {
				v = x
			}
		}
	}
	return v, ""
}

func power(base, exponent *big.Rat) (*big.Rat, string) {
	const most = 1000
	if !exponent.IsInt() || new(big.Rat).Abs(exponent).Cmp(big.NewRat(most, 1)) > 0 {
		return nil, "the exponent is " + exponent.RatString() + ", want a whole number up to " + strconv.Itoa(most)
	}
	n := exponent.Num().Int64()
	if n < 0 && base.Sign() == 0 {
		return nil, "division by 0"
	}
	e := big.NewInt(max(n, -n))
	if base.Num().BitLen()*int(e.Int64()) > 1<<16 || base.Denom().BitLen()*int(e.Int64()) > 1<<16 {
		return nil, "the value of the expression has more than 65,536 bits"
	}
	v := new(big.Rat).SetFrac(new(big.Int).Exp(base.Num(), e, nil), new(big.Int).Exp(base.Denom(), e, nil))
	if n < 0 {
		v.Inv(v)
	}
	return v, ""
}
