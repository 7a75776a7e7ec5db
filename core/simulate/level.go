package simulate

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// level is one cache with its neighbours. What goes from level to level is a
// run of bytes: whole lines of the level above, or a store within one.
type level struct {
	above   []*level // caches that have it in common; none: the processor
	connect *bus     // between them; nil: they need none
	below   *level   // nil: memory
	memory  *Traffic // what is behind the last level
	bus     *bus     // to the caches beside it
	member  int      // its number there

	cache hierarchy.Cache
	shift uint // its lines are of 1 << shift bytes
	tags  tags

	through   bool // changes go on down, and no line becomes dirty by them
	around    bool // nothing is allocated for writes that miss
	inclusive bool
	exclusive bool

	counts *Counts                 // of the core that uses it
	lost   map[trace.Line]struct{} // that were here until another core stored to them
}

func (l *level) lineBytes() uint64 { return 1 << l.shift }

// room is the number of bytes from addr to the end of its line.
func (l *level) room(addr trace.Addr) uint64 { return l.lineBytes() - addr&(l.lineBytes()-1) }

// access is one of the processor's, within a line.
func (l *level) access(addr trace.Addr, bytes uint64, write bool) {
	if write {
		l.store(addr, bytes)
	} else {
		l.read(addr >> l.shift)
	}
}

// read is a demand for a line. dirty tells that the line moves up with changes
// that no level below has.
func (l *level) read(line trace.Line) (dirty bool) {
	l.counts.Reads++
	if l.exclusive {
		return l.giveUp(line)
	}
	if l.tags.touch(line, false) {
		return false
	}
	l.counts.ReadMisses++
	l.missed(line)
	l.fill(line, l.fetch(line))
	return false
}

// missed notes a demand miss of a line that was lost.
func (l *level) missed(line trace.Line) {
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

// giveUp is a demand for a line of an exclusive level, which keeps nothing of
// what it gives.
func (l *level) giveUp(line trace.Line) (dirty bool) {
	if present, dirty := l.tags.remove(line); present {
		l.counts.Given++
		return dirty
	}
	l.counts.ReadMisses++
	l.missed(line)
	return l.fetch(line)
}

// fetch demands a line of the level below, or as many lines as it takes.
func (l *level) fetch(line trace.Line) (dirty bool) {
	if l.below == nil {
		l.memory.Reads++
		l.memory.BytesRead += l.lineBytes()
		return false
	}
	first := line << l.shift >> l.below.shift
	for i := range max(1, l.lineBytes()>>l.below.shift) {
		dirty = l.below.read(first+i) || dirty
	}
	return dirty
}

// store is a demand to write bytes within a line.
func (l *level) store(addr trace.Addr, bytes uint64) {
	l.counts.Writes++
	line := addr >> l.shift
	if !l.tags.touch(line, !l.through) {
		l.counts.WriteMisses++
		l.missed(line)
		if l.around || l.exclusive {
			l.storeBelow(addr, bytes)
			return
		}
		l.fill(line, l.fetch(line) || !l.through)
	}
	if l.through {
		l.updateBelow(addr, bytes)
	}
}

// storeBelow demands of the level below to write.
func (l *level) storeBelow(addr trace.Addr, bytes uint64) {
	if l.below == nil {
		l.memory.write(bytes)
		return
	}
	l.below.pieces(addr, bytes, l.below.store)
}

// updateBelow writes a store through.
func (l *level) updateBelow(addr trace.Addr, bytes uint64) {
	if l.below == nil {
		l.memory.write(bytes)
		return
	}
	l.below.pieces(addr, bytes, l.below.update)
}

// update is a store written through by the level above.
func (l *level) update(addr trace.Addr, bytes uint64) {
	l.counts.Updates++
	if hit := l.tags.touch(addr>>l.shift, !l.through); !hit || l.through {
		l.updateBelow(addr, bytes)
	}
}

// sendBack writes bytes back to the level below.
func (l *level) sendBack(addr trace.Addr, bytes uint64) {
	l.counts.WriteBacksSent++
	if l.below == nil {
		l.memory.write(bytes)
		return
	}
	l.below.pieces(addr, bytes, l.below.writeBack)
}

// writeBack is a dirty line of a level above, or a part of it.
func (l *level) writeBack(addr trace.Addr, bytes uint64) {
	l.counts.WriteBacksReceived++
	line := addr >> l.shift
	hit := l.tags.touch(line, !l.through)
	if !hit {
		l.counts.WriteBackMisses++
		if bytes < l.lineBytes() || l.around || l.exclusive {
			l.sendBack(addr, bytes)
			return
		}
		l.supersede(line)
		l.fill(line, !l.through)
	}
	if l.through {
		l.sendBack(addr, bytes)
	}
}

// supersede takes a line that is written back whole from the exclusive levels
// below, which may hold an older state of it.
func (l *level) supersede(line trace.Line) {
	for n := l.below; n != nil && n.exclusive; n = n.below {
		if present, _ := n.tags.remove(line); present {
			n.counts.Given++
		}
	}
}

// fill puts a line into its set, from which another may have to leave.
func (l *level) fill(line trace.Line, dirty bool) {
	l.counts.Fills++
	if l.lost != nil {
		delete(l.lost, line)
	}
	victim, victimDirty, evicted := l.tags.insert(line, dirty)
	if !evicted {
		return
	}
	l.counts.Evictions++
	if l.inclusive {
		victimDirty = l.takeFromAbove(victim) || victimDirty
	}
	switch {
	case l.below != nil && l.below.exclusive:
		if victimDirty {
			l.counts.WriteBacksSent++
		}
		l.below.accept(victim, victimDirty)
	case victimDirty:
		l.sendBack(victim<<l.shift, l.lineBytes())
	}
}

// takeFromAbove takes a line from all levels above, and tells whether it was
// changed in one of them.
func (l *level) takeFromAbove(line trace.Line) (dirty bool) {
	if b := l.connect; b != nil && b.shift == l.shift {
		if c, known := b.lines.get(line); known { // no others have it
			for left := c.holders; left != 0; left &= left - 1 {
				dirty = l.takeFrom(b.members[bits.TrailingZeros64(left)], line) || dirty
			}
			return dirty
		}
	}
	for _, n := range l.above {
		dirty = l.takeFrom(n, line) || dirty
	}
	return dirty
}

// takeFrom takes a line from a cache above and those above that.
func (l *level) takeFrom(n *level, line trace.Line) (dirty bool) {
	n.everyCopy(line<<l.shift, l.lineBytes(), func(n *level, line trace.Line) {
		if present, changed := n.tags.remove(line); present {
			n.counts.Taken++
			dirty = dirty || changed
		}
	})
	return dirty
}

// everyCopy calls for each line that holds bytes of a run, if it is there, in this
// level and those above it.
func (l *level) everyCopy(addr trace.Addr, bytes uint64, each func(*level, trace.Line)) {
	for line := addr >> l.shift; line <= (addr+bytes-1)>>l.shift; line++ {
		each(l, line)
	}
	for _, n := range l.above {
		n.everyCopy(addr, bytes, each)
	}
}

// accept takes the victim of the level above into an exclusive level. It may be
// there already, if another core had the line too and gave it up before.
func (l *level) accept(line trace.Line, dirty bool) {
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
		l.sendBack(line<<l.shift, l.lineBytes())
	}
}

// pieces cuts a run of bytes where lines of the level end.
func (l *level) pieces(addr trace.Addr, bytes uint64, each func(trace.Addr, uint64)) {
	for bytes > 0 {
		piece := min(bytes, l.room(addr))
		each(addr, piece)
		addr, bytes = addr+piece, bytes-piece
	}
}

// flush writes back what is dirty. The lines stay, clean.
func (l *level) flush() {
	l.tags.clean(func(line trace.Line) { l.sendBack(line<<l.shift, l.lineBytes()) })
}

func (t *Traffic) write(bytes uint64) {
	t.Writes++
	t.BytesWritten += bytes
}
