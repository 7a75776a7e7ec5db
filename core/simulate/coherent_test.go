package simulate

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// kernels lists the OpenMP programs whose traces are in testdata/kernels.
var kernels = []string{"stencil", "histogram", "multiply"}

// kernel reads the trace of a program in the list "kernels".
func kernel(t interface{ Fatal(...any) }, name string) *trace.Batch {
	return readTrace(t, filepath.Join("testdata", "kernels", name+".sgt"))
}

func readTrace(t interface{ Fatal(...any) }, path string) *trace.Batch {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := open.Open(path, bytes.NewReader(text), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := trace.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// analysed returns a trace's profile for 64-byte lines, which contains the stacks of all threads.
func analysed(t interface{ Fatal(...any) }, b *trace.Batch, cores [][]uint32) *profile.Profile {
	spec := analysis.Spec{Analyses: analysis.Locality | analysis.Sets | analysis.Sharing, Cores: cores}
	run, err := analysis.NewRunner(spec, tracetest.NewReader(b, 100))
	for err == nil {
		err = run.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return run.Finish(profile.State{})
}

// simulatedCores simulates a trace in one private level.
func simulatedCores(t interface{ Fatal(...any) }, b *trace.Batch, cores [][]uint32, c hierarchy.Cache) map[uint32]Counts {
	s, err := New(hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}}, Options{Cores: cores})
	if err == nil {
		err = s.Consume(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, found := s.Result(), map[uint32]Counts{}
	for i, core := range r.Cores {
		if len(core.Threads) > 0 {
			found[core.Threads[0]] = r.Levels[0].Cores[i]
		}
	}
	return found
}

// holdCoherent simulates a private cache for each core, and compares the misses with the coherent
// stacks.
func holdCoherent(t interface{ Fatalf(string, ...any) }, c hierarchy.Cache, s *profile.Sharing, simulated map[uint32]Counts) {
	for i := range s.Cores {
		core, got := &s.Cores[i], simulated[s.Cores[i].Threads[0]]
		hits, ok := core.Coherent.Sets.Hits(c.Sets(), c.Lines()/c.Sets())
		var lost uint64
		if c.Sets() == 1 {
			hits, ok = profile.NewCurve(&core.Coherent.Distances, 0).Hits(c.Lines()), true
			lost = profile.NewCurve(&core.Coherent.Lost, 0).Hits(c.Lines())
			if got.CoherenceMisses != lost {
				t.Fatalf("%s of threads %v has %d coherence misses, but the stack has %d", c, core.Threads, got.CoherenceMisses, lost)
			}
		}
		if want := core.Coherent.Accesses() - hits; !ok || got.Accesses() != core.Coherent.Accesses() || got.Misses() != want {
			t.Fatalf("%s of threads %v has %d misses in %d accesses, but the stack has %d misses in %d accesses",
				c, core.Threads, got.Misses(), got.Accesses(), want, core.Coherent.Accesses())
		}
	}
}

func privateCache(sets, ways uint64) hierarchy.Cache {
	c := hierarchy.Cache{Name: "L1", LineBytes: 64, SizeBytes: 64 * sets * ways, Ways: uint32(ways)}
	if sets == 1 {
		c.Ways = 0
	}
	return c
}

// drawLines returns random references by up to 16 threads to a few lines, which are spread over few
// or many sets.
func drawLines(t *rapid.T) (b *trace.Batch, cores [][]uint32) {
	b = trace.NewBatch(0)
	lines, stride := rapid.Uint64Range(1, 40).Draw(t, "lines"), uint64(64)<<rapid.IntRange(0, 6).Draw(t, "stride")
	for range rapid.IntRange(2, 400).Draw(t, "references") {
		kind := trace.Kind(rapid.IntRange(0, trace.NumKinds-1).Draw(t, "kind"))
		bytes := rapid.SampledFrom([]uint32{8, 8, 8, 70}).Draw(t, "bytes")
		b.Append(kind, rapid.Uint64Range(0, lines-1).Draw(t, "line")*stride, bytes, 0, 0)
	}
	threads := withThreads(t, b, rapid.IntRange(1, 16).Draw(t, "most threads"))
	if rapid.Bool().Draw(t, "two threads on one core") && threads > 2 {
		cores = [][]uint32{{0, uint32(threads - 1)}}
	}
	return b, cores
}

// For each core, the misses in one private level equal the misses computed from the coherent stack
// (MODELS §6.4). The level may be fully associative or set-associative.
func TestCoherentStack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, cores := drawLines(t)
		p := analysed(t, references(b), cores)
		if len(p.Sharing) == 0 {
			return // there is only one thread
		}
		for range 4 {
			sets, ways := uint64(1)<<rapid.IntRange(0, 8).Draw(t, "log2 sets"), rapid.Uint64Range(1, 12).Draw(t, "ways")
			if sets == 1 {
				ways = rapid.Uint64Range(1, 90).Draw(t, "lines")
			}
			c := privateCache(sets, ways)
			holdCoherent(t, c, &p.Sharing[0], simulatedCores(t, references(b), cores, c))
		}
	})
}

// references returns only the data references in a batch, because an analysis uses only these by
// default.
func references(b *trace.Batch) *trace.Batch {
	kept := trace.NewBatch(b.Len())
	if b.Thread != nil {
		kept.NeedThread()
	}
	for i, kind := range b.Kind {
		if trace.DataKinds.Has(kind) {
			kept.Append(kind, b.Addr[i], b.Bytes[i], 0, 0)
			if b.Thread != nil {
				kept.Thread[kept.Len()-1] = b.Thread[i]
			}
		}
	}
	return kept
}

// TestCoherentKernels repeats TestCoherentStack with the traces of the kernels. TestCoherentKernels
// uses every capacity, and all numbers of sets and ways that a profile covers.
func TestCoherentKernels(t *testing.T) {
	for _, name := range kernels {
		t.Run(name, func(t *testing.T) {
			b := references(kernel(t, name))
			p := analysed(t, b, nil)
			if len(p.Sharing) == 0 || len(p.Sharing[0].Cores) < 3 {
				t.Fatal("the trace has no threads")
			}
			footprint := p.Locality[0].Lines()
			for lines := uint64(1); lines <= footprint+1; lines++ {
				c := privateCache(1, lines)
				holdCoherent(t, c, &p.Sharing[0], simulatedCores(t, b, nil, c))
			}
			for sets := range profile.SetCounts {
				for ways := range uint64(profile.MaxWays) {
					if ways > 3 && ways < 31 && testing.Short() {
						continue
					}
					c := privateCache(1<<sets, ways+1)
					holdCoherent(t, c, &p.Sharing[0], simulatedCores(t, b, nil, c))
				}
			}
		})
	}
}

// In the example of MODELS §6.4, the store invalidates line a in the first thread's cache, and
// line c takes the place of line a. Therefore line b stays in the cache, and the next access to
// line a is a coherence miss.
func TestCoherentExample(t *testing.T) {
	b := trace.NewBatch(0)
	b.NeedThread()
	for _, r := range []struct {
		thread uint32
		kind   trace.Kind
		line   uint64
	}{
		{1, trace.Load, 'a'}, {1, trace.Load, 'b'}, {2, trace.Store, 'a'},
		{1, trace.Load, 'c'}, {1, trace.Load, 'b'}, {1, trace.Load, 'a'},
	} {
		b.Append(r.kind, r.line*64, 8, 0, 0)
		b.Thread[b.Len()-1] = r.thread
	}
	for lines, want := range map[uint64][2]uint64{1: {5, 0}, 2: {4, 1}, 3: {4, 1}} {
		got := simulatedCores(t, b, nil, privateCache(1, lines))[1]
		if got.Misses() != want[0] || got.CoherenceMisses != want[1] {
			t.Errorf("%d lines: %d misses, %d of them coherence misses, want %v", lines, got.Misses(), got.CoherenceMisses, want)
		}
	}
}
