package stacktest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
)

// RunShelf checks a shelf against [Shelf]. open opens it, as it is or empty; the one
// that was open before is closed then.
func RunShelf(t *testing.T, open func(asItIs bool) (stack.Shelf, error)) {
	rng := rand.New(rand.NewPCG(1, 11))
	twin, shelf := new(Shelf), stack.Shelf(nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	again := func(asItIs bool) {
		t.Helper()
		if s, ok := shelf.(interface{ Sync() error }); ok {
			must(s.Sync())
		}
		if c, ok := shelf.(io.Closer); ok {
			must(c.Close())
		}
		var err error
		shelf, err = open(asItIs)
		must(err)
	}
	again(false)
	check := func(run, block uint32) {
		t.Helper()
		want, missing := twin.Read(run, block)
		got, err := shelf.Read(run, block)
		if (err != nil) != (missing != nil) || missing == nil && !bytes.Equal(got, want) {
			t.Fatalf("block %d of run %d: %d bytes, %v, want %d bytes, %v", block, run, len(got), err, len(want), missing)
		}
	}
	data := make([]byte, 5<<20)
	for n := range 400 {
		run, block := rng.Uint32N(3)<<19, rng.Uint32N(4)
		switch rng.IntN(8) {
		case 0, 1, 2:
			some := data[:1+rng.IntN(1000)]
			if n%20 == 0 {
				some = data[:2<<20+rng.IntN(1<<20)]
			}
			for i := range some {
				some[i] = byte(rng.Uint32())
			}
			must(twin.Write(run, block, some))
			must(shelf.Write(run, block, some))
			clear(some) // it is the caller's
		case 3:
			must(twin.Drop(run, block))
			must(shelf.Drop(run, block))
		case 4:
			if rng.IntN(8) == 0 {
				again(true)
			}
		default:
			check(run, block)
			check(run, block+1)
		}
	}
	again(false)
	if _, err := shelf.Read(0, 0); err == nil {
		t.Error("an empty one has a block")
	}
	again(false)
}
