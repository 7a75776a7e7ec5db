package simulate

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// victimCache is a direct-mapped cache with a victim cache as Jouppi describes it (Improving
// Direct-Mapped Cache Performance, ISCA 1990, §3.2). A line that the direct-mapped cache evicts
// moves to the victim cache, which is fully associative with LRU replacement. If an access misses in
// the direct-mapped cache and hits in the victim cache, the two lines are swapped.
type victimCache struct {
	direct  []cachedLine // indexed by set
	victims []cachedLine // most recently inserted line first
	most    int          // maximum number of victims

	misses, swaps, reads, writes uint64
}

type cachedLine struct {
	present, dirty bool
	number         uint64
}

func (c *victimCache) access(line uint64, write bool) {
	here := &c.direct[line%uint64(len(c.direct))]
	if !here.present || here.number != line {
		c.miss(here, line)
	}
	here.dirty = here.dirty || write
}

func (c *victimCache) miss(here *cachedLine, line uint64) {
	c.misses++
	evicted := *here
	at := slices.IndexFunc(c.victims, func(v cachedLine) bool { return v.number == line })
	if at >= 0 {
		c.swaps++
		*here = c.victims[at]
		c.victims = slices.Delete(c.victims, at, at+1)
	} else {
		c.reads++
		*here = cachedLine{present: true, number: line}
	}
	if !evicted.present {
		return
	}
	if c.victims = slices.Insert(c.victims, 0, evicted); len(c.victims) > c.most {
		if c.victims[c.most].dirty {
			c.writes++
		}
		c.victims = c.victims[:c.most]
	}
}

// A small, fully associative, exclusive level behaves like a victim cache.
func TestExclusiveLevelIsVictimCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets, most := rapid.IntRange(1, 8).Draw(t, "sets"), rapid.IntRange(1, 15).Draw(t, "victims")
		const line = 16
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{
			{Name: "L1", LineBytes: line, SizeBytes: uint64(sets) * line, Ways: 1},
			{Name: "victims", LineBytes: line, SizeBytes: uint64(most) * line, Inclusion: hierarchy.Exclusive},
		}}
		b, want := trace.NewBatch(0), &victimCache{direct: make([]cachedLine, sets), most: most}
		for range rapid.IntRange(1, 400).Draw(t, "references") {
			number, write := rapid.Uint64Range(0, 30).Draw(t, "line"), rapid.Bool().Draw(t, "write")
			kind := trace.Load
			if write {
				kind = trace.Store
			}
			b.Append(kind, number*line, 4, 0, 0)
			want.access(number, write)
		}
		s := begin(t, h, Options{})
		if err := s.Consume(b); err != nil {
			t.Fatal(err)
		}
		lines := held(s.caches[1][0])
		r := s.Finish()
		l1, victims := r.Levels[0].Run, r.Levels[1].Run
		if l1.Misses() != want.misses || victims.Accesses() != want.misses || victims.Hits() != want.swaps || victims.Given != want.swaps {
			t.Fatalf("%d misses in L1, %d of %d accesses hit in the exclusive level; want %d misses, of which %d swap lines", l1.Misses(), victims.Hits(), victims.Accesses(), want.misses, want.swaps)
		}
		if r.Memory.Reads != want.reads || r.Memory.Writes != want.writes {
			t.Fatalf("memory traffic is %+v, want %d reads and %d writes", r.Memory, want.reads, want.writes)
		}
		dirty := uint64(0)
		for _, l := range append(want.direct, want.victims...) {
			if l.dirty {
				dirty++
			}
		}
		if r.Flush.Writes != dirty {
			t.Fatalf("%d lines are dirty at the end, want %d", r.Flush.Writes, dirty)
		}
		if len(lines) != len(want.victims) {
			t.Fatalf("the exclusive level contains the lines %d, want %v", lines, want.victims)
		}
		for _, v := range want.victims {
			if !slices.Contains(lines, v.number) {
				t.Fatalf("the exclusive level contains the lines %d, want %v", lines, want.victims)
			}
		}
	})
}

// runOn simulates references to lines of 16 bytes. Each step names a thread, a line, and whether
// the reference is a store.
func runOn(t *testing.T, h hierarchy.Hierarchy, steps []cacheStep) *Simulator {
	b := trace.NewBatch(0)
	b.NeedThread()
	for _, step := range steps {
		kind := trace.Load
		if step.write {
			kind = trace.Store
		}
		b.Append(kind, step.line*16, 4, step.thread, 0)
	}
	s := begin(t, h, Options{})
	if err := s.Consume(b); err != nil {
		t.Fatal(err)
	}
	return s
}

type cacheStep struct {
	thread uint32
	line   uint64
	write  bool
}

// expectVictim compares the counts of a level that receives a dirty victim, and checks whether a
// line is in the level and dirty.
func expectVictim(t *testing.T, s *Simulator, level int, line trace.Line, want Counts) {
	t.Helper()
	l := s.caches[level][0]
	got := s.Result().Levels[level].Run
	got = Counts{WriteBacksReceived: got.WriteBacksReceived, WriteBackMisses: got.WriteBackMisses, Fills: got.Fills, Given: got.Given, CleanVictims: got.CleanVictims}
	if got != want {
		t.Errorf("%s: counts %+v, want %+v", l.cache.Name, got, want)
	}
	if present, dirty := l.tags.remove(line); !present || !dirty {
		t.Errorf("%s: line %d is present: %t, dirty: %t, want a dirty line", l.cache.Name, line, present, dirty)
	}
}

// If a dirty victim is also in the level that receives it, the level's copy is updated and becomes
// dirty. Outdated copies in exclusive levels further below are removed.
func TestDirtyVictimInTwoLevels(t *testing.T) {
	cache := func(name string, lines uint64, how hierarchy.Inclusion) hierarchy.Cache {
		return hierarchy.Cache{Name: name, LineBytes: 16, SizeBytes: 16 * lines, Inclusion: how}
	}
	store := func(line uint64) cacheStep { return cacheStep{0, line, true} }
	load := func(line uint64) cacheStep { return cacheStep{0, line, false} }
	t.Run("non-inclusive", func(t *testing.T) { // L2 has a clean copy of line 0 when L1 evicts the line
		s := runOn(t, hierarchy.Hierarchy{Levels: []hierarchy.Cache{cache("L1", 1, hierarchy.NonInclusive), cache("L2", 4, hierarchy.NonInclusive)}},
			[]cacheStep{store(0), load(1)})
		expectVictim(t, s, 1, 0, Counts{WriteBacksReceived: 1, Fills: 2})
	})
	t.Run("outdated copy in an exclusive level", func(t *testing.T) { // L2 evicts the clean copy of line 0 to L3 before L1 evicts the line
		s := runOn(t, hierarchy.Hierarchy{Levels: []hierarchy.Cache{cache("L1", 2, hierarchy.NonInclusive), cache("L2", 1, hierarchy.NonInclusive), cache("L3", 4, hierarchy.Exclusive)}},
			[]cacheStep{store(0), load(1), load(2)})
		if lines := held(s.caches[2][0]); slices.Contains(lines, 0) || len(lines) != 2 {
			t.Errorf("L3 contains the lines %d, want 1 and 2", lines)
		}
		if n := s.Result().Levels[2].Run.Given; n != 1 {
			t.Errorf("L3 counts %d lines that moved up, want 1", n)
		}
		expectVictim(t, s, 1, 0, Counts{WriteBacksReceived: 1, WriteBackMisses: 1, Fills: 4})
	})
	t.Run("exclusive", func(t *testing.T) { // L2 has line 0, because the other core evicted its clean copy
		shared := cache("L2", 4, hierarchy.Exclusive)
		shared.SharedBy = hierarchy.AllCores
		s := runOn(t, hierarchy.Hierarchy{Levels: []hierarchy.Cache{cache("L1", 1, hierarchy.NonInclusive), shared}},
			[]cacheStep{load(0), {1, 0, false}, load(1), {1, 0, true}, {1, 2, false}})
		expectVictim(t, s, 1, 0, Counts{WriteBacksReceived: 1, Fills: 1, CleanVictims: 1})
	})
}
