//go:build js && wasm

package main

import (
	"syscall/js"
	"unsafe"

	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers/web"
)

// Chart passes a chart to charts.js: an object, with numbers as typed arrays.
func (b *browser) Chart(c *state.Chart) {
	series := list(len(c.Series), func(i int) any {
		s := &c.Series[i]
		return map[string]any{
			"label": s.Label, "color": s.Color, "shape": string(s.Shape), "dash": s.Dash, "y": floats(s.Y), "low": floats(s.Low), "high": floats(s.High),
		}
	})
	marks := list(len(c.Marks), func(i int) any {
		m := &c.Marks[i]
		return map[string]any{"label": m.Label, "color": m.Color, "x": m.X, "y": m.Y, "level": m.Level}
	})
	script("Charts").Call("set", map[string]any{
		"id": c.ID, "title": c.Title, "summary": c.Summary, "split": c.Split, "small": c.Small,
		"x": axis(c.X), "y": axis(c.Y), "at": floats(c.At), "series": series, "marks": marks,
	})
}

func axis(a state.Axis) map[string]any {
	return map[string]any{
		"label": a.Label, "unit": string(a.Unit), "log": a.Log, "min": a.Min, "max": a.Max, "labels": words(a.Labels),
	}
}

// list returns n values for JavaScript.
func list(n int, value func(i int) any) []any {
	values := make([]any, n)
	for i := range values {
		values[i] = value(i)
	}
	return values
}

func words(texts []string) []any { return list(len(texts), func(i int) any { return texts[i] }) }

// floats copies numbers into a Float64Array.
func floats(numbers []float64) js.Value {
	if len(numbers) == 0 {
		return js.Global().Get("Float64Array").New(0)
	}
	bytes := web.Array(unsafe.Slice((*byte)(unsafe.Pointer(&numbers[0])), 8*len(numbers)))
	return js.Global().Get("Float64Array").New(bytes.Get("buffer"))
}
