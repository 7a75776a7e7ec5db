package analysis_test

import (
	"io"
	"os"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/open"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// BenchmarkRun is the whole road: a packed text trace, unpacked, read, analysed
// and encoded. refs/s are references, B/ref the packed trace's bytes.
func BenchmarkRun(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		b.Run(name, func(b *testing.B) {
			var references, bytes uint64
			for b.Loop() {
				file, err := os.Open(tracetest.RealPath(b, name))
				if err != nil {
					b.Fatal(err)
				}
				t, err := open.Open(name, file, open.Options{})
				if err != nil {
					b.Fatal(err)
				}
				p := pass(b, analysis.Spec{}, t)
				p.Encode()
				references += p.Totals.AllReferences()
				if at, err := file.Seek(0, io.SeekCurrent); err == nil {
					bytes += uint64(at)
				}
				file.Close()
			}
			report(b, references)
			b.ReportMetric(float64(bytes)/float64(references), "B/ref")
		})
	}
}

// BenchmarkLocality leaves reading out: batches come from a generator.
func BenchmarkLocality(b *testing.B) {
	for _, c := range []struct {
		name  string
		lines []uint32
	}{{"one line size", nil}, {"three line sizes", []uint32{32, 64, 128}}} {
		b.Run(c.name, func(b *testing.B) {
			var references uint64
			for b.Loop() {
				p := tracetest.Mixed(1, tracetest.Sequential(1<<20), tracetest.Uniform(1<<12, 2))
				references += pass(b, analysis.Spec{LineBytes: c.lines}, tracetest.Stream(2_000_000, p)).Totals.AllReferences()
			}
			report(b, references)
		})
	}
}

func pass(b *testing.B, spec analysis.Spec, r trace.Reader) *profile.Profile {
	runner, err := analysis.NewRunner(spec, r)
	for err == nil {
		err = runner.Step()
	}
	if err != io.EOF {
		b.Fatal(err)
	}
	return runner.Profile(profile.State{})
}

func report(b *testing.B, references uint64) {
	b.ReportMetric(float64(references)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
	b.ReportMetric(0, "ns/op")
}
