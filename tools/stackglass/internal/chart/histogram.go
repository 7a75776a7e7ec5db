package chart

import (
	"math"
	"math/bits"
	"path"
	"slices"
	"strconv"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
)

// Histogram draws the accesses by stack distance, a bar for each power of two,
// first accesses apart at the right.
func Histogram(name string, lineBytes uint32, counts *profile.Histogram, cold uint64) (*Chart, error) {
	title := "Stack distances of " + path.Base(name) + ", lines of " + strconv.FormatUint(uint64(lineBytes), 10) + " bytes"
	p := newPlot(title, "distance (distinct lines since the last access to the line)", "% of line accesses")
	var bins [65]uint64
	total, last := cold, 0
	for d, n := range counts.All() {
		k := bits.Len64(d)
		bins[k] += n
		total += n
		last = max(last, k)
	}
	var shares plotter.Values
	var names []string
	for k := 0; k <= last; k++ {
		shares = append(shares, percent(bins[k], total))
		names = append(names, answers.BinName(k))
	}
	shares, names = append(shares, percent(cold, total)), append(names, "first access")
	bars, err := plotter.NewBarChart(shares, vg.Length(0.75)*width/vg.Length(len(shares)+2))
	if err != nil {
		return nil, err
	}
	bars.Color, bars.LineStyle.Width = accent, 0
	p.Add(bars)
	p.NominalX(names...)
	if last > 6 { // side by side they would not fit
		p.X.Tick.Label.Rotation = math.Pi / 5
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XRight, text.YCenter
	}
	fromZero(p, slices.Max(shares))
	return &Chart{p}, nil
}
