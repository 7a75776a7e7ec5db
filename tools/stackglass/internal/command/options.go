package command

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// readOptions contains the options of every verb that can read a trace.
type readOptions struct {
	cmd         *cobra.Command
	inputFormat string
	kinds       string
	skip, limit uint64
	threads     []uint
	skipBad     uint64
	strict      bool
	mergeable   bool
	analyses    string           // in the syntax of analysis.ParseAnalyses; "" selects the default analyses
	usual       bool             // whether the analyses in analysis.Usual run if the user lists no analyses
	sets        stack.SetNumbers // the set tables to compute; 0 selects the default
	stacks      analysis.Stacks  // the per-core stacks to compute; 0 selects all
	setCounts   string           // "all" or "most"
	sample      string           // in the syntax of sample.Parse; "" means no sample
	seed        uint64           // random seed of the sample
	memory      string
	spill       string // folder for data that do not fit in memory, or ""
	workers     uint
	segment     uint
	format      string
	lineOptions []string // options that do not apply to a profile, such as those that select line sizes

	utilisation []string          // caches in which line utilisation is measured for each site, as the user wrote them
	levels      []hierarchy.Cache // the caches that are used if utilisation is empty
	// whether to record, for each site, the sites that made the previous accesses to the same lines
	previous bool

	cores, domains string // groups of threads in the syntax of analysis.ParseGroups, or ""
	// questionHierarchy is the hierarchy that the question is about. Unless the option "domains" is
	// set, each group of cores that share a cache of this hierarchy is a domain of the analysis.
	questionHierarchy hierarchy.Hierarchy

	checkpoints *checkpoints // nil if the verb has no checkpoints
	// extraConsumer may be nil. Otherwise, it returns an additional consumer, which receives the
	// same batches as the analyses. The function "program" returns the program that the trace
	// contains.
	extraConsumer func(program func() *trace.Program) func(*trace.Batch) error
}

// traceOptions lists options that change how a trace is read. If FILE is a profile, these options
// are rejected.
var traceOptions = []string{
	"input-format", "kinds", "skip", "limit", "threads", "skip-bad", "strict", "mergeable", "analyses",
	"sample", "sample-seed", "utilisation", "previous", "sets", "cores", "domains", "spill",
}

// addReading adds the options of a verb that analyses a trace.
func addReading(cmd *cobra.Command) *readOptions { return addOptions(cmd, true) }

// addOptions adds the options of a verb that reads a trace. The parameter "analyses" is false for
// verbs that run no analyses, but read the whole trace several times.
func addOptions(cmd *cobra.Command, analyses bool) *readOptions {
	r := &readOptions{cmd: cmd, kinds: trace.DataKinds.String()}
	f := cmd.Flags()
	f.SortFlags = false
	addInputFormat(cmd, &r.inputFormat)
	if analyses {
		f.StringVar(&r.kinds, "kinds", r.kinds, "analyse references of these `KINDS`: load, store, modify, fetch, data, all")
		f.Uint64Var(&r.skip, "skip", 0, "skip the first `N` references")
		f.Uint64Var(&r.limit, "limit", 0, "analyse at most `N` references (0: all references)")
		f.UintSliceVar(&r.threads, "threads", nil, "analyse only the references of the threads in this `LIST`, for example 1,2")
	}
	f.Uint64Var(&r.skipBad, "skip-bad", 0, "tolerate up to `N` unreadable records")
	f.BoolVar(&r.strict, "strict", false, "stop at the first unreadable chunk of a container, instead of skipping the chunk")
	if analyses {
		f.StringVar(&r.sample, "sample", "", "estimate the results from this `SAMPLE`: space=RATE or lines=COUNT (of the cache lines), time=N (one access in N), or onoff=ON/PERIOD (the first ON of each PERIOD references)")
		f.Uint64Var(&r.seed, "sample-seed", 0, "choose the random sample with this `SEED`")
	}
	f.StringVar(&r.memory, "memory", "", "use at most this `SIZE` of memory, for example 4GiB, and stop with a partial result if more memory is needed (default: half of the free memory)")
	if analyses {
		f.UintVar(&r.workers, "workers", 0, "use `N` processors (0: all processors); the result does not depend on N")
		f.UintVar(&r.segment, "segment", 0, "let each worker process about `N` references at a time (0: chosen automatically)")
		hide(cmd, "segment")
	}
	addFormat(cmd, &r.format)
	return r
}

// addSpill adds the option --spill, for traces whose lines do not fit in memory.
func (r *readOptions) addSpill() {
	r.cmd.Flags().StringVar(&r.spill, "spill", "", "write data that exceeds --memory to files in this `FOLDER`, instead of stopping (only for stack distances, sets and counters)")
}

// addInputFormat adds --input-format.
func addInputFormat(cmd *cobra.Command, format *string) {
	var names []string
	for _, f := range open.Formats() {
		names = append(names, f.Name)
	}
	cmd.Flags().StringVar(format, "input-format", "", "read the trace in this `FORMAT`, instead of detecting it: "+strings.Join(names, ", "))
}

func addFormat(cmd *cobra.Command, format *string) {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, string(f))
	}
	cmd.Flags().StringVar(format, "format", names[0], "print the answer in this `FORMAT`: "+strings.Join(names, ", "))
	setCompletions(cmd, "format", names)
}

// checkFormat checks the value of --format, if the verb has that option.
func checkFormat(cmd *cobra.Command) error {
	if f := cmd.Flags().Lookup("format"); f != nil {
		if _, err := report.ParseFormat(f.Value.String()); err != nil {
			return usagef("--", err.Error())
		}
	}
	return nil
}

func hide(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		must(cmd.Flags().MarkHidden(name))
	}
}

// setCompletions sets the words that a shell offers as completions of an option's value.
func setCompletions(cmd *cobra.Command, option string, words []string) {
	must(cmd.Flags().SetAnnotation(option, completions, words))
}

// setFileCompletions is like setCompletions, but the value of the option may also be a file name.
func setFileCompletions(cmd *cobra.Command, option string, words []string) {
	must(cmd.Flags().SetAnnotation(option, completionsOrFiles, words))
}

// Annotations that mark options with shell completions.
const (
	completions        = "completions"
	completionsOrFiles = "completions or files"
)

// registerCompletions registers the completions of all options. It is called only when a shell
// requests completions, because Cobra keeps the registered functions, and thus the commands, in
// memory until the process ends.
func registerCompletions(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		for name, directive := range map[string]cobra.ShellCompDirective{completions: cobra.ShellCompDirectiveNoFileComp, completionsOrFiles: cobra.ShellCompDirectiveDefault} {
			if words, has := f.Annotations[name]; has {
				must(cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, directive)))
			}
		}
	})
	for _, sub := range cmd.Commands() {
		registerCompletions(sub)
	}
}

// firstSet returns the first of the given options that the user has set, or "" if the user has set
// none of them.
func (r *readOptions) firstSet(options ...string) string {
	for _, option := range options {
		if f := r.cmd.Flags().Lookup(option); f != nil && f.Changed {
			return option
		}
	}
	return ""
}

// must panics if err is not nil. Only a bug in this package can cause such an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// mostWorkers is the maximum number of workers. No machine has more processors.
const mostWorkers = 1 << 10

// options converts the flags to the options of a pass with the given line sizes.
func (r *readOptions) options(a *app, lineBytes []uint32) (pass.Options, error) {
	kinds, err := trace.ParseKinds(r.kinds)
	if err != nil {
		return pass.Options{}, asUsage(err)
	}
	analyses := analysis.Default
	switch named := r.analyses != "" && (!r.usual || r.cmd.Flags().Changed("analyses")); {
	case named:
		if analyses, err = analysis.ParseAnalyses(r.analyses); err != nil {
			return pass.Options{}, asUsage(err)
		}
	case r.usual && !r.mergeable && r.sample == "":
		analyses = analysis.Usual
	}
	o := pass.Options{
		Format:      r.inputFormat,
		Strict:      r.strict,
		Terminal:    a.terminal(),
		MemoryBytes: pass.AvailableMemory(),
		Workers:     int(min(r.workers, mostWorkers)),
		Segment:     int(min(r.segment, 1<<30)),
		Spill:       r.spill,
		Spec: analysis.Spec{
			Kinds: kinds, Skip: r.skip, Limit: r.limit, SkipBad: r.skipBad,
			LineBytes: lineBytes, Mergeable: r.mergeable, SetNumbers: r.sets, Stacks: r.stacks, Previous: r.previous, Analyses: analyses,
		},
	}
	switch {
	case r.firstSet("sets") == "": // use the default; a resumed run uses the numbers of sets in its checkpoint
	case r.setCounts == "all":
		o.Spec.SetNumbers = stack.AllSetNumbers
	case r.setCounts == "most":
		o.Spec.SetNumbers = stack.MostSetNumbers
	default:
		return o, asUsage(&trace.OptionError{Option: "sets", Got: r.setCounts, Want: "all or most"})
	}
	if r.sample != "" {
		s, err := sample.Parse(r.sample)
		if err != nil {
			return o, askUsageError(err)
		}
		s.Seed = r.seed
		o.Sample = &s
	}
	if err := r.addGroupsTo(&o.Spec); err != nil {
		return o, err
	}
	if o.Sample != nil && o.Sample.Mode != profile.OnOffSample {
		r.levels = nil // utilisation cannot be measured in a sample, and the user has not requested it
	}
	if err := r.addMeasured(&o.Spec); err != nil {
		return o, err
	}
	for _, t := range r.threads {
		if uint64(t) > 1<<32-1 {
			return o, usagef("--threads ", strconv.FormatUint(uint64(t), 10), ", want thread numbers below 2^32")
		}
		o.Spec.Threads = append(o.Spec.Threads, uint32(t))
	}
	slices.Sort(o.Spec.Threads)
	o.Spec.Threads = slices.Compact(o.Spec.Threads)
	if r.memory != "" {
		if o.MemoryBytes, err = hierarchy.ParseSize(r.memory); err != nil {
			return o, usagef("--memory: ", err.Error())
		}
	}
	return o, nil
}

// measuredCache is a cache in which line utilisation is measured for each site.
type measuredCache struct {
	bytes uint64
	ways  uint32 // number of ways; 0 for a fully associative cache
}

// addMeasured adds the caches in which line utilisation is measured to the spec of an analysis, in
// ascending order.
func (r *readOptions) addMeasured(spec *analysis.Spec) error {
	list, err := parseMeasured(r.utilisation)
	if err != nil {
		return err
	}
	line := uint64(spec.SiteLineBytes())
	for _, c := range r.levels {
		if uint64(c.LineBytes) != line {
			continue // utilisation is measured for a different line size
		}
		m := measuredCache{c.SizeBytes, c.Ways}
		if c.Full() || c.Hashed {
			m.ways = 0
		}
		if lines := m.bytes / line; m.bytes%line == 0 && profile.ValidUtilisation(lines, m.ways) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b measuredCache) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.ways, b.ways))
	})
	list = slices.Compact(list)
	if r.utilisation == nil {
		list = list[:min(len(list), profile.MaxCapacities)]
	}
	for _, m := range list {
		spec.Utilisation, spec.UtilisationWays = append(spec.Utilisation, m.bytes), append(spec.UtilisationWays, m.ways)
	}
	return nil
}

// parseMeasured parses cache sizes, each optionally followed by a number of ways.
func parseMeasured(words []string) (list []measuredCache, err error) {
	const mostWays = 64 // a number up to this limit is a number of ways, because no cache has only 64 bytes
	for _, word := range words {
		word = strings.TrimSpace(word)
		if ways, err := strconv.ParseUint(word, 10, 8); err == nil && ways > 0 && ways <= mostWays && len(list) > 0 && list[len(list)-1].ways == 0 {
			list[len(list)-1].ways = uint32(ways)
			continue
		}
		size, err := hierarchy.ParseSize(word)
		if err != nil {
			return nil, usagef("--utilisation: ", err.Error())
		}
		list = append(list, measuredCache{bytes: size})
	}
	return list, nil
}

// refuseForProfile returns an error if an option is set that does not apply to a profile.
func (r *readOptions) refuseForProfile(name string) error {
	return r.refuseForResult(name, "a profile")
}

// refuseForResult returns an error if an option is set that does not apply to the result of a pass.
func (r *readOptions) refuseForResult(name, what string) error {
	if option := r.firstSet(slices.Concat(traceOptions, r.lineOptions)...); option != "" {
		return usagef("--", option, " applies only when a trace is read, but ", name, " is ", what, "; give the trace, or omit the option")
	}
	return nil
}

// load opens FILE. If FILE is a profile, it returns the profile. Otherwise, it analyses FILE and
// returns the resulting profile. If the pass ended early, [pass.Result.Stopped] is the reason.
func (a *app) load(r *readOptions, name string, lineBytes []uint32) (*loadedFile, error) {
	if _, err := r.options(a, lineBytes); err != nil {
		return nil, err
	}
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return a.loadOpened(r, in, lineBytes)
}

// loadOpened is like load, for an open file.
func (a *app) loadOpened(r *readOptions, in *pass.Input, lineBytes []uint32) (*loadedFile, error) {
	o, err := r.options(a, lineBytes)
	if err != nil {
		return nil, err
	}
	if in.IsProfile {
		if err := r.refuseForProfile(in.Name); err != nil {
			return nil, err
		}
	}
	if a := &o.Spec.Analyses; !in.IsProfile && len(r.questionHierarchy.Levels) > 0 && *a&(analysis.Sharing|analysis.Sets) == analysis.Sharing {
		// If the trace has only one thread, the per-thread stacks do not need set tables.
		one, err := r.fewThreads(in, o, 1)
		if err != nil {
			return nil, err
		}
		if one {
			*a &^= analysis.Sharing
		}
	}
	cores, err := r.sharingCores(r.questionHierarchy, in, o)
	if err != nil {
		return nil, err
	}
	if cores != nil {
		o.Spec.Domains = domainsOf(r.questionHierarchy, cores)
	}
	o.BesideSites = r.extraConsumer
	if r.checkpoints != nil && !in.IsProfile && !in.IsByfl {
		if o.Checkpoints, err = r.checkpoints.passOptions(a, in, o); err != nil {
			return nil, err
		}
	}
	if a.analysing != nil && !in.IsProfile {
		a.analysing(o.Spec)
	}
	result, err := in.Analyze(r.cmd.Context(), o)
	if err != nil {
		return nil, err
	}
	loaded := newLoadedFile(result, in.Name, r)
	if o.Spec.Domains != nil && r.cores == "" {
		loaded.warnings = append(loaded.warnings, program.SharersDoubts(r.questionHierarchy, cores)...)
	}
	return loaded, nil
}

// loadedFile contains the content of a file (a profile, a module or a loop-compressed trace) and
// warnings about the file.
type loadedFile struct {
	*pass.Result
	name     string
	module   []byte      // the text of LLVM IR
	folded   *ask.Folded // a loop-compressed trace that was not expanded
	measured []byte      // the text of measurements
	warnings []string
}

// newLoadedFile combines the result of a pass with its warnings.
func newLoadedFile(result *pass.Result, name string, r *readOptions) *loadedFile {
	l := &loadedFile{Result: result, name: name}
	l.warnings = append(l.resultWarnings(), l.absentThreads(r)...)
	return l
}

// resultWarnings returns the warnings that apply to all answers: about the profile, and about the
// pass that produced it.
func (l *loadedFile) resultWarnings() []string {
	list := ask.Doubts(l.name, l.Profile)
	switch n := l.Profile.Totals.BadRecords; {
	case l.FirstBad == nil || n == 0:
	case n == 1:
		list[len(list)-1] += ": " + l.FirstBad.Error()
	default:
		list[len(list)-1] += "; the first: " + l.FirstBad.Error()
	}
	if l.Changed {
		list = append(list, l.name+": the file was modified while it was read, so the result may mix two versions; analyse the file again when it is complete")
	}
	if l.LeftOut != "" {
		list = append(list, l.name+": left out: "+l.LeftOut)
	}
	return list
}

// answer prints a document about a loaded profile. It returns the error that ended the pass early,
// or nil.
func (a *app) answer(l *loadedFile, format string, d *report.Document) error {
	d.Warnings = append(l.warnings, d.Warnings...)
	if err := a.print(format, d); err != nil {
		return err
	}
	return l.Stopped
}

// print writes a document to stdout and its warnings to stderr. A JSON document contains its
// warnings, so the warnings are not written to stderr.
func (a *app) print(format string, d *report.Document) error {
	if format != string(report.JSON) {
		for _, w := range d.Warnings {
			a.warn(w)
		}
	}
	if width := a.terminalWidth(); width > 0 && format == string(report.Text) {
		d = splitWideTables(d, width)
	}
	if err := d.Write(a.stdout, report.Format(format)); err != nil {
		return &outputError{path: "standard output", err: err}
	}
	return nil
}

func (a *app) write(text []byte) error {
	if _, err := a.stdout.Write(text); err != nil {
		return &outputError{path: "standard output", err: err}
	}
	return nil
}

// facts returns the facts about the input for an answer.
func (l *loadedFile) facts(lineBytes uint32) []report.Fact {
	return (&ask.Run{Name: l.name, Profile: l.Profile}).Facts(lineBytes)
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatUint(n, 10) + " " + noun + "s"
}
