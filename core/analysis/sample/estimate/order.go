package estimate

import (
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// sampledOrder contains the sampled lines of an LRU stack, in the order in which they were pushed
// onto the stack. sampledOrder counts the lines that were pushed after a given line. To do so, it
// assigns ascending stamps to lines, and counts live stamps with a Fenwick tree (Bennett and
// Kruskal, 1975). When all stamps have been used, the lines are renumbered.
type sampledOrder struct {
	place map[trace.Line]uint32 // for each line: its stamp, which is an index in the slice lines; the constant away if the line was removed
	lines []placed              // indexed by stamp
	sums  stampCounts           // counts the live stamps
	live  int
}

// placed is an entry for a line: the line, and the time at which it was pushed onto the stack. An
// entry is live if its line has not moved since that time. The index of a live entry is
// sampledOrder.place[line].
type placed struct {
	line trace.Line
	at   uint64
}

const (
	away       = ^uint32(0) // the line was on the stack, but has been removed
	firstRoom  = 1 << 10
	orderSlack = 3 // number of stamps per live line after renumbering
)

func newOrder() *sampledOrder {
	o := &sampledOrder{place: map[trace.Line]uint32{}}
	o.renumber()
	return o
}

// registeredLines returns the number of registered lines, including all lines on the stack.
func (o *sampledOrder) registeredLines() int { return len(o.place) }

// register registers a line, and reports whether the line had already been registered.
func (o *sampledOrder) register(line trace.Line) (known bool) {
	if _, known = o.place[line]; !known {
		o.place[line] = away
	}
	return known
}

// push pushes a registered line onto the stack.
func (o *sampledOrder) push(line trace.Line, at uint64) {
	if len(o.lines) == cap(o.lines) {
		o.renumber()
	}
	stamp := uint32(len(o.lines))
	o.lines = append(o.lines, placed{line, at})
	o.place[line] = stamp
	o.live++
	o.sums.add(stamp)
}

// removeLine removes a line. removeLine returns the number of lines above the line, the time when
// the line was pushed onto the stack, and whether the line was on the stack.
func (o *sampledOrder) removeLine(line trace.Line) (above int, at uint64, down bool) {
	stamp, known := o.place[line]
	if !known || stamp == away {
		return 0, 0, false
	}
	above, at = o.live-o.sums.liveBelow(stamp+1), o.lines[stamp].at
	o.remove(stamp)
	o.place[line] = away
	return above, at, true
}

// pushedSince returns the number of live lines that were pushed after the given time.
func (o *sampledOrder) pushedSince(time uint64) int {
	first := sort.Search(len(o.lines), func(i int) bool { return o.lines[i].at > time })
	return o.live - o.sums.liveBelow(uint32(first))
}

func (o *sampledOrder) remove(stamp uint32) {
	o.live--
	o.sums.remove(stamp)
}

// renumber assigns new stamps, starting from 0, to the live lines, and makes room for more stamps.
func (o *sampledOrder) renumber() {
	old := o.lines
	o.lines = make([]placed, 0, max(firstRoom, o.live*orderSlack))
	for stamp, p := range old {
		if now, known := o.place[p.line]; known && now == uint32(stamp) {
			o.place[p.line] = uint32(len(o.lines))
			o.lines = append(o.lines, p)
		}
	}
	o.sums = newSums(cap(o.lines), len(o.lines))
}

// dropLines removes the lines for which the function keep returns false.
func (o *sampledOrder) dropLines(keep func(trace.Line) bool) {
	for line, stamp := range o.place {
		if keep(line) {
			continue
		}
		if stamp != away {
			o.remove(stamp)
		}
		delete(o.place, line)
	}
	o.renumber()
}

// code reads or writes the live lines, in order, and the lines that were removed.
func (o *sampledOrder) code(c *codec.Coder) {
	var lines []placed
	var gone []trace.Line
	if !c.Reads() {
		o.renumber()
		lines = o.lines
		for line, stamp := range o.place {
			if stamp == away {
				gone = append(gone, line)
			}
		}
		slices.Sort(gone)
	}
	codec.Slice(c, &lines, 2, func(p *placed) {
		codec.Below(c, &p.line, beyond)
		c.U64(&p.at)
		if !c.Reads() {
			return
		}
		if _, twice := o.place[p.line]; !twice {
			o.push(p.line, p.at)
		}
	})
	if codeLines(c, &gone); c.Reads() {
		for _, line := range gone {
			o.register(line)
		}
	}
}

// stampCounts is a Fenwick tree (Fenwick, 1994) that counts live stamps. sums[0] is unused.
type stampCounts []uint32

// newSums returns a tree with room for the given number of stamps. The parameter live is the number
// of live stamps, which precede all other stamps.
func newSums(room, live int) stampCounts {
	s := make(stampCounts, room+1)
	for i := range live {
		s[i+1] = 1
	}
	for i := 1; i < len(s); i++ {
		if up := i + i&-i; up < len(s) {
			s[up] += s[i]
		}
	}
	return s
}

func (s stampCounts) add(stamp uint32) {
	for i := stamp + 1; int(i) < len(s); i += i & -i {
		s[i]++
	}
}

func (s stampCounts) remove(stamp uint32) {
	for i := stamp + 1; int(i) < len(s); i += i & -i {
		s[i]--
	}
}

// liveBelow returns the number of live stamps below the given number.
func (s stampCounts) liveBelow(stamps uint32) (n int) {
	for i := stamps; i > 0; i -= i & -i {
		n += int(s[i])
	}
	return n
}
