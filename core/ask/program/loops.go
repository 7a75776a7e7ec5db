package program

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// changeKinds lists the changes that can be tried, in the order in which they are applied.
var changeKinds = []ask.Arg{
	{Name: "pad", Kind: ask.List, Help: "add bytes after each row of an array, for example `A=+64`"},
	{Name: "align", Kind: ask.List, Help: "align all arrays, or one array, to a multiple of `BYTES`, for example 64 or a=64"},
	{Name: "array-of-structs", Kind: ask.List, Help: "merge `ARRAYS`, for example x,y, into one array of structures"},
	{Name: "fuse", Kind: ask.List, Help: "fuse a `LOOP` with the next loop, or fuse several consecutive loops, for example 2.1,2.2,2.3"},
	{Name: "interchange", Kind: ask.List, Help: "interchange two `LOOPS`, for example i,j"},
	{Name: "tile", Kind: ask.List, Help: "tile these `LOOPS`, for example i=32,j=32; with i=all,j=32, only j is tiled, and the loop over its tiles moves outside i"},
}

// Loops is the verb that lists the loop nests of a run.
var Loops = ask.Add(&ask.Verb{
	Name:    "loops",
	Title:   "Loop nests, their arrays, and changes to them",
	Machine: ask.SomeCaches,
	Args: append([]ask.Arg{
		{Name: "loop", Help: "print the arrays of the loop with this `NUMBER`, for example 1.2, or of all loops that belong to the same source loop, for example 1.2+"},
		{Name: "each", Kind: ask.Switch, Help: "list the loops of each thread and each time slice separately, instead of one row for each source loop"},
		{Name: "arrays", Kind: ask.Switch, Help: "print the arrays of all shown loops"},
		{Name: "share", Default: "1%", Help: "leave out loops with less than this `SHARE` of the references"},
		ask.Line,
		{Name: "nest", Kind: ask.Number, Default: "0", Help: "change the nest with this `NUMBER` (0: the nest with the most references)"},
		{Name: "propose", Kind: ask.Number, Default: "0", Help: "print the `N` changes that save the most misses in the first level"},
	}, changeKinds...),
	Needs: func(ask.Question) analysis.Analyses { return analysis.Sites | analysis.Loops },
	Lines: func(q ask.Question) []uint32 { return []uint32{q.Line()} },
	Check: func(q ask.Question) error {
		switch {
		case q.Given("loop") && q.Is("arrays"):
			return &ask.Error{Text: "--loop and --arrays cannot be combined: --loop prints the arrays of one loop"}
		case asksForChanges(q) && len(q.Machine.Levels) == 0:
			return &ask.Error{Text: "misses cannot be counted, because no caches are given: add --cache L1=32KiB,8, or --hierarchy i7-6700"}
		case changesGiven(q) && q.Number("propose") > 0:
			return &ask.Error{Text: "--propose cannot be combined with a change: --propose looks for changes itself"}
		}
		_, err := leastShare(q)
		return err
	},
	Missing: noLoops,
	Answer:  nests,
})

// noLoops returns the reason why a profile has no loops, or "".
func noLoops(p *profile.Profile) string {
	switch {
	case p.Totals.AllReferences() == 0:
		return ask.NoReference
	case p.Loops == nil:
		return "the profile contains no loops"
	case len(p.Loops) == 0:
		return "the trace does not compress into loops: its loop tree exceeded the memory limit and was discarded"
	}
	return ""
}

// changesGiven reports whether the question contains changes to try.
func changesGiven(q ask.Question) bool {
	return slices.ContainsFunc(changeKinds, func(kind ask.Arg) bool { return q.Given(kind.Name) })
}

// asksForChanges reports whether the question asks to try given changes or to search for changes.
func asksForChanges(q ask.Question) bool { return changesGiven(q) || q.Number("propose") > 0 }

func leastShare(q ask.Question) (float64, error) {
	return ask.ParseShare(q, "references, for example 1% or 0.01", 0)
}

// CheckLoops returns an error if the profile of a run contains no loops.
func CheckLoops(r *ask.Run) error {
	text := noLoops(r.Profile)
	switch {
	case text == "":
		return nil
	case r.Profile.Totals.AllReferences() == 0:
	case r.Profile.Loops == nil:
		text += "; analyze the trace again with --analyses loops"
	default:
		text += "; analyze only a part of the trace, for example with --limit 10000000"
	}
	return r.Cannot(text)
}

// LoopDoubts returns warnings about the loops of a run.
func LoopDoubts(r *ask.Run) (doubts []string) {
	in := &r.Profile.Input.Header
	if r.Profile.Sites == nil && !in.PCs {
		doubts = append(doubts, r.Name+": the trace contains neither source locations nor instruction addresses, so the few loops that are found are not the program's loops")
	}
	if in.Sliced {
		doubts = append(doubts, r.Name+": the trace orders references of different threads only by time slice, so loop nests that several threads execute are split at the ends of slices")
	}
	return doubts
}

// Brief answers contain at most mostNests nests, and at most mostEvictions rows in each table of
// evictions.
const (
	mostNests     = 1000
	mostEvictions = 20
)

func nests(r *ask.Run, q ask.Question, d *report.Document) error {
	least, err := leastShare(q)
	if err != nil {
		return err
	}
	levels, most := q.Machine.Levels, mostNests
	if !q.Brief {
		most, least = answers.AllNests, 0
	}
	var found *answers.Loops
	if r.Folded != nil {
		found = foldedLoops(r, q, most, d)
		if r.Folded.Tree.Rows() == math.MaxUint64 {
			d.Warnings = append(d.Warnings, r.Name+": the trace represents at least 2^64 records, so counts are modulo 2^64, and misses cannot be counted")
			levels, least = nil, 0 // the total is unknown, so shares cannot be computed
		}
	} else {
		if err := CheckLoops(r); err != nil {
			return err
		}
		if found, err = answers.NewLoops(r.Profile, most); err != nil {
			return r.Cannot("the loops in the trace are damaged: " + err.Error())
		}
		d.Input, d.Warnings = r.Facts(found.LineBytes), LoopDoubts(r)
	}
	found.Name = r.Readable
	if asksForChanges(q) {
		err = tryChanges(r, q, found, d)
	} else {
		err = listLoops(r, q, found, levels, least, d)
	}
	if err == nil && r.Folded != nil && r.Folded.Partial {
		d.Warnings = append(d.Warnings, r.Name+": the answer covers only the readable part of the trace")
	}
	return err
}

// foldedLoops returns the loops of a loop-compressed trace that was not expanded.
func foldedLoops(r *ask.Run, q ask.Question, most int, d *report.Document) *answers.Loops {
	f := r.Folded
	found := &answers.Loops{Outline: outline.New(f.Tree, most), Place: answers.ProgramPlaces(f.Program), LineBytes: q.Line()}
	if found.LineBytes == 0 {
		found.LineBytes = analysis.DefaultLineBytes
	}
	d.Input = []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(r.Name)},
		{Key: "trace_format", Label: "trace format", Value: report.TextOf("sgl")},
		{Key: "references", Label: "references", Value: report.Count(found.References)},
		{Key: "complete", Label: "complete", Value: report.YesNo(!f.Partial)},
		{Key: "line_bytes", Label: "line size (bytes)", Value: report.Count(uint64(found.LineBytes))},
	}
	return found
}

// listLoops adds tables to the document: the loops, their arrays, and their misses in the given
// levels.
func listLoops(r *ask.Run, q ask.Question, l *answers.Loops, levels []hierarchy.Cache, least float64, d *report.Document) error {
	var m *loopcount.Misses
	if levels != nil {
		if m = loopcount.Count(l, levels, r.GoOn); m == nil {
			return ask.ErrStopped
		}
	}
	listed, each := l.SourceLoops(m.Cost(l)), l.Each(m.Cost(l))
	shown := l.Large(listed, least)
	if label := q.Text("loop"); label != "" {
		both := append(each, listed...)
		at := l.FindSource(both, label)
		if at < 0 {
			return &ask.Error{Text: "--loop " + label + ": there is no such loop; to list the loops, run: stackglass loops FILE"}
		}
		shown = both[at : at+1]
	} else if q.Is("each") {
		shown = l.Large(each, least)
	}
	arrays := answers.Members(shown)
	if q.Given("loop") {
		d.Tables = []report.Table{l.ArraysTable(arrays)}
	} else {
		if q.Brief {
			if q.Is("each") {
				listed = each
			}
			d.Tables = []report.Table{l.Brief(listed, least)}
		} else {
			d.Tables = []report.Table{l.Table(listed)}
			if q.Is("each") {
				d.Tables, d.Main = append(d.Tables, l.EachTable(each, listed)), "each"
				shown = append(shown, listed...)
			}
		}
		if q.Is("arrays") || !q.Brief {
			d.Tables = append(d.Tables, l.ArraysTable(arrays))
		}
		if q.Is("arrays") {
			d.Main = "arrays"
		}
	}
	if m == nil {
		return nil
	}
	for i := range d.Tables {
		if d.Tables[i].Key == "arrays" {
			m.AddClasses(&d.Tables[i], arrays)
		}
	}
	rows := math.MaxInt
	if q.Brief {
		rows = mostEvictions
	}
	evictions := []report.Table{m.Evictions(rows), m.LineEvictions(rows)}
	for i := range evictions {
		if t := &evictions[i]; t.Title != "" && r.Profile != nil && len(r.Profile.Totals.Threads) > 1 {
			t.Title += ", if all threads share the cache"
		}
	}
	if d.Tables = append(append(d.Tables, m.Table(shown)), evictions...); d.Main == "" {
		d.Main = "misses"
	}
	for i := range m.Levels {
		if text := m.Levels[i].Problem; text != "" {
			d.Warnings = append(d.Warnings, text)
		}
	}
	if text := m.UnknownUsers(); text != "" {
		d.Warnings = append(d.Warnings, text)
	}
	return nil
}

// searchTime is the time limit of a search for changes.
const searchTime = time.Minute

// tryChanges tries the changes that the question contains, or searches for changes.
func tryChanges(r *ask.Run, q ask.Question, l *answers.Loops, d *report.Document) error {
	nest, err := chosenNest(q, l)
	if err != nil {
		return err
	}
	t, err := loopcount.NewTrial(l, nest)
	if err != nil {
		return err
	}
	var list []change.Change
	for _, kind := range changeKinds {
		for _, text := range q.List(kind.Name) {
			c, err := t.Read(kind.Name, text)
			if err != nil {
				return err
			}
			list = append(list, c)
		}
	}
	var table report.Table
	if most := q.Number("propose"); most == 0 {
		var doubts []string
		table, doubts, err = t.Try(q.Machine.Levels, r.GoOn, list...)
		d.Warnings = append(d.Warnings, doubts...)
	} else {
		var stopped bool
		begun := time.Now()
		table, stopped, err = t.Propose(q.Machine.Levels[0], int(min(most, math.MaxInt)), func() bool { return time.Since(begun) < searchTime && r.Wanted() })
		if stopped {
			d.Warnings = append(d.Warnings, "not all changes were tried: the search was stopped after "+searchTime.String())
		}
		if err == nil && len(table.Rows) == 0 {
			d.Warnings = append(d.Warnings, "none of the tried changes saves at least 2 % of the misses")
		}
	}
	d.Tables = []report.Table{table}
	if !r.Wanted() {
		return ask.ErrStopped
	}
	return err
}

// chosenNest returns the index of the nest to change, counted from 0.
func chosenNest(q ask.Question, l *answers.Loops) (nest int, err error) {
	if l.Nests == 0 {
		return 0, &ask.Error{Text: "there is no loop to change: no loops were found in the trace"}
	}
	if number := q.Number("nest"); number != 0 {
		for i := range l.Loops {
			if of := &l.Loops[i]; uint64(of.Count) == number {
				return of.Nest, nil
			}
		}
		return 0, &trace.OptionError{Option: "nest", Got: strconv.FormatUint(number, 10), Want: "the number of a nest, 1 to " + strconv.Itoa(l.Nests) + "; to list the nests, run: stackglass loops FILE"}
	}
	largest := uint64(0)
	for i := range l.Loops {
		if of := &l.Loops[i]; of.Depth == 0 && of.References > largest {
			largest, nest = of.References, of.Nest
		}
	}
	return nest, nil
}
