// Package loopcount counts cache misses in the loops of a loop-compressed trace, before and after
// changes to the code, for the commands "loops" and "diagnose".
package loopcount

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/papers/sma"
	"github.com/stackglass/stackglass/core/parallel"
	"github.com/stackglass/stackglass/core/report"
)

// Misses contains the exact number of cache misses of each loop in each level: see package misses.
type Misses struct {
	Levels []LevelMisses
	of     *answers.Loops
}

// LevelMisses contains the misses of a level that sees every access.
type LevelMisses struct {
	Cache   hierarchy.Cache
	Result  *misses.Result  // nil if the misses could not be counted; Problem then contains the reason
	ByLoop  []misses.Counts // the misses of each listed loop
	InLoops misses.Counts   // the total misses of all loops
	Problem string          // the reason why there is no result, or a warning about the result
}

// Count counts the misses of cache levels in the loops. If goOn is not nil, Count calls it
// regularly, and stops and returns nil as soon as goOn returns false.
func Count(l *answers.Loops, levels []hierarchy.Cache, goOn func() bool) *Misses {
	return countBy(misses.RunAsking, l, levels, goOn)
}

// CountMisses is like [Count], but does not distinguish kinds of misses. CountMisses takes less
// than half as long as Count.
func CountMisses(l *answers.Loops, levels []hierarchy.Cache, goOn func() bool) *Misses {
	return countBy(misses.CountAsking, l, levels, goOn)
}

// CountFirst is like [CountMisses], for caches that never evict a line. The results of CountFirst
// do not contain the numbers of accesses.
func CountFirst(l *answers.Loops, levels []hierarchy.Cache, goOn func() bool) *Misses {
	return countBy(misses.FirstAsking, l, levels, goOn)
}

// countFunc counts the misses of a loop tree, as [misses.RunAsking] and [misses.CountAsking] do.
type countFunc func(*loops.Tree, misses.Cache, func() bool) (*misses.Result, error)

func countBy(run countFunc, l *answers.Loops, levels []hierarchy.Cache, goOn func() bool) *Misses {
	m := &Misses{of: l, Levels: make([]LevelMisses, len(levels))}
	done := make([]bool, len(levels))
	goOn = parallel.OneAtATime(goOn)
	parallel.Each(len(levels), func(i int) { m.Levels[i], done[i] = count(run, l, levels[i], goOn) })
	if slices.Contains(done, false) {
		return nil
	}
	return m
}

func count(run countFunc, l *answers.Loops, c hierarchy.Cache, goOn func() bool) (of LevelMisses, ok bool) {
	of.Cache = c
	cache, ok := CacheOf(c)
	if !ok {
		of.Problem = c.Name + " does not select sets by the low bits of the line number, so its misses are not counted by loop."
		return of, true
	}
	r, err := run(l.Tree(), cache, goOn)
	switch {
	case err == misses.ErrStopped:
		return of, false
	case err != nil:
		of.Problem = c.Name + ": " + err.Error() + "."
		return of, true
	}
	of.Result = r
	for _, at := range r.Tops() {
		of.InLoops = of.InLoops.Plus(r.Nodes[at])
	}
	if r.ShortLoops {
		of.Problem = c.Name + ": the loop-compressed trace has more than 262,144 nodes, so outermost loops with at most 64 references are not listed; their misses are counted outside loops."
	}
	of.ByLoop = outline.Sum(l.Outline, r.Tops(), r.Nodes, func(sum, n *misses.Counts) {
		sum.Accesses += n.Accesses
		sum.Misses += n.Misses
		sum.Cold += n.Cold
		sum.Full += n.Full
	})
	return of, true
}

// Cost returns the number of misses of a loop in the first counted level. If no level was counted,
// or m is nil, Cost returns the number of the loop's references.
func (m *Misses) Cost(l *answers.Loops) func(loop int) uint64 {
	if m != nil {
		if level := m.first(); level != nil {
			return func(loop int) uint64 { return level.ByLoop[loop].Misses }
		}
	}
	return func(loop int) uint64 { return l.Loops[loop].References }
}

// Table returns a table with a row for each of the given source loops and each level. Further rows
// show the misses of all other loops, of accesses outside loops, and of the whole run. The last row
// is the sum of the other rows, but the rows of loops inside other listed loops are not added
// again.
func (m *Misses) Table(of []answers.SourceLoop) report.Table {
	t := report.Table{Key: "misses", Title: "Misses by loop (exact, LRU; each level sees every access)", Columns: report.Columns(
		"loop", "level", "accesses", "misses", "miss_ratio=miss ratio", "cold", "capacity", "conflict",
		"share=share of misses")}
	add := func(name string, counts func(level *LevelMisses) misses.Counts) {
		for i := range m.Levels {
			level := &m.Levels[i]
			if level.Result == nil {
				continue
			}
			c := counts(level)
			if c.Accesses == 0 && (name == otherLoops || name == outsideLoops) {
				continue
			}
			conflict := report.Count(uint64(max(0, c.Conflict())))
			if c.Conflict() < 0 {
				conflict = report.Difference(report.Count(uint64(-c.Conflict())), report.Count(0))
			}
			t.Add(report.TextOf(name), report.TextOf(level.Cache.Name), report.Count(c.Accesses), report.Count(c.Misses), report.Share(c.Misses, c.Accesses),
				report.Count(c.Cold), report.Count(c.Capacity()), conflict, report.Share(c.Misses, level.Result.Total.Misses))
		}
	}
	seen := map[string]bool{}
	listed := map[int]bool{}
	for i := range of {
		label := m.of.LabelOf(&of[i])
		if seen[label] {
			continue
		}
		seen[label] = true
		add(label, func(level *LevelMisses) (sum misses.Counts) {
			for _, loop := range of[i].Loops {
				sum = sum.Plus(level.ByLoop[loop])
			}
			return sum
		})
		for _, loop := range of[i].Loops {
			listed[loop] = true
		}
	}
	add(otherLoops, func(level *LevelMisses) misses.Counts {
		other := level.InLoops
		for loop := 0; loop < len(m.of.Loops); {
			if !listed[loop] {
				loop++
				continue
			}
			other = other.Minus(level.ByLoop[loop])
			loop = m.of.Loops[loop].End // skip the inner loops
		}
		return other
	})
	add(outsideLoops, func(level *LevelMisses) misses.Counts { return level.Result.Total.Minus(level.InLoops) })
	add("(total)", func(level *LevelMisses) misses.Counts { return level.Result.Total })
	return t
}

// Names of rows for accesses outside the listed loops.
const (
	otherLoops   = "(other loops)"
	outsideLoops = "(outside loops)"
)

// Evictions returns a table of evictions in the first counted level, over the whole run. Each row
// names two arrays, and contains the number of times that fetching a line of the first array
// evicted a line of the second array. The rows are in descending order of evictions. If there are
// more rows than the parameter "most", the last row combines the remaining rows.
func (m *Misses) Evictions(most int) report.Table {
	t := report.Table{Key: "evictions", Columns: report.Columns("comes=fetched", "goes=evicted", "lines", "share")}
	if level := m.first(); level != nil {
		t.Title = "Evictions from " + level.Cache.Name + " by array, over the whole run"
		names, arrays := m.arrayNames(level.Result), m.arraysOf(level.Result)
		m.addEvictions(&t, most, func(ref int, last misses.Column) [2]string {
			goes := answers.OtherUsers
			if last.Array >= 0 {
				goes = names[last.Array]
			}
			return [2]string{names[arrays[ref]], goes}
		})
	}
	return t
}

// LineEvictions returns a table of evictions in the first counted level, over the whole run. Each
// row names two source lines, and contains the number of times that the first source line fetched a
// cache line and thereby evicted a cache line to which the second source line made the last access.
// The rows are in descending order of evictions. If there are more rows than the parameter "most",
// the last row combines the remaining rows.
func (m *Misses) LineEvictions(most int) report.Table {
	t := report.Table{Key: "line_evictions", Columns: report.Columns("comes=fetched by", "goes=evicted, last used by", "lines", "share")}
	if level := m.first(); level != nil {
		t.Title = "Evictions from " + level.Cache.Name + " by source line, over the whole run"
		m.addEvictions(&t, most, func(ref int, last misses.Column) [2]string {
			return [2]string{m.lineOf(ref), m.lineOf(last.Ref)}
		})
	}
	return t
}

// UnknownUsers returns a warning if the table of evictions by source line does not name the last user
// of at least 1 % of the evicted lines; otherwise, UnknownUsers returns "".
func (m *Misses) UnknownUsers() string {
	level := m.first()
	if level == nil {
		return ""
	}
	var unknown, total uint64
	for _, by := range level.Result.Evictions {
		for column, n := range by {
			if total += n; level.Result.Columns[column].Ref < 0 {
				unknown += n
			}
		}
	}
	if unknown == 0 || unknown < total/100 {
		return ""
	}
	return level.Cache.Name + ": for " + report.Share(unknown, total).Human() + " of the evicted lines, the table by source line does not name the last user, but shows " +
		answers.OtherUsers + ", because the trace has many references and only the most frequently used references are distinguished as last users"
}

// lineOf returns the source line of a reference in the form FILE:LINE.
func (m *Misses) lineOf(ref int) string {
	if ref < 0 {
		return answers.OtherUsers
	}
	s := m.of.Place(m.of.Tree().References()[ref])
	if s == nil || s.Line == 0 {
		return "(unknown line)"
	}
	return s.File + ":" + strconv.FormatUint(uint64(s.Line), 10)
}

// addEvictions adds the evictions in the first counted level to a table. The function "names" names
// the reference that fetches a line, and the references that made the last access to the evicted
// line. If there are more rows than the parameter "most", the last row combines the remaining rows.
func (m *Misses) addEvictions(t *report.Table, most int, names func(ref int, last misses.Column) [2]string) {
	r := m.first().Result
	sums, total := map[[2]string]uint64{}, uint64(0)
	for ref, by := range r.Evictions {
		for column, n := range by {
			if n > 0 {
				sums[names(ref, r.Columns[column])] += n
				total += n
			}
		}
	}
	rows := slices.SortedFunc(maps.Keys(sums), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), slices.Compare(a[:], b[:]))
	})
	if len(rows) > most {
		rest := [2]string{"(" + report.Count(uint64(len(rows)-most+1)).Human() + " more)", "–"}
		for _, row := range rows[most-1:] {
			sums[rest] += sums[row]
		}
		rows = append(rows[:most-1], rest)
	}
	for _, row := range rows {
		t.Add(report.TextOf(row[0]), report.TextOf(row[1]), report.Count(sums[row]), report.Share(sums[row], total))
	}
}

// first returns the first counted level, or nil if no level was counted.
func (m *Misses) first() *LevelMisses {
	at := slices.IndexFunc(m.Levels, func(of LevelMisses) bool { return of.Result != nil })
	if at < 0 {
		return nil
	}
	return &m.Levels[at]
}

// arrayNames returns the names of the arrays in the tables of evictions. If several arrays have the
// same name, the address is added to the names of all but the first of these arrays.
func (m *Misses) arrayNames(r *misses.Result) (names []string) {
	seen := map[string]bool{}
	for i := range r.Arrays {
		name := m.arrayName(&r.Arrays[i], r.Cache.LineBytes)
		if seen[name] {
			name += " at 0x" + strconv.FormatUint(r.Arrays[i].First*r.Cache.LineBytes, 16)
		}
		seen[name] = true
		names = append(names, name)
	}
	return names
}

// arraysOf returns the array of each reference that makes accesses.
func (m *Misses) arraysOf(r *misses.Result) []int {
	arrays := make([]int, len(r.Refs))
	for i := range r.Arrays {
		for _, ref := range r.Arrays[i].References {
			arrays[ref] = i
		}
	}
	return arrays
}

// arrayName names an array after the variables of its references.
func (m *Misses) arrayName(a *misses.Array, lineBytes uint64) string {
	const few = 3
	var list []string
	refs := m.of.Tree().References()
	for _, n := range a.References {
		if name := m.of.Variable(refs[n]); name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	switch {
	case len(list) == 0:
		return "0x" + strconv.FormatUint(a.First*lineBytes, 16)
	case len(list) > few:
		return strings.Join(list[:few], ", ") + " …"
	}
	return strings.Join(list, ", ")
}

// Limits on the leaves of the loop tree and on the simulated accesses. If a trace exceeds one of
// these limits, Classes computes no classes.
const (
	mostClassLeaves    = 400
	mostClassSimulated = 300_000
)

// Classes returns the name of the first counted level. For this level, Classes also returns the
// class of each array of a loop, in the order of [answers.Loops.Arrays]. The classes are derived
// from exact counts (see [sma.Exact]). If the trace is too irregular to compute the classes
// quickly, the list of classes is nil.
func (m *Misses) Classes(loop int) (level string, classes []string) {
	l := m.of
	first := m.first()
	if first == nil || first.Result.Simulated > mostClassSimulated || l.Tree().Size().Leaves > mostClassLeaves {
		return "", nil
	}
	cache := first.Result.Cache
	r, err := sma.Analyze(l.Tree(), cache)
	if err != nil {
		return "", nil
	}
	path := l.Path(loop)
	n := slices.IndexFunc(r.Loops, func(of sma.Loop) bool { return slices.Equal(of.Path, path) })
	if n < 0 {
		return "", nil
	}
	exact, ok := r.Exact(l.Tree(), cache, n)
	if !ok || len(exact) != len(r.Loops[n].Arrays) {
		return "", nil
	}
	for _, a := range l.Arrays(loop) {
		class := ""
		for i, of := range r.Loops[n].Arrays {
			has := slices.ContainsFunc(of.Leaves, func(leaf int) bool { return slices.Contains(a.Refs, r.Leaves[leaf].Ref) })
			if has && a.Base >= of.Lo && a.Base <= of.Hi && !a.Wild {
				class = exact[i].Class().String()
			}
		}
		classes = append(classes, class)
	}
	return first.Cache.Name, classes
}

// AddClasses adds a column with the classes of the arrays to a table that
// [answers.Loops.ArraysTable] returned for these loops.
func (m *Misses) AddClasses(t *report.Table, of []int) {
	named, row := "", 0
	list := make([]report.Value, len(t.Rows))
	for _, loop := range of {
		level, classes := m.Classes(loop)
		if classes != nil {
			named = level
		}
		for i := range m.of.Arrays(loop) {
			if list[row] = report.None(); classes != nil && classes[i] != "" {
				list[row] = report.TextOf(classes[i])
			}
			row++
		}
	}
	if named == "" {
		return
	}
	t.Columns = append(t.Columns, report.Column{Key: "class", Label: "class in " + named})
	for i := range t.Rows {
		t.Rows[i] = append(t.Rows[i], list[i])
	}
}
