package loops

import "testing"

// BenchmarkFold folds two products of 64 × 64 matrices with entries of blocks, and a
// gather whose addresses are wild.
func BenchmarkFold(b *testing.B) {
	for _, k := range []struct {
		name string
		run  func(c *code, n uint64)
	}{{"gemm", gemm}, {"trmm", trmm}, {"gather", func(c *code, n uint64) { gather(c, n*n*n/4) }}} {
		b.Run(k.name, func(b *testing.B) {
			c := code{blocks: true}
			k.run(&c, 64)
			whole := batch(c.rows, columns{site: true})
			var tree *Tree
			for b.Loop() {
				tree = fold(b, 0, whole, func() int { return 4096 })
			}
			b.ReportMetric(float64(len(c.rows))*float64(b.N)/b.Elapsed().Seconds(), "refs/s")
			b.ReportMetric(float64(tree.Size().Nodes), "nodes")
			b.ReportMetric(float64(tree.Size().Leaves), "leaves")
		})
	}
}
