package stack

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Coherent is the LRU stack of one core with private caches that are kept coherent by invalidation
// (MODELS §6.4; the model of Schuff, Parsons and Pai as described by Kulkarni, §2). Another core's
// store invalidates a line and leaves a hole, which is a free way in every cache that had the line.
// An access fills the topmost hole above the accessed line. Only the entries above that hole move
// down, and the old position of the line becomes a hole. Like [Sets], the model computes the depths
// for caches of every capacity and number of sets in one pass. Each number of sets has separate
// holes. Create a Coherent with [NewCoherent].
//
// The depth of a line is the maximum number of valid lines above it at any time since its last
// access. Holes above the line count, because valid lines once occupied them. Therefore, more sets
// never increase a line's depth, and a line that is on top of its set is also on top with more
// sets. The stack has two parts:
//
//  1. The top array contains lines that were accessed after the last hole appeared above or among
//     them. The array therefore has no holes, and the depth of a hit is the number of lines above
//     the accessed line. Before a line of the array is lost, this line and all lines below it leave
//     the array.
//  2. Below the array, the stamps of holes stay live, and the field holes finds the newest hole.
//     For each number of sets, each set has a list of its topmost entries (coherent_ways.go). The
//     list begins with the lines that are in the array, in any order. The other lines and the holes
//     follow in stack order. A line moves in its lists only when it enters or leaves the array.
type Coherent struct {
	near  near
	array [topLines]trace.Line
	used  int   // number of lines in array
	holes holes // the live stamps without a line
	ways  ways  // the lists of sets
	lost  int   // number of lines that are currently lost

	noting bool
	filled []uint32 // the result of Filled
}

// Lost lines have the stamp fresh.

// Op is an operation on a line of a [Coherent].
type Op uint8

// The operations on a line.
const (
	AccessOp Op = iota // the core loads or stores
	LoseOp             // another core's store invalidates the line
	AskOp              // request for the depth of the line, which does not change the stack
)

// Lost is the distance of an access to a line that another core invalidated since the core's last
// access to it. The access is a coherence miss in caches of every size.
const Lost = Cold - 1

// NewCoherent returns an empty model for one set and for the given numbers of sets.
func NewCoherent(numbers SetNumbers) *Coherent {
	m := &Coherent{array: emptyTop}
	m.near.exact.top = emptyTop
	m.near.exact.stamps.reset(blockStamps, 0)
	m.ways.reset(numbers)
	return m
}

// Access accesses the given lines in order. Line numbers must be below 2^61. For each access,
// Access writes the line's depth, Cold, or Lost to the slice out. The depth is the number of lines
// and holes above the line. For a Lost access, Access also writes to the slice lost the depth at
// which the line was lost. Both slices must be at least as long as the slice lines. Access returns
// the number of Lost accesses.
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

// settle handles the accesses that missed the top array.
func (m *Coherent) settle(queue []deep, out, lost []uint32) {
	var entries, evicted [burst]*entry
	m.near.exact.lookUp(queue, &entries)
	m.near.exact.lookUpEvicted(queue, &evicted)
	for i := range queue {
		q, e := &queue[i], entries[i]
		out[q.index], lost[q.index] = m.arrive(q, e, evicted[i])
	}
}

// arrive puts a line into the top array, in place of a line that fell off the end. e is the entry
// of the inserted line.
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

// pull removes a line from its position, fills the topmost hole above this position, and returns
// the line's depth.
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

// replace puts a line in the position of the line that fell off the array.
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

// fall stamps a line that left the array. In the lists of the line's sets, it moves the line below
// the lines of the array.
func (m *Coherent) fall(line trace.Line, e *entry) {
	m.ways.fall(line, e.moved, m.meeting(line))
	e.stamp = m.newStamp()
}

// meeting returns the numbers of lines of the array that share a set with x. The result contains
// one lane for each number of sets.
func (m *Coherent) meeting(x trace.Line) (lanes uint64) {
	for _, y := range m.array[:m.used] {
		if y != noLine {
			lanes += sharing[common(x, y)]
		}
	}
	return lanes
}

// newStamp returns a new stamp, which is newer than all other stamps.
func (m *Coherent) newStamp() uint32 {
	exact := &m.near.exact
	if exact.stamps.full() {
		m.holes.renumber(exact.stamps.rank)
		exact.compact()
	}
	return exact.stamps.push()
}

// inArray returns the index of a line in the array, or -1.
func (m *Coherent) inArray(line trace.Line) int {
	return slices.Index(m.near.exact.top[:m.used], line)
}

// Depth returns the depth of a line, or Cold if the core does not have the line. Depth does not
// change the stack.
func (m *Coherent) Depth(line trace.Line) uint32 {
	if i := m.inArray(line); i >= 0 {
		return uint32(i)
	}
	return m.depthOf(m.near.exact.table.find(line))
}

// depthOf returns the depth of a line below the array. e is the line's entry, or nil.
func (m *Coherent) depthOf(e *entry) uint32 {
	if e == nil || e.stamp == fresh {
		return Cold
	}
	stamps := &m.near.exact.stamps
	return uint32(m.used) + stamps.live - 1 - stamps.rank(e.stamp)
}

// Lose replaces a line by a hole, because another core writes the line. Lose returns the line's
// depth, or Cold if the core does not have the line.
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

// shorten removes all lines at depth to or deeper from the array.
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

// Depths returns the numbers of accesses by depth, like [Sets.Depths], but without accesses to lost
// lines.
func (m *Coherent) Depths() *SetDepths {
	tally := &m.near.tally
	t := tally.depths()
	deeper := m.ways.count(t)
	for a := 1; a < SetCounts; a++ {
		if m.ways.numbers>>a&1 == 0 {
			t[a] = [MaxWays]uint64{}
			continue
		}
		// this number includes the accesses that the next statements subtract
		t[a][0] = tally.accesses - tally.cold - deeper[a]
		for _, n := range t[a][1:] {
			t[a][0] -= n
		}
	}
	return t
}

// holes is a set of stamps in which the newest stamp can be found quickly. holes consists of a
// bitmap, a bitmap of the nonzero words of the first bitmap, and so on up to a single word.
type holes struct {
	levels [][]uint64 // levels[0] has one bit per stamp
}

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

// summary returns a bitmap of the nonzero words of a level.
func summary(level []uint64) []uint64 {
	s := make([]uint64, (len(level)+63)/64)
	for i, word := range level {
		if word != 0 {
			s[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

// renumber replaces each stamp by its rank among the live stamps, which never exceeds the stamp.
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
