package analysis_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// pageReferences returns random references of two threads, including fetches, references to several
// pages, and a reference that the framework divides into pieces.
func pageReferences(rng *rand.Rand, n int) *trace.Batch {
	whole := &trace.Batch{Thread: []uint32{}}
	spread := uint(14 + rng.IntN(20))
	for i := range n {
		kind, bytes, addr := trace.Kind(rng.IntN(3)), uint32(8), uint64(i)*64
		switch rng.IntN(4) {
		case 0:
			addr = rng.Uint64N(1 << spread)
		case 1:
			addr = 1<<40 + rng.Uint64N(12)<<12 + 4090
		case 2:
			addr = rng.Uint64N(40) << 21
		}
		switch rng.IntN(200) {
		case 0:
			kind, bytes = trace.RangeWrite, uint32(rng.IntN(1<<16))
		case 1:
			kind = trace.Fetch
		}
		if i == n/2 {
			kind, bytes = trace.RangeRead, 9<<20
		}
		if i == n/3 {
			addr, bytes = 1<<64-4, 8 // extends beyond the end of the address space
		}
		whole.Append(kind, addr, bytes, uint32(rng.IntN(2)*rng.IntN(2)), 0)
	}
	return whole
}

// naivePages moves each accessed page to the front of a list, for each thread and page size.
func naivePages(b *trace.Batch) (found []profile.Pages) {
	for _, size := range profile.PageSizes {
		f, lists := profile.Pages{PageBytes: size}, map[uint32][]uint64{}
		for i, addr := range b.Addr {
			if !trace.DataKinds.Has(b.Kind[i]) {
				continue
			}
			last := max(addr, addr+uint64(max(b.Bytes[i], 1))-1)
			for page := addr / size; page <= last/size; page++ {
				list := lists[threadAt(b, i)]
				f.Accesses++
				d := slices.Index(list, page)
				if d < 0 {
					f.Cold++
				} else {
					list = slices.Delete(list, d, d+1)
				}
				if d >= profile.LeastEntries {
					f.Distances.Add(uint64(d))
				}
				lists[threadAt(b, i)] = slices.Insert(list, 0, page)
			}
		}
		found = append(found, f)
	}
	return found
}

func samePages(t *testing.T, what string, got, want []profile.Pages) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d page sizes, want %d", what, len(got), len(want))
	}
	for i := range want {
		g, w := &got[i], &want[i]
		equal := g.PageBytes == w.PageBytes && g.Accesses == w.Accesses && g.Cold == w.Cold && g.Distances.Total() == w.Distances.Total()
		for d, count := range w.Distances.All() {
			equal = equal && g.Distances.Count(d) == count
		}
		if !equal {
			t.Errorf("%s: pages of %d bytes have %d accesses, %d cold, %d at long distances; want %d, %d, %d", what, w.PageBytes,
				g.Accesses, g.Cold, g.Distances.Total(), w.Accesses, w.Cold, w.Distances.Total())
		}
	}
}

// The distances of pages equal the positions in lists of all pages, in plain, interrupted and
// segmented runs.
func TestPagesEqualNaive(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 71))
		whole := pageReferences(rng, 500+rng.IntN(4000))
		want := naivePages(whole)
		spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Pages}
		p := checked(t, run(t, spec, tracetest.NewReader(whole, 1+rng.IntN(700))))
		samePages(t, "plain run", p.Pages, want)
		decoded, err := profile.Decode(p.Encode())
		if err != nil {
			t.Fatal(err)
		}
		samePages(t, "decoded profile", decoded.Pages, want)
		cut := rng.IntN(whole.Len())
		spec.Mergeable = true
		var parts []*profile.Profile
		for _, part := range []*trace.Batch{tracetest.Part(whole, 0, cut), tracetest.Part(whole, cut, whole.Len())} {
			parts = append(parts, resultOf(t, spec, tracetest.NewReader(part, 300)))
			spec.Start += parts[len(parts)-1].Totals.AllReferences()
		}
		spec.Start = 0
		joined, err := analysis.Append(spec, parts...)
		if err != nil {
			t.Fatal(err)
		}
		samePages(t, "segments", joined.Pages, want)
	}
}

// A run that continues a profile without pages, which an earlier version made, has no pages.
func TestPagesOfEarlierVersionsAreUnknown(t *testing.T) {
	whole := pageReferences(rand.New(rand.NewPCG(1, 72)), 2000)
	spec := analysis.Spec{Mergeable: true}
	var parts []*profile.Profile
	for _, part := range []*trace.Batch{tracetest.Part(whole, 0, 900), tracetest.Part(whole, 900, whole.Len())} {
		parts = append(parts, resultOf(t, spec, tracetest.NewReader(part, 300)))
		spec.Start += parts[len(parts)-1].Totals.AllReferences()
	}
	spec.Start = 0
	for i := range parts {
		old := *parts[i]
		state := *old.Segment
		state.Pages, old.Pages, old.Segment = nil, nil, &state
		list := []*profile.Profile{parts[0], parts[1]}
		list[i] = &old
		joined, err := analysis.Append(spec, list...)
		if err != nil || joined.Pages != nil {
			t.Errorf("part %d has no pages: the joined profile has pages for %d sizes, error %v; want none", i, len(joined.Pages), err)
		}
	}
}

// A run of more than profile.MaxThreads threads has no pages.
func TestPagesOfManyThreads(t *testing.T) {
	for _, threads := range []uint32{profile.MaxThreads, profile.MaxThreads + 1} {
		whole := &trace.Batch{Thread: []uint32{}}
		for i := range 4 * threads {
			whole.Append(trace.Load, uint64(i%5)<<12, 8, i%threads, 0)
		}
		p := run(t, analysis.Spec{}, tracetest.NewReader(whole, 30))
		if known := p.Pages != nil; known != (threads <= profile.MaxThreads) {
			t.Errorf("%d threads: the profile has pages for %d sizes", threads, len(p.Pages))
		}
	}
}

func threadAt(b *trace.Batch, i int) uint32 {
	if b.Thread == nil {
		return 0
	}
	return b.Thread[i]
}
