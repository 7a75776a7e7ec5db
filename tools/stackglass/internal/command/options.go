package command

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// reading are the options of every verb that may read a trace.
type reading struct {
	cmd         *cobra.Command
	inputFormat string
	kinds       string
	skip, limit uint64
	threads     []uint
	skipBad     uint64
	strict      bool
	mergeable   bool
	analyses    string // as analysis.ParseAnalyses takes it; "": the default ones
	sample      string // as sample.Parse takes it; "": all
	seed        uint64 // of the sample
	memory      string
	spill       string // folder for what does not fit in memory; "": nothing goes there
	workers     uint
	segment     uint
	format      string
	lineOptions []string // those that choose line sizes, rather than one that a profile has

	utilisation []string          // sizes for which sites measure it, as given
	levels      []hierarchy.Cache // whose sizes they are where none are given
	previous    bool              // sites note who touched lines before

	cores, domains string // groups of threads, as analysis.ParseGroups reads them; "": none
	// asked is the hierarchy that the answer is about: the cores that share its caches are
	// the domains of the analysis, unless domains has others.
	asked hierarchy.Hierarchy

	checkpoints *checkpoints // nil: the verb takes none
	// besides goes on beside the analyses, with what the trace tells of its code; nil:
	// nothing does.
	besides func(program func() *trace.Program) func(*trace.Batch) error
}

// traceOptions are the names of the options that change what is read. A profile
// was made with its own; there they are refused.
var traceOptions = []string{"input-format", "kinds", "skip", "limit", "threads", "skip-bad", "strict", "mergeable", "analyses", "sample", "sample-seed", "utilisation", "previous", "cores", "domains", "spill"}

// addReading gives cmd the options of a verb that analyses what it reads.
func addReading(cmd *cobra.Command) *reading { return addOptions(cmd, true) }

// addRereading gives cmd those of a verb that reads a whole trace, several times.
func addRereading(cmd *cobra.Command) *reading { return addOptions(cmd, false) }

func addOptions(cmd *cobra.Command, analyses bool) *reading {
	r := &reading{cmd: cmd, kinds: trace.DataKinds.String()}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&r.inputFormat, "input-format", "", "the trace's format, if it is not to be found out: "+strings.Join(formatNames(), ", "))
	if analyses {
		f.StringVar(&r.kinds, "kinds", r.kinds, "references to analyse: load, store, modify, fetch, data, all")
		f.Uint64Var(&r.skip, "skip", 0, "leave out the first `N` references")
		f.Uint64Var(&r.limit, "limit", 0, "analyse `N` references at most (0: all)")
		f.UintSliceVar(&r.threads, "threads", nil, "analyse these threads only, as in 1,2")
	}
	f.Uint64Var(&r.skipBad, "skip-bad", 0, "tolerate `N` records that cannot be read")
	f.BoolVar(&r.strict, "strict", false, "stop at the first part of a container that cannot be read, instead of leaving it out")
	if analyses {
		f.StringVar(&r.sample, "sample", "", "estimate from a sample: space=RATE or lines=COUNT of the lines, time=GAP (one access in so many), onoff=ON/PERIOD references")
		f.Uint64Var(&r.seed, "sample-seed", 0, "choose another sample by another `NUMBER`")
	}
	f.StringVar(&r.memory, "memory", "", "stop in good order beyond this much memory, as in 4GiB (default: half of the free memory)")
	if analyses {
		f.UintVar(&r.workers, "workers", 0, "share the analysis among `N` processors; the result is the same (0: all there are)")
		f.UintVar(&r.segment, "segment", 0, "give each of them about `N` references at a time (0: find out)")
		must(f.MarkHidden("segment"))
	}
	addFormat(cmd, &r.format)
	return r
}

// addSpill gives cmd the option for traces whose lines do not fit in memory.
func (r *reading) addSpill() {
	r.cmd.Flags().StringVar(&r.spill, "spill", "", "keep what does not fit in --memory in a `FOLDER`, instead of stopping; distances, sets and counters can be")
}

// formatNames lists the formats of traces.
func formatNames() (names []string) {
	for _, f := range open.Formats() {
		names = append(names, f.Name)
	}
	return names
}

func addFormat(cmd *cobra.Command, format *string) {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, string(f))
	}
	cmd.Flags().StringVar(format, "format", names[0], "how to print the answer: "+strings.Join(names, ", "))
	must(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)))
}

func parseFormat(name string) (report.Format, error) {
	f, err := report.ParseFormat(name)
	if err != nil {
		err = asUsage(errors.New("--" + err.Error()))
	}
	return f, err
}

// must is for errors that only a mistake in this package can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// mostWorkers is more than one program has processors.
const mostWorkers = 1 << 10

// options turns the flags into what a pass needs, for these line sizes.
func (r *reading) options(a *app, lineBytes []uint32) (pass.Options, error) {
	if _, err := parseFormat(r.format); err != nil {
		return pass.Options{}, err
	}
	kinds, err := trace.ParseKinds(r.kinds)
	if err != nil {
		return pass.Options{}, asUsage(err)
	}
	analyses := analysis.Default
	if r.analyses != "" {
		if analyses, err = analysis.ParseAnalyses(r.analyses); err != nil {
			return pass.Options{}, asUsage(err)
		}
	}
	o := pass.Options{
		Format:      r.inputFormat,
		Strict:      r.strict,
		Terminal:    a.terminal(),
		MemoryBytes: pass.AvailableMemory(),
		Workers:     int(min(r.workers, mostWorkers)),
		Segment:     int(min(r.segment, 1<<30)),
		Spec: analysis.Spec{
			Kinds: kinds, Skip: r.skip, Limit: r.limit, SkipBad: r.skipBad,
			LineBytes: lineBytes, Mergeable: r.mergeable, Analyses: analyses,
		},
	}
	if o.Sample, err = r.sampling(); err != nil {
		return o, err
	}
	o.Spec.Previous = r.previous
	if err := r.group(&o.Spec); err != nil {
		return o, err
	}
	if o.Sample != nil && o.Sample.Mode != profile.OnOffSample {
		r.levels = nil // utilisation needs every access, and was not asked for by the user
	}
	if err := r.measure(&o.Spec); err != nil {
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
	o.Spill = r.spill
	return o, nil
}

// sampling is what --sample asks for, or nil.
func (r *reading) sampling() (*sample.Options, error) {
	if r.sample == "" {
		return nil, nil
	}
	o, err := sample.Parse(r.sample)
	if err != nil {
		return nil, asUsage(errors.New("--" + err.Error()))
	}
	o.Seed = r.seed
	return &o, nil
}

// measured is a cache for which sites measure utilisation; 0 ways: fully
// associative.
type measured struct {
	bytes uint64
	ways  uint32
}

// measure puts into a spec what sites measure, ascending, each once.
func (r *reading) measure(spec *analysis.Spec) error {
	list, err := parseMeasured(r.utilisation)
	if err != nil {
		return err
	}
	line := uint64(spec.SiteLineBytes())
	for _, c := range r.levels {
		if uint64(c.LineBytes) != line {
			continue // another cache would be measured
		}
		m := measured{c.SizeBytes, c.Ways}
		if c.Full() || c.Hashed {
			m.ways = 0
		}
		if lines := m.bytes / line; m.bytes%line == 0 && profile.ValidUtilisation(lines, m.ways) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b measured) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.ways, b.ways)) })
	list = slices.Compact(list)
	if r.utilisation == nil {
		list = list[:min(len(list), profile.MaxCapacities)]
	}
	for _, m := range list {
		spec.Utilisation, spec.UtilisationWays = append(spec.Utilisation, m.bytes), append(spec.UtilisationWays, m.ways)
	}
	return nil
}

// parseMeasured reads sizes, each with its ways behind it or none.
func parseMeasured(words []string) (list []measured, err error) {
	const mostWays = 64 // no size is that small
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
		list = append(list, measured{bytes: size})
	}
	return list, nil
}

// refuseForProfile tells that an option has no meaning for a profile.
func (r *reading) refuseForProfile(name string) error { return r.refuseForResult(name, "a profile") }

// refuseForResult tells that an option has no meaning for what is a result.
func (r *reading) refuseForResult(name, what string) error {
	for _, option := range slices.Concat(traceOptions, r.lineOptions) {
		if f := r.cmd.Flags().Lookup(option); f != nil && f.Changed {
			return usagef("--", option, ": ", name, " is ", what, ", and what it covers was chosen when its trace was read; give the trace, or leave the option out")
		}
	}
	return nil
}

// load opens FILE and gives its profile. A pass that ended early is in
// [pass.Result.Stopped]; doubts go to stderr and into the result.
func (a *app) load(r *reading, name string, lineBytes []uint32) (*answerable, error) {
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

// loadOpened is load for a FILE that is open.
func (a *app) loadOpened(r *reading, in *pass.Input, lineBytes []uint32) (*answerable, error) {
	o, err := r.options(a, lineBytes)
	if err != nil {
		return nil, err
	}
	if in.IsProfile {
		if err := r.refuseForProfile(in.Name); err != nil {
			return nil, err
		}
	}
	if a := &o.Spec.Analyses; !in.IsProfile && len(r.asked.Levels) > 0 && *a&(analysis.Sharing|analysis.Sets) == analysis.Sharing {
		// Stacks of threads come with set tables, which nobody needs where there is one thread.
		one, err := r.fewThreads(in, o, 1)
		if err != nil {
			return nil, err
		}
		if one {
			*a &^= analysis.Sharing
		}
	}
	cores, err := r.sharingCores(r.asked, in, o)
	if err != nil {
		return nil, err
	}
	if cores != nil {
		o.Spec.Domains = domainsOf(r.asked, cores)
	}
	o.BesideSites = r.besides
	if r.checkpoints != nil && !in.IsProfile && !in.IsByfl {
		if o.Checkpoints, err = r.checkpoints.use(a, in, o); err != nil {
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
	loaded := &answerable{Result: result, name: in.Name}
	loaded.warnings = append(loaded.doubts(), loaded.aboutGroups(r)...)
	if o.Spec.Domains != nil && r.cores == "" {
		loaded.warnings = append(loaded.warnings, sharersDoubts(r.asked, cores)...)
	}
	return loaded, nil
}

// answerable is a loaded profile with what is doubtful about it.
type answerable struct {
	*pass.Result
	name     string
	module   []byte      // the text of LLVM IR, where the file is that: there is no profile
	folded   *ask.Folded // the loop-compressed trace, where the file is that and it was not unfolded: there is no profile
	warnings []string
}

// doubts are sentences about the profile as a whole, and about the pass that made it.
func (l *answerable) doubts() []string {
	list := ask.Doubts(l.name, l.Profile)
	if l.FirstBad != nil && len(list) > 0 {
		list[len(list)-1] += "; the first: " + l.FirstBad.Error()
	}
	if l.Changed {
		list = append(list, l.name+": the file was written to while it was read, so this may be of no state that it ever had; analyse it again once nothing writes to it")
	}
	if l.LeftOut != "" {
		list = append(list, l.name+": left out: "+l.LeftOut)
	}
	return list
}

// answer prints a document about a loaded profile; an error that ended its pass
// early comes after it.
func (a *app) answer(l *answerable, format string, d *report.Document) error {
	f, err := parseFormat(format)
	if err != nil {
		return err
	}
	d.Warnings = append(l.warnings, d.Warnings...)
	if err := a.print(f, d); err != nil {
		return err
	}
	return l.Stopped
}

// print writes a document to stdout, and its doubts to stderr where the format
// has no room for them.
func (a *app) print(f report.Format, d *report.Document) error {
	if f != report.JSON {
		for _, w := range d.Warnings {
			a.warn(w)
		}
	}
	if err := d.Write(a.stdout, f); err != nil {
		return &outputError{path: "standard output", err: err}
	}
	return nil
}

// facts are what every answer says of its input.
func (l *answerable) facts(lineBytes uint32) []report.Fact {
	return (&ask.Run{Name: l.name, Profile: l.Profile}).Facts(lineBytes)
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatUint(n, 10) + " " + noun + "s"
}
