package diagnose

import (
	"math"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// TestRepeatedBeginningIsExtrapolated checks that, if a run repeats its beginning, the counts of
// the changed run are the counts of the beginning multiplied by the number of repetitions.
func TestRepeatedBeginningIsExtrapolated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const levels = 2
		sites, times := rapid.IntRange(1, 4).Draw(t, "sites"), uint64(rapid.IntRange(2, 9).Draw(t, "repetitions"))
		from, to, of, c := beginning{met: 1}, beginning{met: 1}, &counts{}, &counts{}
		draw := func(name string, most float64) float64 {
			return float64(rapid.Uint64Range(0, uint64(most)).Draw(t, name))
		}
		whole := func(x float64) float64 { return x * float64(times) }
		for range levels {
			b := make([]float64, sites)
			of.misses, of.coherence = append(of.misses, make([]float64, sites)), append(of.coherence, make([]float64, sites))
			c.misses, c.coherence = append(c.misses, make([]float64, sites)), append(c.coherence, make([]float64, sites))
			from.misses, from.coherence = append(from.misses, append([]float64{}, b...)), append(from.coherence, append([]float64{}, b...))
			to.misses, to.coherence = append(to.misses, append([]float64{}, b...)), append(to.coherence, append([]float64{}, b...))
		}
		for i := range sites {
			accesses := draw("accesses", 1000) + 1
			use := func(near float64) siteAccesses {
				return siteAccesses{accesses: uint64(accesses), near: uint64(near)}
			}
			near := draw("near", accesses)
			from.uses, to.uses = append(from.uses, use(near)), append(to.uses, use(draw("near after", accesses)))
			of.sites, c.sites = append(of.sites, siteCounts{siteAccesses: siteAccesses{accesses: uint64(accesses) * times, near: uint64(near) * times}}), append(c.sites, siteCounts{})
			for k := range levels {
				from.misses[k][i] = draw("misses", accesses)
				from.coherence[k][i] = draw("coherence", from.misses[k][i])
				to.misses[k][i] = draw("misses after", accesses)
				to.coherence[k][i] = draw("coherence after", to.misses[k][i])
				of.misses[k][i], of.coherence[k][i] = whole(from.misses[k][i]), whole(from.coherence[k][i])
			}
		}
		from.idle, to.idle = draw("idle", 1000), draw("idle after", 1000)
		of.idle, of.beginning = []waiting{{cycles: whole(from.idle)}, {cycles: 7, dynamic: true}}, &from
		if !of.represents(from) {
			t.Fatal("represents() = false, but the run repeats its beginning")
		}
		c.extend(of, &to)
		near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-9*(1+want) }
		for i := range sites {
			for k := range levels {
				if got, want := c.misses[k][i], whole(to.misses[k][i]); !near(got, want) {
					t.Errorf("level %d, site %d: %v misses, want %v", k, i, got, want)
				}
				if got, want := c.coherence[k][i], whole(to.coherence[k][i]); !near(got, want) {
					t.Errorf("level %d, site %d: %v coherence misses, want %v", k, i, got, want)
				}
			}
			if got, want := c.sites[i].near, to.uses[i].near*times; math.Abs(float64(got)-float64(want)) > 1 {
				t.Errorf("site %d: %d near accesses, want %d", i, got, want)
			}
		}
		if got, want := c.idleCycles(), whole(to.idle); !near(got, want) {
			t.Errorf("%v idle cycles, want %v", got, want)
		}
		if got, want := c.simulated, 1/float64(times); !near(got, want) {
			t.Errorf("simulated share is %v, want %v", got, want)
		}
		// Increase the coherence misses after the beginning.
		of.coherence[0][0] += 1 + 20*whole(sum(of.coherence[0]))
		if of.represents(from) {
			t.Error("represents() = true, but most waits are after the beginning")
		}
	})
}

// TestAccessCountsAtSynchronisationPoints checks that a replay stores its counts at each
// synchronisation point that follows enough references, or only at the requested synchronisation
// point. Later references must not change the stored counts.
func TestAccessCountsAtSynchronisationPoints(t *testing.T) {
	for _, until := range []int{0, 2} {
		var stops []int
		if until > 0 {
			stops = []int{until}
		}
		level := hierarchy.Cache{SizeBytes: 64 * 8, Ways: 2, LineBytes: 64}
		c := &counts{sites: make([]siteCounts, 1), falsely: make([]float64, 1), severally: make([]float64, 1), exchanged: make([]float64, 1), team: 2, pages: map[trace.Addr]*page{},
			misses: [][]float64{{0}}, coherence: [][]float64{{0}}}
		s := &replay{counts: c, numCores: 2, uses: make([]siteAccesses, 1), shift: 6, pageShift: pageShift, levels: []hierarchy.Cache{level}, caches: make([][]*lru[uint32], 1),
			group: []int{1}, private: 1, last: make([]lastOf, 2), perFetch: []float64{1}, native: []uint64{16}, atomic: []bool{false}, until: stops}
		s.schedule = schedule{threads: 2, open: true}
		var misses, lost []float64
		for region := range 3 {
			s.taken = uint64(leastBeginning) * uint64(region) // pretend that each earlier region had leastBeginning references
			for i := range 100 {
				s.row(&row{addr: 1<<20 + 4*uint64(i%2), bytes: 4, thread: uint8(i % 2), kind: trace.Store})
			}
			s.join()
			misses, lost = append(misses, c.misses[0][0]), append(lost, c.coherence[0][0])
		}
		want := []int{1, 2} // the regions after which counts must be stored; region 0 ends after too few references
		if until > 0 {
			want = []int{until - 1}
		}
		if len(s.begun) != len(want) || s.enough.Load() != (until > 0) {
			t.Fatalf("until = %d: %d beginnings, enough = %t; want %d beginnings, enough = %t", until, len(s.begun), s.enough.Load(), len(want), until > 0)
		}
		for n, region := range want {
			b := &s.begun[n]
			if b.met != region+1 || b.misses[0][0] != misses[region] || b.coherence[0][0] != lost[region] || b.uses[0].accesses != uint64(100*(region+1)) {
				t.Errorf("until = %d: beginning %+v, want %v misses and %v coherence misses after region %d", until, b, misses[region], lost[region], region)
			}
		}
	}
}

// TestSteadyRunIsExtrapolated uses runs that, after the second of two beginnings, repeat the part
// between the two beginnings. The test checks that the counts of a whole changed run are computed
// correctly from its counts at both beginnings. If the rest of a run misses more often than the
// part between the beginnings, the run is not steady.
func TestSteadyRunIsExtrapolated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const levels = 2
		sites, repetitions := rapid.IntRange(1, 4).Draw(t, "sites"), uint64(rapid.IntRange(1, 9).Draw(t, "repetitions"))
		draw := func(name string, least, most uint64) uint64 { return rapid.Uint64Range(least, most).Draw(t, name) }
		// The function "run" returns the counts of a run at two beginnings and at the end.
		run := func(name string, accesses []uint64) (begun []beginning, whole *counts) {
			begun, whole = []beginning{{met: 1}, {met: 2}}, &counts{misses: make([][]float64, levels), coherence: make([][]float64, levels)}
			for b := range begun {
				begun[b].misses, begun[b].coherence = make([][]float64, levels), make([][]float64, levels)
			}
			add := func(first, part uint64) [3]uint64 {
				return [3]uint64{first, first + part, first + part*(1+repetitions)}
			}
			for i := range sites {
				all, near, walks := add(accesses[2*i], accesses[2*i+1]), add(draw(name+" near", 0, 9), draw(name+" near", 0, 9)), add(draw(name+" walks", 0, 9), draw(name+" walks", 0, 9))
				use := func(at int) siteAccesses {
					return siteAccesses{accesses: all[at], near: min(near[at], all[at]), walks: float64(walks[at])}
				}
				for b := range begun {
					begun[b].uses = append(begun[b].uses, use(b))
				}
				whole.sites = append(whole.sites, siteCounts{references: all[2], siteAccesses: use(2)})
				for k := range levels {
					misses := add(draw(name+" misses", 10, 1000), draw(name+" misses", 10, 1000))
					for b := range begun {
						begun[b].misses[k], begun[b].coherence[k] = append(begun[b].misses[k], float64(misses[b])), append(begun[b].coherence[k], float64(misses[b]/2))
					}
					whole.misses[k], whole.coherence[k] = append(whole.misses[k], float64(misses[2])), append(whole.coherence[k], float64(misses[1]/2))
				}
			}
			idle := add(draw(name+" idle", 0, 100), draw(name+" idle", 0, 100))
			begun[0].idle, begun[1].idle = float64(idle[0]), float64(idle[1])
			whole.idle = []waiting{{cycles: float64(idle[2])}}
			return begun, whole
		}
		var accesses []uint64 // for each site: the accesses before the first beginning ends, and the accesses in the part that is repeated
		for range sites {
			accesses = append(accesses, draw("accesses", 0, 100), draw("accesses", 100, 200))
		}
		begun, of := run("before", accesses)
		changed, want := run("after", accesses)
		all, first := of.accesses(&begun[1])
		if steady := of.findSteady(begun); (steady != nil) != (first <= 0.75*all) {
			t.Fatalf("findSteady = %v for a run that repeats its part %d times", steady, repetitions)
		}
		of.steady = begun
		got := &counts{misses: make([][]float64, levels), coherence: make([][]float64, levels), sites: make([]siteCounts, sites)}
		for k := range levels {
			got.misses[k], got.coherence[k] = make([]float64, sites), make([]float64, sites)
		}
		for i := range sites {
			got.sites[i] = siteCounts{references: 7, split: 7}
		}
		got.extendSteady(of, changed)
		near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-9*(1+want) }
		for i := range sites {
			for k := range levels {
				if !near(got.misses[k][i], want.misses[k][i]) {
					t.Errorf("level %d, site %d: %v misses, want %v", k, i, got.misses[k][i], want.misses[k][i])
				}
			}
			if n, w := &got.sites[i], &want.sites[i]; n.accesses != w.accesses || !near(n.walks, w.walks) {
				t.Errorf("site %d: %d accesses and %v page walks, want %d and %v", i, n.accesses, n.walks, w.accesses, w.walks)
			}
			if n := &got.sites[i]; n.references != of.sites[i].references || n.split != n.references {
				t.Errorf("site %d: %d references, %d of them across line boundaries, want %d of both", i, n.references, n.split, of.sites[i].references)
			}
		}
		if !near(got.idleCycles(), want.idleCycles()) {
			t.Errorf("%v idle cycles, want %v", got.idleCycles(), want.idleCycles())
		}
		of.misses[1][0] += 0.5 * sum(of.misses[1])
		if of.findSteady(begun) != nil {
			t.Error("the rest of the run misses more often, but findSteady returns beginnings")
		}
	})
}
