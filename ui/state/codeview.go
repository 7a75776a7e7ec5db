package state

import (
	"cmp"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

type CodeView struct {
	*Code
	Sort, Search string
	Document     func() *report.Document // the document to export; nil: none
	// OfPlace returns a function that creates the document with a row's stack distances, or nil.
	OfPlace func(named string) func() *report.Document
	// If Brief is set, the ranking has only the names, the sorted column and the share of the
	// misses, so that it fits next to the source.
	Brief bool
	// Lines attributes the same misses to source lines. The page shows these numbers next to the
	// source.
	Lines *Code
	// Loops describes the loops whose first reference is in a line, for example "loop 32 × 32, 98.5
	// % of the references". Loops is nil if no loops are known.
	Loops func(file string, line uint32) string
	// Advice returns the problem that the diagnosis found in a line, or nil if there is no problem.
	// The field Advice may be nil.
	Advice func(file string, line uint32) *Advice

	order []int
	among []bool // for each row: whether it is among the rows with the most misses
}

// NewCodeView returns a view of the rows of c that contain the search words, sorted by the column
// with the key "by".
func NewCodeView(c *Code, by, search string) *CodeView {
	v := &CodeView{Code: c, Sort: by, Search: search, order: c.Ranked(by, search), among: make([]bool, len(c.rows))}
	for _, place := range c.Most(c.Level(by)) {
		v.among[place] = true
	}
	return v
}

// At converts a row of the grid to a row of the ranking. For the row of unattributed misses, At
// returns -1. Rows are counted from 0.
func (v *CodeView) At(row int) int {
	if row < 0 || row >= len(v.order) {
		return -1
	}
	return v.order[row]
}

// Find returns the row with an ID, or -1.
func (v *CodeView) Find(id int) int {
	if place, known := v.first[id]; known {
		return place
	}
	return -1
}

// sortKey returns the key of the column that sorts the rows.
func (v *CodeView) sortKey() string { return cmp.Or(v.Sort, v.levelName(0)+"_misses") }

// column is a column of the grid, with the text of its cells.
type column struct {
	Column
	level int // the level whose misses the column shows, counted from 0; -1: no level
	shown func(place int) string
	title func(place int) string // returns the exact text if the field "shown" returns a rounded number; otherwise nil
	bar   bool                   // the cell shows a bar in proportion to the row's share of the misses
}

// columns returns the columns of the grid.
func (v *CodeView) columns() (list []column) {
	add := func(c Column, shown func(int) string) {
		list = append(list, column{Column: c, level: -1, shown: shown})
	}
	answer := func(key, name, about string) {
		if c, cell, ok := v.Column(key); ok {
			marked := func(i int, style report.Words) string {
				value := cell(&v.rows[i])
				if !value.IsNumber() { // the value is unknown
					return shown(value, style)
				}
				return about + shown(value, style)
			}
			exact := func(i int) string { return marked(i, answerWords) }
			if add(Column{Name: cmp.Or(name, c.Label), Key: key}, exact); v.Brief {
				last := &list[len(list)-1]
				last.title, last.shown = exact, func(i int) string { return marked(i, briefWords) }
			}
		}
	}
	share := func(l int) {
		answer(v.levelName(l)+"_share", "of "+v.levelName(l)+" misses", v.estimateMark(l))
		list[len(list)-1].bar = true
	}
	add(Column{Name: PlaceName(v.By), Key: "place", Words: true}, v.Place)
	if v.Brief {
		l, by := v.Level(v.Sort), v.sortKey()
		if by == "place" || strings.HasSuffix(by, "_share") {
			by = v.levelName(l) + "_misses"
		}
		if answer(by, "", ""); by == v.levelName(l)+"_misses" {
			list[1].level, list[1].Name = l, v.levelName(l)+" misses"
		}
		if share(l); v.By == attribution.Object {
			answer("bytes", "", "")
		}
		return list
	}
	answer("kind", "kind", "")
	list[1].Column = Column{Name: "kind", Words: true}
	answer("blocks", "", "")
	answer("references", "", "")
	for l := range v.Levels {
		answer(v.levelName(l)+"_misses", v.levelName(l)+" misses", "")
		list[len(list)-1].level = l
	}
	l := v.Level(v.Sort)
	share(l)
	answer(v.levelName(l)+"_coherence_misses", v.levelName(l)+" coherence misses", "")
	answer("miss_ratio", v.levelName(0)+" miss ratio", v.estimateMark(0))
	if v.By != attribution.Object {
		add(Column{Name: "stride", Key: "irregular_strides", Words: true}, func(i int) string { return strideWords(&v.rows[i]) })
		answer("prefetch_coverage", "prefetch coverage", v.coverageMark())
	}
	key, bytes := v.utilisation()
	if c, _, ok := v.Column(key); ok {
		answer(key, "line utilisation in "+strings.Replace(c.Label, "used in "+hierarchy.FormatSize(bytes), Bytes(bytes), 1), "")
	}
	return list
}

func (v *CodeView) levelName(l int) string { return v.Levels[l].Level.Cache.Name }

// Grid returns the table of the ranking. The parameter "picked" is the selected row, or -1.
func (v *CodeView) Grid(picked int) *Grid {
	columns := v.columns()
	rest := v.remainder(columns)
	t := &Table{Caption: "Misses by " + PlaceName(v.By), Rows: len(v.order), Sort: v.sortKey(), document: v.Document, key: "sites"}
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
	level := v.Level(v.Sort)
	return &Grid{
		Titles: func(i int) []string {
			titles := make([]string, len(columns))
			for j, c := range columns {
				if c.title != nil && i < len(v.order) {
					titles[j] = c.title(v.order[i])
				}
			}
			return titles
		},
		Shares: func(i int) []float64 {
			shares := make([]float64, len(columns))
			for j, c := range columns {
				if shares[j] = -1; c.bar && i < len(v.order) {
					shares[j] = v.shareOf(&v.rows[v.order[i]], level)
				}
			}
			return shares
		},
		Table: t, ID: "code", Order: string(v.By) + " " + v.sortKey() + " " + v.Search, Selected: slices.Index(v.order, picked),
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

// remainder returns the row of the unattributed misses, or nil if all misses are attributed.
func (v *CodeView) remainder(columns []column) []string {
	rest, none := attribution.Rest(v.Levels), true
	cells := make([]string, len(columns))
	for j, c := range columns {
		if c.level >= 0 {
			cells[j] = v.estimateMark(c.level) + Count(rest.Misses[c.level])
			if v.Brief {
				cells[j] = v.estimateMark(c.level) + SI(uint64(rest.Misses[c.level]+0.5))
			}
			none = none && rest.Misses[c.level] == 0
		}
	}
	if none {
		return nil
	}
	if cells[0] = "not attributed: conflict misses in sets"; v.hasUnattributed() {
		cells[0] = "at an unknown location"
	}
	return cells
}

// Summary returns a sentence with the number of rows that cause most of the misses.
func (v *CodeView) Summary() string {
	if len(v.rows) == 0 {
		return "The trace names no source location for references of the chosen kinds."
	}
	text := v.MostWords(v.Level(v.Sort))
	if v.Search != "" {
		text = Plural(uint64(len(v.order)), PlaceName(v.By)+" is", PlaceName(v.By)+"s are") + " found. " + text
	}
	return text
}

// Estimates returns a sentence that names the levels whose misses are estimates, although an
// analysis could measure them exactly. Estimates returns "" if there are no such levels.
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
	return "Each row's share of the misses in " + strings.Join(names, " and ") + " is an estimate (≈): this analysis did not count misses by site in a cache of that size and associativity."
}

// Method returns sentences about the method that computed the numbers.
func (v *CodeView) Method() string {
	text := v.method()
	if v.By != attribution.Object && v.coverageMark() != "" {
		text += " Prefetch coverage (≈) is for a fully associative cache."
	}
	return text
}

func (v *CodeView) method() string {
	for _, l := range v.Levels {
		if !l.Exact {
			return "The totals equal the totals in Caches. The misses of each row are computed from its stack distances, which are counted in bins. " +
				"For a level whose misses were not counted by site, these numbers are estimates (≈) if the level is set-associative, or if its size falls within a bin."
		}
	}
	return "Exact: for each level, either the misses were counted by site, or the level is fully associative and the stack distances at each location were counted."
}

// Sentence describes the accesses of a row.
func (v *CodeView) Sentence(place int) string {
	r := &v.rows[place]
	text := Plural(r.References, "reference", "references")
	if v.Ranker.Part() { // if only a part of the run is in view, the numbers of references are unknown
		text = Plural(r.Accesses, "access", "accesses")
	}
	for l := range v.Levels {
		text += ", " + v.estimateMark(l) + Count(r.Misses[l]) + " misses in " + v.levelName(l)
	}
	if v.By != attribution.Object && r.References > 0 {
		text += "; stride " + strideWords(r)
		if share, ok := v.Coverage(r); ok {
			text += "; a prefetcher covers " + v.coverageMark() + Percent(share) + " of the misses in " + v.levelName(0)
		}
	}
	return text + "."
}

// LinePlace returns the row of a source line if the rows are lines, and otherwise -1.
func (v *CodeView) LinePlace(file string, line uint32) int {
	if place, known := v.InFile(file)[line]; known && v.By == attribution.Line {
		return place
	}
	return -1
}

// PlaceOf returns the row that contains a site, given as an index in Sites.Code, or -1.
func (v *CodeView) PlaceOf(site int) int {
	return slices.IndexFunc(v.rows, func(r attribution.Row) bool { return slices.Contains(r.Sites, site) })
}

// Location returns the file and the line of a row, or "" if they are unknown.
func (v *CodeView) Location(place int) (file string, line uint32) {
	r := &v.rows[place]
	if r.File != "" && r.Line == 0 && len(r.Sites) > 0 { // the row is a function: use the line of its first site
		return r.File, v.Profile.Sites.Code[r.Sites[0]].Line
	}
	return r.File, r.Line
}

// Files returns the names of the profile's source files.
func (c *Code) Files() []string {
	seen := map[string]bool{}
	var list []string
	for i := range c.Profile.Sites.Code {
		if f := c.Profile.Sites.Code[i].File; f != "" && !seen[f] {
			seen[f] = true
			list = append(list, f)
		}
	}
	sort.Strings(list)
	return list
}

// FilesNamed returns the elements of Files that have the given name, in any folder.
func (c *Code) FilesNamed(name string) (list []string) {
	for _, f := range c.Files() {
		if path.Base(f) == name {
			list = append(list, f)
		}
	}
	return list
}

// Named returns the name that the stackglass command uses for a row.
func (v *CodeView) Named(place int) string { return v.Sites.Place(&v.rows[place]) }

// Distances returns the histogram of a row's stack distances.
func (v *CodeView) Distances(place int) *Chart {
	counts, cold := v.Binned(&v.rows[place])
	chart := binsChart("place", "Accesses at this location, by stack distance", counts, cold)
	chart.Y.Label = "share of the accesses at this location"
	return chart
}

// DistancesTable returns a row's accesses by stack distance.
func (v *CodeView) DistancesTable(place int) *Table {
	whole := v.DistancesOf(&v.rows[place])
	t := show(&whole, words, nil)
	if t.Caption = "Accesses at this location, by stack distance"; v.OfPlace != nil {
		t.setDocument(v.OfPlace(v.Named(place)))
	}
	return t
}

// The method Before lists the code that previously accessed the cache lines of the row's accesses,
// most frequent first. Before returns nil if previous accesses were not recorded.
func (v *CodeView) Before(place int) *Table {
	if v.NoBefore() != "" || v.Document == nil {
		return nil
	}
	d := v.Document()
	at := slices.IndexFunc(d.Tables, func(t report.Table) bool { return t.Key == "before" })
	if at < 0 {
		return nil
	}
	t := show(&d.Tables[at], words, map[string]string{"of": v.Named(place)}, "place", "accesses", "share").setDocument(v.Document)
	t.Caption = "Code that previously accessed the same lines (only for accesses with stack distances of " + strconv.Itoa(profile.PreviousFrom) + " or more)"
	return t
}

// NoBefore explains why previous accesses are unknown; "" if they are known.
func (v *CodeView) NoBefore() string {
	switch {
	case !v.Profile.Sites.Previous:
		return "This analysis did not record which code previously accessed each line. Turn on “Record which code accessed each line last” in the settings, and analyse again."
	case v.Ranker.Part():
		return "The code that previously accessed each line is known only for the whole run."
	}
	return ""
}

// shareOf returns a row's share of a level's misses, 0 to 1.
func (c *Code) shareOf(r *attribution.Row, level int) float64 {
	return min(r.Misses[level]/max(c.Levels[level].Level.Misses, 1), 1)
}

// InFile returns a map from the line numbers of a file to the indices of the rows. The map is
// meaningful only if the rows are source lines.
func (c *Code) InFile(name string) map[uint32]int {
	if c.files == nil {
		c.files = map[string]map[uint32]int{}
		for i := range c.rows {
			r := &c.rows[i]
			if c.files[r.File] == nil {
				c.files[r.File] = map[uint32]int{}
			}
			c.files[r.File][r.Line] = i
		}
	}
	return c.files[name]
}

// SourceGrid shows a source file under the name that the profile uses. On the left of each line are
// the line's misses in each level, as numbers and bars. On the right are the line's problem, loops
// and operands.
func (v *CodeView) SourceGrid(f *Source, name string, line uint32) *Grid {
	lines, level, levels := v.Lines.InFile(name), v.Level(v.Sort), len(v.Levels)
	row := func(i int) *attribution.Row {
		if place, known := lines[uint32(i+1)]; known {
			return &v.Lines.rows[place]
		}
		return nil
	}
	t := &Table{Caption: name + " with the misses of each line", Rows: len(f.Lines)}
	for l := range v.Levels {
		t.Columns = append(t.Columns, Column{Name: v.levelName(l)})
	}
	t.Columns = append(t.Columns, Column{Name: "line"}, Column{Name: "source", Words: true})
	t.Row = func(i int) []string {
		cells := make([]string, levels+2)
		cells[levels], cells[levels+1] = strconv.Itoa(i+1), f.Lines[i]
		if r := row(i); r != nil {
			for l := range v.Levels {
				if n := r.Misses[l]; n > 0 {
					cells[l] = SI(uint64(n + 0.5))
				}
			}
		}
		return cells
	}
	notes, longest := v.notes(name, lines, level), 0
	for i, text := range f.Lines {
		longest = max(longest, columnsOf(text)+3+utf8.RuneCountInString(notes[uint32(i+1)]))
	}
	return &Grid{
		Table: t, ID: "source", Order: name + f.Path, Selected: int(line) - 1,
		Code: append(make([]bool, levels+1), true), Language: Language(name), Longest: longest,
		After:  func(i int) string { return notes[uint32(i+1)] },
		Titles: func(i int) []string { return v.missTitles(row(i)) },
		Mark: func(i int) string {
			if f.InComment(i) {
				return "comment"
			}
			return ""
		},
		Shares: func(i int) []float64 { return v.missShares(row(i), level) },
	}
}

// missTitles describes the misses of a row in each level. The row may be nil.
func (v *CodeView) missTitles(r *attribution.Row) []string {
	titles := make([]string, len(v.Levels))
	if r != nil {
		for l := range titles {
			titles[l] = v.estimateMark(l) + Count(r.Misses[l]) + " misses in " + v.levelName(l) + ", " + v.estimateMark(l) + Percent(v.shareOf(r, l)) + " of all " + v.levelName(l) + " misses"
		}
	}
	return titles
}

// missShares returns the lengths of the bars of a row that shows the misses in each level, a line
// number and code. For the code, it returns the intensity of the background colour. The row may be
// nil.
func (v *CodeView) missShares(r *attribution.Row, level int) []float64 {
	levels := len(v.Levels)
	shares := make([]float64, levels+2)
	for l := range shares {
		if shares[l] = -1; r != nil && l < levels {
			shares[l] = v.shareOf(r, l)
		}
	}
	if r != nil {
		shares[levels+1] = v.shareOf(r, level)
	}
	return shares
}

// notes returns a note for each source line: its problem, its loops and its operands.
func (v *CodeView) notes(name string, lines map[uint32]int, level int) map[uint32]string {
	notes := map[uint32]string{}
	for line, place := range lines {
		var list []string
		if v.Advice != nil {
			if p := v.Advice(name, line); p != nil {
				list = append(list, p.Rank+". "+p.Kind)
			}
		}
		if v.Loops != nil {
			list = append(list, v.Loops(name, line))
		}
		list = append(list, v.operands(&v.Lines.rows[place], level))
		notes[line] = strings.Join(slices.DeleteFunc(list, func(text string) bool { return text == "" }), "; ")
	}
	return notes
}

// operands describes the variables of a line, with their strides and their shares of the line's
// misses.
func (v *CodeView) operands(r *attribution.Row, level int) string {
	type operand struct {
		name   string
		misses float64
		sum    profile.Site
	}
	var list []operand
	for _, i := range r.Sites {
		s := &v.Profile.Sites.Code[i]
		if strings.HasPrefix(s.Variable, ".") {
			continue // a variable that the compiler has added, such as .omp.lb
		}
		at := slices.IndexFunc(list, func(o operand) bool { return o.name == s.Variable })
		if at < 0 {
			at, list = len(list), append(list, operand{name: s.Variable})
		}
		list[at].misses += v.Levels[level].Sites[i]
		for c, n := range s.Strides {
			list[at].sum.Strides[c] += n
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].misses > list[j].misses })
	var texts []string
	for _, o := range list {
		text := strings.TrimSpace(o.name + " " + o.sum.Stride().String() + " stride")
		if len(list) > 1 && o.misses > 0 && o.name != "" {
			text += " " + v.estimateMark(level) + Percent(o.misses/r.Misses[level])
		}
		if o.name != "" || len(list) == 1 {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// columnsOf returns the width of a line of code in columns, with tab stops every four columns.
func columnsOf(text string) (n int) {
	for _, r := range text {
		if n++; r == '\t' {
			n = (n + 3) / 4 * 4
		}
	}
	return n
}

// Operands lists the instructions of a row's line, with their variables, or returns nil if the row
// is not a line.
func (v *CodeView) Operands(place int, of func() *report.Document) *Table {
	r := &v.rows[place]
	if v.By != attribution.Line || r.Line == 0 || of == nil {
		return nil
	}
	d := of()
	at := slices.IndexFunc(d.Tables, func(t report.Table) bool { return t.Key == "sites" })
	if at < 0 {
		return nil
	}
	columns := []string{"variable", "kind", "type", "stride", "references"}
	for l := range v.Levels {
		columns = append(columns, v.levelName(l)+"_misses")
	}
	if key, _ := v.utilisation(); key != "" {
		columns = append(columns, key)
	}
	t := show(&d.Tables[at], answerWords, map[string]string{"file": r.File, "line": strconv.FormatUint(uint64(r.Line), 10), "function": v.Name(r.Function)}, columns...).setDocument(of)
	t.Caption = "Memory instructions of this source line"
	return t
}

// Line returns the source line of a row in the form FILE:LINE; "" if the row is neither a line nor
// an instruction of a known line.
func (v *CodeView) Line(place int) string {
	if r := &v.rows[place]; v.By != attribution.Function && v.By != attribution.Object && r.File != "" && r.Line > 0 {
		return lineName(r.File, r.Line)
	}
	return ""
}

// SourceLines returns the source lines of a row's instructions, in the form FILE:LINE.
func (v *CodeView) SourceLines(place int) map[string]bool {
	lines := map[string]bool{}
	for _, i := range v.rows[place].Sites {
		s := &v.Profile.Sites.Code[i]
		lines[lineName(s.File, s.Line)] = true
	}
	return lines
}

// Hot returns the hot lines of a file: the line numbers, in ascending order, at which at least 1 %
// of the current level's misses occur.
func (v *CodeView) Hot(name string) (hot []uint32) {
	level := v.Level(v.Sort)
	for line, place := range v.Lines.InFile(name) {
		if v.shareOf(&v.Lines.rows[place], level) >= 0.01 {
			hot = append(hot, line)
		}
	}
	slices.Sort(hot)
	return hot
}

// MissingLine explains that a file is too short for a line that the profile names.
func MissingLine(f *Source, line uint32) string {
	if int(line) <= len(f.Lines) {
		return ""
	}
	return f.Name + " has " + Plural(uint64(len(f.Lines)), "line", "lines") + ", but the trace names line " + strconv.FormatUint(uint64(line), 10) +
		": a different version of the file was compiled."
}

// SitesDocument returns a function that creates the document of the ranking for a hierarchy.
func (v *View) SitesDocument(by attribution.By, h hierarchy.Hierarchy) func() *report.Document {
	return v.document(v.sitesQuestion(by, h))
}

// PlaceDocument returns a function that maps the name of a row to a constructor of the document
// about the row's stack distances.
func (v *View) PlaceDocument(by attribution.By, h hierarchy.Hierarchy) func(named string) func() *report.Document {
	return func(named string) func() *report.Document {
		return v.document(v.sitesQuestion(by, h).With("distances", named))
	}
}

func (v *View) sitesQuestion(by attribution.By, h hierarchy.Hierarchy) ask.Question {
	q := v.question("sites").With("by", string(by))
	q.Machine = h
	return q
}

// worstLine returns the finding about the source line with the most misses in the first level of
// the current hierarchy.
func (v *View) worstLine(h hierarchy.Hierarchy) (Finding, bool) {
	r := v.Run.Ranker()
	if r == nil || len(v.Profile.Sites.Code) == 0 {
		return Finding{}, false
	}
	levels, _, err := r.Attribute(h)
	if err != nil || len(levels) == 0 || levels[0].Level.Misses == 0 {
		return Finding{}, false
	}
	c := NewCode(v.Run, r, attribution.Line, levels)
	total, most := levels[0].Level.Misses, c.rows[0].Misses[0]
	why := ""
	if n := c.rows[0].Coherence[0]; n >= most/2 {
		why = "These accesses miss because a store by another core invalidated the line. "
		if n < most {
			why = c.estimateMark(0) + Count(n) + " of them miss because a store by another core invalidated the line. "
		}
	}
	return Finding{ID: "worst-line", Title: "Worst line", Tab: TabCode,
		Text: strings.ReplaceAll(c.Place(0), "  ", " in ") + " causes " + c.estimateMark(0) + Percent(most/total) + " of the misses in " + levels[0].Level.Cache.Name +
			" of " + Bytes(levels[0].Level.Cache.SizeBytes) + ", " + WaysText(levels[0].Level.Cache.Ways) + ": " + c.estimateMark(0) + Count(most) + " of " + c.totalMark(0) + Count(total) + ". " + why + c.MostWords(0)}, true
}

// CodeBys lists the groupings of the misses in the order in which they appear on the page.
func CodeBys() []attribution.By {
	return []attribution.By{attribution.Line, attribution.Site, attribution.Function, attribution.Object}
}

// PlaceName returns the page's term for a row if the misses are grouped in the given way.
func PlaceName(by attribution.By) string {
	switch by {
	case attribution.Site:
		return "instruction"
	case attribution.Function:
		return "function"
	case attribution.Object:
		return "data structure"
	}
	return "source line"
}
