package answers

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// keys are the columns that name the rows of each table: of several keys the first whose
// columns a table has. Sites and functions of two programs belong together by what the
// sources call them: numbers in a trace's tables and addresses change with every build.
var keys = map[string][]report.Key{
	"locality":  {{Columns: []string{"line_bytes"}}},
	"kinds":     {{Columns: []string{"kind"}, Counts: true}},
	"histogram": {{Columns: []string{"distance"}, Counts: true}},
	"curve":     {{Columns: []string{"capacity_bytes", "capacity_lines"}}},
	"levels":    {{Columns: []string{"name", "size_bytes", "ways", "line_bytes"}, Without: []string{"sdcm_misses", "sdcm_off"}}},
	"traffic":   {{Columns: []string{"name"}, Without: []string{"bytes_per_cycle"}}},
	"times":     {{Columns: []string{"name"}, Without: []string{"latency_cycles"}}},
	"memory":    {{Columns: []string{"share"}}},
	"sets":      {{Columns: []string{"sets", "ways", "line"}}},
	"windows":   {{Columns: []string{"first_reference", "from", "to"}, Counts: true}, {Columns: []string{"first_reference"}}},
	"sites": {
		{Columns: []string{"function", "file", "line", "column", "kind", "variable"}, Without: []string{"source", "type", "size", "number", "pc", "module", "offset"}, Counts: true},
		{Columns: []string{"producer", "producer_file", "producer_line", "consumer", "consumer_file", "consumer_line", "from", "to"}, Without: []string{"consumer_kind", "object"}, Counts: true},
		objects,
		{Columns: []string{"function", "file", "line"}, Without: []string{"source", "kind", "variable", "type"}, Counts: true}, // kinds and variables are lists of what stands there
	},
	"objects": {objects, {Columns: []string{"object"}, Counts: true}},
	"owners":  {{Columns: []string{"object", "offset"}, Counts: true}},
	"flows":   {{Columns: []string{"from", "to"}, Counts: true}},
	"cores":   {{Columns: []string{"level", "core"}, Without: []string{"threads"}}, {Columns: []string{"core", "name"}, Without: []string{"threads"}}},
	"domains": {{Columns: []string{"level", "cores", "core"}, Without: []string{"threads"}}},
	"changes": {{Columns: []string{"core"}, Without: []string{"cores", "threads"}}, {Columns: []string{"change", "level"}, Without: []string{"illegal"}}},
	"curves":  {{Columns: []string{"core", "view", "capacity_lines"}, Without: []string{"cores", "threads"}}},
	"functions": {
		{Columns: []string{"function", "file"}, Without: []string{"line"}, Counts: true},
		{Columns: []string{"function"}, Without: []string{"source"}, Counts: true},
	},
	"blocks": {
		{Columns: []string{"function", "block"}, Without: []string{"file", "line", "last_line", "operations"}, Counts: true},
		{Columns: []string{"block"}, Without: []string{"source"}, Counts: true},
	},
	"branches":        {{Columns: []string{"function", "block", "to"}, Without: []string{"file", "line"}, Counts: true}},
	"opcodes":         {{Columns: []string{"opcode"}, Counts: true}},
	"loops":           {{Columns: []string{"loop", "function"}, Without: []string{"depth", "file", "first_line", "last_line"}}},
	"arrays":          {{Columns: []string{"loop", "array"}, Without: []string{"base"}}},
	"misses":          {{Columns: []string{"loop", "level"}}},
	"evictions":       {{Columns: []string{"comes", "goes"}, Counts: true}},
	"types":           {{Columns: []string{"kind", "type", "bytes"}, Counts: true}},
	"instruction_mix": {{Columns: []string{"opcode"}, Counts: true}},
	"vectors":         {{Columns: []string{"lanes", "bits", "type"}, Counts: true}},
	"calls":           {{Columns: []string{"function"}, Counts: true}},
}

// objects is the key of data.
var objects = report.Key{Columns: []string{"name", "kind", "function"}, Without: []string{"file", "line", "source"}, Counts: true}

// KeyOf says what names the rows of a table: for one that is not known here its
// first column.
func KeyOf(t *report.Table) report.Key {
	for _, key := range keys[t.Key] {
		if !slices.ContainsFunc(key.Columns, func(column string) bool { return t.Index(column) < 0 }) {
			return key
		}
	}
	if t.Single || len(t.Columns) == 0 {
		return report.Key{}
	}
	return report.Key{Columns: []string{t.Columns[0].Key}}
}

// loose is what is left of a function's name when no function of one program is
// in the same file as in the other.
var loose = report.Key{Columns: []string{"function"}, Without: []string{"file", "line", "source", "kind", "variable", "type"}, Counts: true}

// Compared is one table of two answers, joined.
type Compared struct {
	Key string // of the table
	*report.Joined
	Doubt string // about what belongs together, in a sentence; "" for none
}

// Join joins the tables of two answers to the same question, each with the one
// of its key, or with none.
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
	a, b, doubt := tellApart(a, b, by)
	c := Compared{Key: a.Key, Joined: report.Join(a, b, by), Doubt: cmp.Or(repeatedNames(a, b, by), doubt)}
	if !ranked[a.Key] || len(a.Rows) == 0 || len(b.Rows) == 0 || anyPlaceInBoth(c.Joined) {
		return c
	}
	if byFunction(&a) && byFunction(&b) {
		if looser := report.Join(a, b, loose); anyPlaceInBoth(looser) {
			c.Joined = looser
			c.Doubt = "no function of A is in the same file in B; rows are joined by function alone"
		}
	} else if a.Index("name") < 0 && a.Index("function") >= 0 {
		c.Doubt = "no row of A is in B, as their sources differ; --by function compares what functions of the same name do"
	}
	return c
}

// byFunction tells whether each row is one function.
func byFunction(t *report.Table) bool {
	line := t.Index("line")
	return t.Key == "functions" || t.Key == "sites" && t.Index("function") >= 0 && t.Index("name") < 0 &&
		!slices.ContainsFunc(t.Rows, func(row []report.Value) bool { return line >= 0 && row[line].IsNumber() })
}

// anyPlaceInBoth tells whether a place in the code is in both; what is of no place
// has its name in brackets.
func anyPlaceInBoth(j *report.Joined) bool {
	return slices.ContainsFunc(j.Rows, func(r report.JoinedRow) bool {
		return r.In == report.InBoth && !strings.HasPrefix(r.Name[0].Plain(), "(")
	})
}

// mainNumbers are the numbers that say most of a row, of tables with many: the first that a
// table has.
var mainNumbers = map[string][]string{
	"histogram": {"count"}, "curve": {"misses"}, "functions": {"bytes", "cycles"}, "blocks": {"bytes", "cycles"},
	"types": {"count"}, "instruction_mix": {"count"}, "sets": {"misses"},
	"branches": {"taken"}, "loops": {"references"}, "arrays": {"references"}, "misses": {"misses"}, "evictions": {"lines"},
	"flows": {"transfers"}, "owners": {"references"}, "windows": {"misses_512", "transfers"},
}

// main is the main number of the table: of sites the misses of the first level,
// of windows those of the usual first level, or the most lines that there are.
func (c *Compared) main() string {
	for _, key := range mainNumbers[c.Key] {
		if c.Cell(key) >= 0 {
			return key
		}
	}
	for i := range c.Cells {
		if key := c.Cells[i].Key; c.Key == "sites" && strings.HasSuffix(key, "_misses") || c.Key == "windows" && i == len(c.Cells)-1 {
			return key
		}
	}
	return ""
}

// ranked are the tables whose order says nothing about what differs.
var ranked = map[string]bool{"functions": true, "blocks": true, "sites": true}

// Rank puts the rows first that differ most in the named number, or, where that
// is "", in the main number of tables that have no order of their own. ok is
// false where the table has no such number.
func (c *Compared) Rank(number string) (ok bool) {
	if number == "" && ranked[c.Key] {
		number = c.main()
	}
	cell := c.Cell(number)
	if cell >= 0 {
		c.SortByDifference(cell)
	}
	return cell >= 0 || number == ""
}

// Brief is the table of what was joined for people: of tables with many rows
// and many numbers a row it has the one number that is named, or the main one.
func (c *Compared) Brief(number string) report.Table {
	main := c.main()
	if main == "" {
		return c.Joined.Brief(c.Key)
	}
	if number == "" || c.Cell(number) < 0 {
		number = main
	}
	return c.Pick(number).Brief(c.Key)
}

// CurveAt has the misses of fully associative LRU caches of these capacities, in
// lines, ascending.
func CurveAt(c *profile.Curve, lineBytes uint32, capacities []uint64) report.Table {
	t := report.Table{Key: "curve", Title: "Misses of a fully associative LRU cache, exact", Columns: []report.Column{
		{Key: "capacity_bytes", Label: "capacity"},
		{Key: "capacity_lines", Label: "lines"},
		{Key: "misses", Label: "misses"},
		{Key: "miss_ratio", Label: "miss ratio"},
	}}
	next, upto := 0, c.Accesses
	addBelow := func(end uint64) {
		for ; next < len(capacities) && capacities[next] < end; next++ {
			lines := capacities[next]
			t.Add(report.Bytes(lines*uint64(lineBytes)), report.Count(lines), report.Count(upto), report.Share(upto, c.Accesses))
		}
	}
	for lines, misses := range c.Points {
		addBelow(lines)
		upto = misses
	}
	addBelow(math.MaxUint64)
	return t
}

// Breakpoints are the capacities, in lines, at which the misses of any of the
// curves change, ascending.
func Breakpoints(curves ...*profile.Curve) (capacities []uint64) {
	for _, c := range curves {
		for lines := range c.Points {
			capacities = append(capacities, lines)
		}
	}
	slices.Sort(capacities)
	return slices.Compact(capacities)
}

// Powers are the capacities of powers of two from one line up to the first that
// holds all that any of the curves reuses.
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

// Mismatches says in sentences how the profiles a and b differ in what was
// analysed, rather than in how the program behaves, and what to do. What is not
// known of one of them, such as a result of another tool, is no difference.
func Mismatches(a, b *profile.Profile) (list []string) {
	differ := func(what, ofA, ofB, todo string) {
		if ofA != ofB && ofA != "" && ofB != "" {
			list = append(list, what+" differ, and with them the numbers: A has "+ofA+", B has "+ofB+"; "+todo)
		}
	}
	differ("the kinds of references", a.Input.Kinds.String(), b.Input.Kinds.String(), "analyze both with the same --kinds")
	differ("the parts of the traces", part(&a.Input), part(&b.Input), "analyze both with the same --skip and --limit, unless these parts are what you compare")
	differ("the chosen threads", threads(a), threads(b), "analyze both with the same --threads, unless these are what you compare")
	differ("the line sizes", lineSizes(a), lineSizes(b), "analyze both with the same --lines, unless you compare these")
	differ("the ways to record", recorder(&a.Input.Header), recorder(&b.Input.Header), "formats differ in what they record; compare traces of one kind where you can")
	if len(list) == 0 && a.Digest() == b.Digest() {
		list = append(list, "A and B are the same run: their profiles are equal in every byte")
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

func part(in *profile.Input) string {
	switch {
	case in.Skip == 0 && in.Limit == 0:
		return "the whole trace"
	case in.Limit == 0:
		return "all from reference " + strconv.FormatUint(in.Skip, 10) + " on"
	}
	return "at most " + strconv.FormatUint(in.Limit, 10) + " references from reference " + strconv.FormatUint(in.Skip, 10) + " on"
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

// recorder is the trace's format, and whether it has sizes, which decide into
// how many lines a reference falls.
func recorder(h *trace.Header) string {
	if !h.Sizes {
		return "the format " + h.Format + " without sizes"
	}
	return "the format " + h.Format
}
