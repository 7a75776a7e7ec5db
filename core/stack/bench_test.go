package stack_test

import (
	"testing"

	"github.com/stackglass/stackglass/core/stack"
)

// The benchmarks run every model on the same accesses: the line accesses of the traces in
// $STACKGLASS_DATA, which are loaded into memory, and random pointer chases. For comparison, the
// benchmarks also run Plain for all numbers of sets, and simulate a single cache. In the benchmark
// coherent10, another core invalidates a line after every tenth access. The unit refs/s counts line
// accesses. Compare results only if they are from the same run of the benchmarks.
func BenchmarkDistances(b *testing.B) {
	models := []struct {
		name  string
		fresh func() Taker
	}{
		{"exact", func() Taker { return stack.NewExact() }},
		{"sets", func() Taker { return stack.NewSets(stack.MostSetNumbers) }},
		{"allsets", func() Taker { return stack.NewSets(stack.AllSetNumbers) }},
		{"coherent", func() Taker { return NewLosing(0) }},
		{"coherent1000", func() Taker { return NewLosing(1000) }},
		{"coherent100", func() Taker { return NewLosing(100) }},
		{"coherent10", func() Taker { return NewLosing(10) }},
		{"plain", func() Taker { return NewPlain(stack.MostSetNumbers) }},
		{"allplain", func() Taker { return NewPlain(stack.AllSetNumbers) }},
		{"cache", func() Taker { return new(Cache) }},
		{"fenwick16", func() Taker { return NewFenwick(16) }},
		{"fenwick", func() Taker { return NewFenwick(0) }},
	}
	for _, w := range Workloads() {
		b.Run(w.Name, func(b *testing.B) {
			lines := w.Lines(b)
			for _, m := range models {
				b.Run(m.name, func(b *testing.B) { Bench(b, m.fresh, lines) })
			}
		})
	}
}
