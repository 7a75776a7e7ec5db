package analysis_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// The blocks of the program that markingProgram returns.
const (
	loadBlock uint32 = iota
	beginBlock
	endBlock
)

// markingProgram returns a program in which each block produces one row.
func markingProgram() *trace.Program {
	p := &trace.Program{Modules: []trace.Module{{Name: "m"}}, Tags: []string{"read", "solve", "write"}}
	for i, kind := range []trace.Kind{trace.Load, trace.RegionBegin, trace.RegionEnd} {
		p.Blocks = append(p.Blocks, trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic, FirstSite: uint32(i), Sites: 1})
		p.Sites = append(p.Sites, trace.Site{Kind: kind, Block: uint32(i)})
	}
	p.Sites[loadBlock].Bytes = 8
	return p
}

// markingSteps returns random loads and regions of several threads. Some regions do not end. If the
// parameter stray is true, some regions end without having begun.
func markingSteps(rng *rand.Rand, p *trace.Program, n, threads int, stray bool) (steps []tracetest.Step) {
	depth := make([]int, threads)
	often := 2 + rng.IntN(60)
	for range n {
		thread := rng.IntN(threads)
		s := tracetest.Step{Block: loadBlock, Thread: uint32(thread + 1), Values: []uint64{rng.Uint64N(1 << 12)}}
		switch {
		case rng.IntN(often) > 1:
		case depth[thread] < 4 && rng.IntN(2) == 0:
			depth[thread]++
			s.Block, s.Values = beginBlock, []uint64{rng.Uint64N(uint64(len(p.Tags)))}
		case depth[thread] > 0 || stray:
			depth[thread] = max(depth[thread]-1, 0)
			s.Block, s.Values = endBlock, nil
		}
		steps = append(steps, s)
	}
	return steps
}

// naiveRegions lists the regions of a trace. It joins neighbouring regions with the same name,
// thread and depth if the gap between them is smaller than a limit. The limit is 0 or the smallest
// power of two for which at most the given number of regions remains.
func naiveRegions(p *trace.Program, rows *trace.Batch, most int) *profile.Regions {
	var all []profile.Region
	open := map[uint32][]int{}
	at := uint64(0)
	for i, k := range rows.Kind {
		thread := rows.Thread[i]
		switch of := open[thread]; {
		case k.IsReference():
			at++
		case k == trace.RegionBegin:
			open[thread] = append(of, len(all))
			all = append(all, profile.Region{Name: p.Tags[rows.Addr[i]], Thread: thread, Depth: uint32(len(of)), From: at, Times: 1})
		case k == trace.RegionEnd && len(of) > 0:
			all[of[len(of)-1]].To = at
			open[thread] = of[:len(of)-1]
		}
	}
	for _, of := range open {
		for _, i := range of {
			all[i].To = at
		}
	}
	if len(all) == 0 {
		return nil
	}
	for gap := uint64(0); gap <= 1<<62; gap = max(1, 2*gap) {
		var joined []profile.Region
		for _, r := range all {
			last := len(joined) - 1
			for ; last >= 0; last-- {
				if l := joined[last]; l.Name == r.Name && l.Thread == r.Thread && l.Depth == r.Depth {
					break
				}
			}
			if last < 0 || r.From-joined[last].To >= gap {
				joined = append(joined, r)
				continue
			}
			l := &joined[last]
			l.Between += r.From - l.To
			l.To, l.Times = r.To, l.Times+1
		}
		if len(joined) <= most {
			return &profile.Regions{Gap: gap, List: joined}
		}
	}
	return &profile.Regions{TooMany: true}
}

func sameRegions(a, b *profile.Regions) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Gap == b.Gap && a.TooMany == b.TooMany && slices.Equal(a.List, b.List)
}

// regionSpec selects regions and locality, which support joined segments.
var regionSpec = analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Regions | analysis.Locality}

func TestRegionsEqualNaive(t *testing.T) {
	joined, tooMany := 0, 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 61))
		most := 1 + rng.IntN(40)
		undo := analysis.LimitRegions(most)
		p := markingProgram()
		rows := tracetest.Rows(p, markingSteps(rng, p, rng.IntN(3000), 1+rng.IntN(3), true)...)
		got := resultOf(t, regionSpec, reading(p, rows, 1+rng.IntN(400)))
		undo()
		want := naiveRegions(p, rows, most)
		if !sameRegions(got.Regions, want) {
			t.Fatalf("seed %d: the regions are %+v, want %+v", seed, got.Regions, want)
		}
		if want != nil && want.TooMany {
			tooMany++
		} else if want != nil && want.Gap > 0 {
			joined++
		}
		again, err := profile.Decode(got.Encode())
		if err != nil || !sameRegions(again.Regions, want) {
			t.Fatalf("seed %d: the decoded regions are %+v, %v, want %+v", seed, again.Regions, err, want)
		}
	}
	if joined < 20 || tooMany < 20 {
		t.Errorf("regions were joined in %d traces, and %d traces had too many regions, want at least 20 traces of each kind", joined, tooMany)
	}
}

// Regions do not depend on whether the trace is divided among workers, into segments, or into
// interrupted runs.
func TestRegionsOfDividedRuns(t *testing.T) {
	parts := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 62))
		undo := analysis.LimitRegions(1 + rng.IntN(60))
		p := markingProgram()
		stray := seed%3 == 0
		steps := markingSteps(rng, p, 1+rng.IntN(6000), 1, stray)
		file := container(t, rng, p, steps)
		want, _ := analyseSequentially(t, regionSpec, readerOf(file))
		for _, workers := range []int{2, 5} {
			if got := toItsEnd(t, divided(t, regionSpec, file, workers, 1+rng.IntN(1500), countingHelpers(&parts))); !bytes.Equal(got, want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers that read the trace themselves differs from the result of one worker", seed, workers)
			}
		}
		rows := tracetest.Rows(p, markingSteps(rng, p, 1+rng.IntN(6000), 1+rng.IntN(3), stray)...)
		want, _ = analyseSequentially(t, regionSpec, reading(p, rows, 4096))
		got, err := analyseInParallel(t, regionSpec, reading(p, rows, 1+rng.IntN(500)), 1+rng.IntN(4), 1+rng.IntN(1500))
		if err != nil || !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the result of several workers differs from the result of one worker (%v)", seed, err)
		}
		open := func() trace.Reader { return reading(p, rows, 1+rng.IntN(500)) }
		got = interrupted(t, rng, regionSpec, 4, open, func(*profile.Profile) {})
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: interruptions change the result", seed)
		}
		undo()
	}
	if parts < 100 {
		t.Errorf("%d segments were joined, want at least 100", parts)
	}
}

// If segments are analysed separately and joined, the regions equal the regions of the whole trace,
// and joining is associative.
func TestRegionsAppend(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 63))
		undo := analysis.LimitRegions(1 + rng.IntN(60))
		p := markingProgram()
		rows := tracetest.Rows(p, markingSteps(rng, p, 1+rng.IntN(3000), 1+rng.IntN(3), false)...)
		spec := regionSpec
		spec.Mergeable = true
		want := resultOf(t, spec, reading(p, rows, 4096))
		var parts []*profile.Profile
		for lo, before := 0, uint64(0); lo < rows.Len(); {
			hi := min(rows.Len(), lo+1+rng.IntN(1+rows.Len()/2))
			part := spec
			part.Start = before
			parts = append(parts, resultOf(t, part, reading(p, tracetest.Part(rows, lo, hi), 1+rng.IntN(400))))
			for _, k := range rows.Kind[lo:hi] {
				if k.IsReference() {
					before++
				}
			}
			lo = hi
		}
		for len(parts) > 1 {
			i := rng.IntN(len(parts) - 1)
			joined, err := analysis.Append(spec, parts[i], parts[i+1])
			if err != nil {
				t.Fatal(err)
			}
			parts = slices.Replace(parts, i, i+2, checked(t, joined))
		}
		undo()
		if !sameRegions(parts[0].Regions, want.Regions) {
			t.Fatalf("seed %d: the joined regions are %+v, want %+v", seed, parts[0].Regions, want.Regions)
		}
	}
}

// A saved run with damaged regions is either rejected or continued, without a panic.
func TestRegionsRejectDamagedState(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 64))
	p := markingProgram()
	rows := tracetest.Rows(p, markingSteps(rng, p, 3000, 2, false)...)
	state, saved, head := stateAfterStep(t, regionSpec, reading(p, rows, 500))
	refused := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 65))
		damaged, segment := *saved, *saved.Segment
		damaged.Segment = &segment
		segment.Regions = bytes.Clone(segment.Regions)
		segment.Regions[rng.IntN(len(segment.Regions))] ^= 1 << rng.IntN(8)
		again, err := analysis.NewRunner(regionSpec, reading(p, rows, 500))
		if err != nil {
			t.Fatal(err)
		}
		if again.Restore(append(state[:head:head], damaged.Encode()...)) != nil {
			refused++
			continue
		}
		finish(t, again)
		again.Finish(profile.State{})
	}
	if refused < 50 {
		t.Errorf("%d of 300 damaged states were rejected, want at least 50", refused)
	}
}
