package sma

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/oracle/kernels"
)

// BenchmarkAnalyze analyses regular nests of various sizes, and trees with many nodes.
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
	for _, k := range []kernels.Kernel{
		kernels.Gemm(8192), kernels.BlockedGemm(8192, 64), kernels.Trmm(8192),
		{Name: "200,000 references", Nest: loops.Nest{Items: loose}}, {Name: "10,000 loops", Nest: loops.Nest{Items: many}},
	} {
		tree, err := k.Nest.Build()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(k.Name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Analyze(tree, misses.Cache{LineBytes: 64, Sets: 64, Ways: 8}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
