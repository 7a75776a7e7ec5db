package ir

import (
	"slices"
	"strconv"
	"strings"
)

// emitter writes functions with their recording code. Its own names begin with
// a prefix that occurs nowhere else in the module, so that they neither clash
// nor take part in the numbering of unnamed values.
type emitter struct {
	m      *module
	out    []byte
	done   int // how far the module's text has been copied
	prefix string
	serial int       // makes names unique
	word   string    // a pointer to a word: "i64*" or "ptr"
	words  string    // a pointer to such a pointer
	fields [3]string // addresses of the fields of the thread's state
	more   string    // how __sg_more is called
	// The compiler of the runtime may take the register of results for one that
	// __sg_more may change, where the module's takes it for one that is kept.
	clobber string
	widest  uint64 // most lanes of the function's gathers and scatters
	need    needs
}

// needs are declarations that the recording code relies on.
type needs struct {
	frame, ones, masked, lanes bool
}

func newEmitter(m *module, prefix string) *emitter {
	e := &emitter{m: m, prefix: prefix, word: "ptr", words: "ptr"}
	if m.typed {
		e.word, e.words = "i64*", "i64**"
	}
	thread := "%" + prefix + "thread"
	for i := range e.fields {
		e.fields[i] = "getelementptr inbounds (" + thread + ", " + m.pointerTo(thread) + " @__sg_thread, i32 0, i32 " + strconv.Itoa(i) + ")"
	}
	if !m.typed {
		e.fields[0] = "@__sg_thread"
	}
	e.more = "void @__sg_more(i64"
	if keepsRegisters(m.triple) {
		e.more = "preserve_mostcc " + e.more
	}
	if strings.HasPrefix(m.triple, "x86_64") {
		e.clobber = "  call void asm sideeffect \"\", \"~{rax}\"()\n"
	}
	return e
}

// put appends text; integers are written in decimal.
func (e *emitter) put(parts ...any) {
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			e.out = append(e.out, part...)
		case int:
			e.out = strconv.AppendInt(e.out, int64(part), 10)
		case uint32:
			e.out = strconv.AppendUint(e.out, uint64(part), 10)
		case uint64:
			e.out = strconv.AppendUint(e.out, part, 10)
		case name:
			e.out = append(append(append(e.out, '%'), e.prefix...), part.kind)
			e.out = strconv.AppendUint(e.out, uint64(part.number), 10)
		}
	}
}

// name is a local name of the recording code.
type name struct {
	kind   byte
	number uint32
}

// fresh is a name that was not there before.
func (e *emitter) fresh() name {
	e.serial++
	return name{'v', uint32(e.serial)}
}

// copyTo copies the module's text up to at.
func (e *emitter) copyTo(at int) {
	e.out = append(e.out, e.m.text[e.done:at]...)
	e.done = at
}

// function writes a function with its recording code.
func (e *emitter) function(p *plan) {
	e.done, e.widest = p.f.from, p.widest
	for b := range p.f.blocks {
		e.basicBlock(p, int32(b))
	}
	e.copyTo(p.f.to)
}

func (e *emitter) basicBlock(p *plan, basic int32) {
	f := p.f
	b := &f.blocks[basic]
	before := "%" + b.label // the label of the IR's basic block that is being written
	for i := b.first; i < b.header; i++ {
		e.renameLabels(p, &f.insts[i], basic)
	}
	if basic == 0 {
		e.hoist(p)
	}
	end := p.tails[basic]
	for i := p.heads[basic]; i <= end; i++ {
		e.piece(p, i, &before)
	}
	if edge := p.edges[basic]; edge >= 0 {
		e.edge(p, edge)
	}
}

// renameLabels copies a phi. The blocks that it names end in other labels now.
func (e *emitter) renameLabels(p *plan, in *inst, basic int32) {
	if in.op != opPhi {
		return
	}
	for _, r := range p.f.refs[in.refs:in.refsEnd] {
		e.copyTo(int(r.from) - 1)
		from := p.f.blockOf[r.label]
		last := p.tails[from]
		if edge := p.edges[from]; edge >= 0 && p.goesOnAt(from) == basic {
			last = edge
		}
		e.put(name{'g', p.pieces[last].number})
		e.done = int(r.to)
	}
}

// goesOnAt is the basic block to which an invoke returns.
func (p *plan) goesOnAt(basic int32) int32 {
	last := &p.f.insts[p.f.blocks[basic].last-1]
	return p.f.blockOf[p.f.refs[last.refs].label]
}

// hoist writes the allocas that must come before the first piece, so that they
// stay in the function's entry block. An unnamed one keeps its place in the
// numbering by a cast that does nothing.
func (e *emitter) hoist(p *plan) {
	if len(p.hoisted) == 0 && p.widest == 0 {
		return
	}
	e.copyTo(int(p.f.insts[p.f.blocks[0].header].from))
	for _, i := range p.hoisted {
		in := &p.f.insts[i]
		text := e.m.text[in.from:in.to]
		if isDigit(in.resultName[0]) {
			c := cursor{text: text}
			c.take('%')
			c.name()
			c.want('=')
			e.put("  ", name{'h', uint32(i)}, " =", text[c.at:], "\n")
		} else {
			e.put(text, "\n")
		}
	}
	if p.widest > 0 {
		e.put("  ", name{'l', 0}, " = alloca [", p.widest, " x i64], align 8\n")
	}
}

// leaveHoisted writes what stays where a hoisted alloca was.
func (e *emitter) leaveHoisted(p *plan, in *inst, i int32) {
	e.copyTo(int(in.from))
	e.done = int(in.to)
	if isDigit(in.resultName[0]) {
		t := e.m.pointerTo(in.address.typeText)
		e.put("  %", in.resultName, " = bitcast ", t, " ", name{'h', uint32(i)}, " to ", t)
	} else if e.done < len(e.m.text) && e.m.text[e.done] == '\n' {
		e.done++
	}
}

// piece writes the code that begins a step, and the piece's instructions with
// their values before them.
func (e *emitter) piece(p *plan, i int32, before *string) {
	q := &p.pieces[i]
	f := p.f
	b := &f.blocks[q.basic]
	first := max(q.first, b.header)
	e.copyTo(int(f.insts[first].from))
	if q.lanes != nil {
		e.lanes(q.lanes)
	}
	e.begin(q, before)
	slot := 0
	k := q.site
	for ; k < q.sites && p.sites[k].atOnce; k++ {
		e.site(q, &p.sites[k], &slot)
	}
	for n := first; n < q.last; n++ {
		in := &f.insts[n]
		if k < q.sites && p.sites[k].inst == n {
			e.copyTo(int(in.from))
			for ; k < q.sites && p.sites[k].inst == n; k++ {
				e.site(q, &p.sites[k], &slot)
			}
		}
		if in.op == opAlloca && q.basic == 0 && p.isHoisted(n) {
			e.leaveHoisted(p, in, n)
		}
	}
	if edge := p.edges[q.basic]; edge >= 0 && i == p.tails[q.basic] {
		in := &f.insts[b.last-1]
		r := f.refs[in.refs]
		e.copyTo(int(r.from) - 1)
		e.put(name{'e', p.pieces[edge].number})
		e.done = int(r.to)
	}
}

func (p *plan) isHoisted(i int32) bool {
	_, found := slices.BinarySearch(p.hoisted, i)
	return found
}

// edge writes the block between an invoke and where it goes on.
func (e *emitter) edge(p *plan, i int32) {
	q := &p.pieces[i]
	in := &p.f.insts[p.f.blocks[q.basic].last-1]
	e.copyTo(int(in.to))
	label := name{'e', q.number}
	e.put("\n\n")
	e.define(label)
	before := ""
	e.beginFrom(q, label, &before)
	slot := 0
	for k := q.site; k < q.sites; k++ {
		e.site(q, &p.sites[k], &slot)
	}
	r := p.f.refs[in.refs]
	e.put("  br label %", e.m.text[r.from:r.to], "\n")
}

// define writes a label.
func (e *emitter) define(label name) {
	at := len(e.out)
	e.put(label, ":\n")
	e.out = append(e.out[:at], e.out[at+1:]...) // without %
}

func (e *emitter) begin(q *piece, before *string) { e.beginFrom(q, *before, before) }

// beginFrom writes the code that begins a step in the basic block of that
// label; before becomes the label of the one that it ends in.
//
//	cursor = thread.cursor
//	if cursor + words > thread.end or clock != thread.ticket: more(words), cursor = thread.cursor
//	*cursor = block
//	thread.cursor = cursor + words
func (e *emitter) beginFrom(q *piece, label any, before *string) {
	n := q.number
	words := q.values + 1
	cursor, room, late := name{'c', n}, name{'r', n}, name{'d', n}
	end, after, ticket, clock := e.fresh(), e.fresh(), e.fresh(), e.fresh()
	full, slow := e.fresh(), e.fresh()
	e.put("  ", cursor, " = load ", e.word, ", ", e.words, " ", e.fields[0], ", align 8\n",
		"  ", end, " = load ", e.word, ", ", e.words, " ", e.fields[1], ", align 8\n",
		"  ", ticket, " = load i64, ", e.word, " ", e.fields[2], ", align 8\n",
		"  ", clock, " = load atomic i64, ", e.word, " @__sg_clock monotonic, align 8\n",
		"  ", after, " = getelementptr i64, ", e.word, " ", cursor, ", i64 ", words, "\n",
		"  ", full, " = icmp ugt ", e.word, " ", after, ", ", end, "\n",
		"  ", late, " = icmp ne i64 ", ticket, ", ", clock, "\n",
		"  ", slow, " = or i1 ", full, ", ", late, "\n",
		"  br i1 ", slow, ", label ", name{'m', n}, ", label ", name{'g', n}, ", !prof !", e.m.lastMeta+1, "\n")
	e.define(name{'m', n})
	e.put("  call ", e.more, " ", words, ")\n", e.clobber,
		"  ", room, " = load ", e.word, ", ", e.words, " ", e.fields[0], ", align 8\n",
		"  br label ", name{'g', n}, "\n")
	e.define(name{'g', n})
	at, next := name{'a', n}, e.fresh()
	e.put("  ", at, " = phi ", e.word, " [ ", cursor, ", ", label, " ], [ ", room, ", ", name{'m', n}, " ]\n",
		"  store i64 ptrtoint (", e.block(n), " to i64), ", e.word, " ", at, ", align 8\n",
		"  ", next, " = getelementptr i64, ", e.word, " ", at, ", i64 ", words, "\n",
		"  store ", e.word, " ", next, ", ", e.words, " ", e.fields[0], ", align 8\n")
	*before = "%" + e.prefix + "g" + strconv.Itoa(int(n))
}

// block is the address of a block's struct, with its type.
func (e *emitter) block(n uint32) string {
	all, to, of := "%"+e.prefix+"blocks", "ptr", "ptr"
	if e.m.typed {
		to, of = "%"+e.prefix+"block*", all+"*"
	}
	return to + " getelementptr inbounds (" + all + ", " + of + " @" + e.prefix + "blocks, i64 0, i64 " + strconv.Itoa(int(n)) + ")"
}

// site writes the site's values into the step.
func (e *emitter) site(q *piece, s *site, slot *int) {
	for i := range s.n {
		v := e.value(&s.values[i])
		at := e.fresh()
		*slot++
		e.put("  ", at, " = getelementptr i64, ", e.word, " ", name{'a', q.number}, ", i64 ", *slot, "\n",
			"  store i64 ", v, ", ", e.word, " ", at, ", align 8\n")
	}
}

// value writes what makes a value an i64, and gives its name or the constant.
func (e *emitter) value(r *recipe) any {
	switch r.how {
	case asInteger:
		return e.widen(&r.of)
	case asProduct:
		a, b, v := e.widen(&r.of), e.widen(&r.other), e.fresh()
		e.put("  ", v, " = mul i64 ", a, ", ", b, "\n")
		return v
	case asPointee:
		return e.pointee(&r.of)
	case asFrame:
		return e.frame()
	}
	v := e.fresh()
	e.put("  ", v, " = ptrtoint ", r.of.typeText, " ", r.of.text, " to i64\n")
	return v
}

// widen makes an integer 64 bits wide.
func (e *emitter) widen(o *operand) any {
	if o.typ.bits == 64 {
		return o.text
	}
	v := e.fresh()
	e.put("  ", v, " = zext ", o.typeText, " ", o.text, " to i64\n")
	return v
}

// pointee reads the pointer at an address.
func (e *emitter) pointee(o *operand) any {
	at, v, n := e.fresh(), e.fresh(), e.fresh()
	if e.m.typed {
		e.put("  ", at, " = bitcast ", o.typeText, " ", o.text, " to i8**\n",
			"  ", v, " = load i8*, i8** ", at, "\n",
			"  ", n, " = ptrtoint i8* ", v, " to i64\n")
		return n
	}
	e.put("  ", v, " = load ptr, ptr ", o.text, "\n", "  ", n, " = ptrtoint ptr ", v, " to i64\n")
	return n
}

// frame reads the function's frame address.
func (e *emitter) frame() any {
	e.need.frame = true
	v, n := e.fresh(), e.fresh()
	e.put("  ", v, " = call ", e.m.bytePointer(), " @", e.m.frameAddress(), "(i32 0)\n",
		"  ", n, " = ptrtoint ", e.m.bytePointer(), " ", v, " to i64\n")
	return n
}

func (m *module) bytePointer() string { return m.pointerTo("i8") }

func (m *module) frameAddress() string {
	if m.typed {
		return "llvm.frameaddress.p0i8"
	}
	return "llvm.frameaddress.p0"
}
