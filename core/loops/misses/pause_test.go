package misses

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
)

// TestLongRunCanBeStopped checks that a long run calls the function goOn repeatedly, and stops when
// it returns false.
func TestLongRunCanBeStopped(t *testing.T) {
	var body []loops.Item
	for i := range uint32(7) { // no iterations can be skipped, because trip counts change at every level
		body = append(body, loops.Item{Trips: 900, Steps: []int64{-int64(i % 3)}, Body: []loops.Item{loops.Leaf(loops.Reference{Site: i, Bytes: 8}, uint64(i)<<30, 8200, 72)}})
	}
	tree, err := (&loops.Nest{Items: []loops.Item{loops.Loop(400, body...)}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	c := Cache{64, 64, 8}
	want, err := Run(tree, c)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	got, err := RunAsking(tree, c, func() bool { asked++; return true })
	if err != nil || got.Total != want.Total || asked < 5 {
		t.Fatalf("RunAsking called the function %d times: error %v, counts %+v, want at least 5 calls and the counts %+v", asked, err, got, want.Total)
	}
	for stop := 1; stop < asked; stop++ {
		n := 0
		if _, err := RunAsking(tree, c, func() bool { n++; return n < stop }); err != ErrStopped || n != stop {
			t.Fatalf("if the function returns false in call %d, RunAsking returns error %v after %d calls, want ErrStopped", stop, err, n)
		}
	}
}
