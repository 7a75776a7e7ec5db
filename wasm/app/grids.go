//go:build js && wasm

package main

import (
	"syscall/js"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/ui/state"
)

// Grid hands a table to tables.js, which asks for the rows that it draws.
func (b *browser) Grid(g *state.Grid) {
	if b.grids == nil {
		b.grids = map[string]*state.Grid{}
	}
	b.grids[g.ID] = g
	columns := make([]any, len(g.Columns))
	for i, c := range g.Columns {
		columns[i] = map[string]any{"name": c.Name, "key": c.Key, "kind": g.Kind(i)}
	}
	depths := make([]any, len(g.Depths))
	for i, depth := range g.Depths {
		depths[i] = depth
	}
	js.Global().Get("stackglassTables").Call("set", map[string]any{
		"depths": depths, "id": g.ID, "caption": g.Caption, "columns": columns, "rows": g.Rows,
		"sort": g.Sort, "order": g.Order, "selected": g.Selected,
	})
}

// rows answers tables.js, within one of its calls: a grid is not changed once it
// was handed over, so this needs no lock.
func (b *browser) rows(id string, first, count int) any {
	g := b.grids[id]
	if g == nil {
		return []any{}
	}
	rows, marks := g.View(first, count)
	list := make([]any, len(rows))
	for i, row := range rows {
		cells := make([]any, len(row))
		for j, cell := range row {
			cells[j] = cell
		}
		list[i] = map[string]any{"cells": cells, "mark": marks[i]}
	}
	return list
}

// connectTables lets tables.js ask and tell.
func (b *browser) connectTables(app *ui.App) {
	js.Global().Get("stackglassTables").Call("connect",
		js.FuncOf(func(_ js.Value, args []js.Value) any {
			return b.rows(args[0].String(), args[1].Int(), args[2].Int())
		}),
		function(func(args []js.Value) {
			id, row := args[0].String(), args[1].Int()
			go app.PickRow(id, row)
		}),
		function(func(args []js.Value) {
			column := args[1].String()
			go app.SortBy(column)
		}))
}
