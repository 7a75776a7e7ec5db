package diagnose

import (
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestReorder compares the result with loops that were interchanged by hand. Block 1 is the header
// of the outer loop, and block 2 is the header of the inner loop. Block 3 runs in some iterations
// of the inner loop. Block 4 follows both loops. Block 5 belongs to a function that the inner loop
// calls.
func TestReorder(t *testing.T) {
	var got, want []trace.Addr
	o := &reorder{loop: []uint32{around, 2, 2, 2, around, 0}, inner: []bool{2: true, 5: false}, now: around, rare: make([]bool, 1)}
	o.give = func(w *row) { got = append(got, w.addr) }
	block := func(n uint32) { o.take(&row{kind: trace.BlockEntry, site: n}) }
	load := func(addr trace.Addr) { o.take(&row{kind: trace.Load, addr: addr}) }
	block(0)
	load(7)
	for i := range trace.Addr(3) {
		block(1)
		load(1000 + i)
		for j := range 2 + i {
			block(2)
			load(100*i + j)
			if j%2 == 1 {
				block(3)
				load(500 + 100*i + j)
			}
			block(5)
			load(2000)
		}
	}
	block(4)
	load(8)
	want = []trace.Addr{7, 1000, 0, 2000, 1001, 100, 2000, 1002, 200, 2000}
	want = append(want, 1, 501, 2000, 101, 601, 2000, 201, 701, 2000, 102, 2000, 202, 2000, 203, 703, 2000, 8)
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}
