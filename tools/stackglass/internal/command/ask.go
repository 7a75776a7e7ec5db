package command

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// verbCommand contains the options of a verb of package ask.
type verbCommand struct {
	machineOptions
	verb    *ask.Verb
	r       *readOptions
	oneCore bool

	// Hooks for options that exist only on the command line. Each hook may be nil.
	beforeCheck   func(q *ask.Question) error                                   // called before the question is checked
	beforeLoad    func(q ask.Question) error                                    // called before the file is read
	afterLoad     func(l *loadedFile, run *ask.Run) error                       // called after the file was read
	answerInstead func(run *ask.Run, q ask.Question) (done bool, err error)     // called before the question is answered; done means that the hook has printed a different answer
	beforePrint   func(l *loadedFile, q ask.Question, d *report.Document) error // called before the answer is printed
	afterPrint    func(d *report.Document) error                                // called after the answer was printed
}

// commandOptions contains functions that add options to verbs. These options exist only on the
// command line.
var commandOptions = map[string]func(*app, *cobra.Command, *verbCommand){
	"blocks": (*app).addBlockOptions, "communication": (*app).addSymbolOption, "curve": (*app).addChartOptions, "diagnose": (*app).addDiagnoseOptions,
	"histogram": (*app).addChartOptions, "loops": (*app).addLoopOptions, "multicore": (*app).addMulticoreOptions, "pipeline": (*app).pipeline,
	"sites": (*app).addSourceOptions, "what-if": (*app).addWhatIfOptions,
}

// newVerbCommand returns the Cobra command for a verb of package ask.
func (a *app) newVerbCommand(v *ask.Verb) *cobra.Command {
	o := &verbCommand{verb: v}
	cmd := &cobra.Command{
		Use:   strings.TrimSpace(v.Name + " FILE " + v.Use),
		Short: v.Title,
		Args:  oneFile,
		RunE:  func(_ *cobra.Command, args []string) error { return a.ask(o, args[0]) },
	}
	o.r = addOptions(cmd, v.Needs != nil)
	if v.Spills {
		o.r.addSpill()
	}
	f := cmd.Flags()
	if v.Machine != ask.NoCaches {
		text := cacheUsage
		switch len(v.Usual) {
		case 0:
		case 1:
			text = "add this cache `LEVEL` (repeat for each level; default: " + v.Usual[0] + ")"
		default:
			text = "add this cache `LEVEL` (repeat for each level; default: " + strings.Join(v.Usual, " and ") + ")"
		}
		o.addMachine(cmd, text)
		if v.Machine == ask.UsualCaches && len(v.Usual) == 0 {
			f.Lookup("hierarchy").Usage += " (default: " + presetNames()[0] + ")"
		}
	}
	if v.Groups {
		addGroups(cmd, o.r)
	}
	if v.Places {
		addOneCore(cmd, &o.oneCore)
	}
	for i := range v.Args {
		addArg(cmd, &v.Args[i])
	}
	if more := commandOptions[v.Name]; more != nil {
		more(a, cmd, o)
	}
	return cmd
}

// addArg adds the option for an argument of a verb.
func addArg(cmd *cobra.Command, arg *ask.Arg) {
	f := cmd.Flags()
	switch arg.Kind {
	case ask.Number:
		n, _ := strconv.ParseUint(arg.Default, 10, 64)
		f.Uint64(arg.Name, n, arg.Help)
	case ask.Switch:
		f.Bool(arg.Name, false, arg.Help)
	case ask.List:
		f.StringArray(arg.Name, nil, arg.Help)
	default:
		f.String(arg.Name, arg.Default, arg.Help)
	}
	if arg.Words != nil {
		setCompletions(cmd, arg.Name, arg.Words)
	}
}

// arguments returns a question with the arguments that the user specified.
func (o *verbCommand) arguments() ask.Question {
	q := ask.New(o.verb)
	f := o.r.cmd.Flags()
	for _, arg := range o.verb.Args {
		flag := f.Lookup(arg.Name)
		switch {
		case flag == nil || !flag.Changed:
		case arg.Kind == ask.List:
			list, _ := f.GetStringArray(arg.Name)
			q = q.With(arg.Name, list...)
		default:
			q = q.With(arg.Name, flag.Value.String())
		}
	}
	return q
}

// question converts the options to a question.
func (o *verbCommand) question() (q ask.Question, err error) {
	q = o.arguments()
	if o.verb.Machine == ask.AllCaches || o.isGiven() {
		if q.Machine, err = o.hierarchy(); err != nil {
			return q, err
		}
	}
	putOnOneCore(&q.Machine, o.oneCore)
	q.Brief = !exactRows(o.r.format)
	if o.beforeCheck != nil {
		if err := o.beforeCheck(&q); err != nil {
			return q, err
		}
	}
	if err := q.Check(); err != nil {
		return q, askUsageError(err)
	}
	if o.oneCore && o.r.cores != "" {
		return q, usagef("--one-core cannot be combined with --cores, which groups threads on several cores; give only one of these options")
	}
	if o.beforeLoad != nil {
		return q, o.beforeLoad(q)
	}
	return q, nil
}

// ask answers a question about a file and prints the answer.
func (a *app) ask(o *verbCommand, name string) error {
	q, err := o.question()
	if err != nil {
		return err
	}
	l, err := a.loadFor(o.r, q, name)
	if err != nil {
		return err
	}
	run := l.newRun(o.r)
	if o.afterLoad != nil {
		if err := o.afterLoad(l, run); err != nil {
			return err
		}
	}
	if o.answerInstead != nil {
		if done, err := o.answerInstead(run, q); done || err != nil {
			return askUsageError(err)
		}
	}
	d, err := run.Answer(q)
	if err != nil {
		return answerError(err)
	}
	if o.beforePrint != nil {
		if err := o.beforePrint(l, q, d); err != nil {
			return err
		}
	}
	if err := a.print(o.r.format, d); err != nil {
		return err
	}
	if l.Stopped != nil || o.afterPrint == nil {
		return l.Stopped
	}
	return o.afterPrint(d)
}

// answerError converts an error of [ask.Run.Answer] into an error of the command line.
func answerError(err error) error {
	var failed *passError
	switch {
	case err == ask.ErrStopped:
		return pass.ErrInterrupted
	case errors.As(err, &failed):
		return failed.err
	}
	return askUsageError(err)
}

// loadFor reads the file with the given name and runs the analyses that the question needs.
func (a *app) loadFor(r *readOptions, q ask.Question, name string) (*loadedFile, error) {
	if q.Verb == program.Simulate { // the simulation reads the trace
		return &loadedFile{Result: &pass.Result{}, name: name}, nil
	}
	if q.Verb.Needs == nil {
		return a.requireFile(r, name)
	}
	needed := q.Verb.Needs(q)
	if r.spill != "" {
		needed &^= analysis.Sharing // per-thread stacks cannot be spilled
	}
	r.questionHierarchy, r.analyses = q.Levels(), needed.String()
	if q.Verb.Name == "what-if" {
		if r.stacks = q.Stacks(); !q.Given("share") { // with --share, the answer may need any number of sets
			r.sets = ask.SetNumbers(r.questionHierarchy) | 1
		}
	}
	if q.Verb.Measures && r.utilisation == nil {
		r.levels = q.Caches().Levels // line utilisation is measured in these caches
	}
	var lines []uint32
	if q.Verb.Lines != nil {
		lines = q.Verb.Lines(q)
	}
	if lines == nil {
		lines = []uint32{analysis.DefaultLineBytes}
	}
	if _, err := r.options(a, lines); err != nil {
		return nil, err
	}
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	switch verb := q.Verb.Name; {
	case verb == "counters" && in.IsByfl:
		return a.loadByfl(r, in)
	case (verb == "blocks" || verb == "pipeline") && in.IsModule:
		return r.loadModule(in)
	case verb == "loops" && in.IsFolded && r.firstSet("kinds", "skip", "limit", "threads") == "":
		return loadFolded(in)
	}
	l, err := a.loadOpened(r, in, lines)
	var found *pass.MeasuredError
	if q.Verb == program.Measured && errors.As(err, &found) {
		return r.loadMeasured(found)
	}
	return l, err
}

// newRun returns the [ask.Run] that answers questions about l.
func (l *loadedFile) newRun(r *readOptions) *ask.Run {
	return &ask.Run{
		Name: l.name, Profile: l.Profile, Module: l.module, Folded: l.folded, Measured: l.measured, Warnings: slices.Clone(l.warnings), Readable: program.Readable, File: pass.ReadFile,
		Analysed: l.Trace, Cores: r.cores, GoOn: func() bool { return r.cmd.Context().Err() == nil },
	}
}
