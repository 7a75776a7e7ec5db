package pipeline

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Body contains the operations of a block, or of a loop's blocks in sequence, and the dependences
// between these operations.
type Body struct {
	Processor *Processor
	Ops       []Op      // the operations in program order, including operations without cost
	Missing   []Missing // classes that have no cost in the description
	Unknown   []string  // names of called functions; their time is not modelled
}

// Op is an operation: one instruction.
type Op struct {
	Block  uint32  // index of the instruction's block
	Instr  uint32  // index of the instruction in its block
	Class  Class   // "" if the operation costs nothing
	Weight float64 // number of executions in one pass through the body
	Cost   Cost
	Waits  []Wait
	Misses Misses
}

// Wait is a dependence of an operation on the result of another operation.
type Wait struct {
	Op     uint32 // index of the operation whose result is used
	Before uint32 // number of iterations from the operation to the waiting operation
	// Cycles is the number of cycles from the start of operation Op to the earliest start of the
	// waiting operation. The number may be negative after a phi, if the waiting operation needs the
	// value later than its other operands.
	Cycles float64
}

// Options contains information that the instructions do not contain.
type Options struct {
	// Target is the target of the code (trace.Function). If the target has no equivalent of an LLVM
	// instruction, the LLVM instruction costs as much as the instructions that replace it.
	Target trace.Target
	// LoadLatency returns the average latency of a load in cycles, E(λ). If the result is 0, the
	// latency in the description is used. The parameter block is an index into the given blocks.
	// The parameter site is a site number as in trace.Instr; 0 means that the load has no site.
	LoadLatency func(block int, site uint32) float64
	// Crossing returns the share of a load's or store's executions that access two lines. If
	// Crossing is nil, the share is 0.
	Crossing func(block int, site uint32) float64
	// Misses returns the misses of an access that are not prefetched. If the function is nil,
	// there are no misses.
	Misses func(block int, site uint32) Misses
	// FillWait returns how many cycles a load waits, on average, for a line that an earlier load of
	// the iteration fetches. The addresses of the two loads differ by a constant. The parameter
	// between is the number of references between the two loads. If FillWait is nil, loads do not
	// wait.
	FillWait func(load, fetching Access, between int) float64
}

// Access identifies a memory reference by its site (see trace.Instr), and by the index of its block
// in the given list of blocks.
type Access struct {
	Block int
	Site  uint32
}

// Misses describes the first-level misses of an access. The numbers are means per execution of the
// access.
type Misses struct {
	Lines     float64
	Waits     float64  // sum of the latencies of these lines in cycles, from address to value
	Scattered Transfer // for transferring these lines if many independent lines are transferred at the same time
}

// Transfer is the cost of transferring lines to the first level.
type Transfer struct {
	Cycles float64 // from the levels that contain the lines
	Near   float64 // the cost if all lines were in the second level: their last step
}

// Plus returns the cost of two transfers, of which the second happens n times.
func (t Transfer) Plus(n float64, other Transfer) Transfer {
	return Transfer{t.Cycles + n*other.Cycles, t.Near + n*other.Near}
}

// NewBody returns the body of one block.
func (p *Processor) NewBody(instrs []trace.Instr, o Options) *Body {
	return p.NewChain([]Piece{{Instrs: instrs, Weight: 1}}, nil, o)
}

// Piece is a block of a loop body, with its number of executions per iteration.
type Piece struct {
	Instrs []trace.Instr
	Weight float64
}

// Carried is a value that one piece computes and another piece uses, so trace.Instr.Uses does not
// contain it. Instruction Instr in piece Piece uses the result of instruction FromInstr in piece
// FromPiece. Before is the number of iterations between the two instructions, or 0 if they belong
// to the same iteration.
type Carried struct {
	Piece, Instr, FromPiece, FromInstr, Before uint32
}

// NewChain returns a body that consists of several pieces of a loop. The pieces must be in a
// possible order of execution.
func (p *Processor) NewChain(pieces []Piece, carried []Carried, o Options) *Body {
	b := &Body{Processor: p}
	target, n := p.effectiveTarget(o.Target), 0
	apart := target.Lacks(trace.FMA) || !p.hasClass(FMA)
	for i := range pieces {
		n += len(pieces[i].Instrs)
	}
	b.Ops = make([]Op, 0, n)
	first := make([]uint32, len(pieces))
	for i := range pieces {
		first[i] = uint32(len(b.Ops))
		l := layout{p: p, b: b, instrs: pieces[i].Instrs, block: i, options: o, target: target, apart: apart}
		l.findUsers()
		l.appendOps(pieces[i].Weight)
	}
	for _, c := range carried {
		if int(c.Piece) >= len(pieces) || int(c.FromPiece) >= len(pieces) ||
			int(c.Instr) >= len(pieces[c.Piece].Instrs) || int(c.FromInstr) >= len(pieces[c.FromPiece].Instrs) {
			continue
		}
		to, from := first[c.Piece]+c.Instr, first[c.FromPiece]+c.FromInstr
		if c.Before == 0 && from >= to {
			continue // a value of this iteration cannot come from a later instruction
		}
		cycles := b.Ops[from].Cost.Latency
		if in := &pieces[c.Piece].Instrs[c.Instr]; in.Opcode == "fadd" || in.Opcode == "fsub" || len(in.Uses) == 3 && in.Uses[2] == -1 {
			// assume that the value is the addend, because sums are more frequent than
			// polynomials
			cycles += b.Ops[to].addend()
		}
		b.Ops[to].Waits = append(b.Ops[to].Waits, Wait{Op: from, Before: c.Before, Cycles: cycles * min(1, b.Ops[to].Weight)})
	}
	if o.FillWait != nil {
		b.waitForFills(pieces, o)
	}
	return b
}

// waitForFills adds dependences of loads on earlier loads of the iteration that fetch the same
// line. The addresses of both loads must be the same value plus constants (fields of one
// structure). A later load from the line hits in the first level, but its value is available only
// when the line has arrived.
func (b *Body) waitForFills(pieces []Piece, o Options) {
	type fetch struct {
		op     uint32
		access Access
		before int // number of preceding references in the iteration
	}
	fetches := map[Wait][]fetch{}
	references := 0
	for i := range b.Ops {
		op := &b.Ops[i]
		site := pieces[op.Block].Instrs[op.Instr].Site
		if site == 0 {
			continue
		}
		if base, known := b.baseOf(pieces, uint32(i)); known && op.Class == Load {
			now := fetch{uint32(i), Access{int(op.Block), site}, references}
			for _, f := range fetches[base] {
				if b.Ops[f.op].Weight < op.Weight {
					continue
				}
				if cycles := o.FillWait(now.access, f.access, now.before-f.before-1); cycles > 0 {
					op.Waits = append(op.Waits, Wait{Op: f.op, Cycles: cycles * min(1, op.Weight)})
				}
			}
			fetches[base] = append(fetches[base], now)
		}
		references++
	}
}

// baseOf follows the address of an operation back, through additions of constants, to the value from
// which the address is computed. It returns false if this value is unknown.
func (b *Body) baseOf(pieces []Piece, op uint32) (base Wait, known bool) {
	for range b.Ops {
		of := &b.Ops[op]
		in := &pieces[of.Block].Instrs[of.Instr]
		if in.Opcode != "load" && (in.Opcode != "getelementptr" || len(in.Uses) != 1) {
			return Wait{Op: op}, true
		}
		if len(in.Uses) == 0 {
			return Wait{}, false
		}
		if in.Opcode == "load" && known {
			return Wait{Op: op}, true // the base is a loaded pointer
		}
		at := slices.IndexFunc(of.Waits, func(w Wait) bool { return b.isDependenceOf(pieces, of, in.Uses[0], w) })
		if at < 0 {
			// the operand of op is computed outside the body, so op is the base unless op is the
			// original load
			return Wait{Op: op}, known
		}
		if base = (Wait{Op: of.Waits[at].Op, Before: of.Waits[at].Before}); base.Before > 0 {
			return base, true
		}
		op, known = base.Op, true
	}
	return Wait{}, false
}

// isDependenceOf reports whether dependence w belongs to operand "use", which is an element
// of trace.Instr.Uses.
func (b *Body) isDependenceOf(pieces []Piece, of *Op, use int32, w Wait) bool {
	from := &b.Ops[w.Op]
	if pieces[from.Block].Instrs[from.Instr].Opcode == "store" {
		return false
	}
	if d := definedBy(use); d >= 0 {
		return from.Block == of.Block && from.Instr == uint32(d) && (w.Before > 0) == (use <= -2)
	}
	return from.Block != of.Block
}

// layout converts the instructions of a block to operations of a body.
type layout struct {
	p       *Processor
	b       *Body
	instrs  []trace.Instr
	block   int
	options Options
	target  trace.Target
	apart   bool // whether multiply-adds are executed as a product and a sum
	// by instruction: the instructions of the block that use its result; one entry for each use
	users [][]int32
	// by instruction: whether the instruction is free, because it is part of another instruction
	free []bool
	// by instruction: for a sum that becomes a multiply-add, 1 + the number of the operand that is
	// the product
	product []uint8
}

// addend returns a negative number of cycles for a multiply-add: the third operand may arrive
// this much later than the other operands. For other operations, addend returns 0.
func (op *Op) addend() float64 {
	if op.Class == FMA && op.Cost.Addend > 0 {
		return op.Cost.Addend - op.Cost.Latency
	}
	return 0
}

func (l *layout) findUsers() {
	l.users = make([][]int32, len(l.instrs))
	l.free = make([]bool, len(l.instrs))
	l.product = make([]uint8, len(l.instrs))
	for i := range l.instrs {
		for _, u := range l.instrs[i].Uses {
			if d := definedBy(u); d >= 0 && int(d) < len(l.instrs) {
				l.users[d] = append(l.users[d], int32(i))
			}
		}
	}
}

// definedBy returns the instruction of the block that computes a used value, in this iteration or
// in the previous one. It returns -1 if no instruction of the block computes the value.
func definedBy(use int32) int32 {
	if use <= -2 {
		return -2 - use
	}
	return use
}

// definingInstr returns the instruction of the block that computes an operand in this iteration, or
// -1.
func (l *layout) definingInstr(in *trace.Instr, operand int) int32 {
	if operand >= len(in.Uses) || in.Uses[operand] < 0 || int(in.Uses[operand]) >= len(l.instrs) {
		return -1
	}
	return in.Uses[operand]
}

// allUsers reports whether the block uses the result of an instruction, and the function "test"
// returns true for all users.
func (l *layout) allUsers(i int, test func(user int32) bool) bool {
	for _, u := range l.users[i] {
		if !test(u) {
			return false
		}
	}
	return len(l.users[i]) > 0
}

func (l *layout) opcode(i int32) string {
	if i < 0 {
		return ""
	}
	return l.instrs[i].Opcode
}

// appendOps appends the operations of the block to the body, with the given weight.
func (l *layout) appendOps(weight float64) {
	first := len(l.b.Ops)
	for i := range l.instrs {
		l.markFree(i)
	}
	for i := range l.instrs {
		in := &l.instrs[i]
		op := Op{Block: uint32(l.block), Instr: uint32(i), Weight: weight}
		if !l.free[i] {
			op.Class, op.Cost = l.cost(i)
			op.Cost = l.addCrossing(op.Class, op.Cost, in.Site)
			if l.options.Misses != nil && in.Site > 0 {
				op.Misses = l.options.Misses(l.block, in.Site)
			}
		}
		l.b.Ops = append(l.b.Ops, op)
	}
	for i := range l.instrs {
		l.b.Ops[first+i].Waits = l.dependences(first, i)
	}
}

// dependences returns the dependences of an instruction on other instructions of its block. The
// index of the block's first operation is "first".
func (l *layout) dependences(first, i int) []Wait {
	uses, op := l.instrs[i].Uses, &l.b.Ops[first+i]
	if len(uses) == 0 {
		return nil
	}
	waits := make([]Wait, 0, len(uses))
	for k, u := range uses {
		d := definedBy(u)
		if d < 0 || int(d) >= len(l.instrs) || u >= int32(i) {
			continue
		}
		w := Wait{Op: uint32(first) + uint32(d)}
		if u <= -2 {
			w.Before = 1
		}
		from := &l.b.Ops[w.Op]
		latency := from.Cost.Latency
		if from.Cost.Again > 0 && l.feedsSameClass(from, i, k) {
			latency = from.Cost.Again
		}
		if k == l.addendOf(i) {
			latency += op.addend()
		}
		w.Cycles = latency * min(1, op.Weight)
		waits = append(waits, w)
	}
	return waits
}

// feedsSameClass reports whether instruction i uses the result of operation "from" only in
// operations that have the class of "from", directly or through a phi.
func (l *layout) feedsSameClass(from *Op, i, operand int) bool {
	class := from.Class
	if class == FMA && l.apart {
		class = FAdd
	}
	if l.instrs[i].Opcode != "phi" {
		return l.consumerClass(i, operand) == class
	}
	return l.allUsers(i, func(u int32) bool {
		for k, use := range l.instrs[u].Uses {
			if definedBy(use) == int32(i) && l.consumerClass(int(u), k) != class {
				return false
			}
		}
		return true
	})
}

// consumerClass returns the class of the operation that consumes an operand of an instruction.
// The operation may be only a part of the instruction.
func (l *layout) consumerClass(i, operand int) Class {
	class, _ := kindOf(&l.instrs[i])
	switch {
	case l.product[i] > 0:
		return FMA
	case class != FMA || !l.apart:
		return class
	case operand == 2:
		return FAdd
	}
	return FMul
}

// isAddress reports whether an instruction uses its operand as an address.
func (l *layout) isAddress(user int32) bool {
	switch l.instrs[user].Opcode {
	case "getelementptr", "load":
		return true
	}
	return false
}

// markFree marks instruction i as free if it becomes a part of another instruction of the target.
func (l *layout) markFree(i int) {
	in := &l.instrs[i]
	switch in.Opcode {
	case "add", "sub", "or":
		// Adding a constant to an address is free.
		l.free[i] = l.free[i] || len(in.Uses) == 1 && (l.allUsers(i, l.isAddress) || l.isDisplacement(in))
	case "zext", "sext":
		if of := shapeOf(in.Type); of.elements > 0 {
			// free, because the mask that the comparison computes is already the extended vector
			l.free[i] = l.isCompare(l.definingInstr(in, 0))
			return
		}
		l.markFreeExtension(i, in)
	case "fadd", "fsub":
		l.fuseSum(i)
	case "icmp":
		l.free[i] = l.p.Fuses&CompareBranch != 0 && l.allUsers(i, func(u int32) bool { return l.instrs[u].Opcode == "br" })
	case "fneg":
		l.free[i] = l.allUsers(i, func(u int32) bool {
			class, _ := intrinsic(&l.instrs[u])
			return class == FMA && !l.isLibrary(&l.instrs[u])
		})
	case "select":
		if l.isFloatMin(in) {
			c := l.definingInstr(in, 0)
			l.free[c] = l.allUsers(int(c), func(u int32) bool { return u == int32(i) })
		}
	}
}

// isDisplacement reports whether the address computation of a product also adds the constant of a
// sum, in the same time. On x86-64, an address computation can add a constant, but no processor
// completes an address computation with three operands in one cycle.
func (l *layout) isDisplacement(in *trace.Instr) bool {
	from := l.definingInstr(in, 0)
	if in.Opcode != "add" || from < 0 || l.p.ISA != "x86-64" || !isScaled(&l.instrs[from]) || len(l.users[from]) != 1 {
		return false
	}
	c, ok := l.p.cost(Scaled, l.shapeInRegisters(in.Type))
	return ok && c.Latency >= 2
}

// markFreeExtension marks extensions that cost nothing: instructions with narrower results clear
// the upper bits, and loads can extend values.
func (l *layout) markFreeExtension(i int, in *trace.Instr) {
	from := l.definingInstr(in, 0)
	switch {
	case l.isCompare(from):
	case in.Opcode == "zext":
		l.free[i] = from < 0 || !isBit(l.instrs[from].Type)
	default:
		l.free[i] = l.opcode(from) == "load" || l.p.Fuses&ExtendAddress != 0 && l.allUsers(i, l.isAddress)
	}
}

func (l *layout) isCompare(i int32) bool { return l.opcode(i) == "icmp" || l.opcode(i) == "fcmp" }

// isNumberVector reports whether the result of a vector comparison is used only as a vector of
// numbers, not as a mask.
func (l *layout) isNumberVector(i int) bool {
	return l.allUsers(i, func(u int32) bool { return l.opcode(u) == "zext" || l.opcode(u) == "sext" })
}

// fusesWithUser reports whether a load enters the core as one micro-op with its only user.
func (l *layout) fusesWithUser(i int) bool {
	if l.p.Fuses&LoadOperation == 0 || len(l.users[i]) != 1 {
		return false
	}
	switch l.opcode(l.users[i][0]) {
	case "phi", "store", "load", "getelementptr", "zext", "sext", "trunc", "br", "ret":
		return false
	}
	if l.target.Lacks(trace.AVX) && strings.HasPrefix(l.instrs[i].Type, "<") {
		return false // without AVX, the vector in memory must be aligned, but the alignment is rarely known
	}
	return int(l.users[i][0]) > i
}

func isBit(typ string) bool { return typ == "i1" }

// isFloatMin reports whether a select computes a minimum or maximum: a choice between the two
// numbers that were compared.
func (l *layout) isFloatMin(in *trace.Instr) bool {
	c := l.definingInstr(in, 0)
	if l.p.Fuses&CompareSelect == 0 || l.opcode(c) != "fcmp" || !shapeOf(in.Type).isFloat() {
		return false
	}
	compared, chosen := l.instrs[c].Uses, in.Uses[1:]
	switch {
	case len(compared) != len(chosen):
		return false
	case len(chosen) == 1:
		return compared[0] == chosen[0]
	case len(chosen) == 2:
		return compared[0] == chosen[0] && compared[1] == chosen[1] || compared[0] == chosen[1] && compared[1] == chosen[0]
	}
	return false
}

// cost returns the class and the cost of an instruction that is not a part of another instruction.
func (l *layout) cost(i int) (Class, Cost) {
	in := &l.instrs[i]
	class, some := kindOf(in)
	if !some {
		return "", Cost{}
	}
	switch {
	case l.isLibrary(in):
		class = Call
	case l.product[i] > 0:
		class = FMA
	}
	of := l.shapeInRegisters(in.Type)
	c, ok, found := l.replacedCost(class, in, of)
	if found {
		if !ok {
			l.b.lacks(class, in.Type, uint32(l.block))
		}
		return class, c
	}
	switch class {
	case IDiv:
		if c, ok = l.divisionCost(in, of); len(in.Uses) == 1 {
			class = IMul
		}
	case Branch:
		c, ok = l.p.cost(class, shape{element: "i32", parts: 1})
		if in.Opcode == "switch" {
			c = c.repeated(max(1, len(in.Uses)))
		}
	case Extend:
		if from := l.definingInstr(in, 0); of.elements == 0 && (l.opcode(from) == "icmp" || l.opcode(from) == "fcmp") {
			class = SetBit
		}
		c, ok = l.p.cost(class, of)
	case Select:
		if l.isFloatMin(in) {
			class = FMin
		}
		c, ok = l.p.cost(class, of)
	case ICmp, FCmp:
		if of.elements > 0 && l.isNumberVector(i) {
			class = Mask
		}
		c, ok = l.p.cost(class, of)
	case IntToF:
		if from := l.definingInstr(in, 0); from >= 0 && shapeOf(l.instrs[from].Type).element == "i64" {
			class = LongToF
		}
		c, ok = l.p.cost(class, of)
	case Load, Gather, Masked:
		if c, ok = l.p.cost(class, of); ok && l.options.LoadLatency != nil {
			if latency := l.options.LoadLatency(l.block, in.Site); latency > 0 {
				c.Latency += latency - l.replacedLatency(c)
			}
		}
		if class == Load && l.fusesWithUser(i) {
			c.MicroOps = 0
		}
	case Scatter, MaskedS:
		// Use the type of the stored value.
		of = shape{element: "double", elements: 4, parts: 1}
		if from := l.definingInstr(in, 0); from >= 0 {
			of = l.shapeInRegisters(l.instrs[from].Type)
		}
		c, ok = l.p.cost(class, of)
	case Call:
		name := in.Opcode
		if name != "ret" && name != "resume" && !slices.Contains(l.b.Unknown, name) {
			l.b.Unknown = append(l.b.Unknown, name)
		}
		c, ok = l.p.cost(class, shape{element: "i64", parts: 1})
	default:
		c, ok = l.p.cost(class, of)
	}
	if !ok {
		l.b.lacks(class, in.Type, uint32(l.block))
	}
	return class, c
}

// addCrossing adds the cost of crossing a line to the cost of an access. If the description does not
// contain this cost, an access that crosses a line uses its ports twice (Intel 64 and IA-32
// Architectures Optimization Reference Manual, on accesses that cross a line).
func (l *layout) addCrossing(class Class, c Cost, site uint32) Cost {
	more := CrossingLoad
	switch class {
	case Load:
	case Store:
		more = CrossingStore
	default:
		return c
	}
	if l.options.Crossing == nil || site == 0 {
		return c
	}
	share := l.options.Crossing(l.block, site)
	if !(share > 0) {
		return c
	}
	again, found := l.p.costs[Key{Class: more}]
	if !found {
		again = Cost{Uses: c.Uses}
	}
	uses := slices.Clone(c.Uses)
	for _, u := range again.Uses {
		uses = append(uses, Use{Ports: u.Ports, Cycles: u.Cycles * share, After: u.After})
	}
	c.Uses = uses
	c.Latency += again.Latency * share
	return c
}

// replacedLatency returns the part of a load's latency that is replaced by E(λ): the latency of an
// integer load from the first level, but at most the latency of the load itself.
func (l *layout) replacedLatency(c Cost) float64 {
	if latency := l.p.FirstLevel(); latency > 0 {
		return min(latency, c.Latency)
	}
	return c.Latency
}

// FirstLevel returns the latency of an integer load that hits in the first level, or 0 if it is
// unknown.
func (p *Processor) FirstLevel() float64 {
	if len(p.Levels) > 0 {
		return p.Levels[0].LatencyCycles
	}
	c, _ := p.cost(Load, shape{element: "i64", parts: 1})
	return c.Latency
}

// divisionCost returns the cost of a division. A division by a constant is replaced by
// a multiplication and shifts.
func (l *layout) divisionCost(in *trace.Instr, of shape) (Cost, bool) {
	if len(in.Uses) != 1 {
		return l.p.cost(IDiv, of)
	}
	wide := of
	if of.elements == 0 {
		wide.element = "i64" // the quotient is computed from the upper half of a 64-bit product
	}
	c, ok := l.p.sequenceCost(wide, IMul, Shift)
	if !ok {
		return c, false
	}
	if in.Opcode == "sdiv" || in.Opcode == "srem" {
		sign, ok1 := l.p.cost(Shift, of)
		sum, ok2 := l.p.cost(IAdd, of)
		if !ok1 || !ok2 {
			return c, false
		}
		c = c.alongside(sign).followedBy(sum)
	}
	if in.Opcode == "urem" || in.Opcode == "srem" {
		back, ok := l.p.sequenceCost(of, IMul, IAdd)
		if !ok {
			return c, false
		}
		c = c.followedBy(back)
	}
	return c, true
}

func (b *Body) lacks(class Class, typ string, block uint32) {
	for i := range b.Missing {
		if b.Missing[i].Class == class {
			b.Missing[i].Count++
			return
		}
	}
	b.Missing = append(b.Missing, Missing{Class: class, Type: typ, Block: block, Count: 1})
}

// MicroOps returns the number of micro-ops in one execution of the body.
func (b *Body) MicroOps() float64 {
	sum := 0.0
	for i := range b.Ops {
		sum += b.Ops[i].Weight * float64(b.Ops[i].Cost.MicroOps)
	}
	return sum
}
