// Package opclass classifies instructions by the amounts that one execution adds to the counters of
// Byfl (MODELS §10), such as flops, integer operations and branches. Package analysis/counters
// defines the counters, and multiplies the amounts by the numbers of executions in a trace. Package
// blocks multiplies the amounts by computed numbers of executions.
package opclass

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
)

// Instruction is the class of an instruction.
type Instruction struct {
	Opcode string
	Adds   []Addition
	Vector Shape  // the shape of the operands; 0 lanes if they are not vectors
	Callee string // the called function, if the instruction is a call that does not end its block
}

// Addition is the amount that one execution of an instruction adds to a counter.
type Addition struct {
	Counter profile.Counter
	Amount  uint64
}

// rule describes how instructions with the given opcodes are counted. Each lane adds 1 to the
// counter. The field "values" is the number of values of the operation's type that each lane reads
// and writes, and the field "truth" is the number of Boolean values.
type rule struct {
	opcodes       string // opcodes, with a space on either side of each name
	counter       profile.Counter
	values, truth uint64
}

// The documentation of package analysis/counters explains these rules.
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

// oneLane lists instructions that read or write one value of a vector.
const oneLane = " extractelement insertelement extractvalue insertvalue "

// ClassOf returns the class of an instruction from its opcode and datatype, in the notation of trace.Op.
// The argument severalSuccessors is true for an instruction with more than one successor.
func ClassOf(opcode, datatype string, severalSuccessors bool) Instruction {
	k := Instruction{Opcode: opcode, Adds: []Addition{{profile.Instructions, 1}}}
	s := shapeOf(datatype)
	for i := range rules {
		r := &rules[i]
		if !strings.Contains(r.opcodes, " "+opcode+" ") {
			continue
		}
		if r.opcodes == oneLane {
			s.Lanes = 1
		}
		switch {
		case r.values == 0:
			k.add(r.counter, 1)
		case r.counter == profile.Flops:
			k.flops(s, 1, r.values)
		default:
			k.operation(r.counter, s, s.Lanes*(r.values*s.Bits+r.truth))
		}
		return k
	}
	if opcode != "br" {
		k.classifyCall(s)
	} else if severalSuccessors {
		k.add(profile.ConditionalBranches, 1)
	} else {
		k.add(profile.UnconditionalBranches, 1)
	}
	return k
}

// classifyCall classifies a call that does not end its block. The callee is a library function that
// the compiler knows, such as sin, or an LLVM intrinsic. Among the intrinsics, only fused
// operations are counted.
func (k *Instruction) classifyCall(s Shape) {
	if word, callee, found := strings.Cut(k.Opcode, " "); found && (word == "call" || word == "invoke") {
		k.Callee = callee
		k.add(profile.CallOps, 1)
	} else if k.Opcode == "llvm.fma" || k.Opcode == "llvm.fmuladd" {
		k.flops(s, 2, 4)
	}
}

// flops counts floating-point operations. Each lane performs perLane operations. Together, these
// operations read and write the given number of values per lane.
func (k *Instruction) flops(s Shape, perLane, values uint64) {
	s.Float = true
	bits := s.Lanes * s.Bits * values
	k.add(profile.FlopBits, bits)
	k.operation(profile.Flops, s, bits)
	if perLane == 2 {
		k.add(profile.Flops, s.Lanes)
		if s.Lanes > 1 {
			k.add(profile.VectorOps, s.Lanes)
		}
	}
}

func (k *Instruction) operation(counter profile.Counter, s Shape, bits uint64) {
	k.add(counter, s.Lanes)
	k.add(profile.OpBits, bits)
	if s.Lanes > 1 {
		k.add(profile.VectorOps, s.Lanes)
		k.Vector = s
	}
}

//go:noinline
func (k *Instruction) add(counter profile.Counter, amount uint64) {
	if amount != 0 {
		k.Adds = append(k.Adds, Addition{counter, amount})
	}
}

// Shape describes the values of a datatype: the number, size and kind of their elements.
type Shape struct {
	Lanes uint64 // number of elements; 1 except for vectors
	Bits  uint64 // the size of each lane; 0 if unknown, for example for structures
	Float bool
}

const (
	maxLanes = 1 << 16
	maxBits  = 1 << 24
)

var floatBits = map[string]uint64{
	"half": 16, "bfloat": 16, "float": 32, "double": 64, "x86_fp80": 80, "fp128": 128, "ppc_fp128": 128,
}

// shapeOf parses an LLVM type, such as double, i32, ptr, float* or <4 x float>. A scalable vector
// is assumed to have its minimum length.
func shapeOf(text string) Shape {
	if inner, ok := strings.CutPrefix(text, "<"); ok {
		inner = strings.TrimPrefix(inner, "vscale x ")
		count, element, found := strings.Cut(strings.TrimSuffix(inner, ">"), " x ")
		lanes, err := strconv.ParseUint(count, 10, 32)
		if !found || err != nil || lanes == 0 || lanes > maxLanes {
			return Shape{Lanes: 1}
		}
		s := scalarOf(element)
		s.Lanes = lanes
		return s
	}
	return scalarOf(text)
}

func scalarOf(text string) Shape {
	s := Shape{Lanes: 1}
	if bits, ok := floatBits[text]; ok {
		return Shape{Lanes: 1, Bits: bits, Float: true}
	}
	if strings.HasSuffix(text, "*") || text == "ptr" || strings.HasPrefix(text, "ptr ") {
		s.Bits = 64
	} else if digits, ok := strings.CutPrefix(text, "i"); ok {
		if bits, err := strconv.ParseUint(digits, 10, 32); err == nil && bits <= maxBits {
			s.Bits = bits
		}
	}
	return s
}
