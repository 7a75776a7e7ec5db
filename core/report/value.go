package report

import (
	"cmp"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Value is the content of a table cell, for example a count, a real number, a ratio or a text.
type Value struct {
	_        incomparable
	kind     kind
	signed   bool // whether the value is a difference, which is shown with its sign
	negative bool // whether the number in count is negative
	changed  bool // whether the value is a relative difference, and not a difference between shares
	list     bool // whether the text is a comma-separated list
	about    bool // whether the number is an estimate even if it is whole

	count uint64
	real  float64
	text  string
}

// incomparable makes a struct type incomparable. If a type is comparable, the compiler generates a
// comparison function for each length of arrays of this type that occurs in literals. Such
// comparison functions occupied 57 KB of the page's program.
type incomparable = [0]func()

type kind uint8

const (
	textKind kind = iota
	countKind
	realKind
	ratioKind
	yesNoKind
	noneKind
	bytesKind
	decimalKind
)

// TextOf returns a name or a sentence as a value.
func TextOf(s string) Value { return Value{kind: textKind, text: s} }

// ListOf returns a comma-separated list as a value. In human-readable form, only the first items
// and the number of remaining items are shown.
func ListOf(s string) Value { return Value{kind: textKind, text: s, list: true} }

// abbreviate abbreviates a list that is too long for a table.
func abbreviate(list string) string {
	const most = 40 // maximum length of the shown items, in characters
	if len(list) <= most {
		return list
	}
	end := strings.IndexByte(list[most:], ',')
	if end < 0 {
		return list
	}
	end += most
	return list[:end] + " and " + groupDigits(strconv.Itoa(strings.Count(list[end:], ","))) + " more"
}

// Count returns a whole number as a value, which is shown exactly.
func Count(n uint64) Value { return Value{kind: countKind, count: n} }

// Known is like Count, but 0 means that the count is unknown.
func Known(n uint64) Value {
	if n == 0 {
		return None()
	}
	return Count(n)
}

// Real returns a computed number as a value. Whole numbers are shown exactly. Other numbers are
// shown as ≈ and the nearest whole number, and have three decimals in machine-readable form.
func Real(x float64) Value { return Value{kind: realKind, real: x} }

// About is like Real, for a number that is an estimate even if it is whole.
func About(x float64) Value { return Value{kind: realKind, real: x, about: true} }

// Ratio returns a share from 0 to 1 as a value. In human-readable form, the share is shown as a
// percentage.
func Ratio(x float64) Value { return Value{kind: ratioKind, real: x} }

// Share returns the ratio of a part to the whole, or 0 if the whole is 0.
func Share(part, whole uint64) Value {
	if whole == 0 {
		return Ratio(0)
	}
	return Ratio(float64(part) / float64(whole))
}

// Quotient returns the ratio of a part to the whole, or 0 if the whole is 0.
func Quotient(part, whole float64) Value {
	if whole == 0 {
		return Ratio(0)
	}
	return Ratio(part / whole)
}

// Decimal returns a number with a fraction as a value. The human-readable form has three
// significant digits, and the machine-readable form has all digits.
func Decimal(x float64) Value { return Value{kind: decimalKind, real: x} }

// YesNo returns a Boolean as a value.
func YesNo(yes bool) Value {
	v := Value{kind: yesNoKind}
	if yes {
		v.count = 1
	}
	return v
}

// Bytes returns a size as a value. In human-readable form, the size is shown with a binary prefix,
// and rounded to three digits unless the size is a whole number of units. In machine-readable form,
// the size is the exact number of bytes.
func Bytes(n uint64) Value { return Value{kind: bytesKind, count: n} }

// None returns a missing value. A missing value is shown as a dash in human-readable form, as an
// empty cell in CSV, and as null in JSON.
func None() Value { return Value{kind: noneKind} }

// IsNone reports whether a value is missing.
func (v Value) IsNone() bool { return v.kind == noneKind }

// IsNumber reports whether v is a number. Only numbers are right-aligned.
func (v Value) IsNumber() bool {
	return v.kind == countKind || v.kind == bytesKind || v.kind == realKind || v.kind == ratioKind || v.kind == decimalKind
}

// Words defines a custom style for human-readable values.
type Words struct {
	Count       func(uint64) string  // formats a whole number
	Size        func(uint64) string  // formats a size in bytes; if nil, Count is used
	Real, Share func(float64) string // Share formats a number from 0 to 1
	Decimal     func(float64) string // formats decimal numbers; if nil, Real is used
}

// Shown formats the value in human-readable form, in the style w.
func (v Value) Shown(w Words) string {
	if v.signed {
		return v.withSign(func(m Value) string { return m.Shown(w) })
	}
	switch v.kind {
	case bytesKind:
		if w.Size != nil {
			return w.Size(v.count)
		}
		fallthrough
	case countKind:
		return w.Count(v.count)
	case decimalKind:
		if w.Decimal != nil {
			return w.Decimal(v.real)
		}
		fallthrough
	case realKind:
		return w.Real(v.real)
	case ratioKind:
		return w.Share(v.real)
	}
	return v.Human()
}

// Human formats the value in human-readable form.
func (v Value) Human() string {
	if v.signed {
		return v.withSign(Value.Human)
	}
	switch v.kind {
	case countKind:
		return groupDigits(strconv.FormatUint(v.count, 10))
	case realKind:
		if nearest := math.Round(v.real); nearest != v.real || v.about {
			return "≈" + groupDigits(strconv.FormatFloat(nearest, 'f', 0, 64))
		}
		return groupDigits(v.formatReal())
	case ratioKind:
		if v.changed {
			return groupDigits(threeDigits(100*v.real)) + " %"
		}
		return strconv.FormatFloat(100*v.real, 'f', 3, 64) + " %"
	case decimalKind:
		return groupDigits(threeDigits(v.real))
	case yesNoKind:
		if v.count == 1 {
			return "yes"
		}
		return "no"
	case noneKind:
		return "–"
	case bytesKind:
		return binarySize(v.count)
	}
	if v.list {
		return abbreviate(v.text)
	}
	return v.text
}

// Plain formats the value in machine-readable form, without quotes.
func (v Value) Plain() string {
	switch v.kind {
	case countKind, bytesKind:
		if v.negative {
			return "-" + strconv.FormatUint(v.count, 10)
		}
		return strconv.FormatUint(v.count, 10)
	case realKind:
		return v.formatReal()
	case ratioKind:
		return strconv.FormatFloat(v.real, 'g', -1, 64)
	case decimalKind:
		return strconv.FormatFloat(v.real, 'f', -1, 64)
	case yesNoKind:
		return strconv.FormatBool(v.count == 1)
	case noneKind:
		return ""
	}
	return v.text
}

// threeDigits formats x with three significant digits.
func threeDigits(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return "0"
	}
	return strconv.FormatFloat(x, 'f', max(0, 2-int(math.Floor(math.Log10(math.Abs(x))))), 64)
}

// Compare compares values for sorted tables: numbers are in descending order, texts are in
// ascending order, and missing values are last.
func Compare(x, y Value) int {
	if x.kind == noneKind || y.kind == noneKind {
		return cmp.Compare(y.rank(), x.rank())
	}
	if c := cmp.Compare(y.sortKey(), x.sortKey()); c != 0 {
		return c
	}
	counts := cmp.Compare(y.count, x.count)
	if x.negative && y.negative {
		counts = -counts
	}
	return cmp.Or(counts, cmp.Compare(x.text, y.text))
}

// Equal reports whether two values are equal and of the same kind.
func Equal(x, y Value) bool { return x.kind == y.kind && Compare(x, y) == 0 }

func (v Value) rank() int {
	if v.kind == noneKind {
		return 0
	}
	return 1
}

// sortKey returns the number by which a value is sorted. Counts that exceed the precision of a
// float64 are also compared exactly.
func (v Value) sortKey() float64 {
	if v.kind == countKind || v.kind == bytesKind || v.kind == yesNoKind {
		if v.negative {
			return -float64(v.count)
		}
		return float64(v.count)
	}
	return v.real
}

// formatReal formats a real number: without decimals if it is an integer, otherwise with three
// decimals.
func (v Value) formatReal() string {
	if v.real == math.Trunc(v.real) && math.Abs(v.real) < 1<<63 {
		return strconv.FormatFloat(v.real, 'f', 0, 64)
	}
	return strconv.FormatFloat(v.real, 'f', 3, 64)
}

// groupDigits inserts commas as thousands separators before the decimal point.
func groupDigits(digits string) string {
	whole, _, _ := strings.Cut(digits, ".")
	rest := digits[len(whole):]
	whole, negative := strings.CutPrefix(whole, "-")
	var out []byte
	if negative {
		out = append(out, '-')
	}
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, whole[i])
	}
	return string(out) + rest
}

// binarySize formats a number of bytes in human-readable form, for example 64 B, 32 KiB or 48.1
// KiB.
func binarySize(bytes uint64) string {
	const units = "KMGTPE"
	if bytes < 1024 {
		return strconv.FormatUint(bytes, 10) + " B"
	}
	unit := (bits.Len64(bytes) - 1) / 10
	whole := uint64(1) << (10 * unit)
	digits := 0
	if bytes%whole != 0 {
		digits = max(0, 3-len(strconv.FormatUint(bytes/whole, 10)))
	}
	return strconv.FormatFloat(float64(bytes)/float64(whole), 'f', digits, 64) + " " + units[unit-1:unit] + "iB"
}

// Difference returns b - a as a value that is shown with its sign. Differences of whole numbers are
// exact, and differences of ratios are in percentage points. The numbers may themselves be
// differences. The result is [None] if a or b is not a number, if a or b is a relative difference, or
// if the difference of whole numbers is 2^64 or more.
func Difference(a, b Value) Value {
	switch {
	case !a.IsNumber() || !b.IsNumber() || a.changed || b.changed:
		return None()
	case a.isWhole() && b.isWhole():
		d := Value{kind: countKind, signed: true}
		if a.kind == bytesKind && b.kind == bytesKind {
			d.kind = bytesKind
		}
		var carry uint64
		switch {
		case a.negative != b.negative:
			d.negative = b.negative
			if d.count, carry = bits.Add64(a.count, b.count, 0); carry != 0 {
				return None()
			}
		case a.count <= b.count:
			d.count, d.negative = b.count-a.count, b.negative && a.count < b.count
		default:
			d.count, d.negative = a.count-b.count, !b.negative
		}
		return d
	}
	kind := a.kind
	if a.isWhole() {
		kind = b.kind
	}
	return Value{kind: kind, signed: true, real: b.sortKey() - a.sortKey()}
}

// Change returns the relative difference (b - a) / a as a value that is shown with its sign. The
// result is [None] if a is 0 and b is not, or if a or b is not a number.
func Change(a, b Value) Value {
	d := Difference(a, b)
	if d.kind == noneKind {
		return d
	}
	share := d.sortKey() / math.Abs(a.sortKey())
	if a.sortKey() == 0 {
		if b.sortKey() != 0 {
			return None()
		}
		share = 0
	}
	return Value{kind: ratioKind, signed: true, changed: true, real: share}
}

// Number returns the value as a number. The result ok is false if the value is not a number.
func (v Value) Number() (x float64, ok bool) {
	if !v.IsNumber() {
		return 0, false
	}
	return v.sortKey(), true
}

func (v Value) isWhole() bool { return v.kind == countKind || v.kind == bytesKind }

// zeroOfKind returns 0 as a value of the same kind as v.
func (v Value) zeroOfKind() Value {
	if !v.IsNumber() {
		return None()
	}
	return Value{kind: v.kind}
}

// magnitude returns the absolute value of a difference.
func (v Value) magnitude() Value {
	v.negative, v.real = false, math.Abs(v.real)
	return v
}

// withSign formats a difference: its sign, followed by its magnitude, which the function "write"
// formats.
func (v Value) withSign(write func(Value) string) string {
	m := v.magnitude()
	m.signed = false
	text := write(m)
	if whole, isShare := strings.CutSuffix(text, "%"); isShare && !v.changed {
		text = strings.TrimRight(whole, " \u202f") + " points"
	}
	switch size := v.sortKey(); {
	case size < 0:
		return "-" + text
	case size > 0:
		return "+" + text
	}
	return text
}
