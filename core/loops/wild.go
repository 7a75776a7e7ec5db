package loops

import (
	"encoding/binary"

	"github.com/stackglass/stackglass/core/trace"
)

// stream holds the addresses of a wild reference in the order of the trace: each is
// the zigzag varint of its difference to the one before.
type stream struct {
	packed []byte
	last   trace.Addr
	count  uint64
}

func (s *stream) add(addr trace.Addr) {
	s.packed = binary.AppendVarint(s.packed, int64(addr-s.last))
	s.last = addr
	s.count++
}

// cursor reads a stream.
type cursor struct {
	at   int // byte
	last trace.Addr
}

// next gives the next address; ok is false behind the last.
func (c *cursor) next(s *stream) (addr trace.Addr, ok bool) {
	delta, n := binary.Varint(s.packed[c.at:])
	if n <= 0 {
		return 0, false
	}
	c.at += n
	c.last += uint64(delta)
	return c.last, true
}

const (
	memory = 8  // differences that a habit remembers
	trial  = 32 // rows before a reference is judged
)

// habit follows a reference until it is wild.
type habit struct {
	last  trace.Addr
	seen  uint64 // rows
	odd   uint64 // of them, those that were not predicted and came with a new difference
	steps [memory]uint64
	next  uint8 // of steps, to be overwritten
	// follower is the reference of the row that was not predicted behind the last such
	// row of this one.
	follower uint32
	wild     bool
	leaf     [2]uint32 // 1 + the shape of its leaves, tame and wild; 0: none yet
}

// surprise takes a row that no loop predicted.
func (h *habit) surprise(addr trace.Addr) {
	step := addr - h.last
	h.last = addr
	if h.seen++; h.seen == 1 {
		return
	}
	for _, s := range h.steps {
		if s == step {
			return
		}
	}
	h.steps[h.next%memory] = step
	h.next++
	h.odd++
}

// isWild judges the reference anew; wild is for good.
func (h *habit) isWild() bool {
	if !h.wild && h.seen >= trial && 2*h.odd > h.seen {
		h.wild = true
	}
	return h.wild
}

// join adds the addresses of another stream behind those of this one.
func (s *stream) join(other *stream) {
	if other.count == 0 {
		return
	}
	first, n := binary.Varint(other.packed) // its first difference is to 0
	packed := binary.AppendVarint(s.packed[:len(s.packed):len(s.packed)], int64(uint64(first)-s.last))
	s.packed = append(packed, other.packed[n:]...)
	s.last = other.last
	s.count += other.count
}
