package state

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Loops are the loop nests of a run, as the Loops view shows them.
type Loops struct {
	*answers.Loops
	Profile *profile.Profile
	Levels  []hierarchy.Cache // whose misses the document has
	bytes   int               // of the folded trace

	arrays map[int][]outline.Array // of loops that were looked at
}

// NewLoops reads the loops of a profile, which has some. problem says in a sentence why
// they cannot be shown.
func NewLoops(p *profile.Profile) (l *Loops, problem string) {
	made, err := answers.NewLoops(p, answers.MostNests)
	if err != nil {
		return nil, "The loops of this profile are damaged: " + err.Error() + ". Analyse its trace again."
	}
	if made == nil {
		return nil, ""
	}
	made.Large(answers.LeastNest)
	return &Loops{Loops: made, Profile: p, bytes: len(p.Loops), arrays: map[int][]outline.Array{}}, ""
}

// question asks the command's verb for the document of the loops.
func (l *Loops) question() answers.Question {
	return VerbQuestion("loops", hierarchy.Hierarchy{Levels: l.Levels})
}

// Hottest is the loop that makes most references itself, or -1 where there is none.
func (l *Loops) Hottest() int {
	best := -1
	for i := range l.Outline.Loops {
		if best < 0 || l.Outline.Loops[i].Own > l.Outline.Loops[best].Own {
			best = i
		}
	}
	return best
}

// Summary says in sentences what there is.
func (l *Loops) Summary() string {
	all := l.Outline.Loops
	if len(all) == 0 {
		return "Nothing repeats: no loop was found in " + Plural(l.References, "reference", "references") + "."
	}
	in := l.References - l.Straight
	text := Plural(uint64(len(all)), "loop", "loops") + " in " + Plural(uint64(l.Nests), "nest", "nests")
	if l.LeftOut > 0 {
		text += ", the largest of " + Exact(uint64(l.Nests)+l.LeftOut) + ","
		in -= l.LeftOutReferences
	}
	if len(all) == 1 {
		text += " makes "
	} else {
		text += " make "
	}
	text += Percent(Ratio(in, l.References)) + " of " + Plural(l.References, "reference", "references") + ". "
	hot := l.Hottest()
	return text + "Most are made in loop " + l.Title(hot) + ": " + Percent(Ratio(all[hot].Own, l.References)) + "."
}

// Method says how they were found.
func (l *Loops) Method() string {
	t := l.Outline.Tree()
	text := "Folded without loss: " + Plural(t.Rows(), "row", "rows") + " of the trace are " + Bytes(uint64(l.bytes)) + " in the profile. Counts are exact. " +
		"Loops are numbered as chapters are; nests that differ in addresses and trip counts only are one that runs several times."
	if l.Profile.Sites == nil && !l.Profile.Input.Header.PCs {
		text += " The trace tells neither sites nor addresses of instructions: little folds, and these are not the loops of the program."
	}
	return text
}

// Title names a loop: 1.1.1, matmul-naive.c:20, main.
func (l *Loops) Title(i int) string {
	w := l.Where(i)
	text := l.Label(i)
	if s := w.Source(); s != "" {
		text += ", " + s
	}
	if w.Function != "" {
		text += ", " + w.Function
	}
	return text
}

// trips writes how often a loop runs each time, with thousands apart.
func trips(o *outline.Loop) string {
	if o.Least == o.Most {
		return Exact(o.Most)
	}
	return Exact(o.Least) + "–" + Exact(o.Most)
}

// Sentence says how a loop runs.
func (l *Loops) Sentence(i int) string {
	o := &l.Outline.Loops[i]
	text := "It begins " + Plural(o.Runs, "time", "times") + ", with " + trips(o) + " iterations"
	if o.Runs > 1 {
		text += " each, " + Exact(o.Trips) + " in all"
	}
	text += ". It makes " + Plural(o.References, "reference", "references") + ", " + Percent(l.Share(o.References)) + " of the run"
	if o.Own < o.References {
		text += "; " + Exact(o.Own) + " of them outside of the loops in it"
	}
	return text + "."
}

// Grid is the tree as a table; picked is a loop, counted are the misses in it, nil while they are
// not known.
func (l *Loops) Grid(picked int, counted *answers.Reply) *Grid {
	t := (&Table{Caption: "Loops", Rows: len(l.Outline.Loops)}).from(l.question(), "loops")
	t.Columns = []Column{{Name: "loop", Words: true}, {Name: "function", Words: true}, {Name: "trips"}, {Name: "runs"}, {Name: "references"}, {Name: "share"}}
	for _, c := range l.Levels {
		t.Columns = append(t.Columns, Column{Name: c.Name + " misses"})
	}
	t.Row = func(i int) []string {
		o, w := &l.Outline.Loops[i], l.Where(i)
		cells := []string{strings.TrimSuffix(l.Label(i)+" · "+w.Source(), " · "), orDash(w.Function), trips(o), Exact(o.Runs), Exact(o.References), Percent(l.Share(o.References))}
		for k := range l.Levels {
			cells = append(cells, MissesCell(counted, k, i))
		}
		return cells
	}
	depths := make([]int, len(l.Outline.Loops))
	for i := range depths {
		depths[i] = l.Outline.Loops[i].Depth + 1
	}
	hot := l.Hottest()
	return &Grid{Table: t, ID: "loops", Order: "loops", Selected: picked, Depths: depths, Mark: func(i int) string {
		if i == hot {
			return "most"
		}
		return ""
	}}
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// Arrays are those of a loop.
func (l *Loops) Arrays(i int) []outline.Array {
	if l.arrays[i] == nil {
		l.arrays[i] = l.Loops.Arrays(i)
	}
	return l.arrays[i]
}

// mostArrays is how many arrays of a loop people get.
const mostArrays = 100

// ArraysTable is what a loop goes over, with the class of each array where misses were
// counted, or nil.
func (l *Loops) ArraysTable(i int, counted *answers.Reply) *Table {
	var classes *report.Table
	if counted != nil {
		classes = counted.Table("classes")
	}
	if classes != nil && len(classes.Rows) != len(l.Arrays(i)) { // of another loop
		classes = nil
	}
	brief := report.Table{Title: "Arrays of loop " + l.Label(i), Columns: []report.Column{
		{Label: "array"}, {Label: "references"}, {Label: "stores"}, {Label: "strides, bytes"},
		{Label: "extent"}, {Label: "touched"}, {Label: "line utilisation, one run"}, {Label: "base"},
	}}
	if classes != nil {
		brief.Columns = slices.Insert(brief.Columns, 1, classes.Columns[0])
	}
	for n, a := range l.Arrays(i) {
		if n == mostArrays {
			brief.Title += ", the first " + strconv.Itoa(mostArrays)
			break
		}
		row := []report.Value{report.TextOf(orDash(a.Name)), report.Count(a.References), report.Count(a.Stores)}
		if classes != nil {
			row = slices.Insert(row, 1, report.TextOf(orDash(strings.ToLower(strings.ReplaceAll(classes.Rows[n][0].Shown(words), "_", " ")))))
		}
		if a.Wild {
			brief.Add(append(row, report.TextOf("irregular"), report.None(), report.None(), report.None(), report.None())...)
			continue
		}
		touched := Bytes(a.Touched)
		if !a.Exact {
			touched = "≤ " + touched
		}
		brief.Add(append(row, report.TextOf(strings.ReplaceAll(answers.Strides(&a), "-", "−")), report.TextOf(Bytes(a.Extent)), report.TextOf(touched),
			report.Ratio(a.Utilisation(uint64(l.LineBytes))), report.TextOf("0x"+strconv.FormatUint(a.Base, 16)))...)
	}
	return show(&brief, words, nil).unsorted().from(l.question(), "arrays")
}

// Advice says what is striking about the arrays of a loop; "" for nothing.
func (l *Loops) Advice(i int) string {
	for _, a := range l.Arrays(i) {
		if a.Wild || !a.Exact || a.Lines < 8 || a.References < a.Lines {
			continue
		}
		if used := a.Utilisation(uint64(l.LineBytes)); used <= 0.5 {
			name := "one of its arrays"
			if a.Name != "" {
				name = "“" + a.Name + "”"
			}
			inner := a.Strides[len(a.Strides)-1]
			return "One run of this loop uses " + Percent(used) + " of the " + Plural(a.Lines, "line", "lines") + " of " + name + " that it touches, because the innermost loop strides by " +
				strings.Replace(strconv.FormatInt(inner, 10), "-", "−", 1) + " bytes. More of a line is used if it stays in a cache until the next run: Code shows the line utilisation over the whole run of the program."
		}
	}
	return ""
}

// MissesCell are the misses of a loop in a level, by their numbers.
func MissesCell(m *answers.Reply, level, loop int) string {
	if m == nil || m.Table("by_loop") == nil {
		return "…"
	}
	t := m.Table("by_loop")
	switch {
	case loop >= len(t.Rows) || level >= len(t.Rows[loop]):
		return "–"
	}
	return t.Rows[loop][level].Shown(words)
}

// WrongChanges says what is wrong with each change, in a sentence; "" for nothing.
func WrongChanges(m *answers.Reply) (list []string) {
	for _, row := range rowsOf(m.Table("wrong")) {
		list = append(list, row[0].Plain())
	}
	return list
}

// MissesTable is the misses of a loop, of all other accesses and of the run by cause, level
// by level; nil where none are known.
func (l *Loops) MissesTable(m *answers.Reply, loop int) *Table {
	t := m.Table("misses")
	if t == nil {
		return nil
	}
	made := show(t, words, nil).unsorted().from(l.question(), "misses")
	made.Caption = "Misses in loop " + l.Label(loop) + " and in the whole run"
	return made
}

// mostEvicting is how many pairs of arrays people get.
const mostEvicting = 12

// EvictionsTable tells whose lines went because whose came, in the first level, over the
// whole run; nil where no level was counted, or nothing went.
func (l *Loops) EvictionsTable(m *answers.Reply) *Table {
	t := m.Table("evictions")
	if t == nil || len(t.Rows) == 0 {
		return nil
	}
	brief := *t
	if len(brief.Rows) > mostEvicting {
		brief.Rows = brief.Rows[:mostEvicting]
		brief.Title += ", the first " + strconv.Itoa(mostEvicting)
	}
	return show(&brief, words, nil).unsorted().from(l.question(), "evictions")
}

// HowCounted says of the misses how they were counted, with what is in the way.
func HowCounted(m *answers.Reply) (list []string) {
	levels := rowsOf(m.Table("levels"))
	for _, row := range levels {
		name, problem, counts := row[0].Plain(), row[1].Plain(), row[2:]
		var n [4]uint64 // sets, ways, accesses, jumped over
		for k := range n {
			n[k] = uint64(number(counts[k]))
		}
		if n[0] == 0 {
			list = append(list, problem)
			continue
		}
		text := name + ": exact, LRU, " + Plural(n[0], "set", "sets") + " of " + Plural(n[1], "line", "lines") + "; " +
			Percent(Ratio(n[3], n[2])) + " of " + Plural(n[2], "line access", "line accesses") + " were jumped over, because what comes repeats."
		if problem != "" {
			text += " " + problem
		}
		list = append(list, text)
	}
	if len(levels) > 1 {
		list = append(list, "Each level is counted as if it saw every access (the independent-level model), and threads share it.")
	}
	return list
}

// missingLoops says why a profile has no loops.
func missingLoops(p *profile.Profile) string {
	switch {
	case len(p.Loops) > 0:
		return ""
	case p.Loops != nil:
		return "The trace does not fold: its tree of loops grew beyond its memory limit. Accesses that depend on data, as in sparse matrices, hash tables and lists, need large trees. " +
			"Fold a part of the trace: “stackglass loops --limit 10000000” takes its first ten million references."
	}
	return "This analysis did not fold its trace into loops: that is done where it is asked for. Analyse the trace again with “Fold loops” in the settings, " +
		"or with “stackglass analyze --analyses loops -o file.sgp”, and drop that file here."
}
