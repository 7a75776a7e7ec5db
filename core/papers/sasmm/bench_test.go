package sasmm

import (
	"io"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// BenchmarkShared reads the shared trace of 16 cores, which is synthesised from a loop over
// arrays. The metric refs/s counts output references. The metric B/ref is the number of bytes
// of memory per input reference.
func BenchmarkShared(b *testing.B) {
	p := forking()
	steps := []tracetest.Step{{Block: forks, Values: []uint64{0x100, frame}}}
	for i := range uint64(200_000) {
		steps = append(steps,
			tracetest.Step{Block: both, Values: []uint64{0x10000 + 8*i, frame - 8}},
			tracetest.Step{Block: tail, Values: []uint64{0x900000 + 64*i}})
	}
	whole := tracetest.Rows(p, steps...)
	rows := trace.NewBatch(0)
	refs, kept := 0, 0.0
	for b.Loop() {
		r, err := Shared(tracetest.NewProgramReader(p, whole, 0), Options{Cores: 16})
		if err != nil {
			b.Fatal(err)
		}
		for {
			if err = r.Next(rows); err != nil {
				break
			}
			refs += rows.Len()
			kept = max(kept, float64(r.section.bytes))
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(refs)/b.Elapsed().Seconds(), "refs/s")
	b.ReportMetric(kept/600_000, "B/ref")
}
