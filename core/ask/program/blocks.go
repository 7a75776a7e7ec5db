// Package program adds verbs to package ask. These verbs answer questions about the basic blocks
// and loops of a program, about its run time on a processor, and about runs on several cores.
// Because these answers need a lot of code, the WebAssembly program that the page loads first does
// not import this package.
package program

import (
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/ir"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

var blockTables = []string{"function", "block", "branch", "opcode"}

// Blocks is the verb that reports how often the basic blocks of a program are executed.
var Blocks = ask.Add(&ask.Verb{
	Name:  "blocks",
	Title: "Execution counts of blocks, and branch probabilities",
	Args: []ask.Arg{
		{Name: "by", Words: blockTables, Help: "print only this `TABLE` (" + strings.Join(blockTables, ", ") + "), with all rows (default for csv: function)"},
		ask.TopRows,
		{Name: "instructions", Help: "print only the instructions of this source `LINE`, for example matmul.c:20"},
		{Name: "prof", Kind: ask.Switch, Help: "for LLVM IR, use the branch weights from a compiler's profile"},
		{Name: "probabilities", Help: "read branch probabilities from this `FILE`, in the format that --template writes"},
		{Name: "set", Kind: ask.List, Help: "set parameters of the --probabilities file, as `NAME=NUMBER`, for example n=1000,density=1/8"},
		{Name: "windows", Kind: ask.Switch, Help: "sample 1 % of each block's executions and report the error of the sampled reuse profiles"},
		{Name: "window-seed", Kind: ask.Number, Default: "0", Help: "choose the random sample with this `SEED`"},
		{Name: "enter", Kind: ask.List, Help: "for LLVM IR, the number of times that functions are called from outside the module, as `NAME=CALLS`, for example main=1,callback=500"},
	},
	Needs: func(ask.Question) analysis.Analyses { return analysis.Sites | analysis.Blocks },
	Check: func(q ask.Question) error {
		if err := checkParameters(q); err != nil {
			return err
		}
		switch {
		case q.Is("windows") && q.Given("probabilities"):
			return needsTrace
		case q.Given("instructions") && q.Given("by"):
			return &ask.Error{Text: "--instructions and --by cannot be combined: --instructions prints only the instructions of a line"}
		}
		return nil
	},
	Missing: func(p *profile.Profile) string {
		switch {
		case p.Blocks == nil:
			return "the profile contains no blocks"
		case len(p.Blocks) == 0:
			return "the trace contains no blocks"
		}
		return ""
	},
	Answer: func(r *ask.Run, q ask.Question, d *report.Document) error {
		b, err := branchesOf(r, q)
		if err != nil {
			return err
		}
		system, err := b.newSystem(r, q)
		if err != nil {
			return b.withProgramName(err)
		}
		d.Input, d.Warnings = b.facts, b.warnings
		if q.Is("prof") {
			d.Warnings = append(d.Warnings, r.Name+": the weights in a compiler's profile are scaled, and optimisations change them, so counts computed from them are approximate")
		}
		if n := system.Guess(); n > 0 {
			d.Warnings = append(d.Warnings, r.Name+": the probabilities of "+strconv.Itoa(n)+" branches are unknown, so loops are assumed to run ten times, and other successors to be equally likely")
		}
		found, err := answers.NewBlocks(system)
		if err != nil {
			return b.withProgramName(err)
		}
		found.Name = r.Readable
		d.Input = append(d.Input, found.Total()...)
		if b.sites != nil {
			found.Reuse, found.LineBytes, found.Windows = b.edges.Reuse(b.sites), b.sites.LineBytes, r.Windows
		}
		if q.Given("instructions") {
			return b.answerInstructions(q, found, d)
		}
		d.Tables, err = blockAnswer(q, found)
		return err
	},
})

// answerInstructions answers a question about the instructions of one source line.
func (b *branchProgram) answerInstructions(q ask.Question, found *answers.Blocks, d *report.Document) error {
	t, ok := found.Instructions(q.Text("instructions"))
	switch {
	case !ok:
		return &trace.OptionError{Option: "instructions", Got: q.Text("instructions"), Want: "a line of the program that contains code, as FILE:LINE, for example matmul.c:20"}
	case len(t.Rows) == 0:
		return b.run.Cannot("the blocks of " + q.Text("instructions") + " are recorded without their instructions; compile the program again with \"stackglass cc\", or use its LLVM IR")
	}
	if d.Tables = []report.Table{t}; slices.ContainsFunc(t.Rows, func(row []report.Value) bool { return row[t.Index("line")].IsNone() }) {
		d.Warnings = append(d.Warnings, "the trace records the source lines of instructions that access memory; other instructions are listed because they are in the same block")
	}
	return nil
}

var needsTrace = &ask.Error{Text: "--windows needs a trace, because executions are sampled while the trace is read; give a trace, and omit --probabilities"}

// checkParameters returns an error if the question sets parameters without a branch-probability
// file that declares them.
func checkParameters(q ask.Question) error {
	if q.Given("set") && !q.Given("probabilities") {
		return &ask.Error{Text: "--set: no parameters are declared, because no branch-probability file is given; add the file with --probabilities FILE"}
	}
	return nil
}

// BranchFile returns the branches of a program as a branch-probability file, which the user can
// edit and pass as the argument "probabilities".
func BranchFile(r *ask.Run, q ask.Question) ([]byte, error) {
	b, err := branchesOf(r, q)
	if err != nil {
		return nil, err
	}
	system, err := b.newSystem(r, q)
	if err != nil {
		return nil, b.withProgramName(err)
	}
	text := "The branches of " + r.Name
	switch {
	case q.Given("probabilities"):
		text += ", with the probabilities in " + q.Text("probabilities")
	case b.edges != nil:
		text += ", with the branch counts of the run"
	case q.Is("prof"):
		text += ", with the weights from a compiler's profile"
	}
	return system.AppendSheet(nil, text), nil
}

// branchProgram contains a program and the counts or weights of its branches.
type branchProgram struct {
	run      *ask.Run
	program  *trace.Program
	edges    *blocks.Run    // branch counts; nil if the program was not run
	weights  [][]uint64     // branch weights from a compiler's profile, by block
	sites    *profile.Sites // sites of the run; nil if reuse is unknown
	facts    []report.Fact
	warnings []string
}

// branchesOf reads the program of a run or of a module.
func branchesOf(r *ask.Run, q ask.Question) (*branchProgram, error) {
	if r.Module != nil {
		return moduleBranches(r, q)
	}
	run, err := decodeRun(r)
	if err != nil {
		return nil, err
	}
	b := &branchProgram{run: r, program: run.Program, edges: run}
	if run.Profile != nil { // the profile belongs to a module, not to a run
		b.edges, b.weights = nil, run.Profile.Weights
	} else {
		for _, arg := range []string{"prof", "enter"} {
			if q.Given(arg) {
				return nil, &ask.Error{Text: "--" + arg + ": " + r.Name + " contains the exact branch counts of a run; omit the option, which is for LLVM IR"}
			}
		}
	}
	if q.Is("windows") && r.Windows == nil {
		return nil, needsTrace
	}
	var lineBytes uint32
	if b.edges != nil && r.Profile.Sampled == nil && !q.Given("probabilities") && r.Profile.Sites != nil {
		b.sites, lineBytes = r.Profile.Sites, r.Profile.Sites.LineBytes
	}
	b.facts = r.Facts(lineBytes)
	return b, b.checkWeights(q)
}

func decodeRun(r *ask.Run) (*blocks.Run, error) {
	switch p := r.Profile; {
	case p.Blocks == nil:
		return nil, r.Cannot("the profile contains no blocks; analyze the trace again with --analyses blocks")
	case len(p.Blocks) == 0:
		return nil, r.Cannot("the trace contains no blocks; compile the program with \"stackglass cc -- clang …\", which records them, or use its LLVM IR")
	}
	run, err := blocks.DecodeRun(r.Profile.Blocks)
	if err != nil {
		return nil, r.Cannot(err.Error())
	}
	return run, nil
}

func moduleBranches(r *ask.Run, q ask.Question) (*branchProgram, error) {
	m, err := ir.Read(r.Module)
	if err != nil {
		return nil, r.Cannot(err.Error())
	}
	b := &branchProgram{run: r, program: blocks.WithoutPaths(m.Program), weights: m.Weights}
	b.facts = []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(r.Name)},
		{Key: "compiler", Label: "compiler", Value: report.TextOf(m.Compiler)},
		{Key: "functions", Label: "functions", Value: report.Count(uint64(len(b.program.Functions)))},
		{Key: "blocks", Label: "blocks", Value: report.Count(uint64(len(b.program.Blocks)))},
	}
	for _, s := range m.Skipped {
		b.warnings = append(b.warnings, r.Name+": left out: "+s.What+": "+s.Why)
	}
	return b, b.checkWeights(q)
}

// checkWeights returns an error if the question asks for the weights of a compiler's profile, but
// the module contains none.
func (b *branchProgram) checkWeights(q ask.Question) error {
	if q.Is("prof") && !slices.ContainsFunc(b.weights, func(w []uint64) bool { return w != nil }) {
		return &ask.Error{Text: "--prof: " + b.run.Name + " has no weights from a compiler's profile; compile with -fprofile-use, or omit the option"}
	}
	return nil
}

// withProgramName prefixes an error with the program's name, unless the error is already written for
// the user.
func (b *branchProgram) withProgramName(err error) error {
	if errors.As(err, new(*ask.Error)) {
		return err
	}
	return b.run.Cannot(err.Error())
}

// newSystem returns the equations of a program, with its branch weights and entry functions.
func (b *branchProgram) newSystem(r *ask.Run, q ask.Question) (s *blocks.System, err error) {
	switch {
	case b.edges != nil:
		s, err = blocks.FromEdges(b.program, b.edges.Edges)
	case q.Is("prof"):
		s, err = blocks.FromProfile(b.program, b.weights)
	default:
		s, err = blocks.NewSystem(b.program)
	}
	if err == nil && b.edges == nil {
		err = setEntries(s, b.program, q)
	}
	if err != nil || !q.Given("probabilities") {
		return s, err
	}
	text, err := r.ReadFile(q, "probabilities")
	if err != nil {
		return nil, err
	}
	sheet, err := blocks.ParseSheet(q.Text("probabilities"), text)
	if err != nil {
		return nil, err
	}
	model, err := sheet.Bind(s)
	if err != nil {
		return nil, err
	}
	values, err := parameterValues(sheet, q)
	if err != nil {
		return nil, err
	}
	return s, model.Set(values)
}

// argValues returns the values of an argument. It splits comma-separated lists.
func argValues(q ask.Question, arg string) (list []string) {
	for _, value := range q.List(arg) {
		list = append(list, strings.Split(value, ",")...)
	}
	return list
}

// mostDigits is the maximum number of characters in a parameter's value.
const mostDigits = 100

// parameterValues returns the values that the question sets for parameters of a branch-probability file.
func parameterValues(sheet *blocks.Sheet, q ask.Question) (map[string]*big.Rat, error) {
	values := map[string]*big.Rat{}
	for _, text := range argValues(q, "set") {
		name, value, found := strings.Cut(text, "=")
		number, ok := (*big.Rat)(nil), false
		// exponents are not allowed, because even a short exponent can yield a huge number
		if len(value) <= mostDigits && !strings.ContainsAny(value, "eEpP") {
			number, ok = new(big.Rat).SetString(value)
		}
		if !found || !ok {
			return nil, &ask.Error{Text: "--set " + strconv.Quote(text) + ", want a parameter and a number, for example n=1000"}
		}
		if !slices.ContainsFunc(sheet.Parameters(), func(p blocks.Parameter) bool { return p.Name == name }) {
			return nil, &ask.Error{Text: "--set " + strconv.Quote(text) + ": " + q.Text("probabilities") + " has no parameter " + name}
		}
		values[name] = number
	}
	return values, nil
}

// setEntries sets the number of calls of each function from outside the program.
func setEntries(s *blocks.System, p *trace.Program, q ask.Question) error {
	if !q.Given("enter") {
		s.EnterMain()
		return nil
	}
	numbers := map[string]int{}
	for n := len(p.Functions) - 1; n >= 0; n-- {
		numbers[p.Functions[n].Name] = n
	}
	for _, text := range argValues(q, "enter") {
		name, count, found := strings.Cut(text, "=")
		n, err := strconv.ParseUint(count, 10, 64)
		number, known := numbers[name]
		switch {
		case !found || err != nil:
			return &ask.Error{Text: "--enter " + strconv.Quote(text) + ", want a function and its number of calls, for example main=1"}
		case !known:
			return &ask.Error{Text: "--enter " + strconv.Quote(text) + ": the file has no function with that name"}
		}
		s.Enter(number, n)
	}
	return nil
}

func blockAnswer(q ask.Question, b *answers.Blocks) (list []report.Table, err error) {
	most := int(q.Number("top"))
	if most == 0 || !q.Brief || q.Given("by") && !q.Given("top") {
		most = answers.All
	}
	is := func(name string) bool { return !q.Given("by") || q.Text("by") == name }
	if is("function") {
		list = append(list, b.Functions(most))
	}
	if is("block") {
		list = append(list, b.Hot(most))
	}
	if is("branch") {
		t, err := b.Branches(most)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	if is("opcode") {
		list = append(list, b.Opcodes(most))
	}
	if b.Windows != nil {
		list = append(list, b.Sampled(most))
	}
	return list, nil
}
