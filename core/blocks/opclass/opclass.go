// Package opclass classifies instructions: what one execution of each adds to the counters
// of Byfl (MODELS §10): flops, integer operations, branches, and so on. Package
// analysis/counters defines each counter, and multiplies with the executions that
// a trace tells; package blocks multiplies with those that it computes. So both
// mean the same by the same word.
package opclass

import (
	"strings"

	"github.com/stackglass/stackglass/core/profile"
)

// Instruction is what one execution of an instruction counts.
type Instruction struct {
	Opcode string
	Adds   []Addition
	Vector Shape  // of what it operates on; 0 lanes for what is no vector
	Callee string // the function that it calls without ending its block
}

// Addition is an amount of one counter.
type Addition struct {
	Counter profile.Counter
	Amount  uint64
}

// rule says how the opcodes of a list count: what one lane of them is, and how
// many values as wide as their type, and truth values by lane, an operation
// takes in and gives.
type rule struct {
	opcodes       string // between blanks
	counter       profile.Counter
	values, truth uint64
}

// Package analysis/counters says why.
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

// Of says what an instruction of that opcode and type counts, which are named as in
// trace.Op; several tells that it leads to several places.
func Of(opcode, datatype string, several bool) Instruction {
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
		k.named(s)
	} else if several {
		k.add(profile.ConditionalBranches, 1)
	} else {
		k.add(profile.UnconditionalBranches, 1)
	}
	return k
}

// named counts a call that ends no block and stands under a name: of one of
// LLVM's own functions, of which only fused operations count, or of a library
// function that the compiler knows, as "call sin".
func (k *Instruction) named(s Shape) {
	if word, callee, found := strings.Cut(k.Opcode, " "); found && (word == "call" || word == "invoke") {
		k.Callee = callee
		k.add(profile.CallOps, 1)
	} else if k.Opcode == "llvm.fma" || k.Opcode == "llvm.fmuladd" {
		k.flops(s, 2, 4)
	}
}

// flops counts each flops a lane, on so many values.
func (k *Instruction) flops(s Shape, each, values uint64) {
	s.Float = true
	bits := s.Lanes * s.Bits * values
	k.add(profile.FlopBits, bits)
	k.operation(profile.Flops, s, bits)
	if each == 2 {
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
