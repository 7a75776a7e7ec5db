package loops

import (
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// BenchmarkFold folds traces in bounded memory, and encodes each tree that the folder outputs. The
// traces are products of 64 × 64 matrices with block entries, and programs with data-dependent
// addresses or trip counts.
func BenchmarkFold(b *testing.B) {
	all := append(irregular[:len(irregular):len(irregular)], struct {
		name string
		run  func(c *code, n uint64)
	}{"gemm", gemm}, struct {
		name string
		run  func(c *code, n uint64)
	}{"trmm", trmm})
	for _, k := range all {
		b.Run(k.name, func(b *testing.B) {
			c := code{blocks: true}
			k.run(&c, 64)
			whole := batch(c.rows, columns{site: true})
			var bytes, given int
			var view trace.Batch
			var form []byte
			f := NewFolder(0)
			take := func(t *Tree) error {
				form = t.Append(form[:0])
				bytes += len(form)
				given++
				return nil
			}
			f.Give(0, take)
			times := 0
			for ; b.Loop(); times++ {
				for lo := 0; lo < whole.Len(); lo += trace.DefaultRows {
					if err := f.Consume(whole.View(&view, lo, min(lo+trace.DefaultRows, whole.Len()))); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(len(c.rows))*float64(times)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			_ = take(f.Finish())
			b.ReportMetric(float64(bytes)/float64(len(c.rows))/float64(times), "B/row")
			b.ReportMetric(float64(bytes)/float64(times)/float64(plain(c.rows, columns{site: true})), "of-plain")
			b.ReportMetric(float64(given), "trees")
		})
	}
}

// BenchmarkExpand expands the loop-compressed trace of a product of 64 × 64 matrices.
func BenchmarkExpand(b *testing.B) {
	c := code{blocks: true}
	gemm(&c, 64)
	tree := fold(b, 0, batch(c.rows, columns{site: true}), func() int { return 4096 })
	batch := trace.NewBatch(0)
	for b.Loop() {
		e := tree.Expand()
		for e.Next(batch) == nil {
		}
	}
	b.ReportMetric(float64(len(c.rows))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}
