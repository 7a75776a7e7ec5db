package loops_test

import (
	"io"
	"testing"

	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// BenchmarkFolding folds traces of real programs, including their sites, into files. The measured
// time does not include reading the traces.
func BenchmarkFolding(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		b.Run(name, func(b *testing.B) {
			r := reader(b, tracetest.RealPath(b, name))
			var batches []*trace.Batch
			rows := 0
			for {
				batch := trace.NewBatch(0)
				if err := r.Next(batch); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
				batches = append(batches, batch)
				rows += batch.Len()
			}
			times, bytes := 0, uint64(0)
			for ; b.Loop(); times++ {
				f := sgl.NewFolding(io.Discard, 0)
				for _, batch := range batches {
					if err := f.Write(batch, r.Header()); err != nil {
						b.Fatal(err)
					}
				}
				if err := f.Close(r.Header(), sgt.End{How: "exit"}); err != nil {
					b.Fatal(err)
				}
				bytes = f.Bytes()
			}
			b.ReportMetric(float64(rows)*float64(times)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			b.ReportMetric(float64(bytes)/float64(rows), "B/row")
		})
	}
}
