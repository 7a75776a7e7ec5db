package simulate

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/trace"
)

// parts is the state of the sub-blocks in a level (also called sectors). Lines are replaced as a
// whole, but each sub-block is fetched and written back separately.
type parts struct {
	shift uint // sub-blocks have 1 << shift bytes
	of    map[trace.Line]part
}

// part is a set of sub-blocks of a line. Bit n represents sub-block n.
type part struct {
	valid, dirty uint64
	used         uint64 // sub-blocks that a demand access has used since the line was inserted
}

// request describes the cause of an access to a level with sub-blocks.
type request struct {
	store     bool // whether the access is a write; otherwise, it is a read
	prefetch  bool // whether the access is a prefetch that the level's own prefetcher issued
	fromAbove bool // whether the access is a prefetch that a level above issued
}

// partsOf returns the set of sub-blocks of a range of bytes within a line.
func (l *level) partsOf(addr trace.Addr, bytes uint64) uint64 {
	shift, inLine := l.watch.parts.shift, l.lineBytes()-1
	first, last := addr&inLine>>shift, (addr&inLine+bytes-1)>>shift
	return (2<<(last-first) - 1) << first
}

// accessParts performs an access within a line of a level with sub-blocks. The order of the events
// is the order in DineroIV (ref.c): fetch, write-through, write-back of the victim, prefetches.
func (l *level) accessParts(r request, addr trace.Addr, bytes uint64) {
	w := l.watch
	line, mask := addr>>l.shift, l.partsOf(addr, bytes)
	p, present := w.parts.of[line]
	missed, first := p.valid&mask != mask, p.valid&mask == mask && p.used&mask == 0
	whole := bytes == uint64(bits.OnesCount64(mask))<<w.parts.shift
	insert := !r.store || !l.around && (whole || !l.wholeOnly)
	l.countParts(r, missed, !present, first)
	if pre := w.prefetch; pre != nil && !present && !r.prefetch && !r.fromAbove {
		if _, pushed := pre.pushed[line]; pushed {
			l.counts.Prefetch.Pollution++
			delete(pre.pushed, line)
		}
	}
	var victim trace.Line
	var left part // state of the victim's sub-blocks
	evicted := false
	fetched := missed && (!r.store || (present || insert) && !whole)
	if present || insert {
		dirty := r.store && !l.through
		if present {
			l.tags.touch(line, dirty)
		} else {
			if victim, evicted = l.insertParts(line, dirty); evicted {
				left = w.parts.of[victim]
				delete(w.parts.of, victim)
			}
		}
		p.valid |= mask
		if !r.prefetch {
			p.used |= mask
		}
		if dirty {
			p.dirty |= mask
		}
		w.parts.of[line] = p
	}
	seen := observation{request: r, bytes: bytes, missed: missed, lineMissed: !present}
	if w.causes != nil {
		seen.cause, seen.lineCause = w.causes.access(line, mask, !insert, missed, !present)
		if !r.prefetch && !r.fromAbove {
			l.counts.count(seen.cause)
		}
	}
	if w.observe != nil {
		w.observe(seen)
	}
	if fetched {
		from := addr >> w.parts.shift << w.parts.shift
		l.fetchParts(from, uint64(bits.OnesCount64(mask))<<w.parts.shift, r.prefetch || r.fromAbove)
	}
	if r.store && (l.through || !present && !insert) {
		each := (*level).update
		if !present && !insert {
			each = (*level).store
		}
		l.passDown(addr, bytes, each)
	}
	if evicted {
		l.evictParts(victim, left)
		if r.prefetch {
			w.prefetch.pushed[victim] = struct{}{}
		}
	}
	if w.prefetch != nil && !r.prefetch && (!r.store || !w.prefetch.Reads) && (!r.fromAbove || w.prefetch.Chained) {
		l.prefetchAfter(addr, missed, first)
	}
}

// countParts counts an access to sub-blocks. The parameter lineMissed is true if the line is
// absent. The parameter firstUse is true if the access is the first use of prefetched sub-blocks.
func (l *level) countParts(r request, missed, lineMissed, firstUse bool) {
	c := l.counts
	add := func(n *uint64, is bool) {
		if is {
			*n++
		}
	}
	switch {
	case r.prefetch:
		add(&c.Prefetch.Misses, missed)
		add(&c.Prefetch.Hits, !missed)
		return
	case r.fromAbove:
		c.PrefetchReads++
		add(&c.PrefetchReadMisses, missed)
		return
	case r.store:
		c.Writes++
		add(&c.WriteMisses, missed)
	default:
		c.Reads++
		add(&c.ReadMisses, missed)
		l.countFetch(missed)
	}
	add(&c.LineMisses, lineMissed)
	add(&c.Prefetch.Useful, firstUse && l.watch.prefetch != nil)
}

// insertParts inserts an absent line that does not contain any sub-blocks yet.
func (l *level) insertParts(line trace.Line, dirty bool) (victim trace.Line, evicted bool) {
	l.counts.Fills++
	l.watch.lineEntered(line)
	victim, _, evicted = l.tags.insert(line, dirty)
	if evicted {
		l.counts.Evictions++
	}
	return victim, evicted
}

// evictParts writes back the dirty sub-blocks of a line that was evicted.
func (l *level) evictParts(victim trace.Line, left part) {
	if l.watch.prefetch != nil {
		l.counts.Prefetch.Unused += uint64(bits.OnesCount64(left.valid &^ left.used))
	}
	l.writeBackParts(victim, left.dirty)
}

// writeBackParts writes back dirty sub-blocks, starting with the last. Adjacent sub-blocks are
// written back together.
func (l *level) writeBackParts(line trace.Line, dirty uint64) {
	shift := l.watch.parts.shift
	for dirty != 0 {
		last := bits.Len64(dirty)
		// number of adjacent dirty sub-blocks up to the last sub-block
		run := bits.LeadingZeros64(^(dirty << (64 - last)))
		first := last - run
		l.sendWriteBack(line<<l.shift+uint64(first)<<shift, uint64(run)<<shift)
		dirty &= 1<<first - 1
	}
}

// fetchParts reads whole sub-blocks from the level below.
func (l *level) fetchParts(addr trace.Addr, bytes uint64, pull bool) {
	if pull {
		l.prefetchFromBelow(addr, bytes)
		return
	}
	if l.below == nil {
		l.memory.Reads++
		l.memory.BytesRead += bytes
		return
	}
	for bytes > 0 {
		piece := min(bytes, l.below.room(addr))
		l.below.readRange(addr, piece)
		addr, bytes = addr+piece, bytes-piece
	}
}

// readRange processes a demand read of a range of bytes within a line.
func (l *level) readRange(addr trace.Addr, bytes uint64) (dirty bool) {
	if l.watch != nil && l.watch.parts != nil {
		l.accessParts(request{}, addr, bytes)
		return false
	}
	return l.read(addr >> l.shift)
}

// receiveParts processes bytes that the level above writes back or writes through. The result
// "kept" reports whether the level has stored all bytes. If the level has not stored all bytes, the
// caller passes all bytes to the level below, and sub-blocks that are present are updated without
// becoming dirty.
func (l *level) receiveParts(addr trace.Addr, bytes uint64, back bool) (hit, kept bool) {
	w := l.watch
	line, mask := addr>>l.shift, l.partsOf(addr, bytes)
	p, present := w.parts.of[line]
	whole := bytes == uint64(bits.OnesCount64(mask))<<w.parts.shift
	hit = p.valid&mask == mask
	if back && w.observe != nil {
		w.observe(observation{request: request{store: true}, bytes: bytes, missed: !hit, lineMissed: !present})
	}
	var victim trace.Line
	var left part
	evicted := false
	switch {
	case present && (hit || whole):
		l.tags.touch(line, !l.through)
	case !present && whole && back && !l.around:
		if victim, evicted = l.insertParts(line, !l.through); evicted {
			left = w.parts.of[victim]
			delete(w.parts.of, victim)
		}
	default:
		return hit, false
	}
	p.valid |= mask
	p.used |= mask
	if !l.through {
		p.dirty |= mask
	}
	w.parts.of[line] = p
	if evicted {
		l.evictParts(victim, left)
	}
	return hit, true
}
