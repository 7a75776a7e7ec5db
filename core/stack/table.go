package stack

import "github.com/stackglass/stackglass/core/trace"

// table maps each line of the trace to its timestamp. The hash table uses open addressing with
// linear probing. The 256 parts of the table grow one at a time, so growth never interrupts the run
// for long, and old and new memory coexist for only one part. Large parts grow by half, so the
// table needs 23 to 35 bytes per line.
type table struct {
	parts [tableParts]part
	lines int // number of entries in all parts
}

const (
	partBits   = 8
	tableParts = 1 << partBits
	firstSlots = 16
	slotGroup  = 4
	// A part with this number of slots or more grows by half instead of doubling.
	slowGrowth = 4096
)

type part struct {
	slots []entry
	used  int
	limit int // the part grows when the field "used" reaches this limit, seven tenths of the slots
}

type entry struct {
	key   uint64 // line + 1; 0 for an empty slot
	stamp uint32 // a timestamp, or one of the constants onTop and fresh
	// in [Sets], the number of the line's last move in the lists, or 0; in [Coherent], the id of the
	// line, or 0
	moved uint32
}

const (
	onTop = ^uint32(0) // the line is in the top array, not in the tree
	fresh = onTop - 1  // the line has not been accessed before
)

// hash returns the hash of a line. The high bits of the result select the part and the slot. With a
// single multiplication, strides near the inverse of the factor would map to consecutive slots.
func hash(line trace.Line) uint64 {
	h := line * 0x9e3779b97f4a7c15
	h ^= h >> 32
	return h * 0xd6e8feb86659fd93
}

// home returns the preferred slot for hash h among n slots. This slot is the first of a group of
// four slots, which fill a cache line.
func home(h uint64, n int) int {
	return int((h<<partBits>>32)*uint64(n/slotGroup)>>32) * slotGroup
}

// group contains the entries of one cache line.
type group [slotGroup]entry

// place returns the index of the entry with a key, or the index of the last entry if no entry has
// the key. The method has no branch, because the position of the entry is unpredictable.
func (g *group) place(key uint64) uint64 {
	a, b, c := differ(g[0].key, key), differ(g[1].key, key), differ(g[2].key, key)
	return a + a&b + a&b&c
}

// differ returns 1 if two keys differ, otherwise 0.
func differ(a, b uint64) (n uint64) {
	if a != b {
		n = 1
	}
	return n
}

// homeOf returns a line's home group, in which the search for the line begins, or nil if this part
// of the table has no slots.
func (t *table) homeOf(line trace.Line) *group {
	h := hash(line)
	slots := t.parts[h>>(64-partBits)].slots
	if i := home(h, len(slots)); i+slotGroup <= len(slots) {
		return (*group)(slots[i:])
	}
	return nil
}

// find returns the line's entry, or nil.
func (t *table) find(line trace.Line) *entry {
	key := line + 1
	if g := t.homeOf(line); g != nil {
		if e := &g[g.place(key)]; e.key == key && key != 0 {
			return e
		}
	}
	return t.findBehind(line)
}

// findBehind implements find for lines that are not in their home group.
func (t *table) findBehind(line trace.Line) *entry {
	h := hash(line)
	slots := t.parts[h>>(64-partBits)].slots
	i := home(h, len(slots))
	for {
		if i >= len(slots) {
			i = 0
			if len(slots) == 0 {
				return nil
			}
		}
		e := &slots[i]
		if e.key == 0 { // test this first, because the key of noLine is also 0, and noLine must not be found
			return nil
		}
		if e.key == line+1 {
			return e
		}
		i++
	}
}

// findOrAdd returns the line's entry. If the line has no entry, findOrAdd adds an entry with the
// stamp "fresh". The result "grew" reports whether this part of the table has grown, which moves
// its entries. The pointer is valid until the part grows.
func (t *table) findOrAdd(line trace.Line) (e *entry, grew bool) {
	h := hash(line)
	p := &t.parts[h>>(64-partBits)]
	if p.used >= p.limit {
		p.grow()
		grew = true
	}
	slots := p.slots
	i := home(h, len(slots))
	for {
		if i >= len(slots) {
			i = 0
		}
		e = &slots[i]
		if e.key == line+1 {
			return e, grew
		}
		if e.key == 0 {
			e.key, e.stamp = line+1, fresh
			p.used++
			t.lines++
			return e, grew
		}
		i++
	}
}

// touch loads the line's home group into the processor's cache.
func (t *table) touch(line trace.Line) uint64 {
	if g := t.homeOf(line); g != nil {
		return g[0].key
	}
	return 0
}

// order writes all lines with a timestamp to the end of a list, most recently used first.
func (t *table) order(stamps *stamps, list []trace.Line) {
	for p := range t.parts {
		for _, e := range t.parts[p].slots {
			if e.key != 0 && e.stamp < fresh {
				list[uint32(len(list))-1-stamps.rank(e.stamp)] = e.key - 1
			}
		}
	}
}

func (p *part) grow() {
	n := max(firstSlots, 2*len(p.slots))
	if len(p.slots) >= slowGrowth {
		n = (len(p.slots) + len(p.slots)/2) / slotGroup * slotGroup
	}
	old := p.slots
	p.slots = make([]entry, n)
	for i := 0; i < n; i += 4096 / 16 {
		p.slots[i] = entry{} // see listPage.commit
	}
	p.limit = n / 10 * 7
	for _, e := range old {
		if e.key == 0 {
			continue
		}
		i := home(hash(e.key-1), n)
		for {
			if i >= n {
				i = 0
			}
			if p.slots[i].key == 0 {
				p.slots[i] = e
				break
			}
			i++
		}
	}
}
