package sample

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/trace"
)

// lineCores is a hash table of the cores of lines. Lines come and go with most accesses, for
// which a map takes several times as long. Lines without cores are not kept.
type lineCores struct {
	slots []coresOfLine // a power of two; at most half of them are in use
	used  int
	shift uint // 64 - log2(len(slots))
}

// coresOfLine is a line and the set of its cores, which is empty in a free slot.
type coresOfLine struct {
	line  trace.Line
	cores uint64
}

const fewestSlots = 1 << 8

func (x *lineCores) home(line trace.Line) int {
	return int(line * 0x9e3779b97f4a7c15 >> (x.shift & 63))
}

// find returns the slot of a line, or a free one. There must be slots.
func (x *lineCores) find(line trace.Line) int {
	mask := len(x.slots) - 1
	for i := x.home(line); ; i = (i + 1) & mask {
		if s := &x.slots[i&mask]; s.cores == 0 || s.line == line {
			return i
		}
	}
}

func (x *lineCores) of(line trace.Line) uint64 {
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
	// What was put behind the slot because that was taken moves up (Knuth, The Art of
	// Computer Programming, vol. 3, §6.4, algorithm R).
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
