package command

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// loopOptions are what the verb loops takes besides what it reads.
type loopOptions struct {
	loop    string
	share   string
	arrays  bool
	line    uint32
	symbols []string
	changes changeOptions
}

// loops prints the nests of a trace.
func (a *app) loops() *cobra.Command {
	var (
		r *reading
		o loopOptions
	)
	cmd := &cobra.Command{
		Use:   "loops FILE",
		Short: "The loop nests of a run, and the arrays that each goes over",
		Long: `Fold a trace into its loops, and print them: where in the source, how often each runs
and with how many iterations (trips; 1–512 where they change), and what share of all
references is made in it. Loops are numbered as chapters are: 2.1 is the first loop in
nest 2. Nests that differ in addresses and trip counts only are one that runs several
times. What is folded is lossless; counts are exact.

--arrays prints the arrays of each loop, --loop 2.1 those of one: base, extent, stride
for each loop from the outermost in, the bytes that its first run touches, and how much
of the lines they lie in that is. Accesses without a pattern are irregular.

--cache counts misses by loop and cause, and who evicts whom: exactly, with LRU, on the
folded trace, at a cost that hardly grows with trip counts. Each level is counted as if
it saw every access; threads share it. The last row has the misses of the whole run, as
simulate counts them for the level alone. Arrays get their class in the first level, as
ScalaMemAnalysis has them, from exact counts.

What if the code were different: --pad, --interchange, --tile, --align, --fuse and
--array-of-structs change one nest (--nest) in the order given here, and the misses of
the caches given by --cache or --hierarchy are counted again, exactly; --propose tries
many such changes and prints those that save most. Loops go by their numbers, or as i,
j, k, …: the outermost loop of the nest, the first in it, and so on. Arrays go by their
names, or by an address in them. Whether the program still means the same is not
checked; each change says what would make it illegal.

Loops that make less than --share of the references are left out; csv and json have
all. FILE is a trace, a folded one (.sgl), which may stand for more rows than can be
unfolded, or a profile that was made with "analyze --analyses loops". Loops
are those of the program where the trace tells sites and blocks, as "stackglass cc"
makes it; with addresses of instructions they mostly are; without both, little folds.`,
		Example: "  stackglass loops app.sgt\n  stackglass loops app.sgt --loop 1.1\n  stackglass loops app.sgp --arrays --format csv\n" +
			"  stackglass loops app.sgt --propose 3 --cache L1=32KiB,8\n  stackglass loops app.sgt --pad b=+64 --tile i=32,j=32 --cache L1=32KiB,8",
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return a.nests(r, &o, args[0]) },
	}
	r = addReading(cmd)
	f := cmd.Flags()
	f.StringVar(&o.loop, "loop", "", "print the arrays of this loop, by its `NUMBER`, as in 1.2")
	f.BoolVar(&o.arrays, "arrays", false, "print the arrays of all loops that are shown")
	f.StringVar(&o.share, "share", "1%", "leave loops out that make less than this share of the references")
	lineFlag(cmd, &o.line)
	addSymbols(cmd, &o.symbols)
	o.changes.add(cmd)
	for _, name := range []string{"sample", "sample-seed"} {
		must(f.MarkHidden(name))
	}
	return cmd
}

// parseShare reads 90% or 0.9.
func parseShare(flag, given string) (share float64, err error) {
	text, percent := strings.CutSuffix(given, "%")
	share, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, usagef("--", flag, " ", strconv.Quote(given), ", want a share of the references, as in 1% or 0.01")
	}
	return share, nil
}

// nests prints the verb's answer.
func (a *app) nests(r *reading, o *loopOptions, name string) error {
	least, err := parseShare("share", o.share)
	if err != nil {
		return err
	}
	if o.loop != "" && o.arrays {
		return usagef("--loop and --arrays exclude each other: --loop prints the arrays of one loop")
	}
	levels, err := o.levels()
	if err != nil {
		return err
	}
	most := mostNests
	if exactRows(r.format) {
		most, least = answers.AllNests, 0
	}
	r.analyses = (analysis.Sites | analysis.Loops).String()
	if _, err := r.options(a, nil); err != nil {
		return err
	}
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	if in.IsFolded && !r.choosesRows() {
		return a.foldedNests(r, o, in, levels, least, most)
	}
	l, err := a.loadOpened(r, in, []uint32{o.line})
	if err != nil {
		return err
	}
	notes, err := symbolize(l.Profile, o.symbols)
	if err != nil {
		return err
	}
	found, err := loopsOf(l, most)
	if err != nil {
		return err
	}
	d := &report.Document{Schema: "stackglass.loops", Version: 1, Input: l.facts(found.LineBytes)}
	if err = o.answer(r, found, levels, least, d); err != nil {
		return err
	}
	d.Warnings = slices.Concat(notes, aboutNests(l), d.Warnings)
	return a.answer(l, r.format, d)
}

// levels are those whose misses are asked for.
func (o *loopOptions) levels() ([]hierarchy.Cache, error) {
	c := &o.changes
	if c.any() || len(c.caches) == 0 && c.named == "" {
		return nil, nil
	}
	h, err := chooseHierarchy(c.caches, c.named)
	return h.Levels, err
}

// choosesRows tells that not all rows of a trace are wanted, or more is to be known of
// them than loops tell.
func (r *reading) choosesRows() bool {
	for _, name := range []string{"kinds", "skip", "limit", "threads"} {
		if r.cmd.Flags().Lookup(name).Changed {
			return true
		}
	}
	return false
}

// foldedNests prints the nests of a folded trace, which is not unfolded.
func (a *app) foldedNests(r *reading, o *loopOptions, in *pass.Input, levels []hierarchy.Cache, least float64, most int) error {
	tree, header, err := in.Tree()
	if err != nil && (tree == nil || tree.Rows() == 0) {
		return err
	}
	found := &answers.Loops{Outline: outline.New(tree, most), Place: answers.ProgramPlaces(header.Program), LineBytes: o.line, Name: readable}
	if found.LineBytes == 0 {
		found.LineBytes = analysis.DefaultLineBytes
	}
	complete := err == nil
	d := &report.Document{Schema: "stackglass.loops", Version: 1, Input: []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(in.Name)},
		{Key: "trace_format", Label: "trace format", Value: report.TextOf("sgl")},
		{Key: "references", Label: "references", Value: report.Count(found.References)},
		{Key: "complete", Label: "complete", Value: report.YesNo(complete)},
		{Key: "line_bytes", Label: "line size", Value: report.Count(uint64(found.LineBytes))},
	}}
	if tree.Rows() == math.MaxUint64 {
		d.Warnings = append(d.Warnings, in.Name+": stands for 2^64 rows or more: counts are modulo 2^64, and misses cannot be counted")
		levels, least = nil, 0 // shares are of a number that is not known
	}
	if err := o.answer(r, found, levels, least, d); err != nil {
		return err
	}
	if !complete {
		d.Warnings = append(d.Warnings, in.Name+": this covers a part of the trace only: what could be read")
	}
	f, wrong := parseFormat(r.format)
	if wrong != nil {
		return wrong
	}
	if err := a.print(f, d); err != nil {
		return err
	}
	return err
}

// answer fills a document in.
func (o *loopOptions) answer(r *reading, found *answers.Loops, levels []hierarchy.Cache, least float64, d *report.Document) (err error) {
	if o.changes.any() {
		table, doubts, err := o.changes.answer(found)
		d.Tables, d.Warnings = []report.Table{table}, append(d.Warnings, doubts...)
		return err
	}
	if d.Tables, err = o.tables(found, least, r.format); err != nil || levels == nil {
		return err
	}
	ctx := r.cmd.Context()
	m := loopcount.Count(found, levels, func() bool { return ctx.Err() == nil })
	if m == nil {
		return pass.ErrInterrupted
	}
	of := found.Shown(least)
	if o.loop != "" {
		of = []int{found.Find(o.loop)}
	}
	for i := range d.Tables {
		if d.Tables[i].Key == "arrays" {
			m.AddClasses(&d.Tables[i], of)
		}
	}
	table := m.Table(of)
	switch evictions := m.Evictions(); {
	case r.format == string(report.CSV) && !o.arrays:
		d.Tables = append([]report.Table{table}, d.Tables...)
	default:
		d.Tables = append(d.Tables, table, evictions)
	}
	for i := range m.Levels {
		if text := m.Levels[i].Problem; text != "" {
			d.Warnings = append(d.Warnings, text)
		}
	}
	return nil
}

// mostNests is how many nests people may get.
const mostNests = 1000

// holdsLoops tells why a profile holds no loops.
func holdsLoops(l *answerable) error {
	switch p := l.Profile; {
	case p.Totals.AllReferences() == 0:
		return usagef(l.name, ": no reference was analysed: the trace has none, or none of the chosen kinds, threads and part")
	case p.Loops == nil:
		return usagef(l.name, ": the profile holds no loops; analyze the trace again with --analyses loops")
	case len(p.Loops) == 0:
		return usagef(l.name, ": the trace does not fold: its tree of loops grew beyond its memory and was given up; analyze a part of it, as with --limit 10000000")
	}
	return nil
}

// loopsOf are the loops of a profile.
func loopsOf(l *answerable, most int) (*answers.Loops, error) {
	if err := holdsLoops(l); err != nil {
		return nil, err
	}
	found, err := answers.NewLoops(l.Profile, most)
	if err != nil {
		return nil, usagef(l.name, ": its loops are damaged: ", err.Error())
	}
	found.Name = readable
	return found, nil
}

// aboutNests are doubts about loops.
func aboutNests(l *answerable) (doubts []string) {
	in := &l.Profile.Input.Header
	if l.Profile.Sites == nil && !in.PCs {
		doubts = append(doubts, l.name+": the trace tells neither sites nor addresses of instructions, so little folds, and the loops are not those of the program")
	}
	if in.Sliced {
		doubts = append(doubts, l.name+": the threads are in order only from one time slice to the next, so nests of several threads are cut where a slice ends")
	}
	return doubts
}

// tables are the answer.
func (o *loopOptions) tables(l *answers.Loops, least float64, format string) ([]report.Table, error) {
	if o.loop != "" {
		at := l.Find(o.loop)
		if at < 0 {
			return nil, usagef("--loop ", o.loop, ": there is no such loop; see them with: stackglass loops FILE")
		}
		return []report.Table{l.ArraysTable([]int{at})}, nil
	}
	loops, arrays := l.Table(least), report.Table{}
	if !exactRows(format) {
		loops = l.Brief(least)
	}
	if o.arrays || format == string(report.JSON) {
		arrays = l.ArraysTable(l.Shown(least))
	}
	switch {
	case o.arrays && format == string(report.CSV):
		return []report.Table{arrays}, nil
	case arrays.Key != "":
		return []report.Table{loops, arrays}, nil
	}
	return []report.Table{loops}, nil
}
