package sharing

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// directory records, for every line, the cores that have a copy of the line, and the core that last
// touched the line. The directory is a hash table with open addressing and linear probing. The
// table is divided into 256 parts that grow independently, so that growing neither interrupts the
// run for long nor needs much additional memory. Recently used lines are found without a search,
// because threads mostly access lines that a thread has just used.
type directory struct {
	parts  []tablePart
	recent [recentLines]found
	lines  int
	first  int // number of slots of a part when its first line is added

	// a value that depends on the prefetched entries, so that the compiler does not remove the
	// reads
	touched uint64
}

type found struct {
	key   uint64 // the key of the entry
	entry *entry
}

type tablePart struct {
	slots []entry
	used  int
	limit int // the part grows when this number of slots (70 %) is in use
}

type entry struct {
	key     uint64 // line + 1; 0: empty slot
	holders uint64 // the cores that have a valid copy of the line
	last    uint64 // time of the last touch << 8 | core; 0: not touched yet
}

const (
	partBits   = 8
	firstSlots = 16
	slowGrowth = 4096 // parts with more slots grow by a quarter instead of doubling

	recentBits  = 7
	recentLines = 1 << recentBits
)

// reset empties the directory. The parameter lines is the expected number of lines, or 0.
func (d *directory) reset(lines int) {
	*d = directory{parts: make([]tablePart, 1<<partBits), first: max(firstSlots, lines>>partBits*25/16)}
}

func hash(line trace.Line) uint64 {
	h := line * 0x9e3779b97f4a7c15
	h ^= h >> 32
	return h * 0xd6e8feb86659fd93
}

func home(h uint64, n int) int { return int((h << partBits >> 32) * uint64(n) >> 32) }

// entry returns the entry of a line, and creates the entry if necessary. The entry is valid until
// the next call.
func (d *directory) entry(line trace.Line) *entry {
	// Multiplicative hash: the rows of a matrix are often a power of two apart, so the low bits
	// alone would collide.
	r := &d.recent[line*0x9e3779b97f4a7c15>>(64-recentBits)]
	if r.key != line+1 {
		*r = found{line + 1, d.find(line)}
	}
	return r.entry
}

// prefetch loads the entries of lines into the machine's cache by reading them. The reads are
// independent, so several cache misses can overlap.
func (d *directory) prefetch(lines []trace.Line) {
	touched := uint64(0)
	for _, line := range lines {
		if d.recent[line*0x9e3779b97f4a7c15>>(64-recentBits)].key == line+1 {
			continue
		}
		h := hash(line)
		if slots := d.parts[h>>(64-partBits)].slots; len(slots) > 0 {
			touched += slots[home(h, len(slots))].key
		}
	}
	d.touched = touched
}

func (d *directory) find(line trace.Line) *entry {
	h := hash(line)
	p := &d.parts[h>>(64-partBits)]
	if p.used >= p.limit {
		p.grow(d.first)
		d.recent = [recentLines]found{} // growing moves entries
	}
	slots := p.slots
	for i := home(h, len(slots)); ; i++ {
		if i >= len(slots) {
			i = 0
		}
		e := &slots[i]
		if e.key == line+1 {
			return e
		}
		if e.key == 0 {
			e.key = line + 1
			p.used++
			d.lines++
			return e
		}
	}
}

// lookUp returns the entry of a line, or nil if there is none.
func (d *directory) lookUp(line trace.Line) *entry {
	h := hash(line)
	slots := d.parts[h>>(64-partBits)].slots
	if len(slots) == 0 {
		return nil
	}
	for i := home(h, len(slots)); ; i++ {
		if i >= len(slots) {
			i = 0
		}
		if e := &slots[i]; e.key == line+1 || e.key == 0 {
			if e.key == 0 {
				return nil
			}
			return e
		}
	}
}

func (p *tablePart) grow(least int) {
	n := max(least, 2*len(p.slots))
	if len(p.slots) >= slowGrowth {
		n = len(p.slots) + len(p.slots)/4
	}
	old := p.slots
	p.slots = make([]entry, n)
	p.limit = n * 7 / 10
	for _, e := range old {
		if e.key == 0 {
			continue
		}
		i := home(hash(e.key-1), n)
		for p.slots[i].key != 0 {
			if i++; i == n {
				i = 0
			}
		}
		p.slots[i] = e
	}
}

// overlapTracker finds the accesses with an overlap: since the core last touched the accessed line,
// both this core and another core have touched some line y.
//
// For a line y, each of two cores has a time of its last touch of y. The earlier of these two times
// is called the overlap time of y. There is an overlap if the maximum overlap time over all lines y
// is later than the core's last touch of the accessed line. The maximum overlap time can change
// only when a core touches a line that another core touched last. The overlap time of this line is
// then, for both cores, the time of the previous touch. If the core itself touched the accessed
// line last, the time of the line's last touch is also the time of the core's last touch. It is
// therefore sufficient to store one time per line.
type overlapTracker struct {
	now  uint64
	both [profile.MaxCores]uint64 // for each core: the maximum overlap time
}

// recordTouch records that a core touches a line. recordTouch reports whether the access is
// foreign, which means that another core touched the line last, and whether there is an overlap.
func (o *overlapTracker) recordTouch(e *entry, core uint8) (foreign, overlap bool) {
	o.now++
	last, before := uint8(e.last), e.last>>8
	e.last = o.now<<8 | uint64(core)
	own, other := &o.both[core%profile.MaxCores], &o.both[last%profile.MaxCores]
	if before != 0 && last != core {
		*own, *other = max(*own, before), max(*other, before)
		return true, false
	}
	return false, before != 0 && *own > before
}
