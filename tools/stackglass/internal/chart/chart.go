// Package chart draws curves and histograms as SVG and PNG, for reports and slides. The page
// draws its own charts.
package chart

import (
	"image/color"
	"io"
	"math"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// Format is an image file format.
type Format string

// The supported formats.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

const (
	width  = 20 * vg.Centimeter
	height = 11 * vg.Centimeter
	margin = 0.3 * vg.Centimeter
	dpi    = 150
)

// The colours of the page's light theme.
var (
	accent = color.RGBA{0x0b, 0x5c, 0xad, 0xff}
	ink    = color.RGBA{0x1b, 0x1e, 0x22, 0xff}
	second = color.RGBA{0x55, 0x5d, 0x67, 0xff}
	grid   = color.RGBA{0xeb, 0xed, 0xef, 0xff}
)

// Chart is a chart that can be written in every format.
type Chart struct{ plot *plot.Plot }

// Write draws the chart and writes it in the given format.
func (c *Chart) Write(w io.Writer, f Format) error {
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	if f == SVG {
		canvas = vgsvg.New(width, height)
	} else {
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
	}
	c.plot.Draw(draw.Crop(draw.New(canvas), margin, -margin, margin, -margin))
	_, err := canvas.WriteTo(w)
	return err
}

// newPlot returns an empty chart in the page's style.
func newPlot(title, xLabel, yLabel string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, xLabel, yLabel
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.Title.Padding = vg.Points(10)
	p.Title.TextStyle.Color = ink
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size = vg.Points(11)
		axis.Label.TextStyle.Color = ink
		axis.Label.Padding = vg.Points(6)
		axis.Tick.Label.Font.Size = vg.Points(9)
		axis.Tick.Label.Color = second
		axis.Tick.Color, axis.LineStyle.Color = second, second
		for _, style := range []*draw.TextStyle{&axis.Label.TextStyle, &axis.Tick.Label} {
			style.Font.Variant = "Sans"
		}
	}
	p.Title.TextStyle.Font.Variant = "Sans"
	lines := plotter.NewGrid()
	lines.Horizontal.Color, lines.Vertical.Color = grid, grid
	p.Add(lines)
	return p
}

// Curve draws the miss ratio of a fully associative LRU cache against its capacity, from one line
// to beyond the footprint. The capacity axis is logarithmic, and the miss axis is logarithmic if
// the miss ratios span more than two decades.
func Curve(name string, lineBytes uint32, c *profile.Curve) (*Chart, error) {
	capacity := "capacity (fully associative LRU, lines of " + strconv.FormatUint(uint64(lineBytes), 10) + " bytes)"
	p := newPlot("Miss-ratio curve of "+path.Base(name), capacity, "misses, % of line accesses")
	points := curveSteps(c)
	most, least := points[0].Y, points[len(points)-1].Y
	logarithmic := least > 0 && most > 100*least
	if logarithmic {
		for i := range points {
			points[i].Y = math.Log10(points[i].Y)
		}
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.StepStyle = plotter.PostStep
	line.Color, line.Width = accent, vg.Points(1.6)
	p.Add(line)
	doublings := int(points[len(points)-1].X)
	p.X.Min, p.X.Max = 0, float64(doublings)
	p.X.Tick.Marker = plot.ConstantTicks(sizeTicks(doublings, lineBytes))
	if logarithmic {
		p.Y.Min, p.Y.Max = math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
		p.Y.Tick.Marker = plot.ConstantTicks(decadeTicks(int(p.Y.Min), int(p.Y.Max)))
	} else {
		scaleFromZero(p, most)
	}
	return &Chart{p}, nil
}

// curveSteps returns the breakpoints of the curve: X is the binary logarithm of the capacity in
// lines, and Y is the miss ratio in percent. Steps that are too close together to be visible are
// skipped. The last point is at a power of two beyond the last step, so that the flat end of the
// curve is visible. X is a logarithm because the plot library's logarithmic scale would misplace
// the axis label.
func curveSteps(c *profile.Curve) (points plotter.XYs) {
	const perDoubling = 100 // more than the number of pixels in the chart
	drawn, last := math.Inf(-1), uint64(1)
	var skipped *plotter.XY
	for capacityLines, misses := range c.Points {
		last = capacityLines
		at := plotter.XY{X: math.Log2(float64(capacityLines)), Y: percent(misses, c.Accesses)}
		if skipped = &at; at.X-drawn >= 1.0/perDoubling {
			points, drawn, skipped = append(points, at), at.X, nil
		}
	}
	if skipped != nil {
		points = append(points, *skipped)
	}
	if len(points) == 0 {
		points = append(points, plotter.XY{})
	}
	return append(points, plotter.XY{X: float64(bits.Len64(last)), Y: points[len(points)-1].Y})
}

// decadeTicks returns ticks at powers of ten, with their logarithms as values.
func decadeTicks(from, to int) []plot.Tick {
	var ticks []plot.Tick
	for decade := from; decade <= to; decade++ {
		ticks = append(ticks, plot.Tick{Value: float64(decade), Label: strconv.FormatFloat(math.Pow10(decade), 'g', 3, 64)})
		for i := 2; i < 10 && decade < to; i++ {
			ticks = append(ticks, plot.Tick{Value: float64(decade) + math.Log10(float64(i))})
		}
	}
	return ticks
}

// scaleFromZero scales the vertical axis for values from 0 to a maximum (most), with about five
// labelled ticks at round numbers.
func scaleFromZero(p *plot.Plot, most float64) {
	p.Y.Min, p.Y.Max = 0, math.Max(most*1.05, 1e-9)
	step := math.Pow(10, math.Floor(math.Log10(p.Y.Max/5)))
	for _, factor := range []float64{5, 2} {
		if p.Y.Max/(step*factor) >= 4 {
			step *= factor
			break
		}
	}
	var ticks []plot.Tick
	for i := 0; float64(i)*step <= p.Y.Max; i++ {
		at := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'g', 6, 64)})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
}

// sizeTicks returns ticks at the capacities whose number of lines is a power of two. At most about
// twelve ticks have labels.
func sizeTicks(doublings int, lineBytes uint32) []plot.Tick {
	every := (doublings + 12) / 12
	var ticks []plot.Tick
	for k := range doublings + 1 {
		tick := plot.Tick{Value: float64(k)}
		if k%every == 0 {
			tick.Label = sizeLabel(uint64(lineBytes) << k)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

func sizeLabel(bytes uint64) string {
	text := hierarchy.FormatSize(bytes)
	if number, unit := strings.TrimRight(text, "KMGTiB"), strings.TrimLeft(text, "0123456789"); unit != "" {
		return number + " " + unit
	}
	return text + " B"
}

func percent(n, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}

// Histogram draws the accesses by stack distance, with a bar for each power of two and one bar for
// first accesses.
func Histogram(name string, lineBytes uint32, counts *profile.Histogram, cold uint64) (*Chart, error) {
	title := "Stack distances of " + path.Base(name) + ", lines of " + strconv.FormatUint(uint64(lineBytes), 10) + " bytes"
	p := newPlot(title, "stack distance (distinct lines since the last access to the line)", "% of line accesses")
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
	if last > 6 { // tilted, because horizontal labels would overlap
		p.X.Tick.Label.Rotation = math.Pi / 5
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XRight, text.YCenter
	}
	scaleFromZero(p, slices.Max(shares))
	return &Chart{p}, nil
}
