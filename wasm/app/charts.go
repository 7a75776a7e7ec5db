//go:build js && wasm

package main

import (
	"syscall/js"
	"unsafe"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/web"
)

// Chart passes a chart to charts.js as an object that contains numbers in typed arrays.
func (b *browser) Chart(c *state.Chart, zoom state.Zoom) {
	series := jsSlice(len(c.Series), func(i int) any {
		s := &c.Series[i]
		return map[string]any{
			"label": s.Label, "color": s.Color, "shape": string(s.Shape), "dash": s.Dash, "y": floats(s.Y), "low": floats(s.Low), "high": floats(s.High),
		}
	})
	marks := jsSlice(len(c.Marks), func(i int) any {
		m := &c.Marks[i]
		return map[string]any{"label": m.Label, "color": m.Color, "x": m.X, "y": m.Y, "real": m.Real, "level": m.Level}
	})
	script("Charts").Call("set", map[string]any{
		"id": c.ID, "title": c.Title, "summary": c.Summary, "split": c.Split, "small": c.Small,
		"x": axis(c.X), "y": axis(c.Y), "at": floats(c.At), "series": series, "marks": marks, "from": zoom.From, "to": zoom.To,
	})
}

func axis(a state.Axis) map[string]any {
	return map[string]any{
		"label": a.Label, "unit": string(a.Unit), "log": a.Log, "min": a.Min, "max": a.Max, "labels": words(a.Labels),
	}
}

// jsSlice returns n values as a slice that can be passed to JavaScript.
func jsSlice(n int, value func(i int) any) []any {
	values := make([]any, n)
	for i := range values {
		values[i] = value(i)
	}
	return values
}

func words(texts []string) []any { return jsSlice(len(texts), func(i int) any { return texts[i] }) }

// floats copies numbers to a Float64Array.
func floats(numbers []float64) js.Value {
	if len(numbers) == 0 {
		return js.Global().Get("Float64Array").New(0)
	}
	bytes := web.Array(unsafe.Slice((*byte)(unsafe.Pointer(&numbers[0])), 8*len(numbers)))
	return js.Global().Get("Float64Array").New(bytes.Get("buffer"))
}

// Grid passes a table to tables.js, which requests the rows that it draws.
func (b *browser) Grid(g *state.Grid) {
	if b.grids == nil {
		b.grids = map[string]*state.Grid{}
	}
	b.grids[g.ID] = g
	columns := jsSlice(len(g.Columns), func(i int) any {
		return map[string]any{"name": g.Columns[i].Name, "key": g.Columns[i].Key, "kind": g.Kind(i)}
	})
	depths := jsSlice(len(g.Depths), func(i int) any { return g.Depths[i] })
	folded := jsSlice(len(g.Folded), func(i int) any { return g.Folded[i] })
	script("Tables").Call("set", map[string]any{
		"depths": depths, "folded": folded, "id": g.ID, "caption": g.Caption, "columns": columns, "rows": g.Rows,
		"sort": g.Sort, "reverse": g.Reverse, "order": g.Order, "selected": g.Selected, "language": g.Language, "longest": g.Longest,
	})
}

// rows returns the rows that tables.js requests. It needs no lock, because a grid does not change
// after it was passed to Grid.
func (b *browser) rows(id string, first, count int) any {
	g := b.grids[id]
	if g == nil {
		return []any{}
	}
	rows, marks := g.View(first, count)
	return jsSlice(len(rows), func(i int) any {
		row, at := map[string]any{"cells": words(rows[i]), "mark": marks[i]}, g.At(max(first, 0)+i)
		if g.Shares != nil {
			shares := g.Shares(at)
			row["shares"] = jsSlice(len(shares), func(c int) any { return shares[c] })
		}
		if g.Tint != nil {
			row["tint"] = floats(g.Tint(at))
		}
		if g.After != nil {
			row["after"] = g.After(at)
		}
		if g.Titles != nil {
			row["titles"] = words(g.Titles(at))
		}
		return row
	})
}

// connectTables registers the callbacks for tables.js.
func (b *browser) connectTables(app *ui.App) {
	script("Tables").Call("connect",
		js.FuncOf(func(_ js.Value, args []js.Value) any {
			return b.rows(args[0].String(), args[1].Int(), args[2].Int())
		}),
		web.Function(func(args []js.Value) {
			id, row := args[0].String(), args[1].Int()
			go app.PickRow(id, row)
		}),
		web.Function(func(args []js.Value) {
			id, column := args[0].String(), args[1].String()
			go app.SortBy(id, column)
		}))
}

// Heat passes a map of sets and ways to heatmap.js.
func (b *browser) Heat(m *state.HeatMap) {
	first := b.maps == nil
	if first {
		b.maps = map[string]*state.HeatMap{}
	}
	b.maps[m.ID] = m
	connect := func() {
		script("Maps").Call("onPick", web.Function(func(args []js.Value) {
			sets, ways := args[0].Int(), args[1].Int()
			go b.app.MoveCell(sets, ways)
		}))
		for _, m := range b.maps {
			setMap(m)
		}
	}
	if !load(first, "heatmap", "Maps", connect) {
		setMap(m)
	}
}

func setMap(m *state.HeatMap) {
	marks := jsSlice(len(m.Marks), func(i int) any {
		mark := &m.Marks[i]
		return map[string]any{"label": mark.Label, "color": mark.Color, "sets": mark.Cell.Log2Sets, "ways": mark.Cell.Ways}
	})
	script("Maps").Call("set", map[string]any{
		"id": m.ID, "title": m.Title, "summary": m.Summary, "lineBytes": m.LineBytes,
		"rows": m.Rows, "columns": m.Columns, "values": floats(m.Values), "signed": m.Signed, "says": m.Says, "least": m.Least, "most": m.Most,
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
		script("Matrices").Call("onZoom", web.Function(func(args []js.Value) {
			part := state.Part{args[0].Int(), args[1].Int(), args[2].Int(), args[3].Int()}
			go b.app.ZoomMap(part)
		}))
		for _, m := range b.matrices {
			setMatrix(m)
		}
	}
	if !load(first, "matrix", "Matrices", connect) {
		setMatrix(m)
	}
}

// load loads a rarely used script on first use, and then calls the function "connect". In the
// single-file page, all scripts are already loaded. load returns false if the script is already
// connected. If it returns true, the function "connect" will draw everything that was passed
// before.
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
		"map": m.Map, "zoom": m.Zoom, "names": words(m.Names), "colors": words(state.CoreColors), "part": jsSlice(4, func(i int) any { return m.Part[i] }),
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
	nodes := jsSlice(len(g.Nodes), func(i int) any {
		n := &g.Nodes[i]
		return map[string]any{"lines": words(n.Lines), "about": n.About, "share": n.Share, "never": n.Never}
	})
	edges := jsSlice(len(g.Edges), func(i int) any {
		e := &g.Edges[i]
		return map[string]any{"from": e.From, "to": e.To, "text": e.Text, "share": e.Share, "never": e.Never}
	})
	script("Graphs").Call("set", map[string]any{
		"id": g.ID, "title": g.Title, "summary": g.Summary, "nodes": nodes, "edges": edges, "selected": g.Selected,
	})
}

// Flame passes a flame graph to flame.js.
func (b *browser) Flame(f *state.Flame) {
	first := b.flames == nil
	if first {
		b.flames = map[string]*state.Flame{}
	}
	b.flames[f.ID] = f
	connect := func() {
		script("Flames").Call("connect",
			web.Function(func(args []js.Value) {
				id, row := args[0].String(), args[1].Int()
				go b.app.ZoomCalls(id, row)
			}),
			// no lock is needed, because a graph does not change
			js.FuncOf(func(_ js.Value, args []js.Value) any {
				where, lines := b.flames[args[0].String()].About(args[1].Int())
				return map[string]any{"where": where, "lines": jsSlice(len(lines), func(i int) any { return words(lines[i]) })}
			}),
			js.FuncOf(func(_ js.Value, args []js.Value) any { return b.flames[args[0].String()].Words(args[1].Int()) }))
		for _, f := range b.flames {
			setFlame(f)
		}
	}
	if !load(first, "flame", "Flames", connect) {
		setFlame(f)
	}
}

func setFlame(f *state.Flame) {
	numbers := func(of []int) []any { return jsSlice(len(of), func(i int) any { return of[i] }) }
	script("Flames").Call("set", map[string]any{
		"id": f.ID, "title": f.Title, "summary": f.Summary, "event": f.Event, "up": f.Up, "names": words(f.Names),
		"parents": numbers(f.Parents), "depths": numbers(f.Depths), "starts": floats(f.Starts), "weights": floats(f.Weights), "total": f.Total,
		"tints": floats(f.Tints), "matches": jsSlice(len(f.Matches), func(i int) any { return f.Matches[i] }), "zoom": f.Zoom,
	})
}

// Answerer starts the second program as a workers.AnswerHost.
func (b *browser) Answerer() (workers.Carrier, error) {
	return web.Spawn(address("unpacker"), workers.AnswerHostName)
}
