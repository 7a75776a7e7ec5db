package sma

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"pgregory.net/rapid"
)

// TestLineCache compares lineCache with a simulation that searches lists.
func TestLineCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := geometry{Sets: rapid.Uint32Range(1, 5).Draw(t, "sets"), Ways: rapid.Uint32Range(1, 5).Draw(t, "ways"), LineBytes: 64}
		h, want, known := newLineCache(g), make(lru, g.Sets), map[uint64]bool{}
		for _, line := range rapid.SliceOfN(rapid.Uint64Range(0, 40), 1, 300).Draw(t, "lines") {
			hit, before := h.access(line)
			if wantHit := want.hit(line, int(g.Ways)); hit != wantHit || before != known[line] {
				t.Fatalf("line %d: hit = %v, before = %v; want %v and %v", line, hit, before, wantHit, known[line])
			}
			known[line] = true
		}
	})
}

// TestReferencesOutsideLoops checks that the misses of references outside loops are exact, because
// they are composed access by access.
func TestReferencesOutsideLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []loops.Item
		for i, at := range rapid.SliceOfN(rapid.Uint64Range(0, 500), 1, 200).Draw(t, "addresses") {
			items = append(items, load(uint32(i), base+8*at))
		}
		tree, err := (&loops.Nest{Items: items}).Build()
		if err != nil {
			t.Fatal(err)
		}
		c := drawCache(t)
		if c.LineBytes < 64 {
			c.LineBytes = 64
		}
		want, err := misses.Run(tree, c)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Analyze(tree, c)
		if err != nil || r.Total.Misses != float64(want.Total.Misses) {
			t.Fatalf("Analyze in %v = %+v, error %v, want %d misses", c, r.Total, err, want.Total.Misses)
		}
	})
}
