package state

import (
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// CodeView is the Code view of one profile: places in an order, and the one that is picked.
type CodeView struct {
	*Code
	Sort, Search string
	Document     func() *report.Document // what is exported; nil: nothing
	// OfPlace returns the document that exports the distances of a place; nil: there is none.
	OfPlace func(named string) func() *report.Document

	order []int
	most  int
	among []bool
}

// NewCodeView ranks places for a view.
func NewCodeView(c *Code, by, search string) *CodeView {
	v := &CodeView{Code: c, Sort: by, Search: search, order: c.Ranked(by, search)}
	v.most, v.among = c.Most(c.Level(by))
	return v
}

// At is the place in a row of the grid, from 0; -1 for the remainder.
func (v *CodeView) At(row int) int {
	if row < 0 || row >= len(v.order) {
		return -1
	}
	return v.order[row]
}

// Find is the place that a row's ID identifies, or -1.
func (v *CodeView) Find(id int) int {
	if place, known := v.first[id]; known {
		return place
	}
	return -1
}

// ID identifies a place whatever the order and the levels.
func (v *CodeView) ID(place int) int { return v.id(place) }

// sorted is the key of the column that the rows are sorted by.
func (v *CodeView) sorted() string {
	if v.Sort == "" {
		return "misses_1"
	}
	return v.Sort
}

// column is a column of the grid with what its cells say.
type column struct {
	Column
	shown func(place int) string
}

// columns are those of the grid.
func (v *CodeView) columns() (list []column) {
	add := func(c Column, shown func(int) string) { list = append(list, column{c, shown}) }
	number := func(key, name string, n func(i int) float64) {
		add(Column{Name: name, Key: key}, func(i int) string { return Count(n(i)) })
	}
	add(Column{Name: v.By.Name(), Key: "place", Words: true}, v.Place)
	if v.By == ByObject {
		add(Column{Name: "kind", Words: true}, func(i int) string { return v.Sites.Data[v.rows[i].Object].Kind.String() })
		number("blocks", "blocks", func(i int) float64 { return v.number(i, "blocks") })
	} else {
		add(Column{Name: "kind", Words: true}, v.kindWords)
	}
	number("references", "references", func(i int) float64 { return float64(v.rows[i].References) })
	for l := range v.Levels {
		add(Column{Name: v.levelName(l) + " misses", Key: "misses_" + strconv.Itoa(l+1)},
			func(i int) string { return v.about(l) + Count(v.misses(i, l)) })
	}
	l := v.Level(v.Sort)
	add(Column{Name: "of " + v.levelName(l) + " misses"}, func(i int) string { return v.about(l) + Percent(v.misses(i, l)/max(v.Total(l), 1)) })
	if l < len(v.Levels) && v.Levels[l].Coherence > 0 {
		add(Column{Name: v.levelName(l) + " coherence misses", Key: "coherence"},
			func(i int) string { return v.about(l) + Count(v.coherence(i, l)) })
	}
	add(Column{Name: v.levelName(0) + " miss ratio", Key: "ratio"}, func(i int) string { return v.about(0) + Percent(v.number(i, "ratio")) })
	if v.By != ByObject {
		add(Column{Name: "stride", Key: "stride", Words: true}, func(i int) string { return strideWords(v.rows[i].Strides) })
	}
	if len(v.Sites.Capacities) > 0 {
		name := "line utilisation in " + Bytes(v.Sites.Capacities[v.utilisation()]*uint64(v.Sites.LineBytes))
		if _, oneCore := v.ranker.UsedIn(v.Levels, v.utilisation()); oneCore {
			name += " (all threads on one core)"
		}
		add(Column{Name: name, Key: "used"}, func(i int) string {
			if v.used(i).Fetched == 0 {
				return "–"
			}
			return Percent(v.used(i).Share(v.Sites.LineBytes))
		})
	}
	return list
}

func (v *CodeView) levelName(l int) string {
	if l < len(v.Levels) {
		return v.Levels[l].Level.Cache.Name
	}
	return "all"
}

// Grid is the table of places; picked is one of them, or -1.
func (v *CodeView) Grid(picked int) *Grid {
	columns := v.columns()
	rest := v.remainder(columns)
	t := &Table{Caption: "Misses by " + v.By.Name(), Rows: len(v.order), Sort: v.sorted(), document: v.Document, key: "sites"}
	if rest != nil && v.Search == "" {
		t.Rows++
	}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Column)
	}
	t.Row = func(i int) []string {
		if i >= len(v.order) {
			return rest
		}
		cells := make([]string, len(columns))
		for j := range columns {
			cells[j] = columns[j].shown(v.order[i])
		}
		return cells
	}
	return &Grid{
		Table: t, ID: "code", Order: string(v.By) + " " + v.sorted() + " " + v.Search, Selected: slices.Index(v.order, picked),
		Mark: func(i int) string {
			switch {
			case i >= len(v.order):
				return "rest"
			case v.among[v.order[i]]:
				return "most"
			}
			return ""
		},
	}
}

// remainder is the row of the misses that are of no place; nil where there are none.
func (v *CodeView) remainder(columns []column) []string {
	cells := make([]string, len(columns))
	any := false
	for j := range columns {
		l, err := strconv.Atoi(strings.TrimPrefix(columns[j].Key, "misses_"))
		if err != nil {
			continue
		}
		any = any || v.Levels[l-1].Rest > 0
		cells[j] = v.about(l-1) + Count(v.Levels[l-1].Rest)
	}
	if !any {
		return nil
	}
	if cells[0] = "of no place: conflicts in sets"; v.unknown() {
		cells[0] = "of no known place"
	}
	return cells
}

// Summary says in a sentence how few places make most misses.
func (v *CodeView) Summary() string {
	if len(v.rows) == 0 {
		return "No reference of the chosen kinds was made at a place that the trace names."
	}
	text := v.MostWords(v.Level(v.Sort))
	if v.Search != "" {
		text = Plural(uint64(len(v.order)), v.By.Name()+" is", v.By.Name()+"s are") + " found. " + text
	}
	return text
}

// Estimates names the levels whose misses an analysis that measures them would tell
// by site; "" where there are none.
func (v *CodeView) Estimates() string {
	var names []string
	for i := range v.Levels {
		if l := &v.Levels[i]; l.Countable != "" && !l.Level.Together {
			names = append(names, v.levelName(i))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "The rows that cause the misses in " + strings.Join(names, " and ") + " are estimated (≈): this analysis did not measure a cache of that size and associativity by site."
}

// Method says how the numbers were computed.
func (v *CodeView) Method() string {
	for _, l := range v.Levels {
		if !l.Exact {
			return "The totals equal those of Caches. The misses of each row are computed from its stack distances, which are counted in bins. They are " +
				"estimates (≈) for a level that has sets or a size within a bin, and was not measured by site."
		}
	}
	return "Exact: each level was measured by site, or is fully associative, and each place's stack distances were counted."
}

// Sentence says what a place does.
func (v *CodeView) Sentence(place int) string {
	r := &v.rows[place]
	text := Plural(r.References, "reference", "references")
	for l := range v.Levels {
		text += ", " + v.about(l) + Count(v.misses(place, l)) + " misses in " + v.levelName(l)
	}
	if v.By != ByObject && r.References > 0 {
		text += "; stride " + strideWords(r.Strides)
	}
	return text + "."
}

// LinePlace is the place of a line of a file, where places are lines; else -1.
func (v *CodeView) LinePlace(file string, line uint32) int {
	if v.By == ByLine {
		for i := range v.rows {
			if f, n := v.Location(i); f == file && n == line {
				return i
			}
		}
	}
	return -1
}

// Location is the file and the line of a place; "" where they are not known.
func (v *CodeView) Location(place int) (file string, line uint32) {
	r := &v.rows[place]
	if r.File != "" && r.Line == 0 && len(r.Sites) > 0 { // a function: where its first site is
		return r.File, v.Sites.Code[r.Sites[0]].Line
	}
	return r.File, r.Line
}

// Files are the names of the source files that sites name.
func (c *Code) Files() []string {
	seen := map[string]bool{}
	var list []string
	for i := range c.Sites.Code {
		if f := c.Sites.Code[i].File; f != "" && !seen[f] {
			seen[f] = true
			list = append(list, f)
		}
	}
	sort.Strings(list)
	return list
}

// FilesNamed are those of Files with a name, whatever their folders.
func (c *Code) FilesNamed(name string) (list []string) {
	for _, f := range c.Files() {
		if path.Base(f) == name {
			list = append(list, f)
		}
	}
	return list
}

// named are the places as the command names them.
func (v *CodeView) named() *answers.Sites {
	return &answers.Sites{Profile: &profile.Profile{Sites: v.Sites}, By: v.By.attributed()}
}

// Named is the command's name of a place.
func (v *CodeView) Named(place int) string { return v.named().Place(&v.rows[place]) }

// bins are the accesses of a place by distance, in the bins of the whole run's.
func (v *CodeView) bins(place int) (bins []Bin, total uint64) {
	counts, cold := v.named().Binned(&v.rows[place])
	total = cold
	for k, n := range counts {
		b := Bin{Count: n}
		if k > 0 {
			b.Low, b.High = 1<<(k-1), 1<<k-1
		}
		bins, total = append(bins, b), total+n
	}
	return append(bins, Bin{Cold: true, Count: cold}), total
}

// Distances is the histogram of stack distances of a place.
func (v *CodeView) Distances(place int) *Chart {
	bins, total := v.bins(place)
	chart := binsChart("place", "Accesses by stack distance, of this place", bins, total)
	chart.Y.Label = "of its accesses"
	return chart
}

// DistancesTable is the accesses of a place by distance.
func (v *CodeView) DistancesTable(place int) *Table {
	whole := v.named().DistancesOf(&v.rows[place])
	t := show(&whole, words, nil).unsorted()
	if t.Caption = "Accesses by stack distance, of this place"; v.OfPlace != nil {
		t.of(v.OfPlace(v.Named(place)))
	}
	return t
}

// Before lists who touched the lines of a place before it did, most often first; nil where that
// was not noted.
func (v *CodeView) Before(place int) *Table {
	if !v.Sites.Previous || v.Document == nil {
		return nil
	}
	d := v.Document()
	at := slices.IndexFunc(d.Tables, func(t report.Table) bool { return t.Key == "before" })
	if at < 0 {
		return nil
	}
	t := show(&d.Tables[at], words, map[string]string{"of": v.Named(place)}, "place", "accesses", "share").unsorted().of(v.Document)
	t.Caption = "Who touched the lines before, at distances of " + strconv.Itoa(profile.PreviousFrom) + " lines or more"
	return t
}

// SourceGrid is a file of source code, which sites name so, with the misses of each
// line in the gutter.
func (v *CodeView) SourceGrid(f *Source, name string, line uint32) *Grid {
	level := v.Level(v.Sort)
	misses := map[uint32]float64{}
	for i := range v.Sites.Code {
		if s := &v.Sites.Code[i]; s.File == name && level < len(v.Levels) {
			misses[s.Line] += v.Levels[level].Sites[i]
		}
	}
	t := &Table{
		Caption: name + " with the misses in " + v.levelName(level),
		Columns: []Column{{Name: v.levelName(level) + " misses"}, {Name: "share"}, {Name: "line"}, {Name: "source", Words: true}},
		Rows:    len(f.Lines),
		Row: func(i int) []string {
			n := misses[uint32(i+1)]
			cells := []string{"", "", strconv.Itoa(i + 1), f.Lines[i]}
			if n > 0 {
				cells[0], cells[1] = v.about(level)+Count(n), v.about(level)+Percent(n/max(v.Total(level), 1))
			}
			return cells
		},
	}
	return &Grid{Table: t, ID: "source", Order: name + f.Path, Selected: int(line) - 1, Code: []bool{3: true}}
}

// MissingLine says that a file is too short for a line that the profile names.
func MissingLine(f *Source, line uint32) string {
	if int(line) <= len(f.Lines) {
		return ""
	}
	return f.Name + " has " + Plural(uint64(len(f.Lines)), "line", "lines") + ", and the trace names line " + strconv.FormatUint(uint64(line), 10) +
		": it is another version than the one that was compiled."
}

// SitesDocument answers whose the misses of a hierarchy are, when it is called.
func (v *View) SitesDocument(by CodeBy, h hierarchy.Hierarchy) func() *report.Document {
	return v.document(v.sitesQuestion(by, h))
}

// PlaceDocument answers at which distances one of the places is accessed.
func (v *View) PlaceDocument(by CodeBy, h hierarchy.Hierarchy) func(named string) func() *report.Document {
	return func(named string) func() *report.Document {
		return v.document(v.sitesQuestion(by, h).With("distances", named))
	}
}

func (v *View) sitesQuestion(by CodeBy, h hierarchy.Hierarchy) ask.Question {
	q := v.question("sites").With("by", string(by.attributed()))
	q.Machine = h
	return q
}

// worstLine is the finding of the source line that misses most in the first level of
// the hierarchy in question.
func (v *View) worstLine(h hierarchy.Hierarchy) (Finding, bool) {
	s, r := v.Profile.Sites, v.Ranker()
	if r == nil || len(s.Code) == 0 {
		return Finding{}, false
	}
	levels, _, err := r.Attribute(h)
	if err != nil || len(levels) == 0 || levels[0].Level.Misses == 0 {
		return Finding{}, false
	}
	c := NewCode(s, r, ByLine, levels)
	total, most := c.Total(0), c.misses(0, 0)
	why := ""
	if n := c.coherence(0, 0); n >= most/2 {
		why = "They are misses because another core's store took the line. "
		if n < most {
			why = c.about(0) + Count(n) + " of them are misses because another core's store took the line. "
		}
	}
	return Finding{ID: "worst-line", Title: "Worst line", Tab: TabCode,
		Text: strings.ReplaceAll(c.Place(0), "  ", " in ") + " makes " + c.about(0) + Percent(most/total) + " of the misses in " + levels[0].Level.Cache.Name +
			" of " + Bytes(levels[0].Level.Cache.SizeBytes) + ", " + WaysText(levels[0].Level.Cache.Ways) + ": " + c.about(0) + Count(most) + " of " + c.aboutTotal(0) + Count(total) + ". " + why + c.MostWords(0)}, true
}

// CodeBy is what misses in the code are summed up by.
type CodeBy string

// The choices.
const (
	ByLine     CodeBy = "" // of source
	BySite     CodeBy = "site"
	ByFunction CodeBy = "function"
	ByObject   CodeBy = "object"
)

// CodeBys lists the choices in the order of the page.
func CodeBys() []CodeBy { return []CodeBy{ByLine, BySite, ByFunction, ByObject} }

// Name is what the page calls it.
func (b CodeBy) Name() string {
	switch b {
	case BySite:
		return "instruction"
	case ByFunction:
		return "function"
	case ByObject:
		return "data structure"
	}
	return "source line"
}

// codeByOf reads what the URL's hash says; lines for anything unknown.
func codeByOf(text string) CodeBy {
	for _, by := range CodeBys() {
		if text == string(by) {
			return by
		}
	}
	return ByLine
}

// attributed returns the grouping of package attribution.
func (b CodeBy) attributed() attribution.By {
	if b == ByLine {
		return attribution.Line
	}
	return attribution.By(b)
}
