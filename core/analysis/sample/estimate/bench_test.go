package estimate_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// container returns a trace of a real program in the container format, which is the fastest format
// to read.
func container(b *testing.B, name string) []byte {
	file, err := os.Open(tracetest.RealPath(b, name))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	r, err := open.Open(name, file, open.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	to, rows := sgt.NewImporter(&out, nil), trace.NewBatch(0)
	for err = r.Next(rows); err == nil; err = r.Next(rows) {
		if err := to.Write(rows, trace.Header{Format: "lackey"}); err != nil {
			b.Fatal(err)
		}
	}
	if err != io.EOF {
		b.Fatal(err)
	}
	if err := to.Close(sgt.End{How: "exit"}); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// BenchmarkPass measures complete passes over containers, which either only read the trace, analyse
// every access, or sample accesses.
func BenchmarkPass(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		file := container(b, name)
		for _, mode := range []string{"reading", "all", "space=0.01", "lines=8192", "time=1e6"} {
			b.Run(name+"/"+mode, func(b *testing.B) {
				spec := analysis.Spec{Analyses: analysis.Locality}
				switch mode {
				case "reading":
					spec.Analyses = analysis.None
				case "all":
				default:
					spec.Sample = options(b, mode)
				}
				var references uint64
				for b.Loop() {
					references += run(b, spec, sgt.NewReader(name, bytes.NewReader(file), sgt.Options{})).Totals.AllReferences()
				}
				b.ReportMetric(float64(references)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkBatches measures the analysis of batches in memory, either of every access or of a
// sample.
func BenchmarkBatches(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		var batches []*trace.Batch
		references := 0
		r := sgt.NewReader(name, bytes.NewReader(container(b, name)), sgt.Options{})
		for {
			rows := trace.NewBatch(0)
			if err := r.Next(rows); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			batches, references = append(batches, rows), references+rows.Len()
		}
		for _, mode := range []string{"all", "space=0.01", "lines=8192", "time=1e6"} {
			b.Run(name+"/"+mode, func(b *testing.B) {
				for b.Loop() {
					consume := locality.New([]uint32{64}, 0, false, 0).Consume
					if mode != "all" {
						consume = options(b, mode).Locality([]uint32{64}).Consume
					}
					for _, rows := range batches {
						if err := consume(rows); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(references)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
