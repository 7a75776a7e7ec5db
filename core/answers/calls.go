package answers

import (
	"slices"
	"sort"
	"strings"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Calls contains the counts of a run by call path, in whole numbers. Tables and exports use the
// same counts.
type Calls struct {
	Paths  []profile.Path
	Names  []string // readable names of the paths' functions
	Calls  []uint64 // calls that lead to each path; nil for a part of the run, for which calls are not counted
	Events []CallEvent
	Main   int // index of the event by which rows are ranked
}

// CallEvent is an event, such as a miss, that is counted by call path.
type CallEvent struct {
	Key   string // such as "L1_misses"
	Label string // column label for people
	// Self contains the count of each path. All also includes the functions that the path calls.
	Self, All []uint64
	Exact     bool
}

// outsideName is the name of the path outside all functions.
const outsideName = "(outside of functions)"

// NewCalls returns the counts of a profile with call paths: instructions, references, bytes, and
// the misses of each level. Misses that belong to no source location are not included.
func NewCalls(p *profile.Profile, levels []attribution.Attribution, name func(symbol string) string) *Calls {
	c := &Calls{Paths: p.Calls.Paths, Main: 1}
	for i := range c.Paths {
		at := &c.Paths[i]
		called := at.Function
		switch {
		case called == "":
			called = outsideName
		case name != nil && called != profile.FurtherPaths:
			called = name(called)
		}
		c.Names = append(c.Names, called)
		c.Calls = append(c.Calls, at.Calls+at.Again)
		if i > 0 {
			c.Calls[at.Parent] += at.Back
		}
	}
	if len(levels) > 0 && levels[0].Part != nil {
		c.Calls, c.Main = nil, 0
		c.add("accesses", "accesses", true, func(i int) uint64 { return levels[0].Part.PathAccesses(i) })
	} else {
		c.add("instructions", "instructions", true, func(i int) uint64 { return c.Paths[i].Instructions })
		c.add("references", "references", true, func(i int) uint64 { return c.Paths[i].References })
		c.add("bytes", "bytes", true, func(i int) uint64 { return c.Paths[i].Bytes })
	}
	first := c.Main
	for i := range levels {
		l := &levels[i]
		if l.Paths == nil {
			continue
		}
		misses := wholePaths(p, l)
		cache := l.Level.Cache.Name
		if c.add(cache+"_misses", "misses "+cache, l.Exact, func(i int) uint64 { return misses[i] }); c.Main == first {
			c.Main = len(c.Events) - 1
		}
	}
	return c
}

func (c *Calls) add(key, label string, exact bool, self func(i int) uint64) {
	e := CallEvent{Key: key, Label: label, Self: make([]uint64, len(c.Paths)), All: make([]uint64, len(c.Paths)), Exact: exact}
	for i := len(c.Paths) - 1; i >= 0; i-- {
		e.Self[i] = self(i)
		if e.All[i] += e.Self[i]; i > 0 {
			e.All[c.Paths[i].Parent] += e.All[i]
		}
	}
	c.Events = append(c.Events, e)
}

// wholePaths rounds the misses of call paths so that the misses of each function's paths add up to
// the rounded misses of the function's sites. The remaining misses belong to paths without a
// function.
func wholePaths(p *profile.Profile, l *attribution.Attribution) []uint64 {
	sites, _ := attribution.Whole(l.Sites, l.Rest)
	total, estimate := map[string]uint64{}, map[string]float64{}
	for i, n := range sites {
		f := p.Sites.Code[i].Function
		total[f] += n
		estimate[f] += l.Sites[i]
	}
	of := map[string][]int{}
	var functions []string
	for i := range p.Calls.Paths {
		f := p.Calls.Paths[i].Function
		if _, has := total[f]; !has {
			f = ""
		}
		if of[f] == nil {
			functions = append(functions, f)
		}
		of[f] = append(of[f], i)
	}
	whole, all := make([]uint64, len(p.Calls.Paths)), uint64(0)
	for _, n := range sites {
		all += n
	}
	for _, f := range functions {
		if f == "" {
			continue
		}
		// The function's misses on paths that are not distinguished are also included in the
		// rounding.
		list, rest := make([]float64, len(of[f])), estimate[f]
		for at, i := range of[f] {
			list[at] = l.Paths[i]
			rest -= l.Paths[i]
		}
		scaled := append(list, max(0, rest))
		sum := 0.0
		for _, x := range scaled {
			sum += x
		}
		for at := range scaled {
			if scaled[at] *= float64(total[f]); sum > 0 {
				scaled[at] /= sum
			}
		}
		parts, _ := attribution.Whole(scaled[:len(list)], scaled[len(list)])
		for at, i := range of[f] {
			whole[i] = parts[at]
			all -= parts[at]
		}
	}
	if rest := of[""]; len(rest) > 0 {
		whole[rest[len(rest)-1]] += all // paths that are not distinguished come last
	} else {
		whole[0] += all
	}
	return whole
}

// Stack returns the paths from the first function of the thread to a path.
func (c *Calls) Stack(i int) (stack []int) {
	for ; i > 0; i = int(c.Paths[i].Parent) {
		stack = append(stack, i)
	}
	for lo, hi := 0, len(stack)-1; lo < hi; lo, hi = lo+1, hi-1 {
		stack[lo], stack[hi] = stack[hi], stack[lo]
	}
	return stack
}

// columns returns the columns of a table: first the name of a row, by which the rows of two runs
// are compared, then the events, and then further columns.
func (c *Calls) columns(name string, further ...string) []report.Column {
	texts := []string{name}
	if c.Calls != nil {
		texts = append(texts, "calls")
	}
	for _, e := range c.Events {
		texts = append(texts, e.Key+"="+e.Label, e.Key+"_inclusive="+e.Label+" with callees")
	}
	return report.Columns(slices.Concat(texts, []string{c.Events[c.Main].Key + "_share=of all"}, further)...)
}

// cells returns the cells of a path, or of the sum of several paths.
func (c *Calls) cells(calls uint64, self, all []uint64) (row []report.Value) {
	if c.Calls != nil {
		row = append(row, report.Count(calls))
	}
	for i := range c.Events {
		for _, n := range []uint64{self[i], all[i]} {
			if c.Events[i].Key == "bytes" {
				row = append(row, report.Bytes(n))
			} else {
				row = append(row, predicted(float64(n), c.Events[i].Exact))
			}
		}
	}
	if total := c.Events[c.Main].All[0]; total > 0 {
		return append(row, report.Ratio(float64(all[c.Main])/float64(total)))
	}
	return append(row, report.None())
}

func (c *Calls) callsOf(i int) uint64 {
	if c.Calls == nil {
		return 0
	}
	return c.Calls[i]
}

// counts returns the counts of a path. The path outside all functions has no callees of its own.
func (c *Calls) counts(i int) (self, all []uint64) {
	for _, e := range c.Events {
		self, all = append(self, e.Self[i]), append(all, e.All[i])
	}
	if i == 0 {
		return self, self
	}
	return self, all
}

// ByPath returns the call tree as a table: each path follows its caller, and the callees of a path
// are in descending order of the main event. Paths with less than the given share of the main event
// are left out, and so are their callees.
func (c *Calls) ByPath(share float64) report.Table {
	t := report.Table{Key: "paths", Title: "Call paths, with " + c.Events[c.Main].Label, Columns: c.columns("path", "function", "depth", "file", "line")}
	callees := make([][]int, len(c.Paths))
	for i := range c.Paths[1:] {
		parent := c.Paths[i+1].Parent
		callees[parent] = append(callees[parent], i+1)
	}
	least := share * float64(c.Events[c.Main].All[0])
	var visit func(i, depth int, above string)
	visit = func(i, depth int, above string) {
		self, all := c.counts(i)
		if float64(all[c.Main]) < least {
			return
		}
		at, path := &c.Paths[i], above+c.Names[i]
		row := append([]report.Value{report.TextOf(path)}, c.cells(c.callsOf(i), self, all)...)
		row = append(row, report.TextOf(strings.Repeat("  ", depth)+c.Names[i]), report.Count(uint64(depth)), report.TextOf(at.File), report.Known(uint64(at.Line)))
		if t.Add(row...); i == 0 {
			return
		}
		for _, n := range c.ranked(callees[i]) {
			visit(n, depth+1, path+";")
		}
	}
	for _, n := range c.ranked(callees[0]) {
		visit(n, 0, "")
	}
	if c.Paths[0].References > 0 {
		visit(0, 0, "")
	}
	return t
}

// ranked sorts paths in descending order of the main event.
func (c *Calls) ranked(list []int) []int {
	all := c.Events[c.Main].All
	sort.SliceStable(list, func(i, j int) bool { return all[list[i]] > all[list[j]] })
	return list
}

// function is the key by which a function is identified.
type function struct {
	name, file string
	line       uint32
}

func (c *Calls) functionOf(i int) function {
	return function{c.Names[i], c.Paths[i].File, c.Paths[i].Line}
}

// ByFunction returns the sums of the paths of each function, in descending order of the main event.
// If a path lies within another path of the same function, its callees are counted only once.
func (c *Calls) ByFunction() report.Table {
	t := report.Table{Key: "functions", Title: "Functions, with " + c.Events[c.Main].Label, Columns: c.columns("function", "paths", "file", "line")}
	type sum struct {
		function
		paths, calls uint64
		self, all    []uint64
	}
	at := map[function]int{}
	var list []sum
	for i := range c.Paths {
		if i == 0 && c.Paths[0].References == 0 {
			continue
		}
		f := c.functionOf(i)
		n, known := at[f]
		if !known {
			n = len(list)
			at[f] = n
			list = append(list, sum{function: f, self: make([]uint64, len(c.Events)), all: make([]uint64, len(c.Events))})
		}
		s := &list[n]
		s.paths++
		s.calls += c.callsOf(i)
		self, all := c.counts(i)
		within := c.within(i)
		for e := range self {
			if s.self[e] += self[e]; !within {
				s.all[e] += all[e]
			}
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].all[c.Main] > list[j].all[c.Main] })
	for i := range list {
		s := &list[i]
		row := append([]report.Value{report.TextOf(s.name)}, c.cells(s.calls, s.self, s.all)...)
		t.Add(append(row, report.Count(s.paths), report.TextOf(s.file), report.Known(uint64(s.line)))...)
	}
	return t
}

// within reports whether a path lies within another path of the same function.
func (c *Calls) within(i int) bool {
	f := c.functionOf(i)
	for n := int(c.Paths[i].Parent); n > 0; n = int(c.Paths[n].Parent) {
		if c.functionOf(n) == f {
			return true
		}
	}
	return false
}

// Narrow keeps the columns of a table by path or function that fit on a screen.
func (c *Calls) Narrow(t report.Table) report.Table {
	main := c.Events[c.Main].Key
	var kept []int
	for _, key := range []string{"function", "file", "line", "calls", "instructions", main, main + "_inclusive", main + "_share"} {
		if at := t.Index(key); at >= 0 {
			kept = append(kept, at)
		}
	}
	return PickColumns(t, kept...)
}
