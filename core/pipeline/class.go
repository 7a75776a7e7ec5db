package pipeline

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Class is a kind of work that a processor's description has numbers for.
type Class string

// The classes. The first eleven are those of PPT's hardware files (iadd, fadd, idiv,
// fdiv, imul, fmul, load, store, alu, br, unknown), which the others fall back on where a
// description lacks them.
const (
	IAdd    Class = "iadd"
	FAdd    Class = "fadd"
	IDiv    Class = "idiv"
	FDiv    Class = "fdiv"
	IMul    Class = "imul"
	FMul    Class = "fmul"
	Load    Class = "load"
	Store   Class = "store"
	ALU     Class = "alu" // and, or, xor, and what has no class of its own
	Branch  Class = "br"
	Unknown Class = "unknown"

	Shift   Class = "shift"   // by a number that is known
	ShiftBy Class = "shiftby" // by a number in a register
	Rotate  Class = "rotate"
	ICmp    Class = "icmp"
	FCmp    Class = "fcmp"
	Mask    Class = "mask" // a comparison of vectors whose result is a vector of numbers
	SetBit  Class = "set"  // a comparison's result as a number
	Select  Class = "select"
	IMin    Class = "imin" // smaller or larger of two integers
	FMin    Class = "fmin"
	Extend  Class = "extend" // of integers; of the type that comes out
	Narrow  Class = "narrow" // of vectors of integers; of the type that comes out
	FMA     Class = "fma"
	FSign   Class = "fsign" // sign changed, taken away or copied
	Sqrt    Class = "sqrt"
	Round   Class = "round"
	IntToF  Class = "itof" // integer to float; of the type that comes out
	LongToF Class = "ltof" // the same from 64 bits
	FToInt  Class = "ftoi" // of the type that comes out
	Convert Class = "fcvt" // float to double and back; of the type that comes out
	Shuffle Class = "shuffle"
	Insert  Class = "insert"
	Extract Class = "extract"
	Count   Class = "count" // ones, leading or trailing zeros
	Swap    Class = "bswap"
	Atomic  Class = "atomic"
	Gather  Class = "gather" // of the type that is gathered
	Scatter Class = "scatter"
	Masked  Class = "maskedload"
	MaskedS Class = "maskedstore"
	Call    Class = "call"

	// What a load or a store takes more that lies across two lines.
	CrossingLoad  Class = "crossingload"
	CrossingStore Class = "crossingstore"
)

// standIns say which class stands in for one that a description lacks.
var standIns = map[Class]Class{
	ALU: IAdd, IAdd: Unknown, Branch: Unknown, IMul: Unknown, FMul: FAdd, IDiv: Unknown, FDiv: Unknown,
	Shift: ALU, ShiftBy: Shift, Rotate: Shift, ICmp: ALU, FCmp: FAdd, Mask: ICmp, SetBit: ALU, Select: ALU, FMin: FAdd,
	Extend: ALU, Narrow: Shuffle, FSign: ALU, Sqrt: FDiv, Round: FAdd, IntToF: FAdd, LongToF: IntToF, FToInt: FAdd, Convert: FAdd,
	Shuffle: ALU, Insert: Shuffle, Extract: Shuffle, Count: ALU, Swap: ALU, Atomic: Store,
	Gather: Load, Scatter: Store, Masked: Load, MaskedS: Store, Call: Branch, FAdd: Unknown, Load: Unknown, Store: Unknown,
}

// withoutStandIn are the other classes. Those of crossing accesses have the access itself,
// a second time, in their place.
var withoutStandIn = []Class{Unknown, FMA, IMin, CrossingLoad, CrossingStore}

// isClass tells the names that a description may have.
func isClass(name string) bool {
	_, ok := standIns[Class(name)]
	return ok || slices.Contains(withoutStandIn, Class(name))
}

// kindOf is the class of an opcode, as trace.Instr names it; false: it costs nothing.
// Uses, and what other instructions are, decide the rest.
func kindOf(in *trace.Instr) (Class, bool) {
	switch in.Opcode {
	case "phi", "getelementptr", "bitcast", "addrspacecast", "inttoptr", "ptrtoint", "freeze", "alloca",
		"extractvalue", "insertvalue", "asm", "unreachable", "landingpad", "va_arg", "fence":
		return "", false
	case "add", "sub":
		return IAdd, true
	case "and", "or", "xor":
		return ALU, true
	case "shl", "lshr", "ashr":
		if len(in.Uses) > 1 {
			return ShiftBy, true
		}
		return Shift, true
	case "mul":
		return IMul, true
	case "udiv", "sdiv", "urem", "srem":
		return IDiv, true
	case "icmp":
		return ICmp, true
	case "fcmp":
		return FCmp, true
	case "select":
		return Select, true
	case "fadd", "fsub":
		return FAdd, true
	case "fmul":
		return FMul, true
	case "fdiv":
		return FDiv, true
	case "fneg":
		return FSign, true
	case "zext", "sext":
		return Extend, true
	case "trunc":
		return Narrow, strings.HasPrefix(in.Type, "<")
	case "sitofp", "uitofp":
		return IntToF, true
	case "fptosi", "fptoui":
		return FToInt, true
	case "fpext", "fptrunc":
		return Convert, true
	case "load":
		return Load, true
	case "store":
		return Store, true
	case "atomicrmw", "cmpxchg":
		return Atomic, true
	case "insertelement":
		return Insert, true
	case "extractelement":
		return Extract, true
	case "shufflevector":
		return Shuffle, true
	case "br":
		return Branch, in.Type != ""
	case "switch", "indirectbr":
		return Branch, true
	case "ret", "call", "invoke", "callbr", "resume", "frem":
		return Call, true
	}
	return intrinsic(in)
}

// intrinsic is the class of a call that is an instruction: llvm.NAME, or a function of
// the mathematical library that processors have instructions for.
func intrinsic(in *trace.Instr) (Class, bool) {
	name, ok := strings.CutPrefix(in.Opcode, "llvm.")
	if !ok {
		_, name, _ = strings.Cut(in.Opcode, " ")
		if name == "sqrt" || name == "sqrtf" {
			return Sqrt, true
		}
		return Call, true
	}
	switch name {
	case "fma", "fmuladd":
		return FMA, true
	case "sqrt":
		return Sqrt, true
	case "fabs", "copysign":
		return FSign, true
	case "floor", "ceil", "rint", "nearbyint", "trunc", "round", "roundeven":
		return Round, true
	case "smax", "smin", "umax", "umin", "abs":
		return IMin, true
	case "minnum", "maxnum", "minimum", "maximum":
		return FMin, true
	case "fshl", "fshr":
		return Rotate, true
	case "ctpop", "ctlz", "cttz":
		return Count, true
	case "bswap", "bitreverse":
		return Swap, true
	case "sadd.with.overflow", "uadd.with.overflow", "ssub.with.overflow", "usub.with.overflow",
		"sadd.sat", "uadd.sat", "ssub.sat", "usub.sat", "ucmp", "scmp":
		return IAdd, true
	case "smul.with.overflow", "umul.with.overflow":
		return IMul, true
	case "masked.gather":
		return Gather, true
	case "masked.scatter":
		return Scatter, true
	case "masked.load":
		return Masked, true
	case "masked.store":
		return MaskedS, true
	case "lrint", "llrint", "lround", "llround", "fptosi.sat", "fptoui.sat":
		return FToInt, true
	case "vector.reduce.add", "vector.reduce.fadd", "vector.reduce.smax", "vector.reduce.smin",
		"vector.reduce.umax", "vector.reduce.umin", "vector.reduce.or", "vector.reduce.and", "vector.reduce.xor":
		return Shuffle, true
	case "memcpy", "memmove", "memset", "sin", "cos", "exp", "exp2", "log", "log2", "log10", "pow", "powi":
		return Call, true
	case "prefetch":
		return Load, true
	}
	return Unknown, true
}
