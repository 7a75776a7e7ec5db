package stack

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

const (
	// SetCounts is the number of different set counts that [Sets] supports: 2^0 to 2^16 sets.
	SetCounts = 17
	// MaxWays is the largest number of ways that [Sets] supports.
	MaxWays = 32
)

// SetDepths counts accesses by the depth of the line in its set: for 2^a sets, element [a][d] is
// the number of accesses with Δ^a = d (MODELS §4). In an LRU cache of 2^a sets and w ways, exactly
// the accesses with d < w hit.
type SetDepths [SetCounts][MaxWays]uint64

// Add adds the counts of another SetDepths.
func (t *SetDepths) Add(other *SetDepths) {
	for a := range t {
		for d := range t[a] {
			t[a][d] += other[a][d]
		}
	}
}

// SetNumbers is a bit mask of set counts: bit a represents 2^a sets.
type SetNumbers uint32

// MostSetNumbers represents one set and 2^4 to 2^16 sets.
const MostSetNumbers = AllSetNumbers &^ 0b1110

// AllSetNumbers represents 2^0 to 2^16 sets.
const AllSetNumbers SetNumbers = 1<<SetCounts - 1

// Sets is the model for set-associative caches. Sets extends [Exact] with the depth of the accessed
// line in its set, for several set counts at once. Create a Sets with [NewSets].
type Sets struct {
	topArray // counts the hits in the top array by depth, unless the lists follow accesses
	above    [topLines]topLine
	// whether the lists follow accesses; otherwise, they follow the lines that fall off the top
	// array
	accesses bool
	latest   []trace.Line // the most recently used line of each set, for the smallest number of sets; used only if the lists follow accesses
	moves    moves
	now      uint32 // the last number assigned to a move
	last     uint32 // the moves are renumbered when the field "now" reaches this number
	recent   recency
	pushed   bool // true while [Sets.Push] accesses lines without counting
	marks    marks
}

type tally struct {
	accesses uint64
	cold     uint64
	whole    [MaxWays]uint64 // number of accesses at each distance above 0
	beyond   uint64          // number of accesses at distances of MaxWays or more
}

const setBits = SetCounts - 1

// topLine describes a line of the top array. The array Sets.above contains these lines in any order.
type topLine struct {
	line  trace.Line
	after uint32 // as in the type "visit", or notCounted
}

const notCounted = ^uint32(0) // value of the field "after" if the line must not be counted

// common returns the number of low bits that two line numbers share, up to setBits.
func common(x, y trace.Line) int { return bits.TrailingZeros16(uint16(x ^ y)) }

// NewSets returns an empty model for one set and for the given numbers of sets.
func NewSets(numbers SetNumbers) *Sets {
	m := &Sets{last: notCounted - 2*chunk}
	m.recent.selectLists(numbers)
	m.latest = make([]trace.Line, 1<<m.recent.least)
	m.reset()
	return m
}

func (m *Sets) reset() {
	m.exact = Exact{top: emptyTop}
	m.exact.stamps.reset(blockStamps, 0)
	for i := range m.above {
		m.above[i] = topLine{noLine, notCounted}
	}
	m.accesses, m.moves = m.fewPerSet(), moves{}
	m.forget()
	m.now = 0
	m.recent.reset()
}

// fewPerSet reports whether there are so many sets that the accessed line is often the most
// recently used line of its set. If fewPerSet is false, the lists follow accesses only while every
// line has a stamp.
func (m *Sets) fewPerSet() bool { return m.recent.least >= minFewPerSet }

// The method [Sets.fewPerSet] returns true if there are at least 2^minFewPerSet sets.
const minFewPerSet = 4

func (m *Sets) forget() {
	for i := range m.latest {
		m.latest[i] = noLine
	}
}

// Reset removes every line and all counts, but keeps the memory of the hash table.
func (m *Sets) Reset() {
	exact := m.exact
	exact.Reset()
	m.recent.settle()
	m.reset()
	m.exact = exact
	m.tally, m.marks, m.recent.depths = nearTally{}, marks{}, [setBits + 1][2 * depthRoom]uint64{}
}

// Lines implements [Model].
func (m *Sets) Lines() int { return m.exact.Lines() }

// Stack implements [Model].
func (m *Sets) Stack() []trace.Line { return m.exact.Stack() }

// Distances implements [Model], and counts depths.
func (m *Sets) Distances(lines []trace.Line, out []uint32) {
	m.tally.accesses += uint64(len(lines))
	m.marks.now = nil
	for len(lines) > 0 {
		n := min(len(lines), chunk)
		m.makeRoom()
		queued := 0
		switch {
		case m.exact.stamped:
			queued = m.exact.scanStamped(lines[:n], out[:n])
		case m.accesses:
			queued = m.scanMoves(&m.tally.whole, lines[:n], out[:n])
		default:
			queued = m.scan(lines[:n], out[:n])
		}
		m.settleChunk(m.exact.queue[:queued], lines[:n], out[:n])
		lines, out = lines[n:], out[n:]
	}
}

// makeRoom renumbers the moves if there are not enough numbers for the moves of a chunk.
func (m *Sets) makeRoom() {
	if m.now >= m.last {
		m.renumberMoves()
	}
}

// settleChunk processes the queued accesses of a chunk.
func (m *Sets) settleChunk(queue []queuedAccess, lines []trace.Line, out []uint32) {
	switch {
	case m.exact.stamped:
		m.settleStamped(queue, out)
	case m.accesses:
		m.settleMoves(queue, out)
	default:
		m.settle(queue, out)
	}
	m.follow(m.exact.share.prefers(m.exact.stamped, out), lines, out, queue)
}

// Push accesses the lines in order without counting.
func (m *Sets) Push(lines []trace.Line) {
	m.recent.settle()
	counted, depths := m.tally, m.recent.depths
	var out [chunk]uint32
	m.pushed = true // this flag avoids the computation of depths, which would take most of the time
	for len(lines) > 0 {
		n := min(len(lines), chunk)
		m.Distances(lines[:n], out[:])
		lines = lines[n:]
	}
	m.recent.settle()
	m.pushed = false
	m.tally, m.recent.depths = counted, depths // marks.tally has not changed, because pushed accesses are never marked
}

// renumberMoves renumbers the moves from zero by rebuilding the model from its stack, which
// determines all future depths.
func (m *Sets) renumberMoves() {
	stack, marked := m.Stack(), m.marks.now
	m.recent.settle()
	m.reset()
	slices.Reverse(stack)
	m.Push(stack)
	m.marks.now = marked
}

// scanMoves works like [Exact]'s scan, but also queues a hit in the top array if a different line
// of the same set has been accessed since the line's last access. The line of such a hit moves in
// the lists, which count the depth of the hit.
func (m *Sets) scanMoves(whole *[MaxWays]uint64, lines []trace.Line, out []uint32) (queued int) {
	top, queue := &m.exact.top, &m.exact.queue
	latest := m.latest
	t0, t1, t2, t3 := top[0], top[1], top[2], top[3]
	out = out[:len(lines)]
next:
	for i, x := range lines {
		out[i] = 0
		if x == t0 {
			continue
		}
		d := uint32(frontLines)
		if x == t3 {
			d = 3
		}
		if x == t2 {
			d = 2
		}
		if x == t1 {
			d = 1
		}
		carry := t3
		if d >= 3 {
			t3 = t2
		}
		if d >= 2 {
			t2 = t1
		}
		t0, t1 = x, t0
		out[i] = d
		q, of := &queue[queued&(chunk-1)], &latest[x&uint64(len(latest)-1)]
		moves := 0
		if *of != x {
			moves = 1
		}
		*of = x
		if d < frontLines {
			whole[d%MaxWays]++
			*q = queuedAccess{x, noLine, int32(i), nearMove}
			queued += moves
			continue
		}
		for j := frontLines; j < topLines; j += 4 {
			four := (*[4]trace.Line)(top[j:])
			a, b, c, e := four[0], four[1], four[2], four[3]
			d := 4
			last := e
			if x == e {
				d = 3
			}
			if x == c {
				d = 2
			}
			if x == b {
				d = 1
			}
			if x == a {
				d = 0
			}
			if d >= 3 {
				e = c
			}
			if d >= 2 {
				c = b
			}
			if d >= 1 {
				b = a
			}
			four[0], four[1], four[2], four[3] = carry, b, c, e
			if d < 4 {
				d += j
				out[i] = uint32(d)
				whole[d%MaxWays]++
				*q = queuedAccess{x, noLine, int32(i), nearMove}
				queued += moves
				continue next
			}
			carry = last
		}
		*q = queuedAccess{x, carry, int32(i), int32(moves)}
		queued++
	}
	top[0], top[1], top[2], top[3] = t0, t1, t2, t3
	return queued
}

// The values of deep.how describe how a queued access moves its line in the lists.
const (
	farMove  = 1 // the line was not in the top array
	nearMove = 2 // the line was in the top array, so the access only changes the lists
)

// settle works like [Exact]'s settle, but also updates the recency lists.
func (m *Sets) settle(queue []queuedAccess, out []uint32) {
	var entries, evicted [burstSize]*entry
	for at := 0; at < len(queue); at += burstSize {
		few := queue[at:min(at+burstSize, len(queue))]
		m.exact.lookUp(few, &entries)
		m.exact.lookUpEvicted(few, &evicted)
		for i := range few {
			out[few[i].index] = m.insertTop(&few[i], entries[i], evicted[i])
		}
	}
}

// insertTop moves an accessed line into the top array, in place of the evicted line, and returns
// the accessed line's distance. The parameter e is the table entry of the accessed line.
func (m *Sets) insertTop(q *queuedAccess, e, evicted *entry) (d uint32) {
	d = m.exact.moveToArray(e)
	m.exact.stampEvicted(evicted)
	at := m.find(q.evicted)
	if evicted != nil {
		m.now++
		evicted.moved = m.now
		m.recent.visit(visit{after: at.after, now: m.now, line: uint32(q.evicted)})
	}
	t, how := m.tallyOf(q.index)
	t.count(d)
	if d == Cold {
		*at = topLine{q.line, never}
		return d
	}
	*at = topLine{noLine, notCounted}
	after := e.moved + 1
	if !m.pushed {
		m.recent.visit(visit{after: after, line: uint32(q.line)&^marked | how, above: m.unlistedLines(q.line, after)})
	}
	*at = topLine{q.line, after}
	return d
}

// settleMoves implements settle if the lists follow accesses.
func (m *Sets) settleMoves(queue []queuedAccess, out []uint32) {
	var entries, evicted [burstSize]*entry
	for at := 0; at < len(queue); at += burstSize {
		few := queue[at:min(at+burstSize, len(queue))]
		m.exact.lookUp(few, &entries)
		m.exact.lookUpEvicted(few, &evicted)
		for i := range few {
			q, e := &few[i], entries[i]
			t, how := m.tallyOf(q.index)
			if q.how != nearMove {
				d := m.exact.moveToArray(e)
				m.exact.stampEvicted(evicted[i])
				out[q.index] = d
				t.count(d)
			}
			if q.how != 0 {
				m.moveAndCount(e, q.line, how)
			}
		}
	}
}

// settleStamped works like [Exact]'s settleStamped, but also moves lines in the lists.
func (m *Sets) settleStamped(queue []queuedAccess, out []uint32) {
	var entries [burstSize]*entry
	for at := 0; at < len(queue); at += burstSize {
		few := queue[at:min(at+burstSize, len(queue))]
		m.exact.lookUp(few, &entries)
		for i := range few {
			q, e := &few[i], entries[i]
			d := m.exact.restamp(e)
			out[q.index] = d
			t, how := m.tallyOf(q.index)
			t.count(d)
			if of := m.latestOf(q.line); *of != q.line {
				*of = q.line
				m.moveAndCount(e, q.line, how)
			}
		}
	}
	m.exact.updateArray(queue)
}

// follow decides which lines have stamps, and which events the lists follow. If stamped is true,
// all lines have stamps, and the lists follow accesses. Otherwise, only the lines below the top
// array have stamps, and the lists follow either accesses or falls.
func (m *Sets) follow(stamped bool, lines []trace.Line, out []uint32, queue []queuedAccess) {
	m.exact.stampAll(stamped)
	m.switchTo(stamped || m.fewPerSet() && m.fewTopMoves(lines, out, queue))
}

func (m *Sets) switchTo(accesses bool) {
	if m.accesses == accesses {
		return
	}
	m.accesses = accesses
	m.recent.settle()
	m.forget()
	for i := topLines - 1; i >= 0; i-- {
		line := m.exact.top[i]
		e := m.exact.table.find(line)
		switch {
		case e == nil:
			m.above[i] = topLine{noLine, notCounted}
		case accesses:
			m.move(e, line, m.find(line).after, uncounted)
			*m.latestOf(line) = line
		default:
			m.above[i] = topLine{line, e.moved + 1}
		}
	}
	m.recent.settle()
}

// moves contains numbers of recent accesses that moved a line in the lists. The field "near" counts
// the lines that were in the top array, and the field "far" counts the lines below it. As in the
// type "share", only the last quarter of the accesses between two decisions is counted.
type moves struct{ accesses, near, far int }

// fewTopMoves reports whether only few hits in the top array would move a line if the lists
// followed accesses.
func (m *Sets) fewTopMoves(lines []trace.Line, out []uint32, queue []queuedAccess) bool {
	s := &m.moves
	s.accesses += len(lines)
	if m.exact.stamped || s.accesses <= stretch/4*3 {
		return m.accesses
	}
	if m.accesses {
		near := 0
		for i := range queue {
			near += int(queue[i].how) / nearMove
		}
		s.near += near
		s.far += len(queue) - near
	} else {
		for i, x := range lines {
			if d := out[i]; d >= topLines {
				s.far++
			} else if of := m.latestOf(x); *of != x {
				*of = x
				s.near++
			}
		}
	}
	if s.accesses < stretch {
		return m.accesses
	}
	few := s.near <= s.far
	if m.accesses {
		few = 4*s.near <= 5*s.far
	}
	*s = moves{}
	return few
}

// latestOf returns a pointer to the most recently used line of a line's set.
func (m *Sets) latestOf(line trace.Line) *trace.Line {
	return &m.latest[line&uint64(len(m.latest)-1)]
}

// find returns the element of m.above that describes a line, or a free element.
func (m *Sets) find(line trace.Line) *topLine {
	for i := range m.above[:topLines-1] {
		if m.above[i].line == line {
			return &m.above[i]
		}
	}
	return &m.above[topLines-1]
}

// unlistedLines counts the lines that share a set with x, and that have been in the top array since
// x left it. The lists do not count these lines as newer than x, so the result is added to the
// counts of the lists. The result contains a lane for each number of sets.
func (m *Sets) unlistedLines(x trace.Line, after uint32) (depths uint64) {
	for i := range m.above {
		y := &m.above[i]
		lanes := sharing[common(x, y.line)]
		if y.after > after {
			lanes = 0
		}
		depths += lanes
	}
	return depths
}

// move moves a line to the front of the lists of its sets.
func (m *Sets) move(e *entry, line trace.Line, after, how uint32) {
	m.now++
	e.moved = m.now
	m.recent.access(access{after: after, now: m.now, line: uint32(line)&^(uncounted|marked) | how})
}

// moveAndCount moves a line to the front of its lists. moveAndCount also counts the line's depth,
// unless the line is new or [Sets.Push] accesses it.
func (m *Sets) moveAndCount(e *entry, line trace.Line, how uint32) {
	if e.moved == 0 || m.pushed {
		how = uncounted
	}
	m.move(e, line, e.moved+1, how)
}

// count adds an access with distance d to the tally.
func (t *tally) count(d uint32) {
	switch {
	case d == Cold:
		t.cold++
	case d < MaxWays:
		t.whole[d]++
	default:
		t.beyond++
	}
}

// Depths returns the numbers of accesses by depth, including marked accesses.
func (m *Sets) Depths() *SetDepths {
	m.recent.settle()
	t := m.tally.combine(&m.recent, 0)
	if m.marks.tally != nil {
		t.Add(m.MarkedDepths())
	}
	return t
}

// single writes the numbers of accesses by depth for a single set.
func (t *tally) single(row *[MaxWays]uint64) {
	*row = t.whole
	row[0] = t.accesses - t.cold - t.beyond
	for _, n := range t.whole[1:] {
		row[0] -= n
	}
}

// combine adds the counts of the top array and the counts of the lists. The parameter "at" is the
// index in recency.depths at which the counts of the lists begin.
func (t *nearTally) combine(r *recency, at int) *SetDepths {
	s := t.depths()
	for a := 1; a < SetCounts; a++ {
		if r.numbers>>a&1 == 0 {
			s[a] = [MaxWays]uint64{}
			continue
		}
		deeper := uint64(0)
		for d, n := range r.depths[a][at : at+depthRoom] {
			if d < MaxWays {
				s[a][d] += n
			} else {
				deeper += n
			}
		}
		s[a][0] = t.accesses - t.cold - deeper // the next loop subtracts the accesses at depths above 0
		for _, n := range s[a][1:] {
			s[a][0] -= n
		}
	}
	return s
}

// marks counts the marked accesses of a [Sets].
type marks struct {
	now []bool // marks of the current chunk; nil if no access is marked
	// the counts of marked accesses, which the model's own tally does not include; nil if no access
	// was marked
	tally *nearTally
}

// DistancesMarked works like [Sets.Distances], but also counts marked accesses for
// [Sets.MarkedDepths].
func (m *Sets) DistancesMarked(lines []trace.Line, marked []bool, out []uint32) {
	if m.marks.tally == nil {
		m.marks.tally = new(nearTally)
	}
	for len(lines) > 0 {
		n := min(len(lines), chunk)
		if few := count(marked[:n]); few == 0 {
			m.Distances(lines[:n], out[:n])
		} else {
			m.makeRoom()
			m.marks.now = marked[:n]
			m.tally.accesses += uint64(n - few)
			m.marks.tally.accesses += uint64(few)
			m.settleChunk(m.exact.queue[:m.scanMarked(lines[:n], marked[:n], out[:n])], lines[:n], out[:n])
		}
		lines, marked, out = lines[n:], marked[n:], out[n:]
	}
	m.marks.now = nil
}

func count(marked []bool) (few int) {
	for _, is := range marked {
		if is {
			few++
		}
	}
	return few
}

// scanMarked scans in several steps, like scanSteps, so that marked accesses can be counted in a
// separate tally.
func (m *Sets) scanMarked(lines []trace.Line, marked []bool, out []uint32) (misses int) {
	if m.exact.stamped {
		return m.exact.scanStamped(lines, out)
	}
	tallies := [2]*nearTally{&m.tally, m.marks.tally}
	if m.accesses {
		var unused [MaxWays]uint64
		misses = m.scanMoves(&unused, lines, out)
		for _, q := range m.exact.queue[:misses] {
			if q.how != nearMove {
				out[q.index] = topLines
			}
		}
		for i, d := range out[:len(lines)] {
			if d-1 < topLines-1 {
				selectTally(tallies, marked[i]).whole[d%MaxWays]++
			}
		}
		return misses
	}
	var front, rest [chunk]uint16
	_, deeper := m.scanFront(lines, out, &front)
	_, misses = m.scanRest(deeper, out, &rest)
	for _, q := range m.exact.queue[:misses] {
		out[q.index] = topLines
	}
	near, far := 0, 0
	for i, d := range out[:len(lines)] {
		if d-1 >= topLines-1 {
			continue
		}
		t := selectTally(tallies, marked[i])
		t.whole[d%MaxWays]++
		if d < frontLines {
			t.front[front[near&(chunk-1)]&noteIndex]++
			near++
		} else {
			t.addLanes(m.packed[far&(chunk-1)])
			far++
		}
	}
	return misses
}

func selectTally(tallies [2]*nearTally, marked bool) *nearTally {
	if marked {
		return tallies[1]
	}
	return tallies[0]
}

// tallyOf returns the tally that counts an access of the chunk, and the access's flag for the lists.
func (m *Sets) tallyOf(index int32) (t *nearTally, how uint32) {
	if m.marks.now != nil && m.marks.now[index] {
		return m.marks.tally, marked
	}
	return &m.tally, 0
}

// MarkedDepths returns the numbers of marked accesses by depth.
func (m *Sets) MarkedDepths() *SetDepths {
	if m.marks.tally == nil {
		return new(SetDepths)
	}
	m.recent.settle()
	return m.marks.tally.combine(&m.recent, depthRoom)
}
