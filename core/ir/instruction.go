package ir

import (
	"strconv"
	"strings"
)

// opcode is a class of instructions that the rewriter treats in the same way. inst.word contains
// LLVM's opcode.
type opcode uint8

const (
	opPlain opcode = iota // an instruction that does not access memory
	opLoad
	opStore
	opModify // an atomicrmw or cmpxchg
	opFence
	opCall
	opAlloca
	opAddress // getelementptr, bitcast, addrspacecast: the result points to the object of the first operand, or into it
	opVaArg
	opPhi
	opLandingPad
	// Terminators.
	opInvoke
	opCallBr
	opJump // br, switch, indirectbr, and the exception instructions of Windows
	opReturn
	opResume
	opUnreachable
)

// isTerminator reports whether op is a terminator.
func (op opcode) isTerminator() bool { return op >= opInvoke }

// mustLead reports whether instructions of class op must precede all other instructions of a basic
// block.
func (op opcode) mustLead() bool { return op == opPhi || op == opLandingPad }

type inst struct {
	from, to int32 // range of the instruction's text in the module
	op       opcode
	word     string    // LLVM's opcode
	typ      *datatype // the type, as in trace.Op.Type; nil if there is none
	result   int32     // number of the resulting value, or -1
	debug    int32     // number of the instruction's DILocation, or -1
	profile  int32     // number of the instruction's !prof, or -1

	uses, usesEnd int32 // range in function.uses
	args, argsEnd int32 // range in function.args
	refs, refsEnd int32 // range in function.refs
	call          *call
	access        *datatype // the type that a load or store reads or writes
	address       operand   // address of a load or store; the base address for other instructions, such as getelementptr
	atomic        bool
	volatile      bool
	contract      bool   // whether a product and a sum may be fused into a single operation
	static        bool   // alloca of a constant number of elements
	count         uint64 // number of elements of an alloca
	factor        string // the constant factor of a product that an address computation can compute: 3, 5 or 9; or ""
	resultName    string
	swiftError    bool
	shift         shift // the offset that an address computation adds
}

// shift is the offset that an address computation adds to its first operand: a constant number of
// bytes, plus a variable number of elements.
type shift struct {
	constant int64
	element  uint64 // size of an element in bytes; 0 if there are no elements
	unknown  bool
}

type call struct {
	callee   string // name with its quotes; "" if unknown
	indirect bool
	assembly bool
	tail     bool // the caller's stack frame may no longer exist during the call
	mustTail bool
	returns  *datatype
	typeText string // type of the result
}

type reader struct {
	cursor
	f    *function
	base int // position of the call's text in the module
}

// readInstruction reads one instruction and appends it. If it cannot read the instruction, it
// returns the reason; otherwise it returns "".
func (f *function) readInstruction(e extent) string {
	r := reader{cursor: cursor{text: f.m.in(e)}, f: f, base: e.from}
	in := inst{
		from: int32(e.from), to: int32(e.to), result: -1, debug: -1, profile: -1,
		uses: int32(len(f.uses)), args: int32(len(f.args)), refs: int32(len(f.refs)),
	}
	in.address.id = -1
	if r.skipByte('%') {
		in.resultName = r.readName()
		in.result = f.value(in.resultName)
		r.want('=')
	}
	in.word = r.readWord()
	if why := r.readOperands(&in); why != "" {
		return why
	}
	r.readTrailer(&in)
	if r.failed() {
		return "cannot parse this " + in.word + ", want " + r.wants
	}
	if in.result >= 0 {
		if in.op == opStore || in.op == opFence || in.op.isTerminator() && in.op != opInvoke && in.op != opCallBr && in.word != "catchswitch" {
			return "the " + in.word + " must not have a result"
		}
		if f.defs[in.result] != undefined {
			return "the value %" + in.resultName + " is defined twice"
		}
		f.defs[in.result] = int32(len(f.insts))
	}
	in.usesEnd, in.argsEnd, in.refsEnd = int32(len(f.uses)), int32(len(f.args)), int32(len(f.refs))
	f.insts = append(f.insts, in)
	return ""
}

// readTrailer reads the text after all operands: `, align 8, !dbg !12`.
func (r *reader) readTrailer(in *inst) {
	for r.skipByte(',') {
		if r.skipByte('!') {
			kind := r.readName()
			r.skipSpace()
			switch kind {
			case "dbg":
				in.debug = int32(reference(r.text[r.at:]))
			case "prof":
				in.profile = int32(reference(r.text[r.at:]))
			}
			r.want('!')
			r.readNode()
			continue
		}
		switch r.readWord() {
		case "align":
			r.readWord()
		case "addrspace":
			r.readGroup()
		default:
			r.fail("align or metadata")
		}
	}
	if b := r.peek(); b != 0 && b != ';' {
		r.fail("the instruction's end")
	}
}

// syntax describes the effect of an instruction and the notation of its operands. Each letter of
// the form represents one item to read:
//
//	f  flags such as nuw and fast             w  a word
//	o  an operand: a type and a value         v  a value without a type
//	T  an operand of the instruction's type   R  the same, or void
//	t  the instruction's type                 m  the type that is read from memory
//	M  the operand that is written to memory  @  the address operand
//	e  the type becomes the element type      I  indices; the type becomes the member's type
//	i  indices                                l  a label such as label %x
//	[  a list of labels in brackets           {  a list of operands in brackets
//	a  an optional atomic                     V  an optional volatile
//	k  an optional weak                       x  the order of an atomic access
//	>  the word to   W  within   F  from      u  unwind label %x, or unwind to caller
//	,  a comma
type syntax struct {
	op   opcode
	form string
}

var syntaxes = makeTable(map[syntax]string{
	{opPlain, "fT,v"}:      "add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem",
	{opPlain, "fo>t"}:      "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr",
	{opAddress, "f@>t"}:    "bitcast addrspacecast",
	{opPlain, "fwT,v"}:     "icmp fcmp",
	{opPlain, "fT"}:        "fneg freeze",
	{opPlain, "fo,T,o"}:    "select",
	{opPlain, "TI"}:        "extractvalue",
	{opPlain, "T,oi"}:      "insertvalue",
	{opPlain, "Te,o"}:      "extractelement",
	{opPlain, "T,o,o"}:     "insertelement",
	{opLoad, "aVm,@x"}:     "load",
	{opStore, "aVM,@x"}:    "store",
	{opModify, "Vw@,Mx"}:   "atomicrmw",
	{opModify, "kV@,M,ox"}: "cmpxchg",
	{opFence, "x"}:         "fence",
	{opVaArg, "o,t"}:       "va_arg",
	{opReturn, "R"}:        "ret",
	{opResume, "T"}:        "resume",
	{opUnreachable, ""}:    "unreachable",
	{opJump, "T,["}:        "indirectbr",
	{opJump, "Wv[u"}:       "catchswitch",
	{opJump, "Fv>l"}:       "catchret",
	{opJump, "Fvu"}:        "cleanupret",
	{opLandingPad, "Wv{"}:  "catchpad cleanuppad",
})

// readOperands reads the operands of an instruction. If it cannot read them, it returns the reason;
// otherwise it returns "".
func (r *reader) readOperands(in *inst) string {
	if s, ok := syntaxes[in.word]; ok {
		in.op, in.atomic = s.op, s.op == opModify
		for i := 0; i < len(s.form); i++ {
			r.readStep(in, s.form[i])
		}
		if in.word == "catchswitch" || in.word == "catchret" || in.word == "cleanupret" || in.op == opLandingPad {
			r.f.refuse("Windows exceptions are not supported")
		}
		return ""
	}
	switch in.word {
	case "getelementptr":
		r.elementPointer(in)
	case "call", "tail", "musttail", "notail", "invoke", "callbr":
		r.readCall(in)
	case "br":
		r.branch(in)
	case "phi":
		r.phi(in)
	case "alloca":
		r.alloca(in)
	case "switch":
		r.switching(in)
	case "shufflevector":
		r.shuffle(in)
	case "landingpad":
		r.landingPad(in)
	default:
		return "the instruction is unknown: " + in.word
	}
	return ""
}

// readStep reads the text that is described by one letter of a form.
func (r *reader) readStep(in *inst, letter byte) {
	switch letter {
	case ',':
		r.want(',')
	case 'f':
		in.contract = r.skipFlags()
	case 'w':
		r.readWord()
	case 'o':
		r.readOperand()
	case 'v':
		if text, _ := r.readValue(); in.word == "mul" && (text == "3" || text == "5" || text == "9") {
			in.factor = text
		}
	case 'T':
		in.typ = r.readOperand().typ
	case 'R':
		if in.typ, _, _ = r.f.readType(&r.cursor); in.typ != nil && in.typ.kind != voidType {
			r.readValue()
		}
	case 't':
		in.typ = r.f.m.types.readType(&r.cursor)
	case 'm':
		in.access = r.f.m.types.readType(&r.cursor)
		in.typ = in.access
	case 'M':
		in.access = r.readOperand().typ
		in.typ = in.access
	case '@':
		in.address = r.readOperand()
	case 'e':
		if in.typ != nil {
			in.typ = in.typ.elem
		}
	case 'I':
		in.typ = r.readMember(in.typ)
	case 'i':
		r.readMember(in.typ)
	case 'l':
		r.target()
	case '[':
		r.want('[')
		r.readList(']', r.target)
	case '{':
		r.want('[')
		r.readList(']', func() { r.readOperand() })
	case 'a':
		in.atomic = r.skipWord("atomic")
	case 'V':
		in.volatile = r.skipWord("volatile")
	case 'k':
		r.skipWord("weak")
	case 'x':
		if in.atomic || in.op == opFence {
			r.readOrdering()
		}
	case '>':
		r.wantWord("to")
	case 'W':
		r.wantWord("within")
	case 'F':
		r.wantWord("from")
	case 'u':
		r.wantWord("unwind")
		if r.skipWord("to") {
			r.wantWord("caller")
		} else {
			r.target()
		}
	}
}

// isFlag reports whether a word is a flag of an arithmetic or address operation.
func isFlag(word string) bool {
	switch word {
	case "nuw", "nsw", "exact", "disjoint", "nneg", "samesign", "nusw", "inbounds",
		"fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc":
		return true
	}
	return false
}

// skipFlags skips the flags of an instruction, and reports whether a flag allows the compiler to
// fuse operations.
func (r *reader) skipFlags() (contract bool) {
	for {
		before := r.at
		word := r.readWord()
		if !isFlag(word) {
			r.at = before
			return contract
		}
		contract = contract || word == "fast" || word == "contract"
		if r.peek() == '(' { // for example inrange(-16, 16)
			r.readGroup()
		}
	}
}

// isValueWord reports whether a constant can begin with this word.
func isValueWord(word string) bool {
	switch word {
	case "null", "true", "false", "undef", "poison", "none", "zeroinitializer",
		"getelementptr", "bitcast", "inttoptr", "ptrtoint", "ptrtoaddr", "addrspacecast",
		"trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp",
		"add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor",
		"fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "icmp", "fcmp", "select",
		"extractelement", "insertelement", "shufflevector", "extractvalue", "insertvalue",
		"blockaddress", "dso_local_equivalent", "no_cfi", "asm", "splat", "ptrauth":
		return true
	}
	return false
}

// readValue reads a value. The result "id" is -1 unless the value is local.
func (r *reader) readValue() (text string, id int32) {
	b := r.peek()
	from := r.at
	switch {
	case b == '%':
		r.at++
		name := r.readName()
		if r.failed() {
			return "", -1
		}
		id = r.f.value(name)
		r.f.uses = append(r.f.uses, id)
		return r.text[from:r.at], id
	case b == '@':
		r.at++
		r.readName()
	case b == '<' || b == '{' || b == '[':
		r.readGroup()
	case b == '-' || b == '+' || isDigit(b):
		r.at++
		for r.at < len(r.text) && (isNameByte(r.text[r.at]) || r.text[r.at] == '+') {
			r.at++
		}
	case b == 'c' && strings.HasPrefix(r.text[r.at:], `c"`):
		r.at++
		r.readQuoted()
	case isLetter(b):
		r.readConstant()
	default:
		r.fail("a value")
	}
	return r.text[from:r.at], -1
}

// readConstant reads a constant that begins with a word.
func (r *reader) readConstant() {
	switch word := r.readWord(); word {
	case "null", "true", "false", "undef", "poison", "none", "zeroinitializer":
		return
	case "asm":
		r.assembly()
		return
	case "dso_local_equivalent", "no_cfi":
		r.want('@')
		r.readName()
		return
	default:
		if !isValueWord(word) {
			r.fail("a value")
			return
		}
	}
	for isLetter(r.peek()) { // a word such as inbounds, nuw or a predicate
		if r.readWord() == "inrange" {
			r.groupHere()
		}
	}
	if r.peek() != '(' {
		r.fail("(")
		return
	}
	r.readGroup()
}

func (r *reader) assembly() {
	for isLetter(r.peek()) {
		r.readWord()
	}
	r.skipSpace()
	r.readQuoted()
	r.want(',')
	r.skipSpace()
	r.readQuoted()
}

func (r *reader) readOperand() operand {
	var o operand
	o.typ, o.typeText, o.id = r.f.readType(&r.cursor)
	if r.failed() {
		return o
	}
	o.text, o.id = r.readValue()
	return o
}

func (r *reader) elementPointer(in *inst) {
	in.op = opAddress
	r.skipFlags()
	of := r.f.m.types.readType(&r.cursor)
	r.want(',')
	in.address = r.readOperand()
	in.typ = in.address.typ
	for first := true; r.skipComma(func(b byte) bool { return b != '!' }); first = false {
		r.skipWord("inrange")
		index := r.readOperand()
		of = in.shift.addIndex(of, index.text, first)
		if index.typ != nil && index.typ.kind == vectorType && in.typ != nil && in.typ.kind != vectorType {
			in.typ = r.pointerVector(index.typ)
		}
	}
}

// addIndex adds the offset of an index into a type, and returns the type of the selected element.
func (s *shift) addIndex(of *datatype, index string, first bool) *datatype {
	if of == nil || !of.sized {
		s.unknown = true
		return nil
	}
	n, err := strconv.ParseInt(index, 10, 32)
	switch {
	case first && err == nil:
		s.constant += n * int64(of.allocBytes())
		return of
	case first:
		s.element = of.allocBytes()
		return of
	case of.kind == arrayType:
		if err == nil {
			s.constant += n * int64(of.elem.allocBytes())
		}
		return of.elem // a variable index is ignored, because all elements of an array have the same name
	case of.kind == structType && err == nil && 0 <= n && int(n) < len(of.fields):
		s.constant += int64(of.fieldOffset(int(n)))
		return of.fields[n]
	}
	s.unknown = true
	return nil
}

// pointerVector returns the vector type that has a pointer for each element of the vector type t.
func (r *reader) pointerVector(t *datatype) *datatype {
	return r.f.m.types.lookUp(strings.Replace(t.text, t.elem.text, "ptr", 1))
}

func (r *reader) alloca(in *inst) {
	in.op, in.typ, in.static, in.count = opAlloca, r.f.m.types.ptr, true, 1
	for {
		if r.skipWord("inalloca") {
			in.static = false
		} else if r.skipWord("swifterror") {
			in.swiftError = true
		} else {
			break
		}
	}
	in.access, in.address.typeText, _ = r.f.readType(&r.cursor)
	before := r.at
	if !r.skipByte(',') || r.peek() == '!' || strings.HasPrefix(r.text[r.at:], "align ") || strings.HasPrefix(r.text[r.at:], "addrspace(") {
		r.at = before
		return
	}
	count := r.readOperand()
	if in.static = in.static && count.id < 0; in.static {
		in.count = uint64(max(number(count.text), 0))
		in.static = number(count.text) >= 0
	}
}

// readOrdering reads the memory order of an atomic access.
func (r *reader) readOrdering() {
	if r.skipWord("syncscope") {
		r.readGroup()
	}
	for isLetter(r.peek()) {
		r.readWord()
	}
}

// skipComma skips a comma if the function canBegin returns true for the character after the comma.
// It reports whether it has skipped a comma.
func (r *reader) skipComma(canBegin func(b byte) bool) bool {
	before := r.at
	if r.skipByte(',') && canBegin(r.peek()) {
		return true
	}
	r.at = before
	return false
}

// readMember reads indices into an aggregate, and returns the type of the selected member.
func (r *reader) readMember(t *datatype) *datatype {
	for r.skipComma(isDigit) {
		i := number(r.readWord())
		switch {
		case t == nil:
		case t.kind == structType && i >= 0 && i < len(t.fields):
			t = t.fields[i]
		default:
			t = t.elem
		}
	}
	return t
}

func (r *reader) shuffle(in *inst) {
	from := r.readOperand().typ
	r.want(',')
	r.readOperand()
	r.want(',')
	mask := r.readOperand().typ
	if from == nil || mask == nil || from.elem == nil || mask.elem == nil {
		return
	}
	in.typ = r.f.m.types.lookUp(strings.Replace(mask.text, mask.elem.text, from.elem.text, 1))
}

func (r *reader) phi(in *inst) {
	in.op = opPhi
	r.skipFlags()
	in.typ = r.f.m.types.readType(&r.cursor)
	for !r.failed() {
		r.want('[')
		open := r.base + r.at - 1
		if _, id := r.readValue(); id < 0 {
			r.f.uses = append(r.f.uses, -1) // a placeholder, so that corresponding entries of uses and refs have equal indices
		}
		r.want(',')
		r.labelName()
		r.want(']')
		if !r.failed() {
			ref := &r.f.refs[len(r.f.refs)-1]
			ref.open, ref.close = int32(open), int32(r.base+r.at)
		}
		if !r.skipComma(func(b byte) bool { return b == '[' }) {
			return
		}
	}
}

func (r *reader) labelName() {
	r.want('%')
	from := r.at
	name := r.readName()
	if r.failed() {
		return
	}
	r.f.refs = append(r.f.refs, labelRef{from: int32(r.base + from), to: int32(r.base + r.at), label: r.f.label(name)})
}

func (r *reader) target() {
	r.wantWord("label")
	r.labelName()
}

func (r *reader) branch(in *inst) {
	in.op = opJump
	if strings.HasPrefix(strings.TrimLeft(r.text[r.at:], " "), "label ") {
		r.target()
		return
	}
	in.typ = r.readOperand().typ
	r.want(',')
	r.target()
	r.want(',')
	r.target()
}

func (r *reader) switching(in *inst) {
	in.op = opJump
	in.typ = r.readOperand().typ
	r.want(',')
	r.target()
	r.want('[')
	for !r.failed() && !r.skipByte(']') {
		r.readOperand()
		r.want(',')
		r.target()
	}
}

func (r *reader) landingPad(in *inst) {
	in.op = opLandingPad
	in.typ = r.f.m.types.readType(&r.cursor)
	for isLetter(r.peek()) {
		switch word := r.readWord(); word {
		case "cleanup":
		case "catch", "filter":
			r.readOperand()
		default:
			r.fail("cleanup, catch or filter")
		}
	}
}

// readCall reads calls, invokes and asm goto.
func (r *reader) readCall(in *inst) {
	in.op = opCall
	k := &call{tail: in.word == "tail", mustTail: in.word == "musttail"}
	in.call = k
	switch in.word {
	case "tail", "musttail", "notail":
		r.wantWord("call")
		in.word = "call"
	case "invoke":
		in.op = opInvoke
	case "callbr":
		in.op = opCallBr
	}
	r.f.scratch = r.f.readAttributes(&r.cursor, r.f.scratch[:0])
	k.returns, k.typeText, _ = r.f.readType(&r.cursor)
	if k.returns != nil && k.returns.kind == functionType {
		k.returns, k.typeText = k.returns.elem, k.typeText[:parametersOf(k.typeText)]
	}
	in.typ = k.returns
	r.callee(k)
	r.want('(')
	r.readList(')', r.argument)
	r.readCallProperties(in)
	if strings.HasPrefix(k.callee, "llvm.dbg.") {
		r.f.debugCall(k.callee, r.f.args[in.args:])
	}
	if k.returns != nil && k.returns.text == "token" {
		r.f.refuse("token values are not supported")
	}
}

func (r *reader) callee(k *call) {
	before := len(r.f.uses)
	text, id := r.readValue()
	switch {
	case id >= 0:
		k.indirect = true
	case strings.HasPrefix(text, "asm"):
		k.assembly = true
	default:
		k.callee = calledName(text)
		k.indirect = k.callee == ""
	}
	if len(r.f.uses) > before+1 {
		r.fail("a callee")
	}
}

func (r *reader) argument() {
	var o operand
	o.typ, o.typeText, o.id = r.f.readType(&r.cursor)
	if r.failed() {
		return
	}
	if o.typ.text == "metadata" {
		r.metadataArgument(&o)
	} else {
		r.f.scratch = r.f.readAttributes(&r.cursor, r.f.scratch[:0])
		o.text, o.id = r.readValue()
	}
	r.f.args = append(r.f.args, o)
}

// metadataArgument reads "!12", "!DIExpression()" or a typed value. Values in metadata do not count
// as uses.
func (r *reader) metadataArgument(o *operand) {
	r.skipSpace()
	from := r.at
	if r.skipByte('!') {
		r.readNode()
		o.text = r.text[from:r.at]
		return
	}
	uses := len(r.f.uses)
	v := r.readOperand()
	r.f.uses = r.f.uses[:uses]
	o.text, o.id = v.text, v.id
}

// readCallProperties reads the text after the arguments: attributes, operand bundles, and the
// destinations of an invoke.
func (r *reader) readCallProperties(in *inst) {
	for !r.failed() {
		switch b := r.peek(); {
		case b == '#':
			r.at++
			r.readWord()
		case b == '[':
			r.skipBundles()
		case b == '"':
			r.readAttribute()
		case isLetter(b):
			if word := r.readWord(); word == "to" {
				r.continuations(in)
				return
			}
			r.groupHere()
		default:
			if in.op != opCall {
				r.fail("to label")
			}
			return
		}
	}
}

// skipBundles skips operand bundles. Values in operand bundles count as uses.
func (r *reader) skipBundles() {
	list := reader{cursor: cursor{text: r.readGroup()}, f: r.f}
	for list.at < len(list.text) {
		switch list.text[list.at] {
		case '"':
			list.readQuoted()
		case '%':
			list.at++
			if id, ok := r.f.values[list.readName()]; ok {
				r.f.uses = append(r.f.uses, id)
			}
		default:
			list.at++
		}
	}
}

func (r *reader) continuations(in *inst) {
	r.target()
	if in.op == opInvoke {
		r.wantWord("unwind")
		r.target()
		return
	}
	r.want('[')
	r.readList(']', r.target)
}
