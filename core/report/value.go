package report

import (
	"math"
	"strconv"
)

// Value is one cell: a count, a measured number, a ratio or a text.
type Value struct {
	kind  kind
	count uint64
	real  float64
	text  string
}

type kind uint8

const (
	textKind kind = iota
	countKind
	realKind
	ratioKind
	yesNoKind
	noneKind
)

// TextOf is a name or a sentence.
func TextOf(s string) Value { return Value{kind: textKind, text: s} }

// Count is a whole number, shown exactly.
func Count(n uint64) Value { return Value{kind: countKind, count: n} }

// Real is a number that need not be whole, shown with three decimals at most.
// A whole one is shown, and written in JSON, as a whole number.
func Real(x float64) Value { return Value{kind: realKind, real: x} }

// Ratio is a share from 0 to 1: a percentage for people, the plain number for
// programs.
func Ratio(x float64) Value { return Value{kind: ratioKind, real: x} }

// YesNo is a truth value.
func YesNo(yes bool) Value {
	v := Value{kind: yesNoKind}
	if yes {
		v.count = 1
	}
	return v
}

// None is a value that there is not: a dash for people, empty in CSV, null in
// JSON.
func None() Value { return Value{kind: noneKind} }

func (v Value) isNumber() bool {
	return v.kind == countKind || v.kind == realKind || v.kind == ratioKind
}

// human is the value for people.
func (v Value) human() string {
	switch v.kind {
	case countKind:
		return group(strconv.FormatUint(v.count, 10))
	case realKind:
		return group(v.decimal())
	case ratioKind:
		return strconv.FormatFloat(100*v.real, 'f', 3, 64) + " %"
	case yesNoKind:
		if v.count == 1 {
			return "yes"
		}
		return "no"
	case noneKind:
		return "–"
	}
	return v.text
}

// plain is the value for programs, without quotes.
func (v Value) plain() string {
	switch v.kind {
	case countKind:
		return strconv.FormatUint(v.count, 10)
	case realKind:
		return v.decimal()
	case ratioKind:
		return strconv.FormatFloat(v.real, 'g', -1, 64)
	case yesNoKind:
		return strconv.FormatBool(v.count == 1)
	}
	return v.text
}

// decimal writes a real number: whole if it is whole, else to a thousandth.
func (v Value) decimal() string {
	if v.real == math.Trunc(v.real) && math.Abs(v.real) < 1<<63 {
		return strconv.FormatFloat(v.real, 'f', 0, 64)
	}
	return strconv.FormatFloat(v.real, 'f', 3, 64)
}

// group puts commas between thousands of the digits before a point.
func group(digits string) string {
	whole, rest := digits, ""
	for i := range digits {
		if digits[i] == '.' {
			whole, rest = digits[:i], digits[i:]
			break
		}
	}
	sign := ""
	if len(whole) > 0 && whole[0] == '-' {
		sign, whole = "-", whole[1:]
	}
	var out []byte
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, whole[i])
	}
	return sign + string(out) + rest
}
