//go:build js && wasm

package main

import (
	"syscall/js"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers/web"
)

// Grid passes a table to tables.js, which requests the rows that it draws.
func (b *browser) Grid(g *state.Grid) {
	if b.grids == nil {
		b.grids = map[string]*state.Grid{}
	}
	b.grids[g.ID] = g
	columns := list(len(g.Columns), func(i int) any {
		return map[string]any{"name": g.Columns[i].Name, "key": g.Columns[i].Key, "kind": g.Kind(i)}
	})
	depths := list(len(g.Depths), func(i int) any { return g.Depths[i] })
	script("Tables").Call("set", map[string]any{
		"depths": depths, "id": g.ID, "caption": g.Caption, "columns": columns, "rows": g.Rows,
		"sort": g.Sort, "order": g.Order, "selected": g.Selected,
	})
}

// rows answers tables.js, within one of its calls. It needs no lock: a grid never changes after Grid.
func (b *browser) rows(id string, first, count int) any {
	g := b.grids[id]
	if g == nil {
		return []any{}
	}
	rows, marks := g.View(first, count)
	return list(len(rows), func(i int) any {
		return map[string]any{"cells": words(rows[i]), "mark": marks[i]}
	})
}

// connectTables registers the callbacks of tables.js.
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
			column := args[1].String()
			go app.SortBy(column)
		}))
}
