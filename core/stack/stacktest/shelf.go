package stacktest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
)

// Shelf implements [stack.Shelf] in memory.
type Shelf struct {
	blocks map[[2]uint32][]byte
	read   []byte

	// Fails is the number of the call that fails with ErrShelf, counted from 1. If Fails is 0, no
	// call fails.
	Fails int
	// Flips is the number of the call to Read that returns a wrong byte, counted from 1.
	Flips int
	calls int
	reads int
	Most  int // the maximum number of blocks stored at a time
}

// ErrShelf is the error that a [Shelf] returns when it fails.
var ErrShelf = errors.New("the spill store failed")

func (s *Shelf) call() error {
	if s.calls++; s.calls == s.Fails {
		return ErrShelf
	}
	return nil
}

// Calls returns the number of calls so far.
func (s *Shelf) Calls() int { return s.calls }

// Blocks returns the number of stored blocks.
func (s *Shelf) Blocks() int { return len(s.blocks) }

// Write implements [stack.Shelf].
func (s *Shelf) Write(run, block uint32, data []byte) error {
	if s.blocks == nil {
		s.blocks = map[[2]uint32][]byte{}
	}
	s.blocks[[2]uint32{run, block}] = slices.Clone(data)
	s.Most = max(s.Most, len(s.blocks))
	return s.call()
}

// Read implements [stack.Shelf].
func (s *Shelf) Read(run, block uint32) ([]byte, error) {
	clear(s.read) // invalidate the slice that the last Read returned
	data, found := s.blocks[[2]uint32{run, block}]
	if !found {
		return nil, errors.New("no such block")
	}
	s.read = append(s.read[:0], data...)
	if s.reads++; s.reads == s.Flips {
		s.read[len(s.read)/2] ^= 4
	}
	return s.read, s.call()
}

// Drop implements [stack.Shelf].
func (s *Shelf) Drop(run, block uint32) error {
	delete(s.blocks, [2]uint32{run, block})
	return s.call()
}

// RunShelf checks that a spill store behaves like [Shelf]. The function "open" closes the previous
// instance and opens the store again. If the parameter "keep" is true, the reopened store has its
// old content. Otherwise, the reopened store is empty.
func RunShelf(t *testing.T, open func(keep bool) (stack.Shelf, error)) {
	rng := rand.New(rand.NewPCG(1, 11))
	twin, shelf := new(Shelf), stack.Shelf(nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	again := func(keep bool) {
		t.Helper()
		if s, ok := shelf.(interface{ Sync() error }); ok {
			must(s.Sync())
		}
		if c, ok := shelf.(io.Closer); ok {
			must(c.Close())
		}
		var err error
		shelf, err = open(keep)
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
			clear(some) // the store must not use the caller's slice later
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
		t.Error("an empty spill store contains a block")
	}
	again(false)
}
