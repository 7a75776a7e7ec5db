// Package counters counts what the instructions of a run do: operations, bytes moved, branches and
// calls. The counts depend on the compiled program and its input, but not on the machine. These
// counts are the "software performance counters" of Byfl (Anger, Yalamanchili, Pakin and McCormick,
// Architecture-Independent Modeling of Intra-Node Data Movement, Table 1; Pakin and McCormick,
// Hardware-independent Application Characterization, IISWC 2013; MODELS §10).
//
// A trace records which blocks were entered, and its tables list the instructions of each block.
// Each count is a sum over the blocks of the program:
//
//	count = Σ over blocks: executions(block) × count in one execution
//
// The package computes the counts in three steps:
//
//  1. [Analysis.Consume] counts how often each block is entered. If only instruction counts are
//     requested (see [New]), Consume counts the references of each site and derives the block
//     entries, because readers are faster if they need not report every entry. This is possible
//     because the first site of a block makes one reference each time the block is entered. Only
//     entries of blocks without sites are then counted directly. For records that contain a length
//     (ranges, masked vectors), Consume also adds up the bytes.
//  2. [Analysis.Result] multiplies the number of entries of each block by the instruction counts of
//     the block. If a basic block was split, Result combines its parts. Finally, Result adds up the
//     counts by basic block, function and opcode.
//  3. On request, the accesses to each byte are counted (touched.go). From these counts, the
//     package computes the unique bytes of the program and of each function, and the smallest
//     number of bytes that receive 5 %, 10 %, … of all accesses.
//
// If a trace has no blocks, the package reports only the counts of references (loads, stores and
// their bytes, by size), the unique bytes and the memory usage.
//
// # Definitions
//
// Vector instructions are counted by lane: an fadd of <4 x float> is four flops, as in Byfl.
//
//   - Loads and stores: the number of references of each of these two kinds. A modify (an atomic
//     exchange) counts as one load and one store (MODELS §1). Each load or store adds the size of
//     its data type to the number of loaded or stored bytes. A masked vector access counts once for
//     each sequence of adjacent active lanes.
//   - Moves and sets: the number of calls to memcpy and memmove (moves) and to memset (sets), and
//     the number of bytes that these calls write. As in Byfl, moves and sets do not count as loads
//     or stores.
//   - Flops: fadd, fsub, fmul, fdiv, frem and fneg count as one each, fma and fmuladd as two. Byfl
//     also counts floating-point comparisons and conversions as flops; this package counts them as
//     "other floating-point operations" (FloatOther). Byfl counts fused operations as calls. Square
//     roots, absolute values and similar compiler intrinsics appear only in the instruction mix;
//     Byfl counts these intrinsics as calls.
//   - Integer operations: arithmetic, logic and shifts, comparisons, conversions, address
//     arithmetic (getelementptr, one each), select, and instructions that insert or extract
//     elements of vectors and aggregates. Byfl counts all instructions except flops, memory
//     accesses and terminators as integer operations, and counts one or two operations for every
//     index of a getelementptr. Neither Byfl nor this package counts phi, bitcast, freeze or
//     landingpad instructions, which cost nothing.
//   - Operation bits: the total width, in bits, of the operands and results of all floating-point
//     and integer operations. Flop bits: the same total, but only for flops. Byfl does not count
//     constant operands. This package counts all operands, because the trace's tables do not show
//     which operands are constant.
//   - Branches: a br with one target counts as unconditional. A br with two targets, a switch or an
//     indirectbr counts as "conditional or indirect". The instructions ret and resume count as
//     returns.
//   - Calls: the instructions call and invoke, unless they call an intrinsic. A function's
//     invocations are the executions of its entry block. A call to an untraced function is
//     attributed to the calling function.
//   - Vector operations: the flops, other floating-point operations and integer operations that
//     vector instructions perform. (To compute the vectorised share, Byfl divides the number of
//     vector instructions by the number of lane operations. In this package, the numerator also
//     counts lane operations.)
//   - Instructions: the executed instructions of LLVM IR.
//   - Unique bytes: the number of distinct bytes that a function's own code touches, including the
//     bytes of ranges. A reference whose size is unknown counts as one byte.
//   - Memory usage: the smallest number of bytes that receive a given share of all accesses. Byfl
//     reports the memory usage for a different list of shares.
//
// Blocks are counted when they are entered. If references at the beginning or at the end of a trace
// are not analysed, the first and the last block of each thread may be incomplete. An incomplete
// block is counted only if the analysed part of the trace contains its entry.
package counters

import (
	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/blocks/opclass"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Analysis counts operations and bytes.
type Analysis struct {
	kinds   trace.Kinds
	auto    bool
	program func() *trace.Program
	code    code // the code of the program

	base       *profile.Counters // counts of the restored run and of appended segments
	executions []uint64          // number of executions, by block
	rows       []uint64          // number of references, by site; only for sites whose references are counted one by one
	bytes      []uint64          // number of bytes of the references, by site
	siteless   siteless
	touched    *touchedBytes // nil: accesses to each byte are not counted
}

// New returns an analysis of references of the given kinds. The function program returns the code
// that the trace's tables have described so far, or nil. If the parameter auto is true, the
// analysis omits the counts that cost time for every reference, and has no result for a trace
// without instructions.
func New(kinds trace.Kinds, auto bool, program func() *trace.Program) *Analysis {
	a := &Analysis{kinds: kinds, auto: auto, program: program}
	if !auto {
		a.touched = newTouched()
	}
	return a
}

// bySite reports whether the analysis derives the number of block entries from the number of
// references of the blocks' sites. For this derivation, the rows must contain all loads and stores,
// and readers must support BareBlock. Blocks are counted by site only if the parameter auto is
// true.
func (a *Analysis) bySite() bool {
	const needed = 1<<trace.Load | 1<<trace.Store | 1<<trace.Modify
	return a.auto && a.kinds&needed == needed
}

var _ contract.Analysis = (*Analysis)(nil)

// Takes implements [contract.Analysis].
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) {
	if a.bySite() {
		return 1 << trace.BareBlock, true, false
	}
	return 1 << trace.BlockEntry, true, false
}

// Consume implements [contract.Analysis].
func (a *Analysis) Consume(b *trace.Batch) error {
	if b.Site == nil {
		if !a.auto {
			a.siteless.add(b)
			a.touched.addRows(b, nil)
		}
		return nil
	}
	if a.bySite() {
		return a.countReferences(b)
	}
	if err := a.countEvents(b); err != nil {
		return err
	}
	if a.code.sized || !a.auto {
		if err := a.addRows(b); err != nil {
			return err
		}
	}
	if a.touched != nil {
		a.touched.addRows(b, a.code.functionOf)
	}
	return nil
}

// countEvents counts ranges and block entries.
func (a *Analysis) countEvents(b *trace.Batch) error {
	sites := b.Site[:len(b.Kind)]
	for i, k := range b.Kind {
		if k < trace.RangeRead {
			continue
		}
		var err error
		if k == trace.BlockEntry {
			err = a.addEntry(sites[i])
		} else if k <= trace.RangeWrite {
			err = a.addRow(b, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Analysis) addEntry(block uint32) error {
	if uint64(block) >= uint64(len(a.executions)) {
		if err := a.readTables("block", block); err != nil {
			return err
		}
	}
	a.executions[block]++
	return nil
}

// countReferences counts the references of each site, and the entries of blocks without references.
func (a *Analysis) countReferences(b *trace.Batch) error {
	rows, executions, kinds := a.rows, a.executions, b.Kind[:len(b.Site)]
	for i, site := range b.Site {
		if k := kinds[i]; k >= trace.RangeRead {
			if (k == trace.BareBlock || k == trace.BlockEntry) && uint64(site) < uint64(len(executions)) {
				executions[site]++
				continue
			}
			if err := a.countOther(b, i); err != nil {
				return err
			}
			rows, executions = a.rows, a.executions
			continue
		}
		if uint64(site) >= uint64(len(rows)) {
			if err := a.readTables("site", site); err != nil {
				return err
			}
			rows, executions = a.rows, a.executions
		}
		rows[site]++
	}
	if !a.code.sized {
		return nil
	}
	for i, k := range b.Kind { // ranges have been counted above
		if k < trace.RangeRead && a.code.byRow[b.Site[i]] {
			a.bytes[b.Site[i]] += uint64(b.Bytes[i])
		}
	}
	return nil
}

// countOther counts a range or a block entry.
func (a *Analysis) countOther(b *trace.Batch, i int) error {
	switch k := b.Kind[i]; {
	case k <= trace.RangeWrite:
		return a.addRow(b, i)
	case k == trace.BareBlock || k == trace.BlockEntry:
		return a.addEntry(b.Site[i])
	}
	return nil
}

// addRows counts references, except ranges, of the sites whose references are counted one by one.
func (a *Analysis) addRows(b *trace.Batch) error {
	sites := b.Site[:len(b.Kind)]
	for i, k := range b.Kind {
		if k >= trace.RangeRead {
			continue
		}
		if site := uint64(sites[i]); site >= uint64(len(a.code.byRow)) || a.code.byRow[site] {
			if err := a.addRow(b, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Analysis) addRow(b *trace.Batch, i int) error {
	site := b.Site[i]
	if uint64(site) >= uint64(len(a.code.byRow)) {
		if err := a.readTables("site", site); err != nil {
			return err
		}
	}
	if a.code.byRow[site] {
		a.rows[site]++
		a.bytes[site] += uint64(b.Bytes[i])
	}
	return nil
}

// readTables reads the program's tables again, because a record refers to an unknown block or site.
func (a *Analysis) readTables(what string, number uint32) error {
	a.addProgram()
	known := len(a.executions)
	if what == "site" {
		known = len(a.code.byRow)
	}
	if uint64(number) >= uint64(known) {
		return &contract.UnknownError{What: what, Number: number, Known: known, Without: "counters"}
	}
	return nil
}

func (a *Analysis) addProgram() {
	p := a.program()
	if p == nil {
		return
	}
	a.code.addProgram(p, !a.auto)
	a.executions = append(a.executions, make([]uint64, len(a.code.blocks)-len(a.executions))...)
	a.rows = append(a.rows, make([]uint64, len(a.code.byRow)-len(a.rows))...)
	a.bytes = append(a.bytes, make([]uint64, len(a.code.byRow)-len(a.bytes))...)
}

// Close implements [contract.Analysis].
func (a *Analysis) Close() {}

// siteless counts references without a site, by kind and size.
type siteless struct {
	count [trace.NumKinds][maxSize + 2]uint64 // the last element counts all larger sizes
	large [trace.NumKinds]uint64
}

const maxSize = 64 // largest size, in bytes, that has its own counter

func (s *siteless) add(b *trace.Batch) {
	sizes := b.Bytes[:len(b.Kind)]
	for i, k := range b.Kind {
		if k >= trace.NumKinds {
			continue
		}
		size := sizes[i]
		if size > maxSize {
			s.large[k] += uint64(size)
			size = maxSize + 1
		}
		s.count[k][size]++
	}
}

// code is the program from the trace's tables, prepared for counting.
type code struct {
	program    *trace.Program
	blocks     [][]opCount // instructions of each block
	kinds      []opclass.Instruction
	kindOf     map[opKey]uint32
	byRow      []bool   // for each site: whether its references are counted one by one
	functionOf []uint32 // 1 + the number of a site's function, by site; 0: none
	sized      bool     // the records of at least one load, store or modify contain a length
}

type opKey struct {
	opcode, datatype string
	several          bool // a branch with several targets
}

// opCount is an instruction and the number of its occurrences in a block.
type opCount struct {
	kind  uint32
	count uint32
}

// addProgram adds the new blocks and sites of the program p.
func (c *code) addProgram(p *trace.Program, bySynthetic bool) {
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
			c.kinds = append(c.kinds, opclass.ClassOf(op.Opcode, op.Type, key.several))
		}
		list = append(list, opCount{kind, op.Count})
	}
	return list
}
