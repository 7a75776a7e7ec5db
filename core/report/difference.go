package report

import (
	"math"
	"math/bits"
	"strings"
)

// Difference is b - a: exact of whole numbers, in percentage points of ratios,
// and nothing ([None]) where one of them is no number. It is written with its
// sign.
func Difference(a, b Value) Value {
	switch {
	case !a.IsNumber() || !b.IsNumber() || a.signed || b.signed:
		return None()
	case a.isWhole() && b.isWhole():
		d := Value{kind: countKind, signed: true}
		if a.kind == bytesKind && b.kind == bytesKind {
			d.kind = bytesKind
		}
		var borrow uint64
		if d.count, borrow = bits.Sub64(b.count, a.count, 0); borrow != 0 {
			d.count, d.negative = a.count-b.count, true
		}
		return d
	}
	kind := a.kind
	if a.isWhole() {
		kind = b.kind
	}
	return Value{kind: kind, signed: true, real: b.size() - a.size()}
}

// Change is the difference of a and b as a share of a, with its sign: nothing
// where a is 0 and b is not, and where there is no difference to tell.
func Change(a, b Value) Value {
	d := Difference(a, b)
	if d.kind == noneKind {
		return d
	}
	share := d.size() / math.Abs(a.size())
	if a.size() == 0 {
		if b.size() != 0 {
			return None()
		}
		share = 0
	}
	return Value{kind: ratioKind, signed: true, changed: true, real: share}
}

// Number is the value as a number; ok is false of what is none.
func (v Value) Number() (x float64, ok bool) {
	if !v.IsNumber() {
		return 0, false
	}
	return v.size(), true
}

func (v Value) isWhole() bool { return v.kind == countKind || v.kind == bytesKind }

// zero is nothing of what v measures.
func (v Value) zero() Value {
	if !v.IsNumber() {
		return None()
	}
	return Value{kind: v.kind}
}

// magnitude is a difference without its sign.
func (v Value) magnitude() Value {
	v.negative, v.real = false, math.Abs(v.real)
	return v
}

// withSign writes a difference: the sign, and the magnitude as write has it.
func (v Value) withSign(write func(Value) string) string {
	m := v.magnitude()
	m.signed = false
	text := write(m)
	if whole, isShare := strings.CutSuffix(text, "%"); isShare && !v.changed {
		text = strings.TrimRight(whole, " \u202f") + " points"
	}
	switch size := v.size(); {
	case size < 0:
		return "-" + text
	case size > 0:
		return "+" + text
	}
	return text
}
