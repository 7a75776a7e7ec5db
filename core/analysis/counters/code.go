package counters

import (
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// code is what the trace's tables say of the program, prepared. It grows with
// them.
type code struct {
	program    *trace.Program
	blocks     [][]opCount // instructions of each block
	kinds      []opKind
	kindOf     map[opKey]uint32
	byRow      []bool   // by site: its references are counted row by row
	functionOf []uint32 // by site: 1 + its function, 0 for none
	sized      bool     // a load, store or modify is among the sites whose records tell a length
}

// opKey tells instructions apart that count differently.
type opKey struct {
	opcode, datatype string
	several          bool // a branch to several places
}

// opCount is a number of equal instructions of a block.
type opCount struct {
	kind  uint32
	count uint32
}

// opKind is what one execution of an instruction counts.
type opKind struct {
	opcode string
	adds   []addition
	vector shape  // of what it operates on; 0 lanes for what is no vector
	callee string // the function that it calls without ending its block
}

// addition is an amount of one counter.
type addition struct {
	counter profile.Counter
	amount  uint64
}

// learn takes in what p has more than before.
func (c *code) learn(p *trace.Program, bySynthetic bool) {
	c.program = p
	if c.kindOf == nil {
		c.kindOf = map[opKey]uint32{}
	}
	for n := len(c.blocks); n < len(p.Blocks); n++ {
		c.blocks = append(c.blocks, c.opsOf(&p.Blocks[n]))
	}
	for n := len(c.byRow); n < len(p.Sites); n++ {
		s := &p.Sites[n]
		sized := s.Bytes == 0 && s.Flags&trace.NoSize == 0 && s.Kind.IsReference()
		synthetic, function := false, uint32(0)
		if uint64(s.Block) < uint64(len(p.Blocks)) {
			synthetic = p.Blocks[s.Block].Flags&trace.Synthetic != 0
			function = c.functionNumber(p.Blocks[s.Block].Function) + 1
		}
		c.byRow = append(c.byRow, sized && !synthetic || synthetic && bySynthetic)
		c.functionOf = append(c.functionOf, function)
		c.sized = c.sized || sized && !synthetic && s.Kind < trace.RangeRead
	}
}

// functionNumber is the number, or NoFunction where there is none.
func (c *code) functionNumber(n uint32) uint32 {
	if uint64(n) < uint64(len(c.program.Functions)) {
		return n
	}
	return profile.NoFunction
}

func (c *code) opsOf(b *trace.Block) []opCount {
	list := make([]opCount, 0, len(b.Ops))
	for _, op := range b.Ops {
		key := opKey{op.Opcode, op.Type, op.Opcode == "br" && len(b.Successors) > 1}
		kind, known := c.kindOf[key]
		if !known {
			kind = uint32(len(c.kinds))
			c.kindOf[key] = kind
			c.kinds = append(c.kinds, kindOf(key))
		}
		list = append(list, opCount{kind, op.Count})
	}
	return list
}

// rule says how the opcodes of a list count: what one lane of them is, and how
// many values as wide as their type, and truth values by lane, an operation
// takes in and gives.
type rule struct {
	opcodes       string // between blanks
	counter       profile.Counter
	values, truth uint64
}

// The package's documentation says why.
var rules = []rule{
	{" fadd fsub fmul fdiv frem ", profile.Flops, 3, 0},
	{" fneg ", profile.Flops, 2, 0},
	{" fcmp ", profile.FloatOther, 2, 1},
	{" fptrunc fpext fptosi fptoui sitofp uitofp ", profile.FloatOther, 2, 0},
	{" add sub mul udiv sdiv urem srem shl lshr ashr and or xor getelementptr ", profile.IntegerOps, 3, 0},
	{" icmp ", profile.IntegerOps, 2, 1},
	{" select ", profile.IntegerOps, 3, 1},
	{" trunc zext sext ptrtoint ptrtoaddr inttoptr addrspacecast shufflevector ", profile.IntegerOps, 2, 0},
	{oneLane, profile.IntegerOps, 2, 0},
	{" switch indirectbr callbr ", profile.ConditionalBranches, 0, 0},
	{" ret resume ", profile.Returns, 0, 0},
	{" call invoke ", profile.CallOps, 0, 0},
}

// oneLane are instructions by which one value goes in or out, whatever the
// vector's length.
const oneLane = " extractelement insertelement extractvalue insertvalue "

// kindOf says what an instruction counts.
func kindOf(key opKey) opKind {
	k := opKind{opcode: key.opcode, adds: []addition{{profile.Instructions, 1}}}
	s := shapeOf(key.datatype)
	for i := range rules {
		r := &rules[i]
		if !strings.Contains(r.opcodes, " "+key.opcode+" ") {
			continue
		}
		if r.opcodes == oneLane {
			s.lanes = 1
		}
		switch {
		case r.values == 0:
			k.add(r.counter, 1)
		case r.counter == profile.Flops:
			k.flops(s, 1, r.values)
		default:
			k.operation(r.counter, s, s.lanes*(r.values*s.bits+r.truth))
		}
		return k
	}
	if key.opcode != "br" {
		k.named(s)
	} else if key.several {
		k.add(profile.ConditionalBranches, 1)
	} else {
		k.add(profile.UnconditionalBranches, 1)
	}
	return k
}

// named counts a call that ends no block and stands under a name: of one of
// LLVM's own functions, of which only fused operations count, or of a library
// function that the compiler knows, as "call sin".
func (k *opKind) named(s shape) {
	if word, callee, found := strings.Cut(k.opcode, " "); found && (word == "call" || word == "invoke") {
		k.callee = callee
		k.add(profile.CallOps, 1)
	} else if k.opcode == "llvm.fma" || k.opcode == "llvm.fmuladd" {
		k.flops(s, 2, 4)
	}
}

// flops counts each flops a lane, on so many values.
func (k *opKind) flops(s shape, each, values uint64) {
	s.float = true
	bits := s.lanes * s.bits * values
	k.add(profile.FlopBits, bits)
	k.operation(profile.Flops, s, bits)
	if each == 2 {
		k.add(profile.Flops, s.lanes)
		if s.lanes > 1 {
			k.add(profile.VectorOps, s.lanes)
		}
	}
}

func (k *opKind) operation(counter profile.Counter, s shape, bits uint64) {
	k.add(counter, s.lanes)
	k.add(profile.OpBits, bits)
	if s.lanes > 1 {
		k.add(profile.VectorOps, s.lanes)
		k.vector = s
	}
}

//go:noinline
func (k *opKind) add(counter profile.Counter, amount uint64) {
	if amount != 0 {
		k.adds = append(k.adds, addition{counter, amount})
	}
}
