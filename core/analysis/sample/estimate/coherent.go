package estimate

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

const hole = noLine - 1 // marks the position of a line that a store by another core has invalidated

// holedFront tracks the top of a core's coherent stack exactly (MODELS §6.4). holedFront contains
// lines, and holes in place of lines that stores by other cores have invalidated.
type holedFront front

// access moves a line to the top. The results are the line's previous depth, or frontLines if the
// line was not in the front, and the line that left the front. The lines above the topmost hole
// move down by one. If there is no hole, the lines above the line's previous position move down
// instead.
func (f *holedFront) access(line trace.Line) (at int, left trace.Line) {
	if f[0] == line {
		return 0, noLine
	}
	left, to := noLine, frontLines
	for at = 0; at < frontLines && f[at] != line; at++ {
		if f[at] == hole && to == frontLines {
			to = at
		}
	}
	switch {
	case to < frontLines && at < frontLines:
		f[at] = hole
	case to < frontLines:
	case at < frontLines:
		to = at
	default:
		to, left = frontLines-1, f[frontLines-1]
	}
	copy(f[1:to+1], f[:to])
	f[0] = line
	return at, left
}

// invalidate replaces a line with a hole, and returns the depth of the line, or frontLines if the
// front does not contain the line.
func (f *holedFront) invalidate(line trace.Line) (at int) {
	if at = slices.Index(f[:], line); at < 0 {
		return frontLines
	}
	f[at] = hole
	return at
}

// depth returns the depth of a line, or frontLines if the front does not contain it.
func (f *holedFront) depth(line trace.Line) int {
	if at := slices.Index(f[:], line); at >= 0 {
		return at
	}
	return frontLines
}

// holedStack is a coherent stack of sampled lines. Like sampledOrder, it uses stampCounts to count
// the lines and holes above a stamp. An access always fills the topmost hole.
type holedStack struct {
	place map[trace.Line]uint32 // stamp of each line; the constant away if a store by another core has invalidated the line
	lines []trace.Line          // the line with each stamp; the value hole marks a hole, and the value noLine a line that has moved
	sums  stampCounts           // counts lines and holes
	holes []uint32              // stamps of the holes, ascending
	live  int
}

func newHoled() *holedStack {
	h := &holedStack{place: map[trace.Line]uint32{}}
	h.renumber()
	return h
}

type found uint8

const (
	foundHere found = iota
	foundLost       // a store by another core has invalidated the line
	foundNew
)

// access moves a line to the top. If the line was on the stack, access also returns its previous
// depth among the sampled lines (above).
func (h *holedStack) access(line trace.Line) (above int, how found) {
	stamp, known := h.place[line]
	how = foundHere
	switch {
	case !known:
		how = foundNew
	case stamp == away:
		how = foundLost
	default:
		above = h.above(stamp)
	}
	here := how == foundHere
	if last := len(h.holes) - 1; last >= 0 && (!here || h.holes[last] > stamp) {
		h.remove(h.holes[last])
		if h.holes = h.holes[:last]; here {
			h.dig(stamp)
		}
	} else if here {
		h.remove(stamp)
	}
	h.push(line)
	return above, how
}

// invalidate replaces a line with a hole. It returns the depth of the line among the sampled lines
// (above).
func (h *holedStack) invalidate(line trace.Line) (above int, here bool) {
	stamp, known := h.place[line]
	if !known || stamp == away {
		return 0, false
	}
	above = h.above(stamp)
	h.place[line] = away
	h.dig(stamp)
	return above, true
}

// depth returns the number of sampled lines and holes above a line.
func (h *holedStack) depth(line trace.Line) (above int, here bool) {
	stamp, known := h.place[line]
	if !known || stamp == away {
		return 0, false
	}
	return h.above(stamp), true
}

func (h *holedStack) dig(stamp uint32) {
	h.lines[stamp] = hole
	at, _ := slices.BinarySearch(h.holes, stamp)
	h.holes = slices.Insert(h.holes, at, stamp)
}

func (h *holedStack) push(line trace.Line) {
	if len(h.lines) == cap(h.lines) {
		h.renumber()
	}
	stamp := uint32(len(h.lines))
	h.lines = append(h.lines, line)
	h.place[line] = stamp
	h.live++
	h.sums.add(stamp)
}

func (h *holedStack) above(stamp uint32) int { return h.live - h.sums.liveBelow(stamp+1) }

func (h *holedStack) remove(stamp uint32) {
	h.lines[stamp] = noLine
	h.live--
	h.sums.remove(stamp)
}

// renumber assigns new stamps, starting from 0, to the lines and holes on the stack, and makes room
// for more stamps.
func (h *holedStack) renumber() {
	old := h.lines
	h.lines = make([]trace.Line, 0, max(firstRoom, h.live*orderSlack))
	h.holes = h.holes[:0]
	for _, line := range old {
		switch stamp := uint32(len(h.lines)); line {
		case noLine:
			continue
		case hole:
			h.holes = append(h.holes, stamp)
		default:
			h.place[line] = stamp
		}
		h.lines = append(h.lines, line)
	}
	h.sums = newSums(cap(h.lines), len(h.lines))
	h.live = len(h.lines)
}

// dropLines removes the lines for which the function keep returns false. dropLines also removes
// every second hole, because approximately half of the lines are removed.
func (h *holedStack) dropLines(keep func(trace.Line) bool) {
	for line := range h.place {
		if !keep(line) {
			delete(h.place, line)
		}
	}
	for i, stamp := range h.holes {
		if i%2 == 1 {
			h.lines[stamp] = noLine
		}
	}
	for stamp, line := range h.lines {
		if line != noLine && line != hole && !keep(line) {
			h.lines[stamp] = noLine
		}
	}
	h.renumber()
}

// code reads or writes the lines and holes, in order, and then the invalidated lines.
func (h *holedStack) code(c *codec.Coder) {
	var lines, lost []trace.Line
	if !c.Reads() {
		h.renumber()
		lines = h.lines
		for line, stamp := range h.place {
			if stamp == away {
				lost = append(lost, line)
			}
		}
		slices.Sort(lost)
	}
	codec.Slice(c, &lines, 1, func(at *trace.Line) {
		line := *at
		if line == hole {
			line = noLine // noLine is encoded as 0
		}
		if codeLine(c, &line, 1); !c.Reads() {
			return
		}
		if _, twice := h.place[line]; line == noLine {
			h.push(hole)
			delete(h.place, hole)
			h.holes = append(h.holes, uint32(len(h.lines)-1))
		} else if !twice {
			h.push(line)
		}
	})
	if codeLines(c, &lost); !c.Reads() {
		return
	}
	for _, line := range lost {
		if _, here := h.place[line]; !here {
			h.place[line] = away
		}
	}
}

// lineCores is a hash table from lines to sets of cores. A Go map would be several times slower,
// because most accesses add or remove lines. The table does not contain lines whose set is empty.
type lineCores struct {
	slots []coresOfLine // the length is a power of two; at most half of the slots are in use
	used  int
	shift uint // 64 - log2(len(slots))
}

// coresOfLine is a line with its set of cores. In a free slot, the set is empty.
type coresOfLine struct {
	line  trace.Line
	cores uint64
}

const fewestSlots = 1 << 8

func (x *lineCores) home(line trace.Line) int {
	return int(line * 0x9e3779b97f4a7c15 >> (x.shift & 63))
}

// find returns the slot of a line, or a free slot if the table does not contain the line. The table
// must have slots.
func (x *lineCores) find(line trace.Line) int {
	mask := len(x.slots) - 1
	for i := x.home(line); ; i = (i + 1) & mask {
		if s := &x.slots[i&mask]; s.cores == 0 || s.line == line {
			return i
		}
	}
}

func (x *lineCores) coresOf(line trace.Line) uint64 {
	if x.used == 0 {
		return 0
	}
	return x.slots[x.find(line)].cores
}

func (x *lineCores) add(line trace.Line, core uint8) {
	if 2*x.used >= len(x.slots) {
		x.grow()
	}
	s := &x.slots[x.find(line)]
	if s.cores == 0 {
		s.line = line
		x.used++
	}
	s.cores |= 1 << core
}

func (x *lineCores) remove(line trace.Line, core uint8) {
	if x.used == 0 {
		return
	}
	free := x.find(line)
	s := &x.slots[free]
	if s.cores == 0 {
		return
	}
	if s.cores &^= 1 << core; s.cores != 0 {
		return
	}
	x.used--
	// If a later entry could not be placed in this slot because the slot was occupied, move the
	// entry to this slot (algorithm R in section 6.4 of Knuth, The Art of Computer Programming,
	// volume 3).
	mask := len(x.slots) - 1
	for i := (free + 1) & mask; x.slots[i].cores != 0; i = (i + 1) & mask {
		if home := x.home(x.slots[i].line); (i-home)&mask >= (i-free)&mask {
			x.slots[free], x.slots[i].cores = x.slots[i], 0
			free = i
		}
	}
}

func (x *lineCores) grow() {
	old := x.slots
	x.slots = make([]coresOfLine, max(fewestSlots, 2*len(old)))
	x.shift = uint(64 - bits.Len(uint(len(x.slots)-1)))
	for _, s := range old {
		if s.cores != 0 {
			x.slots[x.find(s.line)] = s
		}
	}
}
