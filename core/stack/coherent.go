package stack

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Coherent is the LRU stack of one core of several whose private caches are kept coherent by
// invalidation (MODELS §6.4; Schuff, Parsons and Pai's model as in Kulkarni §2). Another core's
// store takes a line and leaves a hole, which is a free way in every cache that had the line.
// The next access fills the topmost hole above its own place; only what is above that hole
// moves down, and the old place becomes a hole. So the model answers for every capacity and
// number of sets at once, each with holes of its own, what [Sets] answers for a core alone.
// Make one with [NewCoherent].
//
// The depth of a line is the most valid lines that were above it at any one time since its
// access: holes are the places of such lines. So a line lies no deeper with more sets, and one
// that is on top of its set is on top with more sets too. It has two pieces:
//
//  1. The top array holds lines that were accessed since holes were last made above or among
//     them, so it has no holes: hits count by the lines above them. Before a line of the array is
//     lost, it and those below fall off.
//  2. Below it, stamps of holes stay live, and holes finds the newest. For each number
//     of sets each set has a list (coherent_ways.go): first the lines of the array, in any
//     order, and then lines and holes in the order of the stack. A line moves in its lists
//     only when it enters or leaves the array.
type Coherent struct {
	near  near
	array [topLines]trace.Line
	used  int   // lines in array
	holes holes // of the stamps that are live, those without a line
	ways  ways  // the lists of sets
	lost  int   // lines without a place

	noting bool
	filled []uint32 // what Filled will tell
}

// A lost line is stamped fresh.

// Op is an operation on a line of a [Coherent].
type Op uint8

// The operations.
const (
	AccessOp Op = iota // the core loads or stores
	LoseOp             // another core's store takes the line
	AskOp              // returns the depth, without a change
)

// Lost is the distance of an access to a line that was lost since the core's last access to it:
// a coherence miss in every cache.
const Lost = Cold - 1

// NewCoherent makes an empty model for some numbers of sets, and for one set.
func NewCoherent(numbers SetNumbers) *Coherent {
	m := &Coherent{array: emptyTop}
	m.near.exact.top = emptyTop
	m.near.exact.stamps.reset(blockStamps, 0)
	m.ways.reset(numbers)
	return m
}

// Access accesses lines below 2^61 in order. It writes the depth of each to out, in lines and holes
// from zero, or Cold, or Lost, and for lost ones their depth at that time to lost. It returns the
// number of lost ones. Both are at least as long as lines.
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
		m.ways.move(q.line, e.moved)
	case depth < Lost:
		tally.beyond++
		m.ways.move(q.line, e.moved)
	case depth == Lost:
		tally.cold++
		m.lost--
		m.ways.push(q.line, e.moved, m.ways.most)
		m.ways.empty[e.moved], lostAt = false, m.ways.lostAt[e.moved]
	default:
		tally.cold++
		e.moved = m.ways.newID()
		m.ways.push(q.line, e.moved, m.ways.most)
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
		if e.moved > 0 {
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
	m.ways.fall(line, e.moved, m.meeting(line))
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
	m.ways.lose(line, e.moved, depth)
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

// Lines returns the number of distinct lines that the core has accessed.
func (m *Coherent) Lines() int { return m.near.exact.table.lines }

// Depths returns how deep accesses found their lines, as [Sets.Depths] does, except lost lines.
func (m *Coherent) Depths() *SetDepths {
	tally := &m.near.tally
	t := tally.depths()
	deeper := m.ways.count(t)
	for a := 1; a < SetCounts; a++ {
		if m.ways.numbers>>a&1 == 0 {
			t[a] = [MaxWays]uint64{}
			continue
		}
		t[a][0] = tally.accesses - tally.cold - deeper[a] // and those that are not counted below
		for _, n := range t[a][1:] {
			t[a][0] -= n
		}
	}
	return t
}

// holes is a set of stamps that finds its newest: a bitmap, a bitmap of its nonzero words, and
// so on up to one word.
type holes struct {
	levels [][]uint64 // levels[0] has a bit a stamp
}

// newest returns the highest stamp.
func (h *holes) newest() (stamp uint32, found bool) {
	top := len(h.levels) - 1
	if top < 0 || h.levels[top][0] == 0 {
		return 0, false
	}
	for k := top; k >= 0; k-- {
		stamp = stamp<<6 | uint32(63-bits.LeadingZeros64(h.levels[k][stamp]))
	}
	return stamp, true
}

func (h *holes) add(stamp uint32) {
	if len(h.levels) == 0 || int(stamp>>6) >= len(h.levels[0]) {
		h.grow(stamp)
	}
	for k := range h.levels {
		word := &h.levels[k][stamp>>6]
		before := *word
		*word |= 1 << (stamp & 63)
		if before != 0 {
			return
		}
		stamp >>= 6
	}
}

func (h *holes) remove(stamp uint32) {
	for k := range h.levels {
		word := &h.levels[k][stamp>>6]
		*word &^= 1 << (stamp & 63)
		if *word != 0 {
			return
		}
		stamp >>= 6
	}
}

func (h *holes) grow(stamp uint32) {
	words := int(stamp>>6) + 1
	for k := 0; ; k++ {
		if k == len(h.levels) {
			h.levels = append(h.levels, nil)
		}
		level := h.levels[k]
		if len(level) < words {
			level = append(level, make([]uint64, max(words, 2*len(level))-len(level))...)
			h.levels[k] = level
		}
		if len(level) == 1 {
			return
		}
		if k == len(h.levels)-1 {
			h.levels = append(h.levels, summary(level))
		}
		words = (len(level) + 63) / 64
	}
}

// summary has a bit for each word that is not zero.
func summary(level []uint64) []uint64 {
	s := make([]uint64, (len(level)+63)/64)
	for i, word := range level {
		if word != 0 {
			s[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

// renumber replaces each stamp by its rank among the live ones, which is never above the stamp.
func (h *holes) renumber(rank func(stamp uint32) uint32) {
	if len(h.levels) == 0 {
		return
	}
	for w, word := range h.levels[0] {
		for ; word != 0; word &= word - 1 {
			stamp := uint32(w*64 + bits.TrailingZeros64(word))
			h.remove(stamp)
			h.add(rank(stamp))
		}
	}
}
