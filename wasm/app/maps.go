//go:build js && wasm

package main

import (
	"syscall/js"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/wasm/unpack"
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

// Describe has the second program read a description of a hierarchy.
func (b *browser) Describe(content []byte) ([]byte, error) {
	w := unpack.Workers{Script: unpackScript}
	return w.Describe(content)
}

// Export has the second program make a file.
func (b *browser) Export(request []byte) ([]byte, error) {
	w := unpack.Workers{Script: unpackScript}
	return w.Export(request)
}

// unpackScript starts the second program, relative to the page.
const unpackScript = "worker.js?wasm=unpack.wasm"

// connectMaps lets heatmap.js tell which cell was picked.
func connectMaps(app *ui.App) {
	js.Global().Get("stackglassMaps").Call("onPick", function(func(args []js.Value) {
		sets, ways := args[0].Int(), args[1].Int()
		go app.MoveCell(sets, ways)
	}))
}
