package command

import (
	"errors"
	"os"
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

// asking is a command line with a verb of package ask.
type asking struct {
	machineOptions
	verb    *ask.Verb
	r       *reading
	oneCore bool

	// Hooks for options that only the command has; each may be nil.
	read    func(q *ask.Question) error                                   // called before the question is checked
	check   func(q ask.Question) error                                    // called before the file is read
	prepare func(l *answerable, run *ask.Run) error                       // called after the file was read
	instead func(run *ask.Run, q ask.Question) (done bool, err error)     // called before the question is answered; returns done if it has printed a different answer
	then    func(l *answerable, q ask.Question, d *report.Document) error // called before the answer is printed
	last    func(d *report.Document) error                                // called after the answer was printed
}

// commandOptions contains, by verb, the functions that add options that only the command has.
var commandOptions = map[string]func(*app, *cobra.Command, *asking){
	"blocks": (*app).blocks, "communication": (*app).communication, "curve": (*app).plotted, "diagnose": (*app).diagnose,
	"histogram": (*app).plotted, "loops": (*app).loops, "multicore": (*app).multicore, "pipeline": (*app).pipeline,
	"sites": (*app).sites, "what-if": (*app).whatIf,
}

// verb returns the command for a verb of package ask, with its options.
func (a *app) verb(v *ask.Verb) *cobra.Command {
	o := &asking{verb: v}
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
	for _, arg := range v.Args {
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
			complete(cmd, arg.Name, arg.Words)
		}
	}
	if more := commandOptions[v.Name]; more != nil {
		more(a, cmd, o)
	}
	return cmd
}

// question builds a question from the options.
func (o *asking) question() (q ask.Question, err error) {
	q = ask.New(o.verb)
	f := o.r.cmd.Flags()
	for _, arg := range o.verb.Args {
		flag := f.Lookup(arg.Name)
		switch {
		case !flag.Changed:
		case arg.Kind == ask.List:
			list, _ := f.GetStringArray(arg.Name)
			q = q.With(arg.Name, list...)
		default:
			q = q.With(arg.Name, flag.Value.String())
		}
	}
	if o.verb.Machine == ask.AllCaches || o.given() {
		if q.Machine, err = o.hierarchy(); err != nil {
			return q, err
		}
	}
	place(&q.Machine, o.oneCore)
	q.Brief = !exactRows(o.r.format)
	if o.read != nil {
		if err := o.read(&q); err != nil {
			return q, err
		}
	}
	if err := q.Check(); err != nil {
		return q, usage(err)
	}
	if o.oneCore && o.r.cores != "" {
		return q, usagef("--one-core cannot be combined with --cores, which groups threads on several cores; give only one of these options")
	}
	if o.check != nil {
		return q, o.check(q)
	}
	return q, nil
}

// ask prints the answer about a file.
func (a *app) ask(o *asking, name string) error {
	q, err := o.question()
	if err != nil {
		return err
	}
	l, err := a.loadFor(o.r, q, name)
	if err != nil {
		return err
	}
	run := l.run(o.r)
	if o.prepare != nil {
		if err := o.prepare(l, run); err != nil {
			return err
		}
	}
	if o.instead != nil {
		if done, err := o.instead(run, q); done || err != nil {
			return usage(err)
		}
	}
	d, err := run.Answer(q)
	if err != nil {
		return answerError(err)
	}
	if o.then != nil {
		if err := o.then(l, q, d); err != nil {
			return err
		}
	}
	if err := a.print(o.r.format, d); err != nil {
		return err
	}
	if l.Stopped != nil || o.last == nil {
		return l.Stopped
	}
	return o.last(d)
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
	return usage(err)
}

// loadFor reads the file with the given name and runs the analyses that the question needs.
func (a *app) loadFor(r *reading, q ask.Question, name string) (*answerable, error) {
	if q.Verb.Needs == nil {
		return a.rereadable(r, name)
	}
	needed := q.Verb.Needs(q)
	if r.spill != "" {
		needed &^= analysis.Sharing // per-thread stacks cannot be spilled
	}
	r.asked, r.analyses = q.Levels(), needed.String()
	if q.Verb.Name == "what-if" {
		if r.stacks = q.Stacks(); !q.Given("share") { // --share may need any number of sets
			r.sets = ask.SetNumbers(r.asked) | 1
		}
	}
	if q.Verb.Measures && r.utilisation == nil {
		r.levels = q.Caches().Levels // the caches whose utilisation is measured
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
	case verb == "loops" && in.IsFolded && r.changed("kinds", "skip", "limit", "threads") == "":
		return loadFolded(in)
	}
	return a.loadOpened(r, in, lines)
}

// run returns the [ask.Run] that answers questions about l.
func (l *answerable) run(r *reading) *ask.Run {
	return &ask.Run{
		Name: l.name, Profile: l.Profile, Module: l.module, Folded: l.folded, Warnings: slices.Clone(l.warnings), Readable: program.Readable, File: readFile,
		Analysed: l.Trace, Cores: r.cores, GoOn: func() bool { return r.cmd.Context().Err() == nil },
	}
}

// readFile reads the file that an option names.
func readFile(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.New(reason(err))
	}
	return text, nil
}
