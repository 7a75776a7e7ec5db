package answers

import (
	"cmp"
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

// Sites lays out which source lines or data structures make the misses of a hierarchy.
type Sites struct {
	Profile *profile.Profile
	Ranker  *attribution.Ranker
	Levels  []attribution.Attribution
	By      attribution.By
	Name    func(string) string                   // makes a function's name readable; may be nil
	Source  func(file string, line uint32) string // returns the text of a line; may be nil
	// Number is the only column besides those that name a row; "": all columns. All columns
	// of a million rows would take gigabytes.
	Number string

	rows []attribution.Row // in the order of the table
}

// othersName is the name of the row for all other rows.
const othersName = "(all others)"

// Table has a row for each site, line, function or data object, in descending order of misses
// in the first level, or in the order of Sort, and a row for misses that cannot be attributed.
// Only the first top rows stand by themselves; all others are one row.
func (s *Sites) Table(top int) report.Table {
	t := report.Table{Key: "sites"}
	kept := s.kept()
	for _, at := range kept {
		t.Columns = append(t.Columns, s.columns()[at])
	}
	add := func(row []report.Value) {
		if len(kept) < len(row) {
			row = some(row, kept)
		}
		t.Rows = append(t.Rows, row)
	}
	s.rank()
	shown := s.rows[:min(top, len(s.rows))]
	for i := range shown {
		add(s.row(&shown[i]))
	}
	if rest := s.rows[len(shown):]; len(rest) > 0 {
		others := attribution.Row{Object: -1}
		for i := range rest {
			others.Merge(&rest[i])
		}
		add(s.unplaced(othersName, &others))
	}
	if none := attribution.Rest(s.Levels); slices.Max(none.Misses) > 0 || slices.Max(none.Coherence) > 0 {
		add(s.unplaced(attribution.RestName(s.Levels), &none))
	}
	return t
}

// naming are the columns that name a row, between blanks.
const naming = " name function file line column kind variable "

// kept returns the columns of the table.
func (s *Sites) kept() (columns []int) {
	for i, key := range s.Keys() {
		if s.Number == "" || key == s.Number || isNaming(key) {
			columns = append(columns, i)
		}
	}
	return columns
}

func isNaming(key string) bool { return strings.Contains(naming, " "+key+" ") }

// Numbers returns the possible values of Number.
func (s *Sites) Numbers() []string { return slices.DeleteFunc(s.Keys(), isNaming) }

func some(row []report.Value, columns []int) []report.Value {
	list := make([]report.Value, len(columns))
	for i, at := range columns {
		list[i] = row[at]
	}
	return list
}

// rank computes the rows, if there are none yet.
func (s *Sites) rank() {
	if s.rows == nil {
		s.rows = s.Ranker.Rows(s.Levels, s.By, 0)
	}
}

// Reaching returns the number of rows that make a share of the first level's misses.
func (s *Sites) Reaching(share float64) int {
	s.rank()
	return attribution.Reaching(s.rows, 0, share, s.Levels[0].Level.Misses)
}

// Keys returns all columns that a table can have.
func (s *Sites) Keys() (keys []string) {
	for _, c := range s.columns() {
		keys = append(keys, c.Key)
	}
	return keys
}

// Sort sorts the first rows by a column, for the next table: numbers in descending order, words
// in ascending order.
func (s *Sites) Sort(column string, first int) {
	at := slices.Index(s.Keys(), column)
	if at < 0 {
		return
	}
	s.rank()
	type valued struct {
		value report.Value
		row   attribution.Row
	}
	rows := s.rows[:min(first, len(s.rows))]
	sorted := make([]valued, len(rows))
	for i := range rows {
		sorted[i] = valued{s.row(&rows[i])[at], rows[i]}
	}
	sort.SliceStable(sorted, func(i, j int) bool { return report.Compare(sorted[i].value, sorted[j].value) < 0 })
	for i := range rows {
		rows[i] = sorted[i].row
	}
}

// narrow are the columns for people besides misses and utilisation, between blanks.
const narrow = " name function file line kind variable references miss_ratio stride source blocks bytes "

// Narrow drops the columns for programs, except for keep.
func (s *Sites) Narrow(t report.Table, keep string) report.Table {
	var columns []int
	for i := range t.Columns {
		key := t.Columns[i].Key
		if key == keep || strings.Contains(narrow, " "+key+" ") || strings.HasPrefix(key, "utilisation_") ||
			strings.HasSuffix(key, "_misses") && (!strings.HasSuffix(key, coherenceMisses) || key == s.level(0)+coherenceMisses) || strings.HasSuffix(key, "_misses_off") || key == s.level(0)+"_share" {
			columns = append(columns, i)
		}
	}
	return PickColumns(t, columns...)
}

// coherenceMisses ends the key of a level's coherence misses.
const coherenceMisses = "_coherence_misses"

// coherent reports whether a level has coherence misses.
func (s *Sites) coherent(n int) bool { return s.Levels[n].Coherence > 0 }

// level returns a level's name, with which its columns begin.
func (s *Sites) level(n int) string { return s.Levels[n].Level.Cache.Name }

func (s *Sites) columns() (list []report.Column) {
	add := func(texts ...string) { list = append(list, report.Columns(texts...)...) }
	if s.By == attribution.Object {
		add("name=data", "kind=where", "function=allocated or declared in", "file", "line")
	} else {
		add("function", "file", "line")
	}
	if s.Source != nil {
		add("source")
	}
	for n := range s.Levels {
		add(s.level(n) + "_misses=misses " + s.level(n))
		if s.estimated() {
			add(s.level(n) + "_misses_off=±")
		}
		add(s.level(n) + "_share=of all")
		if s.coherent(n) {
			add(s.level(n) + coherenceMisses + "=of coherence")
		}
	}
	add("miss_ratio=miss ratio", "references", "accesses", "cold=first accesses")
	if s.estimated() {
		add("cold_off=±")
	}
	otherLines := slices.ContainsFunc(s.Levels, func(l attribution.Attribution) bool { return l.Level.Cache.LineBytes != s.Profile.Sites.LineBytes })
	for i, lines := range s.Profile.Sites.Capacities {
		bytes := lines * uint64(s.Profile.Sites.LineBytes)
		key, label := "utilisation_"+strconv.FormatUint(bytes, 10), "used in "+hierarchy.FormatSize(bytes)
		if ways := s.Profile.Sites.Ways[i]; ways > 0 {
			key += "_" + strconv.FormatUint(uint64(ways), 10)
			label += "," + strconv.FormatUint(uint64(ways), 10)
		}
		if _, oneCore := s.Ranker.UsedIn(s.Levels, i); oneCore {
			label += " (one core)"
		}
		if otherLines { // utilisation is measured for the line size of the sites
			label += ", lines of " + strconv.FormatUint(uint64(s.Profile.Sites.LineBytes), 10) + " B"
		}
		list = append(list, report.Column{Key: key, Label: label})
	}
	if s.By == attribution.Object {
		add("blocks", "bytes=size")
		return list
	}
	add("stride")
	for c := range profile.NumStrides {
		add(c.String() + "_strides=" + c.String() + " strides")
	}
	add("kind", "variable=data", "type")
	if s.By == attribution.Site {
		add("column", "size", "number", "pc", "module", "offset")
	}
	return list
}

// row returns the row of a source location or of data.
func (s *Sites) row(r *attribution.Row) (row []report.Value) {
	function := r.Function
	if s.Name != nil {
		function = s.Name(function)
	}
	if s.By == attribution.Object {
		o := &s.Profile.Sites.Data[r.Object]
		row = append(row, report.TextOf(objectName(o)), report.TextOf(o.Kind.String()))
	} else if function == "" {
		function = addressOf(&s.Profile.Sites.Code[r.Sites[0]])
	}
	row = append(row, report.TextOf(function), report.TextOf(r.File), report.Known(uint64(r.Line)))
	if s.Source != nil {
		row = append(row, report.TextOf(s.Source(r.File, r.Line)))
	}
	row = s.numbers(row, r)
	if s.By == attribution.Object {
		o := &s.Profile.Sites.Data[r.Object]
		return append(row, report.Known(o.Blocks), report.Bytes(o.Bytes))
	}
	row = append(row, s.strides(r)...)
	row = append(row,
		report.TextOf(s.joined(r, func(c *profile.Site) string { return c.Kind.String() })),
		report.TextOf(s.joined(r, func(c *profile.Site) string { return c.Variable })),
		report.TextOf(s.joined(r, func(c *profile.Site) string { return c.Type })))
	if s.By == attribution.Site {
		row = append(row, identity(&s.Profile.Sites.Code[r.Sites[0]])...)
	}
	return row
}

// unplaced returns a row without a source location.
func (s *Sites) unplaced(name string, r *attribution.Row) (row []report.Value) {
	row = append(row, report.TextOf(name))
	for _, c := range s.columns()[1:] {
		if c.Key == s.level(0)+"_misses" {
			break
		}
		row = append(row, report.TextOf(""))
		if c.Key == "line" {
			row[len(row)-1] = report.None()
		}
	}
	row = s.numbers(row, r)
	if s.By != attribution.Object && r.References > 0 {
		row = append(row, s.strides(r)...)
		row = append(row, report.TextOf(""), report.TextOf(""), report.TextOf(""))
	}
	for len(row) < len(s.columns()) {
		row = append(row, report.None())
	}
	return row
}

// objectName returns a data object's name, or a name for its kind.
func objectName(o *profile.DataObject) string {
	switch {
	case o.Name != "":
		return o.Name
	case o.Kind == profile.HeapObject:
		return "[blocks]"
	case o.Kind == profile.StackObject:
		return "[stacks]"
	}
	return "[all other data]"
}

// addressOf names an instruction without a known function.
func addressOf(s *profile.Site) string {
	switch {
	case s.Module != "":
		return s.Module + "+0x" + strconv.FormatUint(s.Offset, 16)
	case s.PC != 0:
		return "0x" + strconv.FormatUint(s.PC, 16)
	case s.Number != profile.NoSite:
		return "site " + strconv.FormatUint(uint64(s.Number), 10)
	}
	return "(not known)"
}

// numbers appends the numbers that every row has.
func (s *Sites) numbers(row []report.Value, r *attribution.Row) []report.Value {
	for n := range s.Levels {
		share := report.None()
		if total := s.Levels[n].Level.Misses; total > 0 {
			share = report.Ratio(r.Misses[n] / total)
		}
		row = append(row, report.Real(r.Misses[n]))
		if s.estimated() {
			row = append(row, s.missesOff(r, n))
		}
		row = append(row, share)
		if s.coherent(n) {
			row = append(row, report.Real(r.Coherence[n]))
		}
	}
	counts := []report.Value{report.None(), report.None(), report.None(), report.None(), report.None()}
	if r.Accesses > 0 {
		counts = []report.Value{report.Ratio(r.Misses[0] / float64(r.Accesses)), report.Count(r.References), report.Count(r.Accesses), report.Count(r.Cold), s.coldOff(r)}
	}
	if !s.estimated() {
		counts = counts[:4]
	}
	row = append(row, counts...)
	for c := range s.Profile.Sites.Capacities {
		used := report.None()
		if c < len(r.Used) && r.Used[c].Fetched > 0 {
			used = report.Ratio(r.Used[c].Share(s.Profile.Sites.LineBytes))
		}
		row = append(row, used)
	}
	return row
}

// estimated reports whether misses are estimated from a sample.
func (s *Sites) estimated() bool { return s.Profile.Sampled.Estimates() && IsOfSample(s.Profile) }

// missesOff is half the width of the interval of a row's misses at a level. The errors of its
// sites may have the same sign. A row without a source location has none.
func (s *Sites) missesOff(r *attribution.Row, level int) report.Value {
	if r.Accesses == 0 {
		return report.None()
	}
	lines := s.Levels[level].Level.Cache.SizeBytes / uint64(s.Profile.Sites.LineBytes)
	off, c := uint64(0), s.Profile.Sites.Coherent
	switch private := s.Levels[level].Private; {
	case private && (c == nil || s.By == attribution.Object && r.Object < 0):
		return report.None()
	case private && s.By == attribution.Object:
		off = c.Data[r.Object].OffAt(lines)
	case private:
		for _, i := range r.Sites {
			off += c.Code[i].OffAt(lines)
		}
	default:
		for _, u := range s.reuses(r) {
			off += u.OffAt(lines)
		}
	}
	return report.Count(min(off, r.Accesses))
}

// coldOff is half the width of the interval of first accesses.
func (s *Sites) coldOff(r *attribution.Row) report.Value {
	off := uint64(0)
	for _, u := range s.reuses(r) {
		if n := len(u.Off); n > 0 {
			off += u.Off[n-1].Count
		}
	}
	return report.Count(min(off, r.Accesses))
}

func (s *Sites) strides(r *attribution.Row) []report.Value {
	row := []report.Value{report.TextOf(r.Stride().String())}
	for _, n := range r.Strides {
		row = append(row, report.Count(n))
	}
	return row
}

// joined lists the distinct texts of a row's sites.
func (s *Sites) joined(r *attribution.Row, text func(*profile.Site) string) string {
	var texts []string
	for _, i := range r.Sites {
		if t := text(&s.Profile.Sites.Code[i]); t != "" && !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// identity returns the cells that identify a site in the trace and in the program.
func identity(s *profile.Site) []report.Value {
	number, pc, offset := report.None(), report.None(), report.None()
	if s.Number != profile.NoSite {
		number = report.Count(uint64(s.Number))
	}
	if s.PC != 0 {
		pc = report.TextOf("0x" + strconv.FormatUint(s.PC, 16))
	}
	if s.Module != "" {
		offset = report.TextOf("0x" + strconv.FormatUint(s.Offset, 16))
	}
	return []report.Value{report.Known(uint64(s.Column)), report.Count(uint64(s.Bytes)), number, pc, report.TextOf(s.Module), offset}
}

// Before has rows for the first rows of the table: the three rows that most often touched their
// lines before, at distances from profile.PreviousFrom on. For data objects these are source lines.
func (s *Sites) Before(top int) report.Table {
	t := report.Table{Key: "before", Title: "Who touched the lines before", Columns: report.Columns(
		"of=accesses of", "place=line touched before by", "accesses", "share=of these")}
	s.rank()
	code := Sites{Profile: s.Profile, By: s.By, Name: s.Name, rows: s.rows}
	if s.By == attribution.Object {
		code.By, code.rows = attribution.Line, s.Ranker.Rows(s.Levels, attribution.Line, 0)
	}
	rowOf := map[uint32]int{}
	for n := range code.rows {
		for _, site := range code.rows[n].Sites {
			rowOf[uint32(site)] = n
		}
	}
	for n := range s.rows[:min(top, len(s.rows))] {
		counts, total := map[int]uint64{}, uint64(0)
		for _, r := range s.reuses(&s.rows[n]) {
			for _, c := range r.Before {
				counts[rowOf[c.Site]] += c.Count
				total += c.Count
			}
		}
		var others []int
		for other := range counts {
			others = append(others, other)
		}
		sort.Slice(others, func(i, j int) bool {
			return cmp.Or(cmp.Compare(counts[others[j]], counts[others[i]]), cmp.Compare(others[i], others[j])) < 0
		})
		for _, other := range others[:min(3, len(others))] {
			t.Add(report.TextOf(s.Place(&s.rows[n])), report.TextOf(code.Place(&code.rows[other])),
				report.Count(counts[other]), report.Ratio(float64(counts[other])/float64(total)))
		}
	}
	return t
}

// Distances has the accesses of the row that Place names; ok is false if there is none.
func (s *Sites) Distances(place string) (t report.Table, ok bool) {
	s.rank()
	for i := range s.rows {
		if s.Place(&s.rows[i]) == place {
			return s.DistancesOf(&s.rows[i]), true
		}
	}
	return t, false
}

// DistancesOf returns the accesses of a row by stack distance, in powers of two.
func (s *Sites) DistancesOf(r *attribution.Row) report.Table {
	t := report.Table{Key: "distances", Title: "Accesses by stack distance, of " + s.Place(r), Columns: report.Columns("distance (lines)", "count=accesses", "share")}
	counts, cold := s.Binned(r)
	total := cold
	for _, n := range counts {
		total += n
	}
	for k, n := range counts {
		t.Add(report.TextOf(BinName(k)), report.Count(n), report.Share(n, total))
	}
	t.Add(report.TextOf("cold"), report.Count(cold), report.Share(cold, total))
	return t
}

// Binned returns a row's accesses in the bins of the histogram, up to the longest distance, and
// its cold misses.
func (s *Sites) Binned(r *attribution.Row) (counts []uint64, cold uint64) {
	counts = make([]uint64, 1, profile.WindowBins)
	for _, reuse := range s.reuses(r) {
		cold += reuse.Cold
		for _, b := range reuse.Bins {
			k := profile.DistanceBin(profile.SiteBinFrom(int(b.Bin)))
			for len(counts) <= k {
				counts = append(counts, 0)
			}
			counts[k] += b.Count
		}
	}
	return counts, cold
}

// reuses returns the counts of a row's sites or of its data object. The row of all other objects
// has none.
func (s *Sites) reuses(r *attribution.Row) (list []*profile.Reuse) {
	switch {
	case s.By == attribution.Object && r.Object < 0:
		return nil
	case s.By == attribution.Object:
		return []*profile.Reuse{&s.Profile.Sites.Data[r.Object].Reuse}
	}
	for _, i := range r.Sites {
		list = append(list, &s.Profile.Sites.Code[i].Reuse)
	}
	return list
}

// Place names a row in a few words.
func (s *Sites) Place(r *attribution.Row) string {
	name := r.Function
	if s.Name != nil {
		name = s.Name(name)
	}
	if s.By == attribution.Object {
		name = strings.TrimSpace(objectName(&s.Profile.Sites.Data[r.Object]) + " " + name)
	}
	if name == "" && len(r.Sites) > 0 {
		name = addressOf(&s.Profile.Sites.Code[r.Sites[0]])
	}
	if r.Line != 0 {
		name += " " + r.File + ":" + strconv.FormatUint(uint64(r.Line), 10)
	}
	if s.By == attribution.Site {
		c := &s.Profile.Sites.Code[r.Sites[0]]
		name += " " + c.Kind.String()
		if c.Variable != "" {
			name += " " + c.Variable
		}
	}
	return name
}

// Estimated warns about levels at which the sites' misses are estimates, though an analysis
// could count them.
func Estimated(levels []attribution.Attribution) (list []string) {
	for i := range levels {
		l := &levels[i]
		if l.Countable == "" || l.Level.Misses == 0 {
			continue
		}
		text := l.Level.Cache.Name + ": which places miss is estimated from their distances"
		if l.Rest > 0 {
			text += ", and " + strconv.FormatFloat(100*l.Rest/l.Level.Misses, 'f', 1, 64) + " % of its misses are of none"
		}
		list = append(list, text+"; analyze the trace with --utilisation "+l.Countable+" to count them")
	}
	return list
}

// MissingSites warns about references without a known source location.
func MissingSites(p *profile.Profile) (list []string) {
	s := p.Sites
	unknown, all := uint64(0), uint64(0)
	for i := range s.Code {
		n := s.Code[i].References()
		if all += n; s.Code[i].Function == "" && s.Code[i].File == "" {
			unknown += n
		}
	}
	const few = 2000 // below 0.05 %, the share would be written as 0.0 %
	if unknown > 0 && unknown >= all/few && p.Input.Kinds != 1<<trace.Fetch {
		share := strconv.FormatFloat(100*float64(unknown)/float64(all), 'f', 1, 64)
		list = append(list, share+" % of the references have no known place in the source: instructions are named by their addresses; --symbols FILE names them where FILE is the program that was traced")
	}
	return list
}
