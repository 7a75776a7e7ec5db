package pipeline

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Class is a class of instructions. Descriptions of processors contain costs for classes.
type Class string

// The first eleven classes are the classes of PPT's hardware files. If a description contains no
// cost for another class, the cost of one of these eleven classes is used instead.
const (
	IAdd    Class = "iadd"
	FAdd    Class = "fadd"
	IDiv    Class = "idiv"
	FDiv    Class = "fdiv"
	IMul    Class = "imul"
	FMul    Class = "fmul"
	Load    Class = "load"
	Store   Class = "store"
	ALU     Class = "alu" // and, or, xor, and instructions without a specific class
	Branch  Class = "br"
	Unknown Class = "unknown"

	Shift   Class = "shift"   // shift by a constant
	ShiftBy Class = "shiftby" // shift by a register
	Rotate  Class = "rotate"
	ICmp    Class = "icmp"
	FCmp    Class = "fcmp"
	Mask    Class = "mask" // vector comparison whose result is used as a vector of numbers
	SetBit  Class = "set"  // conversion of the result of a comparison to a number
	Select  Class = "select"
	IMin    Class = "imin" // minimum or maximum of two integers
	FMin    Class = "fmin"
	Extend  Class = "extend" // extension of integers; costs are listed by result type
	Narrow  Class = "narrow" // truncation of integer vectors; costs are listed by result type
	FMA     Class = "fma"
	FSign   Class = "fsign" // negation, absolute value, and copying of a sign
	Sqrt    Class = "sqrt"
	Round   Class = "round"
	IntToF  Class = "itof" // integer to float; costs are listed by result type
	LongToF Class = "ltof" // 64-bit integer to float; costs are listed by result type
	FToInt  Class = "ftoi" // float to integer; costs are listed by result type
	Convert Class = "fcvt" // conversion between float and double; costs are listed by result type
	Shuffle Class = "shuffle"
	Insert  Class = "insert"
	Extract Class = "extract"
	Count   Class = "count" // number of ones, leading zeros or trailing zeros
	Swap    Class = "bswap"
	Atomic  Class = "atomic"
	Gather  Class = "gather" // gather; costs are listed by type of the gathered vector
	Scatter Class = "scatter"
	Masked  Class = "maskedload"
	MaskedS Class = "maskedstore"
	Call    Class = "call"
	// Scaled is the sum of a value and the same value times 2, 4 or 8: a product with 3, 5 or 9,
	// which an address computation (lea on x86-64) can compute.
	Scaled Class = "scaled"

	// CrossingLoad and CrossingStore contain the additional cost of an access that crosses a line.
	CrossingLoad  Class = "crossingload"
	CrossingStore Class = "crossingstore"
)

// substitutes maps each class to its substitute. If a description contains no cost for the class, the
// cost of the substitute is used.
var substitutes = map[Class]Class{
	ALU: IAdd, IAdd: Unknown, Branch: Unknown, IMul: Unknown, FMul: FAdd, IDiv: Unknown, FDiv: Unknown,
	Shift: ALU, ShiftBy: Shift, Rotate: Shift, ICmp: ALU, FCmp: FAdd, Mask: ICmp, SetBit: ALU, Select: ALU, FMin: FAdd,
	Extend: ALU, Narrow: Shuffle, FSign: ALU, Sqrt: FDiv, Round: FAdd, IntToF: FAdd, LongToF: IntToF, FToInt: FAdd, Convert: FAdd,
	Shuffle: ALU, Insert: Shuffle, Extract: Shuffle, Count: ALU, Swap: ALU, Scaled: ALU, Atomic: Store,
	Gather: Load, Scatter: Store, Masked: Load, MaskedS: Store, Call: Branch, FAdd: Unknown, Load: Unknown, Store: Unknown,
}

// withoutSubstitute lists the classes without a substitute. If a description contains no cost for
// CrossingLoad or CrossingStore, an access that crosses a line counts twice.
var withoutSubstitute = []Class{Unknown, FMA, IMin, CrossingLoad, CrossingStore}

func isClass(name string) bool {
	_, ok := substitutes[Class(name)]
	return ok || slices.Contains(withoutSubstitute, Class(name))
}

// opcodes maps the opcodes of trace.Instr to classes. Instructions of class "" cost nothing.
var opcodes = byName(map[Class]string{
	"": "phi getelementptr bitcast addrspacecast inttoptr ptrtoint freeze alloca " +
		"extractvalue insertvalue asm unreachable landingpad va_arg fence",
	IAdd: "add sub", ALU: "and or xor", Shift: "shl lshr ashr", IMul: "mul", IDiv: "udiv sdiv urem srem",
	ICmp: "icmp", FCmp: "fcmp", Select: "select", Extend: "zext sext", Narrow: "trunc",
	FAdd: "fadd fsub", FMul: "fmul", FDiv: "fdiv", FSign: "fneg",
	IntToF: "sitofp uitofp", FToInt: "fptosi fptoui", Convert: "fpext fptrunc",
	Load: "load", Store: "store", Atomic: "atomicrmw cmpxchg",
	Insert: "insertelement", Extract: "extractelement", Shuffle: "shufflevector",
	Branch: "br switch indirectbr", Call: "ret call invoke callbr resume frem",
})

// intrinsics maps the names of LLVM's intrinsics, without the prefix "llvm.", to classes.
var intrinsics = byName(map[Class]string{
	FMA: "fma fmuladd", Sqrt: "sqrt", FSign: "fabs copysign",
	Round: "floor ceil rint nearbyint trunc round roundeven",
	IMin:  "smax smin umax umin abs", FMin: "minnum maxnum minimum maximum",
	Rotate: "fshl fshr", Count: "ctpop ctlz cttz", Swap: "bswap bitreverse",
	IAdd: "sadd.with.overflow uadd.with.overflow ssub.with.overflow usub.with.overflow " +
		"sadd.sat uadd.sat ssub.sat usub.sat ucmp scmp",
	IMul:   "smul.with.overflow umul.with.overflow",
	Gather: "masked.gather", Scatter: "masked.scatter", Masked: "masked.load", MaskedS: "masked.store",
	FToInt: "lrint llrint lround llround fptosi.sat fptoui.sat",
	Shuffle: "vector.reduce.add vector.reduce.fadd vector.reduce.smax vector.reduce.smin " +
		"vector.reduce.umax vector.reduce.umin vector.reduce.or vector.reduce.and vector.reduce.xor",
	Call: "memcpy memmove memset sin cos exp exp2 log log2 log10 pow powi",
	Load: "prefetch",
})

// byName converts a map from classes to lists of names to a map from names to classes.
func byName(names map[Class]string) map[string]Class {
	classes := map[string]Class{}
	for class, list := range names {
		for name := range strings.FieldsSeq(list) {
			classes[name] = class
		}
	}
	return classes
}

// kindOf returns the class of an instruction according to its opcode, or false if the instruction
// has no cost. The instructions that use the result or compute the operands may still change the
// class.
func kindOf(in *trace.Instr) (Class, bool) {
	class, known := opcodes[in.Opcode]
	switch {
	case isScaled(in):
		return Scaled, true
	case strings.HasPrefix(in.Opcode, "mul "):
		return IMul, true
	case !known:
		return intrinsic(in)
	case class == Shift && len(in.Uses) > 1:
		return ShiftBy, true
	case class == Narrow:
		return Narrow, strings.HasPrefix(in.Type, "<")
	case in.Opcode == "br":
		return Branch, in.Type != ""
	}
	return class, class != ""
}

// isScaled reports whether an instruction multiplies an integer by 3, 5 or 9, so that an address
// computation can compute the product. Products of vectors and of integers with more than 64 bits
// remain multiplications.
func isScaled(in *trace.Instr) bool {
	switch in.Opcode {
	case "mul 3", "mul 5", "mul 9":
		return in.Type == "i64" || in.Type == "i32" || in.Type == "i16" || in.Type == "i8"
	}
	return false
}

// intrinsic returns the class of a call that is compiled to an instruction. The callee is an LLVM
// intrinsic, or a function of the math library for which processors have an instruction.
func intrinsic(in *trace.Instr) (Class, bool) {
	name, ok := strings.CutPrefix(in.Opcode, "llvm.")
	if !ok {
		if _, name, _ = strings.Cut(in.Opcode, " "); name == "sqrt" || name == "sqrtf" {
			return Sqrt, true
		}
		return Call, true
	}
	if class, known := intrinsics[name]; known {
		return class, true
	}
	return Unknown, true
}
