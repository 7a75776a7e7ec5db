package answers

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Calls contains the counts of a run by call path, in whole numbers, for tables and exports.
type Calls struct {
	Paths  []profile.Path
	Names  []string // readable names of the paths' functions
	Calls  []uint64 // number of calls of each path; nil for a part of the run, because calls are counted only for the whole run
	Events []CallEvent
	Main   int // index of the event by which rows are ranked

	functions []int  // for each path: a number that identifies its function
	within    []bool // for each path: whether the path's function is also a caller on the path, that is, whether the call is recursive
	callees   [][]int
}

// CallEvent is an event, such as a miss, that is counted by call path.
type CallEvent struct {
	Key   string // key of the event, such as "L1_misses"
	Label string // human-readable label of the event's column
	// Self contains the count of each path, excluding callees. All contains the count of each path,
	// including callees.
	Self, All []uint64
	Exact     bool
}

// outsideName is the name of the path outside all functions.
const outsideName = "(outside of functions)"

// NewCalls returns the counts of a profile with call paths: instructions, references, bytes,
// accesses to lines, and the misses of each level. Misses without a source location are not
// included.
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
	accesses := func(i int) uint64 { return c.Paths[i].Reuse.Accesses() }
	if len(levels) > 0 && levels[0].Part != nil {
		c.Calls, c.Main, accesses = nil, 0, levels[0].Part.PathAccesses
	} else {
		c.add("instructions", "instructions", true, func(i int) uint64 { return c.Paths[i].Instructions })
		c.add("references", "references", true, func(i int) uint64 { return c.Paths[i].References })
		c.add("bytes", "bytes", true, func(i int) uint64 { return c.Paths[i].Bytes })
	}
	c.add("accesses", "line accesses", true, accesses)
	first := c.Main
	for i := range levels {
		l := &levels[i]
		if l.Paths == nil {
			continue
		}
		misses := wholePaths(p, l)
		cache := l.Level.Cache.Name
		if c.add(cache+"_misses", cache+" misses", l.PathsExact, func(i int) uint64 { return misses[i] }); c.Main == first {
			c.Main = len(c.Events) - 1
		}
	}
	c.numberFunctions()
	return c
}

// AddCycles adds an event with the estimated cycles of memory accesses: the number of hits in each
// level and the number of accesses to memory, each multiplied by the latency (MODELS §13.1).
// AddCycles adds nothing if a latency is unknown. The levels must be the same as in the call of
// NewCalls. The parameter memory is the latency of memory.
func (c *Calls) AddCycles(levels []attribution.Attribution, memory float64) {
	latencies := latenciesOf(levels, memory)
	first := len(c.Events) - len(levels) // index of the event that counts the misses in the first level; the previous event counts the accesses
	if latencies == nil || levels[0].Paths == nil {
		return
	}
	c.add("memory_cycles", "estimated memory cycles", false, func(i int) uint64 {
		return uint64(math.Round(memoryCycles(latencies, func(l int) float64 { return float64(c.Events[first-1+l].Self[i]) })))
	})
}

// latenciesOf returns the latencies of the levels and of memory, or nil if a latency is unknown.
func latenciesOf(levels []attribution.Attribution, memory float64) (list []float64) {
	for i := range levels {
		list = append(list, levels[i].Level.Cache.LatencyCycles)
	}
	if list = append(list, memory); len(levels) == 0 || slices.ContainsFunc(list, func(x float64) bool { return x <= 0 }) {
		return nil
	}
	return list
}

// memoryCycles returns the total latency of all accesses: the hits in each level, multiplied by the
// latency of the level, plus the accesses to memory, multiplied by the latency of memory.
// accesses(l) is the number of accesses to level l or, if l is the number of levels, to memory.
func memoryCycles(latencies []float64, accesses func(level int) float64) (cycles float64) {
	for l, latency := range latencies {
		hits := accesses(l)
		if l+1 < len(latencies) {
			hits -= accesses(l + 1)
		}
		cycles += max(0, hits) * latency
	}
	return cycles
}

// Rank selects the event by which rows are ranked. The error is a *[trace.OptionError].
func (c *Calls) Rank(key string) error {
	var keys []string
	for i := range c.Events {
		if keys = append(keys, c.Events[i].Key); keys[i] == key {
			c.Main = i
			return nil
		}
	}
	return &trace.OptionError{Option: "event", Got: key, Want: "one of " + strings.Join(keys, ", ")}
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

// wholePaths rounds the misses of call paths, so that the misses of each function's paths add up to
// the rounded misses of the function's sites. Misses without a function are assigned to the paths
// without a function.
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
		// The function's misses on paths that the profile does not distinguish are rounded together
		// with the misses of the other paths.
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
	// The remaining misses belong to paths outside functions, and to paths that the profile does not
	// distinguish.
	rest := of[""]
	if len(rest) == 0 {
		whole[0] += all
		return whole
	}
	list, sum := make([]float64, len(rest)), 0.0
	for at, i := range rest {
		list[at] = l.Paths[i]
		sum += l.Paths[i]
	}
	for at := range list {
		if list[at] *= float64(all); sum > 0 {
			list[at] /= sum
		}
	}
	parts, _ := attribution.Whole(list, 0)
	for at, i := range rest {
		whole[i] = min(parts[at], all)
		all -= whole[i]
	}
	whole[rest[len(rest)-1]] += all
	return whole
}

// Stack returns the indices of the paths from the first function of the thread to path i, callers
// first.
func (c *Calls) Stack(i int) (stack []int) {
	for ; i > 0; i = int(c.Paths[i].Parent) {
		stack = append(stack, i)
	}
	for lo, hi := 0, len(stack)-1; lo < hi; lo, hi = lo+1, hi-1 {
		stack[lo], stack[hi] = stack[hi], stack[lo]
	}
	return stack
}

// columns returns the columns of a table: first the name, by which comparisons match rows, then the
// events, and then further columns.
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

// countCells returns the counts of a path, or of the sum of several paths.
func (c *Calls) countCells(calls uint64, self, all []uint64) (row []report.Value) {
	if c.Calls != nil {
		row = append(row, report.Count(calls))
	}
	for i := range c.Events {
		row = append(row, c.cell(i, self[i]), c.cell(i, all[i]))
	}
	return row
}

func (c *Calls) cell(event int, n uint64) report.Value {
	if c.Events[event].Key == "bytes" {
		return report.Bytes(n)
	}
	return numberCell(float64(n), c.Events[event].Exact)
}

// functionID identifies a function by its name and its definition.
type functionID struct {
	name, file string
	line       uint32
}

func (c *Calls) functionOf(i int) functionID {
	return functionID{c.Names[i], c.Paths[i].File, c.Paths[i].Line}
}

// numberFunctions assigns numbers to functions, lists the callees of each path, and finds the paths
// of recursive calls.
func (c *Calls) numberFunctions() {
	numbers := map[functionID]int{}
	c.functions, c.within, c.callees = make([]int, len(c.Paths)), make([]bool, len(c.Paths)), make([][]int, len(c.Paths))
	for i := range c.Paths {
		f := c.functionOf(i)
		n, known := numbers[f]
		if !known {
			n = len(numbers)
			numbers[f] = n
		}
		c.functions[i] = n
		if i == 0 {
			continue
		}
		parent := int(c.Paths[i].Parent)
		c.callees[parent] = append(c.callees[parent], i)
		for ; parent > 0 && !c.within[i]; parent = int(c.Paths[parent].Parent) {
			c.within[i] = c.functions[parent] == n
		}
	}
}

// FunctionKey returns a key that identifies a function even if several functions have the same
// name. The key consists of the file, the line and the name, such as "app.c:17:multiply", or only
// of the name if the file is unknown.
func FunctionKey(name, file string, line uint64) string {
	if file == "" {
		return name
	}
	return file + ":" + strconv.FormatUint(line, 10) + ":" + name
}

// Named returns the paths of the function with the given name. The name may be the source name, the
// linker name, a file and a name (such as "app.c:multiply"), or a key from [FunctionKey]. The error
// is a *[trace.OptionError].
func (c *Calls) Named(name string) (paths []int, err error) {
	var keys []string
	for i := range c.Paths {
		at := &c.Paths[i]
		key := FunctionKey(c.Names[i], at.File, uint64(at.Line))
		if i > 0 && (key == name || FunctionKey(at.Function, at.File, uint64(at.Line)) == name || c.Names[i] == name || at.Function == name || at.File != "" && at.File+":"+c.Names[i] == name) {
			if paths = append(paths, i); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	switch {
	case len(paths) == 0:
		return nil, &trace.OptionError{Option: "function", Got: name, Want: "a function of the run; list the functions with --by function"}
	case len(keys) > 1:
		return nil, &trace.OptionError{Option: "function", Got: name, Want: "the file as well, because several functions have this name: " + strings.Join(keys, ", ")}
	}
	return paths, nil
}

// callNode is a node of a call tree. It combines one or more call paths.
type callNode struct {
	// the first path that ends in the node's function; -1 if the node represents callers that the tree
	// does not list
	at        int
	number    int // the first of the paths whose counts are included
	depth     int
	calls     uint64
	self, all []uint64 // counts, indexed by event
	children  []*callNode
	covered   []coveredPath
}

// coveredPath is a call path that contributes to a node of a tree. In a tree of callers,
// countedPath is the path of the function whose callers are listed, and nodePath is the path of the
// caller. In a tree of callees, the two paths are equal.
type coveredPath struct{ countedPath, nodePath int }

// mostNodes is the maximum number of nodes in a tree of callers. Nodes with the name
// [FurtherCallers] contain the sums of deeper callers.
const mostNodes = 1 << 15

// FurtherCallers is the name of the nodes for callers that a tree does not list.
const FurtherCallers = "(further callers)"

// tree builds a tree and returns its roots. The function childPaths returns the paths of the
// children of a path. In a tree of callers, a path of a recursive call adds nothing to inclusive
// counts, because the outer path already includes them.
func (c *Calls) tree(roots []coveredPath, callers bool, childPaths func(coveredPath) []coveredPath) []*callNode {
	made := 0
	group := func(list []coveredPath, depth int) (nodes []*callNode) {
		at := map[int]*callNode{}
		for _, p := range list {
			f := c.functions[p.nodePath]
			if at[f] == nil {
				at[f] = &callNode{at: p.nodePath, number: p.countedPath, depth: depth}
				nodes = append(nodes, at[f])
			}
			at[f].covered = append(at[f].covered, p)
		}
		made += len(nodes)
		return nodes
	}
	add := func(n *callNode) {
		n.self, n.all = make([]uint64, len(c.Events)), make([]uint64, len(c.Events))
		for _, p := range n.covered {
			if c.Calls != nil {
				n.calls += c.Calls[p.countedPath]
			}
			for e := range c.Events {
				n.self[e] += c.Events[e].Self[p.countedPath]
				switch {
				case p.countedPath == 0: // the path outside all functions has no callees in the tree
					n.all[e] += c.Events[e].Self[0]
				case !callers || !c.within[p.countedPath]:
					n.all[e] += c.Events[e].All[p.countedPath]
				}
			}
		}
	}
	top := group(roots, 0)
	for waiting := slices.Clone(top); len(waiting) > 0; waiting = waiting[1:] {
		n := waiting[0]
		var list []coveredPath
		for _, p := range n.covered {
			list = append(list, childPaths(p)...)
		}
		add(n)
		if n.covered = nil; len(list) > 0 && made >= mostNodes && callers {
			rest := &callNode{at: -1, number: list[0].countedPath, depth: n.depth + 1, covered: list}
			add(rest)
			rest.covered, n.children = nil, []*callNode{rest}
			continue
		}
		n.children = group(list, n.depth+1)
		waiting = append(waiting, n.children...)
	}
	return top
}

// calleesOf returns the functions that a path calls.
func (c *Calls) calleesOf(p coveredPath) (list []coveredPath) {
	for _, i := range c.callees[p.nodePath] {
		list = append(list, coveredPath{i, i})
	}
	return list
}

// callersOf returns the path that calls the given path, or nil.
func (c *Calls) callersOf(p coveredPath) []coveredPath {
	if parent := int(c.Paths[p.nodePath].Parent); parent > 0 {
		return []coveredPath{{p.countedPath, parent}}
	}
	return nil
}

func (c *Calls) name(n *callNode) string {
	if n.at < 0 {
		return FurtherCallers
	}
	return c.Names[n.at]
}

// treeTable adds the nodes of a tree to a table. Each node is followed by its children, in
// descending order of the main event (excluding callees if bySelf is set). Nodes with less than the
// given share of the main event are omitted with their children. A path begins with its outermost
// caller, even in a tree of callers.
func (c *Calls) treeTable(t *report.Table, roots []*callNode, callers, bySelf bool, share float64) {
	weight := func(n *callNode) uint64 {
		if bySelf {
			return n.self[c.Main]
		}
		return n.all[c.Main]
	}
	total := c.Events[c.Main].All[0]
	var visit func(n *callNode, above string)
	list := func(nodes []*callNode, above string) {
		sort.SliceStable(nodes, func(i, j int) bool { return weight(nodes[i]) > weight(nodes[j]) })
		for _, n := range nodes {
			visit(n, above)
		}
	}
	visit = func(n *callNode, above string) {
		if float64(weight(n)) < share*float64(total) {
			return
		}
		name, path := c.name(n), c.name(n)
		switch {
		case above != "" && callers:
			path += ";" + above
		case above != "":
			path = above + ";" + path
		}
		row := append([]report.Value{report.TextOf(path)}, c.countCells(n.calls, n.self, n.all)...)
		row = append(row, shareOf(weight(n), total), report.TextOf(strings.Repeat("  ", n.depth)+name), report.Count(uint64(n.depth)))
		if n.at < 0 {
			row = append(row, report.TextOf(""), report.None())
		} else {
			row = append(row, report.TextOf(c.Paths[n.at].File), report.Known(uint64(c.Paths[n.at].Line)))
		}
		t.Add(append(row, report.Count(uint64(n.number)))...)
		list(n.children, path)
	}
	list(roots, "")
}

// shareOf returns a count as a share of the total.
func shareOf(n, total uint64) report.Value {
	if total == 0 {
		return report.None()
	}
	return report.Ratio(float64(n) / float64(total))
}

func (c *Calls) newTree(key, title string) report.Table {
	return report.Table{Key: key, Title: title + ", with " + c.Events[c.Main].Label, Columns: c.columns("path", "function", "depth", "file", "line", "number")}
}

// ByPath returns the tree of calls from callers to callees. The row of a path comes after the row
// of its caller, and the callees of a path are in descending order of the main event. Paths with
// less than the given share of the main event are omitted, together with their callees.
func (c *Calls) ByPath(share float64) report.Table {
	t := c.newTree("paths", "Call paths")
	roots := c.tree(c.calleesOf(coveredPath{}), false, c.calleesOf)
	if c.Paths[0].References > 0 {
		outside := c.tree([]coveredPath{{}}, false, func(coveredPath) []coveredPath { return nil })
		c.treeTable(&t, roots, false, false, share)
		c.treeTable(&t, outside, false, false, share)
		return t
	}
	c.treeTable(&t, roots, false, false, share)
	return t
}

// ByCaller returns the tree of calls from callees to callers. The roots are all functions, in
// descending order of their exclusive counts of the main event. If a caller's row is below the row
// of a function, the caller's row contains the part of the function's counts that results from the
// caller's calls. Counts that include callees count a recursive call only once.
func (c *Calls) ByCaller(share float64) report.Table {
	t := c.newTree("callers", "Functions and their callers")
	var all []coveredPath
	for i := range c.Paths {
		if i > 0 || c.Paths[0].References > 0 {
			all = append(all, coveredPath{i, i})
		}
	}
	c.treeTable(&t, c.tree(all, true, c.callersOf), true, true, share)
	return t
}

// Callers returns the tree of the callers of one function. The parameter paths must contain all
// call paths that end in that function.
func (c *Calls) Callers(paths []int, share float64) report.Table {
	t := c.newTree("callers", "Callers of "+c.Names[paths[0]])
	c.treeTable(&t, c.tree(same(paths), true, c.callersOf), true, false, share)
	return t
}

// Callees returns the tree of the callees of one function, summed over all call paths of the
// function.
func (c *Calls) Callees(paths []int, share float64) report.Table {
	t := c.newTree("callees", "Callees of "+c.Names[paths[0]])
	outermost := slices.DeleteFunc(slices.Clone(paths), func(i int) bool { return c.within[i] })
	c.treeTable(&t, c.tree(same(outermost), false, c.calleesOf), false, false, share)
	return t
}

func same(paths []int) (list []coveredPath) {
	for _, i := range paths {
		list = append(list, coveredPath{i, i})
	}
	return list
}

// ByFunction returns the counts of each function, summed over the function's call paths, in
// descending order of the main event. The callees of recursive calls are counted only once.
func (c *Calls) ByFunction() report.Table {
	t := report.Table{Key: "functions", Title: "Functions, with " + c.Events[c.Main].Label, Columns: c.columns("function", "paths", "file", "line")}
	var all []coveredPath
	paths := map[int]uint64{}
	for i := range c.Paths {
		if i > 0 || c.Paths[0].References > 0 {
			all = append(all, coveredPath{i, i})
			paths[c.functions[i]]++
		}
	}
	list := c.tree(all, true, func(coveredPath) []coveredPath { return nil })
	sort.SliceStable(list, func(i, j int) bool { return list[i].all[c.Main] > list[j].all[c.Main] })
	for _, n := range list {
		row := append([]report.Value{report.TextOf(c.name(n))}, c.countCells(n.calls, n.self, n.all)...)
		row = append(row, shareOf(n.all[c.Main], c.Events[c.Main].All[0]), report.Count(paths[c.functions[n.at]]))
		t.Add(append(row, report.TextOf(c.Paths[n.at].File), report.Known(uint64(c.Paths[n.at].Line)))...)
	}
	return t
}

// Totals returns the counts of the whole run.
func (c *Calls) Totals() report.Table {
	t := report.Table{Key: "totals", Title: "Whole run", Single: true}
	var row []report.Value
	for i, e := range c.Events {
		t.Columns = append(t.Columns, report.Columns(e.Key+"="+e.Label)...)
		row = append(row, c.cell(i, e.All[0]))
	}
	t.Add(row...)
	return t
}

// Narrow keeps the columns of a table that fit on a screen, and shortens long names.
func (c *Calls) Narrow(t report.Table) report.Table {
	main := c.Events[c.Main].Key
	var kept []int
	for _, key := range []string{"function", "file", "line", "calls", "instructions", main, main + "_inclusive", main + "_share"} {
		if at := t.Index(key); at >= 0 && !slices.Contains(kept, at) {
			kept = append(kept, at)
		}
	}
	short, depth := ShortNames(c.Names, mostName), t.Index("depth")
	narrow := PickColumns(t, kept...)
	for i, row := range narrow.Rows {
		name, level := strings.TrimLeft(row[0].Plain(), " "), uint64(0)
		if depth >= 0 {
			level, _ = strconv.ParseUint(t.Rows[i][depth].Plain(), 10, 64)
		}
		if of, known := short[name]; known {
			name = of
		}
		if level > mostIndented {
			name = strings.Repeat("  ", mostIndented) + "[" + strconv.FormatUint(level, 10) + "] " + name
		} else {
			name = strings.Repeat("  ", int(level)) + name
		}
		row[0] = report.TextOf(name)
	}
	return narrow
}

const (
	mostName     = 48 // maximum number of characters of a name in a table for people
	mostIndented = 16 // deeper calls are numbered instead of indented
)

// CacheFact returns a fact that lists the caches assumed by an answer.
func CacheFact(h hierarchy.Hierarchy) report.Fact {
	return report.Fact{Key: "caches", Label: "caches", Value: report.TextOf(strings.Join(h.Lines(), "; "))}
}
