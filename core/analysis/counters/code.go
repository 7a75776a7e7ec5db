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
	vector profile.VectorCounter // its shape; Lanes is 0 for what is none
	callee string                // the function that it calls without ending its block
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

// kindOf says what an instruction counts; the package's documentation says why.
func kindOf(key opKey) opKind {
	k := opKind{opcode: key.opcode, adds: []addition{{profile.Instructions, 1}}}
	s := shapeOf(key.datatype)
	width := s.lanes * s.bits
	switch key.opcode {
	case "fadd", "fsub", "fmul", "fdiv", "frem":
		k.flops(s, 1, 3*width)
	case "fneg":
		k.flops(s, 1, 2*width)
	case "fcmp":
		k.operation(profile.FloatOther, s, 2*width+s.lanes)
	case "fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp":
		k.operation(profile.FloatOther, s, 2*width)
	case "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor", "getelementptr":
		k.operation(profile.IntegerOps, s, 3*width)
	case "icmp":
		k.operation(profile.IntegerOps, s, 2*width+s.lanes)
	case "select":
		k.operation(profile.IntegerOps, s, 3*width+s.lanes)
	case "trunc", "zext", "sext", "ptrtoint", "ptrtoaddr", "inttoptr", "addrspacecast", "shufflevector":
		k.operation(profile.IntegerOps, s, 2*width)
	case "extractelement", "insertelement", "extractvalue", "insertvalue":
		// One value goes in or out, whatever the vector's length.
		k.operation(profile.IntegerOps, shape{lanes: 1, bits: s.bits}, 2*s.bits)
	case "br":
		if key.several {
			k.add(profile.ConditionalBranches, 1)
		} else {
			k.add(profile.UnconditionalBranches, 1)
		}
	case "switch", "indirectbr", "callbr":
		k.add(profile.ConditionalBranches, 1)
	case "ret", "resume":
		k.add(profile.Returns, 1)
	case "call", "invoke":
		k.add(profile.CallOps, 1)
	default:
		k.named(s, width)
	}
	return k
}

// named counts a call that ends no block and stands under a name: of one of
// LLVM's own functions, of which only fused operations count, or of a library
// function that the compiler knows, as "call sin".
func (k *opKind) named(s shape, width uint64) {
	if word, callee, found := strings.Cut(k.opcode, " "); found && (word == "call" || word == "invoke") {
		k.callee = callee
		k.add(profile.CallOps, 1)
	} else if k.opcode == "llvm.fma" || k.opcode == "llvm.fmuladd" {
		k.flops(s, 2, 4*width)
	}
}

func (k *opKind) flops(s shape, each, bits uint64) {
	k.add(profile.FlopBits, bits)
	k.operation(profile.Flops, shape{lanes: s.lanes, bits: s.bits, float: true}, bits)
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
		k.vector = profile.VectorCounter{Lanes: uint32(s.lanes), Bits: uint32(s.bits), Float: s.float}
	}
}

func (k *opKind) add(counter profile.Counter, amount uint64) {
	if amount != 0 {
		k.adds = append(k.adds, addition{counter, amount})
	}
}
