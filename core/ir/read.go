package ir

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Module contains the tables that [Read] reads from a module. The blocks are the pieces that
// [Instrument] creates, in the same order and with the same names, so that the tables can be
// matched with a trace of the compiled program. Functions are matched by name, and the blocks of a
// function are matched by their order.
type Module struct {
	// Program contains all functions of the module, even if Instrument leaves them unchanged, with
	// the instructions of every block. The field Missed lists code whose references are unknown.
	Program *trace.Program

	// Weights contains, for each block, the number of times that each of the block's Successors was
	// taken in a profile (branch_weights of !prof), or nil. The weights are estimates, because
	// compilers scale them and optimisations change them.
	Weights [][]uint64
	Entries []uint64 // for each function: its number of invocations in the same profile as Weights, or 0
	Entered []bool   // for each function: whether its number in Entries is known

	Flow    []trace.Flow   // values that blocks of a function pass to each other
	Skipped []trace.Missed // functions and lines that could not be parsed, with location and reason

	Compiler string // such as "clang version 19.1.7"
	Triple   string // the target triple of the module, such as "x86_64-pc-linux-gnu"
}

// Read reads the tables of a module. Read skips functions and lines that it cannot parse, and lists
// them in Skipped, so that it reads as much as possible of a module from a future LLVM version.
// Read returns an error only if the text is not a module.
func Read(src []byte) (*Module, error) {
	if err := checkSize(src, "read"); err != nil {
		return nil, err
	}
	text := string(src)
	if strings.HasPrefix(text, "BC\xc0\xde") || strings.HasPrefix(text, "\xde\xc0\x17\x0b") {
		return nil, errors.New("the module is bitcode, want text; convert the module with llvm-dis, or compile with clang -S -emit-llvm")
	}
	m, _ := readModule(text, true)
	t := newTables(m, Options{Instrs: true})
	r := &Module{Program: t.program, Compiler: m.compiler, Triple: m.triple}
	r.noteLines(m)
	var f function
	var p plan
	for _, at := range m.functions {
		f.reset(m, at)
		if problem := f.readWhole(); problem != nil {
			r.skip(cmp.Or(linkerName(f.name), "a function without a name"), problem.String(), 1)
		} else if !slices.Contains(f.words, "available_externally") {
			p.reset(&f, t)
			p.build()
			t.add(&p)
			r.addWeights(&p)
			r.Flow = p.addFlow(r.Flow)
		}
	}
	t.finish()
	if len(t.program.Functions) == 0 && len(m.skipped) > 0 {
		return nil, errors.New(m.file() + ": no function could be read: " + r.Skipped[0].What + ": " + r.Skipped[0].Why +
			"; want LLVM IR as text, written by clang -S -emit-llvm")
	}
	return r, nil
}

// readWhole reads the function even if it cannot be instrumented.
func (f *function) readWhole() *problem {
	if p := f.readHeader(); p != nil {
		f.name = calledName(f.m.text[f.from:lineEnd(f.m.text, f.from)])
		return p
	}
	return f.readBody()
}

func (r *Module) skip(what, why string, count uint32) {
	r.Skipped = append(r.Skipped, trace.Missed{What: what, Why: why, Count: count})
}

// noteLines adds the skipped lines outside functions to Skipped.
func (r *Module) noteLines(m *module) {
	for _, p := range m.skipped {
		r.skip("line "+strconv.Itoa(p.line), p.why, 1)
	}
	if m.more > 0 {
		r.skip("further lines", "these lines could not be parsed either", m.more)
	}
}

// addWeights adds the weights of the function that was added most recently.
func (r *Module) addWeights(p *plan) {
	for len(r.Weights) < len(r.Program.Blocks) {
		r.Weights = append(r.Weights, nil)
	}
	for b := range p.f.blocks {
		last := &p.f.insts[p.f.blocks[b].last-1]
		number := p.pieces[p.tails[b]].number
		if last.profile >= 0 {
			r.Weights[number] = p.f.m.metadata.weights(int(last.profile), len(r.Program.Blocks[number].Successors), last.op == opInvoke)
		}
	}
	n, known := p.f.m.metadata.entries(p.f.profile)
	r.Entries, r.Entered = append(r.Entries, n), append(r.Entered, known)
}

// weights returns the branch weights in a node such as
//
//	!{!"branch_weights", i32 99, i32 1}
//	!{!"branch_weights", !"expected", i32 2000, i32 1}
//
// The terminator has the given number of successors. If the node does not contain a weight for each
// successor, weights returns nil. The numbers are unsigned, but LLVM prints them as signed numbers.
// An invoke may have a single weight: the number of calls, if no call has thrown an exception.
func (m *metadata) weights(node, successors int, invoke bool) []uint64 {
	rest, ok := strings.CutPrefix(m.node(node), `!{!"branch_weights"`)
	if !ok {
		return nil
	}
	rest = strings.TrimPrefix(rest, `, !"expected"`)
	list := make([]uint64, 0, successors)
	c := cursor{text: rest}
	for c.skipByte(',') {
		n, ok := c.readWeight()
		if !ok || len(list) == successors {
			return nil
		}
		list = append(list, n)
	}
	if invoke && len(list) == 1 && successors == 2 {
		list = append(list, 0)
	}
	if c.peek() != '}' || len(list) != successors || successors == 0 {
		return nil
	}
	return list
}

// readWeight reads "i32 -1", which is 2^32 - 1.
func (c *cursor) readWeight() (uint64, bool) {
	bits := c.readWord()
	if !isIntWord(bits) {
		return 0, false
	}
	minus := c.skipByte('-')
	n, err := strconv.ParseUint(c.readWord(), 10, 64)
	if err != nil {
		return 0, false
	}
	if minus {
		if n = -n; bits == "i32" {
			n &= 1<<32 - 1
		}
	}
	return n, true
}

// entries reads `!{!"function_entry_count", i64 12}`, which may contain further numbers. A number
// in which all bits are set means that the count is unknown.
func (m *metadata) entries(node int) (n uint64, known bool) {
	rest, ok := strings.CutPrefix(m.node(node), `!{!"function_entry_count"`)
	if !ok {
		return 0, false
	}
	c := cursor{text: rest}
	c.want(',')
	if n, known = c.readWeight(); !known || n == 1<<64-1 {
		return 0, false
	}
	return n, true
}
