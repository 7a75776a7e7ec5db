package simulate

import (
	"io"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// Predictions that are marked as exact equal the simulator's counts. Predictions are exact for a
// first level with LRU replacement, whether it is set-associative or fully associative, and for
// exclusive levels below it that have the same number of sets.
func TestExactPredictions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b := drawExclusive(t), drawBatch(t)
		spec := analysis.Spec{LineBytes: []uint32{h.Levels[0].LineBytes}, Analyses: analysis.Locality | analysis.Sets}
		run, err := analysis.NewRunner(spec, tracetest.NewReader(b, 0))
		if err != nil {
			t.Fatal(err)
		}
		s := begin(t, h, Options{})
		run.Beside(s.Consume)
		for err == nil {
			err = run.Step()
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		predicted, _, err := hierarchy.Predict(run.Finish(profile.State{}), h)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range s.Result().Levels {
			p := predicted.Levels[i]
			if p.Method != hierarchy.Exact || p.Accesses != float64(l.Run.Accesses()) || p.Misses != float64(l.Run.Misses()) {
				t.Fatalf("%s: predicted %v misses in %v accesses (%s), want %d in %d", l.Cache, p.Misses, p.Accesses, p.Method, l.Run.Misses(), l.Run.Accesses())
			}
		}
	})
}

// drawExclusive returns random levels with the same number of sets. The lower levels are exclusive,
// so a set table determines the misses of all levels.
func drawExclusive(t *rapid.T) (h hierarchy.Hierarchy) {
	line := rapid.SampledFrom([]uint32{8, 16, 32}).Draw(t, "line")
	sets := rapid.SampledFrom([]uint32{1, 2, 4, 16}).Draw(t, "sets")
	for i := range rapid.IntRange(1, 3).Draw(t, "levels") {
		ways := rapid.Uint32Range(1, 10).Draw(t, "ways")
		c := hierarchy.Cache{Name: "L" + strconv.Itoa(i+1), LineBytes: line, SizeBytes: uint64(ways * sets * line), Ways: ways}
		if sets == 1 {
			c.Ways = 0
		}
		if i > 0 {
			c.Inclusion = hierarchy.Exclusive
		}
		h.Levels = append(h.Levels, c)
	}
	return h
}

// The predicted misses of a fully associative TLB equal the simulated misses, for every page size.
func TestPredictedTLBsEqualSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, spread := &trace.Batch{}, rapid.UintRange(12, 38).Draw(t, "spread")
		for range rapid.IntRange(1, 2000).Draw(t, "references") {
			addr := rapid.Uint64Range(0, 1<<spread).Draw(t, "address")
			b.Append(trace.Load, addr&^7, 8, 0, 0)
		}
		run, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Pages}, tracetest.NewReader(b, 0))
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			err = run.Step()
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		p := run.Finish(profile.State{})
		for _, page := range profile.PageSizes {
			var h hierarchy.Hierarchy
			if err := h.Add("DTLB=" + strconv.Itoa(rapid.IntRange(profile.LeastEntries, 100).Draw(t, "entries")) + ",full,tlb"); err != nil {
				t.Fatal(err)
			}
			h.PageBytes = page
			predicted, err := hierarchy.NewAsker(p).Translate(h)
			if err != nil {
				t.Fatal(err)
			}
			s := begin(t, h.Translation(), Options{Translation: true})
			if err := s.Consume(b); err != nil {
				t.Fatal(err)
			}
			got, want := predicted.Levels[0], s.Result().Levels[0]
			if got.Method != hierarchy.Exact || got.Accesses != float64(want.Run.Accesses()) || got.Misses != float64(want.Run.Misses()) {
				t.Fatalf("pages of %d bytes: predicted %v misses in %v accesses (%s), want %d in %d", page, got.Misses, got.Accesses, got.Method, want.Run.Misses(), want.Run.Accesses())
			}
		}
	})
}

// For an instruction that moves by constant strides of at least a line, the accesses that the analysis
// counts as covered are those whose misses the simulated stride prefetcher avoids, except for two
// differences: the simulated prefetcher needs one more reference to confirm a stride, and it prefetches
// across pages.
func TestCoverageEqualsStridePrefetcher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const line, page = 64, 4096
		b, want, covered := &trace.Batch{PC: []trace.Addr{}}, uint64(0), uint64(0)
		for run := range rapid.IntRange(1, 20).Draw(t, "runs") {
			stride := rapid.Uint64Range(line, page/2).Draw(t, "stride")
			addr := trace.Addr(run+1)<<30 + rapid.Uint64Range(0, 1<<20).Draw(t, "address")
			if rapid.Bool().Draw(t, "descending") {
				stride = -stride
			}
			for i := range rapid.IntRange(1, 100).Draw(t, "references") {
				b.Append(trace.Load, addr, 1, 0, 0x1000)
				if i >= 3 {
					want++
				}
				if i >= 2 && addr/page == (addr-stride)/page {
					covered++
				}
				addr += stride
			}
		}
		p := sitesOf(t, b, line)
		if got := p.Sites.Covered[0].Accesses(); got != covered || p.Sites.Covered[0].Cold != covered {
			t.Fatalf("%d covered accesses, want %d, all of them first accesses", got, covered)
		}
		simulated := missesByPC(t, b, "stride", 1<<20)
		if avoided := p.Sites.Code[0].Reuse.Cold - simulated[0x1000]; avoided != want {
			t.Fatalf("the simulated prefetcher avoids %d misses, want %d", avoided, want)
		}
	})
}

// sitesOf returns the profile of a batch, with sites.
func sitesOf(t interface{ Fatal(...any) }, b *trace.Batch, lineBytes uint32) *profile.Profile {
	spec := analysis.Spec{LineBytes: []uint32{lineBytes}, Analyses: analysis.Locality | analysis.Sites}
	run, err := analysis.NewRunner(spec, tracetest.NewReader(b, 0))
	for err == nil {
		err = run.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return run.Finish(profile.State{})
}

// missesByPC simulates a fully associative cache of lines of 64 bytes, with a prefetcher or "none", and
// returns the misses of each instruction.
func missesByPC(t interface{ Fatal(...any) }, b *trace.Batch, prefetcher string, lines int) map[trace.Addr]uint64 {
	var h hierarchy.Hierarchy
	if err := h.Add("L1=" + strconv.Itoa(64*lines) + ",full,prefetch=" + prefetcher); err != nil {
		t.Fatal(err)
	}
	s := begin(t, h, Options{})
	counts, before := map[trace.Addr]uint64{}, uint64(0)
	for i := range b.Kind {
		if err := s.Consume(tracetest.Part(b, i, i+1)); err != nil {
			t.Fatal(err)
		}
		misses := s.Result().Levels[0].Run.Misses()
		counts[b.PC[i]] += misses - before
		before = misses
	}
	return counts
}

// TestCoverageOfDemos compares the share of the misses that a prefetcher covers with the share that a
// simulated stride prefetcher avoids, for each instruction of single-threaded demos. The simulated
// prefetcher prefetches across pages, and its lines evict other lines.
func TestCoverageOfDemos(t *testing.T) {
	const lines = 512
	for _, name := range []string{"matmul-naive", "matmul-blocked", "array-list"} {
		b := demoByPC(t, name)
		p := sitesOf(t, b, 64)
		without, with := missesByPC(t, b, "none", lines), missesByPC(t, b, "stride", lines)
		compared := 0
		for i := range p.Sites.Code {
			s := &p.Sites.Code[i]
			misses := s.Reuse.Misses(lines)
			if misses != without[s.PC] {
				t.Fatalf("%s: %d misses at instruction %d, the simulator counts %d", name, misses, s.PC, without[s.PC])
			}
			if misses < 100 {
				continue
			}
			compared++
			share, _ := p.Sites.Coverage([]int{i}, lines)
			avoided := 1 - float64(with[s.PC])/float64(misses)
			t.Logf("%s, instruction %d: %d misses, %.4f covered, %.4f avoided by the simulated prefetcher", name, s.PC, misses, share, avoided)
			if math.Abs(share-avoided) > 0.16 {
				t.Errorf("%s, instruction %d: %.4f of %d misses are covered, but the simulated prefetcher avoids %.4f", name, s.PC, share, misses, avoided)
			}
		}
		if compared == 0 {
			t.Errorf("%s: no instruction has 100 misses", name)
		}
	}
}

// demoByPC returns the references of a demo, with the number of the site as the instruction's address.
func demoByPC(t *testing.T, name string) *trace.Batch {
	b := readTrace(t, "../../site/demos/"+name+".sgt")
	b.PC = make([]trace.Addr, b.Len())
	for i, n := range b.Site {
		b.PC[i] = trace.Addr(n)
	}
	b.Site, b.Thread = nil, nil
	return b
}
