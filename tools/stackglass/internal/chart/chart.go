// Package chart draws curves and histograms as SVG and PNG, for reports and
// slides. The page draws its own, which one can ask questions; these stand
// still.
package chart

import (
	"image/color"
	"io"
	"math"
	"math/bits"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// Format is a kind of picture file.
type Format string

// The formats.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

const (
	width  = 20 * vg.Centimeter
	height = 11 * vg.Centimeter
	dpi    = 150
)

// The page's colours, light theme.
var (
	accent = color.RGBA{0x0b, 0x5c, 0xad, 0xff}
	ink    = color.RGBA{0x1b, 0x1e, 0x22, 0xff}
	second = color.RGBA{0x55, 0x5d, 0x67, 0xff}
	grid   = color.RGBA{0xeb, 0xed, 0xef, 0xff}
)

// Chart is a drawing that can be written in every format.
type Chart struct{ plot *plot.Plot }

// Write draws the chart.
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
	c.plot.Draw(draw.Crop(draw.New(canvas), 0, -0.4*vg.Centimeter, 0.2*vg.Centimeter, -0.1*vg.Centimeter))
	_, err := canvas.WriteTo(w)
	return err
}

// newPlot is an empty chart in the page's quiet style.
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

// Curve draws the miss ratio of a fully associative LRU cache over its
// capacity, from one line to twice the footprint, on a logarithmic axis.
func Curve(name string, lineBytes uint32, c *profile.Curve) (*Chart, error) {
	p := newPlot("Miss-ratio curve of "+name, "capacity (fully associative LRU)", "misses, % of line accesses")
	first, last := uint64(1), uint64(2)
	var points plotter.XYs
	for capacityLines, misses := range c.Points {
		points = append(points, plotter.XY{X: float64(capacityLines), Y: percent(misses, c.Accesses)})
		last = max(last, capacityLines)
	}
	last = 1 << bits.Len64(last) // beyond the last step, so that the floor shows
	if len(points) == 0 {
		points = append(points, plotter.XY{X: 1})
	}
	points = append(points, plotter.XY{X: float64(last), Y: points[len(points)-1].Y})
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.StepStyle = plotter.PostStep
	line.Color, line.Width = accent, vg.Points(1.6)
	p.Add(line)
	p.X.Scale, p.X.Min, p.X.Max = plot.LogScale{}, float64(first), float64(last)
	p.X.Tick.Marker = plot.ConstantTicks(sizeTicks(last, lineBytes))
	p.Y.Min = 0
	p.Y.Max = math.Max(p.Y.Max*1.05, 1e-3)
	return &Chart{p}, nil
}

// sizeTicks are capacities that caches come in, at powers of two, at most about
// twelve of them labelled.
func sizeTicks(last uint64, lineBytes uint32) []plot.Tick {
	count := bits.Len64(last)
	every := (count + 11) / 12
	var ticks []plot.Tick
	for k := range count {
		tick := plot.Tick{Value: float64(uint64(1) << k)}
		if k%every == 0 {
			tick.Label = sizeLabel(uint64(lineBytes) << k)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

func sizeLabel(bytes uint64) string {
	if bytes < 1024 {
		return hierarchy.FormatSize(bytes) + " B"
	}
	return hierarchy.FormatSize(bytes)
}

func percent(n, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}
