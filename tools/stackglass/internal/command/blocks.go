package command

import (
	"errors"
	"io"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/branches"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/ir"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// blockOptions are what the verb blocks takes besides what it reads.
type blockOptions struct {
	by      string
	top     int
	chosen  bool // top was given
	prof    bool
	entries []string

	probabilities string
	values        []string // of its parameters
	template      bool

	windows bool
	seed    uint64
	sampled *branches.WindowSampler // nil: there are none
}

// blockTables are what --by takes.
var blockTables = []string{"function", "block", "branch", "opcode"}

// blocks prints how often the blocks of a program run.
func (a *app) blocks() *cobra.Command {
	var (
		r *reading
		o blockOptions
	)
	cmd := &cobra.Command{
		Use:   "blocks FILE",
		Short: "How often blocks run and branches are taken, of a run or of LLVM IR alone",
		Long: `Print what the functions and blocks of a program execute, and its branches: how often
each way is taken, and what that means to the number of all instructions. Sensitivity
1 is a branch whose trip count, or odds, in proportion change as many instructions.

FILE is a trace of a program compiled by "stackglass cc", or a profile that was made
with "analyze --analyses blocks": counts are those of the run, exactly, and each block
tells how its references find their lines.

Or FILE is the text of LLVM IR (.ll), as clang -S -emit-llvm writes it: then the counts
follow from how likely the ways of each branch are. --prof takes that from the weights
that a compiler's profile has left in it, which are near the truth and never exact;
what is not known is guessed: loops run ten times, other ways are alike. The program
begins in main, once, or where --enter says.

--template prints all branches with their source lines, and how often each goes which
way, as a text to be changed: probabilities, weights, trip counts, and expressions of
parameters, as in trip n/4. --probabilities reads it, for the program of a run or for
LLVM IR, and --set n=1000 says what its parameters are.`,
		Example: "  stackglass blocks app.sgt\n  stackglass blocks app.sgp --by branch --top 5\n  stackglass blocks app.ll --template > app.txt\n" +
			"  stackglass blocks app.ll --probabilities app.txt --set n=1000 --format csv",
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return a.runBlocks(r, &o, args[0]) },
	}
	r = addReading(cmd)
	f := cmd.Flags()
	f.StringVar(&o.by, "by", "", "print one table alone, and all of it: "+strings.Join(blockTables, ", ")+" (csv: function)")
	f.IntVar(&o.top, "top", 10, "print the first `N` rows of each table (0: all; csv and json have all)")
	f.BoolVar(&o.prof, "prof", false, "of LLVM IR: take the weights that a compiler's profile left in it")
	f.StringVar(&o.probabilities, "probabilities", "", "take how likely ways are from this `FILE`, as --template writes it")
	f.StringSliceVar(&o.values, "set", nil, "give parameters of --probabilities other values, as in n=1000,density=1/8")
	f.BoolVar(&o.template, "template", false, "print all branches and what is known of them, for --probabilities, and nothing else")
	f.BoolVar(&o.windows, "windows", false, "sample executions of each block, one in a hundred, and tell what their reuse profiles lose against all")
	f.Uint64Var(&o.seed, "window-seed", 0, "choose others by another `NUMBER`")
	f.StringSliceVar(&o.entries, "enter", nil, "of LLVM IR: the functions that are called from outside, as in main=1,callback=500")
	for _, name := range []string{"sample", "sample-seed"} {
		must(f.MarkHidden(name))
	}
	must(cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(blockTables, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *app) runBlocks(r *reading, o *blockOptions, name string) error {
	if o.by != "" && !slices.Contains(blockTables, o.by) {
		return usagef("--by ", strconv.Quote(o.by), ", want ", strings.Join(blockTables, ", "))
	}
	if len(o.values) > 0 && o.probabilities == "" {
		return usagef("--set: parameters are those of a file; give it by --probabilities")
	}
	if o.top < 0 {
		return usagef("--top ", strconv.Itoa(o.top), ", want a number of rows, or 0 for all")
	}
	o.chosen = r.cmd.Flags().Lookup("top").Changed
	r.analyses = (analysis.Sites | analysis.Blocks).String()
	if _, err := r.options(a, nil); err != nil {
		return err
	}
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	if in.IsModule {
		return a.moduleBlocks(r, o, in)
	}
	if o.windows {
		if in.IsProfile || o.probabilities != "" {
			return usagef("--windows: executions are sampled while a trace is read; give the trace, without --probabilities")
		}
		r.besides = func(program func() *trace.Program) func(*trace.Batch) error {
			o.sampled = branches.NewWindowSampler(analysis.DefaultLineBytes, o.seed, program)
			return o.sampled.Consume
		}
	}
	l, err := a.loadOpened(r, in, []uint32{analysis.DefaultLineBytes})
	if err != nil {
		return err
	}
	run, err := runOf(l)
	if err != nil {
		return err
	}
	if run.Profile == nil {
		for _, option := range []string{"prof", "enter"} {
			if r.cmd.Flags().Lookup(option).Changed {
				return usagef("--", option, ": ", in.Name, " is no LLVM IR but of a run, which tells how often branches were taken; leave the option out")
			}
		}
	}
	b := branchWeights{name: in.Name, program: run.Program, run: run}
	if run.Profile != nil {
		b.run, b.weights = nil, run.Profile.Weights
	}
	sites, line := l.Profile.Sites, uint32(0)
	if b.run == nil || l.Profile.Sampled != nil || o.probabilities != "" {
		sites = nil // of no run, or of another one
	}
	if sites != nil {
		line = sites.LineBytes
	}
	d := &report.Document{Schema: "stackglass.blocks", Version: 1, Input: l.facts(line)}
	found, err := a.solve(o, &b, d)
	if found == nil || err != nil {
		return err
	}
	if sites != nil {
		found.Reuse, found.LineBytes = run.Reuse(sites), line
	}
	if o.windows && sites != nil {
		found.Windows = o.sampled.Result()
	}
	if d.Tables, err = o.tables(found, r.format); err != nil {
		return err
	}
	return a.answer(l, r.format, d)
}

// runOf gives the run of a profile.
func runOf(l *answerable) (*blocks.Run, error) {
	switch p := l.Profile; {
	case p.Blocks == nil:
		return nil, usagef(l.name, ": the profile holds no blocks; analyze the trace again with --analyses blocks")
	case len(p.Blocks) == 0:
		return nil, usagef(l.name, ": the trace tells of no blocks; compile the program with \"stackglass cc -- clang …\", which traces them, or give its LLVM IR")
	default:
		return blocks.DecodeRun(p.Blocks)
	}
}

// moduleBlocks answers for the text of LLVM IR.
func (a *app) moduleBlocks(r *reading, o *blockOptions, in *pass.Input) error {
	for _, option := range append(slices.Clone(traceOptions), "workers", "memory", "windows") {
		if f := r.cmd.Flags().Lookup(option); f != nil && f.Changed {
			return usagef("--", option, ": ", in.Name, " is LLVM IR, which has no references; leave the option out")
		}
	}
	format, err := parseFormat(r.format)
	if err != nil {
		return err
	}
	src, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	m, err := ir.Read(src)
	if err != nil {
		return asUsage(&moduleError{in.Name, err})
	}
	m.Program = blocks.WithoutPaths(m.Program)
	d := &report.Document{Schema: "stackglass.blocks", Version: 1, Input: []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(in.Name)},
		{Key: "compiler", Label: "compiler", Value: report.TextOf(m.Compiler)},
		{Key: "functions", Label: "functions", Value: report.Count(uint64(len(m.Program.Functions)))},
		{Key: "blocks", Label: "blocks", Value: report.Count(uint64(len(m.Program.Blocks)))},
	}}
	for _, s := range m.Skipped {
		d.Warnings = append(d.Warnings, in.Name+": left out: "+s.What+": "+s.Why)
	}
	found, err := a.solve(o, &branchWeights{name: in.Name, program: m.Program, weights: m.Weights}, d)
	if found == nil || err != nil {
		return err
	}
	if d.Tables, err = o.tables(found, r.format); err != nil {
		return err
	}
	return a.print(format, d)
}

// moduleError says of which file an error is.
type moduleError struct {
	file string
	err  error
}

func (e *moduleError) Error() string { return e.file + ": " + e.err.Error() }
func (e *moduleError) Unwrap() error { return e.err }

// branchWeights is a program and how often its branches were taken.
type branchWeights struct {
	name    string // of the file
	program *trace.Program
	run     *blocks.Run // nil: it has not run
	weights [][]uint64  // of a compiler's profile, by block
}

// system gives the branches of a program their weights.
func (b *branchWeights) system(prof bool) (*blocks.System, error) {
	switch {
	case b.run != nil:
		return blocks.FromEdges(b.program, b.run.Edges)
	case prof:
		return blocks.FromProfile(b.program, b.weights)
	}
	return blocks.NewSystem(b.program)
}

// solve gives the counts, and notes doubts; or it prints a template, and gives nil.
func (a *app) solve(o *blockOptions, b *branchWeights, d *report.Document) (*answers.Blocks, error) {
	if o.prof && !slices.ContainsFunc(b.weights, func(w []uint64) bool { return w != nil }) {
		return nil, usagef("--prof: ", b.name, " has no weights of a compiler's profile; compile with -fprofile-use, or leave the option out")
	}
	system, err := b.system(o.prof)
	if err == nil {
		err = o.weigh(system, b)
	}
	var option *usageError
	if errors.As(err, &option) {
		return nil, err
	} else if err != nil {
		return nil, asUsage(&moduleError{b.name, err})
	}
	if o.template {
		if _, err := a.stdout.Write(system.AppendSheet(nil, b.about(o))); err != nil {
			return nil, &outputError{path: "standard output", err: err}
		}
		return nil, nil
	}
	if o.prof {
		d.Warnings = append(d.Warnings, b.name+": weights of a compiler's profile are scaled, and changed by optimisations: counts from them are near the truth, and never exact")
	}
	if n := system.Guess(); n > 0 {
		d.Warnings = append(d.Warnings, b.name+": nothing tells how likely the ways of "+strconv.Itoa(n)+" branches are; guessed: loops run ten times, other ways are alike")
	}
	found, err := answers.NewBlocks(system)
	if err != nil {
		return nil, asUsage(&moduleError{b.name, err})
	}
	found.Name = readable
	d.Input = append(d.Input, found.Total()...)
	return found, nil
}

// about says where the numbers of a template come from.
func (b *branchWeights) about(o *blockOptions) string {
	switch {
	case o.probabilities != "":
		return "The branches of " + b.name + ", as " + o.probabilities + " has them"
	case b.run != nil:
		return "The branches of " + b.name + ", as often as they were taken in that run"
	case o.prof:
		return "The branches of " + b.name + ", with the weights of a compiler's profile"
	}
	return "The branches of " + b.name
}

// weigh takes weights from the user's file, and says where the program begins.
func (o *blockOptions) weigh(s *blocks.System, b *branchWeights) error {
	if b.run == nil {
		if err := o.enter(s, b.program); err != nil {
			return err
		}
	}
	if o.probabilities == "" {
		return nil
	}
	text, err := os.ReadFile(o.probabilities)
	if err != nil {
		return usagef("--probabilities ", o.probabilities, ": ", reason(err))
	}
	sheet, err := blocks.ParseSheet(o.probabilities, text)
	if err != nil {
		return err
	}
	model, err := sheet.Bind(s)
	if err != nil {
		return err
	}
	values, err := o.parameters(sheet)
	if err != nil {
		return err
	}
	return model.Set(values)
}

// mostDigits is the longest that a parameter's value is written.
const mostDigits = 100

// parameters are the values that --set gives to those of a sheet.
func (o *blockOptions) parameters(sheet *blocks.Sheet) (map[string]*big.Rat, error) {
	values := map[string]*big.Rat{}
	for _, text := range o.values {
		name, value, found := strings.Cut(text, "=")
		number, ok := (*big.Rat)(nil), false
		if len(value) <= mostDigits && !strings.ContainsAny(value, "eEpP") { // exponents make numbers of any length
			number, ok = new(big.Rat).SetString(value)
		}
		if !found || !ok {
			return nil, usagef("--set ", strconv.Quote(text), ", want a parameter and a number, as in n=1000")
		}
		if !slices.ContainsFunc(sheet.Parameters(), func(p blocks.Parameter) bool { return p.Name == name }) {
			return nil, usagef("--set ", strconv.Quote(text), ": ", o.probabilities, " has no parameter ", name)
		}
		values[name] = number
	}
	return values, nil
}

// enter says where a program begins.
func (o *blockOptions) enter(s *blocks.System, p *trace.Program) error {
	if len(o.entries) == 0 {
		s.EnterMain()
		return nil
	}
	numbers := map[string]int{}
	for n := len(p.Functions) - 1; n >= 0; n-- {
		numbers[p.Functions[n].Name] = n
	}
	for _, text := range o.entries {
		name, count, found := strings.Cut(text, "=")
		n, err := strconv.ParseUint(count, 10, 64)
		number, known := numbers[name]
		switch {
		case !found || err != nil:
			return usagef("--enter ", strconv.Quote(text), ", want a function and how often it is called, as in main=1")
		case !known:
			return usagef("--enter ", strconv.Quote(text), ": there is no function of that name in the file")
		}
		s.Enter(number, n)
	}
	return nil
}

// tables are the answer.
func (o *blockOptions) tables(b *answers.Blocks, format string) (list []report.Table, err error) {
	most := o.top
	if most == 0 || exactRows(format) || o.by != "" && !o.chosen {
		most = answers.All
	}
	branches := func() report.Table {
		var t report.Table
		t, err = b.Branches(most)
		return t
	}
	switch o.by {
	case "function":
		list = []report.Table{b.Functions(most)}
	case "block":
		list = []report.Table{b.Hot(most)}
	case "branch":
		list = []report.Table{branches()}
	case "opcode":
		list = []report.Table{b.Opcodes(most)}
	default:
		list = []report.Table{b.Functions(most), b.Hot(most), branches(), b.Opcodes(most)}
	}
	if o.windows && b.Windows != nil {
		list = append(list, b.Sampled(most))
	}
	return list, err
}
