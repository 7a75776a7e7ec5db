package ui

import (
	"io"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
)

// Rehearse returns steps that show a small profile in every view of an invisible page. A browser
// compiles a function on its first call, so these steps make the browser compile the code of the
// views. The function "build" builds a component.
func Rehearse(build func(vugu.Builder)) []func() {
	a := &App{Screen: state.Screen{Open: "rehearsal"}, result: &Result{Key: "rehearsal", Profile: &profile.Profile{}}}
	root := NewRoot(a)
	var data []byte
	runner, err := analysis.NewRunner(analysis.Spec{}, &walk{})
	if err != nil {
		return nil
	}
	var steps []func()
	for range walkRows / stepRows {
		steps = append(steps, func() {
			for range stepRows {
				_ = runner.Step()
			}
		})
	}
	steps = append(steps,
		func() { a.result.Profile = runner.Profile(profile.State{}) },
		func() { data = a.result.Profile.Encode() },
		func() {
			if p, err := profile.Decode(data); err == nil {
				a.result.Profile = p
			}
		},
		func() { a.result.show(0) },
		func() { a.Findings() },
	)
	chart := func(id string, draw func(*state.View) *state.Chart) func() {
		return func() {
			if v := a.result.View; v != nil {
				a.charts = map[string]*state.Chart{id: draw(v)}
			}
		}
	}
	steps = append(steps,
		func() {
			if a.result.View != nil {
				a.answer()
			}
		},
		chart("curve", func(v *state.View) *state.Chart { return v.MissCurve(a.Levels()) }),
		chart("histogram", (*state.View).HistogramChart),
		chart("time", func(v *state.View) *state.Chart { return v.OverTime(a.capacities()) }),
	)
	for _, tab := range []state.Tab{state.TabDiagnosis, state.TabCaches, state.TabLocality} {
		steps = append(steps, func() {
			a.Screen.Tab = tab
			build(root)
		})
	}
	return steps
}

const (
	walkRows = 100 // number of batches of a walk
	stepRows = 10  // number of batches in each step of [Rehearse]
)

// walk is a trace whose batches alternate between kinds of references. Each batch accesses one
// more line than the batch before it. The profile of a walk has many distinct stack distances and
// a few windows.
type walk struct{ row int }

func (w *walk) Next(b *trace.Batch) error {
	b.Reset()
	if w.row == walkRows {
		return io.EOF
	}
	w.row++
	for line := range w.row {
		b.Append(trace.Kind(line%2), trace.Addr(line*64), 8, 0, 0)
	}
	return nil
}
