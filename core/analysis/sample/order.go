package sample

import (
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// order keeps some lines in the order in which they were put down, and counts those
// put down after a line: the part of an LRU stack that holds the sampled lines. It
// is a Fenwick tree over live stamps (Bennett and Kruskal, 1975), renumbered when
// stamps run out.
type order struct {
	place map[trace.Line]uint32 // of its stamp in lines; or away
	lines []placed              // by stamp, from 0
	sums  sums                  // over the live ones
	live  int
}

// placed is a line that was put down, and when, by its user's clock. It is live if
// place leads back to it.
type placed struct {
	line trace.Line
	at   uint64
}

const (
	away       = ^uint32(0) // the line was put down before, and taken
	firstRoom  = 1 << 10
	orderSlack = 3 // room for stamps, in live lines, after they were renumbered
)

func newOrder() *order {
	o := &order{place: map[trace.Line]uint32{}}
	o.renumber()
	return o
}

// known is the number of lines that were ever put down or noted, and not dropped.
func (o *order) known() int { return len(o.place) }

// note remembers a line that is not put down yet. It reports whether it was known.
func (o *order) note(line trace.Line) (known bool) {
	if _, known = o.place[line]; !known {
		o.place[line] = away
	}
	return known
}

// put puts a line that is noted or away down, on top of all others.
func (o *order) put(line trace.Line, at uint64) {
	if len(o.lines) == cap(o.lines) {
		o.renumber()
	}
	stamp := uint32(len(o.lines))
	o.lines = append(o.lines, placed{line, at})
	o.place[line] = stamp
	o.live++
	o.sums.add(stamp)
}

// take takes a line away. above is the number of lines put down after it and still
// there, at when it was put down; down is false where it was not.
func (o *order) take(line trace.Line) (above int, at uint64, down bool) {
	stamp, known := o.place[line]
	if !known || stamp == away {
		return 0, 0, false
	}
	above, at = o.live-o.sums.upto(stamp+1), o.lines[stamp].at
	o.remove(stamp)
	o.place[line] = away
	return above, at, true
}

// since is the number of lines put down later than at and still there.
func (o *order) since(at uint64) int {
	first := sort.Search(len(o.lines), func(i int) bool { return o.lines[i].at > at })
	return o.live - o.sums.upto(uint32(first))
}

func (o *order) remove(stamp uint32) {
	o.live--
	o.sums.remove(stamp)
}

// renumber gives the live lines the first stamps, and makes room for more.
func (o *order) renumber() {
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

// drop forgets the lines that keep does not want.
func (o *order) drop(keep func(trace.Line) bool) {
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

// code codes the lines that are down, in order, and those that are away.
func (o *order) code(c *codec.Coder) {
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
			o.put(p.line, p.at)
		}
	})
	if codeLines(c, &gone); c.Reads() {
		for _, line := range gone {
			o.note(line)
		}
	}
}
