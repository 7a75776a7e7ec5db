package stack

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// For every rotation of the list, the function "newer" returns the same count as a loop over all
// entries.
func TestNewerEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := rapid.SampledFrom([]uint32{50, notCounted - 1}).Draw(t, "top")
		entries := rapid.SliceOfN(rapid.Uint32Range(top-50, top), MaxWays, MaxWays).Draw(t, "entries")
		slices.Sort(entries)
		slices.Reverse(entries)
		turn := rapid.Uint8().Draw(t, "turn")
		after := rapid.Uint32Range(top-50+never, top+1).Draw(t, "after")
		var l list
		want := 0
		for k, entry := range entries {
			l[slot(turn, k)] = entryOf(entry, 7)
			if entry >= after {
				want++
			}
		}
		if got := l.newer(turn, uint64(after)<<numberBit); got != want {
			t.Errorf("newer returned %d, want %d, the number of the entries %v that are at least %d", got, want, entries, after)
		}
	})
}

// A model with few lines has few pages of lists, because lists for more sets are created only when
// the lists for fewer sets overflow.
func TestNumberOfListPages(t *testing.T) {
	for _, c := range []struct {
		lines, want int // the field want is the expected number of pages
	}{{100, 1}, {600, 1 + 2}, {10_000, 1 + 2 + 32}, {1 << setBits, 1 + 2 + 32}, {3 << setBits, 1 + 2 + 32 + 512}} {
		m := NewSets(AllSetNumbers)
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
		if pages != c.want {
			t.Errorf("%d consecutive lines: %d pages of lists, want %d", c.lines, pages, c.want)
		}
	}
}
