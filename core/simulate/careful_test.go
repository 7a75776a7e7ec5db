package simulate

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// consume simulates a batch and returns the result without the write-backs at the end.
func consume(t *rapid.T, h hierarchy.Hierarchy, o Options, batches ...*trace.Batch) Result {
	s := begin(t, h, o)
	for _, b := range batches {
		if err := s.Consume(b); err != nil {
			t.Fatal(err)
		}
	}
	return s.Result()
}

// With a warm-up, the counts equal the counts of the whole run minus the counts of the warm-up.
// With a limit, the counts equal the counts of a run over a trace that ends at the limit.
func TestWarmupAndLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b := drawHierarchy(t), drawBatch(t)
		n := rapid.IntRange(0, b.Len()).Draw(t, "warm-up")
		part := b.View(new(trace.Batch), 0, n)
		whole, before := consume(t, h, Options{}, b), consume(t, h, Options{}, part)
		after := consume(t, h, Options{Warmup: uint64(n)}, b)
		for i := range whole.Levels {
			sum := before.Levels[i].Run
			if sum.add(&after.Levels[i].Run); sum != whole.Levels[i].Run {
				t.Fatalf("the warm-up has the counts %+v and the rest has %+v, want %+v for the whole run", before.Levels[i].Run, after.Levels[i].Run, whole.Levels[i].Run)
			}
		}
		if n == 0 {
			return
		}
		limited := consume(t, h, Options{Limit: uint64(n)}, b)
		for i := range limited.Levels {
			if limited.Levels[i].Run != before.Levels[i].Run {
				t.Fatalf("with a limit, the counts are %+v, want %+v", limited.Levels[i].Run, before.Levels[i].Run)
			}
		}
	})
}

// If a warm-up lasts until a share of the last level is filled, it ends with the reference that
// fills this share.
func TestWarmupShare(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64, LineBytes: 8}}}
	b := trace.NewBatch(0)
	for i := range uint64(10) {
		b.Append(trace.Load, 8*(i%8), 8, 0, 0)
	}
	s, err := New(h, Options{WarmupShare: 0.5})
	if err == nil {
		err = s.Consume(b)
	}
	if r := s.Result(); err != nil || r.References != 6 || r.Levels[0].Run.Misses() != 4 || r.WarmingUp {
		t.Errorf("the result is %+v, %v; want 6 references and 4 misses after the first 4 references", r, err)
	}
}

// If the trace ends before the warm-up, the result says so and contains the counts of the whole
// trace.
func TestWarmupNeverEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b := drawHierarchy(t), drawBatch(t)
		n := uint64(b.Len())
		whole := consume(t, h, Options{}, b)
		got := consume(t, h, Options{Warmup: n + rapid.Uint64Range(0, 1).Draw(t, "additional references"), Limit: 3}, b)
		if want := whole.References; got.WarmingUp && (got.References != want || got.Levels[0].Run != whole.Levels[0].Run) {
			t.Fatalf("%d references, %+v, want the counts of the whole trace: %d references, %+v", got.References, got.Levels[0].Run, want, whole.Levels[0].Run)
		}
		if !got.WarmingUp && got.References > 0 || whole.WarmingUp {
			t.Fatalf("%d references are counted after a warm-up of %d references", got.References, n)
		}
	})
}

// After each flush, the caches are empty, so the misses equal the misses of separate runs.
func TestPeriodicFlush(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b := drawHierarchy(t), drawBatch(t)
		// with other policies, the victims depend on the order in which ways became empty
		for i := range h.Levels {
			h.Levels[i].Replacement = rapid.SampledFrom([]hierarchy.Replacement{hierarchy.LRU, hierarchy.FIFO}).Draw(t, "replacement")
		}
		n := rapid.IntRange(1, 100).Draw(t, "references between flushes")
		got := consume(t, h, Options{FlushEvery: uint64(n)}, b)
		sums := make([]Counts, len(h.Levels))
		for lo := 0; lo < b.Len(); lo += n {
			r := begin(t, h, Options{})
			if err := r.Consume(b.View(new(trace.Batch), lo, min(lo+n, b.Len()))); err != nil {
				t.Fatal(err)
			}
			end := r.Finish()
			for i := range sums {
				sums[i].add(&end.Levels[i].Run)
				if lo+n <= b.Len() { // the remaining references are not followed by a flush
					sums[i].add(&end.Levels[i].Flush)
				}
			}
		}
		for i, l := range got.Levels {
			run := l.Run
			run.Flushed = 0
			if run != sums[i] {
				t.Fatalf("%s: counts %+v, want %+v", l.Cache, run, sums[i])
			}
		}
	})
}

// A TLB is a cache of pages, in which a store has the same effect as a load.
func TestTLB(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h hierarchy.Hierarchy
		for _, line := range []string{"L1=1KiB,4", "ITLB=2,full,tlb,instructions", "DTLB=4,2,tlb", "STLB=8,full,tlb", "pages=8KiB"} {
			if err := h.Add(line); err != nil {
				t.Fatal(err)
			}
		}
		b := drawBatch(t)
		for i := range b.Addr {
			b.Addr[i] *= 300 // spread the addresses over a few hundred pages
		}
		got := consume(t, h.Translation(), Options{Translation: true}, b)
		tlbs := map[string][]uint64{} // the pages in each set, most recently used page first
		misses := map[string]uint64{}
		look := func(name string, page, sets uint64, ways int) bool {
			name2 := name + string(rune('0'+page%sets))
			at := slices.Index(tlbs[name2], page)
			if at >= 0 {
				tlbs[name2] = slices.Delete(tlbs[name2], at, at+1)
			} else {
				misses[name]++
			}
			tlbs[name2] = slices.Insert(tlbs[name2], 0, page)
			tlbs[name2] = tlbs[name2][:min(ways, len(tlbs[name2]))]
			return at >= 0
		}
		for i, kind := range b.Kind {
			bytes := uint64(b.Bytes[i])
			if bytes == 0 {
				bytes = 1
			}
			for page := b.Addr[i] >> 13; page <= (b.Addr[i]+bytes-1)>>13; page++ {
				hit := false
				if kind == trace.Fetch {
					hit = look("ITLB", page, 1, 2)
				} else {
					hit = look("DTLB", page, 2, 2)
				}
				if !hit {
					look("STLB", page, 1, 8)
				}
			}
		}
		i, d, s := got.Instructions[0].Run.Misses(), got.Levels[0].Run.Misses(), got.Levels[1].Run.Misses()
		if i != misses["ITLB"] || d != misses["DTLB"] || s != misses["STLB"] || got.Memory.Reads != s || got.Memory.Writes != 0 {
			t.Fatalf("the three TLBs have %d, %d and %d misses, and memory has %+v; want %v misses", i, d, s, got.Memory, misses)
		}
	})
}

// With the option MostCores, each thread runs on the core with the fewest threads.
func TestMaximumNumberOfCores(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64, LineBytes: 8}}}
	s, err := New(h, Options{MostCores: 2})
	if err != nil {
		t.Fatal(err)
	}
	b := trace.NewBatch(0)
	b.NeedThread()
	for i := range uint32(10) {
		b.Append(trace.Load, 0, 8, 100+i%5, 0)
	}
	if err := s.Consume(b); err != nil {
		t.Fatal(err)
	}
	r := s.Result()
	if len(r.Cores) != 2 || !slices.Equal(r.Cores[0].Threads, []uint32{100, 102, 104}) || !slices.Equal(r.Cores[1].Threads, []uint32{101, 103}) {
		t.Errorf("%+v", r.Cores)
	}
}

// Sub-blocks are possible only with a single core and with non-inclusive levels.
func TestUnsupportedFeatures(t *testing.T) {
	for name, lines := range map[string][]string{
		"sub-blocks under an inclusive level":                              {"L1=1KiB,4,subblock=16", "L2=8KiB,4,inclusive"},
		"a prefetcher in an exclusive level":                               {"L1=1KiB,4", "L2=8KiB,4,exclusive,prefetch=next-line"},
		"more instruction caches than levels":                              {"L1=1KiB,4", "L1I=1KiB,4,instructions", "L2I=1KiB,4,instructions"},
		"an inclusive level with smaller lines than the instruction cache": {"L1=1KiB,4,32", "L1I=1KiB,4,64,instructions", "L2=8KiB,4,32,inclusive"},
	} {
		var h hierarchy.Hierarchy
		for _, line := range lines {
			if err := h.Add(line); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := New(h, Options{}); err == nil {
			t.Errorf("%s: New returned no error", name)
		}
	}
	s := begin(t, hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64, LineBytes: 16, SubBlockBytes: 8}}}, Options{})
	b := trace.NewBatch(0)
	b.NeedThread()
	b.Append(trace.Load, 0, 8, 1, 0)
	b.Append(trace.Load, 0, 8, 2, 0)
	if err := s.Consume(b); err == nil {
		t.Error("sub-blocks on two cores were simulated, want an error")
	}
}
