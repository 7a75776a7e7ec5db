package sites

import (
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// A prefetcher covers an access if the site's earlier accesses predict its line (MODELS §15). When a
// site moves to another line, the number of lines of this move is compared with the site's previous
// move. The definition does not depend on a cache, so that the covered accesses can be counted by
// stack distance.

// prefetchBits is the binary logarithm of the page size that bounds prefetches.
const prefetchBits = 12

// follows reports whether a move of a site is the move that a prefetcher predicts from the previous
// move. With a constant stride that is not a multiple of the line size, the moves have two different
// lengths, which differ by one line. A move of 0 lines is no move.
func follows(move, before uint64) bool { return before != 0 && move-before+1 <= 2 }

func samePage(x, y trace.Addr) bool { return (x^y)>>prefetchBits == 0 }

// startsPage reports whether a line is the first line of its page.
func (a *Analysis) startsPage(line trace.Line) bool {
	return line<<a.lineShift&(1<<prefetchBits-1) == 0
}

// coveredPair returns the pair that counts the covered accesses of the same site to the same object.
func (a *Analysis) coveredPair(number uint32) uint32 {
	if a.pairs[number].covered {
		return number
	}
	if a.partner[number] == 0 {
		p := a.pairs[number]
		p.covered = true
		n := a.pairNumber(p)
		a.partner[number], a.partner[n] = n, number
	}
	return a.partner[number]
}

// plainPair is the inverse of coveredPair.
func (a *Analysis) plainPair(number uint32) uint32 {
	if !a.pairs[number].covered {
		return number
	}
	return a.partner[number]
}

// covered returns the counts of covered accesses by site, or nil if they are unknown.
func (s *summary) covered() []profile.Reuse {
	if s.a.uncovered {
		return nil
	}
	out := make([]profile.Reuse, len(s.order))
	for i, slot := range s.order {
		var sum [coldBin + 1]uint64
		for _, n := range s.bySlot[slot] {
			if s.a.pairs[n].covered {
				s.a.bins.addTo(&sum, n)
			}
		}
		out[i] = reuse(&sum)
	}
	return out
}

// pendingAccess is an access of which it is unknown whether a prefetcher covers it, because this
// depends on the previous segment.
type pendingAccess struct {
	thread, slot uint32
	reference    int // number of the reference in the batch
	which        int // firstAccess or firstMove
}

// The accesses of a walk that depend on the previous segment.
const (
	firstAccess = iota
	firstMove   // the first access to a second line; it depends on the move in the previous segment
	numPending
)

// A pending access is stored as 0 if it does not exist, as 1 + its bin of distances, or as firstTouch
// + its index in the first touches of the segment.
const firstTouch = 1 + profile.SiteBins

// noteStart records a reference at the beginning of a walk. The walk does not contain the reference
// yet.
func (a *Analysis) noteStart(w *walks, slot uint32, addr trace.Addr, bytes uint32, reference int) {
	s, start := &w.sites[slot], &w.starts[slot]
	move := addr>>a.lineShift - s.last>>a.lineShift
	switch {
	case start.references == 0:
		a.pending = append(a.pending, pendingAccess{w.thread, slot, reference, firstAccess})
	case s.move == 0 && move != 0 && samePage(addr, s.last):
		start.move = move
		a.pending = append(a.pending, pendingAccess{w.thread, slot, reference, firstMove})
	}
	start.note(addr, bytes)
}

// locatePending records the distances of pending accesses.
func (a *Analysis) locatePending(x *locality.Accesses) {
	touches, i, done := uint64(len(a.joining.firsts)), 0, 0
	for ; done < len(a.pending); done++ {
		p := &a.pending[done]
		for ; i < len(x.Distances) && x.Row(i) != p.reference; i++ {
			if isCold(x.Distances[i]) {
				touches++
			}
		}
		if i == len(x.Distances) {
			break
		}
		at := &a.threads.walksOf(p.thread, 0, true).starts[p.slot].pending[p.which]
		if d := x.Distances[i]; isCold(d) {
			*at = firstTouch + touches
		} else {
			*at = 1 + uint64(binOf(d))
		}
	}
	a.pending = append(a.pending[:0], a.pending[done:]...)
}

// appendMove continues the moves of a site with the walk of the next segment. It returns which of the
// pending accesses of this walk are covered.
func (s *stride) appendMove(next *stride, start *walkStart, lineShift uint) (covered [numPending]bool) {
	before := s.move
	if move := start.addr[0]>>lineShift - s.last>>lineShift; move != 0 {
		covered[firstAccess] = follows(move, before) && samePage(start.addr[0], s.last)
		before = move
	}
	covered[firstMove] = start.pending[firstMove] != 0 && follows(start.move, before)
	if s.move = before; next.move != 0 {
		s.move = next.move
	}
	return covered
}

// appendMove completes the start of a walk with the start of the same walk in the next segment. The
// parameter s is the walk at the end of the first segment. appendMove reports whether the first move
// of the joined walk is pending in the next segment.
func (w *walkStart) appendMove(s *stride, next *walkStart, lineShift uint) bool {
	if s.move != 0 {
		return false
	}
	move, which := next.addr[0]>>lineShift-s.last>>lineShift, firstAccess
	switch {
	case move == 0:
		move, which = next.move, firstMove
	case !samePage(next.addr[0], s.last):
		return false
	}
	w.move, w.pending[firstMove] = move, next.pending[which]
	return true
}

// coveredAccess is a pending access that a prefetcher covers.
type coveredAccess struct {
	slot uint32
	at   uint64 // the stored form of the access
}

// joinMoves joins a walk of the segment with the walk w.sites[x.slot], which is at.
func (f *stateCoder) joinMoves(thread uint32, x *walk, at *stride, w *walks) {
	if f.moves == nil {
		return
	}
	shift := f.a.lineShift
	if f.a.options.Mergeable {
		start := &w.starts[x.slot]
		if start.appendMove(at, &x.start, shift) {
			f.awaitDistance(thread, x.slot, firstMove, start)
		}
	}
	for i, covered := range at.appendMove(&x.at, &x.start, shift) {
		if covered {
			f.covers = append(f.covers, coveredAccess{x.slot, x.start.pending[i]})
		}
	}
}

// awaitDistance updates the stored form of a pending access when the first touches of the segment are
// resolved.
func (f *stateCoder) awaitDistance(thread, slot uint32, which int, start *walkStart) {
	if at := start.pending[which]; at >= firstTouch && !f.restore {
		f.a.joining.moves[at-firstTouch] = pendingAccess{thread: thread, slot: slot, which: which}
	}
}

// cover adds a pending access to the covered accesses of its site.
func (f *stateCoder) cover(c coveredAccess) {
	a, bin := f.a, coldBin
	if c.at < firstTouch {
		bin = int(c.at - 1)
	} else {
		touch := &f.firstTouches[c.at-firstTouch]
		*touch = a.coveredPair(*touch)
	}
	n := a.pairNumber(pair{slot: c.slot, object: noObject})
	*a.bins.counter(n, bin)--
	*a.bins.counter(a.coveredPair(n), bin)++
}

// Section segw contains the moves of walks, in the order of section segs. Fields in brackets exist
// only if the segment is mergeable.
//
//	for each walk: zigzag last move · [uv first access · uv first move · if this is not 0: zigzag
//	lines of the first move]
//	[for each first touch: one bit, 1 if a prefetcher covers it, in little-endian words]

// codeMoves reads or writes the moves of a walk.
func (f *stateCoder) codeMoves(x *walk) {
	c := f.moves
	if c == nil {
		return
	}
	codeMove(c, &x.at.move)
	if !f.mergeable {
		return
	}
	start := &x.start
	for i := range start.pending {
		c.U64(&start.pending[i])
		f.touch = max(f.touch, start.pending[i])
	}
	c.Check(start.pending[firstAccess] != 0, "a site has no first access")
	if start.pending[firstMove] != 0 {
		codeMove(c, &start.move)
	}
}

func codeMove(c *codec.Coder, move *uint64) {
	v := *move<<1 ^ -(*move >> 63)
	c.U64(&v)
	*move = v>>1 ^ -(v & 1)
}

// codeCoveredTouches reads or writes which first touches are covered. While reading, it also adds the
// pending accesses that turned out to be covered.
func (f *stateCoder) codeCoveredTouches() {
	c := f.moves
	if c == nil || !f.mergeable {
		return
	}
	bits := make([]uint64, (len(f.firstTouches)+63)/64)
	if !c.Reads() {
		for i, n := range f.firstTouches {
			if f.a.pairs[n].covered {
				bits[i/64] |= 1 << (i % 64)
			}
		}
	}
	c.Words(bits)
	if !c.Reads() {
		return
	}
	c.Check(f.touch < firstTouch+uint64(len(f.firstTouches)), "a first access is out of range")
	if c.Failed() || f.Failed() {
		return
	}
	for i, n := range f.firstTouches {
		if bits[i/64]>>(i%64)&1 != 0 {
			f.firstTouches[i] = f.a.coveredPair(n)
		}
	}
	for _, of := range f.covers {
		f.cover(of)
	}
}
