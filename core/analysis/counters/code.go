package counters

import (
	"github.com/stackglass/stackglass/core/blocks/opclass"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// code is what the trace's tables say of the program, prepared.
type code struct {
	program    *trace.Program
	blocks     [][]opCount // instructions of each block
	kinds      []opclass.Instruction
	kindOf     map[opKey]uint32
	byRow      []bool   // by site: its references are counted row by row
	functionOf []uint32 // by site: 1 + its function, 0 for none
	sized      bool     // a load, store or modify is among the sites whose records tell a length
}

type opKey struct {
	opcode, datatype string
	several          bool // a branch to several places
}

// opCount is a number of equal instructions of a block.
type opCount struct {
	kind  uint32
	count uint32
}

// learn adds what p has more than before.
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

// functionNumber returns n, or NoFunction if there is no such function.
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
			c.kinds = append(c.kinds, opclass.Of(op.Opcode, op.Type, key.several))
		}
		list = append(list, opCount{kind, op.Count})
	}
	return list
}
