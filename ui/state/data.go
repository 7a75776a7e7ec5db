package state

import (
	"math"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
)

// DataView shows the answer of the verb "data" about one data structure.
type DataView struct {
	*answers.Reply
	shade string // column whose values determine the shades of the members and of the map
	ruler *Matrix
	plot  *Matrix
}

// Shade is the setting for the numbers that determine the shades of members and maps; "": accesses.
var Shade = newOwnSetting("shade")

// DataShades returns the columns that can determine the shades of members and maps: accesses, and
// the misses in each level.
func (d *DataView) DataShades() []string {
	list := []string{accessesKey}
	for _, key := range []string{"map", "members"} {
		if t := d.Table(key); t != nil && len(list) == 1 {
			for _, c := range t.Columns {
				if strings.HasSuffix(c.Key, missesKey) {
					list = append(list, c.Key)
				}
			}
		}
	}
	return list
}

const (
	accessesKey = "accesses"
	missesKey   = "_misses"
)

// ShadeName returns the name of a column of [DataView.DataShades].
func ShadeName(key string) string {
	if level, ok := strings.CutSuffix(key, missesKey); ok {
		return level + " misses"
	}
	return key
}

// Shaded returns the view with shades from the given column.
func (d *DataView) Shaded(by string) *DataView {
	for _, key := range d.DataShades() {
		if key == by && d.shade != by {
			d.shade, d.ruler, d.plot = by, nil, nil
		}
	}
	return d
}

// Shade returns the column whose values determine the shades of members and maps.
func (d *DataView) Shade() string {
	if d.shade == "" {
		return accessesKey
	}
	return d.shade
}

// NewDataView returns a view of a reply.
func NewDataView(r *answers.Reply) *DataView { return &DataView{Reply: r} }

// mostLines is the maximum number of cache lines that are drawn for an element.
const mostLines = 24

// Ruler returns a drawing of the most frequently used structure, with the members at their
// positions in the cache lines of an element. Ruler returns nil if no structure is known.
func (d *DataView) Ruler() *Matrix {
	elements, members := d.Table("elements"), d.Table("members")
	if d.ruler != nil || elements == nil || members == nil {
		return d.ruler
	}
	of := func(key string) uint64 { return uint64(numberIn(elements, 0, key)) }
	line, start, size := of("line_bytes"), of("start_bytes"), of("size_bytes")
	if line == 0 || line > profile.MaxLineBytes || size == 0 {
		return nil
	}
	rows := min((start+size+line-1)/line, mostLines)
	m := &Matrix{ID: "fields", Title: "Members of " + cellText(elements, 0, "structure") + " over cache lines", Map: true, Row: -1, Column: -1,
		Values: make([]float64, rows*line), Texts: make([]string, rows*line), Names: make([]string, rows*line), ColumnAxis: "byte of the line"}
	for i := range m.Values {
		switch at := uint64(i); {
		case at < start || at >= start+size:
			m.Values[i], m.Texts[i] = outside, "another element"
		default:
			m.Values[i], m.Texts[i] = unused, "padding"
		}
	}
	for r := range rows {
		m.Rows = append(m.Rows, "line "+strconv.FormatUint(r+1, 10))
	}
	for c := range line {
		m.Columns = append(m.Columns, strconv.FormatUint(c, 10))
	}
	for i := range members.Rows {
		offset, known := cell(members, i, "offset").Number()
		if !known {
			continue
		}
		name, value := cellText(members, i, "member"), number(cell(members, i, d.Shade()))
		loads, stores := cell(members, i, "loads"), cell(members, i, "stores")
		if d.Shade() == accessesKey {
			value = number(loads) + number(stores)
		}
		text := name + " (" + cellText(members, i, "type") + ", " + shown(cell(members, i, "bytes"), answerWords) + " B at offset " + shown(cell(members, i, "offset"), answerWords) + "): " +
			shown(loads, answerWords) + " loads, " + shown(stores, answerWords) + " stores, in " + shown(cell(members, i, "visits"), answerWords) + " of the visits"
		for _, key := range d.DataShades()[1:] {
			text += ", " + shown(cell(members, i, key), answerWords) + " " + ShadeName(key)
		}
		from := start + uint64(offset)
		for at := from; at < from+uint64(numberIn(members, i, "bytes")) && at < uint64(len(m.Values)); at++ {
			m.Values[at], m.Texts[at], m.Names[at] = value, text, name
		}
	}
	m.Summary = d.rulerSummary(size, line, rows, start)
	d.ruler = m
	return m
}

// These two cell values represent bytes outside the element and bytes of padding.
const (
	outside = -1
	unused  = -2
)

func (d *DataView) rulerSummary(size, line, rows, start uint64) string {
	elements := d.Table("elements")
	text := "An element occupies " + Plural(size, "byte", "bytes") + ". " + shown(cell(elements, 0, "usual"), answerWords) + " of the " + shown(cell(elements, 0, "visits"), answerWords) +
		" visits are to elements that begin at byte " + strconv.FormatUint(start, 10) + " of a line; the picture shows such an element."
	if lines := (start + size + line - 1) / line; lines > rows {
		text += " Only the first " + strconv.FormatUint(rows, 10) + " of " + strconv.FormatUint(lines, 10) + " lines are drawn."
	}
	return text
}

// Plot returns a map of accesses or misses by address and time, or nil.
func (d *DataView) Plot() *Matrix {
	grid, cells := d.Table("map_grid"), d.Table("map")
	if d.plot != nil || grid == nil || cells == nil {
		return d.plot
	}
	of := func(key string) uint64 { return uint64(numberIn(grid, 0, key)) }
	rows, columns, bytes, references := min(of("rows"), profile.MapRows), min(of("columns"), profile.MapColumns), of("row_bytes"), of("column_references")
	m := &Matrix{ID: "map", Title: upper(ShadeName(d.Shade())) + " by address and time", Map: true, Zoom: true, Row: -1, Column: -1,
		RowStep: float64(bytes), ColumnStep: float64(references), RowAxis: "offset", ColumnAxis: "time, in references", Values: make([]float64, rows*columns), Texts: make([]string, rows*columns)}
	for r := range rows {
		m.Rows = append(m.Rows, Bytes(r*bytes))
	}
	for c := range columns {
		m.Columns = append(m.Columns, Count(float64(c*references)))
	}
	total, first, last := 0.0, math.MaxInt, 0
	for i, row := range cells.Rows {
		c, r := uint64(numberIn(cells, i, "from_reference"))/max(references, 1), uint64(numberIn(cells, i, "offset_bytes"))/max(bytes, 1)
		if c >= columns || r >= rows || len(row) == 0 {
			continue
		}
		at, value := r*columns+c, number(cell(cells, i, d.Shade()))
		m.Values[at] = value
		total += value
		if value > 0 {
			first, last = min(first, int(c)), max(last, int(c))
		}
		m.Texts[at] = shown(cell(cells, i, accessesKey), answerWords) + " accesses"
		for _, key := range d.DataShades()[1:] {
			m.Texts[at] += ", " + shown(cell(cells, i, key), answerWords) + " " + ShadeName(key)
		}
	}
	m.Summary = "There are none."
	if total > 0 {
		m.Summary = Count(total) + " " + ShadeName(d.Shade()) + ", from reference " + Count(float64(uint64(first)*references)) + " to " + Count(float64(uint64(last+1)*references)) +
			". A row covers " + Bytes(bytes) + ", and a column covers " + Count(float64(references)) + " references. Misses are counted in fully associative caches."
	}
	d.plot = m
	return m
}

// DataTable returns a table of the answer; nil if it has no rows.
func (d *DataView) DataTable(key string) *Table {
	t := d.Table(key)
	if t == nil || len(t.Rows) == 0 {
		return nil
	}
	var keys []string
	for i := range t.Columns {
		// The ruler above the members shows their types and lines.
		if k := t.Columns[i].Key; key != "members" || k != "type" && k != "in_line" && k != "share" {
			keys = append(keys, k)
		}
	}
	return show(t, answerWords, nil, keys...).setReply(d.Reply, key)
}

// DataAdvice is a proposed change to a structure.
type DataAdvice struct{ Change, Members, Why string }

// Advice returns the proposed changes.
func (d *DataView) Advice() (list []DataAdvice) {
	t := d.Table("advice")
	if t == nil {
		return nil
	}
	for i := range t.Rows {
		list = append(list, DataAdvice{
			Change: upper(cellText(t, i, "change")) + ":", Members: cellText(t, i, "members") + " (" + shown(cell(t, i, "bytes"), answerWords) + " B).", Why: cellText(t, i, "why"),
		})
	}
	return list
}

// DataNotes returns the warnings of the answer.
func (d *DataView) DataNotes() []string { return d.Notes }

// missingData explains why a profile has no data about the use of data structures, and how to
// obtain such data.
func missingData(p *profile.Profile) string {
	switch {
	case p.Data != nil:
		return ""
	case p.Sites == nil || p.Sites.Data == nil:
		return "The trace does not record data structures. Compile the program with “stackglass cc -- clang -g …” and run it."
	case p.Sampled != nil:
		return "A sample does not contain every access to a data structure, so analyse the whole trace."
	}
	return "This analysis did not measure how data structures are used: accesses by member, lifetimes of memory blocks, and maps of accesses by address and time. Analyse the trace again, including data structures, " +
		"or run “stackglass analyze --analyses default,data -o file.sgp” and drop that file here."
}
