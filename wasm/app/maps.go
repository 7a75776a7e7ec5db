//go:build js && wasm

package main

import (
	"syscall/js"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/web"
)

// Heat hands a map of sets and ways to heatmap.js.
func (b *browser) Heat(m *state.HeatMap) {
	marks := make([]any, len(m.Marks))
	for i, mark := range m.Marks {
		marks[i] = map[string]any{"label": mark.Label, "color": mark.Color, "sets": mark.Cell.Log2Sets, "ways": mark.Cell.Ways}
	}
	js.Global().Get("stackglassMaps").Call("set", map[string]any{
		"id": m.ID, "title": m.Title, "summary": m.Summary, "lineBytes": m.LineBytes,
		"rows": m.Rows, "columns": m.Columns, "values": floats(m.Values), "signed": m.Signed, "least": m.Least, "most": m.Most,
		"cell": map[string]any{"sets": m.Cell.Log2Sets, "ways": m.Cell.Ways}, "marks": marks,
	})
}

// Matrix hands a matrix to matrix.js, which is loaded for the first one, unless it
// is there already: the page that is one file loads nothing.
func (b *browser) Matrix(m *state.Matrix) {
	if b.matrices == nil {
		b.matrices = map[string]*state.Matrix{}
		if matricesReady() {
			connectMatrices(b.app)
		} else {
			b.loadMatrices()
		}
	}
	b.matrices[m.ID] = m
	if matricesReady() {
		setMatrix(m)
	}
}

func matricesReady() bool { return js.Global().Get("stackglassMatrices").Truthy() }

func (b *browser) loadMatrices() {
	b.load("matrix", func() {
		connectMatrices(b.app)
		for _, m := range b.matrices {
			setMatrix(m)
		}
	})
}

// load loads a script of the site that few visits need.
func (b *browser) load(name string, then func()) {
	script := document().Call("createElement", "script")
	script.Set("src", address(name))
	script.Call("addEventListener", "load", function(func([]js.Value) { then() }))
	document().Get("head").Call("append", script)
}

func setMatrix(m *state.Matrix) {
	js.Global().Get("stackglassMatrices").Call("set", map[string]any{
		"id": m.ID, "title": m.Title, "summary": m.Summary, "rows": words(m.Rows), "columns": words(m.Columns),
		"rowAxis": m.RowAxis, "columnAxis": m.ColumnAxis, "values": floats(m.Values), "texts": words(m.Texts),
		"row": m.Row, "column": m.Column, "letters": words(m.Letters),
	})
}

func words(list []string) []any {
	out := make([]any, len(list))
	for i, w := range list {
		out[i] = w
	}
	return out
}

// connectMatrices lets matrix.js tell which cell was picked.
func connectMatrices(app *ui.App) {
	js.Global().Get("stackglassMatrices").Call("onPick", function(func(args []js.Value) {
		row, column := args[1].Int(), args[2].Int()
		go app.PickFlow(row, column)
	}))
}

// Graph hands a graph to graph.js, which is loaded as matrix.js is.
func (b *browser) Graph(g *state.Graph) {
	ready := func() bool { return js.Global().Get("stackglassGraphs").Truthy() }
	connect := func() {
		js.Global().Get("stackglassGraphs").Call("onPick", function(func(args []js.Value) {
			row := args[1].Int()
			go b.app.PickBlock(row)
		}))
	}
	first := b.graph == nil
	b.graph = g
	switch {
	case first && ready():
		connect()
	case first:
		b.load("graph", func() {
			connect()
			setGraph(b.graph)
		})
	}
	if ready() {
		setGraph(g)
	}
}

func setGraph(g *state.Graph) {
	nodes, edges := make([]any, len(g.Nodes)), make([]any, len(g.Edges))
	for i, n := range g.Nodes {
		nodes[i] = map[string]any{"lines": words(n.Lines), "about": n.About, "share": n.Share, "never": n.Never}
	}
	for i, e := range g.Edges {
		edges[i] = map[string]any{"from": e.From, "to": e.To, "text": e.Text, "share": e.Share, "never": e.Never}
	}
	js.Global().Get("stackglassGraphs").Call("set", map[string]any{
		"id": g.ID, "title": g.Title, "summary": g.Summary, "nodes": nodes, "edges": edges, "selected": g.Selected,
	})
}

// Answerer starts the second program as a host of answers.
func (b *browser) Answerer() (workers.Carrier, error) {
	return web.Spawn(address("unpacker"), workers.AnswerHostName)
}

// connectMaps lets heatmap.js tell which cell was picked.
func connectMaps(app *ui.App) {
	js.Global().Get("stackglassMaps").Call("onPick", function(func(args []js.Value) {
		sets, ways := args[0].Int(), args[1].Int()
		go app.MoveCell(sets, ways)
	}))
}
