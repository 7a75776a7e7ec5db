package state

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// Code attributes the misses of a hierarchy to the source locations or data structures of a
// profile, like "stackglass sites".
type Code struct {
	*answers.Sites
	rows  []attribution.Row
	most  [MaxLevels][]int          // for each level: the rows with the most misses; computed on first use
	first map[int]int               // for each ID: the index of the row
	names []string                  // names of the rows; computed on the first sort
	words []string                  // for each row: the searchable text; computed on the first search
	files map[string]map[uint32]int // for each file and line: the row; computed on first use
}

// NewCode attributes the misses of the given cache levels to places in the code or to data
// structures. The parameter r ranks the misses either of the whole run or of a part of the run.
func NewCode(run *ask.Run, r *attribution.Ranker, by attribution.By, levels []attribution.Attribution) *Code {
	c := &Code{Sites: &answers.Sites{Profile: run.Profile, Ranker: r, Levels: levels, By: by, Name: run.FunctionName}, first: map[int]int{}}
	c.rows = c.Rows()
	for i := range c.rows {
		c.first[c.ID(i)] = i
	}
	return c
}

// ID returns an identifier of a row: the row's data structure or its first site. The identifier
// depends on neither the order of the rows nor the cache levels.
func (c *Code) ID(place int) int {
	if c.By == attribution.Object {
		return c.rows[place].Object
	}
	return c.rows[place].Sites[0]
}

// utilisation selects the measured cache whose size is nearest to the size of the first level. It
// returns the key of the column with the line utilisation in this cache, and the cache's size. If
// no cache was measured, the key is "".
func (c *Code) utilisation() (key string, bytes uint64) {
	lines, best := c.Levels[0].Level.Cache.Lines(), uint64(math.MaxUint64)
	at := 0
	for _, k := range c.Keys() {
		if !strings.HasPrefix(k, "utilisation_") {
			continue
		}
		n := c.Profile.Sites.Capacities[at]
		if off := max(n, lines) / max(min(n, lines), 1); off < best {
			key, bytes, best = k, n*uint64(c.Profile.Sites.LineBytes), off
		}
		at++
	}
	return key, bytes
}

// estimateMark returns the prefix for the misses in a level: ≈ if they are estimates.
func (c *Code) estimateMark(level int) string {
	if !c.Levels[level].Exact {
		return about
	}
	return ""
}

// coverageMark returns the prefix for prefetch coverage: ≈ if it refers to the misses of another cache.
func (c *Code) coverageMark() string {
	if !c.CoverageIsExact() {
		return about
	}
	return ""
}

// totalMark returns the prefix for the total misses in a level: ≈ if a model computed the total.
func (c *Code) totalMark(level int) string {
	if c.Levels[level].Level.Method != hierarchy.Exact {
		return about
	}
	return ""
}

// MostWords returns a sentence with the number of top rows that cause 90 % of a level's misses. If
// all rows together cause less than 90 % of the misses, the sentence contains their share.
func (c *Code) MostWords(level int) string {
	most, made, total := c.Most(level), 0.0, c.Levels[level].Level.Misses
	for _, row := range most {
		made += c.rows[row].Misses[level]
	}
	n := len(most)
	places := Plural(uint64(len(c.rows)), PlaceName(c.By), PlaceName(c.By)+"s")
	of := c.totalMark(level) + Count(total) + " misses in " + c.Levels[level].Level.Cache.Name
	number, cause := Exact(uint64(n)), "cause"
	if n == 1 {
		cause = "causes"
	}
	if !c.Levels[level].Exact {
		number = "About " + number
	}
	switch {
	case total == 0:
		return "There are no misses in " + c.Levels[level].Level.Cache.Name + "."
	case made < 0.9*total && c.hasUnattributed():
		return "All " + places + " together cause " + c.estimateMark(level) + Percent(made/total) + " of the " + of + "; the profile does not attribute the other misses. Analyse the trace again."
	case made < 0.9*total:
		return "All " + places + " together cause " + c.estimateMark(level) + Percent(made/total) + " of the " + of + "; the others are conflict misses in sets, which cannot be attributed."
	default:
		return number + " of " + places + " (highlighted) " + cause + " 90" + thin + "% of the " + of + "."
	}
}

// hasUnattributed reports whether some misses are unattributed because the profile has no sites for them.
func (c *Code) hasUnattributed() bool {
	return slices.ContainsFunc(c.Levels, func(l attribution.Attribution) bool { return l.Rest > 0 && l.RestUnknown })
}

// Ranked returns the rows that contain the search words, ordered by the column with the key "by".
func (c *Code) Ranked(by, search string) []int {
	var order []int
	if by == "place" {
		if c.names == nil {
			c.names = make([]string, len(c.rows))
			for i := range c.names {
				c.names[i] = c.Place(i)
			}
		}
		order = c.OrderBy(len(c.rows), func(i int) (float64, string) { return 0, c.names[i] })
	} else {
		order = c.Order(by, len(c.rows))
	}
	if search = strings.ToLower(strings.TrimSpace(search)); search == "" {
		return order
	}
	return slices.DeleteFunc(order, func(i int) bool { return !strings.Contains(c.searchText(i), search) })
}

// Cause describes, in words, one of the rows with the most misses in the first level.
type Cause struct {
	_                                          incomparable
	ID                                         int // ID of the row
	Where, Function, References, Misses, Share string
}

// referencesOf formats the number of references of a row. If only a part of the run is in view,
// references are not counted, so referencesOf formats the number of line accesses instead.
func (c *Code) referencesOf(r *attribution.Row) string {
	if c.Ranker.Part() {
		return Plural(r.Accesses, "access", "accesses")
	}
	return Exact(r.References)
}

// Causes returns the rows with the most misses in the first level. The parameter "count" limits the
// number of rows.
func (c *Code) Causes(count int) (list []Cause) {
	for _, place := range c.Most(0) {
		r := &c.rows[place]
		cause := Cause{ID: c.ID(place), Function: c.Name(r.Function), References: c.referencesOf(r), Misses: c.estimateMark(0) + Count(r.Misses[0]),
			Share: c.estimateMark(0) + Percent(r.Misses[0]/max(c.Levels[0].Level.Misses, 1))}
		if cause.Where = c.Place(place); r.File != "" && r.Line > 0 {
			cause.Where = lineName(r.File, r.Line)
		}
		if list = append(list, cause); len(list) == count {
			break
		}
	}
	return list
}

// Level returns the index of the level by whose misses the given key sorts, or 0 if the key is not
// the key of a level's misses.
func (c *Code) Level(sort string) int {
	return max(0, slices.IndexFunc(c.Levels, func(l attribution.Attribution) bool { return sort == l.Level.Cache.Name+"_misses" }))
}

// Most returns the rows that cause 90 % of a level's misses, in descending order of misses.
func (c *Code) Most(level int) []int {
	if c.most[level] == nil {
		c.most[level] = c.Reaching(level, 0.9)
	}
	return c.most[level]
}

// searchText returns the searchable text of a row, in lower case.
func (c *Code) searchText(i int) string {
	if c.words == nil {
		c.words = make([]string, len(c.rows))
	}
	if c.words[i] != "" {
		return c.words[i]
	}
	text := c.Place(i)
	if c.By != attribution.Object {
		s := &c.Profile.Sites.Code[c.rows[i].Sites[0]]
		text += " " + s.Function + " " + s.File + " " + s.Variable + " " + s.Type + " " + s.Module
	}
	c.words[i] = strings.ToLower(text)
	return c.words[i]
}

// Place returns the name of a row, such as "main.c:17 multiply", "multiply", "multiply
// main.c:17:12" or "heap of make main.c:9".
func (c *Code) Place(i int) string {
	r := &c.rows[i]
	if c.By == attribution.Object {
		return objectName(&c.Profile.Sites.Data[r.Object], c.Name)
	}
	s := &c.Profile.Sites.Code[r.Sites[0]]
	switch {
	case c.By == attribution.Function && s.Function != "":
		return c.Name(s.Function)
	case c.By == attribution.Line && s.Line > 0:
		return lineName(s.File, s.Line) + blank(c.Name(s.Function))
	}
	return siteName(s, c.Name)
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

// siteName returns the name of an instruction. The parameter "readable" demangles function names.
func siteName(s *profile.Site, readable func(string) string) string {
	name := answers.AddressOf(s)
	if s.File != "" && s.Line > 0 {
		if name = lineName(s.File, s.Line); s.Column > 0 {
			name += ":" + strconv.FormatUint(uint64(s.Column), 10)
		}
	}
	return name + blank(readable(s.Function)) + blank(s.Variable)
}

// objectName returns the name of a data structure. The parameter "readable" demangles function
// names.
func objectName(d *profile.DataObject, readable func(string) string) string {
	where := ""
	if d.File != "" && d.Line > 0 {
		where = blank(lineName(d.File, d.Line))
	}
	name := answers.ObjectName(d, readable)
	if d.Name == "" && d.Kind == profile.HeapObject {
		return name + where // the name of a heap block already contains the function
	}
	return name + blank(readable(d.Function)) + where
}

// strideWords describes the strides of a row: the most frequent class and its share.
func strideWords(r *attribution.Row) string {
	if r.References == 0 {
		return "–"
	}
	return r.Stride().String() + " " + Percent(Ratio(r.Strides[r.Stride()], r.References))
}

// missingSites returns the reason why a profile cannot attribute references to code.
func missingSites(p *profile.Profile) string {
	switch {
	case p.Sites != nil:
		return ""
	case p.Input.Header.Sites:
		return "This trace records which code made its references, but this analysis does not include the code: the lines did not fit in memory, or “sites” was not among the requested analyses. " +
			"Analyse the trace again, with a higher memory limit or as a sample (space=0.01)."
	}
	return "This trace does not record which code made its references. Programs that are compiled with “stackglass cc” or run by “stackglass trace” record this information, " +
		"and so do other tools whose traces contain instruction addresses. Drop such a trace here. Profiles from early versions also lack this information: analyse their traces again."
}
