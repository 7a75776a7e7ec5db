package analysis_test

import (
	"io"
	"os"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// BenchmarkRun measures a complete run: it decompresses, reads and analyses a compressed text
// trace, and encodes the profile. The benchmark reports references per second (refs/s) and
// compressed bytes per reference (B/ref).
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

// BenchmarkLocality measures only the analysis, because a generator creates the batches in memory.
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

// BenchmarkThreads measures a trace with very many threads, which appear in descending order of
// thread number.
func BenchmarkThreads(b *testing.B) {
	whole := &trace.Batch{Thread: []uint32{}}
	for i := range uint32(200_000) {
		whole.Append(trace.Load, 64, 8, 100_000-i%100_000, 0)
	}
	for b.Loop() {
		pass(b, analysis.Spec{Analyses: analysis.None}, tracetest.NewReader(whole, 4096))
	}
	b.ReportMetric(float64(b.N*whole.Len())/b.Elapsed().Seconds()/1e6, "Mrefs/s")
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

// BenchmarkEvents measures the cost of the counters for a matrix multiplication, which enters one
// block for every four references. The reader only copies rows.
func BenchmarkEvents(b *testing.B) {
	program, steps := tracetest.Multiplication(96)
	whole := rowsOfKinds(tracetest.Rows(program, steps...), trace.AllKinds|1<<trace.BlockEntry|1<<trace.BareBlock)
	for _, c := range []struct {
		name string
		spec analysis.Spec
	}{
		{"locality", analysis.Spec{Analyses: analysis.Locality}},
		{"sets", analysis.Spec{Analyses: analysis.Sets}},
		{"sites", analysis.Spec{Analyses: analysis.Sites}},
		{"sites and utilisation", analysis.Spec{Analyses: analysis.Sites, Utilisation: []uint64{32 << 10}}},
		{"sites and previous sites", analysis.Spec{Analyses: analysis.Sites, Previous: true}},
		{"default", analysis.Spec{}},
		{"all", analysis.Spec{Analyses: analysis.Locality | analysis.Counters}},
		{"counters", analysis.Spec{Analyses: analysis.Counters}},
	} {
		b.Run(c.name, func(b *testing.B) {
			rows := whole
			if c.spec.Analyses == analysis.Locality {
				rows = rowsOfKinds(whole, trace.AllKinds)
			}
			var references uint64
			for b.Loop() {
				references += pass(b, c.spec, &copier{rows: rows, p: program}).Totals.AllReferences()
			}
			report(b, references)
		})
	}
}

// rowsOfKinds returns a copy of all rows that have one of the given kinds.
func rowsOfKinds(b *trace.Batch, kinds trace.Kinds) *trace.Batch {
	var keep []int32
	for i, k := range b.Kind {
		if kinds.Has(k) {
			keep = append(keep, int32(i))
		}
	}
	only := cloned(b)
	only.Select(keep)
	return only
}

func cloned(b *trace.Batch) *trace.Batch {
	return &trace.Batch{
		Addr: slices.Clone(b.Addr), Bytes: slices.Clone(b.Bytes), Kind: slices.Clone(b.Kind),
		Thread: slices.Clone(b.Thread), Site: slices.Clone(b.Site),
	}
}

// copier is the simplest reader of rows in memory.
type copier struct {
	rows *trace.Batch
	p    *trace.Program
	next int

	endless bool // after the last row, the reader starts again
}

func (c *copier) Header() trace.Header { return trace.Header{Program: c.p} }

func (c *copier) Next(b *trace.Batch) error {
	b.Reset()
	if c.endless && c.next == c.rows.Len() {
		c.next = 0
	}
	hi := min(c.next+b.Cap(), c.rows.Len())
	if c.next == hi {
		return io.EOF
	}
	b.NeedThread()
	b.NeedSite()
	b.Resize(hi - c.next)
	copy(b.Addr, c.rows.Addr[c.next:hi])
	copy(b.Bytes, c.rows.Bytes[c.next:hi])
	copy(b.Kind, c.rows.Kind[c.next:hi])
	copy(b.Thread, c.rows.Thread[c.next:hi])
	copy(b.Site, c.rows.Site[c.next:hi])
	c.next = hi
	return nil
}
