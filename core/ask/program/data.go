package program

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	_ "github.com/stackglass/stackglass/core/analysis/prologue"   // allows analyses to skip references
	_ "github.com/stackglass/stackglass/core/analysis/structures" // registers the analysis of data structures
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

func init() { ask.Translation = answers.Translation }

// Data is the verb that reports how the run uses its data structures.
var Data = ask.Add(&ask.Verb{
	Name:    "data",
	Use:     "[--cache NAME=SIZE,WAYS[,LINE] …]",
	Title:   "Data structures: members, lifetimes of memory blocks, accesses by address and time",
	Machine: ask.UsualCaches,
	Usual:   []string{"L1=32KiB,8"},
	Args: []ask.Arg{
		ask.TopRows,
		{Name: "fields", Help: "for the structures in this `DATA`, print the members, the pairs of members that are used together, and proposals for splitting the structures"},
		{Name: "map", Help: "print the accesses and misses of this `DATA` by address and time"},
		{Name: "heap", Kind: ask.Switch, Help: "print the lifetimes of memory blocks, grouped by the source location of the allocation"},
	},
	Needs: func(ask.Question) analysis.Analyses {
		return analysis.Data | analysis.Sites | analysis.Sharing | analysis.Sets
	},
	Lines:  ask.LevelLines,
	Groups: true, Places: true, Measures: true,
	Missing: func(p *profile.Profile) string {
		switch {
		case p.Sites == nil || p.Sites.Data == nil:
			return "the profile contains no data structures"
		case p.Data == nil:
			return "the profile does not record how data structures are used"
		}
		return ""
	},
	Answer: func(r *ask.Run, q ask.Question, d *report.Document) error {
		u, err := newDataUse(r, q, d)
		if err != nil {
			return err
		}
		forms := len(q.List("fields")) + len(q.List("map"))
		if q.Is("heap") {
			forms++
		}
		u.alone = forms == 1
		if forms == 0 {
			u.listData()
			return nil
		}
		if q.Given("fields") {
			if err := u.listMembers(q.Text("fields")); err != nil {
				return err
			}
		}
		if q.Given("map") {
			if err := u.addressMap(q.Text("map")); err != nil {
				return err
			}
		}
		if q.Is("heap") {
			u.listBlocks()
		}
		return nil
	},
})

// dataUse computes the answer to a question about data structures.
type dataUse struct {
	*ask.Run
	q    ask.Question
	d    *report.Document
	data *profile.Data
	s    *answers.Sites
	by   map[int]*profile.DataUse // keyed by the index in Sites.Data
	// caches contains the caches whose line size was analysed. The tables of members and the address
	// maps show the misses of these caches.
	caches []hierarchy.Cache
	alone  bool // whether the question asks for only one kind of table
}

// reportMissing handles a missing table: it adds a warning if the answer has other tables, and
// otherwise returns an error.
func (u *dataUse) reportMissing(why string) error {
	if u.alone {
		return u.Cannot(why)
	}
	u.d.Warnings = append(u.d.Warnings, u.Name+": "+why)
	return nil
}

func newDataUse(r *ask.Run, q ask.Question, d *report.Document) (*dataUse, error) {
	p := r.Profile
	if p.Sites == nil || p.Sites.Data == nil {
		if _, _, err := r.Attributed(q, attribution.Object); err != nil {
			return nil, err
		}
	}
	if p.Data == nil {
		switch {
		case p.Sampled != nil:
			return nil, r.Cannot("a sample does not contain every access to a data structure; analyze the whole trace")
		case r.Analysed:
			return nil, r.Cannot("the trace does not record data structures; compile the program with \"stackglass cc -- clang …\" and run it")
		}
		return nil, r.Cannot("the profile does not record how data structures are used; analyze the trace again with --analyses default,data")
	}
	s, doubts, err := r.Attributed(q, attribution.Object)
	if err != nil {
		return nil, err
	}
	u := &dataUse{Run: r, q: q, d: d, data: p.Data, s: s, by: map[int]*profile.DataUse{}}
	for i := range p.Data.Uses {
		u.by[int(p.Data.Uses[i].Object)] = &p.Data.Uses[i]
	}
	for _, l := range q.Caches().Levels {
		if l.LineBytes == p.Data.LineBytes {
			u.caches = append(u.caches, l)
		}
	}
	d.Input = append(r.Facts(p.Data.LineBytes), answers.ThreadFacts(p, q.Caches())...)
	d.Warnings = doubts
	return u, nil
}

// rankedData returns the data structures, in descending order of misses in the first level.
func (u *dataUse) rankedData() []attribution.Row { return u.s.Rows() }

func (u *dataUse) top(rows int) int {
	if n := u.q.Number(ask.TopRows.Name); u.q.Brief && n > 0 && n < uint64(rows) {
		return int(n)
	}
	return rows
}

// listData adds a table with a row for each data structure.
func (u *dataUse) listData() {
	t := report.Table{Key: "data", Title: "Data structures, ranked by misses in " + u.s.Levels[0].Level.Cache.Name, Columns: report.Columns(
		"name=data", "kind=where", "function=allocated or declared in", "file", "line")}
	for i := range u.s.Levels {
		name := u.s.Levels[i].Level.Cache.Name
		t.Columns = append(t.Columns, report.Columns(name+"_misses=misses "+name, name+"_share=of all")...)
	}
	t.Columns = append(t.Columns, report.Columns("references", "used=line utilisation", "blocks", "size_bytes=size", "peak_bytes=at most", "unread_bytes=never read",
		"structure", "structure_bytes=of size")...)
	rows := u.rankedData()
	for i := range rows[:u.top(len(rows))] {
		r := &rows[i]
		o, use := u.object(r), u.by[r.Object]
		row := append(u.nameCells(r), report.Known(uint64(r.Line)))
		for n := range u.s.Levels {
			l := &u.s.Levels[n]
			row = append(row, missesCell(r.Misses[n], l.Exact), report.Quotient(r.Misses[n], l.Level.Misses))
		}
		row = append(row, report.Count(r.References), u.utilisation(r), report.Known(o.Blocks), answers.ObjectSize(o))
		peak, unread := report.None(), report.None()
		if use != nil && o.Kind == profile.HeapObject {
			peak, unread = report.Bytes(use.Lives.PeakBytes), report.Bytes(use.Lives.Unread)
		}
		name, bytes := report.TextOf(""), report.None()
		if e := mostUsed(use); e != nil {
			of := &u.data.Structures[e.Structure]
			name, bytes = report.TextOf(structureName(of)), report.Bytes(of.Bytes)
		}
		t.Add(append(row, peak, unread, name, bytes)...)
	}
	u.d.Tables = []report.Table{t}
}

// missesCell returns the cell for a number of misses: a count if the number is exact, and otherwise
// a real number.
func missesCell(n float64, exact bool) report.Value {
	if exact {
		return report.Count(uint64(n + 0.5))
	}
	return report.Real(n)
}

func (u *dataUse) object(r *attribution.Row) *profile.DataObject {
	return &u.Profile.Sites.Data[r.Object]
}

// nameCells returns the cells that name a data structure, except the line number.
func (u *dataUse) nameCells(r *attribution.Row) []report.Value {
	o, function := u.object(r), r.Function
	if u.Readable != nil {
		function = u.Readable(function)
	}
	return []report.Value{report.TextOf(answers.ObjectName(o, u.Readable)), report.TextOf(o.Kind.String()), report.TextOf(function), report.TextOf(r.File)}
}

// utilisation returns the line utilisation in the first cache for which it was measured.
func (u *dataUse) utilisation(r *attribution.Row) report.Value {
	if len(r.Used) == 0 || r.Used[0].Fetched == 0 {
		return report.None()
	}
	return report.Ratio(r.Used[0].Share(u.data.LineBytes))
}

// mostUsed returns the structure type with the most references in a data structure, or nil.
func mostUsed(use *profile.DataUse) *profile.ElementUse {
	if use == nil || len(use.Elements) == 0 {
		return nil
	}
	return byReferences(use)[0]
}

// byReferences returns the structure types of a data structure's elements, in descending order of
// references.
func byReferences(use *profile.DataUse) (list []*profile.ElementUse) {
	for i := range use.Elements {
		list = append(list, &use.Elements[i])
	}
	slices.SortStableFunc(list, func(x, y *profile.ElementUse) int { return cmp.Compare(references(y), references(x)) })
	return list
}

func references(e *profile.ElementUse) (n uint64) {
	for i := range e.Members {
		n += e.Members[i].References()
	}
	return n
}

func structureName(s *trace.Structure) string {
	if s.Name == "" {
		return "(unnamed)"
	}
	return s.Name
}

// listBlocks adds a table of the lifetimes of memory blocks, with a row for each allocation site.
func (u *dataUse) listBlocks() {
	t := report.Table{Key: "heap", Title: "Memory blocks by allocation, most bytes first; lifetimes in references", Columns: report.Columns(
		"name=data", "kind=where", "function=allocated in", "file", "line", "blocks", "size_bytes=size", "peak_bytes=at most", "median_lifetime=median lifetime", "longest_lifetime=longest",
		"kept_blocks=never released", "kept_bytes=of size", "unread_blocks=blocks never read", "unread_bytes=bytes never read", "unread_share=of all", "unwritten_bytes=bytes never written")}
	rows := slices.DeleteFunc(slices.Clone(u.rankedData()), func(r attribution.Row) bool { return u.object(&r).Kind != profile.HeapObject })
	slices.SortStableFunc(rows, func(x, y attribution.Row) int { return cmp.Compare(u.object(&y).Bytes, u.object(&x).Bytes) })
	for i := range rows[:u.top(len(rows))] {
		r := &rows[i]
		o, use := u.object(r), u.by[r.Object]
		row := append(u.nameCells(r), report.Known(uint64(r.Line)), report.Count(o.Blocks), report.Bytes(o.Bytes))
		if use == nil {
			use = &profile.DataUse{}
		}
		l := &use.Lives
		median, longest := report.None(), report.None()
		if l.Freed > 0 {
			median, longest = report.Count(min(l.Median(), l.Longest)), report.Count(l.Longest)
		}
		t.Add(append(row, report.Bytes(l.PeakBytes), median, longest, report.Count(l.Kept), report.Bytes(l.KeptBytes),
			report.Count(l.UnreadBlocks), report.Bytes(l.Unread), report.Share(l.Unread, o.Bytes), report.Bytes(l.Unwritten))...)
	}
	u.d.Tables = append(u.d.Tables, t)
	if len(t.Rows) == 0 {
		u.d.Warnings = append(u.d.Warnings, u.Name+": the trace records no memory allocations")
	}
}

// findData returns the data structure with the given name. The name may be followed by the
// function, file and line, as in "list main app.c:17".
func (u *dataUse) findData(option, name string) (*attribution.Row, error) {
	rows := u.rankedData()
	var found []*attribution.Row
	var names []string
	for i := range rows {
		r := &rows[i]
		long := u.s.Place(r)
		if long == name {
			return r, nil
		}
		if names = append(names, long); answers.ObjectName(u.object(r), u.Readable) == name || strings.HasPrefix(long, name+" ") {
			found = append(found, r)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	want := "one of " + strings.Join(names[:min(len(names), mostNames)], ", ")
	if len(found) > 1 {
		names = names[:0]
		for _, r := range found {
			names = append(names, u.s.Place(r))
		}
		want = "one data structure, but several match: " + strings.Join(names[:min(len(names), mostNames)], ", ")
	}
	return nil, &trace.OptionError{Option: option, Got: name, Want: want}
}

// mostNames is the maximum number of data structures that an error message lists.
const mostNames = 20

// listMembers adds tables of the members of the structures in a data structure.
func (u *dataUse) listMembers(name string) error {
	r, err := u.findData("fields", name)
	if err != nil {
		return err
	}
	use := u.by[r.Object]
	if use == nil || len(use.Elements) == 0 {
		return u.reportMissing("no structure is known for " + u.s.Place(r) + ": it contains single values, or the program was compiled without -g")
	}
	whole := references(byReferences(use)[0])
	for n, e := range byReferences(use) {
		if n > 0 && (u.q.Brief && references(e)*100 < whole) {
			break
		}
		f := newFields(u, e)
		suffix := ""
		if n > 0 {
			suffix = "_" + strconv.Itoa(n+1)
		}
		u.d.Tables = append(u.d.Tables, f.elements("elements"+suffix), f.members("members"+suffix), f.membersUsedTogether("together"+suffix))
		if t := f.advice("advice" + suffix); len(t.Rows) > 0 {
			u.d.Tables = append(u.d.Tables, t)
		}
	}
	return nil
}

// structureUse describes how the elements of one structure type are used.
type structureUse struct {
	*dataUse
	e          *profile.ElementUse
	of         *trace.Structure
	line       uint64 // line size in bytes
	references uint64
	start      uint64 // the most frequent offset of an element in its line
}

func newFields(u *dataUse, e *profile.ElementUse) *structureUse {
	f := &structureUse{dataUse: u, e: e, of: &u.data.Structures[e.Structure], line: uint64(u.data.LineBytes), references: references(e)}
	for i, n := range e.Starts {
		if n > e.Starts[f.start] {
			f.start = uint64(i)
		}
	}
	f.start *= profile.StartBytes
	return f
}

// elements returns a table about the elements as a whole.
func (f *structureUse) elements(key string) report.Table {
	t := report.Table{Key: key, Single: true, Columns: report.Columns("structure", "size_bytes=size (bytes)", "line_bytes=line (bytes)", "references", "visits",
		"start_bytes=usual offset in a line (bytes)", "usual=visits at the usual offset")}
	t.Add(report.TextOf(structureName(f.of)), report.Count(f.of.Bytes), report.Count(f.line), report.Count(f.references), report.Count(f.e.Visits),
		report.Count(f.start), report.Share(f.e.Starts[f.start/profile.StartBytes], f.e.Visits))
	return t
}

// members returns a table with a row for each member, in the order of their offsets.
func (f *structureUse) members(key string) report.Table {
	t := report.Table{Key: key, Title: "Members of " + structureName(f.of), Columns: report.Columns(
		"member", "type", "offset (bytes)", "bytes", "in_line=line within the element", "loads", "stores", "share=of all references", "visits=of all visits")}
	for _, c := range f.caches {
		t.Columns = append(t.Columns, report.Columns(c.Name+"_misses=misses "+c.Name)...)
	}
	add := func(name, kind string, offset, bytes, line report.Value, m *profile.MemberUse) {
		row := []report.Value{report.TextOf(name), report.TextOf(kind), offset, bytes, line, report.Count(m.Loads), report.Count(m.Stores), report.Share(m.References(), f.references), report.Share(m.Visits, f.e.Visits)}
		for _, c := range f.caches {
			lines := c.SizeBytes / f.line
			exact := profile.SiteBinFrom(profile.SiteBin(uint32(min(lines, math.MaxUint32)))) == lines
			row = append(row, missesCell(float64(m.Reuse.Misses(lines)), exact))
		}
		t.Add(row...)
	}
	for i, m := range f.of.Members {
		first, last := (f.start+uint64(m.Offset))/f.line+1, (f.start+uint64(m.Offset+m.Bytes)-1)/f.line+1
		line := strconv.FormatUint(first, 10)
		if last > first {
			line += " to " + strconv.FormatUint(last, 10)
		}
		add(m.Name, m.Type, report.Count(uint64(m.Offset)), report.Count(uint64(m.Bytes)), report.TextOf(line), &f.e.Members[i])
	}
	if rest := &f.e.Members[len(f.of.Members)]; rest.References() > 0 {
		add("(several elements, or padding)", "", report.None(), report.None(), report.TextOf(""), rest)
	}
	return t
}

// sameLine returns the share of visits in which some cache line contains bytes of both members.
func (f *structureUse) sameLine(i, j int) report.Value {
	x, y := &f.of.Members[i], &f.of.Members[j]
	n := uint64(0)
	for at, visits := range f.e.Starts {
		start := uint64(at) * profile.StartBytes
		if (start+uint64(x.Offset+x.Bytes)-1)/f.line >= (start+uint64(y.Offset))/f.line && (start+uint64(y.Offset+y.Bytes)-1)/f.line >= (start+uint64(x.Offset))/f.line {
			n += visits
		}
	}
	return report.Share(n, f.e.Visits)
}

// membersUsedTogether returns a table of pairs of members that are used in the same visits, in
// descending order of visits.
func (f *structureUse) membersUsedTogether(key string) report.Table {
	t := report.Table{Key: key, Title: "Members that are used together", Columns: report.Columns(
		"member", "other", "visits=visits to both", "share=share of the visits to the less used member", "same_line=in the same line")}
	type pair struct{ i, j int }
	var pairs []pair
	for j := range min(len(f.of.Members), profile.MostPaired) {
		for i := range j {
			if f.e.Both(i, j) > 0 {
				pairs = append(pairs, pair{i, j})
			}
		}
	}
	slices.SortStableFunc(pairs, func(x, y pair) int { return cmp.Compare(f.e.Both(y.i, y.j), f.e.Both(x.i, x.j)) })
	for n, p := range pairs {
		if n == mostPairs && f.q.Brief {
			t.Title += ": the first " + strconv.Itoa(mostPairs) + " of " + strconv.Itoa(len(pairs)) + " pairs"
			break
		}
		both := f.e.Both(p.i, p.j)
		t.Add(report.TextOf(f.of.Members[p.i].Name), report.TextOf(f.of.Members[p.j].Name), report.Count(both),
			report.Share(both, min(f.e.Members[p.i].Visits, f.e.Members[p.j].Visits)), f.sameLine(p.i, p.j))
	}
	return t
}

// mostPairs is the maximum number of pairs in brief answers.
const mostPairs = 8

// Thresholds for advice. A member is hot if at least 1/hotVisits of the visits use it. Splitting a
// structure is advised if the other members receive at most 1/coldReferences of the references and
// occupy at least 1/coldBytes of the bytes.
const (
	hotVisits      = 10
	coldReferences = 20
	coldBytes      = 4

	leastGain = 0.25 // a change is advised only if it saves at least this number of lines per visit
)

// classifyMembers divides the members into hot members, rarely used members, and members that are never used.
func (f *structureUse) classifyMembers() (hot, rare, never []int) {
	for i := range f.of.Members {
		switch m := &f.e.Members[i]; {
		case m.References() == 0 && m.Visits == 0:
			never = append(never, i)
		case m.Visits*hotVisits >= f.e.Visits:
			hot = append(hot, i)
		default:
			rare = append(rare, i)
		}
	}
	return hot, rare, never
}

func (f *structureUse) names(list []int) string {
	names := make([]string, len(list))
	for n, i := range list {
		names[n] = f.of.Members[i].Name
	}
	return strings.Join(names, ", ")
}

func (f *structureUse) bytes(list []int) (n uint64) {
	for _, i := range list {
		n += uint64(f.of.Members[i].Bytes)
	}
	return n
}

// linesPerVisit returns the number of cache lines that contain bytes of the given members, averaged
// over all visits.
func (f *structureUse) linesPerVisit(list []int) float64 {
	sum := 0.0
	for at, visits := range f.e.Starts {
		if visits == 0 {
			continue
		}
		lines := map[uint64]bool{}
		for _, i := range list {
			m := &f.of.Members[i]
			for line := (uint64(at)*profile.StartBytes + uint64(m.Offset)) / f.line; line <= (uint64(at)*profile.StartBytes+uint64(m.Offset+m.Bytes)-1)/f.line; line++ {
				lines[line] = true
			}
		}
		sum += float64(visits) * float64(len(lines))
	}
	return sum / float64(max(f.e.Visits, 1))
}

// linesIfAligned returns the number of cache lines that contain bytes of the given members if each
// element begins at a line border.
func (f *structureUse) linesIfAligned(list []int) float64 {
	at := &structureUse{dataUse: f.dataUse, e: &profile.ElementUse{Visits: 1, Starts: []uint64{1}}, of: f.of, line: f.line}
	return at.linesPerVisit(list)
}

// advice returns a table that proposes to split the structure or to reorder its members, and lists
// the members that are never used.
func (f *structureUse) advice(key string) report.Table {
	t := report.Table{Key: key, Title: "What to change", Columns: report.Columns("change", "members", "bytes", "why")}
	hot, rare, never := f.classifyMembers()
	cold := append(slices.Clone(rare), never...)
	slices.Sort(cold)
	rest := uint64(0)
	for _, i := range cold {
		rest += f.e.Members[i].References()
	}
	size := f.bytes(hot)
	switch {
	case len(hot) == 0:
	case len(cold) > 0 && f.bytes(cold)*coldBytes >= f.of.Bytes && rest*coldReferences <= f.references:
		t.Add(report.TextOf("move to a second structure"), report.TextOf(f.names(cold)), report.Count(f.bytes(cold)),
			report.TextOf("The other members ("+f.names(hot)+") receive "+percent(f.references-rest, f.references)+" of the references and occupy "+
				strconv.FormatUint(size, 10)+" of "+strconv.FormatUint(f.of.Bytes, 10)+" bytes. A line then contains "+
				decimal(float64(f.line)/float64(size))+" elements instead of "+decimal(float64(f.line)/float64(f.of.Bytes))+"."))
	case f.linesPerVisit(hot) > f.linesIfAligned(hot)+leastGain && f.of.Bytes%f.line == 0:
		t.Add(report.TextOf("align the elements to lines"), report.TextOf(f.names(hot)), report.Count(size),
			report.TextOf("The members that are used in at least "+percent(1, hotVisits)+" of the visits lie in "+decimal(f.linesPerVisit(hot))+" lines on average; in aligned elements, they would lie in "+decimal(f.linesIfAligned(hot))+"."))
	case f.linesPerVisit(hot) > math.Ceil(float64(size)/float64(f.line))+leastGain && f.of.Bytes > f.line/2:
		t.Add(report.TextOf("put next to each other"), report.TextOf(f.names(hot)), report.Count(size),
			report.TextOf("The members that are used in at least "+percent(1, hotVisits)+" of the visits lie in "+decimal(f.linesPerVisit(hot))+" lines on average. These members fit into "+
				strconv.FormatUint((size+f.line-1)/f.line, 10)+" if they are at the beginning of an aligned structure."))
	}
	if len(never) > 0 {
		t.Add(report.TextOf("remove if no other run needs these members"), report.TextOf(f.names(never)), report.Count(f.bytes(never)),
			report.TextOf("No load or store of this run refers to these members."))
	}
	return t
}

func percent(part, whole uint64) string {
	return strconv.FormatFloat(math.Floor(1000*float64(part)/float64(max(whole, 1)))/10, 'f', -1, 64) + " %"
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// addressMap adds tables of the accesses to a data structure by address and time.
func (u *dataUse) addressMap(name string) error {
	r, err := u.findData("map", name)
	if err != nil {
		return err
	}
	use := u.by[r.Object]
	if use == nil || use.Map.Rows == 0 {
		return u.reportMissing("the run has more than " + strconv.Itoa(profile.MostMaps) + " data structures, and " + u.s.Place(r) + " has no map")
	}
	t := report.Table{Key: "map", Title: "Line accesses to " + u.s.Place(r) + " by time (number of references) and offset from the lowest address of the data", Columns: report.Columns(
		"from_reference=from reference", "offset_bytes=offset (bytes)", "accesses", "cold=first accesses")}
	for _, c := range u.caches {
		t.Columns = append(t.Columns, report.Columns(c.Name+"_misses=misses "+c.Name)...)
	}
	for i := range use.Map.Cells {
		c := &use.Map.Cells[i]
		row := []report.Value{report.Count(uint64(c.Column) * u.data.ColumnReferences), report.Count(uint64(c.Row) * use.Map.RowBytes),
			report.Count(c.Accesses()), report.Count(c.Cold())}
		for _, cache := range u.caches {
			lines := cache.SizeBytes / uint64(u.data.LineBytes)
			row = append(row, missesCell(float64(c.Misses(lines)), profile.MapClassFrom(profile.MapClass(uint32(min(lines, math.MaxUint32)))) == lines))
		}
		t.Add(row...)
	}
	grid := report.Table{Key: "map_grid", Single: true, Columns: report.Columns("columns", "column_references=references per column", "rows", "row_bytes=bytes per row")}
	grid.Add(report.Count((u.Profile.Totals.AllReferences()+u.data.ColumnReferences-1)/u.data.ColumnReferences), report.Count(u.data.ColumnReferences),
		report.Count(uint64(use.Map.Rows)), report.Bytes(use.Map.RowBytes))
	u.d.Tables = append(u.d.Tables, grid, t)
	return nil
}
