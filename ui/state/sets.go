package state

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// Cell is a cache on the map of sets and ways, with 2^Log2Sets sets and the number of ways in the
// field Ways. The zero value means no cell.
type Cell struct{ Log2Sets, Ways int }

func (c Cell) valid() bool {
	return c.Log2Sets >= 0 && c.Log2Sets < profile.SetCounts && c.Ways >= 1 && c.Ways <= profile.MaxWays
}

// Lines returns the capacity of the cache in lines.
func (c Cell) Lines() uint64 { return uint64(c.Ways) << c.Log2Sets }

// Move returns the cell at the given distance, in steps along the axes of sets and ways. If the
// distance leads beyond the edge of the map, Move returns the nearest cell on the map.
func (c Cell) Move(sets, ways int) Cell {
	return Cell{min(max(c.Log2Sets+sets, 0), profile.SetCounts-1), min(max(c.Ways+ways, 1), profile.MaxWays)}
}

// format returns the text that represents a cell in the URL's hash, for example "64x8".
func (c Cell) format() string {
	if !c.valid() {
		return ""
	}
	return strconv.Itoa(1<<c.Log2Sets) + "x" + strconv.Itoa(c.Ways)
}

// parseCell parses the output of format. For any other text it returns the zero Cell.
func parseCell(s string) Cell {
	sets, ways, _ := strings.Cut(s, "x")
	n, err1 := strconv.ParseUint(sets, 10, 20)
	w, err2 := strconv.Atoi(ways)
	if err1 != nil || err2 != nil || n == 0 || n&(n-1) != 0 {
		return Cell{}
	}
	if c := (Cell{bits.TrailingZeros64(n), w}); c.valid() {
		return c
	}
	return Cell{}
}

// CellAnswer divides the misses of a cell's cache by cause: cold, capacity and conflict misses. The
// number of conflict misses may be negative.
type CellAnswer struct {
	Misses   uint64
	Cold     uint64 // misses on the first access to a line
	Capacity uint64 // other misses of a fully associative cache of the same size
	Conflict int64  // additional misses because of the sets; may be negative
}

// CellAnswer returns the misses of a cell by cause, as "stackglass sets" does. The profile's set
// table must contain the cell's number of sets.
func (v *View) CellAnswer(c Cell) CellAnswer {
	if v.causes == nil {
		if d, err := v.Run.Answer(v.question("sets").With("causes", "true")); err == nil {
			v.causes = &d.Tables[0]
		}
	}
	row := c.Ways - 1
	for a := range c.Log2Sets { // the table contains only the numbers of sets that were counted
		if v.Locality.Sets.Counts(a) {
			row += profile.MaxWays
		}
	}
	number := func(key string) float64 {
		x, _ := cell(v.causes, row, key).Number()
		return x
	}
	return CellAnswer{Misses: uint64(number("misses")), Cold: uint64(number("cold")), Capacity: uint64(number("capacity")), Conflict: int64(number("conflict"))}
}

// Counted returns the cell if its misses were counted. Otherwise, Counted returns the nearest cell
// with fewer sets, or with more sets, whose misses were counted.
func (v *View) Counted(c Cell, fewer bool) Cell {
	for c.valid() && v.Locality.Sets != nil && !v.Locality.Sets.Counts(c.Log2Sets) {
		if c.Log2Sets++; fewer {
			c.Log2Sets -= 2
		}
	}
	return c
}

// DefaultCell returns the first level's cell on the map for the given line size, or else the cell
// of a typical first level.
func DefaultCell(levels []hierarchy.Cache, lineBytes uint32) Cell {
	for _, l := range levels {
		if c, ok := cellOf(l); ok && l.LineBytes == lineBytes {
			return c
		}
	}
	return Cell{6, 8}
}

// cellOf returns the map's cell for the level's number of sets and number of ways.
func cellOf(l hierarchy.Cache) (Cell, bool) {
	sets := l.Sets()
	if l.Full() || l.Hashed || sets == 0 || sets&(sets-1) != 0 {
		return Cell{}, false
	}
	c := Cell{bits.TrailingZeros64(sets), int(l.Ways)}
	return c, c.valid()
}

// HeatMap is a map that heatmap.js draws. HeatMap has a row for each number of sets, and a column
// for each number of ways.
type HeatMap struct {
	ID        string // the id of the element that contains the map
	Title     string
	Summary   string
	LineBytes uint64
	Rows      int
	Columns   int
	// Values contains shares of all accesses, row by row. If Signed is set, colours distinguish
	// values above and below zero.
	Values []float64
	Signed bool
	Says   string  // the text after a share, such as "of accesses miss"
	Least  float64 // the minimum of Values
	Most   float64
	Cell   Cell
	Marks  []HeatMark
}

// HeatMark marks the cell of a level of the current hierarchy.
type HeatMark struct {
	Label, Color string
	Cell         Cell
}

// SetsMap shows either the miss ratio or the conflict misses of every cache in the table.
func (v *View) SetsMap(cell Cell, conflicts bool, levels []hierarchy.Cache) *HeatMap {
	m := &HeatMap{ID: "sets", Title: "Miss ratio by sets and ways" + v.oneCache(), LineBytes: v.LineBytes,
		Rows: profile.SetCounts, Columns: profile.MaxWays, Signed: conflicts, Says: "of accesses miss", Cell: cell}
	if conflicts {
		m.Says = "of accesses; below zero: sets avoid misses"
		m.Title = "Conflict misses by sets and ways" + v.oneCache()
	}
	for a := range m.Rows {
		for w := range m.Columns {
			if !v.Locality.Sets.Counts(a) {
				m.Values = append(m.Values, math.NaN())
				continue
			}
			answer := v.CellAnswer(Cell{a, w + 1})
			value := Ratio(answer.Misses, v.Curve.Accesses)
			if conflicts {
				value = signedShare(answer.Conflict, v.Curve.Accesses)
			}
			m.Values = append(m.Values, value)
		}
	}
	m.Least, m.Most = m.Values[0], m.Values[0] // the value for a single set, whose misses are always counted
	for _, n := range m.Values {
		if n < m.Least {
			m.Least = n
		} else if n > m.Most {
			m.Most = n
		}
	}
	for i, l := range levels {
		if c, ok := cellOf(l); ok && v.hasLines(l) && v.Locality.Sets.Counts(c.Log2Sets) {
			m.Marks = append(m.Marks, HeatMark{Label: l.Name + ": " + Percent(signedShare(v.CellAnswer(c).Conflict, v.Curve.Accesses)) + " conflicts", Color: LevelColor(i), Cell: c})
		}
	}
	m.Summary = v.setsSentence() + v.uncountedSentence() + v.unmarkedSentence(levels)
	return m
}

func signedShare(n int64, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// setsSentence returns a sentence about the cells in which sets cause or avoid the most misses,
// compared with full associativity.
func (v *View) setsSentence() string {
	var worst, best Cell
	var most, least int64
	for a := range profile.SetCounts {
		for w := 1; w <= profile.MaxWays && v.Locality.Sets.Counts(a); w++ {
			switch n := v.CellAnswer(Cell{a, w}).Conflict; {
			case n > most:
				worst, most = Cell{a, w}, n
			case n < least:
				best, least = Cell{a, w}, n
			}
		}
	}
	if most == 0 && least == 0 {
		return "Sets make no difference to this run: every cache has as many misses as a fully associative cache of the same size."
	}
	text := "In this run, no set-associative cache has more misses than a fully associative cache of the same size."
	if most > 0 {
		text = "A cache of " + v.cellWords(worst) + " has the most conflict misses: " + Percent(signedShare(most, v.Curve.Accesses)) + " of accesses."
	}
	if least < 0 {
		text += " A cache of " + v.cellWords(best) + " benefits most from its sets: " + Percent(signedShare(-least, v.Curve.Accesses)) + " of accesses hit, but would miss in a fully associative cache of the same size."
	}
	return text
}

// uncountedSentence returns a sentence that lists the numbers of sets for which no misses were counted.
func (v *View) uncountedSentence() string {
	var list []string
	for a := range profile.SetCounts {
		if !v.Locality.Sets.Counts(a) {
			list = append(list, strconv.Itoa(1<<a))
		}
	}
	if list == nil {
		return ""
	}
	return " Caches with " + strings.Join(list, ", ") + " sets were not counted; to count them, run stackglass analyze --sets all."
}

// cellWords describes a cell, for example "64 sets, 8 ways (32 KiB)".
func (v *View) cellWords(c Cell) string {
	return Plural(1<<c.Log2Sets, "set", "sets") + ", " + WaysText(uint32(c.Ways)) + " (" + Bytes(c.Lines()*v.LineBytes) + ")"
}

// CellSentence describes a cell and its misses.
func (v *View) CellSentence(c Cell) string {
	a := v.CellAnswer(c)
	return v.cellWords(c) + ": miss ratio " + Percent(Ratio(a.Misses, v.Curve.Accesses)) +
		"; misses: " + Exact(a.Cold) + " cold, " + Exact(a.Capacity) + " capacity, " + Signed(a.Conflict) + " conflict"
}

// Signed formats a whole number with its sign.
func Signed(n int64) string {
	switch {
	case n < 0:
		return "−" + Exact(uint64(-n))
	case n > 0:
		return "+" + Exact(uint64(n))
	}
	return "0"
}

// ConflictSentence explains the conflict misses of a cell.
func (v *View) ConflictSentence(c Cell) string {
	a := v.CellAnswer(c)
	size := Bytes(c.Lines() * v.LineBytes)
	switch {
	case c.Log2Sets == 0:
		return "With one set, the cache is fully associative and has no conflict misses."
	case a.Conflict > 0:
		return "A fully associative cache of " + size + " would have " + Exact(uint64(a.Conflict)) + " fewer misses; these are the conflict misses."
	case a.Conflict < 0:
		return "A fully associative cache of " + size + " would have " + Exact(uint64(-a.Conflict)) + " more misses: here, sets keep lines that LRU over all lines would evict."
	}
	return "A fully associative cache of " + size + " would have as many misses as this cache."
}

// CellFacts lists, for each cause, the misses of a cell and their share of all accesses.
func (v *View) CellFacts(c Cell) []Fact {
	a, all := v.CellAnswer(c), v.Curve.Accesses
	conflict := Percent(signedShare(max(a.Conflict, -a.Conflict), all))
	if a.Conflict < 0 {
		conflict = "−" + conflict
	}
	var facts []Fact
	add := func(id, name, value, share string) {
		facts = append(facts, Fact{ID: id, Name: name, Value: value, Share: share})
	}
	add("misses", "misses", Exact(a.Misses), Percent(Ratio(a.Misses, all)))
	add("cold", "cold: first accesses", Exact(a.Cold), Percent(Ratio(a.Cold, all)))
	add("capacity", "capacity: too few lines", Exact(a.Capacity), Percent(Ratio(a.Capacity, all)))
	add("conflict", "conflict: too few ways", Signed(a.Conflict), conflict)
	if c.Log2Sets > 0 {
		if model, ok := v.estimate(c); ok {
			add("model", "misses by SDCM", "≈ "+Count(model), Percent(model/max(float64(all), 1)))
		}
	}
	return facts
}

// estimate returns SDCM's estimate for a cell.
func (v *View) estimate(c Cell) (float64, bool) {
	p, _, err := v.Run.Asker().Predict(hierarchy.Hierarchy{Threads: hierarchy.OnOneCore, Levels: []hierarchy.Cache{
		{Name: "L1", SizeBytes: c.Lines() * v.LineBytes, Ways: uint32(c.Ways), LineBytes: uint32(v.LineBytes)}}}, nil)
	if err != nil {
		return 0, false
	}
	return p.Levels[0].SDCMMisses, true
}

// SetsTable lists every cell, and larger fully associative caches.
func (v *View) SetsTable() *Table {
	return v.cachedTable("sets", func() *Table {
		return v.table("Misses by number of sets and ways, exact for LRU"+v.oneCache(), v.question("sets"), nil, "sets", "ways", "accesses", "misses")
	})
}

// missingSets returns the reason why a profile has no table of sets.
func missingSets(p *profile.Profile) string {
	if hasSets(p) {
		return ""
	}
	return "This profile has no table of sets: it was made by an earlier version, or “sets” was not among the requested analyses. Analyse the trace again. Until then, the Caches view models sets with SDCM."
}

// hasSets reports whether a profile has a table of sets for each of its line sizes.
func hasSets(p *profile.Profile) bool {
	for i := range p.Locality {
		if p.Locality[i].Sets == nil {
			return false
		}
	}
	return len(p.Locality) > 0
}
