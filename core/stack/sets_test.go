package stack

import "testing"

// TestRenumberMoves checks that renumbering moves does not change the results. TestRenumberMoves
// limits the numbers that are assigned to moves, because otherwise these numbers would not run out
// during a test.
func TestRenumberMoves(t *testing.T) {
	few := func() *Sets {
		m := NewSets(AllSetNumbers)
		m.last = 300
		return m
	}
	lines := make([]uint64, 20_000)
	for i := range lines {
		lines[i] = uint64(i*i%1009 + i%7*64)
	}
	out, again := make([]uint32, len(lines)), make([]uint32, len(lines))
	want, got := NewSets(AllSetNumbers), few()
	want.Distances(lines, out)
	renewed := 0
	for at := 0; at < len(lines); at += 100 {
		before := got.now
		got.Distances(lines[at:at+100], again[at:])
		if got.now < before {
			renewed++
		}
	}
	if renewed < 10 {
		t.Fatalf("the moves were renumbered %d times, want at least 10", renewed)
	}
	for i := range out {
		if out[i] != again[i] {
			t.Fatalf("access %d: distance %d, want %d", i, again[i], out[i])
		}
	}
	if *got.Depths() != *want.Depths() {
		t.Error("the depths differ from the depths without renumbering")
	}
}
