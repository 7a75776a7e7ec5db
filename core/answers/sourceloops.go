package answers

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/report"
)

// SourceLoop is a loop of the source code. A SourceLoop combines all loops of a run that have the
// same location and the same inner loops. A source loop occurs several times in a run if several
// threads execute it, or if a thread's time slice ends during the loop.
type SourceLoop struct {
	Loops []int // indices of loops, in the order in which they occur in the run
	Depth int   // number of source loops that enclose this loop
}

// Each returns a separate source loop for each loop of the run. Nests are in descending order of
// cost and, if their costs are equal, of references.
func (l *Loops) Each(cost func(loop int) uint64) []SourceLoop {
	key := make([]int, len(l.Loops))
	for i := range key {
		key[i] = i
	}
	return l.sourceLoops(key, cost)
}

// SourceLoops returns the source loops of the run. Inner loops follow their outer loop, in the
// order in which they occur in the run. Nests are in the same order as in [Loops.Each].
func (l *Loops) SourceLoops(cost func(loop int) uint64) []SourceLoop {
	numbers := map[string]int{}
	key := make([]int, len(l.Loops))
	for i := len(key) - 1; i >= 0; i-- { // from the last loop to the first, so that inner loops precede their outer loops
		inside := map[int]bool{}
		for _, k := range l.inner(i) {
			inside[key[k]] = true
		}
		w, shape := l.SourceRange(i), 0
		if w.First == 0 { // without source lines, loops are combined only if their shapes are equal
			shape = l.Loops[i].Shape
		}
		text := w.Function + "\n" + w.Source() + "\n" + strconv.Itoa(shape)
		for _, k := range slices.Sorted(maps.Keys(inside)) {
			text += " " + strconv.Itoa(k)
		}
		if numbers[text] == 0 {
			numbers[text] = len(numbers) + 1
		}
		key[i] = numbers[text]
	}
	return l.sourceLoops(key, cost)
}

// inner returns the loops directly inside a loop.
func (l *Loops) inner(loop int) (list []int) {
	for i := loop + 1; i < l.Loops[loop].End; i = l.Loops[i].End {
		list = append(list, i)
	}
	return list
}

// sourceLoops groups loops that are directly inside the same source loop and have equal keys.
func (l *Loops) sourceLoops(key []int, cost func(loop int) uint64) (list []SourceLoop) {
	var add func(depth int, loops []int)
	add = func(depth int, loops []int) {
		var groups [][]int
		at := map[int]int{} // 1 + the index of the group, by key
		for _, i := range loops {
			if at[key[i]] == 0 {
				groups = append(groups, nil)
				at[key[i]] = len(groups)
			}
			groups[at[key[i]]-1] = append(groups[at[key[i]]-1], i)
		}
		if depth == 0 {
			sums := func(of []int) (costs, references uint64) {
				for _, i := range of {
					costs, references = costs+cost(i), references+l.Loops[i].References
				}
				return costs, references
			}
			slices.SortStableFunc(groups, func(a, b []int) int {
				costs, references := sums(a)
				more, longer := sums(b)
				return cmp.Or(cmp.Compare(more, costs), cmp.Compare(longer, references))
			})
		}
		for _, of := range groups {
			list = append(list, SourceLoop{Loops: of, Depth: depth})
			var inner []int
			for _, i := range of {
				inner = append(inner, l.inner(i)...)
			}
			add(depth+1, inner)
		}
	}
	var nests []int
	for i := 0; i < len(l.Loops); i = l.Loops[i].End {
		nests = append(nests, i)
	}
	add(0, nests)
	return list
}

// LabelOf returns the label of a source loop: the label of its first loop, followed by "+" if it
// combines several loops.
func (l *Loops) LabelOf(s *SourceLoop) string {
	text := l.Label(s.Loops[0])
	if len(s.Loops) > 1 {
		text += "+"
	}
	return text
}

// loopTotals sums the counts of the loops that a source loop combines.
type loopTotals struct {
	runs, iterations, references, own uint64
	least, most                       uint64 // smallest and largest trip count of one execution
	threads                           int    // number of threads that execute the loop
}

func (l *Loops) total(s *SourceLoop) loopTotals {
	first := &l.Loops[s.Loops[0]]
	t := loopTotals{least: first.Least, most: first.Most}
	threads := map[uint32]bool{}
	for _, i := range s.Loops {
		o := &l.Loops[i]
		t.runs, t.iterations, t.references, t.own = t.runs+o.Runs, t.iterations+o.Trips, t.references+o.References, t.own+o.Own
		t.least, t.most = min(t.least, o.Least), max(t.most, o.Most)
		for _, r := range l.Refs(i) {
			threads[r.Thread] = true
		}
	}
	t.threads = len(threads)
	return t
}

// ReferencesOf returns the number of references in a source loop.
func (l *Loops) ReferencesOf(s *SourceLoop) (n uint64) {
	for _, i := range s.Loops {
		n += l.Loops[i].References
	}
	return n
}

// Large returns the source loops that make at least the given share of the references.
func (l *Loops) Large(of []SourceLoop, least float64) []SourceLoop {
	return slices.DeleteFunc(slices.Clone(of), func(s SourceLoop) bool { return l.Share(l.ReferencesOf(&s)) < least })
}

// FindSource returns the index of the source loop with the given label, or -1.
func (l *Loops) FindSource(of []SourceLoop, label string) int {
	return slices.IndexFunc(of, func(s SourceLoop) bool { return l.LabelOf(&s) == label })
}

// Members returns the loops that belong to the given source loops, in the order of the source
// loops.
func Members(of []SourceLoop) (list []int) {
	for i := range of {
		list = append(list, of[i].Loops...)
	}
	return list
}

// Table returns a table with a row for each source loop. Inner loops follow their outer loop.
func (l *Loops) Table(of []SourceLoop) report.Table {
	t := report.Table{Key: "loops", Columns: report.Columns(
		"loop", "depth", "function", "file", "first_line=first line", "last_line=last line",
		"least_trips=least trips", "most_trips=most trips", "runs", "iterations", "references", "share",
		"own_references=references outside inner loops", "loops", "threads")}
	for i := range of {
		s, w := l.total(&of[i]), l.SourceRange(of[i].Loops[0])
		t.Add(report.TextOf(l.LabelOf(&of[i])), report.Count(uint64(of[i].Depth)), textCell(w.Function), textCell(w.File), report.Known(uint64(w.First)), report.Known(uint64(w.Last)),
			report.Count(s.least), report.Count(s.most), report.Count(s.runs), report.Count(s.iterations),
			report.Count(s.references), report.Share(s.references, l.References), report.Count(s.own), report.Count(uint64(len(of[i].Loops))), report.Count(uint64(s.threads)))
	}
	return t
}

// EachTable returns a table of all loops of the run, with the label of the source loop to which
// each loop belongs.
func (l *Loops) EachTable(each, source []SourceLoop) report.Table {
	of := map[int]string{}
	for i := range source {
		for _, loop := range source[i].Loops {
			of[loop] = l.LabelOf(&source[i])
		}
	}
	t := l.Table(each)
	t.Key = "each"
	t.Columns = append(t.Columns, report.Columns("source_loop=source loop")...)
	for i := range t.Rows {
		t.Rows[i] = append(t.Rows[i], report.TextOf(of[each[i].Loops[0]]))
	}
	return t
}
