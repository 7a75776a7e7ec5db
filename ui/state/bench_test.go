package state

import (
	"os"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace/open"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// BenchmarkSnapshot is what the page does for every picture of a growing
// profile, on its own thread.
func BenchmarkSnapshot(b *testing.B) {
	file, err := os.Open(tracetest.RealPath(b, "sort"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	r, err := open.Open("sort", file, open.Options{})
	if err != nil {
		b.Fatal(err)
	}
	runner, err := analysis.NewRunner(analysis.Spec{}, r)
	for err == nil {
		err = runner.Step()
	}
	p := runner.Profile(profile.State{})
	data := p.Encode()
	levels := hierarchy.Presets()[0].Levels
	var v *View
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"decode", func() { p, _ = profile.Decode(data) }},
		{"view", func() { v = NewView(p, 64) }},
		{"ask", func() { v.Ask(levels) }},
		{"curve", func() { v.MissCurve(nil) }},
		{"findings", func() { v.Findings() }},
		{"time", func() { v.OverTime(v.DefaultLog2Lines()) }},
	} {
		step.do()
		b.Run(step.name, func(b *testing.B) {
			for b.Loop() {
				step.do()
			}
		})
	}
}
