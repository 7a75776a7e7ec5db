package state

// Chart is drawn by charts.js: numbers and words, no layout.
type Chart struct {
	ID      string // names the host element
	Title   string
	X, Y    Axis
	At      []float64 // the x of every point
	Series  []Series
	Marks   []Mark
	Split   int    // bars: the index of the first bar that is set apart; 0: none
	Summary string // of the chart, for screen readers
	How     string // it was computed, if in another way than the run's numbers; ""
	Small   bool   // one of several side by side
}

// Axis describes one axis.
type Axis struct {
	Label  string
	Unit   Unit
	Log    bool
	Min    float64
	Max    float64
	Labels []string // of each point, instead of numbers
}

// Unit tells charts.js how to write a value.
type Unit string

// The units.
const (
	UnitBytes      Unit = "bytes"      // binary prefixes
	UnitShare      Unit = "share"      // 0 to 1, written as a percentage
	UnitReferences Unit = "references" // SI prefixes
	UnitBin        Unit = "bin"        // the index of a label
	UnitCores      Unit = "cores"
	UnitTimes      Unit = "times" // a factor
)

// Series is one curve or one set of bars.
type Series struct {
	Label string
	Color string // the name of a colour in app.css, without "--"
	Shape Shape
	Dash  bool
	Y     []float64 // NaN if there is no value
	// Low and High are the confidence interval of an estimate, drawn as a band; nil: none.
	Low, High []float64
}

// Shape says how a series is drawn.
type Shape string

// The shapes.
const (
	ShapeStep Shape = "step" // holds its value up to the next point
	ShapeLine Shape = "line"
	ShapeBars Shape = "bars"
)

// Mark is a labelled point on the first series.
type Mark struct {
	Label string
	Color string
	X, Y  float64
	Level int // of the hierarchy, from 1, if it can be dragged; 0: fixed
}

// Graph is the control-flow graph of a function, which graph.js draws. It is not changed after it
// is handed over.
type Graph struct {
	ID, Title, Summary string
	Nodes              []GraphNode
	Edges              []GraphEdge
	Selected           int // node; -1: none
}

// GraphNode is a block.
type GraphNode struct {
	Lines []string // as drawn
	About string   // as read out
	Share float64  // of the function's instructions
	Never bool     // it never runs
}

// GraphEdge is an edge from one block to another.
type GraphEdge struct {
	From, To int
	Text     string  // next to it
	Share    float64 // its width, up to 1
	Never    bool    // it is never taken
}
