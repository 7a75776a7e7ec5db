package export

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// usualBytes are the capacities that are drawn over time where no hierarchy was
// asked about.
var usualBytes = []uint64{32 << 10, 1 << 20}

// watched are the capacities to draw over time, as binary logarithms of lines:
// of windows the misses are known at powers of two. Those of levels are rounded
// down.
func watched(levels []hierarchy.Level, lineBytes uint32) (log2Lines []int) {
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
	sort.Slice(log2Lines, func(i, j int) bool { return log2Lines[i] < log2Lines[j] })
	return slices.Compact(log2Lines)
}

// overTime draws the miss ratio of each window of the run, a line for each
// capacity.
func (p *page) overTime(l *profile.Locality, levels []hierarchy.Level) {
	rows := l.Windows.Rows
	if len(rows) < 2 {
		return
	}
	capacities := watched(levels, l.LineBytes)
	about := "Miss ratio of fully associative LRU caches in each of " + report.Count(uint64(len(rows))).Human() + " windows of " + report.Count(l.Windows.References).Human() + " references. Exact."
	p.begin("Misses over time", about)
	most := 0.001
	for i := range rows {
		most = max(most, missesIn(&rows[i], capacities[0]))
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
				path = append(append(path, number(left)...), ' ')
			}
			path = append(path, number(bottom-(bottom-top)*missesIn(&rows[n], k)/most)...)
			path = append(append(path, 'H'), number(left+(right-left)*float64(n+1)/float64(len(rows)))...)
		}
		colour := "var(--level" + strconv.Itoa(min(i+1, 4)) + ")"
		p.raw("<path style=\"fill:none;stroke:", colour, ";stroke-width:1.5\"", dashes[min(i, len(dashes)-1)], " d=\"", string(path), "\"/>\n")
		x := left + 120 + 150*float64(i)
		p.raw("<line style=\"stroke:", colour, ";stroke-width:2\"", dashes[min(i, len(dashes)-1)], " x1=\"", number(x), "\" x2=\"", number(x+28), "\" y1=\"12\" y2=\"12\"/>\n")
		p.text("halo", "start", x+34, 16, report.Bytes(uint64(l.LineBytes)<<k).Human())
	}
	p.end(about)
}

// dashes tell lines apart where colours do not.
var dashes = []string{"", ` stroke-dasharray="7 3"`, ` stroke-dasharray="2 3"`}

// missesIn is the share of a window's accesses that miss 2^k lines.
func missesIn(w *profile.WindowRow, k int) float64 {
	return float64(w.Misses(k)) / float64(cmp.Or(w.Accesses(), 1))
}
