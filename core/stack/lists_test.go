package stack

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// newer counts what a loop over all entries counts, however the list is turned.
func TestNewer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := rapid.SampledFrom([]uint32{50, notThere - 1}).Draw(t, "top")
		entries := rapid.SliceOfN(rapid.Uint32Range(top-50, top), MaxWays, MaxWays).Draw(t, "entries")
		slices.Sort(entries)
		slices.Reverse(entries)
		turn := rapid.Uint8().Draw(t, "turn")
		after := rapid.Uint32Range(top-50+never, top+1).Draw(t, "after")
		var l list
		want := 0
		for k, entry := range entries {
			l[at(turn, k)] = entry
			if entry >= after {
				want++
			}
		}
		if got := l.newer(turn, after); got != want {
			t.Errorf("%d of %v are from %d on, want %d", got, entries, after, want)
		}
	})
}

// A model of few lines has few pages of lists, and one of many lines all.
func TestListsGrow(t *testing.T) {
	for _, c := range []struct {
		lines, most int // pages
	}{{100, 24}, {10_000, 330}, {1 << setBits, 3 + 32 + 128 + 512}} {
		m := NewSets()
		lines, out := make([]uint64, 2*c.lines), make([]uint32, 2*c.lines)
		for i := range lines {
			lines[i] = uint64(12_345 + i%c.lines)
		}
		m.Distances(lines, out)
		m.Depths()
		pages := 0
		for k := range m.recent.lists {
			for _, p := range m.recent.lists[k].pages {
				if p != nil {
					pages++
				}
			}
		}
		if pages > c.most || c.lines == 1<<setBits && pages < c.most {
			t.Errorf("%d lines in a row: %d pages of lists, want at most %d", c.lines, pages, c.most)
		}
	}
}
