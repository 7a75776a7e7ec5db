package simulate

import "github.com/stackglass/stackglass/core/trace"

// ConsumeDepths works like [Simulator.Consume], but also sets the element into[i] to the number of
// levels in which row i missed. The element is 0 for events and for hits in the first level. If all
// levels missed, the element is the number of levels. Accesses to instruction caches are not
// included. For a reference to several lines, the element is the maximum over the lines. len(into)
// must be at least b.Len(). All batches of a run must be passed to the same method, ConsumeDepths
// or Consume.
func (s *Simulator) ConsumeDepths(b *trace.Batch, into []uint8) error {
	s.threaded = s.threaded || b.Thread != nil
	into = into[:b.Len()]
	for i, kind := range b.Kind {
		into[i] = 0
		if !kind.IsReference() {
			continue
		}
		thread := uint32(0)
		if b.Thread != nil {
			thread = b.Thread[i]
		}
		addr, bytes, write := b.Addr[i], uint64(max(b.Bytes[i], 1)), writes.Has(kind)
		if s.threaded && !s.careful && s.hitFirstLevel(thread, addr, bytes, write) {
			continue
		}
		if s.now == nil || thread != s.thread {
			if err := s.switchTo(thread); err != nil {
				return err
			}
		}
		first := s.now.counts[0]
		before := first.Misses()
		if s.careful {
			s.pc = instructionOf(b, i)
			s.simulateReference(kind, addr, bytes)
		} else {
			s.reference(addr, bytes, write)
		}
		if first.Misses() != before {
			into[i] = s.now.depth()
		}
	}
	return nil
}

// depth returns the number of levels in which the last reference missed. The reference must have
// missed in the first level.
func (c *core) depth() uint8 {
	if c.seen == nil {
		c.seen = make([]uint64, len(c.counts))
	}
	depth := 1
	for ; depth < len(c.counts); depth++ {
		n := c.counts[depth].Misses()
		if n == c.seen[depth] {
			break // this level did not miss, so the levels below were not accessed
		}
		c.seen[depth] = n
	}
	return uint8(depth)
}

// FetchedBytes returns the number of bytes read from memory so far.
func (s *Simulator) FetchedBytes() uint64 { return s.memory.BytesRead }
