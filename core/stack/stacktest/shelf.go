package stacktest

import (
	"errors"
	"slices"
)

// Shelf is a [stack.Shelf] in memory.
type Shelf struct {
	blocks map[[2]uint32][]byte
	read   []byte

	// Fails is the number of the call, from 1, that fails with ErrShelf; 0: none.
	Fails int
	// Flips is the number of the call to Read, from 1, that gives a wrong byte.
	Flips int
	calls int
	reads int
	Most  int // blocks at a time
}

// ErrShelf is how a [Shelf] fails.
var ErrShelf = errors.New("the shelf fell down")

func (s *Shelf) call() error {
	if s.calls++; s.calls == s.Fails {
		return ErrShelf
	}
	return nil
}

// Calls is the number of calls so far.
func (s *Shelf) Calls() int { return s.calls }

// Blocks is the number of blocks that it holds.
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
	clear(s.read) // nobody may use it any more
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
