package sharing_test

import (
	"io"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// analyse analyses a trace and checks the profile.
func analyse(t rapid.TB, spec analysis.Spec, r trace.Reader) *profile.Profile {
	t.Helper()
	runner, err := analysis.NewRunner(spec, tracetest.Spoil(r))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		err = runner.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	growing := runner.Profile(profile.State{})
	p := runner.Finish(profile.State{})
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	if growing.Digest() != p.Digest() {
		t.Fatal("the final result differs from the result before Finish")
	}
	return p
}

// multithreaded draws a trace with up to 16 threads.
func multithreaded(most int) *rapid.Generator[*trace.Batch] {
	return rapid.Custom(func(t *rapid.T) *trace.Batch {
		b := &trace.Batch{Thread: []uint32{}}
		threads := rapid.SliceOfNDistinct(rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0, 20)), 1, 16, rapid.ID[uint32]).Draw(t, "threads")
		lines := rapid.Uint64Range(0, rapid.Uint64Range(0, 40).Draw(t, "lines"))
		apart := rapid.SampledFrom([]uint64{1, 2, 16, 1 << 16, 1 << 30}).Draw(t, "apart")
		kinds := rapid.SampledFrom([]trace.Kind{trace.Load, trace.Load, trace.Store, trace.Modify, trace.RangeRead, trace.RangeWrite})
		sizes := rapid.SampledFrom([]uint32{0, 1, 8, 8, 8, 8, 200})
		thread := rapid.SampledFrom(threads)
		for range rapid.IntRange(1, most).Draw(t, "references") {
			b.Append(kinds.Draw(t, "kind"), lines.Draw(t, "line")*apart*64+32, sizes.Draw(t, "bytes"), thread.Draw(t, "thread"), 0)
		}
		return b
	})
}

// ascending returns the threads of a trace in ascending order, and the core of each thread.
func ascending(b *trace.Batch) (threads []uint32, coreOf map[uint32]int) {
	threads = slices.Compact(slices.Sorted(slices.Values(b.Thread)))
	coreOf = map[uint32]int{}
	for i, t := range threads {
		coreOf[t] = i
	}
	return threads, coreOf
}

func sameCounts(t rapid.TB, what string, got, want *profile.StackCounts) {
	t.Helper()
	gotD, wantD := maps.Collect(got.Distances.All()), maps.Collect(want.Distances.All())
	if got.Cold != want.Cold || !maps.Equal(gotD, wantD) {
		t.Fatalf("%s: %d cold accesses and distances %v, want %d and %v", what, got.Cold, gotD, want.Cold, wantD)
	}
	if got.Sets != want.Sets {
		t.Fatalf("%s: the set tables differ; the row of 2 sets is %v, want %v", what, got.Sets.Depths[1], want.Sets.Depths[1])
	}
}

// sameDomain compares a domain with the result of the reference implementation. The cores of both
// domains are numbered in the same way.
func sameDomain(t rapid.TB, what string, got, want *profile.Domain) {
	t.Helper()
	if got.Sets != want.Sets {
		t.Fatalf("%s: the set tables differ", what)
	}
	for i := range want.Members {
		g, w := &got.Members[i], &want.Members[i]
		sameCounts(t, what, &profile.StackCounts{Cold: g.Cold, Distances: g.Distances}, &profile.StackCounts{Cold: w.Cold, Distances: w.Distances})
		if g.Change != w.Change {
			t.Fatalf("%s: core %d: Change = %+v, want %+v", what, got.Cores[i], g.Change, w.Change)
		}
	}
	sameCounts(t, what+", foreign", &got.Foreign, &want.Foreign)
}

// sameMisses compares the misses according to the coherent stacks of the cores with simulated
// caches. sameMisses uses caches of every capacity up to the number of lines that a core accesses,
// and caches with the given numbers of sets and ways.
func sameMisses(t rapid.TB, all []access, cores []profile.Core, sets []int, ways []int) {
	t.Helper()
	var most uint64
	for i := range cores {
		most = max(most, cores[i].Private.Cold)
	}
	for capacity := 1; capacity <= int(most)+1; capacity++ {
		for i, want := range misses(all, len(cores), 1, capacity) {
			c := &cores[i].Coherent
			got := counted{misses: c.Accesses()}
			for d := range uint64(capacity) {
				got.misses -= c.Distances.Count(d)
				got.taken += c.Lost.Count(d)
			}
			if got != want {
				t.Fatalf("core %d has the misses %+[3]v in a cache of %[2]d lines, want %+[4]v", i, capacity, got, want)
			}
		}
	}
	for _, a := range sets {
		for _, w := range ways {
			for i, want := range misses(all, len(cores), 1<<a, w) {
				c := &cores[i].Coherent
				hits, _ := c.Sets.Hits(1<<a, uint64(w))
				if got := c.Accesses() - hits; got != want.misses {
					t.Fatalf("core %d, with 2^%d sets of %d ways, has %d misses, want %d", i, a, w, got, want.misses)
				}
			}
		}
	}
}

// All four views agree with the results of plain lists and simulated caches.
func TestViewsEqualLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := multithreaded(120).Draw(t, "trace")
		threads, coreOf := ascending(b)
		p := analyse(t, analysis.Spec{LineBytes: []uint32{32, 64}, Analyses: analysis.Sharing}, tracetest.NewReader(b, rapid.IntRange(1, 50).Draw(t, "rows")))
		if len(threads) == 1 {
			if p.Sharing != nil {
				t.Fatal("Sharing is not nil in the profile of a trace with one thread")
			}
			return
		}
		for i := range p.Sharing {
			s := &p.Sharing[i]
			all := accessesOf(b, uint64(s.LineBytes), coreOf)
			sameViews(t, s, all, threads)
			sameMisses(t, all, s.Cores, []int{rapid.IntRange(0, 16).Draw(t, "sets"), 1}, []int{rapid.IntRange(1, 32).Draw(t, "ways"), 1, 2})
		}
	})
}

// sameViews compares views 1 to 3.
func sameViews(t rapid.TB, s *profile.Sharing, all []access, threads []uint32) {
	t.Helper()
	everybody := []int{}
	for i := range s.Cores {
		c := &s.Cores[i]
		everybody = append(everybody, i)
		if !slices.Equal(c.Threads, threads[i:i+1]) {
			t.Fatalf("core %d has threads %v, want %d", i, c.Threads, threads[i])
		}
		private, foreign := naiveCore(all, i)
		sameCounts(t, "private", &c.Private, &private)
		sameCounts(t, "foreign", &c.Foreign, &foreign)
	}
	want := naiveDomain(all, everybody)
	sameDomain(t, "all cores", &s.Domains[0], &want)
}

// batchOf returns a trace of accesses by the given threads to the given lines. A letter represents
// a line.
func batchOf(lines string, threads ...uint32) *trace.Batch {
	b := &trace.Batch{Thread: []uint32{}}
	for i, x := range lines {
		kind := trace.Load
		if x < 'a' {
			kind, x = trace.Store, x-'A'+'a'
		}
		b.Append(kind, uint64(x)*64, 8, threads[i], 0)
	}
	return b
}

// The test compares the result with Table 2 of SASMM, in which times are numbered from one.
func TestSASMMTable2(t *testing.T) {
	threads := []uint32{1, 2, 1, 1, 1, 2, 2, 1, 1, 1}
	p := analyse(t, analysis.Spec{Analyses: analysis.Sharing}, tracetest.NewReader(batchOf("acbaedbdab", threads...), 0))
	s := &p.Sharing[0]
	// Concurrent distances of thread 1: a ∞, b ∞, a 2 (private distance 1, because c is in
	// between), e ∞, d 1 (private ∞), a 3 (private 2, because b is in between, and both threads
	// touched d), b 2 (private 3, because thread 2 touched b).
	one := s.Domains[0].Members[0]
	if got := maps.Collect(one.Distances.All()); !maps.Equal(got, map[uint64]uint64{1: 1, 2: 2, 3: 1}) || one.Cold != 3 {
		t.Errorf("thread 1 has the concurrent distances %v, and %d cold accesses", got, one.Cold)
	}
	if want := (profile.Change{Dilated: 1, Overlapped: 1, Intercepted: 1, Brought: 1}); one.Change != want {
		t.Errorf("thread 1: Change = %+v, want %+v", one.Change, want)
	}
	if got := maps.Collect(s.Cores[0].Private.Distances.All()); !maps.Equal(got, map[uint64]uint64{1: 1, 2: 1, 3: 1}) {
		t.Errorf("thread 1 has the private distances %v", got)
	}
}

// The test uses the example of MODELS §6.4, in which line c fills the hole that line a has left.
func TestHoleInStackIsFilled(t *testing.T) {
	p := analyse(t, analysis.Spec{Analyses: analysis.Sharing}, tracetest.NewReader(batchOf("abAcba", 1, 1, 2, 1, 1, 1), 0))
	c := &p.Sharing[0].Cores[0].Coherent
	if c.Cold != 3 || c.Distances.Count(1) != 1 || c.Distances.Total() != 1 || c.Lost.Count(1) != 1 || c.Lost.Total() != 1 || c.Invalidations != 1 {
		t.Errorf("the counts of thread 1 are %+v, want three cold accesses, one access at distance 1, and a coherence miss at depth 1", c)
	}
}
