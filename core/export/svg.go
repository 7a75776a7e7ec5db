package export

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// The sizes of a chart and of its plot area, in SVG units.
const (
	width, height = 920.0, 340.0
	left, right   = 64.0, 884.0
	top, bottom   = 44.0, 284.0
	letterWidth   = 7.0 // approximate width of the widest letter
)

// plot maps a capacity in lines and a miss ratio to a point of the chart.
type plot struct {
	octaves  float64 // binary logarithm of the capacity at the right edge, in lines
	most     float64 // miss ratio at the top edge
	decades  float64 // number of decades of a logarithmic axis; 0 if the axis is linear and starts at 0
	byteBits int     // binary logarithm of the line size
}

func newPlot(c *profile.Curve, lineBytes uint32, levels []hierarchy.Level) plot {
	farthest := uint64(1)
	if longest, ok := c.Longest(); ok {
		farthest = longest + 1
	}
	for i := range levels {
		farthest = max(farthest, levels[i].Cache.Lines())
	}
	p := plot{octaves: float64(max(1, bits.Len64(farthest))), most: c.MissRatio(1), byteBits: bits.TrailingZeros32(lineBytes)}
	if least := c.MissRatio(1 << 62); least > 0 && p.most/least > 100 {
		p.most = 1
		p.decades = math.Ceil(-math.Log10(least))
	} else {
		p.most = math.Ceil(p.most*10) / 10
	}
	return p
}

func (p *plot) x(lines float64) float64 {
	return left + (right-left)*min(1, math.Log2(max(1, lines))/p.octaves)
}

func (p *plot) y(ratio float64) float64 {
	part := ratio / p.most
	if p.decades > 0 {
		part = 1 + math.Log10(max(part, 1e-18))/p.decades
	}
	return bottom - (bottom-top)*min(1, max(0, part))
}

// drawAxes draws the grid lines and the axis labels.
func (p *plot) drawAxes(to *htmlBuffer) {
	step := max(1, math.Ceil(p.octaves/12))
	for k := 0.0; k <= p.octaves; k += step {
		x := p.x(math.Exp2(k))
		to.line("grid", x, top, x, bottom)
		to.text("axis", "middle", x, bottom+18, report.Bytes(1<<(int(k)+p.byteBits)).Human())
	}
	for i := 0.0; i <= max(4, p.decades); i++ {
		ratio := p.most * (1 - i/4)
		if p.decades > 0 {
			ratio = math.Pow(10, -i)
		}
		if p.decades > 0 && i > p.decades {
			break
		}
		to.line("grid", left, p.y(ratio), right, p.y(ratio))
		to.text("axis", "end", left-8, p.y(ratio)+4, strconv.FormatFloat(100*ratio, 'g', 3, 64)+" %")
	}
	to.line("base", left, bottom, right, bottom)
	to.text("axis", "middle", (left+right)/2, bottom+42, "capacity")
	to.text("axis", "start", 4, 16, "miss ratio")
}

// curvePath returns the curve as an SVG path with a step at each visible breakpoint.
func (p *plot) curvePath(c *profile.Curve) string {
	b := []byte("M" + coordinate(left) + " " + coordinate(p.y(c.MissRatio(1))))
	last := left
	for lines, misses := range c.Points {
		x := p.x(float64(lines))
		if x-last < 0.5 && misses != c.Cold {
			continue
		}
		b = append(append(b, 'H'), coordinate(x)...)
		b = append(append(b, 'V'), coordinate(p.y(float64(misses)/float64(c.Accesses)))...)
		last = x
	}
	return string(append(append(b, 'H'), coordinate(right)...))
}

// drawCurve draws the miss-ratio curve, and marks the levels of a hierarchy on the curve.
func (p *htmlBuffer) drawCurve(c *profile.Curve, lineBytes uint32, levels []hierarchy.Level, exact string) {
	plot := newPlot(c, lineBytes, levels)
	about := curveSentence(c, lineBytes, exact)
	p.beginChart("Miss-ratio curve", about)
	plot.drawAxes(p)
	p.appendMarkup("<path class=\"curve\" d=\"", plot.curvePath(c), "\"/>\n")
	for i := range levels {
		cache := &levels[i].Cache
		ratio := c.MissRatio(cache.Lines())
		x, y, row := plot.x(float64(cache.Lines())), plot.y(ratio), 16+15*float64(i%2)
		colour := "var(--level" + strconv.Itoa(min(i+1, 4)) + ")"
		p.appendMarkup("<line style=\"stroke:", colour, ";stroke-width:1.5\" stroke-dasharray=\"4 3\" x1=\"", coordinate(x), "\" x2=\"", coordinate(x),
			"\" y1=\"", coordinate(row+5), "\" y2=\"", coordinate(bottom), "\"/>\n<circle style=\"fill:", colour, "\" r=\"4\" cx=\"", coordinate(x), "\" cy=\"", coordinate(y), "\"/>\n")
		anchor := "middle"
		switch {
		case x > right-110:
			anchor = "end"
		case x < left+160:
			anchor, x = "start", max(x, left+16)
		}
		p.text("halo", anchor, x, row, cache.Name+", "+report.Bytes(cache.SizeBytes).Human()+": "+percent(ratio))
	}
	p.end(about)
}

// curveSentence describes the curve, and states whether it is exact or estimated.
func curveSentence(c *profile.Curve, lineBytes uint32, exact string) string {
	text := "A fully associative LRU cache of one line misses " + percent(c.MissRatio(1)) + " of " + report.Count(c.Accesses).Human() + " accesses"
	if longest, ok := c.Longest(); ok {
		text += ", and a cache of at least " + report.Bytes((longest+1)*uint64(lineBytes)).Human() + " misses " + percent(c.MissRatio(1<<62))
	}
	return text + ": the first access to each of " + report.Count(c.Cold).Human() + " lines. The curve is " + exact + ". Each level is marked at the position of a fully associative cache of the same size."
}

// drawHistogram draws the histogram of stack distances, with a bar for each power of two and a bar
// for cold accesses.
func (p *htmlBuffer) drawHistogram(counts *profile.Histogram, c *profile.Curve) {
	var bins [65]uint64
	last, most := 0, c.Cold
	for d, n := range counts.All() {
		k := bits.Len64(d)
		bins[k] += n
		last, most = max(last, k), max(most, bins[k])
	}
	about := "Accesses by stack distance: the number of other lines accessed since the last access to the same line. Cold accesses are first accesses to a line."
	p.beginChart("Stack distances", about)
	p.line("base", left, bottom, right, bottom)
	p.text("axis", "start", 4, 16, "share of accesses")
	slot := (right - left) / float64(last+2)
	long := slot < letterWidth*float64(len(answers.BinName(last)))
	for k := 0; k <= last+1; k++ {
		n, name, class := bins[min(k, last)], answers.BinName(k), "bar"
		if k > last {
			n, name, class = c.Cold, "cold", "cold"
		}
		tall := (bottom - top) * float64(n) / float64(max(most, 1))
		x := left + (float64(k)+0.5)*slot
		p.appendMarkup("<rect class=\"", class, "\" x=\"", coordinate(x-0.4*slot), "\" y=\"", coordinate(bottom-tall), "\" width=\"", coordinate(0.8*slot), "\" height=\"", coordinate(tall), "\"/>\n")
		if slot > 6.5*letterWidth { // narrower bars have no labels, but the table contains all percentages
			p.text("axis", "middle", x, bottom-tall-6, percent(float64(n)/float64(c.Accesses)))
		}
		if long {
			name = shortBin(k, last)
		}
		p.text("axis", "middle", x, bottom+18, name)
	}
	p.text("axis", "middle", (left+right)/2, bottom+42, "stack distance, in lines")
	p.end(about)
}

// shortBin returns a short label for a bin: its smallest distance, with a binary prefix.
func shortBin(k, last int) string {
	switch {
	case k > last:
		return "cold"
	case k < 2:
		return strconv.Itoa(k)
	case k <= 10:
		return strconv.Itoa(1<<(k-1)) + "–"
	}
	return strconv.Itoa(1<<((k-1)%10)) + "KMGTPE"[(k-1)/10-1:(k-1)/10] + "i–"
}

// beginChart starts a chart. The description (about) is for people who cannot see the chart.
func (p *htmlBuffer) beginChart(title, about string) {
	p.appendMarkup("<figure>\n<div class=\"wide\"><svg viewBox=\"0 0 ", coordinate(width), " ", coordinate(height), "\" role=\"img\">\n")
	p.appendElement("title", title)
	p.appendElement("desc", about)
}

func (p *htmlBuffer) end(about string) {
	p.appendMarkup("</svg></div>\n")
	p.appendElement("figcaption", about)
	p.appendMarkup("</figure>\n")
}

func (p *htmlBuffer) line(class string, x1, y1, x2, y2 float64) {
	p.appendMarkup("<line class=\"", class, "\" x1=\"", coordinate(x1), "\" y1=\"", coordinate(y1), "\" x2=\"", coordinate(x2), "\" y2=\"", coordinate(y2), "\"/>\n")
}

func (p *htmlBuffer) text(class, anchor string, x, y float64, text string) {
	p.appendMarkup("<text class=\"", class, "\" text-anchor=\"", anchor, "\" x=\"", coordinate(x), "\" y=\"", coordinate(y), "\">", report.EscapeHTML(text), "</text>\n")
}

// usualBytes lists the cache sizes for which misses are drawn over time if there is no hierarchy.
var usualBytes = []uint64{32 << 10, 1 << 20}

// drawnCapacities returns the cache sizes for which misses are drawn over time, as binary
// logarithms of the number of lines. The sizes are rounded down to powers of two, because windows
// contain misses only for powers of two.
func drawnCapacities(levels []hierarchy.Level, lineBytes uint32) (log2Lines []int) {
	sizes := usualBytes
	if len(levels) > 0 {
		sizes = nil
	}
	for i := range levels {
		sizes = append(sizes, levels[i].Cache.SizeBytes)
	}
	for _, size := range sizes {
		log2Lines = append(log2Lines, min(32, bits.Len64(max(1, size/uint64(lineBytes)))-1))
	}
	slices.Sort(log2Lines)
	return slices.Compact(log2Lines)
}

// drawOverTime draws the miss ratio of each window of the run, with a line for each capacity.
func (p *htmlBuffer) drawOverTime(l *profile.Locality, levels []hierarchy.Level, exact string) {
	rows := l.Windows.Rows
	if len(rows) < 2 {
		return
	}
	capacities := drawnCapacities(levels, l.LineBytes)
	about := "Miss ratio of fully associative LRU caches in each of " + report.Count(uint64(len(rows))).Human() + " windows of " + report.Count(l.Windows.References).Human() + " references, " + exact + "."
	p.beginChart("Misses over time", about)
	most := 0.001
	for i := range rows {
		most = max(most, missRatioIn(&rows[i], capacities[0]))
	}
	for i := 0.0; i <= 4; i++ {
		y := bottom - (bottom-top)*i/4
		p.line("grid", left, y, right, y)
		p.text("axis", "end", left-8, y+4, strconv.FormatFloat(100*most*i/4, 'g', 3, 64)+" %")
	}
	p.line("base", left, bottom, right, bottom)
	p.text("axis", "start", 4, 16, "miss ratio")
	p.text("axis", "start", left, bottom+18, "beginning")
	p.text("axis", "end", right, bottom+18, "end")
	for i, k := range capacities {
		path := make([]byte, 0, 16*len(rows))
		for n := range rows {
			path = append(path, "MV"[min(n, 1)])
			if n == 0 {
				path = append(append(path, coordinate(left)...), ' ')
			}
			path = append(path, coordinate(bottom-(bottom-top)*missRatioIn(&rows[n], k)/most)...)
			path = append(append(path, 'H'), coordinate(left+(right-left)*float64(n+1)/float64(len(rows)))...)
		}
		colour := "var(--level" + strconv.Itoa(min(i+1, 4)) + ")"
		p.appendMarkup("<path style=\"fill:none;stroke:", colour, ";stroke-width:1.5\"", dashes[min(i, len(dashes)-1)], " d=\"", string(path), "\"/>\n")
		x := left + 120 + 150*float64(i)
		p.appendMarkup("<line style=\"stroke:", colour, ";stroke-width:2\"", dashes[min(i, len(dashes)-1)], " x1=\"", coordinate(x), "\" x2=\"", coordinate(x+28), "\" y1=\"12\" y2=\"12\"/>\n")
		p.text("halo", "start", x+34, 16, report.Bytes(uint64(l.LineBytes)<<k).Human())
	}
	p.end(about)
}

// dashes contains line styles that distinguish the lines even without colours.
var dashes = []string{"", ` stroke-dasharray="7 3"`, ` stroke-dasharray="2 3"`}

// missRatioIn returns the miss ratio of a window in a cache of 2^k lines.
func missRatioIn(w *profile.WindowRow, k int) float64 {
	return float64(w.Misses(k)) / float64(cmp.Or(w.Accesses(), 1))
}
