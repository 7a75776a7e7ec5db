package ir

import "strconv"

// lanes writes the call that records the references of a masked access.
func (e *emitter) lanes(l *lanes) {
	mask := e.mask(l)
	if l.packed {
		mask = e.ones(mask)
	}
	function, where := "@__sg_masked", ""
	if l.scattered {
		e.need.lanes = true
		function, where = "@__sg_lanes", e.word+" "+e.addresses(l)
	} else {
		e.need.masked = true
		where = "i64 " + e.value(&recipe{how: asPointer, of: l.address})
	}
	e.put("  call void ", function, "(", e.block(l.number), ", ", where, ", i64 ", mask,
		", i32 ", decimal(l.count), ", i32 ", decimal(l.elem.bytes), ")\n")
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// mask converts the lanes' mask to an i64, with bit 0 for the first lane.
func (e *emitter) mask(l *lanes) string {
	bits, typeText, text := l.mask.typ.count, l.mask.typeText, l.mask.text
	if l.signs {
		typeText, text = e.signs(l)
	}
	v := e.compute("bitcast ", typeText, " ", text, " to i", decimal(bits))
	if bits < 64 {
		v = e.compute("zext i", decimal(bits), " ", v, " to i64")
	}
	if bits > l.count { // of a vector of which only the low lanes count
		v = e.compute("and i64 ", v, ", ", decimal(1<<l.count-1))
	}
	return v
}

// signs makes a vector of the sign bits of a vector of integers or floats.
func (e *emitter) signs(l *lanes) (typeText, text string) {
	t := l.mask.typ
	ints := "<" + decimal(t.count) + " x i" + decimal(t.elem.bits) + ">"
	text = l.mask.text
	if t.elem.kind == floatType {
		text = e.compute("bitcast ", l.mask.typeText, " ", text, " to ", ints)
	}
	return "<" + decimal(t.count) + " x i1>", e.compute("icmp slt ", ints, " ", text, ", zeroinitializer")
}

// ones makes as many low ones as the mask has, because the active lanes of an expanding load or
// compressing store lie side by side.
func (e *emitter) ones(mask string) string {
	e.need.ones = true
	n := e.compute("call i64 @llvm.ctpop.i64(i64 ", mask, ")")
	wide := e.compute("zext i64 ", n, " to i128") // for 64 of them
	high := e.compute("shl i128 -1, ", wide)
	return e.compute("trunc i128 ", e.compute("xor i128 ", high, ", -1"), " to i64")
}

// lanesArray returns the name of the function's array for the addresses of lanes.
func (e *emitter) lanesArray() string { return e.name("l", 0) }

// addresses stores each lane's address in the array, and returns it.
func (e *emitter) addresses(l *lanes) string {
	base := ""
	if l.index.typ != nil {
		base = e.value(&recipe{how: asPointer, of: l.address})
	}
	array := e.m.pointerTo("[" + decimal(e.widest) + " x i64]")
	list := e.compute("bitcast ", array, " ", e.lanesArray(), " to ", e.word)
	for i := range l.count {
		address := e.laneAddress(l, base, i)
		at := e.compute("getelementptr i64, ", e.word, " ", list, ", i64 ", decimal(i))
		e.put("  store i64 ", address, ", ", e.word, " ", at, "\n")
	}
	return list
}

// laneAddress returns the address of lane i: base + index · scale, or the pointer itself.
func (e *emitter) laneAddress(l *lanes, base string, i uint64) string {
	if base == "" {
		v := e.compute("extractelement ", l.address.typeText, " ", l.address.text, ", i32 ", decimal(i))
		return e.compute("ptrtoint ", elementText(l.address), " ", v, " to i64")
	}
	v := e.compute("extractelement ", l.index.typeText, " ", l.index.text, ", i32 ", decimal(i))
	if bits := l.index.typ.elem.bits; bits < 64 {
		v = e.compute("sext i", decimal(bits), " ", v, " to i64")
	}
	scaled := e.compute("mul i64 ", v, ", ", e.widen(&l.scale))
	return e.compute("add i64 ", scaled, ", ", base)
}

// elementText returns the type of a vector's elements in the module's notation.
func elementText(o operand) string {
	c := cursor{text: o.typeText, at: 1}
	c.word()
	c.wantWord("x")
	c.space()
	return o.typeText[c.at : len(o.typeText)-1]
}
