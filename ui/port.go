// Package ui is the page's program: the state with its reactions to drops, messages and clicks
// ([App]), and the Vugu components that show it.
//
// Components contain no numbers of their own; they lay out the tables, charts and sentences of
// package state. The browser is behind [Port], so that everything here runs natively in tests:
//
//	boot.js, charts.js ⇄ Port (wasm/app) ⇄ App ⇄ workers.Carrier ⇄ a web worker
//	                                      ⇄ profile.Store
//
// An App is changed only under the lock of Vugu's event environment, which is
// never held while waiting for the store, a worker or the browser.
package ui

//go:generate go tool vugugen -s -skip-go-mod -skip-main .
//go:generate go run ../tools/compactui 0_components_gen.go

import (
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// Port is what the page needs of a browser. Its methods do not wait, but those
// that give an error do.
type Port interface {
	// Connect starts a worker and gives the carrier to it.
	Connect() (workers.Carrier, error)
	// Fetch gets a file of this site.
	Fetch(url, name string) (File, error)
	// Answerer starts the program that answers what takes work, a workers.AnswerHost.
	Answerer() (workers.Carrier, error)
	// Copy puts text on the clipboard.
	Copy(text string) error

	// Settings gives the form of the first screen.
	Settings() state.Settings
	// Demos lists the demos of the first screen.
	Demos() []Demo
	// Chart hands a chart to charts.js, which draws it where an sg-chart element has its id.
	Chart(c *state.Chart)
	// Grid hands a table to tables.js, which draws it where an sg-table element has its id.
	Grid(g *state.Grid)
	// Heat hands a map of sets and ways to heatmap.js, which draws it where an
	// sg-heatmap element has its id.
	Heat(m *state.HeatMap)
	// Matrix hands a matrix to matrix.js, which draws it where an sg-matrix element has its id.
	Matrix(m *state.Matrix)
	// Graph hands a graph to graph.js, which draws it where an sg-graph element has its id.
	Graph(g *state.Graph)
	// SavePicture downloads a chart as it is drawn.
	SavePicture(chart, name string)
	// ResetZoom shows all of a chart.
	ResetZoom(chart string)
	// Save downloads content under a name.
	Save(name, mediaType string, content []byte)
	// Remember keeps a short text in this browser, where it allows that, and Remembered returns it.
	Remember(name, text string)
	Remembered(name string) string
	// Pick opens the file picker.
	Pick()
	// Hash is the URL's hash, without "#"; "" where there is none.
	Hash() string
	// SetHash changes the URL's hash; replace leaves no entry in the history.
	SetHash(hash string, replace bool)
	// ShowProgress writes the numbers of a bar that is in view where they stand; false:
	// it is not there, or has other parts.
	ShowProgress(bar state.RunBar) bool
	// Breathe lets the events in that wait for the program, so that long work is several
	// tasks of the page. It is called without the lock.
	Breathe()
	// ShowFirst shows or hides the static first screen.
	ShowFirst(show bool)
	// SetTitle names the window.
	SetTitle(title string)
	// Announce tells those who listen instead of looking.
	Announce(text string)
	// Focus moves the focus to the element with that id after the next render.
	Focus(id string)
	// Now is the reader's clock, in the reader's time zone.
	Now() time.Time
}

// File is a file of the reader's, or of the demos.
type File struct {
	Name     string
	Path     string // with the folder that it was chosen with; "" where it is not known
	Bytes    uint64
	Modified int64 // milliseconds since 1970; 0: not known
	Ref      any   // what a Start carries as attachment
	Handle   any   // what [Handles] keep; nil: nothing
	// Read gives the content, or its first most bytes; most 0: all of it.
	Read func(most int) ([]byte, error)
}

// Demo is a trace that comes with the page, with the lesson that it teaches.
type Demo struct {
	Name, Question    string
	Title             string // what its program does
	URL               string // of its trace
	Opens             string // the screen that it opens on, as in the URL's hash: the view, and the caches
	Source            string // address of its source; "" where it has none
	References, Lines uint64 // of the whole trace, in lines of 64 bytes
	Lesson            []Sentence

	// As an exercise: what to predict, the answers to choose from, which is right, and why, if Lesson does
	// not say it. An empty Ask is none.
	Ask, Why string
	Choices  []string
	Right    int
}

// Sentence is a part of a lesson.
type Sentence struct {
	Text string
	Tab  state.Tab // where it is seen
}

// Item is what a person drops, picks or presses.
type Item struct {
	File  File   // empty for a demo
	More  bool   // it was dropped together with the item before
	Demo  string // name of a demo
	URL   string // of the demo's file
	Title string // of the demo
	opens string // what a link to the demo says of the screen, where the demo says otherwise
	link  bool   // a link led to the demo: the way back does not lead to the link again
	again bool   // it is analysed again, from the view that it was analysed for

	domains  [][]uint32        // threads that share a cache in that view
	needs    [][]uint32        // the same, for the hierarchy in question
	analyses analysis.Analyses // that are asked for besides those of the settings
}
