package ir

import "strconv"

// lanes writes the call that tells the references of a masked access.
func (e *emitter) lanes(l *lanes) {
	mask := e.mask(l)
	function := "@__sg_masked"
	var where any
	if l.scattered {
		e.need.lanes = true
		function, where = "@__sg_lanes", e.addresses(l)
	} else {
		e.need.masked = true
		where = e.value(&recipe{how: asPointer, of: l.address})
	}
	if l.packed {
		mask = e.ones(mask)
	}
	e.put("  call void ", function, "(", e.block(l.number), ", ", e.whereType(l), " ", where, ", i64 ", mask,
		", i32 ", l.count, ", i32 ", l.elem.bytes, ")\n")
}

func (e *emitter) whereType(l *lanes) string {
	if l.scattered {
		return e.word
	}
	return "i64"
}

// mask makes the lanes' mask an i64, bit 0 of the first lane.
func (e *emitter) mask(l *lanes) any {
	bits, typeText, text := l.mask.typ.count, l.mask.typeText, any(l.mask.text)
	if l.signs {
		typeText, text = e.signs(l)
	}
	v := e.fresh()
	e.put("  ", v, " = bitcast ", typeText, " ", text, " to i", bits, "\n")
	if bits < 64 {
		narrow := v
		v = e.fresh()
		e.put("  ", v, " = zext i", bits, " ", narrow, " to i64\n")
	}
	if bits > l.count { // of a vector of which only the low lanes count
		all := v
		v = e.fresh()
		e.put("  ", v, " = and i64 ", all, ", ", uint64(1)<<l.count-1, "\n")
	}
	return v
}

// signs makes a vector of the sign bits of a vector of integers or floats.
func (e *emitter) signs(l *lanes) (typeText string, text any) {
	t := l.mask.typ
	text = l.mask.text
	if t.elem.kind == floatType {
		v := e.fresh()
		e.put("  ", v, " = bitcast ", l.mask.typeText, " ", text, " to <", t.count, " x i", t.elem.bits, ">\n")
		text = v
	}
	v := e.fresh()
	e.put("  ", v, " = icmp slt <", t.count, " x i", t.elem.bits, "> ", text, ", zeroinitializer\n")
	return e.vectorOf(t.count, "i1"), v
}

func (e *emitter) vectorOf(count uint64, elem string) string {
	return "<" + strconv.FormatUint(count, 10) + " x " + elem + ">"
}

// ones makes as many low ones as the mask has: the active lanes of an expanding
// load or compressing store lie side by side.
func (e *emitter) ones(mask any) any {
	e.need.ones = true
	n, wide, high, low, v := e.fresh(), e.fresh(), e.fresh(), e.fresh(), e.fresh()
	e.put("  ", n, " = call i64 @llvm.ctpop.i64(i64 ", mask, ")\n",
		"  ", wide, " = zext i64 ", n, " to i128\n",
		"  ", high, " = shl i128 -1, ", wide, "\n",
		"  ", low, " = xor i128 ", high, ", -1\n",
		"  ", v, " = trunc i128 ", low, " to i64\n")
	return v
}

// addresses stores each lane's address to the function's array for them, and
// gives that.
func (e *emitter) addresses(l *lanes) any {
	base := any(nil)
	if l.index.typ != nil {
		base = e.value(&recipe{how: asPointer, of: l.address})
	}
	var list any
	array := e.fresh()
	// The array has room for the function's widest access; its type is opaque here.
	e.put("  ", array, " = bitcast ", e.arrayType(), " ", name{'l', 0}, " to ", e.word, "\n")
	list = array
	for i := range l.count {
		v := e.laneAddress(l, base, i)
		at := e.fresh()
		e.put("  ", at, " = getelementptr i64, ", e.word, " ", array, ", i64 ", i, "\n",
			"  store i64 ", v, ", ", e.word, " ", at, ", align 8\n")
	}
	return list
}

func (e *emitter) arrayType() string {
	if e.m.typed {
		return "[" + strconv.FormatUint(e.widest, 10) + " x i64]*"
	}
	return "ptr"
}

// laneAddress is the address of lane i: base + index · scale, or the pointer
// itself.
func (e *emitter) laneAddress(l *lanes, base any, i uint64) any {
	v := e.fresh()
	if base == nil {
		pointerText := e.elementText(l.address)
		n := e.fresh()
		e.put("  ", v, " = extractelement ", l.address.typeText, " ", l.address.text, ", i32 ", i, "\n",
			"  ", n, " = ptrtoint ", pointerText, " ", v, " to i64\n")
		return n
	}
	e.put("  ", v, " = extractelement ", l.index.typeText, " ", l.index.text, ", i32 ", i, "\n")
	if bits := l.index.typ.elem.bits; bits < 64 {
		wide := e.fresh()
		e.put("  ", wide, " = sext i", bits, " ", v, " to i64\n")
		v = wide
	}
	scaled, sum := e.fresh(), e.fresh()
	e.put("  ", scaled, " = mul i64 ", v, ", ", e.widen(&l.scale), "\n",
		"  ", sum, " = add i64 ", scaled, ", ", base, "\n")
	return sum
}

// elementText is the type of a vector's elements as the module writes it.
func (e *emitter) elementText(o operand) string {
	c := cursor{text: o.typeText, at: 1}
	c.word()
	c.wantWord("x")
	c.space()
	return o.typeText[c.at : len(o.typeText)-1]
}
