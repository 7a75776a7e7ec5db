package analysis_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	_ "github.com/stackglass/stackglass/core/analysis/prologue"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// openAt returns, for the first rows of a trace, the allocations of the memory blocks that are in use
// after these rows, by address, followed by the beginnings of the open regions.
func openAt(p *trace.Program, whole *trace.Batch, rows int) *trace.Batch {
	end := func(i int) trace.Addr { return whole.Addr[i] + whole.Arg[i] }
	var used, regions []int
	for i, k := range whole.Kind[:rows] {
		switch k {
		case trace.Alloc:
			overlaps := func(from, to trace.Addr) bool { return from < end(i) && to > whole.Addr[i] }
			declared := slices.ContainsFunc(p.Objects, func(o trace.Object) bool {
				return o.Addr != 0 && o.Bytes > 0 && overlaps(o.Addr, o.Addr+o.Bytes)
			})
			if whole.Addr[i] == 0 || whole.Arg[i] == 0 || declared {
				continue
			}
			used = slices.DeleteFunc(used, func(n int) bool { return overlaps(whole.Addr[n], end(n)) })
			used = append(used, i)
		case trace.Free:
			used = slices.DeleteFunc(used, func(n int) bool {
				return whole.Addr[n] == whole.Addr[i] && p.Sites[whole.Site[n]].Flags&trace.StackSite == 0
			})
		case trace.RegionBegin:
			regions = append(regions, i)
		case trace.RegionEnd:
			for n := len(regions) - 1; n >= 0; n-- {
				if whole.Thread[regions[n]] == whole.Thread[i] {
					regions = slices.Delete(regions, n, n+1)
					break
				}
			}
		}
	}
	slices.SortFunc(used, func(a, b int) int {
		if whole.Addr[a] < whole.Addr[b] {
			return -1
		}
		return 1
	})
	open := trace.NewBatch(0)
	for _, i := range append(used, regions...) {
		open.AppendRows(whole, i, i+1)
	}
	return open
}

// rowsUpTo returns the number of rows up to the given number of references of the given kinds.
func rowsUpTo(whole *trace.Batch, kinds trace.Kinds, references uint64) (rows int) {
	for ; references > 0 && rows < whole.Len(); rows++ {
		if k := whole.Kind[rows]; k.IsReference() && kinds.Has(k) {
			references--
		}
	}
	return rows
}

// The profile of a part of a trace equals the profile of a trace that consists of the allocations
// that are in use at the beginning of the part, the regions that are open there, and the rows of the
// part.
func TestPartEqualsTraceOfPart(t *testing.T) {
	named, marked := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 301))
		p, n := allocatingProgram(), 1+rng.IntN(6000)
		var steps []tracetest.Step
		if seed%3 == 0 {
			p = markingProgram()
			steps = markingSteps(rng, p, n, 3, true)
		} else {
			steps = allocatingSteps(rng, p, n)
		}
		whole := tracetest.Rows(p, steps...)
		spec := analysis.Spec{Kinds: trace.AllKinds, Skip: 1 + rng.Uint64N(uint64(n)), Analyses: analysis.Usual &^ analysis.Blocks}
		if rng.IntN(2) == 0 {
			spec.Kinds = trace.DataKinds
		}
		if rng.IntN(3) == 0 {
			spec.Analyses = analysis.Data | analysis.Footprint | analysis.Loops
		}
		if rng.IntN(2) == 0 {
			spec.Limit = 1 + rng.Uint64N(uint64(n))
		}
		lo := rowsUpTo(whole, spec.Kinds, spec.Skip)
		part := openAt(p, whole, lo)
		named, marked = named+part.Len(), marked+len(slices.DeleteFunc(slices.Clone(part.Kind), func(k trace.Kind) bool { return k != trace.RegionBegin }))
		if lo == whole.Len() && rowsUpTo(whole, spec.Kinds, spec.Skip-1) == lo {
			part.Resize(0) // the trace ends before the part begins
		}
		part.AppendRows(whole, lo, whole.Len())
		alone := spec
		alone.Skip = 0
		want, _ := analyseSequentially(t, alone, tracetest.NewProgramReader(p, part, 4096))
		want.Input.Skip, want.Totals.Unselected = spec.Skip, 0
		open := func() trace.Reader { return tracetest.NewProgramReader(p, whole, 1+rng.IntN(2000)) }
		got, _ := analyseSequentially(t, spec, open())
		resumed := interrupted(t, rng, spec, 6, open, nil)
		if !bytes.Equal(resumed.Encode(), got.Encode()) {
			t.Fatalf("seed %d: interruptions change the profile of a part", seed)
		}
		got.Totals.Unselected = 0 // counts skipped references, too
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the profile of the references from number %d (at most %d) differs from the profile of a trace of this part", seed, spec.Skip, spec.Limit)
		}
	}
	if named < 100 || marked < 10 {
		t.Errorf("%d blocks and regions were open at the beginning of a part, %d of them regions; want at least 100 and 10", named, marked)
	}
}

// The counts of each call path in a part of a trace are the differences of the counts at the end and
// at the beginning of the part. In each block of the part, as many visits begin as end.
func TestCallsOfPart(t *testing.T) {
	outer, checked := 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 302))
		p := callingProgram(rng)
		w, _ := randomRun(rng, p, 1+rng.IntN(3000))
		whole := tracetest.Rows(p, w.steps...)
		spec := withEntriesForSomeSeeds(seed, callSpec)
		n := referencesBefore(whole, whole.Len())
		if n < 3 {
			continue
		}
		from := 1 + rng.Uint64N(n-2)
		to := from + 1 + rng.Uint64N(n-from)
		analyse := func(skip, limit uint64) analysis.Spec {
			spec.Skip, spec.Limit = skip, limit
			return spec
		}
		open := func() trace.Reader { return reading(p, whole, 1+rng.IntN(4096)) }
		before, _ := analyseSequentially(t, analyse(0, from), open())
		until, _ := analyseSequentially(t, analyse(0, to), open())
		part, _ := analyseSequentially(t, analyse(from, to-from), open())
		if resumed := interrupted(t, rng, spec, 6, open, nil); !bytes.Equal(resumed.Encode(), part.Encode()) {
			t.Fatalf("seed %d: interruptions change the profile of a part", seed)
		}
		if part.Sites == nil || until.Sites == nil {
			continue
		}
		want, got := pathsOf(t, until), pathsOf(t, part)
		if before.Calls != nil {
			for name, c := range pathsOf(t, before) {
				all := want[name]
				for how, n := range c.calls {
					if all.calls[how] -= n; all.calls[how] == 0 {
						delete(all.calls, how)
					}
				}
				all.instructions, all.references, all.bytes = all.instructions-c.instructions, all.references-c.references, all.bytes-c.bytes
			}
		}
		for _, list := range []map[string]*pathCounts{want, got} {
			for _, c := range list {
				clear(c.bins)
			}
		}
		none := newPathCounts()
		for name, c := range want {
			of := got[name]
			if of == nil {
				of = none
			}
			if !of.equal(c) {
				t.Fatalf("seed %d: in references %d to %d, the counts of path %q are %+v, want %+v", seed, from, to, name, of, c)
			}
		}
		for name, c := range got {
			if want[name] == nil {
				t.Fatalf("seed %d: the part has a path %q, which the trace does not have", seed, name)
			}
			if len(c.calls) == 0 && name != "" {
				outer++
			}
		}
		if len(part.Blocks) > 0 && len(before.Blocks) > 0 {
			checkEdgesOfPart(t, seed, p, decodedRun(t, part).Edges, decodedRun(t, until).Edges, decodedRun(t, before).Edges)
			checked++
		}
	}
	if outer < 100 || checked < 50 {
		t.Errorf("%d call paths began before their part, want at least 100; the edges of %d parts were compared, want at least 50", outer, checked)
	}
}

// checkEdgesOfPart compares the edges of a part with the edges up to its end and up to its beginning.
func checkEdgesOfPart(t *testing.T, seed uint64, p *trace.Program, part, until, before *blocks.Edges) {
	t.Helper()
	at := func(list []uint64, i int) uint64 {
		if i < len(list) {
			return list[i]
		}
		return 0
	}
	into := make([]uint64, len(p.Blocks))
	for b := range p.Blocks {
		var of [3][]uint64
		for i, e := range []*blocks.Edges{part, until, before} {
			if b < len(e.Taken) {
				of[i] = e.Taken[b]
			}
		}
		for i, to := range p.Blocks[b].Successors {
			if n, want := at(of[0], i), at(of[1], i)-at(of[2], i); n != want {
				t.Fatalf("seed %d: edge %d of block %d was taken %d times in the part, want %d", seed, i, b, n, want)
			}
			into[to] += at(of[0], i)
		}
		into[b] += at(part.Resumed, b)
	}
	for f := range p.Functions {
		into[p.Functions[f].First] += at(part.Entered, f)
	}
	for b, f := range part.Callees(p) {
		if f != trace.NoFunction && b < len(part.Visits) {
			if part.Unmade[b] > part.Visits[b] {
				t.Fatalf("seed %d: block %d did not make %d of its %d calls in the part", seed, b, part.Unmade[b], part.Visits[b])
			}
			into[p.Functions[f].First] += part.Visits[b] - part.Unmade[b]
		}
	}
	for b, n := range into {
		if n != at(part.Visits, b) {
			t.Fatalf("seed %d: block %d was entered %d times in the part, but left %d times", seed, b, n, at(part.Visits, b))
		}
	}
}

// In a part of a run that begins with empty caches, each site makes as many accesses as in the
// windows of the whole run. Only first accesses to lines within the part can move from a bin of
// distances to the cold accesses.
func TestPartAndWindows(t *testing.T) {
	moved := uint64(0)
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 303))
		p := allocatingProgram()
		whole := tracetest.Rows(p, allocatingSteps(rng, p, 6000+rng.IntN(10_000))...)
		spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Sites}
		all, _ := analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 4096))
		from := 1 + rng.IntN(len(all.Timeline.Windows)-1)
		to := from + 1 + rng.IntN(len(all.Timeline.Windows)-from)
		span, _ := all.Within(from, to)
		first, end := all.Timeline.Bounds(from, to, all.Totals.AllReferences())
		spec.Skip, spec.Limit = first, end-first
		part, _ := analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 4096))
		firsts := part.Locality[0].Lines()
		for i := range all.Sites.Code {
			in := &span.Code[i].Reuse
			if in.Accesses() == 0 {
				continue
			}
			of := slices.IndexFunc(part.Sites.Code, func(s profile.Site) bool { return profile.CompareSites(&s, &all.Sites.Code[i]) == 0 })
			if of < 0 || part.Sites.Code[of].Reuse.Accesses() != in.Accesses() {
				t.Fatalf("seed %d: in windows %d to %d, a site has %d accesses, but not in the part", seed, from, to, in.Accesses())
			}
			own := &part.Sites.Code[of].Reuse
			for _, b := range own.Bins {
				if at := slices.IndexFunc(in.Bins, func(c profile.BinCount) bool { return c.Bin == b.Bin }); at < 0 || in.Bins[at].Count < b.Count {
					t.Fatalf("seed %d: the part has %d accesses in bin %d, more than the windows", seed, b.Count, b.Bin)
				}
			}
			for lines := uint64(1); lines < 1<<12; lines *= 2 {
				if more := own.Misses(lines) - in.Misses(lines); own.Misses(lines) < in.Misses(lines) || more > firsts {
					t.Fatalf("seed %d: in a cache of %d lines, a site has %d misses in the part, and %d in the windows", seed, lines, own.Misses(lines), in.Misses(lines))
				}
			}
			moved += own.Cold - in.Cold
		}
	}
	if moved < 1000 {
		t.Errorf("%d accesses are cold only in the part, want at least 1000", moved)
	}
}
