package ir

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

const maxValues = 48

// aggregateBytes is the maximum size in bytes of local arrays and structs that are not recorded as
// objects.
const aggregateBytes = 16

// piece is a part of a basic block that becomes a block of the trace. A piece is straight-line code
// that is executed completely or not at all.
type piece struct {
	basic       int32 // number of the piece's basic block
	part        uint32
	number      uint32 // number of the block in the module
	first, last int32  // range of the piece's instructions
	site, sites int32  // range in plan.sites
	values      int
	references  uint32
	callee      string
	lanes       *maskedAccess // the masked access whose references come directly before this piece, or nil
	edge        bool          // the piece is on the edge from an invoke to its normal successor
}

// plan describes how one function is rewritten: its pieces, and how they are connected.
type plan struct {
	f      *function
	t      *tables
	pieces []piece
	sites  []site
	heads  []int32 // by basic block: its first piece
	tails  []int32 // by basic block: the piece that contains the block's terminator
	edges  []int32 // by basic block: the piece that follows the block's invoke, or -1
	loops  loops
	task   bool // whether the function is the body of an OpenMP task

	// loops that contain code of inlined functions; nil until this field and the field "inlined"
	// have been computed
	loopFrames map[loopFrame]bool
	inlined    map[inlined]int          // number of loads and stores of each inlined function
	stored     map[int32][]int32        // stores to each local variable; nil if not computed yet
	linked     map[loopVariable][]int32 // cached results of linkLoads; may be nil

	returnings []tailReturn // by basic block: the return after the block's tail call, if the return is in another block

	local   []int32           // by instruction: its number within the piece, or -1 if it produces no code
	siteOf  []int32           // by instruction: 1 + the index of its first site in sites
	hoisted []int32           // allocas to be moved to the function's beginning
	pending []site            // the first sites of the next piece
	widest  uint64            // maximum number of lanes of a gather or scatter
	memory  memoryDependences // dependences through memory in the piece whose instructions are being listed
}

func (p *plan) reset(f *function, t *tables) {
	*p = plan{
		f: f, t: t, pieces: p.pieces[:0], sites: p.sites[:0], heads: p.heads[:0], tails: p.tails[:0],
		edges: p.edges[:0], returnings: p.returnings[:0],
		local: p.local[:0], siteOf: p.siteOf[:0], hoisted: p.hoisted[:0], pending: p.pending[:0], memory: p.memory,
	}
	for range f.insts {
		p.local, p.siteOf = append(p.local, -1), append(p.siteOf, 0)
	}
}

// build cuts the function's basic blocks into pieces and finds their sites.
func (p *plan) build() {
	p.task = p.t.outlined[p.f.name]&taskBody != 0
	for b := range p.f.blocks {
		p.cut(int32(b))
	}
	g := graph{successors: make([][]int32, len(p.f.blocks))}
	for b := range p.f.blocks {
		last := &p.f.insts[p.f.blocks[b].last-1]
		for _, r := range p.f.refs[last.refs:last.refsEnd] {
			g.successors[b] = append(g.successors[b], p.f.blockOf[r.label])
		}
	}
	p.loops = g.findLoops()
}

func (p *plan) begin(basic, i int32, part uint32) *piece {
	p.pieces = append(p.pieces, piece{
		basic: basic, part: part, number: p.t.nextBlock(), first: i, last: i, site: int32(len(p.sites)), sites: int32(len(p.sites)),
	})
	return &p.pieces[len(p.pieces)-1]
}

func (p *plan) cut(basic int32) {
	b := &p.f.blocks[basic]
	p.returnings = append(p.returnings, tailReturn{call: -1})
	p.heads = append(p.heads, int32(len(p.pieces)))
	now := p.begin(basic, b.first, 0)
	if basic == 0 {
		now = p.addEntryEvents(now)
	}
	for i := b.first; i < b.last; i++ {
		now = p.addInstruction(now, i)
	}
	p.tails = append(p.tails, int32(len(p.pieces)-1))
	p.edges = append(p.edges, -1)
	if len(p.pending) > 0 {
		p.edges[basic] = int32(len(p.pieces))
		now = p.begin(basic, b.last, now.part+1)
		now.edge = true
		p.flush(now)
	}
}

// nextPiece ends a piece before instruction i and begins a new piece.
func (p *plan) nextPiece(now *piece, i int32) *piece {
	return p.flush(p.begin(now.basic, i, now.part+1))
}

// flush adds the pending sites to a piece.
func (p *plan) flush(now *piece) *piece {
	for _, s := range p.pending {
		s.atOnce = true
		p.addSite(now, s)
	}
	p.pending = p.pending[:0]
	return now
}

// addSite adds a site to a piece. The piece must have room for the values of the site.
func (p *plan) addSite(now *piece, s site) {
	if p.siteOf[s.inst] == 0 {
		p.siteOf[s.inst] = int32(len(p.sites)) + 1
	}
	p.sites = append(p.sites, s)
	now.sites = int32(len(p.sites))
	now.values += s.n
	if s.kind.IsReference() {
		now.references++
	}
}

// addInstruction adds an instruction with its sites to the piece, or to a new piece if necessary.
func (p *plan) addInstruction(now *piece, i int32) *piece {
	before, after := p.sitesOf(i)
	now = p.splitBefore(now, i, before)
	for _, s := range before {
		s.inst = i
		p.addSite(now, s)
	}
	now.last = i + 1
	if !p.endsPiece(i) {
		return now
	}
	in := &p.f.insts[i]
	now.callee = p.calleeOf(in)
	if in.op.isTerminator() && in.op != opInvoke || in.call != nil && in.call.mustTail || !in.op.isTerminator() && p.f.insts[i+1].op == opUnreachable {
		return now
	}
	if len(after) == 0 && p.returnsBy(now.basic, i) {
		return now
	}
	for _, s := range after {
		s.inst = i
		p.pending = append(p.pending, s)
	}
	if in.op == opInvoke {
		return now
	}
	return p.nextPiece(now, i+1)
}

// splitBefore begins a new piece before instruction i if this instruction cannot be in the same
// piece as the previous instruction. The slice sitesBefore contains the sites that precede
// instruction i.
func (p *plan) splitBefore(now *piece, i int32, sitesBefore []site) *piece {
	if l := p.lanesOf(i); l != nil {
		l.number = p.t.nextBlock()
		if l.scattered {
			p.widest = max(p.widest, l.count)
		}
		now = p.nextPiece(now, i)
		now.lanes = l
		return now
	}
	if now.first == i && now.sites == now.site {
		return now // no instruction of the piece precedes instruction i
	}
	in := &p.f.insts[i]
	values := now.values
	for k := range sitesBefore {
		values += sitesBefore[k].n
	}
	if in.atomic || in.op == opFence || values > maxValues {
		return p.nextPiece(now, i)
	}
	return now
}

// endsPiece reports whether other code may run during the instruction, or whether the instruction
// synchronises threads.
func (p *plan) endsPiece(i int32) bool {
	in := &p.f.insts[i]
	if in.call == nil {
		return in.atomic || in.op == opFence
	}
	return !in.call.assembly && (in.call.indirect || !isIntrinsic(unquote(in.call.callee)) && !mathFunctions[in.call.callee])
}

func (p *plan) calleeOf(in *inst) string {
	switch {
	case in.call == nil:
		return ""
	case in.call.indirect:
		return "*"
	}
	return linkerName(in.call.callee)
}

// addEntryEvents adds the events at the beginning of a function to its first piece: the allocation
// of local arrays and structs, and the beginning of a task.
func (p *plan) addEntryEvents(now *piece) *piece {
	b := &p.f.blocks[0]
	leading := true
	for i := b.first; i < b.last; i++ {
		in := &p.f.insts[i]
		if in.op != opAlloca || !in.static || in.swiftError {
			leading = leading && p.isDebugCall(in)
			continue
		}
		if leading {
			b.header = i + 1
		} else if in.typ.space == 0 && !strings.Contains(p.f.m.text[in.from:in.to], "addrspace(") {
			p.hoisted = append(p.hoisted, i)
		}
		if s, ok := p.localObject(i); ok {
			if now.values+s.n > maxValues {
				now = p.nextPiece(now, b.first)
			}
			p.addSite(now, s)
		}
	}
	if p.task && isPointer(p.taskPointer()) {
		if now.values == maxValues {
			now = p.nextPiece(now, b.first)
		}
		s := event(trace.TaskBegin, pointer(p.taskPointer()))
		s.inst, s.atOnce = b.first, true
		p.addSite(now, s)
	}
	return now
}

// taskPointer returns the second parameter of a task's body, which is a pointer to the task.
func (p *plan) taskPointer() operand {
	if len(p.f.params) < 2 {
		return operand{}
	}
	o := p.f.params[1]
	o.text = "%" + o.text
	return o
}

func (p *plan) isDebugCall(in *inst) bool {
	return in.op == opCall && strings.HasPrefix(in.call.callee, "llvm.dbg.")
}

// localObject returns the Alloc of a local array or struct.
func (p *plan) localObject(i int32) (site, bool) {
	in := &p.f.insts[i]
	t := in.access
	if t.kind != arrayType && t.kind != structType || !t.sized || in.address.typeText == "" {
		return site{}, false
	}
	each := t.allocBytes()
	if each == 0 || in.count > maxBytes/each || in.count*each <= aggregateBytes || in.count*each > 1<<32-1 {
		return site{}, false
	}
	s := event(trace.Alloc, recipe{how: asPointer, of: p.f.resultOf(i)})
	s.bytes, s.flags, s.typ = uint32(in.count*each), trace.StackSite, t.text
	s.inst, s.atOnce = i, true
	s.object = p.f.localName(in.result, in.resultName)
	p.t.describe(&s, p.f.element(s.values[0].of, 0))
	return s, true
}

func (f *function) resultOf(i int32) operand {
	in := &f.insts[i]
	if in.result < 0 {
		return operand{id: -1}
	}
	o := operand{typ: in.typ, text: "%" + in.resultName, id: in.result}
	switch in.op {
	case opAlloca:
		o.typeText = f.m.pointerTo(in.address.typeText)
	case opCall, opInvoke:
		o.typeText = in.call.typeText
	}
	return o
}

// pointerTo returns the type of a pointer to a type, in the module's notation.
func (m *module) pointerTo(typeText string) string {
	if m.typed {
		return typeText + "*"
	}
	return "ptr"
}

func (p *plan) sitesOf(i int32) (before, after []site) {
	in := &p.f.insts[i]
	switch in.op {
	case opLoad, opStore, opModify:
		return p.accessSites(in), nil
	case opCall, opInvoke, opCallBr:
		return p.callSites(i)
	case opReturn:
		tail := i > 0 && p.f.insts[i-1].call != nil && p.f.insts[i-1].call.mustTail
		if p.task && isPointer(p.taskPointer()) && !tail {
			return []site{event(trace.TaskEnd, pointer(p.taskPointer()))}, nil
		}
	case opVaArg:
		p.t.countMissed("va_arg", "the reads of va_arg are unknown, because the compiler generates them later")
	}
	return nil, nil
}

// accessSites returns the site of a load, a store or an atomic operation.
func (p *plan) accessSites(in *inst) []site {
	t, at := in.access, in.address.typ
	switch {
	case at.kind != pointerType || at.space != 0:
		p.t.countMissed(in.word+" in "+at.text, "the address is not in the default address space")
		return nil
	case !t.sized || t.bytes > 1<<32-1:
		p.t.countMissed(in.word+" of "+t.text, "the size of the access is unknown until the program runs")
		return nil
	case t.bytes == 0:
		return nil
	}
	kind := trace.Load
	switch in.op {
	case opStore:
		kind = trace.Store
	case opModify:
		kind = trace.Modify
	}
	p.t.one[0] = event(kind, pointer(in.address))
	s := &p.t.one[0]
	s.bytes, s.typ = uint32(t.bytes), t.text
	if in.atomic {
		s.flags |= trace.AtomicSite
	}
	if in.volatile {
		s.flags |= trace.VolatileSite
	}
	p.nameObject(s)
	return p.t.one[:]
}

// nameObject sets the object of a site to the variable that contains the address of the site.
func (p *plan) nameObject(s *site) {
	name, flags := p.f.findObject(s.values[0].of)
	s.object = name
	s.flags |= flags
	p.t.describe(s, p.f.element(s.values[0].of, maxMembers))
}

// callSites returns the sites of a call. If the call makes references that cannot be recorded,
// callSites counts the call as missed.
func (p *plan) callSites(i int32) (before, after []site) {
	in := &p.f.insts[i]
	callee := unquote(in.call.callee)
	switch {
	case in.call.assembly:
		p.noteAssembly(in)
		return nil, nil
	case in.call.indirect:
		return nil, nil
	case isIntrinsic(callee):
		base := baseName(callee)
		before = rangeSites(callee, p.arguments(in))
		if base == "llvm.load.relative" {
			before = relativeLoad(p.arguments(in))
		}
		if before == nil && !touchesNoMemory(base) && p.lanesOf(i) == nil && p.passesPointers(in) && !strings.HasPrefix(base, "llvm.mem") {
			p.t.countMissed(base, "the references of this intrinsic are unknown")
		}
	case p.f.m.defined[in.call.callee] && !strings.HasPrefix(callee, "__kmpc"):
		// If the module itself defines memcpy, the references of the definition are recorded
		// instead. An allocator that the module defines is recorded like any other allocator.
		if rangeSites(callee, p.arguments(in)) == nil {
			before, after = callEvents(callee, p.arguments(in), p.f.resultOf(i))
		}
	default:
		before, after = callEvents(callee, p.arguments(in), p.f.resultOf(i))
	}
	for k := range before {
		p.finishRange(&before[k])
	}
	for k := range after {
		if after[k].kind == trace.Alloc {
			p.nameAllocation(&after[k], i)
		}
	}
	return before, after
}

// relativeLoad returns the site of llvm.load.relative, which reads 32 bits at an offset in a table of
// addresses.
func relativeLoad(a arguments) []site {
	if !a.haveKind(pointerType, 0) || !a.haveKind(intType, 1) {
		return nil
	}
	s := event(trace.Load, recipe{how: asSum, of: a[0], other: a[1]})
	s.bytes, s.typ = 4, "i32"
	return []site{s}
}

// finishRange sets the type and the object of a site that accesses a range of bytes.
func (p *plan) finishRange(s *site) {
	if s.kind.IsReference() {
		if s.typ == "" {
			s.typ = "i8"
		}
		p.nameObject(s)
	}
}

func (p *plan) arguments(in *inst) arguments { return arguments(p.f.args[in.args:in.argsEnd]) }

func (p *plan) passesPointers(in *inst) bool {
	return slices.ContainsFunc(p.arguments(in), func(a operand) bool {
		t := a.typ
		return t != nil && (t.kind == pointerType || t.kind == vectorType && t.elem != nil && t.elem.kind == pointerType)
	})
}

// unknownAccesses is the reason that is reported for unrecorded inline assembly.
const unknownAccesses = "the reads and writes of the call are unknown"

// noteAssembly counts inline assembly as missed if it may access memory.
func (p *plan) noteAssembly(in *inst) {
	text := p.f.m.text[in.from:in.to]
	if strings.Contains(text, "~{memory}") || p.passesPointers(in) {
		p.t.countMissed("inline assembly", unknownAccesses)
	}
}
