package state

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Loops contains the loop nests of a run for the Loops view: the answer of "stackglass loops
// --each", with misses if the question included caches. The rows form a tree of source loops. If
// the run contains an outermost loop several times, this loop has an additional child row. The
// child row is not a loop, but contains the loops of each thread and time slice. This row is folded
// until the user unfolds it; if it is the only child row, the row above it is folded instead.
type Loops struct {
	Profile *profile.Profile
	asked   []string
	reply   *answers.Reply
	each    *report.Table
	rows    []loopRow
	levels  []string                  // the levels whose misses are known
	misses  map[string][]report.Value // for each loop label: the misses in each level, in the order of the field "levels"
}

// loopRow is a row of the tree of loops.
type loopRow struct {
	of    *report.Table // nil: the row represents no loop, but is the parent of the loops below it
	row   int
	depth int  // counted from 0
	part  bool // the row is a loop of one thread and time slice
	id    int  // identifies the loop in the URL, independent of the order of nests; counted from 1
}

// LoopsQuestion returns a question about the loops of a run and their misses in a hierarchy, with
// further arguments for "stackglass loops".
func LoopsQuestion(levels []hierarchy.Cache, args ...string) answers.Question {
	return VerbQuestion("loops", hierarchy.Hierarchy{Levels: levels}, args...)
}

// EachLoop is the argument that a question must contain so that [NewLoops] can read the answer.
const EachLoop = "each=true"

// NewLoops returns the loops in the answer to a question. The parameter "asked" contains the words of
// the question.
func NewLoops(p *profile.Profile, asked []string, reply *answers.Reply) *Loops {
	l := &Loops{Profile: p, asked: asked, reply: reply, each: reply.Table("each"), misses: map[string][]report.Value{}}
	l.addRows(reply.Table("loops"))
	t := reply.Table("misses")
	for i := range rowsOf(t) {
		label, level := cellText(t, i, "loop"), cellText(t, i, "level")
		if !slices.Contains(l.levels, level) {
			l.levels = append(l.levels, level)
		}
		l.misses[label] = append(l.misses[label], cell(t, i, "misses"))
	}
	return l
}

// addRows computes the rows of the tree.
func (l *Loops) addRows(source *report.Table) {
	ids, parts := loopIDs(l.each, source), map[string][]int{}
	for i := range rowsOf(l.each) {
		of := cellText(l.each, i, "source_loop")
		parts[of] = append(parts[of], i)
	}
	add := func(t *report.Table, i, depth int) {
		l.rows = append(l.rows, loopRow{of: t, row: i, depth: depth, part: t == l.each, id: ids[cellText(t, i, "loop")]})
	}
	for i, end := 0, 0; i < len(rowsOf(source)); i++ {
		depth, label := depthOf(source, i), cellText(source, i, "loop")
		add(source, i, depth)
		if len(parts[label]) < 2 || i < end {
			continue
		}
		for end = firstAfter(source, i); i+1 < end; i++ {
			add(source, i+1, depthOf(source, i+1))
		}
		l.rows = append(l.rows, loopRow{depth: depth + 1})
		for _, k := range parts[label] {
			for inner := k; inner < firstAfter(l.each, k); inner++ {
				add(l.each, inner, depth+2+depthOf(l.each, inner)-depthOf(l.each, k))
			}
		}
	}
}

func depthOf(t *report.Table, row int) int { return int(numberIn(t, row, "depth")) }

// firstAfter returns the number of the first row that follows the inner loops of a loop.
func firstAfter(t *report.Table, row int) int {
	end := row + 1
	for end < len(t.Rows) && depthOf(t, end) > depthOf(t, row) {
		end++
	}
	return end
}

// loopIDs assigns a number to the label of each loop: first to the loops of the run, in the order
// in which they begin, and then to the loops of the source code that the run contains several
// times.
func loopIDs(tables ...*report.Table) map[string]int {
	ids := map[string]int{}
	for _, t := range tables {
		var labels []string
		for i := range rowsOf(t) {
			labels = append(labels, cellText(t, i, "loop"))
		}
		sort.SliceStable(labels, func(i, j int) bool {
			m, _ := strconv.Atoi(nestOf(labels[i]))
			n, _ := strconv.Atoi(nestOf(labels[j]))
			return m < n
		})
		for _, label := range labels {
			if ids[label] == 0 {
				ids[label] = len(ids) + 1
			}
		}
	}
	return ids
}

// nestOf returns the number of the nest that contains a loop. If several nests contain the loop, it
// returns the number of the first nest.
func nestOf(label string) string {
	nest, _, _ := strings.Cut(strings.TrimSuffix(label, "+"), ".")
	return nest
}

// Len returns the number of rows.
func (l *Loops) Len() int { return len(l.rows) }

// Notes returns the warnings of the answer as sentences.
func (l *Loops) Notes() (list []string) {
	for _, note := range l.reply.Notes {
		list = append(list, Sentence(note))
	}
	return list
}

// Counted reports whether the misses in a hierarchy are known.
func (l *Loops) Counted(levels []hierarchy.Cache) bool {
	return l.reply.Table("misses") != nil && slices.Equal(l.asked, LoopsQuestion(levels, EachLoop).Words)
}

// CountedIn reports whether the misses in the given caches are known. The latencies of the caches
// do not matter.
func (l *Loops) CountedIn(levels []hierarchy.Cache) bool {
	same := func(a, b string) bool { return withoutLatency(a) == withoutLatency(b) }
	return l.reply.Table("misses") != nil && slices.EqualFunc(l.asked, LoopsQuestion(levels, EachLoop).Words, same)
}

// withoutLatency removes the latency from a line that describes a cache.
func withoutLatency(line string) string {
	parts := strings.Split(line, ",")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return strings.HasPrefix(part, "latency=") }), ",")
}

func (l *Loops) cell(row int, key string) report.Value {
	if r := &l.rows[row]; r.of != nil {
		return cell(r.of, r.row, key)
	}
	return report.None()
}

func (l *Loops) text(row int, key string) string { return l.cell(row, key).Plain() }

func (l *Loops) number(row int, key string) uint64 { return uint64(number(l.cell(row, key))) }

// ownReferences returns the number of references that a loop makes outside its inner loops.
func (l *Loops) ownReferences(row int) uint64 { return l.number(row, "own_references") }

// isSourceLoop reports whether a row is a loop of the source code.
func (l *Loops) isSourceLoop(row int) bool { return l.rows[row].of != nil && !l.rows[row].part }

// ID returns the identifier of a row's loop, which does not depend on the order of nests, or 0 if
// the row is not a loop.
func (l *Loops) ID(row int) int { return l.rows[row].id }

// Row returns the first row of the loop with the given ID, or -1.
func (l *Loops) Row(id int) int {
	return slices.IndexFunc(l.rows, func(r loopRow) bool { return r.id == id && id > 0 })
}

// Hottest returns the source loop with the most references outside its inner loops, or -1.
func (l *Loops) Hottest() int {
	best, most := -1, uint64(0)
	for i := range l.Len() {
		if own := l.ownReferences(i); l.isSourceLoop(i) && (best < 0 || own > most) {
			best, most = i, own
		}
	}
	return best
}

// Nest returns the number of the nest that contains a loop. If several nests contain the loop, Nest
// returns the number of the first nest.
func (l *Loops) Nest(row int) string { return nestOf(l.Label(row)) }

// Summary describes the loops in prose.
func (l *Loops) Summary() string {
	references := l.Profile.Totals.AllReferences()
	if l.Len() == 0 {
		return "Nothing repeats: no loop was found in " + Plural(references, "reference", "references") + "."
	}
	in, loops, nests := uint64(0), uint64(0), uint64(0)
	for i, row := range l.rows {
		if l.isSourceLoop(i) {
			if loops++; row.depth == 0 {
				in, nests = in+l.number(i, "references"), nests+1
			}
		}
	}
	text := Plural(loops, "loop", "loops") + " in " + Plural(nests, "nest", "nests")
	if loops == 1 {
		text += " makes "
	} else {
		text += " make "
	}
	hot := l.Hottest()
	return text + Percent(Ratio(in, references)) + " of " + Plural(references, "reference", "references") + ". " +
		"Loop " + l.Title(hot) + " makes the most references: " + Percent(Ratio(l.ownReferences(hot), references)) + "."
}

// Method returns sentences about how the loops were found.
func (l *Loops) Method() string {
	text := "In the profile, the trace is compressed without loss to " + Bytes(uint64(len(l.Profile.Loops))) + ". Counts are exact. " +
		"Loops are numbered like chapters. Nests that differ only in addresses and trip counts are listed as one nest that runs several times. " +
		"A loop that runs in several threads or time slices is listed once, with “+” after its number. Open the row to see the loop in each thread and time slice."
	if l.Profile.Sites == nil && !l.Profile.Input.Header.PCs {
		text += " The trace records neither sites nor instruction addresses, so the trace compresses poorly, and the loops listed here are not the loops of the program."
	}
	return text
}

// Lines describes the loops of each source line. A loop belongs to the first line that contains a
// reference of the loop. The loops of a line are listed from the outermost to the innermost loop.
// Each loop has a range of trip counts, because the loop may occur in several threads and nests.
func (l *Loops) Lines() func(file string, line uint32) string {
	type trips struct{ least, most uint64 }
	type about struct {
		depths     []trips
		references uint64
		outermost  uint64 // depth of the outermost loop
	}
	lines := map[string]*about{}
	key := func(i int) string { return l.text(i, "file") + ":" + l.text(i, "first_line") }
	for i := range l.Len() {
		if !l.isSourceLoop(i) || l.text(i, "first_line") == "" {
			continue
		}
		depth := uint64(l.rows[i].depth)
		x := lines[key(i)]
		if x == nil {
			x = &about{outermost: depth}
			lines[key(i)] = x
		}
		if depth < x.outermost {
			continue // a nest with more nested loops has already been described
		}
		if depth == x.outermost {
			x.references += l.number(i, "references")
		}
		at := int(depth - x.outermost)
		for len(x.depths) <= at {
			x.depths = append(x.depths, trips{least: l.number(i, "least_trips")})
		}
		t := &x.depths[at]
		t.least, t.most = min(t.least, l.number(i, "least_trips")), max(t.most, l.number(i, "most_trips"))
	}
	return func(file string, line uint32) string {
		x := lines[file+":"+strconv.FormatUint(uint64(line), 10)]
		if x == nil {
			return ""
		}
		var list []string
		for _, t := range x.depths {
			text := Exact(t.most)
			if t.least < t.most {
				text = Exact(t.least) + "–" + text
			}
			list = append(list, text)
		}
		return "loop of " + strings.Join(list, " × ") + ", " + Percent(Ratio(x.references, l.Profile.Totals.AllReferences())) + " of the references"
	}
}

// Label returns the number of a loop, such as "1.1".
func (l *Loops) Label(loop int) string { return l.text(loop, "loop") }

// sourceLocation returns the source location of a loop, for example "file.c:12–20".
func (l *Loops) sourceLocation(loop int) string {
	text, first, last := l.text(loop, "file"), l.text(loop, "first_line"), l.text(loop, "last_line")
	if first != "" {
		text += ":" + first
	}
	if last != first {
		text += "–" + last
	}
	return text
}

// Title returns the name of a loop, such as "1.1.1, matmul-naive.c:20, main".
func (l *Loops) Title(loop int) string {
	text := l.Label(loop)
	for _, more := range []string{l.sourceLocation(loop), l.text(loop, "function")} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

// formatTrips formats the trip count of a loop, with grouped digits.
func (l *Loops) formatTrips(loop int) string {
	least, most := Exact(l.number(loop, "least_trips")), Exact(l.number(loop, "most_trips"))
	if least == most {
		return most
	}
	return least + "–" + most
}

// Sentence describes how a loop runs.
func (l *Loops) Sentence(loop int) string {
	runs, references, own := l.number(loop, "runs"), l.number(loop, "references"), l.ownReferences(loop)
	text := "The loop runs " + Plural(runs, "time", "times")
	if parts := l.number(loop, "loops"); parts > 1 {
		text += ", as " + Exact(parts) + " separate loops in " + Plural(l.number(loop, "threads"), "thread", "threads")
	}
	text += ", with " + l.formatTrips(loop) + " iterations"
	if runs > 1 {
		text += " each, " + Exact(l.number(loop, "iterations")) + " in all"
	}
	text += ". The loop makes " + Plural(references, "reference", "references") + ", " + l.cell(loop, "share").Shown(words) + " of the run"
	if own < references {
		text += "; " + Exact(own) + " of them outside its inner loops"
	}
	return text + "."
}

// Grid returns the tree of loops as a table, with the known misses in a hierarchy. The parameter
// "picked" is the selected loop.
func (l *Loops) Grid(picked int, levels []hierarchy.Cache) *Grid {
	t := (&Table{Caption: "Loops", Rows: l.Len()}).setReply(l.reply, "loops")
	t.Columns = []Column{{Name: "loop", Words: true}, {Name: "function", Key: "function", Words: true}, {Name: "trips", Key: "most_trips"}, {Name: "runs", Key: "runs"}, {Name: "references", Key: "references"}, {Name: "share", Key: "share"}}
	for _, c := range levels {
		t.Columns = append(t.Columns, Column{Name: c.Name + " misses", Key: c.Name + "_misses"})
	}
	counted := l.Counted(levels)
	t.values = func(i, column int) []report.Value {
		key := t.Columns[column].Key
		if level, ok := strings.CutSuffix(key, "_misses"); ok {
			return []report.Value{l.missesIn(i, level)}
		}
		return []report.Value{l.cell(i, key)}
	}
	t.Row = func(i int) []string {
		if l.rows[i].of == nil {
			cells := make([]string, len(t.Columns))
			cells[0] = "each thread and time slice"
			return cells
		}
		cells := []string{strings.TrimSuffix(l.Label(i)+" · "+l.sourceLocation(i), " · "), orDash(l.text(i, "function")), l.formatTrips(i)}
		for _, key := range []string{"runs", "references", "share"} {
			cells = append(cells, l.cell(i, key).Shown(words))
		}
		for _, c := range levels {
			misses := "…"
			if counted {
				misses = l.Misses(i, c.Name)
			}
			cells = append(cells, misses)
		}
		return cells
	}
	depths, order := make([]int, l.Len()), uint64(0)
	var folded []bool
	for i, row := range l.rows {
		depths[i] = row.depth + 1
		order = order*31 + uint64(row.id)
		if row.of == nil && folded == nil {
			folded = make([]bool, l.Len())
		}
		if folded != nil && row.of == nil {
			only := l.rows[i-1].depth < row.depth // the loop above contains no other row
			folded[i], folded[i-1] = !only, only
		}
	}
	hot := l.Hottest()
	return &Grid{Table: t, ID: "loops", Order: strconv.FormatUint(order, 36), Selected: picked, Depths: depths, Folded: folded, Mark: func(i int) string {
		if i == hot {
			return "most"
		}
		return ""
	}}
}

// Misses returns the misses of a loop in a level, if they were counted.
func (l *Loops) Misses(loop int, level string) string {
	return orDash(l.missesIn(loop, level).Shown(words))
}

// missesIn returns the misses of a loop in a level; None if they were not counted.
func (l *Loops) missesIn(loop int, level string) report.Value {
	k, list := slices.Index(l.levels, level), l.misses[l.Label(loop)]
	if k < 0 || k >= len(list) {
		return report.None()
	}
	return list[k]
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// selectRows reduces one table of the answer to the given columns and to the rows of the given
// loops. It returns nil if there are no such rows.
func (l *Loops) selectRows(key, caption string, loops map[string]bool, columns ...string) *Table {
	whole := l.reply.Table(key)
	if whole == nil {
		return nil
	}
	part := *whole
	if part.Rows = nil; loops == nil {
		part.Rows = whole.Rows
	}
	for i, row := range whole.Rows {
		if loops[cellText(whole, i, "loop")] {
			part.Rows = append(part.Rows, row)
		}
	}
	if len(part.Rows) == 0 {
		return nil
	}
	t := show(&part, words, nil, columns...).setReply(l.reply, key)
	t.Caption = caption
	return t
}

// partLabels returns the labels of all loops that a row of the tree combines.
func (l *Loops) partLabels(row int) map[string]bool {
	labels := map[string]bool{}
	for i := range rowsOf(l.each) {
		if label := cellText(l.each, i, "loop"); label == l.Label(row) || cellText(l.each, i, "source_loop") == l.Label(row) {
			labels[label] = true
		}
	}
	return labels
}

// ArraysTable lists the arrays that a loop accesses. If misses were counted, the table contains the
// class of each array.
func (l *Loops) ArraysTable(loop int) *Table {
	of, columns := l.partLabels(loop), []string{"array", "class", "references", "stores", "stride_bytes", "extent_bytes", "touched_bytes", "utilisation", "exact", "base"}
	if len(of) > 1 {
		columns = slices.Insert(columns, 0, "loop")
	}
	return l.selectRows("arrays", "Arrays of loop "+l.Label(loop), of, columns...)
}

// Advice describes a striking access pattern of a loop's arrays, or returns "".
func (l *Loops) Advice(loop int) string {
	t, parts := l.reply.Table("arrays"), l.partLabels(loop)
	for i := range rowsOf(t) {
		of := func(key string) string { return cellText(t, i, key) }
		lines, used := numberIn(t, i, "lines"), numberIn(t, i, "utilisation")
		if !parts[of("loop")] || of("exact") != "true" || lines < 8 || numberIn(t, i, "references") < lines || used > 0.5 {
			continue
		}
		name := "one of its arrays"
		if array := of("array"); array != "" {
			name = "“" + array + "”"
		}
		strides := strings.Fields(strings.TrimSuffix(of("stride_bytes"), " and others"))
		inner := strings.Replace(strings.TrimPrefix(strides[len(strides)-1], "+"), "-", "−", 1)
		return "One run of this loop uses " + Percent(used) + " of the bytes in the " + Plural(uint64(lines), "line", "lines") + " of " + name + " that the run touches, because the innermost loop strides by " +
			inner + " bytes. If a line stays in a cache until the loop runs again, more of the line may be used. Code shows the line utilisation over the whole program."
	}
	return ""
}

// Irregular reports whether a nest contains references with irregular addresses.
func (l *Loops) Irregular(nest string) bool {
	t := l.reply.Table("arrays")
	for i := range rowsOf(t) {
		if cellText(t, i, "loop") == nest && cellText(t, i, "stride_bytes") == "irregular" {
			return true
		}
	}
	return false
}

// MissesTable shows the misses of a loop, of all references outside loops, and of the run, for each
// cause and level. MissesTable returns nil if no misses are known.
func (l *Loops) MissesTable(loop int) *Table {
	return l.selectRows("misses", "Misses in loop "+l.Label(loop)+" and in the whole run (exact, LRU; each level sees every access)",
		map[string]bool{l.Label(loop): true, "(outside loops)": true, "(total)": true})
}

// EvictionsTable shows, for each pair of arrays, how often lines of one array evicted lines of the
// other array from the first level during the whole run. EvictionsTable returns nil if evictions
// were not counted, or if nothing was evicted.
func (l *Loops) EvictionsTable() *Table {
	t := l.reply.Table("evictions")
	if t == nil {
		return nil
	}
	return l.selectRows("evictions", t.Title, nil)
}

// LineEvictions shows which source lines evict cache lines that the given source lines used last, and
// which cache lines the given source lines evict. The source lines have the form FILE:LINE.
// LineEvictions returns nil if there are no such evictions.
func (l *Loops) LineEvictions(lines map[string]bool) *Table {
	t := l.reply.Table("line_evictions")
	part := rowsWith(t, func(i int) bool { return lines[cellText(t, i, "comes")] || lines[cellText(t, i, "goes")] })
	if part == nil {
		return nil
	}
	part.Title += ": rows with this code"
	return show(part, words, nil).setReply(l.reply, "line_evictions")
}

// UnknownUsers returns a sentence about the evicted lines whose last users are not distinguished, and
// which may belong to any source line. UnknownUsers returns "" if there are no such lines.
func (l *Loops) UnknownUsers() string {
	t := l.reply.Table("line_evictions")
	others := rowsWith(t, func(i int) bool { return cellText(t, i, "goes") == answers.OtherUsers })
	if others == nil {
		return ""
	}
	sum := 0.0
	for i := range others.Rows {
		sum += numberIn(others, i, "share")
	}
	return "For " + Percent(sum) + " of all evicted lines, the last user is not distinguished (“" + answers.OtherUsers + "”); it may be this code."
}

// Evicts reports whether evictions were counted in any level.
func (l *Loops) Evicts() bool {
	t := l.reply.Table("evictions")
	return t != nil && t.Title != ""
}

// missingLoops returns the reason why a profile has no loops.
func missingLoops(p *profile.Profile) string {
	switch {
	case len(p.Loops) > 0:
		return ""
	case p.Loops != nil:
		return "The trace cannot be compressed into loops: its loop tree exceeded the memory limit. Accesses that depend on data (as in sparse matrices, hash tables and lists) lead to large loop trees. " +
			"Try a part of the trace: “stackglass loops --limit 10000000”."
	}
	return "This analysis did not compress the trace into loops, because loops are found only on request. Analyse the trace again with “Compress into loops” in the settings, " +
		"or with “stackglass analyze --analyses loops -o file.sgp”, and drop that file here."
}

// ChangeKind is a kind of change to the code that the page offers.
type ChangeKind struct {
	Kind    string // the name that the stackglass command uses for this kind of change
	Words   string
	Example string
	About   string
}

// ChangeKinds returns all kinds of changes.
func ChangeKinds() []ChangeKind { return changeKinds }

// nameLoops is a help text that explains how to refer to loops.
const nameLoops = " Name loops by number, for example 1.2, or by letter: i is the outermost loop, j the first loop in it, and so on."

// changeKinds is a variable. If a function created this list, the compiler would also generate code
// that compares the elements.
var changeKinds = []ChangeKind{
	{"pad", "pad rows", "a=+64", "The name of an array (or an address inside it), and the number of bytes to add to each row."},
	{"interchange", "interchange loops", "i,j", "Two perfectly nested loops." + nameLoops},
	{"tile", "tile loops", "i=32,j=32", "Perfectly nested loops, and the number of iterations per tile. With i=all,j=32, loop i is not tiled, and the loop over the tiles of j moves outside i." + nameLoops},
	{"align", "align arrays", "64", "A power of two. The address of each array becomes a multiple of this number of bytes. To move only array a, write a=64."},
	{"fuse", "fuse loops", "1.1", "A loop to fuse with the next loop, or several consecutive loops; they must have the same trip count." + nameLoops},
	{"array-of-structs", "array of structures", "x,y", "Arrays with elements of equal size, to be merged into one array of structures."},
}

// ChangeKindOf returns the kind of change that has the given name in the stackglass command.
func ChangeKindOf(kind string) ChangeKind {
	for _, k := range ChangeKinds() {
		if k.Kind == kind {
			return k
		}
	}
	return ChangeKind{}
}
