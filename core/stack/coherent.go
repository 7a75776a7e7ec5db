package stack

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Coherent is the LRU stack of one core of several whose private caches are kept
// coherent by invalidation (MODELS §6.4; Schuff, Parsons and Pai's model as in
// Kulkarni §2): another core's store takes a line away and leaves a hole in its
// place, which is a way that is free in every cache that had the line. What is
// accessed next fills the topmost hole that is above its own place; only what is
// above that hole moves down, and the old place becomes a hole. So it answers for
// every capacity at once, and for every number of sets, each with holes of its own,
// what [Sets] answers for a core alone. Make one with [NewCoherent].
//
// The depth of a line is the most valid lines that were above it at any one time
// since its access: holes are what is left of lines that were there. So a line lies
// no deeper in its set with more sets, and one that is on top of its set, since
// nothing of that set was accessed after it, is on top with more sets too.
//
// So it works in the two pieces of Sets:
//
//  1. The top array holds lines that were accessed since holes were last made above
//     or among them, so that there are none: hits there are counted as by Sets.
//     Before a line of the array is lost, it and those below fall off.
//  2. Below it, stamps of holes stay live; coherent_holes.go finds the newest. For each number
//     of sets there is a list a set (coherent_ways.go), whose first entries are the lines
//     of the array, in any order, and whose others are lines and holes in the order
//     of the stack. A line moves in its lists when it comes into the array, and when
//     it falls off it; what happens in between leaves them as they are.
type Coherent struct {
	near  Sets // its top array, table and stamps; nothing of recency
	array [topLines]trace.Line
	used  int   // lines in array
	holes holes // of the stamps that are live, those without a line
	ways  ways  // the lists of sets
	lost  int   // lines without a place

	noting bool
	filled []uint32 // what Filled will tell
}

// In the table's entries, fell is the id of the line, 0 if new. A lost line is stamped fresh.

// Op is what happens to a line of a [Coherent].
type Op uint8

// The operations.
const (
	AccessOp Op = iota // the core loads or stores
	LoseOp             // another core's store takes the line
	AskOp              // where is it? changes nothing
)

// Lost is the distance of an access to a line that was lost since the core's last access to it:
// a coherence miss in every cache.
const Lost = Cold - 1

// NewCoherent makes an empty model.
func NewCoherent() *Coherent {
	m := new(Coherent)
	m.clearArray()
	m.near.exact.stamps.reset(blockStamps, 0)
	m.ways.reset()
	return m
}

func (m *Coherent) clearArray() {
	for i := range m.array {
		m.array[i], m.near.exact.top[i] = noLine, noLine
	}
	m.used = 0
}

// Access accesses lines below 2^61 in order. In out it writes the depth of each, in
// lines and holes from zero, or Cold, or Lost, and then in lost the depth at which it
// was lost. It gives how many were lost. Both are at least as long as lines.
func (m *Coherent) Access(lines []trace.Line, out, lost []uint32) (back int) {
	before := m.lost
	for len(lines) > 0 {
		n := min(len(lines), chunk)
		m.access(lines[:n], out, lost)
		lines, out, lost = lines[n:], out[n:], lost[n:]
	}
	return before - m.lost
}

func (m *Coherent) access(lines []trace.Line, out, lost []uint32) {
	m.near.tally.accesses += uint64(len(lines))
	misses := m.near.scan(lines, out[:len(lines)])
	for at := 0; at < misses; at += burst {
		m.settle(m.near.exact.queue[at:min(at+burst, misses)], out, lost)
	}
}

// settle resolves the accesses that the top array did not hold.
func (m *Coherent) settle(queue []deep, out, lost []uint32) {
	var entries, evicted [burst]*entry
	m.near.exact.lookUp(queue, &entries)
	m.near.exact.lookUpEvicted(queue, &evicted)
	for i := range queue {
		q, e := &queue[i], entries[i]
		out[q.index], lost[q.index] = m.arrive(q, e, evicted[i])
	}
}

// arrive brings a line, whose entry is e, into the top array in place of one that fell off.
func (m *Coherent) arrive(q *deep, e, evicted *entry) (depth, lostAt uint32) {
	tally := &m.near.tally
	if m.noting && e.stamp == fresh {
		m.filled = append(m.filled, m.holed(q.line))
	}
	depth = m.pull(e)
	m.replace(q, evicted)
	switch {
	case depth < MaxWays:
		tally.whole[depth]++
		m.ways.move(q.line, e.fell)
	case depth < Lost:
		tally.beyond++
		m.ways.move(q.line, e.fell)
	case depth == Lost:
		tally.cold++
		m.lost--
		lostAt = m.ways.comeBack(q.line, e.fell)
	default:
		tally.cold++
		e.fell = m.ways.newID()
		m.ways.push(q.line, e.fell, setBits)
	}
	return depth, lostAt
}

// pull takes a line off its place, fills the topmost hole above that, and returns its depth.
func (m *Coherent) pull(e *entry) (depth uint32) {
	stamps, place := &m.near.exact.stamps, e.stamp
	e.stamp = onTop
	hole, found := m.holes.newest()
	switch {
	case place == fresh:
		if found {
			m.holes.remove(hole)
			stamps.remove(hole)
		}
		if e.fell > 0 {
			return Lost
		}
		return Cold
	case found && hole > place:
		depth = uint32(m.used) + stamps.live - 1 - stamps.rank(place)
		m.holes.remove(hole)
		stamps.remove(hole)
		m.holes.add(place)
		return depth
	}
	return uint32(m.used) + stamps.remove(place)
}

// replace puts a line in the place of the one that fell off the array.
func (m *Coherent) replace(q *deep, evicted *entry) {
	if evicted == nil {
		m.array[m.used] = q.line
		m.used++
		return
	}
	i := 0
	for i < topLines-1 && m.array[i] != q.evicted {
		i++
	}
	m.array[i] = noLine
	m.fall(q.evicted, evicted)
	m.array[i] = q.line
}

// fall puts a line that left the array below those in the array in its lists, and stamps it.
func (m *Coherent) fall(line trace.Line, e *entry) {
	m.ways.fall(line, e.fell, m.meeting(line))
	e.stamp = m.newStamp()
}

// meeting counts, in lanes, the lines of the array that share a set with a line.
func (m *Coherent) meeting(x trace.Line) (lanes uint64) {
	for _, y := range m.array[:m.used] {
		if y != noLine {
			lanes += sharing[common(x, y)]
		}
	}
	return lanes
}

// newStamp returns a stamp that is newer than all.
func (m *Coherent) newStamp() uint32 {
	exact := &m.near.exact
	if exact.stamps.full() {
		m.holes.renumber(exact.stamps.rank)
		exact.compact()
	}
	return exact.stamps.push()
}

// inArray returns the place of a line in the array, or -1.
func (m *Coherent) inArray(line trace.Line) int {
	return slices.Index(m.near.exact.top[:m.used], line)
}

// Depth returns the depth of a line, or Cold if the core lacks it. It changes nothing.
func (m *Coherent) Depth(line trace.Line) uint32 {
	if i := m.inArray(line); i >= 0 {
		return uint32(i)
	}
	return m.depthOf(m.near.exact.table.find(line))
}

// depthOf returns the depth of a line below the array. Its entry may be nil.
func (m *Coherent) depthOf(e *entry) uint32 {
	if e == nil || e.stamp == fresh {
		return Cold
	}
	stamps := &m.near.exact.stamps
	return uint32(m.used) + stamps.live - 1 - stamps.rank(e.stamp)
}

// Lose turns a line that another core stores to into a hole. It returns its depth, or Cold if
// the core lacks the line.
func (m *Coherent) Lose(line trace.Line) (depth uint32) {
	e := m.near.exact.table.find(line)
	switch {
	case e == nil || e.stamp == fresh:
		return Cold
	case e.stamp == onTop:
		depth = uint32(m.inArray(line))
		m.shorten(int(depth))
	default:
		depth = m.depthOf(e)
	}
	m.holes.add(e.stamp)
	m.ways.lose(line, e.fell, depth)
	e.stamp = fresh
	m.lost++
	return depth
}

// shorten drops the lines of the array from a depth on.
func (m *Coherent) shorten(to int) {
	top := &m.near.exact.top
	copy(m.array[:], top[:m.used])
	for i := m.used - 1; i >= to; i-- {
		line := top[i]
		top[i], m.array[i] = noLine, noLine
		m.used--
		m.fall(line, m.near.exact.table.find(line))
	}
}

// Lines is the number of distinct lines that the core has accessed so far.
func (m *Coherent) Lines() int { return m.near.exact.table.lines }

// Depths returns how deep accesses found their lines, as [Sets.Depths] does, except lost lines.
func (m *Coherent) Depths() *SetDepths {
	m.check()
	tally := &m.near.tally
	t := tally.depths()
	deeper := m.ways.count(t)
	for a := 1; a < SetCounts; a++ {
		t[a][0] = tally.accesses - tally.cold - deeper[a] // and those that are not counted below
		for _, n := range t[a][1:] {
			t[a][0] -= n
		}
	}
	return t
}
