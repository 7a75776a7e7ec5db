package state

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Code attributes the misses of a hierarchy to the source locations, or the data structures, of a
// profile.
type Code struct {
	Sites  *profile.Sites
	By     CodeBy
	Levels []attribution.Attribution

	ranker *attribution.Ranker
	rows   []attribution.Row
	most   [MaxLevels]*mostOf // by level, made when first asked for
	names  []string           // of rows, the same
	first  map[int]int        // rows by what identifies them: see id
	words  []string           // what is searched in, made when first searched; of rows
}

// NewCode attributes the misses of levels. r is the ranker of a profile with these sites.
func NewCode(s *profile.Sites, r *attribution.Ranker, by CodeBy, levels []attribution.Attribution) *Code {
	c := &Code{Sites: s, By: by, Levels: levels, ranker: r, rows: r.Rows(levels, by.attributed(), 0), first: map[int]int{}}
	for i := range c.rows {
		c.first[c.id(i)] = i
	}
	return c
}

// id identifies a row whatever the order: its object, or its first site.
func (c *Code) id(row int) int {
	if c.By == ByObject {
		return c.rows[row].Object
	}
	return c.rows[row].Sites[0]
}

// Ranker is that of the view's profile; nil where it tells no sites.
func (v *View) Ranker() *attribution.Ranker {
	if v.ranker == nil {
		v.ranker, _ = attribution.New(v.Profile)
	}
	return v.ranker
}

// utilisation is the index of the measured capacity that is nearest to the first
// level's.
func (c *Code) utilisation() int {
	best := 0
	if len(c.Levels) == 0 {
		return best
	}
	lines := c.Levels[0].Level.Cache.Lines()
	off := func(n uint64) uint64 { return max(n, lines) / max(min(n, lines), 1) }
	for i, n := range c.Sites.Capacities {
		if off(n) < off(c.Sites.Capacities[best]) {
			best = i
		}
	}
	return best
}

// used is the utilisation of what a place fetched, at that capacity.
func (c *Code) used(row int) (u profile.Utilisation) {
	if at := c.utilisation(); at < len(c.rows[row].Used) {
		u = c.rows[row].Used[at]
	}
	return u
}

// Rows is the number of places.
func (c *Code) Rows() int { return len(c.rows) }

// Total is the number of misses of a level, those of no place included.
func (c *Code) Total(level int) float64 {
	if level >= len(c.Levels) {
		return 0
	}
	return c.Levels[level].Level.Misses
}

// about stands before numbers of places in a level that are estimates.
func (c *Code) about(level int) string {
	if level < len(c.Levels) && !c.Levels[level].Exact {
		return "≈" + thin
	}
	return ""
}

// aboutTotal stands before what a level misses where a model says it.
func (c *Code) aboutTotal(level int) string {
	if level < len(c.Levels) && c.Levels[level].Level.Method != hierarchy.Exact {
		return "≈" + thin
	}
	return ""
}

// MostWords says how many places, the worst first, cause 90 % of a level's misses; where all
// places cause less, it says how much.
func (c *Code) MostWords(level int) string {
	n, _ := c.Most(level)
	made, total := c.most[level].misses, c.Total(level)
	places := Plural(uint64(len(c.rows)), c.By.Name(), c.By.Name()+"s")
	of := c.aboutTotal(level) + Count(total) + " misses in " + c.Levels[level].Level.Cache.Name
	cause := " (highlighted) cause 90" + thin + "% of the " + of + "."
	if n == 1 {
		cause = " (highlighted) causes 90" + thin + "% of the " + of + "."
	}
	switch {
	case total == 0:
		return "Nothing misses in " + c.Levels[level].Level.Cache.Name + "."
	case made < 0.9*total && c.unknown():
		return "All " + places + " together make " + c.about(level) + Percent(made/total) + " of the " + of + "; the profile does not say which places make the others. Analyse the trace again."
	case made < 0.9*total:
		return "All " + places + " together make " + c.about(level) + Percent(made/total) + " of the " + of + "; the others are conflicts in sets, of which it is not known whose they are."
	case !c.Levels[level].Exact:
		return "About " + Exact(uint64(n)) + " of " + places + cause
	default:
		return Exact(uint64(n)) + " of " + places + cause
	}
}

// unknown reports whether misses are of no place because the profile does not say of
// which.
func (c *Code) unknown() bool {
	return slices.ContainsFunc(c.Levels, func(l attribution.Attribution) bool { return l.Rest > 0 && l.RestUnknown })
}

// coherence is the number of coherence misses of a place in a level.
func (c *Code) coherence(row, level int) float64 {
	if level >= len(c.Levels) {
		return 0
	}
	return c.rows[row].Coherence[level]
}

// misses are those of a place in a level.
func (c *Code) misses(row, level int) float64 {
	if level >= len(c.Levels) {
		return 0
	}
	return c.rows[row].Misses[level]
}

// Ranked gives the places in an order, only those that hold the words searched
// for: by is a column's key; "" ranks by the misses of the first level.
func (c *Code) Ranked(by, search string) []int {
	order := make([]int, 0, len(c.rows))
	search = strings.ToLower(strings.TrimSpace(search))
	for i := range c.rows {
		if search == "" || strings.Contains(c.searched(i), search) {
			order = append(order, i)
		}
	}
	if by == "place" {
		if c.names == nil {
			c.names = make([]string, len(c.rows))
			for i := range c.names {
				c.names[i] = c.Place(i)
			}
		}
		sort.Sort(&ordering{order, func(x, y int) int { return strings.Compare(c.names[x], c.names[y]) }})
		return order
	}
	keys := make([]float64, len(c.rows))
	for _, i := range order {
		keys[i] = c.number(i, by)
	}
	sort.Sort(&ordering{order, func(x, y int) int { return cmp.Compare(keys[y], keys[x]) }})
	return order
}

// ordering sorts places, equal ones as they are in the profile. It is no instance
// of a generic sort: each of these is as much to transfer as this file.
type ordering struct {
	order   []int
	compare func(x, y int) int
}

func (o *ordering) Len() int      { return len(o.order) }
func (o *ordering) Swap(i, j int) { o.order[i], o.order[j] = o.order[j], o.order[i] }
func (o *ordering) Less(i, j int) bool {
	x, y := o.order[i], o.order[j]
	if c := o.compare(x, y); c != 0 {
		return c < 0
	}
	return x < y
}

// Level is the level whose misses a sort ranks by, from 0; the first one for
// other sorts.
func (c *Code) Level(sort string) int {
	if n, err := strconv.Atoi(strings.TrimPrefix(sort, "misses_")); err == nil && n >= 1 && n <= len(c.Levels) {
		return n - 1
	}
	return 0
}

// number is what a place is sorted by.
func (c *Code) number(i int, by string) float64 {
	r := &c.rows[i]
	switch by {
	case "references":
		return float64(r.References)
	case "ratio":
		return c.misses(i, 0) / float64(max(r.Accesses, 1))
	case "coherence":
		return c.coherence(i, 0)
	case "stride":
		return float64(r.Strides[profile.IrregularStride]) / float64(max(r.References, 1))
	case "used":
		if u := c.used(i); u.Fetched > 0 {
			return -u.Share(c.Sites.LineBytes) // the worst first
		}
		return -2
	case "blocks":
		return float64(c.Sites.Data[r.Object].Blocks)
	}
	return c.misses(i, c.Level(by))
}

// Most returns how many places, the worst first, cause 90 % of the misses of a level, and which
// they are.
func (c *Code) Most(level int) (n int, among []bool) {
	if c.most[level] == nil {
		c.most[level] = c.findMost(level)
	}
	return c.most[level].n, c.most[level].among
}

// mostOf are the rows that make most misses of a level.
type mostOf struct {
	n      int
	among  []bool
	misses float64
}

func (c *Code) findMost(level int) *mostOf {
	m := &mostOf{among: make([]bool, len(c.rows))}
	for _, i := range c.Ranked("misses_"+strconv.Itoa(level+1), "") {
		if m.misses >= 0.9*c.Total(level) {
			break
		}
		m.misses += c.misses(i, level)
		m.among[i] = true
		m.n++
	}
	return m
}

// searched is what is known of a place, in small letters.
func (c *Code) searched(i int) string {
	if c.words == nil {
		c.words = make([]string, len(c.rows))
	}
	if c.words[i] != "" {
		return c.words[i]
	}
	text := c.Place(i)
	if c.By != ByObject {
		s := &c.Sites.Code[c.rows[i].Sites[0]]
		text += " " + s.Function + " " + s.File + " " + s.Variable + " " + s.Type + " " + s.Module
	}
	c.words[i] = strings.ToLower(text)
	return c.words[i]
}

// Place names a place: main.c:17 multiply, multiply, multiply main.c:17:12, heap
// of make main.c:9.
func (c *Code) Place(i int) string {
	r := &c.rows[i]
	if c.By == ByObject {
		return objectName(&c.Sites.Data[r.Object])
	}
	s := &c.Sites.Code[r.Sites[0]]
	switch {
	case c.By == ByFunction && s.Function != "":
		return s.Function
	case c.By == ByLine && s.Line > 0:
		return lineName(s.File, s.Line) + blank(s.Function)
	}
	return siteName(s)
}

func lineName(file string, line uint32) string {
	return file + ":" + strconv.FormatUint(uint64(line), 10)
}

func blank(text string) string {
	if text == "" {
		return ""
	}
	return "  " + text
}

// siteName names one instruction.
func siteName(s *profile.Site) string {
	name := ""
	switch {
	case s.File != "" && s.Line > 0:
		name = lineName(s.File, s.Line)
		if s.Column > 0 {
			name += ":" + strconv.FormatUint(uint64(s.Column), 10)
		}
	case s.Module != "":
		name = s.Module + "+0x" + strconv.FormatUint(s.Offset, 16)
	case s.PC != 0:
		name = "0x" + strconv.FormatUint(s.PC, 16)
	default:
		name = "site " + strconv.FormatUint(uint64(s.Number), 10)
	}
	return name + blank(s.Function) + blank(s.Variable)
}

// objectName names a data structure.
func objectName(d *profile.DataObject) string {
	where := ""
	if d.File != "" && d.Line > 0 {
		where = blank(lineName(d.File, d.Line))
	}
	switch {
	case d.Name != "":
		return d.Name + blank(d.Function) + where
	case d.Kind == profile.HeapObject:
		return "allocated by " + cmp.Or(d.Function, "code that is not known") + where
	case d.Kind == profile.StackObject:
		return "stack" + blank(d.Function) + where
	}
	return "all the rest"
}

// kindWords names the kinds of references of a place.
func (c *Code) kindWords(row int) string {
	var seen [trace.NumKinds]bool
	text := ""
	for _, i := range c.rows[row].Sites {
		k := c.Sites.Code[i].Kind
		if seen[k] {
			continue
		}
		seen[k] = true
		if text != "" {
			text += ", "
		}
		text += k.String()
	}
	return text
}

// strideWords says how references lie behind each other: the class of most, and
// how many these are.
func strideWords(strides [profile.NumStrides]uint64) string {
	s := profile.Site{Strides: strides}
	most := s.Stride()
	if s.References() == 0 {
		return "–"
	}
	return most.String() + " " + Percent(Ratio(strides[most], s.References()))
}

// missingSites says why a profile does not tell which code made its references.
func missingSites(p *profile.Profile) string {
	switch {
	case p.Sites != nil:
		return ""
	case p.Input.Header.Sites:
		return "This trace records which code made its references, but this analysis does not have it: its lines did not fit in memory, or “sites” was not among its analyses. " +
			"Analyse the trace again, with more memory in the settings or of a sample (space=0.01)."
	}
	return "This trace does not record which code made its references. Programs that are compiled with “stackglass cc” or run by “stackglass trace” record it, " +
		"and so do traces of other tools with instruction addresses: drop one here. Profiles of early versions do not have it either: analyse their trace again."
}
