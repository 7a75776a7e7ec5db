package export

import (
	"cmp"
	_ "embed" // embeds style.css
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Report is the content of an HTML report.
type Report struct {
	Title    string // the trace's name
	Facts    []report.Fact
	Warnings []string
	Profile  *profile.Profile
	Asked    *Question      // the hierarchy and its predictions; nil if there is no hierarchy
	Places   []report.Table // tables of source locations and of data, in descending order of misses
	First    []Section      // sections that come before all other tables
	Sections []Section      // sections with all other tables
}

// Section is a section of a report.
type Section struct {
	Title  string
	Tables []report.Table
	Notes  []string // notes about the tables
}

// HTML returns a report as a self-contained HTML file. The file loads no scripts, fonts or images.
// Charts are SVG images with a title and a description, and tables contain all data of the charts.
// The report has a light and a dark theme, and can be printed.
func HTML(r *Report) []byte {
	p := new(htmlBuffer)
	p.appendMarkup("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n")
	p.appendElement("title", r.Title+" – stackglass")
	p.appendMarkup("<style>\n", styleSheet, "</style>\n</head>\n<body>\n<main>\n")
	p.writeHead(r)
	for i := range r.First {
		p.section(&r.First[i])
	}
	if r.Asked != nil {
		p.hierarchy(r.Profile, r.Asked)
	}
	if len(r.Places) > 0 {
		p.appendElement("h2", "Code and data")
		p.writeTables(r.Places)
	}
	for i := range r.Sections {
		p.section(&r.Sections[i])
	}
	for i := range r.Profile.Locality {
		p.writeLocality(r, &r.Profile.Locality[i])
	}
	p.writeCounters(r.Profile)
	p.appendMarkup("</main>\n<footer>")
	exact := "Stack distances, miss-ratio curves and set tables are exact for LRU; "
	if s := r.Profile.Sampled; s != nil {
		exact = "Stack distances and the results computed from them are estimates (" + s.Chip() + "); "
	}
	p.appendMarkup("Computed by stackglass from one pass over the trace. ", exact,
		"for every other number, the method is stated.</footer>\n</body>\n</html>\n")
	return p.b
}

// writeHead writes the title, the facts about the input, and the warnings.
func (p *htmlBuffer) writeHead(r *Report) {
	p.appendElement("h1", r.Title)
	p.appendMarkup("<dl class=\"facts\">\n")
	for _, f := range r.Facts {
		if text := f.Value.Human(); len(text) > 24 {
			p.appendMarkup("<div class=\"long\">")
		} else {
			p.appendMarkup("<div>")
		}
		p.appendElement("dt", f.Label)
		p.appendElement("dd", f.Value.Human())
		p.appendMarkup("</div>\n")
	}
	p.appendMarkup("</dl>\n")
	if len(r.Warnings) > 0 {
		p.appendMarkup("<section class=\"note\" aria-label=\"Warnings\">\n")
		for _, w := range r.Warnings {
			p.appendElement("p", w)
		}
		p.appendMarkup("</section>\n")
	}
}

func (p *htmlBuffer) section(s *Section) {
	p.appendElement("h2", s.Title)
	p.writeTables(s.Tables)
	for _, note := range s.Notes {
		p.appendElement(`p class="second"`, note)
	}
}

// writeTables writes tables. Long tables are truncated; wide tables can be scrolled.
func (p *htmlBuffer) writeTables(list []report.Table) {
	for _, t := range list {
		if len(t.Rows) == 0 {
			if len(t.Columns) == 0 {
				p.appendElement("p", t.Title)
			}
			continue
		}
		if len(t.Rows) > mostRows {
			t.Title += " (the first " + strconv.Itoa(mostRows) + " of " + strconv.Itoa(len(t.Rows)) + ")"
			t.Rows = t.Rows[:mostRows]
		}
		p.appendMarkup("<div class=\"wide\">")
		p.b = t.AppendHTML(p.b)
		p.appendMarkup("</div>\n")
	}
}

// writeLocality writes the curve, the histogram and the set table of one line size.
func (p *htmlBuffer) writeLocality(r *Report, l *profile.Locality) {
	counts, cold := l.Histogram(trace.AllKinds)
	c := profile.NewCurve(counts, cold)
	line := strconv.FormatUint(uint64(l.LineBytes), 10)
	p.appendElement("h2", "Reuse of "+line+"-byte lines")
	if c.Accesses == 0 {
		p.appendElement("p", "No access was analysed.")
		return
	}
	exact := "exact"
	if s := r.Profile.Sampled; s != nil {
		exact = "estimated (" + s.Chip() + ")"
	}
	p.drawCurve(c, l.LineBytes, levelsOf(r.Asked, l.LineBytes), exact)
	powers := answers.PowersOfTwo(c, l.LineBytes)
	powers.Title = "Misses of fully associative LRU caches whose size is a power of two (exact)"
	answers.Bound(&powers, r.Profile, l.LineBytes, answers.Powers(c))
	p.writeTables([]report.Table{powers})
	p.drawHistogram(counts, c)
	binned := answers.BinnedHistogram(counts, cold)
	binned.Title = "Accesses by stack distance, in bins that are powers of two"
	p.writeTables([]report.Table{binned})
	p.drawOverTime(l, levelsOf(r.Asked, l.LineBytes), exact)
	p.writeSetTable(l, levelsOf(r.Asked, l.LineBytes), exact)
}

// levelsOf returns the levels of the hierarchy that have the given line size.
func levelsOf(asked *Question, lineBytes uint32) (levels []hierarchy.Level) {
	if asked != nil {
		for _, l := range asked.Answer.Levels {
			if l.Cache.LineBytes == lineBytes {
				levels = append(levels, l)
			}
		}
	}
	return levels
}

func (p *htmlBuffer) hierarchy(of *profile.Profile, asked *Question) {
	h := &asked.Hierarchy
	p.appendElement("h2", "Caches")
	if name := cmp.Or(h.Title, h.Name); name != "" {
		p.appendElement("p", name)
	}
	if threads := answers.ThreadsOn(of, *h); threads != "" {
		p.appendElement("p", threads)
	}
	p.writeTables(answers.PredictedByCore(*h, asked.Answer))
	if len(asked.Answer.Cores) > 0 {
		p.writeTables([]report.Table{answers.CoreLevels(asked.Answer)})
	}
	said := map[hierarchy.Method]bool{}
	for _, l := range asked.Answer.Levels {
		if words := methodText[l.Method]; words != "" && !said[l.Method] {
			said[l.Method] = true
			p.appendElement(`p class="second"`, string(l.Method)+": "+words)
		}
	}
}

// methodText contains, for each method, a phrase that describes how the misses of a level were
// computed.
var methodText = map[hierarchy.Method]string{
	hierarchy.Exact:              "from the histogram of stack distances, from the set table, or counted with the sites.",
	hierarchy.AsIfLRU:            "as if the cache replaced the least recently used line and allocated a line on every write miss.",
	hierarchy.Independent:        "as if the level saw every access, not only the misses of the level above.",
	hierarchy.Sampled:            "from stack distances estimated from a sample.",
	hierarchy.SampledIndependent: "from stack distances estimated from a sample, as if the level saw every access, not only the misses of the level above.",
	hierarchy.SampledSDCM:        "from stack distances estimated from a sample, by the stack distance cache model, which assigns lines to sets at random.",
	hierarchy.SDCM:               "by the stack distance cache model, which assigns lines to sets at random.",
}

// writeCounters writes the number of references of each kind and, if the profile has counters,
// their values.
func (p *htmlBuffer) writeCounters(of *profile.Profile) {
	p.appendElement("h2", "Counters")
	p.writeTables([]report.Table{answers.Kinds(of)})
	if of.Counters == nil {
		return
	}
	p.writeTables(answers.CounterTables(of))
	p.writeTables([]report.Table{answers.NarrowCounters(answers.CountersOf(of.Counters, answers.ByFunction, ""), "")})
}

// mostRows is the maximum number of rows of a table in the report. CSV and JSON contain all rows.
const mostRows = 50

// writeSetTable writes the set table, with a row for each number of sets and a column for each
// power-of-two number of ways. Each cell contains the miss ratio, on a background that is darker
// for higher ratios, and the names of the levels with this geometry.
func (p *htmlBuffer) writeSetTable(l *profile.Locality, levels []hierarchy.Level, exact string) {
	if l.Sets == nil {
		return
	}
	p.appendMarkup("<div class=\"wide\"><table class=\"heat\">\n")
	p.appendElement("caption", "Miss ratio of LRU caches by sets and ways, "+exact+". A stronger colour means more misses. Caches of equal capacity lie on a diagonal.")
	p.appendMarkup("<thead><tr><th scope=\"col\">sets</th>")
	for ways := 1; ways <= profile.MaxWays; ways <<= 1 {
		p.appendMarkup("<th scope=\"col\">", strconv.Itoa(ways), map[bool]string{true: " way", false: " ways"}[ways == 1], "</th>")
	}
	p.appendMarkup("</tr></thead>\n<tbody>\n")
	for a := range profile.SetCounts {
		if !l.Sets.Counts(a) {
			continue
		}
		sets := uint64(1) << a
		p.appendMarkup("<tr><th scope=\"row\">", strconv.FormatUint(sets, 10), "</th>")
		for ways := uint64(1); ways <= profile.MaxWays; ways <<= 1 {
			p.writeSetCell(l, sets, ways, levels)
		}
		p.appendMarkup("</tr>\n")
	}
	p.appendMarkup("</tbody></table></div>\n")
}

// writeSetCell writes the cell for the given numbers of sets and ways.
func (p *htmlBuffer) writeSetCell(l *profile.Locality, sets, ways uint64, levels []hierarchy.Level) {
	hits, _ := l.Sets.Hits(sets, ways)
	ratio := 1 - float64(hits)/float64(l.Accesses())
	capacity := report.Bytes(sets * ways * uint64(l.LineBytes)).Human()
	p.appendMarkup("<td style=\"background:rgba(var(--heat),", strconv.FormatFloat(0.45*ratio, 'f', 3, 64), ")\" title=\"", capacity, "\">")
	for i := range levels {
		if c := &levels[i].Cache; uint64(c.Ways) == ways && c.Lines() == sets*ways {
			p.appendMarkup("<b>", report.EscapeHTML(c.Name), "</b> ")
		}
	}
	p.appendMarkup(percent(ratio), "</td>")
}

// percent formats a share as a percentage with about three digits.
func percent(share float64) string {
	digits := 2
	switch {
	case share == 0 || share == 1:
		digits = 0
	case share >= 0.1:
		digits = 1
	}
	return strconv.FormatFloat(100*share, 'f', digits, 64) + " %"
}

// htmlBuffer collects the HTML text of a report.
type htmlBuffer struct{ b []byte }

// appendMarkup appends markup unchanged.
func (p *htmlBuffer) appendMarkup(parts ...string) {
	for _, part := range parts {
		p.b = append(p.b, part...)
	}
}

// appendElement appends an element with the given text. The tag consists of the element's name and
// attributes.
func (p *htmlBuffer) appendElement(tag, text string) {
	name, _, _ := strings.Cut(tag, " ")
	p.appendMarkup("<", tag, ">", report.EscapeHTML(text), "</", name, ">\n")
}

// coordinate formats a coordinate with one decimal place.
func coordinate(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// styleSheet is the style sheet of the report, with the colours and fonts of the interactive page.
// Its colour pairs have a contrast of at least 4.5:1 for text and 3:1 for graphics.
//
//go:embed style.css
var styleSheet string
