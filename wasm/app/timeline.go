//go:build js && wasm

package main

import (
	"syscall/js"

	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers/web"
)

// Timeline passes the timeline to timeline.js.
func (b *browser) Timeline(t *state.Timeline) {
	first := b.timeline == nil
	b.timeline = t
	connect := func() {
		script("Timelines").Call("onRange", web.Function(func(args []js.Value) {
			from, to, phase := args[0].Int(), args[1].Int(), args[2].Bool()
			if from < 0 {
				b.app.Pressed()
				return
			}
			go b.app.BrushRange(from, to, phase)
		}))
		script("Timelines").Call("onFunction", web.Function(func(args []js.Value) {
			id := args[0].Int()
			go b.app.ShowFunction(id)
		}))
		setTimeline(b.timeline)
	}
	if !load(first, "timeline", "Timelines", connect) {
		setTimeline(t)
	}
}

func setTimeline(t *state.Timeline) {
	series := func(all []state.Series) []any {
		return jsSlice(len(all), func(i int) any {
			return map[string]any{"label": all[i].Label, "color": all[i].Color, "y": floats(all[i].Y)}
		})
	}
	bands := jsSlice(len(t.Bands), func(i int) any {
		band := &t.Bands[i]
		return map[string]any{"from": band.From, "to": band.To, "number": band.Number, "label": band.Label}
	})
	regions := jsSlice(len(t.Regions), func(i int) any {
		r := &t.Regions[i]
		return map[string]any{"from": r.From, "to": r.To, "row": r.Row, "number": r.Number, "label": r.Label, "text": r.Text}
	})
	functions := jsSlice(len(t.Functions), func(i int) any {
		f := &t.Functions[i]
		return map[string]any{"label": f.Label, "id": f.ID, "y": floats(f.Y)}
	})
	script("Timelines").Call("set", map[string]any{
		"title": t.Title, "summary": t.Summary, "sentence": t.Sentence, "references": float64(t.References), "window": float64(t.Window),
		"first": float64(t.First), "windows": t.Windows, "levels": series(t.Levels), "bands": bands, "regions": regions, "cycles": floats(t.Cycles), "lanes": series(t.Lanes), "functions": functions, "from": t.From, "to": t.To,
	})
}
