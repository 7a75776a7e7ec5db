package stack

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// share is how many accesses moved a line to the top lately, and how many of these lines came
// from below the topmost ones: of the last quarter of a stretch, because counting takes time.
type share struct {
	accesses, moved, deep int
}

const stretch = 4 * chunk

// prefers reports whether all lines should be stamped, as they are now or not: if most lines
// that move come from so deep that searching the top array is in vain.
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

// atLeast counts the distances that are not below a limit.
func atLeast(limit uint64, distances []uint32) int {
	n := uint64(0)
	for _, d := range distances {
		n += (uint64(d) + 1<<32 - limit) >> 32
	}
	return int(n)
}

// stampAll stamps every line, or only those below the top array.
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

// scanStamped queues the accesses that are not to the line before, and returns their number.
func (m *Exact) scanStamped(lines []trace.Line, out []uint32) (queued int) {
	last := m.newest
	out = out[:len(lines)]
	for i, x := range lines {
		out[i] = 0
		q := &m.queue[queued&(chunk-1)]
		q.line, q.index = x, i
		if x != last {
			queued++
		}
		last = x
	}
	m.newest = last
	return queued
}

// settleStamped is settle if every line is stamped.
func (m *Exact) settleStamped(queue []deep, out []uint32) {
	var entries [burst]*entry
	for at := 0; at < len(queue); at += burst {
		few := queue[at:min(at+burst, len(queue))]
		m.lookUp(few, &entries)
		for i := range few {
			out[few[i].index] = m.restamp(entries[i])
		}
	}
	m.bringUp(queue)
}

// restamp returns the distance of a line, and stamps it anew.
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

// bringUp puts the lines of queued accesses on top of the array.
func (m *Exact) bringUp(queue []deep) {
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
