package pipeline

import "github.com/stackglass/stackglass/core/trace"

// x86 is the value of isa in descriptions of x86 processors.
const x86 = "x86-64"

// effectiveTarget returns the target of the code. For processors that are not x86, the result
// contains at most the flag trace.Contract. The code is then treated as if it had been compiled for
// the processor, with all features of the processor.
func (p *Processor) effectiveTarget(t trace.Target) trace.Target {
	if p.ISA != "" && p.ISA != x86 {
		return t & trace.Contract
	}
	return t
}

// shapeInRegisters returns the shape of a type in the registers of the code's target.
func (l *layout) shapeInRegisters(typ string) shape {
	s := shapeOf(typ)
	if s.elements > 0 {
		s.widestBits = l.target.VectorBits(s.isFloat())
	}
	return s
}

// isX86 reports whether the code is for an x86 processor, even if its exact target is unknown.
func (l *layout) isX86() bool { return l.p.ISA == x86 || l.target&trace.X86 != 0 }

// isLibrary reports whether an intrinsic becomes a call to the math library, because the target
// has no instruction for it.
func (l *layout) isLibrary(in *trace.Instr) bool {
	switch in.Opcode {
	case "llvm.fma":
		return l.target.Lacks(trace.FMA)
	case "llvm.floor", "llvm.ceil", "llvm.rint", "llvm.nearbyint", "llvm.trunc", "llvm.round", "llvm.roundeven":
		return l.target.Lacks(trace.SSE41)
	case "llvm.lround", "llvm.llround":
		return l.isX86()
	}
	return false
}

// recipe is a sequence of steps that replaces one LLVM instruction. The instructions of a step are
// independent.
type recipe [][]Class

// The recipes correspond to the instructions that LLVM's code generator emits
// (X86ISelLowering.cpp).
var (
	ofNumberOrNone = recipe{{FMin, FCmp}, {Select}}          // minnum ignores a NaN operand
	ofNumberByMask = recipe{{FMin, FCmp}, {ALU, ALU}, {ALU}} // minnum without a select instruction
	ofRound        = recipe{{ALU}, {FAdd}, {Round}}          // trunc(x ± 0.5), with the sign of x
	ofOnes         = recipe{{Shift}, {ALU}, {IAdd}, {ALU, Shift}, {ALU}, {IAdd}, {Shift}, {IAdd}, {ALU}, {IMul}, {Shift}}
	ofBlend        = recipe{{ALU, ALU}, {ALU}}        // x & mask | y &^ mask
	ofMin          = recipe{{ALU}, {ALU, ALU}, {ALU}} // compare for a mask, then blend
	ofLongMin      = recipe{{ALU}, {ALU, ALU, Shuffle, Shuffle}, {ALU}, {ALU}, {ALU, ALU}, {ALU}}
	ofLongCompare  = recipe{{ALU}, {ALU, ALU, Shuffle, Shuffle}, {ALU}, {ALU}}
	ofZeros        = recipe{{Shuffle}} // interleave the elements with zeros
	ofSigns        = recipe{{Shuffle}, {Shift}}
	ofRotation     = recipe{{Shift, Shift}, {ALU}}
	ofProduct      = recipe{{Shuffle}, {IMul, IMul}, {Shuffle, Shuffle}, {Shuffle}} // multiply even and odd elements separately
	ofLongProduct  = recipe{{Shift, Shift}, {IMul, IMul, IMul}, {IAdd}, {Shift}, {IAdd}}
)

// replacedCost returns the cost of an instruction that other instructions replace, because the
// code's target does not have it. The result "found" is false if the instruction is not replaced.
func (l *layout) replacedCost(class Class, in *trace.Instr, of shape) (c Cost, ok, found bool) {
	if class == FMA && l.target.Lacks(trace.FMA) {
		c, ok = l.p.productAndSum(of)
		return c, ok, true
	}
	r := l.scalarRecipe(class, in, of)
	if of.elements > 0 {
		r = l.vectorRecipe(class, in, of)
	}
	if r == nil {
		return c, true, false
	}
	c, ok = l.p.recipeCost(of, r)
	return c, ok, true
}

// recipeCost returns the total cost of the steps of a recipe, which are executed one after the
// other.
func (p *Processor) recipeCost(of shape, r recipe) (sum Cost, ok bool) {
	for _, step := range r {
		var together Cost
		for _, class := range step {
			as := of
			switch {
			case class == ALU:
				as = of.asBits()
			// products of other widths are computed from 16-bit products
			case class == IMul && of.elements > 0:
				as.element, as.elements = "i16", of.elements*of.elementBits()/16
			}
			c, ok := p.cost(class, as)
			if !ok {
				return Cost{}, false
			}
			together = together.alongside(c)
		}
		sum = sum.followedBy(together)
	}
	return sum, true
}

// asBits returns the shape for bitwise operations: floating-point elements become integers of the
// same size.
func (s shape) asBits() shape {
	switch s.element {
	case "double":
		s.element, s.elements = "i64", max(2, s.elements)
	case "float":
		s.element, s.elements = "i32", max(4, s.elements)
	}
	return s
}

func (l *layout) scalarRecipe(class Class, in *trace.Instr, of shape) recipe {
	switch class {
	case FMin:
		if ignoresNaN(in) {
			return l.minMaxRecipe()
		}
	case Round:
		if l.isX86() && in.Opcode == "llvm.round" {
			return ofRound
		}
	case Count:
		if in.Opcode == "llvm.ctpop" && l.target.Lacks(trace.POPCNT) {
			return ofOnes
		}
	case Select:
		if of.isFloat() && !l.isFloatMin(in) && l.target.Lacks(trace.AVX) {
			return ofBlend
		}
	}
	return nil
}

func (l *layout) vectorRecipe(class Class, in *trace.Instr, of shape) recipe {
	t := l.target
	switch {
	case class == FMin && ignoresNaN(in):
		return l.minMaxRecipe()
	case class == Round && l.isX86() && in.Opcode == "llvm.round":
		return ofRound
	case (class == Extend || class == Select || class == IMin || class == ICmp && of.element == "i64") && t.Lacks(trace.SSE41):
		return l.sse2Recipe(class, in, of)
	case class == IMul && of.element == "i32" && t.Lacks(trace.SSE41):
		return ofProduct
	case class == IMul && of.element == "i64" && t.Lacks(trace.AVX512):
		return ofLongProduct
	case class == Rotate && t.Lacks(trace.AVX512):
		return ofRotation
	case class == ICmp && of.element != "i64" && t.Lacks(trace.AVX512):
		return recipe{{ALU}} // the result is a vector instead of a mask
	case class == FCmp && t.Lacks(trace.AVX512):
		return recipe{{FMin}}
	}
	return nil
}

// sse2Recipe returns the recipe for vectors in baseline x86-64, which has only SSE2.
func (l *layout) sse2Recipe(class Class, in *trace.Instr, of shape) recipe {
	name := in.Opcode
	switch {
	case class == Extend && name == "zext":
		return ofZeros
	case class == Extend:
		return ofSigns
	case class == ICmp:
		return ofLongCompare
	case class == Select && l.isFloatMin(in):
		return nil
	case class == Select, name == "llvm.abs":
		return ofBlend
	case of.element == "i64":
		return ofLongMin
	case of.element == "i8" && name[:len("llvm.u")] == "llvm.u", of.element == "i16" && name[:len("llvm.s")] == "llvm.s":
		return nil // SSE2 has instructions for these operations
	}
	return ofMin
}

// minMaxRecipe returns the recipe for a minimum or maximum that ignores a NaN operand. Only x86 has
// no instruction for such a minimum or maximum.
func (l *layout) minMaxRecipe() recipe {
	switch {
	case !l.isX86():
		return nil
	case l.target.Lacks(trace.SSE41):
		return ofNumberByMask
	}
	return ofNumberOrNone
}

// ignoresNaN reports whether an instruction computes a minimum or maximum that ignores a NaN operand.
func ignoresNaN(in *trace.Instr) bool {
	return in.Opcode == "llvm.minnum" || in.Opcode == "llvm.maxnum"
}

// fuseSum converts a sum and a product to a fused multiply-add if contraction is allowed, as LLVM's
// code generator does (DAGCombiner, visitFADDForFMACombine). The product is computed in the same
// block, and the sum is its only user. If both operands are such products, fuseSum selects the
// first operand.
func (l *layout) fuseSum(i int) {
	if l.apart || l.target&trace.Contract == 0 {
		return
	}
	for k := range l.instrs[i].Uses {
		if d := l.definingInstr(&l.instrs[i], k); l.opcode(d) == "fmul" && len(l.users[d]) == 1 {
			l.free[d], l.product[i] = true, uint8(k+1)
			return
		}
	}
}

// addendOf returns the number of the operand that a multiply-add needs last.
func (l *layout) addendOf(i int) int {
	if l.product[i] > 0 {
		return 2 - int(l.product[i])
	}
	return 2
}

// productAndSum returns the cost of a multiply-add that is executed as a product and a sum. Only
// the sum waits for the third operand. A dependent sum can use the result as early as it can use
// the result of any other sum.
func (p *Processor) productAndSum(of shape) (c Cost, ok bool) {
	product, ok1 := p.cost(FMul, of)
	sum, ok2 := p.cost(FAdd, of)
	c = product.followedBy(sum)
	c.Addend = sum.Latency
	if sum.Again > 0 {
		c.Again = product.Latency + sum.Again
	}
	return c, ok1 && ok2
}
