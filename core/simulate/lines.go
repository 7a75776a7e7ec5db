package simulate

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/trace"
)

// lineTable is an open hash table of the lines that a bus knows. A map is several times slower,
// and every store on the bus looks here.
type lineTable struct {
	entries []lineEntry // a power of two; at most half of them are in use
	used    int
	shift   uint        // 64 - log2(len(entries))
	kept    []lineEntry // scratch memory of keep
}

// lineEntry is one line.
type lineEntry struct {
	next trace.Line // the line plus one, 0 if the entry is free
	copies
}

const leastLines = 1 << 10

func newLineTable() lineTable { return lineTable{}.of(leastLines) }

// of returns an empty table of that many entries.
func (lineTable) of(places int) lineTable {
	return lineTable{entries: make([]lineEntry, places), shift: uint(64 - bits.Len(uint(places-1)))}
}

// spread is 2^64 divided by the golden ratio, for multiplicative hashing (Knuth, The Art of
// Computer Programming, vol. 3, §6.4).
const spread = 0x9e3779b97f4a7c15

// at returns the entry of a line, or the free one where it belongs.
func (t *lineTable) at(line trace.Line) *lineEntry {
	mask := len(t.entries) - 1
	for i := int(line * spread >> t.shift); ; i = (i + 1) & mask {
		if e := &t.entries[i]; e.next == 0 || e.next == line+1 {
			return e
		}
	}
}

// get returns the state of a line.
func (t *lineTable) get(line trace.Line) (c copies, known bool) {
	e := t.at(line)
	return e.copies, e.next != 0
}

// add adds a line.
func (t *lineTable) add(line trace.Line, c copies) {
	if 2*(t.used+1) > len(t.entries) {
		t.keep(func(trace.Line, copies) bool { return true })
	}
	t.used++
	*t.at(line) = lineEntry{line + 1, c}
}

// keep removes the lines that are not to be kept, and resizes the table for as many more. It
// allocates nothing if the size stays.
func (t *lineTable) keep(is func(trace.Line, copies) bool) {
	kept := t.kept[:0]
	for i := range t.entries {
		if e := &t.entries[i]; e.next != 0 && is(e.next-1, e.copies) {
			kept = append(kept, *e)
		}
	}
	places := max(leastLines, 1<<bits.Len(uint(4*len(kept))))
	if places > len(t.entries) || 4*places < len(t.entries) {
		*t = t.of(places)
	} else {
		clear(t.entries)
	}
	for i := range kept {
		*t.at(kept[i].next - 1) = kept[i]
	}
	t.used, t.kept = len(kept), kept
}
