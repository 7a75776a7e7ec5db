// Package ui is the page's program: the state and its reactions to dropped files, messages and
// clicks ([App]), and the Vugu components that show the state.
//
// Components contain no calculations. Components only lay out the tables, charts and sentences of
// package state. Only [Port] accesses the browser, so the rest of this package runs natively in
// tests:
//
//	boot.js, charts.js ⇄ Port (wasm/app) ⇄ App ⇄ workers.Carrier ⇄ a web worker
//	                                      ⇄ profile.Store
//
// An App is changed only under the lock of Vugu's event environment. The program never holds this
// lock while it waits for the store, a worker or the browser.
package ui

//go:generate go tool vugugen -s -skip-go-mod -skip-main .
//go:generate go run ../tools/compactui 0_components_gen.go

import (
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// Port is the page's interface to the browser. Only methods that return an error may block.
type Port interface {
	// Connect starts a worker that can make the analyses of a spec, and returns the connection to
	// this worker.
	Connect(analysis.Spec) (workers.Carrier, error)
	// Fetch fetches a file of this site.
	Fetch(url, name string) (File, error)
	// Answerer starts a worker that computes expensive answers as a workers.AnswerHost.
	Answerer() (workers.Carrier, error)
	// Copy copies text to the clipboard.
	Copy(text string) error

	// Settings reads the form of the first screen.
	Settings() state.Settings
	// Demos lists the demos of the first screen.
	Demos() []Demo
	// Chart passes a chart to charts.js, which draws it in the sg-chart element with the same id,
	// zoomed to a part of the x axis.
	Chart(c *state.Chart, zoom state.Zoom)
	// Grid passes a table to tables.js, which draws it in the sg-table element with the same id.
	Grid(g *state.Grid)
	// Heat passes a map of sets and ways to heatmap.js, which draws it in the sg-heatmap element
	// with the same id.
	Heat(m *state.HeatMap)
	// Matrix passes a matrix to matrix.js, which draws it in the sg-matrix element with the same
	// id.
	Matrix(m *state.Matrix)
	// Timeline passes the timeline to timeline.js, which draws it in the sg-timeline element.
	Timeline(t *state.Timeline)
	// Graph passes a graph to graph.js, which draws it in the sg-graph element with the same id.
	Graph(g *state.Graph)
	// Flame passes a flame graph to flame.js, which draws it in the sg-flame element with the same
	// id.
	Flame(f *state.Flame)
	// SavePicture downloads a picture of a chart.
	SavePicture(chart, name string)
	// Save downloads content as a file with the given name.
	Save(name, mediaType string, content []byte)
	// Remember stores a short text in this browser if the browser allows local storage, and Remembered
	// returns the text.
	Remember(name, text string)
	Remembered(name string) string
	// Pick opens the file picker.
	Pick()
	// Hash returns the URL's hash without "#", or "".
	Hash() string
	// SetHash changes the URL's hash. If replace is set, the history gets no new entry.
	SetHash(hash string, replace bool)
	// ShowProgress updates the numbers of the progress bar on the page. ShowProgress returns false
	// if the page has no bar, or if the bar on the page has different parts.
	ShowProgress(bar state.RunBar) bool
	// Breathe yields to waiting events, and thus splits long work into several tasks of the page.
	// Breathe is called without the lock.
	Breathe()
	// ShowFirst shows or hides the static first screen.
	ShowFirst(show bool)
	// ShowInterrupted shows on the static first screen that an analysis was interrupted, with a button
	// that resumes the analysis if that is possible. ShowInterrupted hides the text if it is empty.
	ShowInterrupted(text string, resumable bool)
	// SetTitle sets the title of the window.
	SetTitle(title string)
	// Announce announces a text to screen readers.
	Announce(text string)
	// Focus moves the focus to the element with the given id after the next render.
	Focus(id string)
	// RestoreFocus is like Focus, but does nothing if an element has the focus after the next render.
	RestoreFocus(id string)
	// Now returns the current time in the user's time zone.
	Now() time.Time
}

// File is a file from the user, or the trace of a demo.
type File struct {
	Name     string
	Path     string // relative to the chosen folder; "" if unknown
	Bytes    uint64
	Modified int64 // milliseconds since 1970; 0: unknown
	Ref      any   // sent as the attachment of Start
	Handle   any   // the file handle that [Handles] stores; nil: there is no handle
	// Read returns the beginning of the content. The parameter "most" is the maximum number of bytes;
	// 0: the whole content.
	Read func(most int) ([]byte, error)
}

// Demo is a trace that is part of the page, with its lesson.
type Demo struct {
	Name, Question string
	Title          string // what the demo's program does
	URL            string // URL of the demo's trace
	// the screen that the demo opens, in the format of the URL's hash: the view and the caches
	Opens             string
	Source            string // URL of the program's source; "": none
	References, Lines uint64 // totals of the whole trace, with 64-byte lines
	Lesson            []Sentence

	// These fields describe the demo's exercise: the question, the possible answers, the index of
	// the right answer, and an explanation of this answer if Lesson does not explain it. If the
	// field Ask is empty, the demo has no exercise.
	Ask, Why string
	Choices  []string
	Right    int
}

// Sentence is a part of a lesson.
type Sentence struct {
	Text string
	Tab  state.Tab // the tab that shows the data behind the sentence
}

// Item is a file or a demo to open.
type Item struct {
	File  File   // the file; empty for a demo
	More  bool   // the item was dropped together with the previous item
	Demo  string // name of a demo
	URL   string // URL of the demo's trace
	Title string // title of the demo
	opens string // the settings in the link to the demo; they override the demo's own settings
	link  bool   // whether the demo was opened by a link; Back must not return to this link
	again bool   // a view requested a new analysis

	domains  [][]uint32        // groups of threads that share a cache in the requesting view
	needs    [][]uint32        // groups of threads that share a cache in the current hierarchy
	analyses analysis.Analyses // additional analyses, which are not in the settings
	part     part              // the part of the run to analyse
}
