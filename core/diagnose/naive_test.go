package diagnose

import (
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// naive replays the references of one site with plain lists and maps. naive simulates a private
// level, and a level that is shared by pairs of cores.
type naive struct {
	near      map[uint8][]trace.Line // each core's lines, most recently used first
	caches    [2]map[uint8]map[trace.Line][]trace.Line
	sharers   map[trace.Line]map[uint8]bool
	lost      map[trace.Line]map[uint8]bool
	modified  map[trace.Addr]map[uint8]bool // keyed by word: the cores that have lost the line, if another core has then stored to the word
	contended map[trace.Line]bool
	open      bool                          // whether several threads are running
	stored    map[trace.Addr]map[uint8]bool // keyed by word: the threads that stored to the word while several threads were running

	nears, coherence, falsely, severally, exchanged float64
	misses                                          [2]float64
}

// naiveSets and naiveWays are the numbers of sets and ways of both levels.
const naiveSets, naiveWays = 4, 2

const blank = ^trace.Line(0)

// remove reports whether a line is in a list, and returns the list without the line.
func remove(list []trace.Line, at trace.Line) (bool, []trace.Line) {
	i := slices.Index(list, at)
	if i < 0 {
		return false, list
	}
	return true, append(slices.Clone(list[:i]), list[i+1:]...)
}

// access simulates an access by a core.
func (n *naive) access(core uint8, addr trace.Addr, store bool) {
	at, word := addr/64, addr/4
	if n.sharers[at] == nil {
		n.sharers[at], n.lost[at] = map[uint8]bool{}, map[uint8]bool{}
	}
	lost := n.lost[at][core]
	honest := n.modified[word][core]
	exchanged := len(n.stored[word]) > 1 || len(n.stored[word]) == 1 && !n.stored[word][core]
	delete(n.lost[at], core)
	for word := at * 16; word < (at+1)*16; word++ {
		delete(n.modified[word], core)
	}
	if store {
		if n.open {
			if n.stored[word] == nil {
				n.stored[word] = map[uint8]bool{}
			}
			n.stored[word][core] = true
		}
		for other := range n.sharers[at] {
			if other != core {
				n.lost[at][other] = true
				delete(n.sharers[at], other)
				if i := slices.Index(n.near[other], at); i >= 0 {
					n.near[other][i] = blank
				}
				_, n.caches[0][other][at%naiveSets] = remove(n.caches[0][other][at%naiveSets], at)
			}
		}
	}
	n.sharers[at][core] = true
	if store {
		if n.modified[word] == nil {
			n.modified[word] = map[uint8]bool{}
		}
		for other := range n.lost[at] {
			n.modified[word][other] = true
		}
	}
	if len(n.near[core]) > 0 && n.near[core][0] == at && !lost {
		n.nears++
		return
	}
	was, others := remove(n.near[core], at)
	if was {
		n.nears++
	}
	n.near[core] = append([]trace.Line{at}, others...)
	n.near[core] = n.near[core][:min(len(n.near[core]), nearLines+1)]
	if lost {
		n.contended[at] = true
		n.coherence++
		if !honest {
			n.falsely++
		}
		if exchanged {
			n.exchanged++
		}
		for word := at * 16; word < (at+1)*16; word++ {
			if len(n.stored[word]) > 1 {
				n.severally++
				break
			}
		}
	}
	for level := range n.caches {
		owner := core / uint8(1+level)
		if n.caches[level][owner] == nil {
			n.caches[level][owner] = map[trace.Line][]trace.Line{}
		}
		set := n.caches[level][owner]
		was, others := remove(set[at%naiveSets], at)
		if !was {
			n.misses[level]++
		}
		set[at%naiveSets] = append([]trace.Line{at}, others...)
		set[at%naiveSets] = set[at%naiveSets][:min(len(set[at%naiveSets]), naiveWays)]
	}
}

// TestReplay compares a replay on four cores with a naive replay.
func TestReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &counts{sites: make([]siteCounts, 1), falsely: make([]float64, 1), severally: make([]float64, 1), exchanged: make([]float64, 1), team: 4, pages: map[trace.Addr]*page{},
			misses: [][]float64{{0}, {0}}, coherence: [][]float64{{0}, {0}}}
		level := hierarchy.Cache{SizeBytes: 64 * naiveSets * naiveWays, Ways: naiveWays, LineBytes: 64}
		s := &replay{counts: c, numCores: 4, uses: make([]siteAccesses, 1), shift: 6, pageShift: pageShift, levels: []hierarchy.Cache{level, level}, caches: make([][]*lru[uint32], 2),
			group: []int{1, 2}, private: 1, last: make([]lastOf, 4), perFetch: []float64{1, 2}, native: []uint64{16}, atomic: []bool{false}}
		s.schedule = schedule{threads: 4, open: rapid.Bool().Draw(t, "open")}
		s.placer = newPlacer(c, 6, pageShift)
		s.placer.start()
		defer s.placer.finish()
		n := &naive{near: map[uint8][]trace.Line{}, sharers: map[trace.Line]map[uint8]bool{}, lost: map[trace.Line]map[uint8]bool{},
			modified: map[trace.Addr]map[uint8]bool{}, contended: map[trace.Line]bool{}, open: s.open, stored: map[trace.Addr]map[uint8]bool{}}
		for level := range n.caches {
			n.caches[level] = map[uint8]map[trace.Line][]trace.Line{}
		}
		lines := rapid.Uint64Range(1, 5).Draw(t, "lines") * rapid.SampledFrom([]uint64{1, 1, 100}).Draw(t, "apart")
		for range rapid.IntRange(1, 300).Draw(t, "accesses") {
			core, store := rapid.Uint8Range(0, 3).Draw(t, "core"), rapid.IntRange(0, 2).Draw(t, "store") == 0
			addr := 1<<20 + rapid.Uint64Range(0, lines-1).Draw(t, "line")*64 + 4*rapid.Uint64Range(0, 15).Draw(t, "word")
			kind := trace.Load
			if store {
				kind = trace.Store
			}
			s.row(&row{addr: addr, bytes: 4, thread: core, kind: kind})
			n.access(core, addr, store)
		}
		contended := 0
		c.lines.each(func(at trace.Line, of *history) {
			if of.contended {
				contended++
				if !n.contended[at] {
					t.Errorf("line %d is contended, but not in the naive replay", at)
				}
			}
		})
		if got := float64(s.uses[0].near); got != n.nears {
			t.Errorf("%v near accesses, want %v", got, n.nears)
		}
		if contended != len(n.contended) || c.coherence[0][0] != n.coherence || c.falsely[0] != n.falsely || c.severally[0] != n.severally || c.exchanged[0] != n.exchanged || c.misses[0][0] != n.misses[0] || c.misses[1][0] != n.misses[1] {
			t.Errorf("got %+v and %d contended lines; want misses: %v in the private level, %v in the shared level; coherence misses: %v in all, %v by false sharing, %v in lines with several writers, %v for words of other threads; %d contended lines", c, contended, n.misses[0], n.misses[1], n.coherence, n.falsely, n.severally, n.exchanged, len(n.contended))
		}
	})
}

// TestLineTable checks that a table finds exactly the lines that it contains.
func TestLineTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table lineTable
		want := map[trace.Line]uint64{}
		by := rapid.SampledFrom([]uint64{1, 3, 64, 1 << 40}).Draw(t, "by")
		for i := range rapid.Uint64Range(0, 500).Draw(t, "lines") {
			at := by * rapid.Uint64Range(0, 300).Draw(t, "line")
			table.need(at).modified = uint32(i) + 1
			want[at] = i + 1
		}
		for i := range uint64(400) {
			got := uint64(0)
			if of := table.find(by * i); of != nil {
				got = uint64(of.modified)
			}
			if got != want[by*i] {
				t.Errorf("line %d: modified = %d, want %d", by*i, got, want[by*i])
			}
		}
	})
}

// TestTLBKeepsRecentPages checks that a TLB keeps the most recently used pages.
func TestTLBKeepsRecentPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, by := &recent{}, rapid.SampledFrom([]uint64{1, 512, 1 << 40}).Draw(t, "by")
		var held []uint64
		for i, page := range rapid.SliceOfN(rapid.Uint64Range(0, firstPages+firstPages/4), 0, 500).Draw(t, "pages") {
			was, others := remove(held, page*by)
			held = append([]uint64{page * by}, others...)
			held = held[:min(len(held), firstPages)]
			if got := c.use(page * by); got != was {
				t.Fatalf("access %d: use = %t, want %t", i, got, was)
			}
		}
	})
}

// TestNarrowAndWideLRUSets checks that both narrow and wide sets keep the most recently used lines.
func TestNarrowAndWideLRUSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ways := rapid.SampledFrom([]uint64{1, 2, fewWays, fewWays + 1, 64}).Draw(t, "ways")
		c := newLRU[uint64](ways, ways)
		var held []trace.Line
		for i, at := range rapid.SliceOf(rapid.Uint64Range(0, ways+ways/4)).Draw(t, "lines") {
			was, others := remove(held, at)
			held = append([]trace.Line{at}, others...)
			held = held[:min(len(held), int(ways))]
			if got := c.use(at, at+1); got != was {
				t.Fatalf("access %d: use = %t, want %t", i, got, was)
			}
		}
	})
}
