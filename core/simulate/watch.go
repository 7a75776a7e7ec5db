package simulate

import (
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// watch contains the state of features that most levels do not have. A level without a watch is
// simulated by faster code.
type watch struct {
	s        *Simulator
	depth    int // index of the cache's level
	prefetch *prefetcher
	causes   *causes
	bound    *bound
	parts    *parts
	// whether prefetches wait until the levels above have inserted their lines, because this level
	// or a level below is inclusive
	waits bool

	observe func(observation) // if not nil, observe is called for every demand access and prefetch of a level with sub-blocks
}

// observation describes an access to a level with sub-blocks.
type observation struct {
	request
	bytes              uint64
	missed, lineMissed bool
	cause, lineCause   cause // causes of the misses, if Options.Causes is set
}

// newWatch returns the watch of a cache at the given depth, or nil if the cache does not need a
// watch.
func (s *Simulator) newWatch(c hierarchy.Cache, depth int, seed uint64) *watch {
	w := &watch{s: s, depth: depth}
	for i := depth; i < len(s.h.Levels) && depth > 0; i++ {
		below := s.h.Levels[i]
		if i < len(s.h.Instructions) {
			w.waits = w.waits || s.h.Instructions[i].Inclusion == hierarchy.Inclusive
		}
		w.waits = w.waits || below.Inclusion == hierarchy.Inclusive
	}
	shift := lineShift(c.LineBytes)
	unit := shift
	if c.SubBlockBytes > 0 {
		unit = lineShift(c.SubBlockBytes)
		w.parts = &parts{shift: unit, of: map[trace.Line]part{}}
	}
	if c.Prefetch.Kind != hierarchy.NoPrefetch {
		w.prefetch = newPrefetcher(c.Prefetch, shift, unit, seed)
	}
	if s.options.Causes {
		w.causes = newCauses(c, seed)
	}
	if s.options.Bound && supportsBound(c, depth) {
		w.bound = newBound(newIndex(c.Sets(), c.Hashed), c.Lines()/c.Sets())
	}
	if w.prefetch == nil && w.causes == nil && w.bound == nil && w.parts == nil && len(s.h.Instructions) == 0 {
		return nil
	}
	return w
}

// supportsBound reports whether OPT is a lower bound for a cache's misses. OPT is a lower bound
// only if the cache inserts the line of every miss, and fetches lines as a whole.
func supportsBound(c hierarchy.Cache, depth int) bool {
	return c.SubBlockBytes == 0 && !c.Write.Around() && (depth == 0 || c.Inclusion != hierarchy.Exclusive)
}

// readWatched implements read for a level with a watch.
func (l *level) readWatched(line trace.Line) (dirty bool) {
	missed := l.watchDemand(line, false, func() { dirty = l.readPlain(line) })
	l.countFetch(missed)
	return dirty
}

// countFetch counts a demand read as an instruction fetch if the current reference is an
// instruction fetch.
func (l *level) countFetch(missed bool) {
	if s := l.watch.s; !s.fetching || len(s.h.Instructions) == 0 {
		return
	}
	l.counts.Fetches++
	if missed {
		l.counts.FetchMisses++
	}
}

// storeWatched implements store for a level with a watch.
func (l *level) storeWatched(addr trace.Addr, bytes uint64) {
	l.watchDemand(addr>>l.shift, true, func() { l.storePlain(addr, bytes) })
}

// watchDemand performs a demand access, and updates the level's watch before and after the access.
func (l *level) watchDemand(line trace.Line, store bool, access func()) (missed bool) {
	w := l.watch
	p, first, pushed := w.prefetch, false, false
	if p != nil {
		_, first = p.fresh[line]
		_, pushed = p.pushed[line]
	}
	before := l.counts.Misses()
	access()
	missed = l.counts.Misses() != before
	if w.causes != nil {
		why, _ := w.causes.access(line, 1, store && l.around, missed, missed)
		l.counts.count(why)
	}
	if w.bound != nil {
		w.bound.access(line)
	}
	if p == nil {
		return missed
	}
	if first && !missed {
		l.counts.Prefetch.Useful++
	}
	if first {
		delete(p.fresh, line)
	}
	if missed && pushed {
		l.counts.Prefetch.Pollution++
		delete(p.pushed, line)
	}
	if !store || !p.Reads {
		l.prefetchAfter(l.addrOf(line), missed, first && !missed)
	}
	return missed
}

// addrOf returns the address that prefetchers use for an access to a line. In the first level,
// prefetchers use the address of the reference. In other levels, they use the address of the line.
func (l *level) addrOf(line trace.Line) trace.Addr {
	if l.watch.depth == 0 {
		return l.watch.s.addr
	}
	return line << l.shift
}

// prefetchAfter prefetches the lines that the level's prefetcher selects after an access.
func (l *level) prefetchAfter(addr trace.Addr, missed, first bool) {
	s := l.watch.s
	if s.silent {
		return
	}
	for _, a := range l.watch.prefetch.candidates(addr, s.pc, missed, first) {
		if l.watch.waits {
			s.waiting = append(s.waiting, waiting{l, a})
		} else {
			l.prefetchAddr(a)
		}
	}
}

// waiting is a prefetch that waits until the levels above have inserted their lines.
type waiting struct {
	l    *level
	addr trace.Addr
}

// prefetchWaiting issues the waiting prefetches.
func (s *Simulator) prefetchWaiting() {
	for i := 0; i < len(s.waiting); i++ { // the loop body may append chained prefetches
		s.waiting[i].l.prefetchAddr(s.waiting[i].addr)
	}
	s.waiting = s.waiting[:0]
}

// prefetchAddr prefetches the line, or the sub-block, that contains an address.
func (l *level) prefetchAddr(a trace.Addr) {
	s := l.watch.s
	if dropped := l.watch.prefetch.dropped; dropped != nil && dropped() {
		l.counts.Prefetch.Dropped++
		return
	}
	if s.threaded && s.coherent {
		s.now.notifyBuses(s.pathOf(), l.watch.depth, a, false)
	}
	if p := l.watch.parts; p != nil {
		l.accessParts(request{prefetch: true}, a>>p.shift<<p.shift, 1<<p.shift)
		return
	}
	l.prefetchLine(a >> l.shift)
}

// prefetchLine looks up a line for this level's prefetcher, and inserts it if it is absent.
func (l *level) prefetchLine(line trace.Line) {
	p := l.watch.prefetch
	missed := !l.tags.touch(line, false)
	if c := l.watch.causes; c != nil {
		c.access(line, 1, false, missed, missed)
	}
	if !missed {
		l.counts.Prefetch.Hits++
		return
	}
	l.counts.Prefetch.Misses++
	dirty := l.prefetchFromBelow(line<<l.shift, l.lineBytes())
	p.fresh[line] = struct{}{} // must precede fillFor, because the eviction may remove this line, too
	if victim, evicted := l.fillFor(line, dirty); evicted {
		p.pushed[victim] = struct{}{}
	}
}

// prefetchFromAbove processes a prefetch that a level above issued.
func (l *level) prefetchFromAbove(line trace.Line) (dirty bool) {
	l.counts.PrefetchReads++
	if l.exclusive {
		present, dirty := l.tags.remove(line)
		if present {
			l.counts.Given++
			return dirty
		}
		l.counts.PrefetchReadMisses++
		return l.prefetchFromBelow(line<<l.shift, l.lineBytes())
	}
	missed := !l.tags.touch(line, false)
	if missed {
		l.counts.PrefetchReadMisses++
		l.fill(line, l.prefetchFromBelow(line<<l.shift, l.lineBytes()))
	}
	if w := l.watch; w != nil {
		if w.causes != nil {
			w.causes.access(line, 1, false, missed, missed)
		}
		if w.prefetch != nil && w.prefetch.Chained {
			l.prefetchAfter(line<<l.shift, missed, false)
		}
	}
	return false
}

// prefetchFromBelow prefetches a range of bytes from the level below.
func (l *level) prefetchFromBelow(addr trace.Addr, bytes uint64) (dirty bool) {
	if l.below == nil {
		l.memory.Reads++
		l.memory.BytesRead += bytes
		return false
	}
	for bytes > 0 {
		piece := min(bytes, l.below.room(addr))
		if w := l.below.watch; w != nil && w.parts != nil {
			l.below.accessParts(request{fromAbove: true}, addr, piece)
		} else {
			dirty = l.below.prefetchFromAbove(addr>>l.below.shift) || dirty
		}
		addr, bytes = addr+piece, bytes-piece
	}
	return dirty
}

// lineLeft updates the prefetcher's counts when a line leaves the level.
func (w *watch) lineLeft(line trace.Line, counts *Counts) {
	if p := w.prefetch; p != nil {
		if _, fresh := p.fresh[line]; fresh {
			counts.Prefetch.Unused++
			delete(p.fresh, line)
		}
	}
}

// lineEntered updates the prefetcher's counts when a line enters the level.
func (w *watch) lineEntered(line trace.Line) {
	if w.prefetch != nil {
		delete(w.prefetch.pushed, line)
	}
}
