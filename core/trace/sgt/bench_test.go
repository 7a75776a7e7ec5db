package sgt

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// The function "written" runs a generated program, and returns its trace as a container.
func written(t testing.TB, g generated) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, 64, nil)
	if err := w.Module(AppendModule(nil, g.program)); err != nil {
		t.Fatal(err)
	}
	g.run(func(block uint32, values ...uint64) {
		if err := w.Step(1, 1, block, values); err != nil {
			t.Fatal(err)
		}
	})
	if err := w.Close(End{How: "exit"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// BenchmarkRead reads containers that resemble captured traces. Programs with regular accesses are
// decoded as long loops. The other programs have unpredictable branches and addresses. With -cpu=1,
// and in WebAssembly, the benchmark uses only one processor. Otherwise, additional processors
// decode chunks in advance.
func BenchmarkRead(b *testing.B) {
	for _, g := range generatedPrograms {
		b.Run(g.name, func(b *testing.B) { benchmarkRead(b, written(b, g), trace.AllKinds) })
	}
}

// BenchmarkReadBlocks reads the containers of BenchmarkRead, and selects BlockEntry rows in
// addition to references.
func BenchmarkReadBlocks(b *testing.B) {
	for _, g := range generatedPrograms {
		b.Run(g.name, func(b *testing.B) { benchmarkRead(b, written(b, g), trace.AllKinds|1<<trace.BlockEntry) })
	}
}

// BenchmarkReadConverted reads containers that were converted from traces without blocks.
func BenchmarkReadConverted(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		b.Run(name, func(b *testing.B) { benchmarkRead(b, realFile(b, name), trace.AllKinds) })
	}
}

func benchmarkRead(b *testing.B, file []byte, kinds trace.Kinds) {
	batch, rows := trace.NewBatch(0), 0
	for b.Loop() {
		rows = 0
		r := NewReader("t", bytes.NewReader(file), Options{})
		r.Select(kinds)
		var err error
		for err = r.Next(batch); err == nil; err = r.Next(batch) {
			rows += batch.Len()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
	unit := "ref"
	if kinds&trace.EventKinds != 0 {
		unit = "row"
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), unit+"s/s")
	b.ReportMetric(float64(len(file))/float64(rows), "B/"+unit)
}

// BenchmarkWrite encodes the steps of generated programs.
func BenchmarkWrite(b *testing.B) {
	for _, g := range generatedPrograms {
		b.Run(g.name, func(b *testing.B) {
			type execution struct {
				block  uint32
				values []uint64
			}
			var steps []execution
			references := 0
			g.run(func(block uint32, values ...uint64) {
				steps = append(steps, execution{block, slices.Clone(values)})
				references += len(values)
			})
			for b.Loop() {
				w := NewWriter(io.Discard, 64, nil)
				if err := w.Module(AppendModule(nil, g.program)); err != nil {
					b.Fatal(err)
				}
				for _, s := range steps {
					if err := w.Step(1, 1, s.block, s.values); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Close(End{How: "exit"}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(references)*float64(b.N)/b.Elapsed().Seconds(), "refs/s")
		})
	}
}
