//go:build js && wasm

package main

import (
	"syscall/js"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/web"
)

// Heat passes a map of sets and ways to heatmap.js.
func (b *browser) Heat(m *state.HeatMap) {
	marks := list(len(m.Marks), func(i int) any {
		mark := &m.Marks[i]
		return map[string]any{"label": mark.Label, "color": mark.Color, "sets": mark.Cell.Log2Sets, "ways": mark.Cell.Ways}
	})
	script("Maps").Call("set", map[string]any{
		"id": m.ID, "title": m.Title, "summary": m.Summary, "lineBytes": m.LineBytes,
		"rows": m.Rows, "columns": m.Columns, "values": floats(m.Values), "signed": m.Signed, "least": m.Least, "most": m.Most,
		"cell": map[string]any{"sets": m.Cell.Log2Sets, "ways": m.Cell.Ways}, "marks": marks,
	})
}

// Matrix passes a matrix to matrix.js.
func (b *browser) Matrix(m *state.Matrix) {
	first := b.matrices == nil
	if first {
		b.matrices = map[string]*state.Matrix{}
	}
	b.matrices[m.ID] = m
	connect := func() {
		script("Matrices").Call("onPick", web.Function(func(args []js.Value) {
			row, column := args[1].Int(), args[2].Int()
			go b.app.PickFlow(row, column)
		}))
		for _, m := range b.matrices {
			setMatrix(m)
		}
	}
	if !load(first, "matrix", "Matrices", connect) {
		setMatrix(m)
	}
}

// load loads a script that few visits need when it is first used, and calls connect when it is there. The
// page that is one file contains all scripts. load reports false if the script is connected already. Before
// that connect finds all that was passed on.
func load(first bool, file, name string, connect func()) (waits bool) {
	ready := script(name).Truthy()
	switch {
	case first && ready:
		connect()
	case first:
		element := document().Call("createElement", "script")
		element.Set("src", address(file))
		element.Call("addEventListener", "load", web.Function(func([]js.Value) { connect() }))
		document().Get("head").Call("append", element)
	}
	return first || !ready
}

func setMatrix(m *state.Matrix) {
	script("Matrices").Call("set", map[string]any{
		"id": m.ID, "title": m.Title, "summary": m.Summary, "rows": words(m.Rows), "columns": words(m.Columns),
		"rowAxis": m.RowAxis, "columnAxis": m.ColumnAxis, "values": floats(m.Values), "texts": words(m.Texts),
		"row": m.Row, "column": m.Column, "letters": words(m.Letters),
	})
}

// Graph passes a graph to graph.js.
func (b *browser) Graph(g *state.Graph) {
	first := b.graph == nil
	b.graph = g
	connect := func() {
		script("Graphs").Call("onPick", web.Function(func(args []js.Value) {
			row := args[1].Int()
			go b.app.PickBlock(row)
		}))
		setGraph(b.graph)
	}
	if !load(first, "graph", "Graphs", connect) {
		setGraph(g)
	}
}

func setGraph(g *state.Graph) {
	nodes := list(len(g.Nodes), func(i int) any {
		n := &g.Nodes[i]
		return map[string]any{"lines": words(n.Lines), "about": n.About, "share": n.Share, "never": n.Never}
	})
	edges := list(len(g.Edges), func(i int) any {
		e := &g.Edges[i]
		return map[string]any{"from": e.From, "to": e.To, "text": e.Text, "share": e.Share, "never": e.Never}
	})
	script("Graphs").Call("set", map[string]any{
		"id": g.ID, "title": g.Title, "summary": g.Summary, "nodes": nodes, "edges": edges, "selected": g.Selected,
	})
}

// Answerer starts the second program as a host of answers.
func (b *browser) Answerer() (workers.Carrier, error) {
	return web.Spawn(address("unpacker"), workers.AnswerHostName)
}

// connectMaps registers the callback of heatmap.js.
func connectMaps(app *ui.App) {
	script("Maps").Call("onPick", web.Function(func(args []js.Value) {
		sets, ways := args[0].Int(), args[1].Int()
		go app.MoveCell(sets, ways)
	}))
}
