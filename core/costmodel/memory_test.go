package costmodel

import (
	"math"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

const levelled = `name: toy
dispatch: 4
ports: P0
levels:
  L1: latency 5, size 1KiB
  L2: latency 20, size 4KiB, ways 4, read 2, written 3, scattered 1.5
  memory: latency 300, read 6, written 9, scattered 18, stored 30
classes:
  load: latency 5, uops 1, ports P0
`

func levelledMachine(t *testing.T) machine {
	t.Helper()
	p, err := pipeline.Read([]byte(levelled))
	if err != nil {
		t.Fatal(err)
	}
	return describedMachine(p)
}

// TestHierarchyOfDescription checks that the levels of a description form a hierarchy if the last
// level is memory.
func TestHierarchyOfDescription(t *testing.T) {
	m := levelledMachine(t)
	if len(m.h.Levels) != 2 || m.h.Levels[1].SizeBytes != 4096 || m.h.Levels[1].Ways != 4 || m.h.Memory.LatencyCycles != 300 {
		t.Errorf("%+v", m.h)
	}
	if m.read[2] != 6 || m.written[1] != 3 || m.scattered[1] != 1.5 || m.read[0] != 0 || m.stored[1] != 1.5 || m.stored[2] != 30 {
		t.Errorf("%+v", m)
	}
	for _, levels := range [][]pipeline.Level{
		nil,
		{{Name: "L1", LatencyCycles: 5}},
		{{Name: "L1", LatencyCycles: 5, SizeBytes: 1024}},
		{{Name: "L1", LatencyCycles: 5, SizeBytes: 1024}, {Name: "memory", LatencyCycles: 9}, {Name: "more", LatencyCycles: 99}},
	} {
		if m := describedMachine(&pipeline.Processor{Levels: levels}); len(m.h.Levels) > 0 {
			t.Errorf("levels %+v: machine %+v, want no levels", levels, m.h)
		}
	}
}

// TestSiteCost compares the cost of a site with a manual calculation. Out of 100 loads, 40 miss in
// L1 and 10 miss in L2, and a prefetcher fetches 30 % of these lines.
func TestSiteCost(t *testing.T) {
	m := levelledMachine(t)
	s := profile.Site{Kind: trace.Load, Bytes: 8, Strides: [profile.NumStrides]uint64{profile.UnitStride: 20, profile.ConstantStride: 10, profile.IrregularStride: 70}}
	got, why := m.costOfSite(&s, []float64{40, 10}, []float64{0.3, 0.3}, 64)
	if got == nil {
		t.Fatal(why)
	}
	want := siteCost{
		latency:   0.6*5 + 0.3*20 + 0.1*300,
		transfers: pipeline.Transfer{Cycles: 0.3 * (30*2 + 10*6), Near: 0.3 * 40 * 2},
		misses: pipeline.Misses{Lines: 0.7 * 0.4, Waits: 0.7 * (0.3*20 + 0.1*300),
			Scattered: pipeline.Transfer{Cycles: 0.7 * (0.3*1.5 + 0.1*18), Near: 0.7 * 0.4 * 1.5}},
	}
	near := func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }
	same := func(x, y pipeline.Transfer) bool { return near(x.Cycles, y.Cycles) && near(x.Near, y.Near) }
	if !near(got.delay, want.latency-5) {
		t.Errorf("%v cycles beyond a hit, want %v", got.delay, want.latency-5)
	}
	if !near(got.latency, want.latency) || !same(got.transfers, want.transfers) || got.crossing != 0 ||
		!near(got.misses.Lines, want.misses.Lines) || !near(got.misses.Waits, want.misses.Waits) || !same(got.misses.Scattered, want.misses.Scattered) {
		t.Errorf("%+v, want %+v", *got, want)
	}
	s.Kind = trace.Store // a store does not wait for its line
	got, _ = m.costOfSite(&s, []float64{40, 10}, []float64{0.3, 0.3}, 64)
	if !same(got.transfers, pipeline.Transfer{Cycles: 0.3 * (30*3 + 10*9), Near: 0.3 * 40 * 3}) || got.misses.Lines != 0 || got.misses.Waits != 0 ||
		!same(got.misses.Scattered, pipeline.Transfer{Cycles: 0.7 * (0.3*1.5 + 0.1*30), Near: 0.7 * 0.4 * 1.5}) {
		t.Errorf("a store: %+v", *got)
	}
	m.h.Memory.LatencyCycles = 0
	if got, why := m.costOfSite(&s, []float64{40, 10}, []float64{0.3, 0.3}, 64); got != nil || why == "" {
		t.Errorf("unknown memory latency: costs %+v (%s), want nil and a reason", got, why)
	}
}

// TestPageWalksBySite compares the waits for page walks with a manual calculation. A sequential site
// with 128 misses walks for 2 of 50 pages. The other walks belong to the 80 misses of a site with
// irregular addresses.
func TestPageWalksBySite(t *testing.T) {
	m := Models{profile: &profile.Profile{Sites: &profile.Sites{LineBytes: 64, Code: []profile.Site{
		{Kind: trace.Load, Bytes: 8, Strides: [profile.NumStrides]uint64{profile.UnitStride: 1000}},
		{Kind: trace.Load, Bytes: 8, Strides: [profile.NumStrides]uint64{profile.IrregularStride: 100}},
	}}, Pages: []profile.Pages{{PageBytes: 4096, Accesses: 1100, Cold: 50}}}}
	machine := levelledMachine(t)
	if err := machine.h.Add("TLB=8,8,tlb"); err != nil {
		t.Fatal(err)
	}
	misses, prefetched := []float64{128, 80}, []float64{1, 0}
	w := m.pageWalks(machine.h, misses, prefetched)
	if w != (pageWalks{waited: 48, hidden: 2, perMiss: 48.0 / 80}) {
		t.Fatalf("%+v, want 48 page walks with waits, 2 without, and 0.6 waits for each miss", w)
	}
	machine.missWalk = WalkCycles * w.perMiss
	for i, want := range []float64{0, 0.8 * 0.6 * WalkCycles} {
		s := &m.profile.Sites.Code[i]
		with, _ := machine.costOfSite(s, []float64{misses[i], 0}, []float64{prefetched[i], 0}, 64)
		plain := machine
		plain.missWalk = 0
		without, _ := plain.costOfSite(s, []float64{misses[i], 0}, []float64{prefetched[i], 0}, 64)
		if got := with.latency - without.latency; math.Abs(got-want) > 1e-9 {
			t.Errorf("site %d: loads wait %v cycles for page walks, want %v", i, got, want)
		}
		if got := with.misses.Waits - without.misses.Waits; math.Abs(got-want) > 1e-9 {
			t.Errorf("site %d: independent loads wait %v cycles for page walks, want %v", i, got, want)
		}
	}
	// With more page walks than misses, each miss waits for one, and all 1,100 references for the rest.
	m.profile.Pages[0].Cold = 300
	if w := m.pageWalks(machine.h, misses, prefetched); w.perMiss != 1 || math.Abs(w.perReference*1100-(298-80)) > 1e-9 {
		t.Errorf("%+v, want 1 wait for each miss, and 218 more", w)
	}
	machine.missWalk, machine.anyWalk = 0, 4
	if got, _ := machine.costOfSite(&m.profile.Sites.Code[0], []float64{0, 0}, []float64{0, 0}, 64); got.latency != 5+4 || got.misses.Waits != 4 {
		t.Errorf("%+v, want a latency of 9 cycles, of which 4 are for page walks", got)
	}
	m.profile.Pages = nil
	if w := m.pageWalks(machine.h, misses, prefetched); w.unknown == "" || w.perMiss != 0 {
		t.Errorf("without stack distances of pages: %+v", w)
	}
}

// TestLowerLevelsCostMore checks, with every preset, that loads take longer if they hit in a lower
// level.
func TestLowerLevelsCostMore(t *testing.T) {
	s := profile.Site{Kind: trace.Load, Bytes: 8, Strides: [profile.NumStrides]uint64{profile.IrregularStride: 100}}
	for _, h := range hierarchy.Presets() {
		m, before := machineFor(h), 0.0
		for level := 0; level <= len(h.Levels); level++ {
			misses := make([]float64, len(h.Levels))
			for i := range level {
				misses[i] = 50
			}
			got, why := m.costOfSite(&s, misses, make([]float64, len(misses)), 64)
			if got == nil {
				t.Errorf("%s: %s", h.Name, why)
				break
			}
			if got.latency <= before {
				t.Errorf("%s: if half of all loads miss in the first %d levels, the latency is %v cycles, want more than %v, the latency with one level fewer", h.Name, level, got.latency, before)
			}
			before = got.latency
		}
	}
}

// TestWaitForLineFills checks how long a load waits for a line that an earlier load fetches. The
// load waits if the last reference to the line was the earlier load or a reference between the two
// loads.
func TestWaitForLineFills(t *testing.T) {
	m := levelledMachine(t)
	s := profile.Site{Kind: trace.Load, Bytes: 8, Strides: [profile.NumStrides]uint64{profile.IrregularStride: 100},
		Reuse: profile.Reuse{Cold: 10, Bins: []profile.BinCount{{Bin: 0, Count: 50}, {Bin: 2, Count: 30}, {Bin: 9, Count: 10}}}}
	load, why := m.costOfSite(&s, []float64{20, 10}, []float64{0, 0}, 64)
	if load == nil {
		t.Fatal(why)
	}
	fetching := &siteCost{delay: 100}
	for between, want := range map[int]float64{0: 50, 1: 50, 2: 80, 7: 80, 100: 80} {
		if got := fillWait(load, fetching, between); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d references between the loads: %v cycles, want %v", between, got, want)
		}
	}
	if got := fillWait(nil, fetching, 0) + fillWait(load, nil, 0); got != 0 {
		t.Errorf("%v cycles if a cost is unknown, want 0", got)
	}
}

// TestShareOfLineCrossings checks the share of references that cross a line boundary. Such a
// reference accesses one more line than its size requires.
func TestShareOfLineCrossings(t *testing.T) {
	for _, c := range []struct {
		bytes      uint32
		references uint64
		accesses   uint64
		want       float64
	}{
		{8, 100, 100, 0}, {32, 100, 150, 0.5}, {64, 100, 200, 1}, {128, 100, 200, 0}, {128, 100, 250, 0.5}, {0, 100, 200, 0}, {8, 100, 100, 0},
	} {
		s := profile.Site{Bytes: c.bytes, Reuse: profile.Reuse{Cold: 1, Bins: []profile.BinCount{{Bin: 1, Count: c.accesses - 1}}}}
		s.Strides[profile.UnitStride] = c.references
		if got := crossingShare(&s, 64); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestSitesBelongToTheirBlock checks that the site number of an instruction is counted from the
// first site of the instruction's block.
func TestSitesBelongToTheirBlock(t *testing.T) {
	p := &trace.Program{Blocks: []trace.Block{{FirstSite: 0, Sites: 2}, {FirstSite: 2, Sites: 2}}}
	r := siteCosts{sites: map[uint32]*siteCost{1: {latency: 7}, 2: {latency: 30, transfers: pipeline.Transfer{Cycles: 50}}, 3: {latency: 40, transfers: pipeline.Transfer{Cycles: 10}}}}
	run := pipeline.Run{Program: p, Visits: []float64{10, 5}}
	r.setCostFunctions(&run, []uint64{10, 20})
	for _, c := range []struct {
		block, site uint32
		want        float64
	}{{0, 0, 0}, {0, 1, 0}, {0, 2, 7}, {1, 1, 30}, {1, 2, 40}} {
		if got := run.LoadLatency(c.block, c.site); got != c.want {
			t.Errorf("site %d of block %d takes %v cycles, want %v", c.site, c.block, got, c.want)
		}
	}
	p = &trace.Program{Blocks: []trace.Block{{FirstSite: 0, Sites: 1, Flags: trace.Synthetic}, {FirstSite: 1}}} // a scatter
	r.sites = map[uint32]*siteCost{0: {references: 80, misses: pipeline.Misses{Scattered: pipeline.Transfer{Cycles: 3, Near: 2}}}}
	if got := r.transferCosts(p, []float64{0, 10}, []uint64{0, 20}); got[0].Cycles != 0 || got[1] != (pipeline.Transfer{Cycles: 120, Near: 80}) {
		t.Errorf("transfers of a scatter: %+v, want 120 cycles in the block of the instruction", got)
	}
	if run.Transfers[0].Cycles != 0 || run.Transfers[1].Cycles != 15 {
		t.Errorf("transfers %v, want 0 and 15", run.Transfers)
	}
}
