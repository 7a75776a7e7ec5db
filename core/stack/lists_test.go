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
