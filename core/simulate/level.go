package simulate

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// level is one cache, with its connections to other caches and to memory. Levels exchange ranges of
// bytes. A range is either a whole line of the upper level, or the bytes that a store writes within
// a line.
type level struct {
	above   []*level // caches that share this cache; empty if the processor accesses it directly
	readers []*level // the instruction caches among the caches in "above"
	connect *bus     // bus between the caches in "above", or nil
	below   *level   // the next level; nil if memory is next
	memory  *Traffic // traffic between the last level and memory
	bus     *bus     // bus between this cache and the other caches of this level
	member  int      // member number of this cache on the bus

	cache hierarchy.Cache
	shift uint // lines have 1 << shift bytes
	tags  tags

	through   bool // write-through: stores do not make lines dirty
	around    bool // write misses do not allocate
	inclusive bool
	exclusive bool
	wholeOnly bool   // a store miss allocates only if the store writes whole sub-blocks
	watch     *watch // nil unless the level has a feature that needs a watch

	counts *Counts                 // counts of the core that is using the cache
	lost   map[trace.Line]struct{} // lines that another core's store invalidated
}

func (l *level) lineBytes() uint64 { return 1 << l.shift }

// room returns the number of bytes from addr to the end of its line.
func (l *level) room(addr trace.Addr) uint64 { return l.lineBytes() - addr&(l.lineBytes()-1) }

// access performs a processor's access within a line. The field "watch" of the level must be nil.
func (l *level) access(addr trace.Addr, bytes uint64, write bool) {
	if write {
		l.storePlain(addr, bytes)
	} else {
		l.readPlain(addr >> l.shift)
	}
}

// read processes a demand read of a line. The result "dirty" reports whether the line moves to
// the level above with modified data that no lower level contains.
func (l *level) read(line trace.Line) (dirty bool) {
	if l.watch != nil {
		return l.readWatched(line)
	}
	return l.readPlain(line)
}

func (l *level) readPlain(line trace.Line) (dirty bool) {
	l.counts.Reads++
	if l.exclusive {
		return l.moveUp(line)
	}
	if l.tags.touch(line, false) {
		return false
	}
	l.counts.ReadMisses++
	l.countCoherenceMiss(line)
	l.fill(line, l.fetch(line))
	return false
}

// countCoherenceMiss counts a miss as a coherence miss if another core's store had invalidated the
// line.
func (l *level) countCoherenceMiss(line trace.Line) {
	if l.lost != nil {
		l.missedLost(line)
	}
}

func (l *level) missedLost(line trace.Line) {
	if _, lost := l.lost[line]; lost {
		l.counts.CoherenceMisses++
		delete(l.lost, line)
	}
}

// moveUp processes a demand read in an exclusive level. If the level contains the line, the line
// moves to the level above.
func (l *level) moveUp(line trace.Line) (dirty bool) {
	if present, dirty := l.tags.remove(line); present {
		l.counts.Given++
		return dirty
	}
	l.counts.ReadMisses++
	l.countCoherenceMiss(line)
	return l.fetch(line)
}

// fetch reads the line, or its sub-blocks, from the level below.
func (l *level) fetch(line trace.Line) (dirty bool) {
	if l.below == nil {
		l.memory.Reads++
		l.memory.BytesRead += l.lineBytes()
		return false
	}
	if w := l.below.watch; w != nil && w.parts != nil {
		l.fetchParts(line<<l.shift, l.lineBytes(), false)
		return false
	}
	first := line << l.shift >> l.below.shift
	for i := range max(1, l.lineBytes()>>l.below.shift) {
		dirty = l.below.read(first+i) || dirty
	}
	return dirty
}

// store processes a demand write within a line.
func (l *level) store(addr trace.Addr, bytes uint64) {
	switch {
	case l.watch == nil:
		l.storePlain(addr, bytes)
	case l.watch.parts != nil:
		l.accessParts(request{store: true}, addr, bytes)
	default:
		l.storeWatched(addr, bytes)
	}
}

func (l *level) storePlain(addr trace.Addr, bytes uint64) {
	l.counts.Writes++
	line := addr >> l.shift
	if !l.tags.touch(line, !l.through) {
		l.counts.WriteMisses++
		l.countCoherenceMiss(line)
		if l.around || l.exclusive {
			l.passDown(addr, bytes, (*level).store)
			return
		}
		l.fill(line, l.fetch(line) || !l.through)
	}
	if l.through {
		l.passDown(addr, bytes, (*level).update)
	}
}

// passDown splits a range of bytes at the lines of the level below, and calls the function
// "each" with every part. If there is no level below, passDown writes the bytes to memory.
func (l *level) passDown(addr trace.Addr, bytes uint64, each func(*level, trace.Addr, uint64)) {
	if l.below == nil {
		l.memory.Writes++
		l.memory.BytesWritten += bytes
		return
	}
	for bytes > 0 {
		piece := min(bytes, l.below.room(addr))
		each(l.below, addr, piece)
		addr, bytes = addr+piece, bytes-piece
	}
}

// update processes a store that the level above writes through.
func (l *level) update(addr trace.Addr, bytes uint64) {
	l.counts.Updates++
	if l.watch != nil && l.watch.parts != nil {
		if _, kept := l.receiveParts(addr, bytes, false); !kept || l.through {
			l.passDown(addr, bytes, (*level).update)
		}
		return
	}
	if hit := l.tags.touch(addr>>l.shift, !l.through); !hit || l.through {
		l.passDown(addr, bytes, (*level).update)
	}
}

// sendWriteBack writes a range of bytes back to the level below or to memory.
func (l *level) sendWriteBack(addr trace.Addr, bytes uint64) {
	l.counts.WriteBacksSent++
	l.passDown(addr, bytes, (*level).writeBack)
}

// writeBack processes the write-back of a dirty line, or of some of its bytes, from a level above.
func (l *level) writeBack(addr trace.Addr, bytes uint64) {
	l.counts.WriteBacksReceived++
	if l.watch != nil && l.watch.parts != nil {
		hit, kept := l.receiveParts(addr, bytes, true)
		if !hit {
			l.counts.WriteBackMisses++
		}
		if !kept || l.through {
			l.sendWriteBack(addr, bytes)
		}
		return
	}
	line := addr >> l.shift
	hit := l.tags.touch(line, !l.through)
	if !hit {
		l.counts.WriteBackMisses++
		if bytes < l.lineBytes() || l.around || l.exclusive {
			l.sendWriteBack(addr, bytes)
			return
		}
		l.removeOutdated(line)
		l.fill(line, !l.through)
	}
	if l.through {
		l.sendWriteBack(addr, bytes)
	}
}

// removeOutdated removes a line from the exclusive levels below after the whole line has been
// written back, because copies in these levels may be outdated.
func (l *level) removeOutdated(line trace.Line) {
	for n := l.below; n != nil && n.exclusive; n = n.below {
		if present, _ := n.tags.remove(line); present {
			n.counts.Given++
		}
	}
}

// fill inserts a line into the line's set. This insertion may evict another line.
func (l *level) fill(line trace.Line, dirty bool) { l.fillFor(line, dirty) }

// fillFor works like fill, but also returns the evicted line.
func (l *level) fillFor(line trace.Line, dirty bool) (victim trace.Line, evicted bool) {
	l.counts.Fills++
	if l.watch != nil {
		l.watch.lineEntered(line)
	}
	if l.lost != nil {
		delete(l.lost, line)
	}
	victim, victimDirty, evicted := l.tags.insert(line, dirty)
	if !evicted {
		return victim, false
	}
	l.counts.Evictions++
	if l.watch != nil {
		l.watch.lineLeft(victim, l.counts)
	}
	if l.inclusive {
		victimDirty = l.invalidateAbove(victim) || victimDirty
	}
	switch {
	case l.below != nil && l.below.exclusive:
		if victimDirty {
			l.counts.WriteBacksSent++
		}
		l.below.insertVictim(victim, victimDirty)
	case victimDirty:
		l.sendWriteBack(victim<<l.shift, l.lineBytes())
	}
	return victim, true
}

// invalidateAbove invalidates a line in all levels above, and reports whether any copy was dirty.
func (l *level) invalidateAbove(line trace.Line) (dirty bool) {
	if b := l.connect; b != nil && b.shift == l.shift {
		if c, known := b.lines.get(line); known { // only the members in c.holders can contain the line
			for left := c.holders; left != 0; left &= left - 1 {
				dirty = l.invalidateIn(b.members[bits.TrailingZeros64(left)], line) || dirty
			}
			for _, n := range l.readers {
				dirty = l.invalidateIn(n, line) || dirty
			}
			return dirty
		}
	}
	for _, n := range l.above {
		dirty = l.invalidateIn(n, line) || dirty
	}
	return dirty
}

// invalidateIn invalidates a line in the cache n above this level, and in all caches above n.
func (l *level) invalidateIn(n *level, line trace.Line) (dirty bool) {
	n.everyCopy(line<<l.shift, l.lineBytes(), func(n *level, line trace.Line) {
		if present, changed := n.tags.remove(line); present {
			n.counts.Taken++
			if n.watch != nil {
				n.watch.lineLeft(line, n.counts)
			}
			dirty = dirty || changed
		}
	})
	return dirty
}

// everyCopy passes every line of a range of bytes, in this level and in the levels above, to the
// function "each".
func (l *level) everyCopy(addr trace.Addr, bytes uint64, each func(*level, trace.Line)) {
	for line := addr >> l.shift; line <= (addr+bytes-1)>>l.shift; line++ {
		each(l, line)
	}
	for _, n := range l.above {
		n.everyCopy(addr, bytes, each)
	}
}

// insertVictim inserts a victim of the level above into an exclusive level. The line may already be
// present, because a different core had the line and evicted it earlier.
func (l *level) insertVictim(line trace.Line, dirty bool) {
	hit := l.tags.touch(line, dirty && !l.through)
	switch {
	case !dirty:
		l.counts.CleanVictims++
	case hit:
		l.counts.WriteBacksReceived++
	default:
		l.counts.WriteBacksReceived++
		l.counts.WriteBackMisses++
	}
	if !hit {
		l.fill(line, dirty && !l.through)
	}
	if dirty && l.through {
		l.sendWriteBack(line<<l.shift, l.lineBytes())
	}
}

// flush writes back dirty lines, which stay in the cache as clean lines.
func (l *level) flush() {
	l.tags.cleanAll(func(line trace.Line) {
		if l.watch == nil || l.watch.parts == nil {
			l.sendWriteBack(line<<l.shift, l.lineBytes())
			return
		}
		p := l.watch.parts.of[line]
		dirty := p.dirty
		p.dirty = 0
		l.watch.parts.of[line] = p
		l.writeBackParts(line, dirty)
	})
}
