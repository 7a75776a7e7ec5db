package simulate

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Protocol is a cache-coherence protocol.
type Protocol uint8

// The coherence protocols. MESI and MSI invalidate lines on writes, and have the same misses.
const (
	MESI       Protocol = iota // a line that only one cache has read is exclusive, so a store to the line is silent
	MSI                        // a line that has been read is shared
	Incoherent                 // caches do not invalidate lines of other caches (the default of drcachesim)
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
	Reads          uint64 // BusRd: reads that miss in all of the core's caches down to this level
	ReadsExclusive uint64 // BusRdX: writes that miss in all of the core's caches down to this level
	Upgrades       uint64 // BusUpgr: writes to a shared line
	SilentUpgrades uint64 // first writes to exclusive lines, which need no request

	// numbers of requests (Reads and ReadsExclusive) for which another cache contained the line: as
	// a clean line, and as a dirty line
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
	unit    uint // binary logarithm of the smallest line size of the caches on the bus
	lines   lineTable
	pruneAt int // number of lines in the table at which unused lines are removed

	// recent contains recent stores that the owners of modified lines have made to these lines. A
	// further store by the owner needs no request.
	recent [recentStores]recentStore
}

type recentStore struct {
	line   trace.Line // line number plus one; 0: none
	member int
}

// isRepeatedStore reports whether a member's store to a line in its cache needs no bus request.
// This is the case if the field "recent" contains the member's last store to the line: requests
// by other members remove such entries.
func (b *bus) isRepeatedStore(member int, addr trace.Addr) bool {
	line := addr >> b.shift
	recent := b.recentOf(line)
	return recent.line == line+1 && recent.member == member
}

const (
	recentBits   = 10 // collisions between the lines of 64 cores are rare in a table of this size
	recentStores = 1 << recentBits
)

// recentOf returns the entry of the field "recent" that belongs to a line. The line number is
// hashed, because private lines of different cores differ mostly in the upper bits.
func (b *bus) recentOf(line trace.Line) *recentStore {
	return &b.recent[line*fibonacciFactor>>(64-recentBits)]
}

// copies records which members have a copy of a line. Evictions are silent, so holders may include
// members that have evicted the line.
type copies struct {
	holders  uint64 // one bit for each member that may contain the line
	owner    int8   // the member that may write to the line silently, or nobody
	modified bool   // whether the owner has written to the line
}

const nobody = -1

// newBus returns a bus for caches with the given levels above it, including instruction caches.
func newBus(levels []hierarchy.Cache, p Protocol) *bus {
	b := &bus{msi: p == MSI, lines: newLineTable(), pruneAt: minPruneSize}
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

// notifyBuses notifies the affected buses of an access within one line, nearest bus first. The
// parameter "from" is the index of the level at which the access starts: the first level, or the
// level whose prefetcher causes the access. The parameter "path" lists the caches from the first
// level to the last.
func (c *core) notifyBuses(path []*level, from int, addr trace.Addr, write bool) {
	first, here, next := path[from], false, from
	start := addr >> first.shift << first.shift
	for k := range c.buses {
		p := &c.buses[k]
		if p.level < from || path[p.level] != c.path[p.level] {
			continue // the access does not pass this bus
		}
		for ; next <= p.level && !here; next++ {
			here = path[next].containsRange(start, first.lineBytes())
		}
		if here && !write {
			return
		}
		p.bus.onAccess(p.member, addr, write, here)
	}
}

// containsRange reports whether the cache contains all lines of a range of bytes.
func (l *level) containsRange(addr trace.Addr, bytes uint64) bool {
	for line := addr >> l.shift; line <= (addr+bytes-1)>>l.shift; line++ {
		if present, _ := l.tags.peek(line); !present {
			return false
		}
	}
	return true
}

// onAccess processes a member's write to a line, or a member's read of a line that it does not
// contain. For a write, the parameter "present" reports whether the member contains the line.
func (b *bus) onAccess(member int, addr trace.Addr, write, present bool) {
	line := addr >> b.shift
	recent := b.recentOf(line)
	if write && present && recent.line == line+1 && recent.member == member {
		return
	}
	if recent.line == line+1 {
		*recent = recentStore{}
	}
	e := b.lines.find(line)
	known, found := e.copies, e.next != 0
	if !found {
		known = b.initialState(line)
	}
	var c copies
	if write {
		c = b.write(known, member, line, present)
		*recent = recentStore{line + 1, member}
	} else {
		c = b.read(known, member, line)
	}
	if found {
		e.copies = c
		return
	}
	b.prune() // prune before adding the line, because the member does not contain it yet
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
	b.requestFromOthers(known.holders, member, line, true, here)
	return copies{holders: 1 << member, owner: int8(member), modified: true}
}

func (b *bus) read(known copies, member int, line trace.Line) copies {
	m := b.members[member]
	m.counts.Bus.Reads++
	others := b.requestFromOthers(known.holders, member, line, false, false)
	c := copies{holders: others | 1<<member, owner: nobody}
	switch {
	case others != 0:
	case known.owner == int8(member) && b.contains(m, line): // another core that shares this member reads the line
		c = known
	case !b.msi:
		c.owner = int8(member)
	}
	return c
}

// initialState returns the initial state of a line that is new to the bus. The first core may
// contain the line, because it simulates all accesses before the first access that has a thread
// number.
func (b *bus) initialState(line trace.Line) copies {
	first := b.members[0]
	switch {
	case !b.contains(first, line):
		return copies{owner: nobody}
	case first.anyDirty(line<<b.shift, 1<<b.shift):
		return copies{holders: 1, owner: 0, modified: true}
	case b.msi:
		return copies{holders: 1, owner: nobody}
	}
	return copies{holders: 1, owner: 0}
}

// contains reports whether a member contains a part of a line.
func (b *bus) contains(m *level, line trace.Line) (present bool) {
	m.everyCopy(line<<b.shift, 1<<b.shift, func(l *level, line trace.Line) {
		here, _ := l.tags.peek(line)
		present = present || here
	})
	return present
}

// minPruneSize is the number of lines in the table below which unused lines are never removed.
const minPruneSize = 1 << 12

// prune removes the lines that no member contains, if such lines may be the majority of the table.
func (b *bus) prune() {
	if b.lines.used < b.pruneAt {
		return
	}
	b.lines.keep(func(line trace.Line, c copies) (kept bool) {
		for left := c.holders; left != 0 && !kept; left &= left - 1 {
			kept = b.contains(b.members[bits.TrailingZeros64(left)], line)
		}
		return kept
	})
	b.pruneAt = max(minPruneSize, 4*b.lines.used)
}

// requestFromOthers makes the other holders of a line write back dirty data, and returns the
// holders that still contained the line. For a write, requestFromOthers also invalidates the line
// in the caches of these holders.
func (b *bus) requestFromOthers(holders uint64, member int, line trace.Line, write, here bool) (others uint64) {
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

// snoop processes another member's request at member m.
func (b *bus) snoop(m *level, line trace.Line, write bool) (present, dirty bool) {
	addr, bytes := line<<b.shift, uint64(1)<<b.shift
	m.everyCopy(addr, bytes, func(l *level, line trace.Line) {
		here, changed := l.tags.peek(line)
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
		m.everyCopy(addr, bytes, (*level).invalidateByStore)
	}
	return present, dirty
}

// writeBack writes back the dirty bytes of a range from a member and the caches above it, and marks
// them clean. Adjacent dirty bytes are written back together.
func (b *bus) writeBack(m *level, addr trace.Addr, bytes uint64) {
	unit, dirtyBytes := uint64(1)<<b.unit, uint64(0) // dirtyBytes is the number of adjacent dirty bytes directly before address "at"
	at := addr
	for ; at != addr+bytes; at += unit {
		if m.anyDirty(at, unit) {
			dirtyBytes += unit
		} else if dirtyBytes > 0 {
			m.sendWriteBack(at-dirtyBytes, dirtyBytes)
			dirtyBytes = 0
		}
	}
	if dirtyBytes > 0 {
		m.sendWriteBack(at-dirtyBytes, dirtyBytes)
	}
	m.everyCopy(addr, bytes, func(l *level, line trace.Line) { l.tags.markClean(line) })
}

// anyDirty reports whether a cache, or a cache above it, contains dirty bytes of a range.
func (l *level) anyDirty(addr trace.Addr, bytes uint64) (dirty bool) {
	l.everyCopy(addr, bytes, func(l *level, line trace.Line) {
		_, changed := l.tags.peek(line)
		dirty = dirty || changed
	})
	return dirty
}

// invalidateByStore invalidates a line in the cache because of another core's store.
func (l *level) invalidateByStore(line trace.Line) {
	if present, _ := l.tags.remove(line); present {
		l.counts.Invalidated++
		if l.watch != nil {
			l.watch.lineLeft(line, l.counts)
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
	// entries of the table; their number is a power of two, and at most half are in use
	entries []lineEntry
	used    int
	shift   uint        // 64 minus the binary logarithm of len(entries)
	kept    []lineEntry // scratch memory of the method "keep"
}

type lineEntry struct {
	next trace.Line // the line's number plus one; 0: the entry is free
	copies
}

const minEntries = 1 << 10

func newLineTable() lineTable { return lineTable{}.withEntries(minEntries) }

// withEntries returns an empty table with n entries. The number n must be a power of two.
func (lineTable) withEntries(n int) lineTable {
	return lineTable{entries: make([]lineEntry, n), shift: uint(64 - bits.Len(uint(n-1)))}
}

// fibonacciFactor is 2^64 divided by the golden ratio, for multiplicative hashing (Knuth, The Art of
// Computer Programming, vol. 3, §6.4).
const fibonacciFactor = 0x9e3779b97f4a7c15

// find returns the entry of a line, or the free entry into which the line can be inserted.
func (t *lineTable) find(line trace.Line) *lineEntry {
	mask := len(t.entries) - 1
	for i := int(line * fibonacciFactor >> t.shift); ; i = (i + 1) & mask {
		if e := &t.entries[i]; e.next == 0 || e.next == line+1 {
			return e
		}
	}
}

// get returns the state of a line.
func (t *lineTable) get(line trace.Line) (c copies, known bool) {
	e := t.find(line)
	return e.copies, e.next != 0
}

func (t *lineTable) add(line trace.Line, c copies) {
	if 2*(t.used+1) > len(t.entries) {
		t.keep(func(trace.Line, copies) bool { return true })
	}
	t.used++
	*t.find(line) = lineEntry{line + 1, c}
}

// keep removes all lines for which the function "retain" returns false. The table is also resized,
// so that the number of lines can at least double. If the size does not change, keep allocates no
// memory.
func (t *lineTable) keep(retain func(trace.Line, copies) bool) {
	kept := t.kept[:0]
	for i := range t.entries {
		if e := &t.entries[i]; e.next != 0 && retain(e.next-1, e.copies) {
			kept = append(kept, *e)
		}
	}
	entries := max(minEntries, 1<<bits.Len(uint(4*len(kept))))
	if entries > len(t.entries) || 4*entries < len(t.entries) {
		*t = t.withEntries(entries)
	} else {
		clear(t.entries)
	}
	for i := range kept {
		*t.find(kept[i].next - 1) = kept[i]
	}
	t.used, t.kept = len(kept), kept
}
