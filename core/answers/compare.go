package answers

import (
	"cmp"
	_ "embed" // for keys.txt
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// tableKeys is the content of keys.txt, which has a line for each kind of table. The line lists the
// columns that identify a row and, after a vertical bar, the descriptive columns that a comparison
// omits. If several lines describe a table, KeyOf uses the first line whose columns all exist in
// the table. A plus sign after the name of the table marks rows that contain counts, and an
// exclamation mark marks rows that describe problems (see [report.Key]).
//
// Sites and functions of two programs are matched by their names in the source, because addresses
// and the numbers in a trace's tables change with every build.
//
//go:embed keys.txt
var tableKeys string

// KeyOf returns the columns that identify the rows of a table. For a table that is not listed in
// keys.txt, KeyOf returns the first column.
func KeyOf(t *report.Table) report.Key {
	for line := range strings.Lines(tableKeys) {
		names, others, _ := strings.Cut(line, "|")
		key := report.Key{Columns: strings.Fields(names), Without: strings.Fields(others)}
		name := key.Columns[0]
		key.Columns = key.Columns[1:]
		name, key.Counts = strings.CutSuffix(name, "+")
		name, key.Problems = strings.CutSuffix(name, "!")
		for _, version := range []string{"a_line", "text"} { // columns that [MatchLines] adds
			if t.Index(version) >= 0 && slices.Contains(key.Columns, "line") {
				key.Columns = append(key.Columns, version)
			}
		}
		if name == t.Key && !slices.ContainsFunc(key.Columns, func(column string) bool { return t.Index(column) < 0 }) {
			return key
		}
	}
	if t.Single || len(t.Columns) == 0 {
		return report.Key{}
	}
	return report.Key{Columns: []string{t.Columns[0].Key}}
}

// keyByName matches functions by name only. It is used if no function is in the same file in both
// programs.
var keyByName = report.Key{Columns: []string{"function"}, Without: []string{"file", "line", "source", "kind", "variable", "type"}, Counts: true}

// keyByPath matches call paths by the names of their functions only. It is used if no path ends in
// the same file in both programs.
var keyByPath = report.Key{Columns: []string{"path"}, Without: []string{"file", "function", "depth", "line", "number"}, Counts: true}

// Compared joins a table of one answer with the same table of another answer.
type Compared struct {
	Key string // the key of the joined tables
	*report.Joined
	Doubt string // a warning about how rows were matched, or ""
}

// Join joins the tables of two answers to the same question: each table is joined with the table
// that has the same key in the other answer. A table may exist in only one of the answers.
func Join(a, b []report.Table) (list []Compared) {
	for _, t := range slices.Concat(a, b) {
		if !slices.ContainsFunc(list, func(c Compared) bool { return c.Key == t.Key }) {
			list = append(list, joinOne(find(a, t.Key), find(b, t.Key), KeyOf(&t)))
		}
	}
	return list
}

func find(tables []report.Table, key string) report.Table {
	for i := range tables {
		if tables[i].Key == key {
			return tables[i]
		}
	}
	return report.Table{Key: key}
}

func joinOne(a, b report.Table, by report.Key) Compared {
	a, b, doubt := disambiguate(a, b, by)
	c := Compared{Key: a.Key, Joined: report.Join(a, b, by), Doubt: cmp.Or(repeatedNames(a, b, by), doubt)}
	if !rankedTables[a.Key] || len(a.Rows) == 0 || len(b.Rows) == 0 || anyPlaceInBoth(c.Joined) {
		return c
	}
	switch {
	case a.Index("path") >= 0:
		if looser := report.Join(a, b, keyByPath); anyPlaceInBoth(looser) {
			c.Joined = looser
			c.Doubt = "A and B have no call path that ends in the same file, so call paths are matched by function names only"
		}
	case byFunction(&a) && byFunction(&b):
		if looser := report.Join(a, b, keyByName); anyPlaceInBoth(looser) {
			c.Joined = looser
			c.Doubt = "A and B have no function in the same file, so functions are matched by name only"
		}
	case a.Index("name") < 0 && a.Index("function") >= 0:
		c.Doubt = "A and B have no row in common, because their sources differ; to compare functions by name, use --by function"
	}
	return c
}

// byFunction reports whether each row describes one function.
func byFunction(t *report.Table) bool {
	line := t.Index("line")
	return t.Key == "functions" || t.Key == "sites" && t.Index("function") >= 0 && t.Index("name") < 0 &&
		!slices.ContainsFunc(t.Rows, func(row []report.Value) bool { return line >= 0 && row[line].IsNumber() })
}

// anyPlaceInBoth reports whether any source location occurs in both tables. It ignores rows without
// a source location, whose names are in parentheses.
func anyPlaceInBoth(j *report.Joined) bool {
	return slices.ContainsFunc(j.Rows, func(r report.JoinedRow) bool {
		return r.In == report.InBoth && !strings.HasPrefix(r.Name[0].Plain(), "(")
	})
}

// mainNumbers lists, one table per line, the most important columns of tables with many columns. If
// several columns are listed, the main column is the first column that the table contains.
const mainNumbers = `histogram count
curve misses
functions bytes
blocks bytes
types count
instruction_mix count
sets misses
windows misses_512
branches taken
loops references
arrays references
misses misses
evictions lines
line_evictions lines
flows transfers
owners references
findings saved_cycles
windows transfers
functions cycles
blocks cycles
`

// mainColumn returns the key of the most important column of the table. For sites, this is the
// column with the misses of the first level. For windows, this is the column for the usual size of
// a first-level cache or, if there is no such column, for the largest size.
func (c *Compared) mainColumn() string {
	if rankedTables[c.Key] {
		for i := range c.Cells {
			if key := c.Cells[i].Key; strings.HasSuffix(key, "_misses") {
				return key
			}
		}
	}
	for line := range strings.Lines(mainNumbers) {
		words := strings.Fields(line)
		for _, key := range words[1:] {
			if words[0] == c.Key && c.Cell(key) >= 0 {
				return key
			}
		}
	}
	for i := range c.Cells {
		if key := c.Cells[i].Key; c.Key == "windows" && i == len(c.Cells)-1 {
			return key
		}
	}
	return ""
}

// rankedTables lists the tables that are sorted by difference, because their usual order does not
// show the differences.
var rankedTables = map[string]bool{"functions": true, "blocks": true, "sites": true, "paths": true, "callers": true, "callees": true}

// Rank sorts the rows of the table by their difference in the named column. If the name is "", Rank
// uses the main column if rankedTables lists the table, and otherwise keeps the order of the rows.
// The result ok is false if the table has no such column.
func (c *Compared) Rank(number string) (ok bool) {
	if number == "" && rankedTables[c.Key] {
		number = c.mainColumn()
	}
	cell := c.Cell(number)
	if cell >= 0 {
		c.SortByDifference(cell)
	}
	return cell >= 0 || number == ""
}

// Brief returns a shorter table that is easier to read. If a table has many rows and many numbers
// per row, Brief keeps only one column of numbers: the named column or, if there is no such column,
// the main column.
func (c *Compared) Brief(number string) report.Table {
	main := c.mainColumn()
	if main == "" {
		return c.Joined.Brief(c.Key)
	}
	if number == "" || c.Cell(number) < 0 {
		number = main
	}
	t := c.Pick(number).Brief(c.Key)
	if at := t.Index("path"); at >= 0 {
		for _, row := range t.Rows {
			row[at] = report.TextOf(shortPath(row[at].Plain()))
		}
	}
	return t
}

// Headline states how the estimated cycles and the problems differ between two diagnoses.
// The parameter references contains the number of references of each run. Headline returns "" if
// the tables are not diagnoses.
func Headline(compared []Compared, references [2]uint64) (text string) {
	for i := range compared {
		switch c := &compared[i]; c.Key {
		case "verdict":
			if text = speedOf(c); text != "" {
				text += otherWork(references)
			}
		case "findings":
			if text == "" {
				return ""
			}
			var of [3]int
			for k := range c.Rows {
				of[c.Rows[k].In]++
			}
			if len(c.Rows) == 0 {
				return text + " No fixable problem was found in either run."
			}
			return text + " Problems: " + strconv.Itoa(of[report.InA]) + " fixed, " + strconv.Itoa(of[report.InBoth]) + " remaining, " + strconv.Itoa(of[report.InB]) + " new."
		}
	}
	return text
}

// otherWork returns a warning if the runs do different amounts of work: if their numbers of
// references differ by more than 25 %.
func otherWork(references [2]uint64) string {
	a, b := float64(references[0]), float64(references[1])
	if max(a, b) <= 1.25*min(a, b) {
		return ""
	}
	return " The runs also do different amounts of work: " + report.Count(references[0]).Human() + " → " + report.Count(references[1]).Human() + " references."
}

// speedOf returns a sentence that compares the estimated cycles of two diagnoses.
func speedOf(c *Compared) string {
	total, waiting := c.Cell("cycles"), c.Cell("memory_cycles")
	if len(c.Rows) == 0 || total < 0 || waiting < 0 {
		return ""
	}
	row := &c.Rows[0]
	a, _ := row.A[total].Number()
	b, _ := row.B[total].Number()
	if a <= 0 || b <= 0 {
		return ""
	}
	text := "B is estimated to take about as long as A"
	if ratio := max(a, b) / min(a, b); ratio >= 1.01 {
		factor := strconv.FormatFloat(ratio, 'f', 2, 64)
		if ratio >= 10 {
			factor = strconv.FormatFloat(ratio, 'f', 0, 64)
		}
		text = "B is an estimated " + factor + " times as fast as A"
		if b > a {
			text = "B takes an estimated " + factor + " times as long as A"
		}
	}
	arrow := func(cell int) string { return row.A[cell].Human() + " → " + row.B[cell].Human() }
	return text + ": " + arrow(total) + " cycles, " + arrow(waiting) + " of them waiting for memory."
}

// CurveAt returns a table of the misses in fully associative LRU caches of these capacities, in
// lines.
func CurveAt(c *profile.Curve, lineBytes uint32, capacities []uint64) report.Table {
	t := report.Table{Key: "curve", Title: "Misses of a fully associative LRU cache, exact", Columns: report.Columns(
		"capacity_bytes=capacity", "capacity_lines=lines", "misses", "miss_ratio=miss ratio")}
	for _, lines := range capacities {
		misses := c.Misses(lines)
		t.Add(report.Bytes(lines*uint64(lineBytes)), report.Count(lines), report.Count(misses), report.Share(misses, c.Accesses))
	}
	return t
}

// Breakpoints returns the capacities, in lines and in ascending order, at which the misses of any
// curve change.
func Breakpoints(curves ...*profile.Curve) (capacities []uint64) {
	for _, c := range curves {
		for lines := range c.Points {
			capacities = append(capacities, lines)
		}
	}
	slices.Sort(capacities)
	return slices.Compact(capacities)
}

// Powers returns powers of two as capacities in lines, from 1 up to the first capacity at which all
// curves have only cold misses.
func Powers(curves ...*profile.Curve) (capacities []uint64) {
	rest := func(lines uint64) bool {
		return slices.ContainsFunc(curves, func(c *profile.Curve) bool { return c.Misses(lines) != c.Cold })
	}
	lines := uint64(1)
	for ; lines <= 1<<40 && rest(lines); lines <<= 1 {
		capacities = append(capacities, lines)
	}
	return append(capacities, lines)
}

// Mismatches describes differences between the profiles a and b that result from different analysis
// settings rather than from different programs. The descriptions explain how to avoid these
// differences. Mismatches ignores a fact that only one profile contains. The function "same" reports
// whether the profiles are identical.
func Mismatches(a, b *profile.Profile, same func() bool) (list []string) {
	differ := func(what, ofA, ofB, todo string) {
		if ofA != ofB && ofA != "" && ofB != "" {
			list = append(list, what+" differ, so the numbers differ too: A has "+ofA+", B has "+ofB+"; "+todo)
		}
	}
	differ("the kinds of references", a.Input.Kinds.String(), b.Input.Kinds.String(), "analyze both with the same --kinds")
	differ("the analysed parts of the traces", analysedPart(&a.Input), analysedPart(&b.Input), "analyze both with the same --skip and --limit, unless you want to compare these parts")
	differ("the chosen threads", threads(a), threads(b), "analyze both with the same --threads, unless you want to compare these threads")
	differ("the line sizes", lineSizes(a), lineSizes(b), "analyze both with the same --lines, unless you want to compare these line sizes")
	differ("the recording methods", formatText(&a.Input.Header), formatText(&b.Input.Header), "different formats record different data; if possible, compare traces of the same format")
	if len(list) == 0 && same() {
		list = append(list, "A and B are the same run: their profiles are identical, byte for byte")
	}
	return list
}

func lineSizes(p *profile.Profile) string {
	if len(p.Locality) == 0 {
		return ""
	}
	text := ""
	for i := range p.Locality {
		text += " " + strconv.FormatUint(uint64(p.Locality[i].LineBytes), 10)
	}
	return "lines of" + text + " bytes"
}

func analysedPart(in *profile.Input) string {
	switch {
	case in.Skip == 0 && in.Limit == 0:
		return "the whole trace"
	case in.Limit == 0:
		return "all references from number " + strconv.FormatUint(in.Skip, 10)
	}
	return "at most " + strconv.FormatUint(in.Limit, 10) + " references from number " + strconv.FormatUint(in.Skip, 10)
}

func threads(p *profile.Profile) string {
	if p.Input.Threads == nil {
		return "all"
	}
	text := ""
	for i, n := range p.Input.Threads {
		if i > 0 {
			text += ","
		}
		text += strconv.FormatUint(uint64(n), 10)
	}
	return "only " + text
}

// formatText describes the trace's format, and whether it contains access sizes, which determine
// the number of lines that a reference touches.
func formatText(h *trace.Header) string {
	if !h.Sizes {
		return "the format " + h.Format + " (no access sizes)"
	}
	return "the format " + h.Format
}
