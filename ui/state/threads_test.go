package state

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// The type "access" is one access in a trace with several threads.
type access struct {
	core  int
	line  uint64
	store bool
}

// The function "shared" returns the view of a trace with several threads. A naive
// implementation with lists of lines computes the view. The list of a coherent stack also
// contains holes, which are represented by the number 0, because no line has this number.
func shared(cores int, trace []access) *View {
	s := profile.Sharing{LineBytes: 64, Cores: make([]profile.Core, cores), Domains: []profile.Domain{{Members: make([]profile.Member, cores)}}}
	d := &s.Domains[0]
	lists, holes, lost := make([][]uint64, cores), make([][]uint64, cores), make([]map[uint64]int, cores)
	var all []uint64
	for c := range cores {
		s.Cores[c].Threads = []uint32{uint32(c)}
		d.Cores = append(d.Cores, uint32(c))
		lost[c] = map[uint64]int{}
	}
	var lines []uint64
	for _, a := range trace {
		line := a.line + 1
		lines = append(lines, a.line)
		core := &s.Cores[a.core]
		toFront(&lists[a.core], line, &core.Private.Cold, &core.Private.Distances)
		toFront(&all, line, &d.Members[a.core].Cold, &d.Members[a.core].Distances)
		if depth, ok := lost[a.core][line]; ok {
			delete(lost[a.core], line)
			core.Coherent.Lost.Add(uint64(depth))
			fill(&holes[a.core], line, -1)
		} else {
			at := slices.Index(holes[a.core], line)
			if at < 0 {
				core.Coherent.Cold++
			} else {
				core.Coherent.Distances.Add(uint64(at))
			}
			fill(&holes[a.core], line, at)
		}
		for c := range cores {
			if at := slices.Index(holes[c], line); a.store && c != a.core && at >= 0 {
				holes[c][at], lost[c][line] = 0, at
				s.Cores[c].Coherent.Invalidations++
			}
		}
	}
	v := tabled(lines)
	v.Profile.Sharing = []profile.Sharing{s}
	return v
}

func toFront(list *[]uint64, line uint64, cold *uint64, distances *profile.Histogram) {
	if at := slices.Index(*list, line); at >= 0 {
		distances.Add(uint64(at))
		*list = slices.Delete(*list, at, at+1)
	} else {
		*cold++
	}
	*list = slices.Insert(*list, 0, line)
}

// The function "fill" moves a line from the given position to the front of a list. If the position
// is negative, the line is new, and is inserted at the front. The line fills the topmost hole above
// its old position, and a hole remains at its old position. If there is no such hole, the old
// position is removed.
func fill(list *[]uint64, line uint64, at int) {
	hole := slices.Index(*list, 0)
	if at >= 0 && (hole < 0 || hole > at) {
		*list = slices.Delete(*list, at, at+1)
	} else {
		if at >= 0 {
			(*list)[at] = 0
		}
		if hole >= 0 {
			*list = slices.Delete(*list, hole, hole+1)
		}
	}
	*list = slices.Insert(*list, 0, line)
}

func drawTrace(t *rapid.T, cores int) []access {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) access {
		return access{rapid.IntRange(0, cores-1).Draw(t, "core"), rapid.Uint64Range(0, 20).Draw(t, "line"), rapid.Bool().Draw(t, "store")}
	}), 1, 200).Draw(t, "trace")
}

// TestThreadCountsOfExample checks the example in MODELS §6.4. Thread 1 has three cold misses, an
// access at distance 1, and a coherence miss on a line at depth 1.
func TestThreadCountsOfExample(t *testing.T) {
	v := shared(2, []access{{0, 'a', false}, {0, 'b', false}, {1, 'a', true}, {0, 'c', false}, {0, 'b', false}, {0, 'a', false}})
	threads := v.Threads()
	rows := func(bytes uint64) []string { return threads.OwnTable(bytes).Row(0)[1:] }
	if got := strings.Join(rows(64), " "); got != "5 5 3 2 0 5 1" {
		t.Errorf("counts in caches of one line = %s, want 5 5 3 2 0 5 1", got)
	}
	if got := strings.Join(rows(128), " "); got != "5 4 3 0 1 4 1" {
		t.Errorf("counts in caches of two lines = %s, want 5 4 3 0 1 4 1", got)
	}
	if s := threads.OwnSentence(128); !strings.Contains(s, "stores by other threads cause 1 of these misses (20\u202f%)") {
		t.Error(s)
	}
}

// TestThreadsAddUp checks that, for every cache size, the numbers of misses by cause add up to
// each core's misses. A larger cache must never have more misses, and a group of one core must
// have the same misses as that core's private cache.
func TestThreadsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cores := rapid.IntRange(2, 5).Draw(t, "cores")
		v := shared(cores, drawTrace(t, cores))
		threads := v.Threads()
		for lines := uint64(1); lines < 24; lines++ {
			own := threads.OwnTable(lines * 64).Source()
			for i := range own.Rows {
				number := func(key string) float64 { x, _ := cell(own, i, key).Number(); return x }
				if misses := number("misses"); number("cold")+number("coherence") > misses || misses > number("accesses") ||
					misses != float64(threads.cores[i].coherent.Misses(lines)) || number("private_misses") != float64(threads.cores[i].private.Misses(lines)) {
					t.Fatalf("core %d, %d lines: %v", i, lines, own.Rows[i])
				}
			}
			alone := make(Groups, cores)
			for i := range alone {
				alone[i] = i
			}
			if says := threads.SharedSentence(alone, lines*64); !threads.Known(alone) || !strings.HasSuffix(says, "the number of misses would be the same.") {
				t.Fatalf("alone: %s", says)
			}
			sum := uint64(0)
			for core := range threads.cores {
				misses, private := threads.cores[core].shared.Misses(lines), threads.cores[core].private
				sum += misses
				e, bounded := v.Run.Asker().EffectiveShare(threads.level(lines*64, hierarchy.AllCores), core)
				if bounded != (misses >= private.Cold) || bounded && (private.Misses(e) > misses || e > 0 && private.Misses(e-1) <= misses) {
					t.Fatalf("misses of core %d = %d with its effective share of %d lines, want about its %d misses in the shared cache", core, private.Misses(e), e, misses)
				}
			}
			if says := threads.SharedSentence(OneGroup(cores), lines*64); !strings.Contains(says, "the threads miss "+Exact(sum)+" times") {
				t.Fatalf("misses of all threads = %d, sentence = %q; want the number in the sentence", sum, says)
			}
			if sum != v.Curve.Misses(lines) {
				t.Fatalf("%d lines: sum of the threads' misses = %d, want the shared cache's %d", lines, sum, v.Curve.Misses(lines))
			}
		}
	})
}

// TestGroups checks that groups are restored from the URL, and that the method Move renumbers them
// in the order of their first cores.
func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := OneGroup(rapid.IntRange(2, 8).Draw(t, "cores"))
		for range rapid.IntRange(0, 20).Draw(t, "moves") {
			g = g.Move(rapid.IntRange(-1, len(g)).Draw(t, "core"), rapid.IntRange(0, 9).Draw(t, "group"))
			if !slices.Equal(ParseGroups(g.String(), len(g)), g) || !slices.Equal(g.renumber(), g) || g[0] != 0 {
				t.Fatalf("ParseGroups does not restore %v from %q", g, g.String())
			}
		}
	})
	for _, text := range []string{"", "0-1", "0-x-1", "0-1-7", "1-2-2-2"} {
		if g := ParseGroups(text, 3); !slices.Equal(g, OneGroup(3)) {
			t.Errorf("%q: %v", text, g)
		}
	}
	threads := shared(4, []access{{0, 1, false}, {1, 1, false}, {2, 1, false}, {3, 1, true}}).Threads()
	if got := threads.Domains(Groups{0, 0, 1, 2}); len(got) != 1 || !slices.Equal(got[0], []uint32{0, 1}) {
		t.Errorf("domains = %v", got)
	}
	if s := threads.SharedSentence(Groups{0, 0, 1, 2}, 64); !strings.Contains(s, "analyse the trace again") {
		t.Error(s)
	}
	if table := threads.SharedTable(Groups{0, 0, 1, 2}, 64); table.Rows != 0 || !strings.Contains(table.Caption, "analyse the trace again") {
		t.Errorf("%+v", table)
	}
}

// TestThreadsCharts checks that the charts have three curves for each core, and a value for every
// core at every size.
func TestThreadsCharts(t *testing.T) {
	v := shared(3, []access{{0, 1, false}, {1, 1, true}, {0, 1, false}, {2, 5, false}})
	for _, s := range Stacks() {
		c := v.Threads().Overlaid(s, 32<<10)
		if len(c.Series) != 3 || len(c.At) < 10 || c.At[0] != 64 || c.Summary == "" {
			t.Errorf("%s: series = %d, points = %d; want 3 series from 64 bytes", s, len(c.Series), len(c.At))
		}
		for _, series := range c.Series {
			if len(series.Y) != len(c.At) {
				t.Errorf("%s: values of a series = %d, want a value for each of %d sizes", s, len(series.Y), len(c.At))
			}
		}
	}
	if c := v.Threads().Each(0); len(c.Series) != 3 || c.Series[1].Y[0] <= c.Series[0].Y[0]-1e-9 || !c.Small {
		t.Errorf("%+v", c)
	}
	if v.Threads() == nil || tabled([]uint64{1, 2}).Threads() != nil {
		t.Error("Threads() = nil for a profile with per-thread stacks, or not nil for a profile without per-thread stacks")
	}
}
