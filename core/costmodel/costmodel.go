// Package costmodel predicts how often the basic blocks of a program execute, and how many cycles
// they take on a processor with caches. The package combines packages blocks, pipeline and
// attribution.
//
//  1. [Open] accepts a profile with the blocks of a run, a module of LLVM IR, or both. Without a
//     run, the counts come from the compiler's profile in the module or, if there is none, from
//     assumed branch probabilities.
//  2. A question (answers.ModelQuestion) may change branch probabilities and parameters. The counts
//     are then recomputed (package blocks).
//  3. The run time is computed by multiplying each block's count by the cycles that the block takes
//     on a processor (package pipeline), and adding up the products. If the profile has sites, the
//     latency of a load is the average latency of its site in a cache hierarchy (package
//     attribution). If the profile has no sites, the latency of every load is the latency of the
//     processor's first-level cache.
//
// The answer consists of tables. Therefore, the page's first program can display answers without
// containing this package, and the page loads the package only when it is first needed.
package costmodel

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/ir"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Models contains the compute-node models of one program.
type Models struct {
	profile  *profile.Profile // nil for a module without a run
	run      *blocks.Run      // the executions of a run; nil for a module without a run
	module   *ir.Module       // the module of LLVM IR; may be nil
	name     string           // file name of the module
	origin   string           // description of where the counts of the run come from
	program  *trace.Program
	notes    []string // warnings about the models
	guessed  int      // number of branches with unknown probabilities
	mainless bool
	weights  *blocks.Profile // the compiler's profile from the module; nil if there is a run
	kept     []byte          // the module encoded as a profile, if there is no run

	base       *blocks.System // the equations without the user's changes
	baseCounts *blocks.Solution
	origins    []string // origin of the branch weights of each block
	changed    userChanges
	system     *blocks.System // the equations with the user's changes
	counts     *blocks.Solution

	blockInputs      []trace.Flow // values that pass between blocks, as described by the module
	memory           siteCosts
	processor        *pipeline.Processor
	defaultProcessor *pipeline.Processor // the processor for questions that do not name a processor (see Use)
	runtime          *pipeline.Runtime
	priced           runtimeInputs // the inputs from which runtime was computed
}

// Open is like [New], but accepts an encoded profile. The profile may be nil.
func Open(encoded []byte, name string, module []byte) (*Models, error) {
	if encoded == nil {
		return New(nil, name, module)
	}
	p, err := profile.Decode(encoded)
	if err != nil {
		return nil, err
	}
	return New(p, name, module)
}

// New returns the models for a run's profile p, for a module's text, or for both. One of the two
// may be nil.
func New(p *profile.Profile, name string, module []byte) (*Models, error) {
	return open(p, name, module, measured)
}

// OpenPredicted is like New, but its profile describes a run that package blocks/scaling has
// predicted.
func OpenPredicted(p *profile.Profile, name string, module []byte) (*Models, error) {
	return open(p, name, module, predicted)
}

// open implements New and OpenPredicted. The parameter origin describes where the profile's counts
// come from.
func open(p *profile.Profile, name string, module []byte, origin string) (*Models, error) {
	m := &Models{name: name, profile: p, origin: origin}
	if p != nil {
		if len(p.Blocks) > 0 {
			var err error
			if m.run, err = blocks.DecodeRun(p.Blocks); err != nil {
				return nil, err
			}
			m.program = m.run.Program
			if m.run.Profile != nil { // the profile belongs to a module without a run
				m.weights, m.run = m.run.Profile, nil
			}
		}
	}
	if module != nil {
		r, err := ir.Read(module)
		if err != nil {
			return nil, err
		}
		m.module = r
		m.noteSkipped()
	}
	switch {
	case m.run != nil && m.module != nil:
		m.addModule()
	case m.module != nil:
		m.program = m.module.Program
		m.weights = &blocks.Profile{Weights: m.module.Weights, Entries: m.module.Entries, Flow: m.module.Flow}
		m.kept = m.encodeModule()
	case m.program == nil:
		return nil, errors.New("the profile contains no blocks: either the trace contains no blocks, or it was analysed without blocks; compile the program with stackglass cc")
	}
	if m.weights != nil {
		m.blockInputs = append(m.blockInputs, m.weights.Flow...)
	}
	if err := m.solveBase(); err != nil {
		return nil, err
	}
	return m, nil
}

// noteSkipped adds a note about the sections of the module that could not be parsed.
func (m *Models) noteSkipped() {
	if n := len(m.module.Skipped); n > 0 {
		first := m.module.Skipped[0]
		text := strconv.Itoa(n) + " parts of " + m.name + " could not be read and were left out; the first: " + first.What + ", " + first.Why + "."
		if n == 1 {
			text = "One part of " + m.name + " could not be read and was left out: " + first.What + ", " + first.Why + "."
		}
		m.notes = append(m.notes, text)
	}
}

// addModule adds information from the module to the run's program: the instructions, and the values
// that pass from block to block. It skips functions that differ between the two builds.
func (m *Models) addModule() {
	match := blocks.NewMatch(m.module.Program, m.program)
	if err := match.Err(); err != nil {
		m.notes = append(m.notes, "Functions of "+m.name+" that do not occur in the trace are ignored. "+capitalise(err.Error())+".")
	}
	for b, at := range match.Blocks {
		if at < 0 {
			continue
		}
		mine, theirs := &m.program.Blocks[at], &m.module.Program.Blocks[b]
		if f := mine.Function; f != trace.NoFunction && m.program.Functions[f].Target == 0 {
			m.program.Functions[f].Target = m.module.Program.TargetOf(uint32(b))
		}
		if len(mine.Instrs) > 0 || mine.Sites != theirs.Sites {
			continue
		}
		mine.Instrs = slices.Clone(theirs.Instrs)
	}
	for _, f := range m.module.Flow {
		if to, from := match.Blocks[f.Block], match.Blocks[f.FromBlock]; to >= 0 && from >= 0 {
			f.Block, f.FromBlock = uint32(to), uint32(from)
			m.blockInputs = append(m.blockInputs, f)
		}
	}
}

// The origins of branch weights.
const (
	measured  = "as it ran"
	predicted = "predicted"
	compiled  = "from the module's profile, not exact"
	assumed   = "assumed"
	yours     = "yours"
)

// solveBase solves the system without the user's changes.
func (m *Models) solveBase() (err error) {
	m.origins = make([]string, len(m.program.Blocks))
	if m.base, err = m.newBaseSystem(); err != nil {
		return err
	}
	if m.run != nil {
		for b := range m.origins {
			if m.origins[b] = m.origin; m.run.Edges.Visits[b] == 0 {
				m.origins[b] = "never ran"
			}
		}
	} else {
		m.noteModule()
	}
	m.baseCounts, err = m.base.Solve()
	m.system, m.counts = m.base, m.baseCounts
	return err
}

// newBaseSystem returns the system without the user's changes.
func (m *Models) newBaseSystem() (s *blocks.System, err error) {
	if m.run != nil {
		return blocks.FromEdges(m.program, m.run.Edges)
	}
	if s, err = blocks.FromProfile(m.program, m.weights.Weights); err != nil {
		return nil, err
	}
	m.guessed = s.Guess()
	s.EnterMain()
	m.mainless = !slices.ContainsFunc(m.program.Functions, func(f trace.Function) bool { return f.Name == "main" && f.Blocks > 0 })
	if m.mainless {
		known := make([]bool, len(m.weights.Entries))
		for n, times := range m.weights.Entries {
			known[n] = times > 0
		}
		s.EnterProfile(m.weights.Entries, known)
	}
	return s, nil
}

// noteModule adds notes that explain where the counts of a module come from.
func (m *Models) noteModule() {
	profiled := false
	for b := range m.origins {
		if m.origins[b] = assumed; m.weights.Weights[b] != nil {
			m.origins[b], profiled = compiled, true
		}
	}
	if profiled {
		m.notes = append(m.notes, "Branch frequencies come from the profile in the module (!prof). Compilers scale these numbers, and optimisations change them, so the counts are estimates.")
	}
	if m.guessed > 0 {
		m.notes = append(m.notes, "The probabilities of "+strconv.Itoa(m.guessed)+" branches are unknown: loops are assumed to run ten times, and other successors to be equally likely. Set the probabilities that you know.")
	}
	if m.mainless {
		m.notes = append(m.notes, "The module has no main: each function without a caller in the module is assumed to be entered once, or as often as the profile in the module says.")
	}
}

// Answer answers a question. The reply also contains any error.
func (m *Models) Answer(q answers.ModelQuestion) *answers.Reply {
	m.applyChanges(q.Changes)
	r := &answers.Reply{Problem: m.changed.wrong, Notes: slices.Clone(m.notes), Bytes: m.kept}
	m.computeRuntime(q, r)
	f := m.chosenFunction(int(q.Function) - 1)
	b := m.chosenBlock(f, int(q.Block)-1)
	chosen := report.Table{Key: "chosen", Columns: report.Columns("function", "block")}
	chosen.Add(report.Count(uint64(f+1)), report.Count(uint64(b+1)))
	r.Tables = append(r.Tables, m.programTable(), m.functionsTable(), chosen, m.blocksTable(f), m.waysTable(f), m.branchesTable(f), m.parametersTable(), Processors(m.processor.Name))
	r.Tables = append(r.Tables, m.blockTables(b)...)
	if q.Whole {
		r.Bytes = []byte(m.branchFile())
	}
	return r
}

// chosenFunction returns the requested function or, if the question names no function, the function
// with the most cycles.
func (m *Models) chosenFunction(asked int) int {
	if asked >= 0 && asked < len(m.program.Functions) && m.program.Functions[asked].Blocks > 0 {
		return asked
	}
	best := -1
	for f := range m.program.Functions {
		if m.program.Functions[f].Blocks > 0 && (best < 0 || m.costOf(f) > m.costOf(best)) {
			best = f
		}
	}
	return best
}

// chosenBlock returns the requested block if the function contains it, and otherwise the function's
// block with the most cycles.
func (m *Models) chosenBlock(f, asked int) int {
	if f < 0 {
		return -1
	}
	of := &m.program.Functions[f]
	if asked >= int(of.First) && asked < int(of.First+of.Blocks) {
		return asked
	}
	best := int(of.First)
	for b := best; b < int(of.First+of.Blocks); b++ {
		if m.runtime.Blocks[b].Cycles > m.runtime.Blocks[best].Cycles {
			best = b
		}
	}
	return best
}

// executionCount returns how often a block is executed, as a whole number if the count is exact.
func (m *Models) executionCount(b int) report.Value {
	f := m.program.Blocks[b].Function
	if int64(f) < int64(len(m.counts.Whole)) && m.counts.Whole[f] {
		return report.Count(m.counts.Exact[b])
	}
	return report.Real(m.counts.Visits[b])
}

// sourceRange formats a source location, such as file.c:12–14.
func sourceRange(file string, first, last uint32) string {
	if file == "" || first == 0 {
		return ""
	}
	text := file[strings.LastIndexByte(file, '/')+1:] + ":" + strconv.FormatUint(uint64(first), 10)
	if last > first {
		text += "–" + strconv.FormatUint(uint64(last), 10)
	}
	return text
}
