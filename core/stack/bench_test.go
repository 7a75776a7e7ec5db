package stack_test

import (
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
)

// The benchmarks run every model on the same accesses: the line accesses of the
// traces in $STACKGLASS_DATA, in memory, and a random chase over 10^7 lines.
// refs/s are line accesses; compare the models of one run, not two runs.
func BenchmarkDistances(b *testing.B) {
	models := []struct {
		name  string
		fresh func() stack.Model
	}{
		{"exact", func() stack.Model { return stack.NewExact() }},
		{"sets", func() stack.Model { return stack.NewSets() }},
		{"fenwick16", func() stack.Model { return stacktest.NewFenwick(16) }},
		{"fenwick", func() stack.Model { return stacktest.NewFenwick(0) }},
	}
	for _, w := range stacktest.Workloads() {
		b.Run(w.Name, func(b *testing.B) {
			lines := w.Lines(b)
			for _, m := range models {
				b.Run(m.name, func(b *testing.B) { stacktest.Bench(b, m.fresh, lines) })
			}
		})
	}
}
