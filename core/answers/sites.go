package answers

import (
	"cmp"
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

// Sites provides tables of the source lines or data structures that cause the misses of a
// hierarchy.
type Sites struct {
	Profile *profile.Profile
	Ranker  *attribution.Ranker
	Levels  []attribution.Attribution
	By      attribution.By
	Name    func(string) string                   // makes a function's name readable; may be nil
	Source  func(file string, line uint32) string // returns the text of a source line; may be nil
	// If Number is not "", tables contain only the column with this key and the columns that name a
	// row. This saves memory: all columns of a million rows would take gigabytes.
	Number string

	rows []attribution.Row // ranked by misses in the first level
	all  []siteColumn
}

type siteColumn struct {
	report.Column
	part sitePart
	cell func(*attribution.Row) report.Value
}

// sitePart is the kind of a column. It determines which cells are empty in rows without a source
// location.
type sitePart uint8

const (
	inPlace    sitePart = iota
	inCounts            // columns for misses, accesses and fetched bytes, which have a value in every row
	inStrides           // columns for strides, which have a value only in rows with references
	inWords             // columns with texts about the sites of a row
	inIdentity          // columns that identify a single site or data object
)

// othersName is the name of the row that sums all other rows.
const othersName = "(all others)"

// Table returns a table with a row for each site, line, function or data object, in the given order
// (see [Sites.Order]), and a row for misses that cannot be attributed. The table lists at most the
// given number of rows (top), and combines the rest into one row.
func (s *Sites) Table(order []int, top int) report.Table {
	t := report.Table{Key: "sites"}
	var kept []siteColumn
	for _, c := range s.columns() {
		if s.Number == "" || c.Key == s.Number || isNaming(c.Key) {
			kept, t.Columns = append(kept, c), append(t.Columns, c.Column)
		}
	}
	add := func(r *attribution.Row, name string) {
		row := make([]report.Value, len(kept))
		for i, c := range kept {
			switch {
			case name == "":
				row[i] = c.cell(r)
			case i == 0:
				row[i] = report.TextOf(name)
			default:
				row[i] = c.cellWithoutLocation(r)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	shown, rest := order[:min(top, len(order))], order[min(top, len(order)):]
	for _, i := range shown {
		add(&s.rows[i], "")
	}
	if len(rest) > 0 {
		others := attribution.Row{Object: -1}
		for _, i := range rest {
			others.Merge(&s.rows[i])
		}
		add(&others, othersName)
	}
	if none := attribution.Rest(s.Levels); slices.Max(none.Misses) > 0 || slices.Max(none.Coherence) > 0 {
		add(&none, attribution.RestName(s.Levels))
	}
	return t
}

// cellWithoutLocation returns the cell for a row without a source location.
func (c *siteColumn) cellWithoutLocation(r *attribution.Row) report.Value {
	switch {
	case c.part == inCounts, c.part == inStrides && r.References > 0:
		return c.cell(r)
	case c.part == inPlace && c.Key != "line", c.part == inWords && r.References > 0:
		return report.TextOf("")
	}
	return report.None()
}

// namingColumns lists the columns that name a row, separated by blanks.
const namingColumns = " name function file line column kind variable "

func isNaming(key string) bool { return strings.Contains(namingColumns, " "+key+" ") }

func (s *Sites) Numbers() []string { return slices.DeleteFunc(s.Keys(), isNaming) }

// Rows returns the rows, ranked by misses in the first level.
func (s *Sites) Rows() []attribution.Row {
	if s.rows == nil {
		s.rows = s.Ranker.Rows(s.Levels, s.By, 0)
	}
	return s.rows
}

// Reaching returns the smallest set of rows that together cause at least the given share of a
// level's misses. The rows are in descending order of misses.
func (s *Sites) Reaching(level int, share float64) []int {
	order, sum := s.Order(s.levelName(level)+"_misses", math.MaxInt), 0.0
	for i, row := range order {
		if sum >= share*s.Levels[level].Level.Misses {
			return order[:i]
		}
		sum += s.rows[row].Misses[level]
	}
	return order
}

// Keys returns the keys of all columns that the table can contain.
func (s *Sites) Keys() (keys []string) {
	for _, c := range s.columns() {
		keys = append(keys, c.Key)
	}
	return keys
}

// Column returns the column with this key, and its cells. ok is false if there is no such column.
func (s *Sites) Column(key string) (c report.Column, cell func(*attribution.Row) report.Value, ok bool) {
	all := s.columns()
	at := slices.IndexFunc(all, func(c siteColumn) bool { return c.Key == key })
	if at < 0 {
		return c, nil, false
	}
	return all[at].Column, all[at].cell, true
}

// Order returns the rows in the order of a column. Numbers are in descending order, except
// utilisation, which is in ascending order; texts are in ascending order. Rows with equal values
// are ranked by their misses in the first level. If there is no such column, all rows are ranked by
// these misses. Order sorts only the rows with the most misses, up to the given number (first).
func (s *Sites) Order(column string, first int) []int {
	sign := -1.
	if strings.HasPrefix(column, utilisation) {
		sign = 1
	}
	_, cell, ok := s.Column(column)
	if !ok || column == s.levelName(0)+"_misses" {
		first = 0
	}
	return s.OrderBy(first, func(row int) (key float64, text string) {
		value := cell(&s.rows[row])
		if x, is := value.Number(); is {
			return sign * x, ""
		} else if report.Equal(value, report.None()) {
			return math.Inf(1), ""
		}
		return 0, value.Plain()
	})
}

// OrderBy sorts rows by the number that the function key returns for a row and, if the numbers are
// equal, by the text that key returns, both in ascending order. OrderBy sorts only the rows with
// the most misses: as many rows as the parameter first states. All other rows keep their order.
func (s *Sites) OrderBy(first int, key func(row int) (float64, string)) []int {
	o := rowOrder{make([]int, len(s.Rows())), make([]float64, min(first, len(s.rows))), make([]string, min(first, len(s.rows)))}
	for i := range o.order {
		o.order[i] = i
	}
	for i := range o.keys {
		o.keys[i], o.texts[i] = key(i)
	}
	sort.Sort(&o)
	return o.order
}

// rowOrder implements [sort.Interface]. Rows with equal keys, and rows without a key, keep their
// order.
type rowOrder struct {
	order []int
	keys  []float64
	texts []string
}

func (o *rowOrder) Len() int      { return len(o.keys) }
func (o *rowOrder) Swap(i, j int) { o.order[i], o.order[j] = o.order[j], o.order[i] }
func (o *rowOrder) Less(i, j int) bool {
	x, y := o.order[i], o.order[j]
	if o.keys[x] != o.keys[y] {
		return o.keys[x] < o.keys[y]
	}
	if c := strings.Compare(o.texts[x], o.texts[y]); c != 0 {
		return c < 0
	}
	return x < y
}

// narrowColumns lists the columns that [Sites.Narrow] keeps besides misses and utilisation,
// separated by blanks.
const narrowColumns = " name function file line kind variable references miss_ratio stride prefetch_coverage source blocks bytes "

// Narrow drops columns that only programs need. Narrow always keeps the column whose key is the
// parameter keep.
func (s *Sites) Narrow(t report.Table, keep string) report.Table {
	var columns []int
	for i := range t.Columns {
		key := t.Columns[i].Key
		if key == keep || strings.Contains(narrowColumns, " "+key+" ") || strings.HasPrefix(key, utilisation) ||
			strings.HasSuffix(key, "_misses") && (!strings.HasSuffix(key, coherenceMisses) || key == s.levelName(0)+coherenceMisses) || strings.HasSuffix(key, "_misses_off") || key == s.levelName(0)+"_share" {
			columns = append(columns, i)
		}
	}
	return PickColumns(t, columns...)
}

// Parts of column keys: the suffix of the columns for coherence misses, and the prefix of the
// columns for utilisation.
const (
	coherenceMisses = "_coherence_misses"
	utilisation     = "utilisation_"
)

func (s *Sites) coherent(n int) bool { return s.Levels[n].Coherence > 0 }

// levelName returns the name of a level. The name is also the prefix of the keys of the level's
// columns.
func (s *Sites) levelName(n int) string { return s.Levels[n].Level.Cache.Name }

func (s *Sites) columns() []siteColumn {
	if s.all == nil {
		s.addPlace()
		for n := range s.Levels {
			s.addLevel(n)
		}
		s.addCounts()
		for i := range s.Profile.Sites.Capacities {
			if !s.isPart() {
				s.addUtilisation(i)
			}
		}
		if s.By == attribution.Object {
			s.add(inIdentity, "blocks", func(r *attribution.Row) report.Value { return report.Known(s.object(r).Blocks) })
			s.add(inIdentity, "bytes=size", func(r *attribution.Row) report.Value { return ObjectSize(s.object(r)) })
		} else {
			s.addCode()
		}
	}
	return s.all
}

// add appends a column. The parameter text has the form KEY or KEY=LABEL.
func (s *Sites) add(part sitePart, text string, cell func(*attribution.Row) report.Value) {
	s.all = append(s.all, siteColumn{report.Columns(text)[0], part, cell})
}

// addText appends a column of text.
func (s *Sites) addText(part sitePart, text string, of func(*attribution.Row) string) {
	s.add(part, text, func(r *attribution.Row) report.Value { return report.TextOf(of(r)) })
}

func (s *Sites) object(r *attribution.Row) *profile.DataObject {
	return &s.Profile.Sites.Data[r.Object]
}

// addPlace appends the columns for the location of a row.
func (s *Sites) addPlace() {
	function := func(r *attribution.Row) string {
		if s.Name != nil {
			return s.Name(r.Function)
		}
		return r.Function
	}
	if s.By == attribution.Object {
		s.addText(inPlace, "name=data", func(r *attribution.Row) string { return ObjectName(s.object(r), s.Name) })
		s.addText(inPlace, "kind=where", func(r *attribution.Row) string { return s.object(r).Kind.String() })
		s.addText(inPlace, "function=allocated or declared in", function)
	} else {
		s.addText(inPlace, "function", func(r *attribution.Row) string {
			if name := function(r); name != "" {
				return name
			}
			return AddressOf(&s.Profile.Sites.Code[r.Sites[0]])
		})
	}
	s.addText(inPlace, "file", func(r *attribution.Row) string { return r.File })
	s.add(inPlace, "line", func(r *attribution.Row) report.Value { return report.Known(uint64(r.Line)) })
	if s.Source != nil {
		s.addText(inPlace, "source", func(r *attribution.Row) string { return s.Source(r.File, r.Line) })
	}
}

// addLevel appends the columns for the misses in a level.
func (s *Sites) addLevel(n int) {
	l := &s.Levels[n]
	s.add(inCounts, s.levelName(n)+"_misses=misses "+s.levelName(n), func(r *attribution.Row) report.Value { return numberCell(r.Misses[n], l.Exact) })
	if s.isEstimated() {
		s.add(inCounts, s.levelName(n)+"_misses_off=±", func(r *attribution.Row) report.Value { return s.missesOff(r, n) })
	}
	s.add(inCounts, s.levelName(n)+"_share=of all", func(r *attribution.Row) report.Value {
		if l.Level.Misses == 0 {
			return report.None()
		}
		return report.Ratio(r.Misses[n] / l.Level.Misses)
	})
	if s.coherent(n) {
		s.add(inCounts, s.levelName(n)+coherenceMisses+"=of coherence", func(r *attribution.Row) report.Value { return numberCell(r.Coherence[n], l.Exact) })
	}
}

// addCounts appends the columns for accesses. These columns are empty in the row for misses that
// cannot be attributed.
func (s *Sites) addCounts() {
	add := func(text string, cell func(*attribution.Row) report.Value) {
		s.add(inCounts, text, func(r *attribution.Row) report.Value {
			if r.Accesses == 0 {
				return report.None()
			}
			return cell(r)
		})
	}
	add("miss_ratio=miss ratio", func(r *attribution.Row) report.Value { return report.Ratio(r.Misses[0] / float64(r.Accesses)) })
	if !s.isPart() {
		add("references", func(r *attribution.Row) report.Value { return report.Count(r.References) })
	}
	add("accesses", func(r *attribution.Row) report.Value { return report.Count(r.Accesses) })
	add("cold=first accesses", func(r *attribution.Row) report.Value { return report.Count(r.Cold) })
	if s.isEstimated() {
		add("cold_off=±", s.coldOff)
	}
}

// addUtilisation appends the column for the i-th measured line utilisation.
func (s *Sites) addUtilisation(i int) {
	of := s.Profile.Sites
	bytes := of.Capacities[i] * uint64(of.LineBytes)
	key, label := utilisation+strconv.FormatUint(bytes, 10), "used in "+hierarchy.FormatSize(bytes)
	if ways := of.Ways[i]; ways > 0 {
		key += "_" + strconv.FormatUint(uint64(ways), 10)
		label += "," + strconv.FormatUint(uint64(ways), 10)
	}
	if _, oneCore := s.Ranker.UsedIn(s.Levels, i); oneCore {
		label += " (one core)"
	}
	if slices.ContainsFunc(s.Levels, func(l attribution.Attribution) bool { return l.Level.Cache.LineBytes != of.LineBytes }) {
		label += ", lines of " + strconv.FormatUint(uint64(of.LineBytes), 10) + " B"
	}
	s.add(inCounts, key+"="+label, func(r *attribution.Row) report.Value {
		if i >= len(r.Used) || r.Used[i].Fetched == 0 {
			return report.None()
		}
		return report.Ratio(r.Used[i].Share(of.LineBytes))
	})
}

// addCode appends the columns that describe the sites of a row and, for a table of sites, the
// columns that identify each site.
func (s *Sites) addCode() {
	if !s.isPart() {
		s.addText(inStrides, "stride", func(r *attribution.Row) string { return r.Stride().String() })
	}
	for c := range profile.NumStrides {
		if s.isPart() {
			break
		}
		s.add(inStrides, c.String()+"_strides="+c.String()+" strides", func(r *attribution.Row) report.Value { return report.Count(r.Strides[c]) })
	}
	if !s.isPart() {
		label := "prefetch coverage"
		if !s.CoverageIsExact() {
			label += " (≈)"
		}
		s.add(inStrides, "prefetch_coverage="+label, func(r *attribution.Row) report.Value {
			share, ok := s.Coverage(r)
			if !ok {
				return report.None()
			}
			return report.Ratio(share)
		})
	}
	s.addText(inWords, "kind", func(r *attribution.Row) string {
		return s.distinctTexts(r, func(c *profile.Site) string { return c.Kind.String() })
	})
	s.addText(inWords, "variable=data", func(r *attribution.Row) string {
		return s.distinctTexts(r, func(c *profile.Site) string { return c.Variable })
	})
	s.addText(inWords, "type", func(r *attribution.Row) string {
		return s.distinctTexts(r, func(c *profile.Site) string { return c.Type })
	})
	if s.By != attribution.Site {
		return
	}
	add := func(key string, cell func(c *profile.Site) report.Value) {
		s.add(inIdentity, key, func(r *attribution.Row) report.Value { return cell(&s.Profile.Sites.Code[r.Sites[0]]) })
	}
	hex := func(n uint64, known bool) report.Value {
		if !known {
			return report.None()
		}
		return report.TextOf("0x" + strconv.FormatUint(n, 16))
	}
	add("column", func(c *profile.Site) report.Value { return report.Known(uint64(c.Column)) })
	add("size", func(c *profile.Site) report.Value { return report.Count(uint64(c.Bytes)) })
	add("number", func(c *profile.Site) report.Value {
		if c.Number == profile.NoSite {
			return report.None()
		}
		return report.Count(uint64(c.Number))
	})
	add("pc", func(c *profile.Site) report.Value { return hex(c.PC, c.PC != 0) })
	add("module", func(c *profile.Site) report.Value { return report.TextOf(c.Module) })
	add("offset", func(c *profile.Site) report.Value { return hex(c.Offset, c.Module != "") })
}

// Coverage returns the share of a row's misses that a prefetcher covers in a fully associative cache
// of the first level's size. ok is false if the share is unknown.
func (s *Sites) Coverage(r *attribution.Row) (share float64, ok bool) {
	return s.Profile.Sites.Coverage(r.Sites, s.coveredLines())
}

// CoverageIsExact reports whether Coverage refers to exactly the misses of the first level. This
// requires a fully associative level that all threads share.
func (s *Sites) CoverageIsExact() bool {
	l := &s.Levels[0]
	if s.isPart() || !l.Exact || !l.Level.Cache.Full() || l.Private {
		return false
	}
	lines := s.coveredLines()
	for i, misses := range l.Sites { // the numbers differ if the size falls within a bin of distances
		if math.Abs(misses-float64(s.Profile.Sites.Code[i].Reuse.Misses(lines))) > 0.5 {
			return false
		}
	}
	return true
}

// coveredLines returns the number of lines of the cache to which Coverage refers.
func (s *Sites) coveredLines() uint64 {
	return s.Levels[0].Level.Cache.SizeBytes / uint64(s.Profile.Sites.LineBytes)
}

// ObjectSize returns the size of a data structure. The size of some variables on a stack is unknown.
func ObjectSize(o *profile.DataObject) report.Value {
	if o.Bytes == 0 {
		return report.None()
	}
	return report.Bytes(o.Bytes)
}

// ObjectName returns a data structure's name. If no variable refers to a memory block, ObjectName
// uses the name of the allocating function. The parameter readable demangles that name; it may be
// nil.
func ObjectName(o *profile.DataObject, readable func(string) string) string {
	switch {
	case o.Name != "":
		return o.Name
	case o.Kind == profile.HeapObject && o.Function != "" && readable != nil:
		return "[blocks of " + readable(o.Function) + "]"
	case o.Kind == profile.HeapObject && o.Function != "":
		return "[blocks of " + o.Function + "]"
	case o.Kind == profile.HeapObject:
		return "[blocks]"
	case o.Kind == profile.StackObject:
		return "[stacks]"
	}
	return "[all other data]"
}

// Allocated describes an array by the source line that allocates it, for example "the array from
// main.c:12 in f". The parameter name is a function that demangles function names; it may be nil.
func Allocated(o *profile.DataObject, name func(string) string) string {
	text := "the array from " + o.File + ":" + strconv.FormatUint(uint64(o.Line), 10)
	if o.Function == "" {
		return text
	}
	function := o.Function
	if name != nil {
		function = name(function)
	}
	if strings.HasPrefix(function, "std::vector") {
		return "a std::vector" // the line is in a header of the standard library
	}
	return text + " in " + function
}

// AddressOf names an instruction by its address if its function is unknown.
func AddressOf(s *profile.Site) string {
	switch {
	case s.Module != "":
		return s.Module + "+0x" + strconv.FormatUint(s.Offset, 16)
	case s.PC != 0:
		return "0x" + strconv.FormatUint(s.PC, 16)
	case s.Number != profile.NoSite:
		return "site " + strconv.FormatUint(uint64(s.Number), 10)
	}
	return "(unknown)"
}

// isPart reports whether the numbers describe only a part of the run. References, strides and line
// utilisation are known only for the whole run.
func (s *Sites) isPart() bool { return s.Ranker.Part() }

// isEstimated reports whether misses are estimated from a sample.
func (s *Sites) isEstimated() bool { return s.Profile.Sampled.Estimates() && IsOfSample(s.Profile) }

// missesOff returns the half-width of the confidence interval for a row's misses in a level. It
// adds the half-widths of the row's sites, because their errors may have the same sign. A row
// without a source location has no interval.
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
		for _, u := range s.reuseCounts(r) {
			off += u.OffAt(lines)
		}
	}
	return report.Count(min(off, r.Accesses))
}

// coldOff returns the half-width of the confidence interval for a row's cold misses.
func (s *Sites) coldOff(r *attribution.Row) report.Value {
	off := uint64(0)
	for _, u := range s.reuseCounts(r) {
		if n := len(u.Off); n > 0 {
			off += u.Off[n-1].Count
		}
	}
	return report.Count(min(off, r.Accesses))
}

// distinctTexts lists the distinct texts of a row's sites, separated by commas.
func (s *Sites) distinctTexts(r *attribution.Row, text func(*profile.Site) string) string {
	var texts []string
	for _, i := range r.Sites {
		if t := text(&s.Profile.Sites.Code[i]); t != "" && !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// Before returns a table of previous accesses. For each given row, the table lists the three rows
// that most often made the previous access to the same cache line. Accesses with stack distances
// below profile.PreviousFrom are ignored. If the given rows are data objects, the listed rows are
// source lines.
func (s *Sites) Before(of []int) report.Table {
	t := report.Table{Key: "before", Title: "Code that previously accessed the same lines", Columns: report.Columns(
		"of=accesses of", "place=previous access by", "accesses", "share")}
	code := Sites{Profile: s.Profile, Ranker: s.Ranker, By: s.By, Name: s.Name, rows: s.Rows()}
	if s.By == attribution.Object {
		code.By, code.rows = attribution.Line, s.Ranker.Rows(s.Levels, attribution.Line, 0)
	}
	rowOf := map[uint32]int{}
	for n := range code.rows {
		for _, site := range code.rows[n].Sites {
			rowOf[uint32(site)] = n
		}
	}
	for _, n := range of {
		counts, total := map[int]uint64{}, uint64(0)
		for _, r := range s.reuseCounts(&s.rows[n]) {
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

// Distances returns a table of accesses by stack distance for one row, given by its description
// (see [Sites.Place]). The result ok is false if there is no such row.
func (s *Sites) Distances(place string) (t report.Table, ok bool) {
	for i := range s.Rows() {
		if s.Place(&s.rows[i]) == place {
			return s.DistancesOf(&s.rows[i]), true
		}
	}
	return t, false
}

// DistancesOf returns a table of a row's accesses by stack distance, in power-of-two bins.
func (s *Sites) DistancesOf(r *attribution.Row) report.Table {
	counts, cold := s.Binned(r)
	return Distances("Accesses of "+s.Place(r)+", by stack distance", counts, cold)
}

// Distances returns a table of the number of accesses in each bin of a histogram, followed by the
// cold misses.
func Distances(title string, counts []uint64, cold uint64) report.Table {
	t := report.Table{Key: "distances", Title: title, Columns: report.Columns("distance (lines)", "count=accesses", "share")}
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

// Binned returns a row's histogram of stack distances, up to the bin of the longest distance, and
// its number of cold misses.
func (s *Sites) Binned(r *attribution.Row) (counts []uint64, cold uint64) {
	counts = make([]uint64, 1, profile.WindowBins)
	for _, reuse := range s.reuseCounts(r) {
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

// reuseCounts returns the reuse profiles of a row's sites or of its data object. The row for all
// other objects has no reuse profile.
func (s *Sites) reuseCounts(r *attribution.Row) (list []*profile.Reuse) {
	switch {
	case s.By == attribution.Object && r.Object < 0:
		return nil
	case s.By == attribution.Object:
		return []*profile.Reuse{s.Ranker.Reuse(s.By, r.Object)}
	}
	for _, i := range r.Sites {
		list = append(list, s.Ranker.Reuse(s.By, i))
	}
	return list
}

// Place returns a short description of a row.
func (s *Sites) Place(r *attribution.Row) string {
	name := r.Function
	if s.Name != nil {
		name = s.Name(name)
	}
	if s.By == attribution.Object {
		name = strings.TrimSpace(ObjectName(&s.Profile.Sites.Data[r.Object], s.Name) + " " + name)
	}
	if name == "" && len(r.Sites) > 0 {
		name = AddressOf(&s.Profile.Sites.Code[r.Sites[0]])
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

// Estimated returns a warning for each level in which the misses of sites are estimated although an
// analysis could count them.
func Estimated(levels []attribution.Attribution) (list []string) {
	for i := range levels {
		l := &levels[i]
		if l.Countable == "" || l.Level.Misses == 0 {
			continue
		}
		text := l.Level.Cache.Name + ": the misses of each source location are estimated from its stack distances"
		if l.Rest > 0 {
			text += ", and " + strconv.FormatFloat(100*l.Rest/l.Level.Misses, 'f', 1, 64) + " % of the level's misses cannot be attributed"
		}
		list = append(list, text+"; analyze the trace with --utilisation "+l.Countable+" to count them")
	}
	return list
}

// MissingSites returns a warning if references have no known source location.
func MissingSites(p *profile.Profile) (list []string) {
	s := p.Sites
	unknown, all := uint64(0), uint64(0)
	for i := range s.Code {
		n := s.Code[i].References()
		if all += n; s.Code[i].Function == "" && s.Code[i].File == "" {
			unknown += n
		}
	}
	const few = 2000 // shares below 1/2000 (0.05 %) would be written as 0.0 %
	if unknown > 0 && unknown >= all/few && p.Input.Kinds != 1<<trace.Fetch {
		share := strconv.FormatFloat(100*float64(unknown)/float64(all), 'f', 1, 64)
		list = append(list, share+" % of the references have no known source location, so instructions are named by their addresses; if you have the traced program, add --symbols FILE to find the locations")
	}
	return list
}
