package ir

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sourcefile"
)

// These bits are used in the values of tables.outlined. They describe the role of a function in the
// OpenMP runtime.
const (
	regionBody = 1 << iota
	taskBody
)

type tables struct {
	m        *module
	program  *trace.Program
	instrs   bool
	blocks   uint32 // number of blocks so far
	missing  map[trace.Missed]uint32
	outlined map[string]int // keyed by function name, with quotes
	values   []uint8        // number of values of each block
	refs     []uint32       // number of references of each block
	scale    []byte         // scale of each value
	one      [1]site
	// structures maps the node of a type to 1 + the number of the structure, or to 0 if the members
	// of the type do not matter
	structures map[int]uint32
}

func newTables(m *module, o Options) *tables {
	t := &tables{m: m, instrs: o.Instrs, missing: map[trace.Missed]uint32{}, outlined: map[string]int{}, structures: map[int]uint32{}}
	t.program = &trace.Program{Modules: []trace.Module{{Name: cmp.Or(o.Source, m.name), Options: o.CompileOptions}}}
	if m.declared["__kmpc_fork_call"] || m.declared["__kmpc_fork_teams"] || m.declared["__kmpc_fork_call_if"] {
		t.findOutlined("@__kmpc_fork_", regionBody, 2)
	}
	if m.declared["__kmpc_omp_task_alloc"] {
		t.findOutlined("@__kmpc_omp_task_alloc(", taskBody, 5)
	}
	return t
}

// findOutlined finds the functions that are passed to a function of the OpenMP runtime in the given
// argument.
func (t *tables) findOutlined(callee string, as, argument int) {
	text := t.m.text
	for {
		i := strings.Index(text, callee)
		if i < 0 {
			return
		}
		text = text[i+len(callee):]
		line := text[:lineEnd(text, 0)]
		open := strings.IndexByte(callee+line, '(') - len(callee)
		if open < -1 {
			continue
		}
		if name := calledName(argumentText(line[max(open+1, 0):], argument)); name != "" {
			t.outlined[name] |= as
		}
	}
}

// argumentText returns argument n of an argument list.
func argumentText(text string, n int) string {
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return text[from:i]
			}
		case ',':
			if depth > 0 {
				continue
			}
			if n == 0 {
				return text[from:i]
			}
			n--
			from = i + 1
		}
	}
	return ""
}

func (t *tables) nextBlock() uint32 {
	t.blocks++
	return t.blocks - 1
}

// countMissed counts an occurrence of code whose memory references are not recorded.
func (t *tables) countMissed(what, why string) { t.missing[trace.Missed{What: what, Why: why}]++ }

func (t *tables) add(p *plan) {
	f := p.f
	number := uint32(len(t.program.Functions))
	first := uint32(len(t.program.Blocks))
	for i := range p.pieces {
		if l := p.pieces[i].lanes; l != nil {
			t.addLanes(p, &p.pieces[i], l, number)
		}
		t.addPiece(p, int32(i), number)
	}
	s := t.m.metadata.scope(f.debug)
	t.program.Functions = append(t.program.Functions, trace.Function{
		Name: linkerName(f.name), Place: trace.Place{File: s.file, Line: s.line},
		First: first, Blocks: uint32(len(t.program.Blocks)) - first, Outline: t.isOutline(f.name), Target: f.target(),
	})
}

func (t *tables) isOutline(name string) bool {
	return t.outlined[name] != 0 || strings.Contains(name, ".omp_outlined") || strings.Contains(name, ".omp_task_entry.") ||
		strings.Contains(name, "..omp_par")
}

// addLanes adds the block that records the references of a masked access.
func (t *tables) addLanes(p *plan, q *piece, l *maskedAccess, function uint32) {
	s := event(l.kind, pointer(l.address))
	s.inst, s.typ, s.n, s.flags = l.inst, l.elem.text, 2, trace.MaskedSite
	if l.address.typ.kind == pointerType || l.address.id >= 0 {
		p.nameObject(&s)
	}
	b := t.newBlock(p, q, function)
	b.Flags, b.Sites = trace.Synthetic, 1
	t.addSite(p, &s, l.number)
	t.values, t.refs = append(t.values, 2), append(t.refs, 1)
	t.program.Blocks = append(t.program.Blocks, b)
}

func (t *tables) newBlock(p *plan, q *piece, function uint32) trace.Block {
	return trace.Block{
		Function: function, Label: unquote(p.f.blocks[q.basic].label), Part: q.part,
		Loop: p.loopOf(q.basic), Depth: uint32(p.loops.depth[q.basic]), FirstSite: uint32(len(t.program.Sites)),
	}
}

// loopOf returns 1 + the number of the header of the innermost loop that contains a basic block, or
// 0.
func (p *plan) loopOf(basic int32) uint32 {
	h := p.loops.header[basic]
	if h < 0 {
		return 0
	}
	return p.pieces[p.heads[h]].number + 1
}

func (t *tables) addPiece(p *plan, i int32, function uint32) {
	q := &p.pieces[i]
	f := p.f
	b := t.newBlock(p, q, function)
	b.Flags, b.Callee, b.Successors, b.Sites = p.flags(i), q.callee, p.successors(i), uint32(q.sites-q.site)
	t.findLines(&b, f.insts[q.first:q.last])
	b.Ops = t.countOps(p, q)
	if t.instrs {
		b.Instrs = t.listInstructions(p, q, b.Ops)
	}
	for k := q.site; k < q.sites; k++ {
		t.addSite(p, &p.sites[k], q.number)
	}
	t.values, t.refs = append(t.values, uint8(q.values)), append(t.refs, q.references)
	t.program.Blocks = append(t.program.Blocks, b)
}

func (p *plan) flags(i int32) trace.BlockFlags {
	q := &p.pieces[i]
	basic := &p.f.blocks[q.basic]
	flags := trace.BlockFlags(0)
	if p.heads[q.basic] == i {
		if q.basic == 0 {
			flags |= trace.EntryBlock
		}
		if p.loops.header[q.basic] == q.basic {
			flags |= trace.HeaderBlock
		}
		if basic.header > basic.first && p.f.insts[basic.header-1].op == opLandingPad {
			flags |= trace.LandingPad
		}
	}
	if p.tails[q.basic] == i {
		if p.loops.latch[q.basic] {
			flags |= trace.LatchBlock
		}
		if p.f.insts[basic.last-1].op == opReturn {
			flags |= trace.ReturnBlock
		}
	}
	return flags
}

// successors returns the blocks that may follow a piece, in the order of the labels in the
// terminator.
func (p *plan) successors(i int32) []uint32 {
	q := &p.pieces[i]
	last := &p.f.insts[p.f.blocks[q.basic].last-1]
	refs := p.f.refs[last.refs:last.refsEnd]
	switch {
	case q.edge:
		refs = refs[:1]
	case p.tails[q.basic] != i:
		return []uint32{p.pieces[i+1].number}
	case len(refs) == 0:
		return nil
	}
	list := make([]uint32, 0, len(refs))
	for k, r := range refs {
		next := p.heads[p.f.blockOf[r.label]]
		if k == 0 && !q.edge && p.edges[q.basic] >= 0 {
			next = p.edges[q.basic]
		}
		list = append(list, p.pieces[next].number)
	}
	return list
}

// findLines finds the source lines of a piece. It uses only lines of the function that contains the
// first code of the piece. This function may be an inlined function.
func (t *tables) findLines(b *trace.Block, insts []inst) {
	meta := &t.m.metadata
	of := -1
	for k := range insts {
		if insts[k].debug < 0 {
			continue
		}
		l := meta.location(int(insts[k].debug))
		if l.line == 0 {
			continue
		}
		if of < 0 {
			of, b.File = l.function, l.file
			b.FirstLine, b.LastLine = l.line, l.line
		}
		if l.function == of && l.file == b.File {
			b.FirstLine, b.LastLine = min(b.FirstLine, l.line), max(b.LastLine, l.line)
		}
	}
}

// opName returns the name of an instruction in the tables, and reports whether the instruction
// produces code. Calls that do not end a block are named after their callees.
func opName(in *inst) (name string, code bool) {
	k := in.call
	if k == nil || k.indirect {
		return in.word, true
	}
	if k.assembly {
		return "asm", true
	}
	if isIntrinsic(k.callee) {
		return baseName(k.callee), !makesNoCode(k.callee)
	}
	if mathFunctions[k.callee] {
		return in.word + " " + k.callee, true
	}
	return in.word, true
}

// countOps counts a piece's instructions by opcode and type. The counts are in the order of first
// occurrence. It also numbers the instructions that produce code.
func (t *tables) countOps(p *plan, q *piece) (ops []trace.Op) {
	n := int32(0)
	for i := q.first; i < q.last; i++ {
		name, code := opName(&p.f.insts[i])
		if !code {
			continue
		}
		p.local[i] = n
		n++
		typ := typeText(p.f.insts[i].typ)
		k := slices.IndexFunc(ops, func(o trace.Op) bool { return o.Type == typ && o.Opcode == name })
		if k < 0 {
			k = len(ops)
			ops = append(ops, trace.Op{Opcode: name, Type: typ})
		}
		ops[k].Count++
	}
	return ops
}

func typeText(t *datatype) string {
	if t == nil {
		return ""
	}
	return t.text
}

// listInstructions lists a piece's instructions with their dependences.
func (t *tables) listInstructions(p *plan, q *piece, ops []trace.Op) []trace.Instr {
	n := 0
	for _, op := range ops {
		n += int(op.Count)
	}
	if n == 0 {
		return nil
	}
	list := make([]trace.Instr, 0, n)
	loop := p.isWholeLoop(q)
	p.followMemory(q, loop)
	for i := q.first; i < q.last; i++ {
		if p.local[i] < 0 {
			continue
		}
		in := &p.f.insts[i]
		name, _ := opName(in)
		if in.factor != "" {
			name += " " + in.factor
		}
		instr := trace.Instr{Opcode: name, Type: typeText(in.typ), Uses: p.usesOf(q, i, loop)}
		if at := p.memory.writer(i); at != noWriter {
			instr.Uses = append(instr.Uses, at)
		}
		if s := p.siteOf[i] - 1; s >= q.site && s < q.sites {
			instr.Site = uint32(s-q.site) + 1
		}
		list = append(list, instr)
	}
	return list
}

// isWholeLoop reports whether the piece is a complete loop: a whole basic block that jumps back to
// its own beginning.
func (p *plan) isWholeLoop(q *piece) bool {
	at := p.heads[q.basic]
	return p.tails[q.basic] == at && p.pieces[at].number == q.number && p.loops.header[q.basic] == q.basic && p.loops.latch[q.basic]
}

func (p *plan) usesOf(q *piece, i int32, loop bool) []int32 {
	f := p.f
	in := &f.insts[i]
	if isMultiplyAdd(in) {
		return p.usesByPosition(q, i)
	}
	uses := f.uses[in.uses:in.usesEnd]
	if len(uses) == 0 {
		return nil
	}
	list := make([]int32, 0, len(uses))
	for k, id := range uses {
		if id < 0 {
			continue // a constant operand of a phi has no number
		}
		local, d := int32(-1), f.defs[id]
		if d >= q.first && d < q.last {
			local = p.local[d]
		}
		if in.op == opPhi && local >= 0 {
			if loop && f.blockOf[f.refs[in.refs+int32(k)].label] == q.basic {
				local = -2 - local
			} else {
				local = -1
			}
		} else if d >= i {
			local = -1 // in unreachable code, a use may precede its definition
		}
		list = append(list, local)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// isMultiplyAdd reports whether an instruction calls a multiply-add intrinsic. The third operand of
// such an intrinsic is the addend.
func isMultiplyAdd(in *inst) bool {
	if in.call == nil || in.call.indirect || in.call.assembly {
		return false
	}
	base := baseName(in.call.callee)
	return base == "llvm.fmuladd" || base == "llvm.fma"
}

// usesByPosition lists the dependences of an intrinsic by argument position, including entries for
// constants.
func (p *plan) usesByPosition(q *piece, i int32) []int32 {
	in := &p.f.insts[i]
	list := make([]int32, 0, in.argsEnd-in.args)
	for _, a := range p.f.args[in.args:in.argsEnd] {
		local := int32(-1)
		if a.id >= 0 {
			if d := p.f.defs[a.id]; d >= q.first && d < i {
				local = p.local[d]
			}
		}
		list = append(list, local)
	}
	return list
}

func (t *tables) addSite(p *plan, s *site, block uint32) {
	site := trace.Site{
		Kind: s.kind, Bytes: s.bytes, Block: block, Type: s.typ, Object: s.object, Flags: s.flags | p.chaseFlags(s),
		Place: p.place(s), Structure: s.structure, Offset: s.offset,
	}
	t.program.Sites = append(t.program.Sites, site)
	t.scale = append(t.scale, scaleOf(s))
	for range s.n - 1 {
		t.scale = append(t.scale, 0)
	}
	if s.n == 0 {
		t.scale = t.scale[:len(t.scale)-1]
	}
}

func (p *plan) place(s *site) trace.Place {
	header := p.loops.header[p.basicOf(s.inst)]
	return p.f.m.metadata.sourceLocation(int(p.f.insts[s.inst].debug), func(l *location) (loop bool, references int) {
		if p.inlined == nil {
			p.findInlined()
		}
		of := inlined{l.function, l.inlinedAt}
		// Allocations and other events are always located at their own lines.
		return !s.kind.IsReference() || header >= 0 && p.loopFrames[loopFrame{header, of}], p.inlined[of]
	})
}

// inlined identifies an inlined function by its DISubprogram and by the call that it replaced.
type inlined struct{ function, at int }

// loopFrame combines a loop, which its header identifies, with a function that contains the jump at
// the end of the loop's header or of a latch.
type loopFrame struct {
	header int32
	inlined
}

// findInlined finds the inlined functions that contain loops, and counts the loads and stores of
// each inlined function.
func (p *plan) findInlined() {
	p.loopFrames, p.inlined = map[loopFrame]bool{}, map[inlined]int{}
	frame := func(i int32) inlined {
		l := p.f.m.metadata.location(int(p.f.insts[i].debug))
		return inlined{l.function, l.inlinedAt}
	}
	// the locations seen so far, so that copies in an unrolled loop are counted only once
	seen := map[int32]bool{}
	for i := range p.f.insts {
		in := &p.f.insts[i]
		if op := in.op; (op == opLoad || op == opStore || op == opModify) && !seen[in.debug] {
			seen[in.debug] = true
			p.inlined[frame(int32(i))]++
		}
	}
	for basic := range p.f.blocks {
		if header := p.loops.header[basic]; header >= 0 && (int32(basic) == header || p.loops.latch[basic]) {
			p.loopFrames[loopFrame{header, frame(int32(p.f.blocks[basic].last - 1))}] = true
		}
	}
}

func (p *plan) basicOf(i int32) int32 {
	n, _ := slices.BinarySearchFunc(p.f.blocks, i, func(b basicBlock, i int32) int { return cmp.Compare(b.last-1, i) })
	return int32(n)
}

// scaleOf returns the number of low bits that are usually 0 in the address differences of the site.
func scaleOf(s *site) byte {
	switch {
	case s.kind > trace.Fetch || s.bytes < 2:
		return 0
	case s.bytes < 4:
		return 1
	case s.bytes < 8:
		return 2
	}
	return 3
}

// addSources adds to the tables the source files that contain the sites and functions.
func (t *tables) addSources(read func(file string) []byte) {
	if read == nil {
		return
	}
	seen, paths := map[string]bool{"": true}, t.m.metadata.paths()
	add := func(file string) {
		if seen[file] || isSystemHeader(paths[file]) {
			return
		}
		seen[file] = true
		if f, ok := sourcefile.Pack(file, read(paths[file])); ok {
			t.program.Modules[0].Sources = append(t.program.Modules[0].Sources, f)
		}
	}
	for i := range t.program.Functions {
		add(t.program.Functions[i].Place.File)
	}
	for i := range t.program.Sites {
		add(t.program.Sites[i].Place.File)
	}
}

// finish adds the module's objects and its uninstrumented code to the tables.
func (t *tables) finish() {
	for i := range t.m.globals {
		g := &t.m.globals[i]
		o := t.m.object(g)
		if e := t.m.metadata.elementAt(t.m.metadata.variableType(g.debug), shift{}); e.of >= 0 {
			if number, ok := t.structure(e.of); ok {
				o.Structure = number + 1
			}
		}
		t.program.Objects = append(t.program.Objects, o)
	}
	if t.m.assembly > 0 {
		t.missing[trace.Missed{What: "assembly outside functions", Why: unknownAccesses}] = uint32(t.m.assembly)
	}
	list := t.program.Modules[0].Missed
	for m, n := range t.missing {
		m.Count = n
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b trace.Missed) int {
		return cmp.Or(strings.Compare(a.What, b.What), strings.Compare(a.Why, b.Why))
	})
	t.program.Modules[0].Missed = list
}
