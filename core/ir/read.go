package ir

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Module is what the text of a module tells, as tables. Its blocks are the pieces
// that [Instrument] cuts, in the same order and with the same names, so that they
// are those of a trace of the compiled program: functions go by their names, and
// blocks within them by their order.
type Module struct {
	// Program has the module's functions, also those that Instrument leaves as they
	// are, with the instructions of every block. What Missed tells of it are
	// places whose references are not known.
	Program *trace.Program

	// Weights tell, by block, how often each of its Successors was taken when a
	// profile was made (branch_weights of !prof, written by a compiler that was given
	// one); nil for blocks without. They were scaled, and changed by optimisations:
	// they are estimates.
	Weights [][]uint64
	// Entries are the invocations of each function, from the same profile, where
	// Entered; 0 elsewhere.
	Entries []uint64
	Entered []bool

	// Flow are the values that go between blocks of a function.
	Flow []Flow

	// Skipped is what was not understood: functions, lines, with where and why.
	Skipped []trace.Missed

	Compiler string // "clang version 19.1.7"
	Triple   string // "x86_64-pc-linux-gnu": the machine it is compiled for
}

// Read reads a module as tables. What it does not understand it leaves out, and
// lists under Skipped, so that the text of versions to come is read as far as
// possible. The error tells of text that is no module at all.
func Read(src []byte) (*Module, error) {
	if len(src) > largestText {
		return nil, errors.New("the module has " + strconv.Itoa(len(src)) + " bytes, want less than 2 GB; read its sources apart")
	}
	text := string(src)
	if strings.HasPrefix(text, "BC\xc0\xde") || strings.HasPrefix(text, "\xde\xc0\x17\x0b") {
		return nil, errors.New("the module is bitcode, want text; llvm-dis makes it, or clang -S -emit-llvm")
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
			p.make()
			t.add(&p)
			r.addWeights(&p)
			r.Flow = p.addFlow(r.Flow)
		}
	}
	t.finish()
	if len(t.program.Functions) == 0 && len(m.skipped) > 0 {
		return nil, errors.New(m.file() + ": no function that can be read, but " + r.Skipped[0].What + ": " + r.Skipped[0].Why +
			"; want the text of LLVM IR, as clang -S -emit-llvm writes it")
	}
	return r, nil
}

// readWhole reads the function, whether or not it could be instrumented.
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

// noteLines lists the lines outside of functions that were passed over.
func (r *Module) noteLines(m *module) {
	for _, p := range m.skipped {
		r.skip("line "+strconv.Itoa(p.line), p.why, 1)
	}
	if m.more > 0 {
		r.skip("further lines", "they are not understood either", m.more)
	}
}

// addWeights adds what the profile tells of the function that came last.
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

// weights reads a node such as
//
//	!{!"branch_weights", i32 99, i32 1}
//	!{!"branch_weights", !"expected", i32 2000, i32 1}
//
// for a terminator that has so many ways; nil if it is another one. The numbers
// are unsigned, and were printed as if they were signed. An invoke may have but
// the number of calls; then none of them threw.
func (m *metadata) weights(node, ways int, invoke bool) []uint64 {
	rest, ok := strings.CutPrefix(m.node(node), `!{!"branch_weights"`)
	if !ok {
		return nil
	}
	rest = strings.TrimPrefix(rest, `, !"expected"`)
	list := make([]uint64, 0, ways)
	c := cursor{text: rest}
	for c.take(',') {
		n, ok := c.weight()
		if !ok || len(list) == ways {
			return nil
		}
		list = append(list, n)
	}
	if invoke && len(list) == 1 && ways == 2 {
		list = append(list, 0)
	}
	if c.peek() != '}' || len(list) != ways || ways == 0 {
		return nil
	}
	return list
}

// weight reads "i32 -1", which is 2^32 - 1.
func (c *cursor) weight() (uint64, bool) {
	bits := c.word()
	if !isIntWord(bits) {
		return 0, false
	}
	minus := c.take('-')
	n, err := strconv.ParseUint(c.word(), 10, 64)
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

// entries reads `!{!"function_entry_count", i64 12}`, which other numbers may
// follow. All ones say that it is not known.
func (m *metadata) entries(node int) (n uint64, known bool) {
	rest, ok := strings.CutPrefix(m.node(node), `!{!"function_entry_count"`)
	if !ok {
		return 0, false
	}
	c := cursor{text: rest}
	c.want(',')
	if n, known = c.weight(); !known || n == 1<<64-1 {
		return 0, false
	}
	return n, true
}
