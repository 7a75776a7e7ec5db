package loops

import (
	"encoding/binary"

	"github.com/stackglass/stackglass/core/trace"
)

// stream holds the addresses of a wild reference in the order of the trace, each as the zigzag varint
// of its difference to the one before.
type stream struct {
	packed []byte
	last   trace.Addr
	count  uint64
	least  trace.Addr
	most   trace.Addr
}

func (s *stream) add(addr trace.Addr) {
	s.reach(addr)
	s.packed = binary.AppendVarint(s.packed, int64(addr-s.last))
	s.last = addr
	s.count++
}

// reach extends the least and the greatest address to the next one.
func (s *stream) reach(addr trace.Addr) {
	if s.count == 0 {
		s.least, s.most = addr, addr
	}
	if addr < s.least {
		s.least = addr
	}
	if addr > s.most {
		s.most = addr
	}
}

// cursor reads a stream.
type cursor struct {
	at   int // byte
	last trace.Addr
}

// next returns the next address; ok is false behind the last.
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
	trial  = 32 // rows before a reference may be wild
)

// habit follows a reference in a context until it is wild there.
type habit struct {
	inContext
	last  trace.Addr
	seen  uint64 // rows
	odd   uint64 // rows that were not predicted and had a new difference
	steps [memory]uint64
	next  uint8 // index of the oldest of steps
	wild  bool
}

// inContext is a reference in a context.
type inContext struct{ ref, context uint32 }

// place is what a folder knows of a reference in all contexts.
type place struct {
	follower uint32    // reference of the unpredicted row after the last unpredicted row of this one
	leaf     [2]uint32 // 1 + the shape of its leaves, tame and wild; 0: none yet
}

// habit returns the habit of a reference in a context.
func (f *Folder) habit(ref, context uint32) *habit {
	if h := &f.habits[ref]; h.context == context {
		return h
	}
	return f.other(ref, context)
}

// other returns the habit of a reference in another context than that of its first row.
func (f *Folder) other(ref, context uint32) *habit {
	key := inContext{ref, context}
	near := &f.nearOthers[(ref*0x9e3779b1^context*0x85ebca6b)>>(32-nearBits)]
	if id := int(*near); id < len(f.others) && f.others[id].inContext == key {
		return &f.others[id]
	}
	id, known := f.contexts[key]
	if !known {
		if len(f.others) == mostHabits {
			return &f.habits[ref]
		}
		id = uint32(len(f.others))
		f.others = append(f.others, habit{inContext: key})
		f.contexts[key] = id
	}
	*near = id
	return &f.others[id]
}

// surprise counts a row that no loop predicted.
func (h *habit) surprise(addr trace.Addr) {
	step := addr - h.last
	h.last = addr
	if h.seen++; h.seen == 1 {
		return
	}
	known := uint64(0) // the highest bit of (x - 1) &^ x is set only if x is 0
	for _, s := range h.steps {
		x := s ^ step
		known |= (x - 1) &^ x
	}
	if int64(known) < 0 {
		return
	}
	h.steps[h.next%memory] = step
	h.next++
	h.odd++
}

// isOdd reports whether more than half of the rows had new differences.
func (h *habit) isOdd() bool { return h.seen >= trial && 2*h.odd > h.seen }

// join appends the addresses of another stream.
func (s *stream) join(other *stream) {
	if other.count == 0 {
		return
	}
	first, n := binary.Varint(other.packed) // its first difference is to 0
	packed := binary.AppendVarint(s.packed[:len(s.packed):len(s.packed)], int64(uint64(first)-s.last))
	s.packed = append(packed, other.packed[n:]...)
	s.last = other.last
	if s.count == 0 {
		s.least = other.least
	}
	s.least, s.most = min(s.least, other.least), max(s.most, other.most)
	s.count += other.count
}
