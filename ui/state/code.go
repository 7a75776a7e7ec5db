package state

import (
	"cmp"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Code is who makes the misses: the places in the code, or the data structures,
// of a profile, with their misses in each level of a hierarchy as if it were
// fully associative.
type Code struct {
	Sites  *profile.Sites
	By     CodeBy
	Levels []hierarchy.Cache

	rows   []codeRow // in the order of the profile
	words  []string  // what is searched in, made when first searched; of rows
	totals [MaxLevels]float64
}

// codeRow sums up the sites of one place, or is a data structure.
type codeRow struct {
	first      int // its first site, or the structure
	sites      int
	references uint64
	accesses   uint64
	misses     [MaxLevels]float64
	strides    [profile.NumStrides]uint64
	used       profile.Utilisation // at the capacity of utilisation()
	kinds      uint8               // of its references, a bit each
}

// NewCode sums the sites up for the levels, as far as there are no more than
// [MaxLevels].
func NewCode(s *profile.Sites, by CodeBy, levels []hierarchy.Cache) *Code {
	c := &Code{Sites: s, By: by, Levels: levels[:min(len(levels), MaxLevels)]}
	if by == ByObject {
		for i := range s.Data {
			d := &s.Data[i]
			c.rows = append(c.rows, codeRow{first: i, sites: int(d.Blocks), references: d.References})
			c.addReuse(&c.rows[i], &d.Reuse)
		}
	} else {
		c.sumSites()
	}
	for i := range c.rows {
		for l := range c.Levels {
			c.totals[l] += c.rows[i].misses[l]
		}
	}
	return c
}

// placeKey is what the sites of one row have in common.
type placeKey struct {
	function, file string
	line           uint32
	site           int // from 1, where nothing else is known
}

// keyOf is the place of a site.
func (c *Code) keyOf(i int) placeKey {
	s := &c.Sites.Code[i]
	switch {
	case c.By == ByLine && s.File != "" && s.Line > 0:
		return placeKey{file: s.File, line: s.Line}
	case c.By == ByFunction && s.Function != "":
		return placeKey{function: s.Function, file: s.File}
	case c.By == ByFunction && s.Module != "":
		return placeKey{file: s.Module}
	}
	return placeKey{site: i + 1}
}

func (c *Code) sumSites() {
	at := map[placeKey]int{}
	for i := range c.Sites.Code {
		s := &c.Sites.Code[i]
		key := c.keyOf(i)
		n, known := at[key]
		if !known {
			n = len(c.rows)
			at[key] = n
			c.rows = append(c.rows, codeRow{first: i})
		}
		r := &c.rows[n]
		r.sites++
		r.references += s.References()
		r.kinds |= 1 << s.Kind
		for k, count := range s.Strides {
			r.strides[k] += count
		}
		c.addReuse(r, &s.Reuse)
	}
}

func (c *Code) addReuse(r *codeRow, reuse *profile.Reuse) {
	r.accesses += reuse.Accesses()
	for l, level := range c.Levels {
		r.misses[l] += missesOf(reuse, level.SizeBytes/uint64(c.Sites.LineBytes))
	}
	if at := c.utilisation(); at < len(reuse.Used) {
		r.used.Fetched += reuse.Used[at].Fetched
		r.used.BytesUsed += reuse.Used[at].BytesUsed
	}
}

// utilisation is the index of the measured capacity that is nearest to the first
// level's.
func (c *Code) utilisation() int {
	if len(c.Levels) == 0 {
		return 0
	}
	lines, best := c.Levels[0].SizeBytes/uint64(c.Sites.LineBytes), 0
	for i, n := range c.Sites.Capacities {
		if max(n, lines)/max(min(n, lines), 1) < max(c.Sites.Capacities[best], lines)/max(min(c.Sites.Capacities[best], lines), 1) {
			best = i
		}
	}
	return best
}

// missesOf is the number of accesses with a distance of lines or more: exact at
// the edge of a bin, in proportion within one.
func missesOf(r *profile.Reuse, lines uint64) float64 {
	misses := float64(r.Cold)
	for _, b := range r.Bins {
		from, to := profile.SiteBinFrom(int(b.Bin)), profile.SiteBinFrom(int(b.Bin)+1)
		switch {
		case from >= lines:
			misses += float64(b.Count)
		case to > lines:
			misses += float64(b.Count) * float64(to-lines) / float64(to-from)
		}
	}
	return misses
}

// Rows is the number of places.
func (c *Code) Rows() int { return len(c.rows) }

// Total is the number of misses of all places in a level.
func (c *Code) Total(level int) float64 { return c.totals[level] }

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
		names := make([]string, len(c.rows))
		for _, i := range order {
			names[i] = c.Place(i)
		}
		sort.Sort(&ordering{order, func(x, y int) int { return strings.Compare(names[x], names[y]) }})
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
func (c *Code) number(i int, sort string) float64 {
	r := &c.rows[i]
	switch sort {
	case "references":
		return float64(r.references)
	case "ratio":
		return r.misses[0] / float64(max(r.accesses, 1))
	case "stride":
		return float64(r.strides[profile.IrregularStride]) / float64(max(r.references, 1))
	case "used":
		if r.used.Fetched == 0 {
			return -2
		}
		return -r.used.Share(c.Sites.LineBytes) // the worst first
	case "blocks":
		return float64(r.sites)
	}
	return r.misses[c.Level(sort)]
}

// Most tells how many places, the worst first, make nine tenths of the misses of
// a level, and which they are.
func (c *Code) Most(level int) (n int, among []bool) {
	among = make([]bool, len(c.rows))
	var sum float64
	for _, i := range c.Ranked("misses_"+strconv.Itoa(level+1), "") {
		if sum >= 0.9*c.totals[level] {
			break
		}
		sum += c.rows[i].misses[level]
		among[i] = true
		n++
	}
	return n, among
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
		s := &c.Sites.Code[c.rows[i].first]
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
		return objectName(&c.Sites.Data[r.first])
	}
	s := &c.Sites.Code[r.first]
	key := c.keyOf(r.first)
	switch {
	case c.By == ByFunction && key.function != "":
		return key.function
	case c.By == ByFunction && key.site == 0:
		return key.file
	case key.line > 0:
		return lineName(key.file, key.line) + blank(s.Function)
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
func kindWords(kinds uint8) string {
	text := ""
	for k := trace.Kind(0); k < trace.NumKinds; k++ {
		if kinds>>k&1 == 0 {
			continue
		}
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
