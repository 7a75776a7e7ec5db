package sma

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
)

// BenchmarkAnalyze: regular nests of any size, and trees of many nodes.
func BenchmarkAnalyze(b *testing.B) {
	var loose, many []loops.Item
	seed := uint64(1)
	for i := range uint32(200_000) {
		seed = seed*6364136223846793005 + 1442695040888963407
		loose = append(loose, load(i%100, base+seed>>40))
		if i%20 == 0 {
			many = append(many, loops.Loop(2+seed>>60, load(1, base+seed>>40, 8), load(2, base+seed>>41, 64)))
		}
	}
	for _, k := range []kernel{
		{name: "gemm 8192", items: gemm(8192)}, {name: "blocked gemm 8192", items: blocked(8192, 64)}, {name: "trmm 8192", items: trmm(8192)},
		{name: "200,000 references", items: loose}, {name: "10,000 loops", items: many},
	} {
		tree, err := (&loops.Nest{Items: k.items}).Build()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(k.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Analyze(tree, misses.Cache{LineBytes: 64, Sets: 64, Ways: 8}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
