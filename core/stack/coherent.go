package stack

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Coherent is the LRU stack of one core with private caches that are kept coherent by invalidation
// (MODELS §6.4; the model of Schuff, Parsons and Pai as described by Kulkarni, §2). Another core's
// store invalidates a line and leaves a hole, which represents a free way in every cache that
// contained the line. An access fills the topmost hole above the accessed line. Only the entries
// above that hole move down, and the old position of the line becomes a hole. Like [Sets], the
// model computes the depths for caches of every capacity and number of sets in one pass. The stacks
// for different numbers of sets have separate holes. Create a Coherent with [NewCoherent].
//
// The depth of a line is the maximum number of valid lines above it at any time since its last
// access. Holes above the line count as well, because valid lines once occupied them. Therefore, a
// line's depth never increases with the number of sets. A line that is on top of its set would also
// be on top of its set if there were more sets. The stack has two parts:
//
//  1. The top array contains lines that have been accessed since a hole last appeared above or
//     among them. The array therefore has no holes, and the depth of a hit is the number of lines
//     above the accessed line. If another core's store invalidates a line of the array, this line
//     and all lines below it leave the array first.
//  2. Below the array, each hole has a live stamp, like a line. The field "holes" finds the newest
//     hole. For each number of sets, each set has a list of its topmost entries (coherent_ways.go).
//     The list begins with the lines that are in the array, in any order. The other lines and the
//     holes follow in stack order. A line moves in its lists only when it enters or leaves the
//     array.
type Coherent struct {
	near  topArray
	array [topLines]trace.Line
	used  int   // number of lines in the field "array"
	holes holes // the live stamps that belong to holes
	ways  ways  // the lists of entries for each set
	lost  int   // number of lines that are invalid now

	noting bool
	filled []uint32 // the masks that Filled returns
}

// In the table, a lost line has the stamp "fresh".

// Op is an operation on a line of a [Coherent].
type Op uint8

// The operations on a line of a [Coherent].
const (
	AccessOp Op = iota // the core loads or stores
	LoseOp             // another core's store invalidates the line
	AskOp              // requests the depth of the line without changing the stack
)

// Lost is the distance of an access to a line that another core's store has invalidated since this
// core's last access. Such an access is a coherence miss in caches of every size.
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
// Access writes the line's depth, Cold, or Lost to the slice "out". The depth is the number of
// lines and holes above the line. For a Lost access, Access also writes the depth at which the line
// was lost to the slice "lost". Both slices must be at least as long as the slice "lines". Access
// returns the number of Lost accesses.
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
	for at := 0; at < misses; at += burstSize {
		m.settle(m.near.exact.queue[at:min(at+burstSize, misses)], out, lost)
	}
}

// settle processes queued accesses, which missed the top array.
func (m *Coherent) settle(queue []queuedAccess, out, lost []uint32) {
	var entries, evicted [burstSize]*entry
	m.near.exact.lookUp(queue, &entries)
	m.near.exact.lookUpEvicted(queue, &evicted)
	for i := range queue {
		q, e := &queue[i], entries[i]
		out[q.index], lost[q.index] = m.insertTop(q, e, evicted[i])
	}
}

// insertTop moves an accessed line into the top array, in place of the evicted line, and counts its
// depth. The parameter e is the table entry of the accessed line.
func (m *Coherent) insertTop(q *queuedAccess, e, evicted *entry) (depth, lostAt uint32) {
	tally := &m.near.tally
	if m.noting && e.stamp == fresh {
		m.filled = append(m.filled, m.fillableHoles(q.line))
	}
	depth = m.removeFromBelow(e)
	m.putInArray(q, evicted)
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
		m.ways.isHole[e.moved], lostAt = false, m.ways.lostAt[e.moved]
	default:
		tally.cold++
		e.moved = m.ways.newID()
		m.ways.push(q.line, e.moved, m.ways.most)
	}
	return depth, lostAt
}

// removeFromBelow removes a line from its position below the array, fills the topmost hole above
// this position, and returns the line's depth.
func (m *Coherent) removeFromBelow(e *entry) (depth uint32) {
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

// putInArray stores a line in the array, in the position of the evicted line.
func (m *Coherent) putInArray(q *queuedAccess, evicted *entry) {
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
	m.leaveArray(q.evicted, evicted)
	m.array[i] = q.line
}

// leaveArray assigns a stamp to a line that leaves the array. In the lists of the line's sets,
// leaveArray moves the line below the lines that are still in the array.
func (m *Coherent) leaveArray(line trace.Line, e *entry) {
	m.ways.leaveArray(line, e.moved, m.linesInSameSets(line))
	e.stamp = m.newStamp()
}

// linesInSameSets returns, for each number of sets, how many lines of the array are in the set of
// line x. The result contains one lane for each number of sets.
func (m *Coherent) linesInSameSets(x trace.Line) (lanes uint64) {
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

// Depth returns the depth of a line, or Cold if the stack does not contain the line. Depth does not
// change the stack.
func (m *Coherent) Depth(line trace.Line) uint32 {
	if i := m.inArray(line); i >= 0 {
		return uint32(i)
	}
	return m.depthOf(m.near.exact.table.find(line))
}

// depthOf returns the depth of a line below the array. The parameter e is the line's table entry,
// or nil.
func (m *Coherent) depthOf(e *entry) uint32 {
	if e == nil || e.stamp == fresh {
		return Cold
	}
	stamps := &m.near.exact.stamps
	return uint32(m.used) + stamps.live - 1 - stamps.rank(e.stamp)
}

// Lose replaces a line by a hole, because another core stores to the line. Lose returns the line's
// depth, or Cold if the stack does not contain the line.
func (m *Coherent) Lose(line trace.Line) (depth uint32) {
	e := m.near.exact.table.find(line)
	switch {
	case e == nil || e.stamp == fresh:
		return Cold
	case e.stamp == onTop:
		depth = uint32(m.inArray(line))
		m.truncateArray(int(depth))
	default:
		depth = m.depthOf(e)
	}
	m.holes.add(e.stamp)
	m.ways.lose(line, e.moved, depth)
	e.stamp = fresh
	m.lost++
	return depth
}

// truncateArray removes from the array all lines at the given depth or deeper.
func (m *Coherent) truncateArray(depth int) {
	top := &m.near.exact.top
	copy(m.array[:], top[:m.used])
	for i := m.used - 1; i >= depth; i-- {
		line := top[i]
		top[i], m.array[i] = noLine, noLine
		m.used--
		m.leaveArray(line, m.near.exact.table.find(line))
	}
}

// Lines returns the number of distinct lines that the core has accessed.
func (m *Coherent) Lines() int { return m.near.exact.table.lines }

// Depths returns the numbers of accesses by depth, like [Sets.Depths]. Accesses to lost lines are
// not included.
func (m *Coherent) Depths() *SetDepths {
	tally := &m.near.tally
	t := tally.depths()
	deeper := m.ways.addCounts(t)
	for a := 1; a < SetCounts; a++ {
		if m.ways.numbers>>a&1 == 0 {
			t[a] = [MaxWays]uint64{}
			continue
		}
		// the next loop subtracts the accesses at depths above 0
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

// renumber replaces each stamp by its rank among the live stamps. The rank never exceeds the stamp.
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
