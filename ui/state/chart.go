package state

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Chart contains the numbers and words of a chart. The script charts.js lays out the chart and
// draws it.
type Chart struct {
	ID      string // the id of the element that contains the chart
	Title   string
	X, Y    Axis
	At      []float64 // the x coordinate of every point
	Series  []Series
	Marks   []Mark
	Split   int    // in bar charts, the index of the first bar after the gap between two groups of bars; 0: there is no gap
	Summary string // a summary of the chart, for screen readers
	How     string // how the chart's numbers were computed; "": in the same way as the run's other numbers
	Small   bool   // the chart is one of several charts side by side
}

// Axis describes one axis.
type Axis struct {
	Label  string
	Unit   Unit
	Log    bool
	Min    float64
	Max    float64
	Labels []string // a label for each point, instead of numbers
}

// Unit determines how charts.js formats a value.
type Unit string

const (
	UnitBytes      Unit = "bytes"      // binary prefixes
	UnitShare      Unit = "share"      // 0 to 1, written as a percentage
	UnitReferences Unit = "references" // SI prefixes
	UnitBin        Unit = "bin"        // the index of a bin label
	UnitCores      Unit = "cores"
	UnitTimes      Unit = "times" // a factor, such as "2 times"
)

// Series is one curve or one set of bars.
type Series struct {
	Label string
	Color string // the name of a colour in app.css, without "--"
	Shape Shape
	Dash  bool
	Y     []float64 // NaN if there is no value
	// Low and High are the ends of the confidence interval at every point, which is drawn as a
	// band; nil: there is no interval.
	Low, High []float64
}

// Shape is how a series is drawn.
type Shape string

// The shapes of series.
const (
	ShapeStep Shape = "step" // a step function: each value applies up to the next point
	ShapeLine Shape = "line"
	ShapeBars Shape = "bars"
)

// Mark is a labelled point on the first series.
type Mark struct {
	Label string
	Color string
	X, Y  float64
	Real  float64 // the predicted value of the level in the hierarchy; 0: unknown
	Level int     // level (counted from 1) that dragging the mark resizes; 0: the mark is fixed
}

// Graph is the control-flow graph of a function. The script graph.js draws the graph. A Graph must
// not be changed after it has been passed to the browser.
type Graph struct {
	ID, Title, Summary string
	Nodes              []GraphNode
	Edges              []GraphEdge
	Selected           int // the selected node; -1: none
}

// GraphNode is a block of the function.
type GraphNode struct {
	Lines []string // the lines of text that are drawn in the block
	About string   // the text for screen readers
	Share float64  // the share of the function's instructions
	Never bool     // the block never runs
}

// GraphEdge is an edge from one block to another.
type GraphEdge struct {
	From, To int
	Text     string  // the text next to the edge
	Share    float64 // the width of the edge, up to 1
	Never    bool    // the edge is never taken
}

// Zoom is the part of a chart's x axis that is shown. The zero Zoom is the whole axis.
type Zoom struct {
	Chart    string // the ID of the chart
	From, To float64
}

// mostZooms is the maximum number of zoomed charts in a URL.
const mostZooms = 32

// String returns a zoom in the form that URLs use, for example "curve:16384:65536".
func (z Zoom) String() string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	return z.Chart + ":" + number(z.From) + ":" + number(z.To)
}

// parseZoom parses the output of [Zoom.String]. Any other text means the whole axis.
func parseZoom(text string) Zoom {
	chart, ends, _ := strings.Cut(text, ":")
	from, to, _ := strings.Cut(ends, ":")
	low, err := strconv.ParseFloat(from, 64)
	high, wrong := strconv.ParseFloat(to, 64)
	if err != nil || wrong != nil {
		return Zoom{}
	}
	return Zoom{safeKey(chart), low, high}
}

// Zoom returns the zoom of a chart, or the zero Zoom if the whole chart is shown.
func (s Screen) Zoom(chart string) Zoom {
	for _, z := range s.Zooms {
		if z.Chart == chart {
			return z
		}
	}
	return Zoom{}
}

// Zoomed returns the screen on which a chart is zoomed to the given range. Both ends of the range
// are rounded to eight digits. An empty range shows the whole chart.
func (s Screen) Zoomed(z Zoom) Screen {
	s.Zooms = slices.DeleteFunc(slices.Clone(s.Zooms), func(of Zoom) bool { return of.Chart == z.Chart })
	for _, end := range []*float64{&z.From, &z.To} {
		*end, _ = strconv.ParseFloat(strconv.FormatFloat(*end, 'g', 8, 64), 64)
	}
	if z.Chart != "" && z.From < z.To && !math.IsInf(z.To-z.From, 0) {
		s.Zooms = append(s.Zooms, z)
	}
	if len(s.Zooms) == 0 {
		s.Zooms = nil
	}
	return s
}
