package stack

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

const (
	topLines   = 16
	frontLines = 4               // number of lines of the top array that scan keeps in local variables
	chunk      = 512             // number of accesses that are scanned before the queued accesses are processed; a power of two
	burstSize  = 64              // number of queued accesses that are processed together
	manyStamps = 4 * blockStamps // if the capacity exceeds this value, stamps are renumbered less often
	noLine     = ^trace.Line(0)  // not a line number, because line numbers are below 2^61
)

// Exact computes exact distances, by the method described in the package comment. Create an Exact
// with [NewExact].
type Exact struct {
	top     [topLines]trace.Line // the topmost lines, most recently used first
	stamped bool                 // if true, every line has a stamp, and accesses do not search the array
	newest  trace.Line           // the last accessed line; used only if all lines are stamped
	table   table
	stamps  stamps
	share   share

	queue [chunk]queuedAccess
	sink  uint64 // prevents the compiler from removing loads that only prefetch
}

var emptyTop = func() (top [topLines]trace.Line) {
	for i := range top {
		top[i] = noLine
	}
	return top
}()

// queuedAccess is an access that missed in the top array, or an access that did not search the
// array.
type queuedAccess struct {
	line    trace.Line
	evicted trace.Line // the line that fell off the end of the top array, if the array was searched
	index   int32
	how     int32 // how the access moves its line in the lists of [Sets]
}

// NewExact returns an empty model.
func NewExact() *Exact {
	m := &Exact{top: emptyTop}
	m.stamps.reset(blockStamps, 0)
	return m
}

// Reset removes every line, but keeps the allocated memory for new lines.
func (m *Exact) Reset() {
	m.top, m.stamped, m.newest, m.share = emptyTop, false, 0, share{}
	for p := range m.table.parts {
		part := &m.table.parts[p]
		clear(part.slots)
		part.used = 0
	}
	m.table.lines = 0
	m.stamps.reset(uint32(len(m.stamps.blocks))*blockStamps, 0)
}

// Distances implements [Model].
func (m *Exact) Distances(lines []trace.Line, out []uint32) {
	for len(lines) > 0 {
		n := min(len(lines), chunk)
		if m.stamped {
			m.settleStamped(m.queue[:m.scanStamped(lines[:n], out[:n])], out)
		} else {
			m.settle(m.queue[:m.scan(lines[:n], out[:n])], out)
		}
		m.stampAll(m.share.prefers(m.stamped, out[:n]))
		lines, out = lines[n:], out[n:]
	}
}

// scan looks up the accessed lines in the top array. scan writes the distances of hits, queues the
// other accesses, and returns the number of queued accesses.
//
// Below the topmost line, scan compares and shifts four lines at a time with conditional moves.
// Branches that depend on the depth of a line would be mispredicted, and in WebAssembly every taken
// branch uses a jump table.
func (m *Exact) scan(lines []trace.Line, out []uint32) (misses int) {
	top, queue := &m.top, &m.queue
	t0, t1, t2, t3 := top[0], top[1], top[2], top[3]
	out = out[:len(lines)]
next:
	for i, x := range lines {
		out[i] = 0 // stored before the branch, so that the branch leads directly to the end of the loop
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
		if d < frontLines {
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
				out[i] = uint32(j + d)
				continue next
			}
			carry = last
		}
		queue[misses&(chunk-1)] = queuedAccess{x, carry, int32(i), 0}
		misses++
	}
	top[0], top[1], top[2], top[3] = t0, t1, t2, t3
	return misses
}

// settle processes the queued accesses. settle first looks up the lines of a burst, and then moves
// them to the top array, one after the other.
func (m *Exact) settle(queue []queuedAccess, out []uint32) {
	var entries, evicted [burstSize]*entry
	for at := 0; at < len(queue); at += burstSize {
		few := queue[at:min(at+burstSize, len(queue))]
		m.lookUp(few, &entries)
		m.lookUpEvicted(few, &evicted)
		for i := range few {
			out[few[i].index] = m.moveToArray(entries[i])
			m.stampEvicted(evicted[i])
		}
	}
}

// lookUp finds the entries of queued accesses in two loops, so that the cache misses within each
// loop overlap. The first loop touches the slots of the hash table. The second loop finds the
// entries, and touches the bitmap at the stamps of the entries.
func (m *Exact) lookUp(queue []queuedAccess, entries *[burstSize]*entry) {
	var homes [burstSize]*group
	sink := m.sink
	for i := range queue {
		g := m.table.homeOf(queue[i].line)
		homes[i&(burstSize-1)] = g
		if g != nil {
			sink += g[0].key
		}
	}
	for i := range queue {
		key := queue[i].line + 1
		if g := homes[i&(burstSize-1)]; g != nil {
			if e := &g[g.place(key)]; e.key == key {
				entries[i&(burstSize-1)] = e
				sink += m.stamps.touch(e.stamp)
				continue
			}
		}
		e, grew := m.table.findOrAdd(queue[i].line)
		if grew { // entries that were found before may have moved
			for j := range queue {
				homes[j&(burstSize-1)] = m.table.homeOf(queue[j].line)
			}
			for j := range i {
				entries[j] = m.table.find(queue[j].line)
			}
		}
		entries[i&(burstSize-1)] = e
	}
	m.sink = sink
}

// lookUpEvicted finds the entries of the lines that fell off the top array. If no line fell off,
// the entry is nil.
func (m *Exact) lookUpEvicted(queue []queuedAccess, evicted *[burstSize]*entry) {
	for i := range queue {
		evicted[i] = nil
		if queue[i].evicted != noLine {
			evicted[i] = m.table.find(queue[i].evicted)
		}
	}
}

// moveToArray marks the entry of a line as being in the top array, and returns the line's distance.
// The line was below the array before.
func (m *Exact) moveToArray(e *entry) (distance uint32) {
	distance = Cold
	if e.stamp != fresh {
		distance = topLines + m.stamps.remove(e.stamp)
	}
	e.stamp = onTop
	return distance
}

// stampEvicted assigns a stamp to the entry e of a line that fell off the top array. If e is nil,
// stampEvicted does nothing.
func (m *Exact) stampEvicted(e *entry) {
	if e != nil {
		e.stamp = m.newStamp()
	}
}

// newStamp returns a new stamp, which is newer than all other stamps.
func (m *Exact) newStamp() uint32 {
	if m.stamps.full() {
		m.compact()
	}
	return m.stamps.push()
}

// compact renumbers the live stamps from zero. The new capacity is four times the number of live
// stamps, or six times if the table is so large that reading it takes long. The capacity is at
// least one block, because there may be no live stamps, for example in a loop over one line more
// than the top array can contain.
func (m *Exact) compact() {
	live := m.stamps.live
	older := m.stamps.older()
	for p := range m.table.parts {
		slots := m.table.parts[p].slots
		for i := range slots {
			if e := &slots[i]; e.key != 0 && e.stamp < fresh {
				e.stamp = older[e.stamp/64] + m.stamps.olderInWord(e.stamp)
			}
		}
	}
	capacity := max(uint64(live)*4, blockStamps)
	if capacity > manyStamps {
		capacity = uint64(live) * 6
	}
	m.stamps.reset(uint32(min(capacity, maxStamps)), live)
}

// Lines implements [Model].
func (m *Exact) Lines() int { return m.table.lines }

// Stack implements [Model].
func (m *Exact) Stack() []trace.Line {
	stack := make([]trace.Line, m.table.lines)
	if !m.stamped {
		copy(stack, m.top[:]) // if the array is not full, it contains all lines
	}
	m.table.order(&m.stamps, stack)
	return stack
}

// share counts recent accesses that moved a line to the top, and how many of these lines were below
// the top array. Only the last quarter of the accesses between two decisions is counted, because
// counting takes time.
type share struct {
	accesses, moved, deep int
}

const stretch = 4 * chunk

// prefers reports whether all lines should be stamped. All lines should be stamped if searching
// the top array is futile for most moved lines. The parameter "stamped" reports whether all
// lines are stamped now.
func (s *share) prefers(stamped bool, distances []uint32) bool {
	s.accesses += len(distances)
	if s.accesses <= stretch/4*3 {
		return stamped
	}
	s.moved += atLeast(1, distances)
	s.deep += atLeast(topLines, distances)
	if s.accesses < stretch {
		return stamped
	}
	if stamped {
		stamped = 2*s.deep >= s.moved
	} else {
		stamped = 4*s.deep > 3*s.moved
	}
	*s = share{}
	return stamped
}

// atLeast returns the number of distances that are at least limit.
func atLeast(limit uint64, distances []uint32) int {
	n := uint64(0)
	for _, d := range distances {
		n += (uint64(d) + 1<<32 - limit) >> 32
	}
	return int(n)
}

// stampAll assigns stamps to all lines, or only to the lines below the top array.
func (m *Exact) stampAll(all bool) {
	if all == m.stamped {
		return
	}
	m.stamped, m.newest = all, m.top[0]
	for i := topLines - 1; i >= 0; i-- {
		e := m.table.find(m.top[i])
		switch {
		case e == nil:
		case all:
			e.stamp = m.newStamp()
		default:
			m.stamps.remove(e.stamp)
			e.stamp = onTop
		}
	}
}

// scanStamped queues every access except repeated accesses to the same line, and returns the number
// of queued accesses.
func (m *Exact) scanStamped(lines []trace.Line, out []uint32) (queued int) {
	last := m.newest
	out = out[:len(lines)]
	for i, x := range lines {
		out[i] = 0
		q := &m.queue[queued&(chunk-1)]
		q.line, q.index = x, int32(i)
		if x != last {
			queued++
		}
		last = x
	}
	m.newest = last
	return queued
}

// settleStamped works like settle, but every line has a stamp.
func (m *Exact) settleStamped(queue []queuedAccess, out []uint32) {
	var entries [burstSize]*entry
	for at := 0; at < len(queue); at += burstSize {
		few := queue[at:min(at+burstSize, len(queue))]
		m.lookUp(few, &entries)
		for i := range few {
			out[few[i].index] = m.restamp(entries[i])
		}
	}
	m.updateArray(queue)
}

// restamp returns the distance of a line, and assigns a new stamp to the line.
func (m *Exact) restamp(e *entry) (distance uint32) {
	if m.stamps.full() {
		m.compact()
	}
	distance = Cold
	if e.stamp != fresh {
		distance = m.stamps.remove(e.stamp)
	}
	e.stamp = m.stamps.push()
	return distance
}

// updateArray keeps the top array up to date while accesses do not search it: it moves the lines of
// queued accesses to the top.
func (m *Exact) updateArray(queue []queuedAccess) {
	before, n := m.top, 0
	for i := 0; i < len(queue)+topLines && n < topLines; i++ {
		line := before[max(i-len(queue), 0)]
		if i < len(queue) {
			line = queue[len(queue)-1-i].line
		}
		if line == noLine {
			return
		}
		if !slices.Contains(m.top[:n], line) {
			m.top[n] = line
			n++
		}
	}
}
