package state

// Chart is what charts.js draws: numbers and words, no layout.
type Chart struct {
	ID      string // names the host element
	Title   string
	X, Y    Axis
	At      []float64 // the x of every point
	Series  []Series
	Marks   []Mark
	Split   int    // bars: the index of the first bar that stands apart; 0: none
	Summary string // what it shows, for those who do not see it
	How     string // it was computed, where that is not as the numbers of the run; ""
	Small   bool   // one of several beside each other
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
	Y     []float64 // NaN where there is no value
	// Low and High are between which the truth is, of an estimate: a band; nil: none.
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
	Level int // of the hierarchy, from 1, when it can be moved; 0: fixed
}

// Graph is the blocks of a function and the ways between them, which graph.js draws. It
// is not changed once it is handed over.
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
	Never bool     // it does not run
}

// GraphEdge is a way from one block to another.
type GraphEdge struct {
	From, To int
	Text     string  // beside it
	Share    float64 // how thick it is, up to 1
	Never    bool    // it is not taken
}
