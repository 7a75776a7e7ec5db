package export

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// drawSites returns a profile whose histogram is divided among sites.
func drawSites(t *rapid.T) *profile.Profile {
	l := profile.Locality{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load}}}
	sites := &profile.Sites{LineBytes: 64, Code: make([]profile.Site, rapid.IntRange(1, 5).Draw(t, "sites"))}
	bins := make([]map[int]uint64, len(sites.Code))
	for i := range sites.Code {
		bins[i] = map[int]uint64{}
		sites.Code[i].Number = uint32(i)
		sites.Code[i].Function = rapid.SampledFrom([]string{"", "main", "solve"}).Draw(t, "function")
	}
	for range rapid.IntRange(0, 40).Draw(t, "accesses") {
		i := rapid.IntRange(0, len(bins)-1).Draw(t, "site")
		d := rapid.Uint64Range(0, 1<<rapid.IntRange(0, 20).Draw(t, "bits")).Draw(t, "distance")
		n := rapid.Uint64Range(1, 1<<30).Draw(t, "count")
		l.Kinds[0].Distances.AddN(d, n)
		bins[i][profile.SiteBin(uint32(d))] += n
	}
	for i := range sites.Code {
		c := &sites.Code[i]
		c.Reuse.Cold = rapid.Uint64Range(0, 99).Draw(t, "cold")
		l.Kinds[0].Cold += c.Reuse.Cold
		for bin := range profile.SiteBins {
			if n := bins[i][bin]; n > 0 {
				c.Reuse.Bins = append(c.Reuse.Bins, profile.BinCount{Bin: uint8(bin), Count: n})
			}
		}
		c.Strides[profile.UnitStride] = c.Reuse.Accesses()
	}
	return &profile.Profile{Locality: []profile.Locality{l}, Sites: sites}
}

// TestSheetsAddUpToTheRun checks that the counts of each event, over all locations, add up to the
// number for the whole run.
func TestSheetsAddUpToTheRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawSites(t)
		level := attribution.Attribution{Level: levelOf("L1"), Rest: rapid.Float64Range(0, 100).Draw(t, "rest")}
		misses := level.Rest
		for range p.Sites.Code {
			level.Sites = append(level.Sites, rapid.Float64Range(0, 1<<40).Draw(t, "misses"))
			misses += level.Sites[len(level.Sites)-1]
		}
		s := NewSheet(&Places{Profile: p, Levels: []attribution.Attribution{level, level}, Name: strings.ToUpper})
		counts, cold := p.Locality[0].Histogram(trace.AllKinds)
		var distance uint64
		for d, n := range counts.All() {
			distance += d * n
		}
		want := []uint64{counts.Total() + cold, counts.Total() + cold, uint64(math.Round(misses)), uint64(math.Round(misses)), cold, distance}
		if got := s.Totals(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("the totals are %d, want %d", got, want)
		}
		for i := range level.Sites {
			if e, symbol := &s.Entries[i], p.Sites.Code[i].Function; symbol != "" && (e.Symbol != symbol || e.Function != strings.ToUpper(symbol)) {
				t.Fatalf("unexpected name of symbol %s: %s", e.Symbol, e.Function)
			}
			if got := float64(s.Entries[i].Counts[s.Event("L1_misses")]); math.Abs(got-level.Sites[i]) >= 1 {
				t.Fatalf("the %v misses of a site are rounded to %v", level.Sites[i], got)
			}
		}
		if s.Events[s.Main].Key != "L1_misses" {
			t.Fatalf("the main event is %v, want the misses of the first level", s.Events[s.Main])
		}
	})
}

func levelOf(name string) hierarchy.Level { return hierarchy.Level{Cache: hierarchy.Cache{Name: name}} }

func TestSheetOfOneSite(t *testing.T) {
	p := &profile.Profile{Locality: []profile.Locality{{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load, Cold: 2}}}},
		Sites: &profile.Sites{LineBytes: 64, Code: []profile.Site{{Number: 7, Reuse: profile.Reuse{Cold: 2}}}}}
	p.Sites.Code[0].Strides[profile.IrregularStride] = 2
	s := NewSheet(&Places{Profile: p, Levels: []attribution.Attribution{
		{Level: levelOf("L 1"), Sites: []float64{1.5}, Rest: 1}, {Level: levelOf("L-1"), Sites: []float64{2}}}})
	if got := fmt.Sprintf("%s %d %s %d", s.Entries[0].Name(), s.Entries[0].Counts, s.Entries[1].Name(), s.Entries[1].Counts); got != "site 7 [2 2 2 2 2 0] (conflict misses without a source location) [0 0 1 0 0 0]" {
		t.Error(got)
	}
	if s.Event("L_1_misses") != 2 || s.Event("L_1_misses2") != 3 {
		t.Errorf("unexpected events: %v", s.Events)
	}
	if plain := NewSheet(&Places{Profile: p}); plain.Events[plain.Main].Key != "cold" {
		t.Errorf("unexpected main event without levels: %v", plain.Events[plain.Main])
	}
}
