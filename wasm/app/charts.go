//go:build js && wasm

package main

import (
	"syscall/js"
	"unsafe"

	"github.com/stackglass/stackglass/ui/state"
)

// Chart hands a chart to charts.js: words as an object, numbers as typed arrays.
func (b *browser) Chart(c *state.Chart) {
	series := make([]any, len(c.Series))
	for i, s := range c.Series {
		series[i] = map[string]any{
			"label": s.Label, "color": s.Color, "shape": string(s.Shape), "dash": s.Dash, "y": floats(s.Y), "low": floats(s.Low), "high": floats(s.High),
		}
	}
	marks := make([]any, len(c.Marks))
	for i, m := range c.Marks {
		marks[i] = map[string]any{"label": m.Label, "color": m.Color, "x": m.X, "y": m.Y, "level": m.Level}
	}
	js.Global().Get("stackglassCharts").Call("set", map[string]any{
		"id": c.ID, "title": c.Title, "summary": c.Summary, "split": c.Split, "small": c.Small,
		"x": axis(c.X), "y": axis(c.Y), "at": floats(c.At), "series": series, "marks": marks,
	})
}

func axis(a state.Axis) map[string]any {
	labels := make([]any, len(a.Labels))
	for i, l := range a.Labels {
		labels[i] = l
	}
	return map[string]any{
		"label": a.Label, "unit": string(a.Unit), "log": a.Log, "min": a.Min, "max": a.Max, "labels": labels,
	}
}

// floats copies numbers into a Float64Array.
func floats(list []float64) js.Value {
	if len(list) == 0 {
		return js.Global().Get("Float64Array").New(0)
	}
	bytes := bytesOf(unsafe.Slice((*byte)(unsafe.Pointer(&list[0])), 8*len(list)))
	return js.Global().Get("Float64Array").New(bytes.Get("buffer"))
}
