package simulate

import (
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// OptionsOf converts the simulation settings of a hierarchy to options. The caller must skip the
// first Simulation.Skip references.
func OptionsOf(h *hierarchy.Hierarchy) Options {
	s := h.Simulation
	o := Options{
		MostCores: s.Cores, Warmup: s.Warmup, WarmupShare: s.WarmupShare, Limit: s.Limit,
		FlushEvery: s.FlushEvery, Causes: s.Causes, PerReference: s.PerReference,
	}
	if s.Incoherent {
		o.Protocol = Incoherent
	}
	return o
}

// consumeCarefully implements Consume for the features that the faster code lacks.
func (s *Simulator) consumeCarefully(b *trace.Batch) error {
	for i, kind := range b.Kind {
		if s.regions != nil && (kind == trace.RegionBegin || kind == trace.RegionEnd) {
			s.markRegion(kind, b.Addr[i], trace.At(b.Thread, i))
		}
		if !kind.IsReference() || s.warm && s.options.Limit > 0 && s.references == s.options.Limit {
			continue
		}
		if thread := trace.At(b.Thread, i); s.now == nil || thread != s.thread {
			if err := s.switchTo(thread); err != nil {
				return err
			}
		}
		s.pc = instructionOf(b, i)
		s.simulateReference(kind, b.Addr[i], bytesOf(b.Addr[i], b.Bytes[i]))
	}
	return nil
}

// instructionOf returns a number that identifies the instruction of a row: its address or, if it is
// unknown, its site.
func instructionOf(b *trace.Batch, i int) trace.Addr {
	if pc := trace.At(b.PC, i); pc != 0 {
		return pc
	}
	return trace.Addr(trace.At(b.Site, i))
}

// simulateReference simulates one reference, and supports all features.
func (s *Simulator) simulateReference(kind trace.Kind, addr trace.Addr, bytes uint64) {
	write := writes.Has(kind) && !s.options.Translation
	s.fetching = kind == trace.Fetch
	path := s.pathOf()
	s.references++
	first := path[0]
	switch line, last := addr>>first.shift, (addr+bytes-1)>>first.shift; {
	case s.options.PerReference:
		first.accessOnce(addr, bytes, write)
	case line >= last: // also true if the reference extends beyond the end of the address space
		s.accessPart(path, addr, min(bytes, first.room(addr)), write)
	default:
		s.split++
		for ; line <= last; line++ {
			part := min(bytes, first.room(addr))
			s.accessPart(path, addr, part, write)
			addr, bytes = addr+part, bytes-part
		}
	}
	s.advance()
}

// accessPart simulates an access within a line of the first level.
func (s *Simulator) accessPart(path []*level, addr trace.Addr, bytes uint64, write bool) {
	if s.addr = addr; s.threaded && s.coherent {
		s.now.notifyBuses(path, 0, addr, write)
	}
	if write {
		path[0].store(addr, bytes)
	} else {
		path[0].readRange(addr, bytes)
	}
	s.prefetchWaiting()
}

// pathOf returns the caches that the current reference can access, first level first.
func (s *Simulator) pathOf() []*level {
	if s.fetching {
		return s.now.fetches
	}
	return s.now.path
}

// advance starts counting when the warm-up ends, and flushes the caches when a flush is due.
func (s *Simulator) advance() {
	s.seen++
	if n := s.options.FlushEvery; n > 0 && s.seen%n == 0 {
		s.flush()
		for _, caches := range slices.Concat(s.caches, s.icaches) {
			for _, cache := range caches {
				cache.invalidateAll()
			}
		}
	}
	if s.warm {
		return
	}
	if n := s.options.Warmup; n > 0 && s.seen >= n || n == 0 && s.filled() {
		s.warm = true
		s.restoreCounts(&savedCounts{})
	}
}

// filled reports whether the caches of the last level are full enough to end the warm-up.
func (s *Simulator) filled() bool {
	last := len(s.caches) - 1
	share := s.options.WarmupShare
	inserted, lines := int64(0), uint64(0)
	for _, c := range s.cores {
		n := c.counts[last]
		inserted += int64(n.Fills - n.Evictions)
	}
	for _, cache := range s.caches[last] {
		lines += cache.cache.Lines()
	}
	if float64(inserted) < share*float64(lines) {
		return false
	}
	for _, cache := range s.caches[last] {
		if float64(cache.tags.resident()) < share*float64(cache.cache.Lines()) {
			return false
		}
	}
	return true
}

// invalidateAll removes all lines, which must be clean.
func (l *level) invalidateAll() {
	l.tags.each(func(line trace.Line) {
		l.tags.remove(line)
		l.counts.Flushed++
		if l.watch != nil {
			l.watch.lineLeft(line, l.counts)
		}
	})
	if l.watch != nil && l.watch.parts != nil {
		clear(l.watch.parts.of)
	}
	if l.watch != nil && l.watch.causes != nil { // the next access to each line is a cold access
		l.watch.causes = newCauses(l.cache, 0)
	}
}

// accessOnce performs a single access that covers all lines of a range of bytes.
func (l *level) accessOnce(addr trace.Addr, bytes uint64, write bool) {
	missed := false
	first := addr >> l.shift
	for line := first; line <= max(first, (addr+bytes-1)>>l.shift); line++ {
		if !l.tags.touch(line, false) {
			missed = true
			l.counts.Fills++
			if _, _, evicted := l.tags.insert(line, false); evicted {
				l.counts.Evictions++
			}
		}
	}
	l.counts.countOnce(write, l.watch != nil && l.watch.s.fetching, missed)
	switch {
	case !missed:
	case l.below != nil:
		l.below.accessOnce(addr, bytes, write)
	default:
		l.memory.Reads++
		l.memory.BytesRead += bytes
	}
}

func (c *Counts) countOnce(write, fetch, missed bool) {
	all, misses := &c.Reads, &c.ReadMisses
	if write {
		all, misses = &c.Writes, &c.WriteMisses
	}
	*all++
	if fetch {
		c.Fetches++
	}
	if missed {
		*misses++
		if fetch {
			c.FetchMisses++
		}
	}
}
