package simulate_test

import (
	"bytes"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// BenchmarkConsume simulates a single cache of 32 KiB with 8 ways. The result can be compared with
// analyses of all geometries at once. The time does not include reading, because about two million
// references of a real trace are in memory.
func BenchmarkConsume(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		for _, cache := range []string{"32KiB,8", "32KiB,full", "32KiB,8,plru", "32KiB,8,random", "1MiB,16"} {
			b.Run(name+"/"+cache, func(b *testing.B) { benchmark(b, name, "L1="+cache) })
		}
		b.Run(name+"/three levels", func(b *testing.B) { benchmark(b, name, "L1=32KiB,8", "L2=256KiB,8", "L3=8MiB,16") })
	}
}

// BenchmarkCores distributes the references of the same trace among four threads, which take turns
// of 64 references.
func BenchmarkCores(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		b.Run(name+"/32KiB,8", func(b *testing.B) {
			parts := inMemory(b, name)
			for _, part := range parts {
				part.NeedThread()
				for i := range part.Thread {
					part.Thread[i] = uint32(i / 64 % 4)
				}
			}
			benchmarkParts(b, parts, "L1=32KiB,8")
		})
	}
}

func benchmark(b *testing.B, name string, caches ...string) {
	benchmarkParts(b, inMemory(b, name), caches...)
}

func benchmarkParts(b *testing.B, parts []*trace.Batch, caches ...string) {
	var h hierarchy.Hierarchy
	for _, text := range caches {
		c, err := hierarchy.ParseCache(text)
		if err != nil {
			b.Fatal(err)
		}
		h.Levels = append(h.Levels, c)
	}
	references := uint64(0)
	for b.Loop() {
		s, err := simulate.New(h, simulate.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, part := range parts {
			if err := s.Consume(part); err != nil {
				b.Fatal(err)
			}
		}
		references += s.Result().References
	}
	b.ReportMetric(float64(references)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
	b.ReportMetric(0, "ns/op")
}

// inMemory returns the beginning of a large trace, split into batches.
func inMemory(b *testing.B, name string) (parts []*trace.Batch) {
	text := tracetest.RealText(b, name, 32<<20)
	r, err := open.Open(name, bytes.NewReader(text), open.Options{})
	if err != nil {
		b.Fatal(err)
	}
	whole, err := trace.ReadAll(r)
	if err != nil {
		b.Fatal(err)
	}
	for lo := 0; lo < whole.Len(); lo += trace.DefaultRows {
		parts = append(parts, whole.View(new(trace.Batch), lo, min(lo+trace.DefaultRows, whole.Len())))
	}
	return parts
}
