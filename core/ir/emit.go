package ir

import (
	"slices"
	"strconv"
	"strings"
)

// emitter writes functions with inserted code that records references. Inserted names begin with
// prefixes that occur nowhere else in the module, so they cannot clash with existing names. Unnamed
// values keep their numbers.
type emitter struct {
	m      *module
	out    []byte
	done   int    // number of bytes of the module's text that have been copied
	prefix string // name prefix for globals and types
	local  string // name prefix for local values and labels
	serial int    // the number in the most recent name
	word   string // the type of a pointer to a word: "i64*" or "ptr"
	int    string // the integer type that has the size of a pointer
	widest uint64 // maximum number of lanes of the function's gathers and scatters
	need   needs

	more       string // the beginning of a call to __sg_more
	begin      template
	slot       template
	pointer    template
	storesBare bool // addresses are stored as pointers, without conversion
}

type needs struct{ stack, ones, masked, lanes bool }

func newEmitter(m *module) *emitter {
	e := &emitter{
		m: m, word: "ptr",
		prefix: freeGlobalPrefix(m.text), local: freeLocalPrefix(m.text),
	}
	if m.typed {
		e.word = "i64*"
	}
	e.int = "i" + strconv.FormatUint(m.types.layout.pointerBits(0), 10)
	e.storesBare = !m.typed && m.types.layout.pointerBits(0) == 64
	e.more = "void @__sg_more(i64"
	if keepsRegisters(m.triple) {
		e.more = "preserve_mostcc " + e.more
	}
	e.begin = e.compile(beginStep)
	e.slot = e.compile("  %$v{0} = getelementptr i64, WORD %$a{1}, i64 {2}\n  store {3} {4}, WORD %$v{0}\n")
	e.pointer = e.compile("  %$v{0} = ptrtoint {1} {2} to i64\n")
	return e
}

// beginStep is the code that begins a step. The placeholders are: {0}, the suffix of all names in
// this code; {1}, the number of words in the step; {2}, the label of the basic block that contains
// this code; {3}, the number of the block in the trace; {4}, the number of bytes in the step. A
// single instruction reserves the words, so a signal handler runs either before or after the
// reservation (tools/capture/runtime/runtime.h). The empty inline assembly prevents the compiler
// from moving the stores of the values before the store of the block's address.
//
//	end = thread.end
//	at = reserve(words)
//	if at + words > end or thread.ticket != clock: more(words, at), at = reserve(words)
//	*at = block
const beginStep = `  %$e{0} = load volatile WORD, END
  %$i{0} = RESERVE
  %$c{0} = inttoptr INT %$i{0} to WORD
  %$t{0} = load i64, TICKET
  %$k{0} = LOADCLOCK
  %$n{0} = getelementptr i64, WORD %$c{0}, i64 {1}
  %$f{0} = icmp ugt WORD %$n{0}, %$e{0}
  %$d{0} = icmp ne i64 %$t{0}, %$k{0}
  %$s{0} = or i1 %$f{0}, %$d{0}
  br i1 %$s{0}, label %$m{0}, label %$g{0}, !prof !SELDOM
$m{0}:
  call MORE {1}, WORD %$c{0})
CLOBBER  %$j{0} = RESERVE
  %$r{0} = inttoptr INT %$j{0} to WORD
  br label %$g{0}
$g{0}:
  %$a{0} = phi WORD [ %$c{0}, {2} ], [ %$r{0}, %$m{0} ]
  store i64 ptrtoint (BLOCK{3}) to i64), WORD %$a{0}
  call void asm sideeffect "", "~{memory}"()
`

// compile returns a template in the notation of the module's LLVM version.
func (e *emitter) compile(text string) template {
	words := "ptr"
	if e.m.typed {
		words = "i64**"
	}
	// The compilers of the runtime and of the module may disagree on whether __sg_more preserves
	// the result register.
	clobber := ""
	if strings.HasPrefix(e.m.triple, "x86_64") {
		clobber = "  call void asm sideeffect \"\", \"~{rax}\"()\n"
	}
	block, _ := strings.CutSuffix(e.block(0), "0)")
	clock := "load atomic i64, " + e.word + " @__sg_clock monotonic, align 8"
	if e.m.types.layout.pointerBits(0) < 64 {
		// On these targets, the compiler may implement an atomic 64-bit read as a library call.
		clock = "load volatile i64, " + e.word + " @__sg_clock, align 8"
	}
	return makeTemplate(strings.NewReplacer(
		"LOADCLOCK", clock, "RESERVE", e.reserve(), "INT", e.int, "END", words+" "+e.threadField(1), "TICKET", e.word+" "+e.threadField(2),
		"WORD", e.word, "$", e.local, "MORE", e.more, "CLOBBER", clobber, "BLOCK", block, "SELDOM", strconv.Itoa(e.m.lastMeta+1),
	).Replace(text))
}

// reserve returns the instruction that adds {4} bytes to the cursor and returns the previous
// cursor. On x86, LLVM compiles atomicrmw to an instruction with a lock prefix, which is slow. An
// instruction without the prefix is sufficient, because no other thread changes the cursor.
func (e *emitter) reserve() string {
	typ, at := e.m.pointerTo(e.int), e.threadField(0)
	if !isX86(e.m.triple) {
		return "atomicrmw add " + typ + " " + at + ", " + e.int + " {4} monotonic"
	}
	xadd := "xaddq"
	if e.int == "i32" {
		xadd = "xaddl"
	}
	cursor := typ + " elementtype(" + e.int + ") " + at
	return "call " + e.int + ` asm sideeffect "` + xadd + ` $0, $1", "=r,=*m,0,*m,~{memory},~{dirflag},~{fpsr},~{flags}"(` +
		cursor + ", " + e.int + " {4}, " + cursor + ")"
}

// threadField returns the address of a field in the thread's state.
func (e *emitter) threadField(field int) string {
	if !e.m.typed && field == 0 {
		return "@__sg_thread"
	}
	thread := "%" + e.prefix + "thread"
	return "getelementptr (" + thread + ", " + e.m.pointerTo(thread) + " @__sg_thread, i32 0, i32 " + strconv.Itoa(field) + ")"
}

// freeGlobalPrefix returns a name prefix that does not occur in the text.
func freeGlobalPrefix(text string) string {
	prefix := "__sg."
	for n := 0; strings.Contains(text, prefix); n++ {
		prefix = "__sg" + strconv.Itoa(n) + "."
	}
	return prefix
}

// freeLocalPrefix returns a prefix that occurs in no name of a local value or label. The prefix is
// short, because it occurs very often in the output.
func freeLocalPrefix(text string) string {
	prefix := "$."
	for n := 0; strings.Contains(text, "%"+prefix) || strings.Contains(text, "\n"+prefix); n++ {
		prefix = "$" + strconv.Itoa(n) + "."
	}
	return prefix
}

func (e *emitter) put(parts ...string) {
	for _, part := range parts {
		e.out = append(e.out, part...)
	}
}

// name returns the local name of an inserted item, such as a label or an alloca. The name consists
// of the prefix, the kind and the number of the item.
func (e *emitter) name(kind string, number uint32) string {
	return "%" + e.local + kind + strconv.FormatUint(uint64(number), 10)
}

func (e *emitter) copyTo(at int) {
	e.out = append(e.out, e.m.text[e.done:at]...)
	e.done = at
}

func (e *emitter) writeFunction(p *plan) {
	e.done, e.widest = p.f.from, p.widest
	for b := range p.f.blocks {
		e.writeBasicBlock(p, int32(b))
	}
	e.copyTo(p.f.to)
}

func (e *emitter) writeBasicBlock(p *plan, basic int32) {
	f := p.f
	b := &f.blocks[basic]
	before := "%" + b.label // the label of the IR basic block that is being written
	for i := b.first; i < b.header; i++ {
		e.renameLabels(p, &f.insts[i], basic)
	}
	if basic == 0 {
		e.hoist(p)
	}
	end := p.tails[basic]
	for i := p.heads[basic]; i <= end; i++ {
		e.writePiece(p, i, &before)
	}
	if edge := p.edges[basic]; edge >= 0 {
		e.writeEdge(p, edge)
	}
	if p.isDead(basic) {
		e.writeDeadEntry(p, basic)
	}
}

// renameLabels copies a phi, and replaces the label of each predecessor by the label of the
// predecessor's last piece.
func (e *emitter) renameLabels(p *plan, in *inst, basic int32) {
	if in.op != opPhi {
		return
	}
	between := ""
	e.copyTo(int(p.f.refs[in.refs].open))
	for _, r := range p.f.refs[in.refs:in.refsEnd] {
		from := p.f.blockOf[r.label]
		e.done = int(r.close)
		if p.returnings[from].call >= 0 {
			continue
		}
		last := p.tails[from]
		if edge := p.edges[from]; edge >= 0 && p.normalSuccessor(from) == basic {
			last = edge
		}
		e.put(between, e.m.text[r.open:r.from-1], e.name("g", p.pieces[last].number), e.m.text[r.to:r.close])
		between = ", "
	}
	if between == "" {
		e.put("[ poison, ", e.deadEntry(p, basic), " ]")
	}
}

// normalSuccessor returns the basic block to which an invoke returns.
func (p *plan) normalSuccessor(basic int32) int32 {
	last := &p.f.insts[p.f.blocks[basic].last-1]
	return p.f.blockOf[p.f.refs[last.refs].label]
}

// hoist writes allocas before the first piece, so that these allocas stay in the function's entry
// block. A no-op cast replaces an unnamed alloca, to preserve the numbering.
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
			c.skipByte('%')
			c.readName()
			c.want('=')
			e.put("  ", e.name("h", uint32(i)), " =", text[c.at:], "\n")
		} else {
			e.put(text, "\n")
		}
	}
	if p.widest > 0 {
		e.put("  ", e.lanesArray(), " = alloca [", strconv.FormatUint(p.widest, 10), " x i64], align 8\n")
	}
}

// leaveHoisted writes the code that replaces a hoisted alloca at its original position.
func (e *emitter) leaveHoisted(p *plan, in *inst, i int32) {
	e.copyTo(int(in.from))
	e.done = int(in.to)
	if isDigit(in.resultName[0]) {
		t := e.m.pointerTo(in.address.typeText)
		e.put("  %", in.resultName, " = bitcast ", t, " ", e.name("h", uint32(i)), " to ", t)
	} else if e.done < len(e.m.text) && e.m.text[e.done] == '\n' {
		e.done++
	}
}

// writePiece writes the code that begins a step, followed by the instructions of the piece. Before
// each instruction, it writes the code that records the values of the instruction.
func (e *emitter) writePiece(p *plan, i int32, before *string) {
	q := &p.pieces[i]
	f := p.f
	b := &f.blocks[q.basic]
	first := max(q.first, b.header)
	e.copyTo(int(f.insts[first].from))
	if q.lanes != nil {
		e.writeLanes(q.lanes)
	}
	*before = e.writeStep(q, *before)
	slot := 0
	k := q.site
	for ; k < q.sites && p.sites[k].atOnce; k++ {
		e.writeSite(q, &p.sites[k], &slot)
	}
	for n := first; n < q.last; n++ {
		in := &f.insts[n]
		if k < q.sites && p.sites[k].inst == n {
			e.copyTo(int(in.from))
			for ; k < q.sites && p.sites[k].inst == n; k++ {
				e.writeSite(q, &p.sites[k], &slot)
			}
		}
		if in.op == opAlloca && q.basic == 0 && p.isHoisted(n) {
			e.leaveHoisted(p, in, n)
		}
		if n == p.returnings[q.basic].call {
			e.returnStep(p, q, n, *before)
		}
	}
	if p.returnings[q.basic].call >= 0 && i == p.tails[q.basic] {
		e.returnOfCall(p, q.basic)
	}
	if edge := p.edges[q.basic]; edge >= 0 && i == p.tails[q.basic] {
		in := &f.insts[b.last-1]
		r := f.refs[in.refs]
		e.copyTo(int(r.from) - 1)
		e.put(e.name("w", p.pieces[edge].number))
		e.done = int(r.to)
	}
}

func (p *plan) isHoisted(i int32) bool {
	_, found := slices.BinarySearch(p.hoisted, i)
	return found
}

// writeEdge writes a new basic block between an invoke and its normal successor.
func (e *emitter) writeEdge(p *plan, i int32) {
	q := &p.pieces[i]
	in := &p.f.insts[p.f.blocks[q.basic].last-1]
	e.copyTo(int(in.to))
	label := e.name("w", q.number)
	e.put("\n\n", label[1:], ":\n")
	e.writeStep(q, label)
	slot := 0
	for k := q.site; k < q.sites; k++ {
		e.writeSite(q, &p.sites[k], &slot)
	}
	r := p.f.refs[in.refs]
	e.put("  br label %", e.m.text[r.from:r.to], "\n")
}

// writeStep writes the code that begins a step in the basic block with the given label, and returns
// the label of the basic block in which this code ends.
func (e *emitter) writeStep(q *piece, label string) string {
	e.writeNamedStep(count(q.number), q, label)
	return e.name("g", q.number)
}

// writeNamedStep writes the code that begins a step. All names that this code defines end with the
// given suffix.
func (e *emitter) writeNamedStep(suffix arg, q *piece, label string) {
	e.out = e.begin.fill(e.out, suffix, count(q.values+1), words(label), count(q.number), count(8*(q.values+1)))
}

// block returns the address of a block's struct, with its type.
func (e *emitter) block(n uint32) string {
	block := "%" + e.prefix + "block"
	if !e.m.typed {
		return "ptr getelementptr (" + block + ", ptr @" + e.prefix + "blocks, i64 " + strconv.Itoa(int(n)) + ")"
	}
	all := "%" + e.prefix + "blocks"
	return block + "* getelementptr (" + all + ", " + all + "* @" + e.prefix + "blocks, i64 0, i64 " + strconv.Itoa(int(n)) + ")"
}

func (e *emitter) writeSite(q *piece, s *site, slot *int) {
	for i := range s.n {
		*slot++
		r := &s.values[i]
		typ, v := "i64", ""
		if r.how == asPointer && e.storesBare {
			typ, v = "ptr", r.of.text
		} else {
			v = e.writeValue(r)
		}
		e.serial++
		e.out = e.slot.fill(e.out, count(e.serial), count(q.number), count(*slot), words(typ), words(v))
	}
}

// writeValue writes the code that converts a value to an i64, and returns the result's name or the
// constant.
func (e *emitter) writeValue(r *recipe) string {
	switch r.how {
	case asInteger:
		return e.widen(&r.of)
	case asProduct:
		a, b := e.widen(&r.of), e.widen(&r.other)
		return e.writeInstruction("mul i64 ", a, ", ", b)
	case asSum:
		offset := r.other.text
		if r.other.typ.bits < 64 {
			offset = e.writeInstruction("sext ", r.other.typeText, " ", offset, " to i64")
		}
		return e.writeInstruction("add i64 ", e.writeValue(&recipe{how: asPointer, of: r.of}), ", ", offset)
	case asPointee:
		return e.loadPointee(&r.of)
	case asStack:
		return e.stack()
	}
	e.serial++
	e.out = e.pointer.fill(e.out, count(e.serial), words(r.of.typeText), words(r.of.text))
	return e.last()
}

// writeInstruction writes an instruction, and returns the name of its result.
func (e *emitter) writeInstruction(parts ...string) string {
	e.serial++
	v := e.last()
	e.put("  ", v, " = ")
	e.put(parts...)
	e.put("\n")
	return v
}

func (e *emitter) last() string { return "%" + e.local + "v" + strconv.Itoa(e.serial) }

// widen extends an integer to 64 bits.
func (e *emitter) widen(o *operand) string {
	if o.typ.bits == 64 {
		return o.text
	}
	return e.writeInstruction("zext ", o.typeText, " ", o.text, " to i64")
}

// loadPointee writes a load of the pointer at an address.
func (e *emitter) loadPointee(o *operand) string {
	if !e.m.typed {
		return e.writeInstruction("ptrtoint ptr ", e.writeInstruction("load ptr, ptr ", o.text), " to i64")
	}
	at := e.writeInstruction("bitcast ", o.typeText, " ", o.text, " to i8**")
	return e.writeInstruction("ptrtoint i8* ", e.writeInstruction("load i8*, i8** ", at), " to i64")
}

func (e *emitter) stack() string {
	e.need.stack = true
	at := e.writeInstruction("call ", e.m.bytePointer(), " @", stackPointer, "()")
	return e.writeInstruction("ptrtoint ", e.m.bytePointer(), " ", at, " to i64")
}

func (m *module) bytePointer() string { return m.pointerTo("i8") }

// stackPointer is the name of the intrinsic before LLVM 18. Later LLVM versions still accept this
// name.
const stackPointer = "llvm.stacksave"

// template is IR text with placeholders {0} to {9}. The text is split at the placeholders in
// advance, so that filling in placeholders is fast. Most of the output consists of the same few
// lines.
type template []segment

// segment is literal text, together with the number of the placeholder that follows it, or -1.
type segment struct {
	text string
	hole int
}

// arg is the text or the number that replaces a placeholder.
type arg struct {
	text   string
	number uint64
}

func count[T ~int | ~int32 | ~uint32 | ~uint64](n T) arg { return arg{number: uint64(n)} }

func words(s string) arg { return arg{text: s} }

func makeTemplate(text string) template {
	var t template
	from := 0
	for at := 0; at+2 < len(text); at++ {
		if text[at] == '{' && isDigit(text[at+1]) && text[at+2] == '}' {
			t = append(t, segment{text[from:at], int(text[at+1] - '0')})
			from = at + 3
		}
	}
	return append(t, segment{text[from:], -1})
}

func (t template) fill(dst []byte, args ...arg) []byte {
	for i := range t {
		dst = append(dst, t[i].text...)
		if h := t[i].hole; h >= 0 {
			if args[h].text != "" {
				dst = append(dst, args[h].text...)
			} else {
				dst = strconv.AppendUint(dst, args[h].number, 10)
			}
		}
	}
	return dst
}
