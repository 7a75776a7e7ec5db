package simulate

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Protocol is a cache-coherence protocol.
type Protocol uint8

// The protocols. MESI and MSI invalidate lines on writes, and have the same misses.
const (
	MESI       Protocol = iota // a line that only one cache has read is exclusive, and a store to it is silent
	MSI                        // a line that has been read is shared
	Incoherent                 // caches do not invalidate lines of other caches, as in drcachesim by default
)

// Protocols lists the names of the protocols, in the order of the constants.
var Protocols = []string{"mesi", "msi", "none"}

func (p Protocol) String() string { return Protocols[p] }

// ParseProtocol parses the name of a protocol. The error is a [*trace.OptionError].
func ParseProtocol(s string) (Protocol, error) {
	if i := slices.Index(Protocols, s); i >= 0 {
		return Protocol(i), nil
	}
	return 0, &trace.OptionError{Option: "protocol", Got: s, Want: "mesi, msi or none"}
}

// Bus counts the requests and responses on the bus that connects the caches of a level.
type Bus struct {
	Reads          uint64 // BusRd: read misses in all of the core's caches down to this level
	ReadsExclusive uint64 // BusRdX: write misses in all of the core's caches down to this level
	Upgrades       uint64 // BusUpgr: writes to a shared line
	SilentUpgrades uint64 // first writes to exclusive lines, which need no request

	// how many Reads and ReadsExclusive requested a line that another cache contained
	RemoteClean, RemoteDirty uint64

	// WriteBacksForReads and WriteBacksForWrites count write-backs of dirty lines that another
	// cache reads or writes.
	WriteBacksForReads, WriteBacksForWrites uint64
}

// bus connects the caches that share the next level or memory. A member of the bus is a cache with
// all caches above it.
type bus struct {
	msi     bool
	members []*level
	shift   uint // coherence is maintained for lines of 1 << shift bytes, the largest line size of the members and of the caches above them
	unit    uint // binary logarithm of the smallest line size
	lines   lineTable
	full    int // maximum number of lines before unused lines are removed

	// recent contains recent stores to modified lines by their owners. A further store by the owner
	// needs no request.
	recent [recentStores]recentStore
}

type recentStore struct {
	line   trace.Line // line number plus one; 0: none
	member int
}

// stored reports whether a member's store to a line in its cache needs no request, because recent
// contains the member's last store to the line, and no other member has requested the line since.
func (b *bus) stored(member int, addr trace.Addr) bool {
	line := addr >> b.shift
	recent := b.recentOf(line)
	return recent.line == line+1 && recent.member == member
}

const (
	recentBits   = 10 // enough to make collisions between the lines of 64 cores rare
	recentStores = 1 << recentBits
)

// recentOf returns the entry for a recent store to a line. It hashes the line number, because
// private lines of different cores differ mostly in the upper bits.
func (b *bus) recentOf(line trace.Line) *recentStore {
	return &b.recent[line*spread>>(64-recentBits)]
}

// copies records which members have a line. Evictions are silent, so a member in holders may have
// evicted the line.
type copies struct {
	holders  uint64 // one bit for each member that may have the line
	owner    int8   // the member that may write to the line silently, or nobody
	modified bool   // whether the owner has written to the line
}

const nobody = -1

// newBus returns a bus for caches with the given levels above it, including instruction caches.
func newBus(levels []hierarchy.Cache, p Protocol) *bus {
	b := &bus{msi: p == MSI, lines: newLineTable(), full: leastKept}
	b.unit = uint(bits.TrailingZeros32(levels[0].LineBytes))
	for _, c := range levels {
		shift := uint(bits.TrailingZeros32(c.LineBytes))
		b.shift, b.unit = max(b.shift, shift), min(b.unit, shift)
	}
	return b
}

func (b *bus) join(l *level) {
	l.bus, l.member = b, len(b.members)
	b.members = append(b.members, l)
}

// tell notifies the affected buses, nearest first, of an access within one line of a level. The
// level is the first level, or the level whose prefetcher causes the access. path lists the caches
// from the first level to the last.
func (c *core) tell(path []*level, from int, addr trace.Addr, write bool) {
	first, here, next := path[from], false, from
	start := addr >> first.shift << first.shift
	for k := range c.buses {
		p := &c.buses[k]
		if p.level < from || path[p.level] != c.path[p.level] {
			continue // the access does not pass this bus
		}
		for ; next <= p.level && !here; next++ {
			here = path[next].holds(start, first.lineBytes())
		}
		if here && !write {
			return
		}
		p.bus.see(p.member, addr, write, here)
	}
}

// holds reports whether the cache contains all lines of a range of bytes.
func (l *level) holds(addr trace.Addr, bytes uint64) bool {
	for line := addr >> l.shift; line <= (addr+bytes-1)>>l.shift; line++ {
		if present, _ := l.tags.look(line); !present {
			return false
		}
	}
	return true
}

// see processes a member's write to a line, or a member's read of a line that it does not have.
// here is set if the member has the line.
func (b *bus) see(member int, addr trace.Addr, write, here bool) {
	line := addr >> b.shift
	recent := b.recentOf(line)
	if write && here && recent.line == line+1 && recent.member == member {
		return
	}
	if recent.line == line+1 {
		*recent = recentStore{}
	}
	e := b.lines.at(line)
	known, found := e.copies, e.next != 0
	if !found {
		known = b.before(line)
	}
	var c copies
	if write {
		c = b.write(known, member, line, here)
		*recent = recentStore{line + 1, member}
	} else {
		c = b.read(known, member, line)
	}
	if found {
		e.copies = c
		return
	}
	b.prune() // prune first, because the member does not have the line yet
	b.lines.add(line, c)
}

func (b *bus) write(known copies, member int, line trace.Line, here bool) copies {
	counts := &b.members[member].counts.Bus
	switch owned := known.owner == int8(member); {
	case !here:
		counts.ReadsExclusive++
	case !owned:
		counts.Upgrades++
	case !known.modified:
		counts.SilentUpgrades++
	}
	b.ask(known.holders, member, line, true, here)
	return copies{holders: 1 << member, owner: int8(member), modified: true}
}

func (b *bus) read(known copies, member int, line trace.Line) copies {
	m := b.members[member]
	m.counts.Bus.Reads++
	others := b.ask(known.holders, member, line, false, false)
	c := copies{holders: others | 1<<member, owner: nobody}
	switch {
	case others != 0:
	case known.owner == int8(member) && b.has(m, line): // a read by a second core of the same member
		c = known
	case !b.msi:
		c.owner = int8(member)
	}
	return c
}

// before returns the initial state of a line that is new to the bus. The first core may have the
// line, because it executed the accesses that precede the first access with a thread.
func (b *bus) before(line trace.Line) copies {
	first := b.members[0]
	switch {
	case !b.has(first, line):
		return copies{owner: nobody}
	case first.anyDirty(line<<b.shift, 1<<b.shift):
		return copies{holders: 1, owner: 0, modified: true}
	case b.msi:
		return copies{holders: 1, owner: nobody}
	}
	return copies{holders: 1, owner: 0}
}

// has reports whether a member contains a part of a line.
func (b *bus) has(m *level, line trace.Line) (present bool) {
	m.everyCopy(line<<b.shift, 1<<b.shift, func(l *level, line trace.Line) {
		here, _ := l.tags.look(line)
		present = present || here
	})
	return present
}

// leastKept is the minimum number of lines in the table before unused lines are removed.
const leastKept = 1 << 12

// prune removes the lines that no member has, if they may be the majority.
func (b *bus) prune() {
	if b.lines.used < b.full {
		return
	}
	b.lines.keep(func(line trace.Line, c copies) (kept bool) {
		for left := c.holders; left != 0 && !kept; left &= left - 1 {
			kept = b.has(b.members[bits.TrailingZeros64(left)], line)
		}
		return kept
	})
	b.full = max(leastKept, 4*b.lines.used)
}

// ask makes the other holders of a line write back dirty data, and returns the holders that had the
// line. For a write, it also invalidates the line in these caches.
func (b *bus) ask(holders uint64, member int, line trace.Line, write, here bool) (others uint64) {
	anyDirty := false
	for left := holders &^ (1 << member); left != 0; left &= left - 1 {
		other := bits.TrailingZeros64(left)
		present, dirty := b.snoop(b.members[other], line, write)
		if present {
			others |= 1 << other
		}
		anyDirty = anyDirty || dirty
	}
	counts := b.members[member].counts
	switch {
	case here || others == 0:
	case anyDirty:
		counts.Bus.RemoteDirty++
	default:
		counts.Bus.RemoteClean++
	}
	return others
}

// snoop processes, at member m, a request of a different member.
func (b *bus) snoop(m *level, line trace.Line, write bool) (present, dirty bool) {
	addr, bytes := line<<b.shift, uint64(1)<<b.shift
	m.everyCopy(addr, bytes, func(l *level, line trace.Line) {
		here, changed := l.tags.look(line)
		present, dirty = present || here, dirty || changed
	})
	if dirty {
		if write {
			m.counts.Bus.WriteBacksForWrites++
		} else {
			m.counts.Bus.WriteBacksForReads++
		}
		b.writeBack(m, addr, bytes)
	}
	if present && write {
		m.everyCopy(addr, bytes, (*level).lose)
	}
	return present, dirty
}

// writeBack writes back the dirty bytes of a range in a member and the caches above it, in as few
// pieces as possible, and marks them clean.
func (b *bus) writeBack(m *level, addr trace.Addr, bytes uint64) {
	unit, run := uint64(1)<<b.unit, uint64(0) // run is the number of dirty bytes immediately before at
	at := addr
	for ; at != addr+bytes; at += unit {
		if m.anyDirty(at, unit) {
			run += unit
		} else if run > 0 {
			m.sendBack(at-run, run)
			run = 0
		}
	}
	if run > 0 {
		m.sendBack(at-run, run)
	}
	m.everyCopy(addr, bytes, func(l *level, line trace.Line) { l.tags.wash(line) })
}

// anyDirty reports whether a range has dirty bytes in a cache or in the caches above.
func (l *level) anyDirty(addr trace.Addr, bytes uint64) (dirty bool) {
	l.everyCopy(addr, bytes, func(l *level, line trace.Line) {
		_, changed := l.tags.look(line)
		dirty = dirty || changed
	})
	return dirty
}

// lose invalidates a line in the cache because of another core's store.
func (l *level) lose(line trace.Line) {
	if present, _ := l.tags.remove(line); present {
		l.counts.Invalidated++
		if l.watch != nil {
			l.watch.gone(line, l.counts)
		}
		if l.lost == nil {
			l.lost = map[trace.Line]struct{}{}
		}
		l.lost[line] = struct{}{}
	}
}

// lineTable is a hash table with open addressing for the lines that a bus knows. Every store on the
// bus needs a look-up, and a map would be several times slower.
type lineTable struct {
	// the number of entries is a power of two, and at most half of them are in use
	entries []lineEntry
	used    int
	shift   uint        // 64 - log2(len(entries))
	kept    []lineEntry // scratch space of keep
}

type lineEntry struct {
	next trace.Line // the line's number plus one; 0: the entry is free
	copies
}

const leastLines = 1 << 10

func newLineTable() lineTable { return lineTable{}.of(leastLines) }

// of returns an empty table with the given number of entries.
func (lineTable) of(places int) lineTable {
	return lineTable{entries: make([]lineEntry, places), shift: uint(64 - bits.Len(uint(places-1)))}
}

// spread is 2^64 divided by the golden ratio, for multiplicative hashing (Knuth, The Art of
// Computer Programming, vol. 3, §6.4).
const spread = 0x9e3779b97f4a7c15

// at returns the entry of a line, or the free entry into which the line can be inserted.
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

func (t *lineTable) add(line trace.Line, c copies) {
	if 2*(t.used+1) > len(t.entries) {
		t.keep(func(trace.Line, copies) bool { return true })
	}
	t.used++
	*t.at(line) = lineEntry{line + 1, c}
}

// keep removes all lines for which the function is returns false. The new table has room for twice
// as many lines as remain. If its size does not change, keep allocates no memory.
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
