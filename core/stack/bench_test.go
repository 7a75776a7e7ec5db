package stack_test

import (
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
)

// The benchmarks run every model on the same accesses: the line accesses of the
// traces in $STACKGLASS_DATA, in memory, and random chases. Beside the models run
// the plain method for all numbers of sets, and one cache alone. coherent10 loses a
// line after every tenth access.
// refs/s are line accesses; compare the models of one run, not two runs.
func BenchmarkDistances(b *testing.B) {
	models := []struct {
		name  string
		fresh func() stacktest.Taker
	}{
		{"exact", func() stacktest.Taker { return stack.NewExact() }},
		{"sets", func() stacktest.Taker { return stack.NewSets() }},
		{"coherent", func() stacktest.Taker { return stacktest.NewLosing(0) }},
		{"coherent1000", func() stacktest.Taker { return stacktest.NewLosing(1000) }},
		{"coherent100", func() stacktest.Taker { return stacktest.NewLosing(100) }},
		{"coherent10", func() stacktest.Taker { return stacktest.NewLosing(10) }},
		{"plain", func() stacktest.Taker { return stacktest.NewPlain() }},
		{"cache", func() stacktest.Taker { return new(stacktest.Cache) }},
		{"fenwick16", func() stacktest.Taker { return stacktest.NewFenwick(16) }},
		{"fenwick", func() stacktest.Taker { return stacktest.NewFenwick(0) }},
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
