package simulate

import "github.com/stackglass/stackglass/core/trace"

// ConsumeDepths is [Simulator.Consume], and tells how far down each row went: into[i] is the
// number of levels at which row i missed, 0 for what the first level has, that of all levels
// for what came from memory. Of a reference over several lines it is that of the one that
// went furthest; of an event 0. into has at least as many places as the batch has rows. A
// simulator is fed by one of both.
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
		if s.threaded && s.quick(thread, addr, bytes, write) {
			continue
		}
		if s.now == nil || thread != s.thread {
			if err := s.switchTo(thread); err != nil {
				return err
			}
		}
		first := s.now.counts[0]
		before := first.Misses()
		s.reference(addr, bytes, write)
		if first.Misses() != before {
			into[i] = s.now.depth()
		}
	}
	return nil
}

// depth is how many levels the last reference missed at, which missed at the first one.
func (c *core) depth() uint8 {
	if c.seen == nil {
		c.seen = make([]uint64, len(c.counts))
	}
	depth := 1
	for ; depth < len(c.counts); depth++ {
		n := c.counts[depth].Misses()
		if n == c.seen[depth] {
			break // what is behind it was asked for nothing
		}
		c.seen[depth] = n
	}
	return uint8(depth)
}

// FetchedBytes are those that memory gave so far.
func (s *Simulator) FetchedBytes() uint64 { return s.memory.BytesRead }
