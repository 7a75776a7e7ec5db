package stacktest

import (
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/open"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// Workload is a sequence of line accesses to time models on.
type Workload struct {
	Name  string
	Lines func(b *testing.B) []trace.Line
}

// Workloads are the 64-byte line accesses of the real traces, where they are at
// hand, and random chases over 10^6 and 10^7 lines, where a model's cost is the
// machine's cache misses.
func Workloads() (w []Workload) {
	for _, name := range tracetest.RealTraces {
		w = append(w, Workload{name, func(b *testing.B) []trace.Line { return realLines(b, name) }})
	}
	return append(w,
		Workload{"chase1M", func(*testing.B) []trace.Line { return Chase(1_000_000, 6_000_000) }},
		Workload{"chase", func(*testing.B) []trace.Line { return Chase(10_000_000, 30_000_000) }})
}

// realLines reads a whole trace into memory.
func realLines(b *testing.B, name string) (lines []trace.Line) {
	file := openReal(b, name)
	defer file.Close()
	r, err := open.Open(name, file, open.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for batch := trace.NewBatch(0); ; {
		if err := r.Next(batch); err == io.EOF {
			return lines
		} else if err != nil {
			b.Fatal(err)
		}
		for i, addr := range batch.Addr {
			last := (addr + uint64(max(batch.Bytes[i], 1)) - 1) / 64
			for line := addr / 64; line <= last; line++ {
				lines = append(lines, line)
			}
		}
	}
}

// Chase makes n accesses to random lines out of the given number.
func Chase(lines uint64, n int) []trace.Line {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]trace.Line, n)
	for i := range out {
		out[i] = rng.Uint64N(lines)
	}
	return out
}

// Taker takes accesses: a model, or less.
type Taker interface {
	Distances(lines []trace.Line, out []uint32)
}

// Bench times takers made by fresh on whole passes over lines, in batches, and
// reports accesses a second and, of a model after a pass, heap bytes a distinct
// line.
func Bench(b *testing.B, fresh func() Taker, lines []trace.Line) {
	out := make([]uint32, trace.DefaultRows)
	accesses := 0
	for b.Loop() {
		m := fresh()
		for at := 0; at < len(lines); at += len(out) {
			batch := lines[at:min(at+len(out), len(lines))]
			m.Distances(batch, out)
			accesses += len(batch)
		}
	}
	b.StopTimer()
	if _, ok := fresh().(stack.Model); ok {
		b.ReportMetric(bytesPerLine(fresh, lines), "B/line")
	}
	b.ReportMetric(float64(accesses)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
	b.ReportMetric(0, "ns/op")
}

func bytesPerLine(fresh func() Taker, lines []trace.Line) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m, out := fresh().(stack.Model), make([]uint32, len(lines))
	m.Distances(lines, out)
	out = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	n := float64(max(m.Lines(), 1))
	runtime.KeepAlive(lines)
	return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n
}
