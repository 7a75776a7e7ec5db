package simulate

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Protocol is what caches that are side by side know of each other's lines.
type Protocol uint8

// The protocols. Both invalidate on writes, and miss the same.
const (
	MESI Protocol = iota // a line that no other cache had is exclusive, and a store to it tells nobody
	MSI                  // a line that was read is shared
)

func (p Protocol) String() string { return [...]string{"mesi", "msi"}[p] }

// ParseProtocol reads mesi or msi. The error is a [*trace.OptionError].
func ParseProtocol(s string) (Protocol, error) {
	for _, p := range []Protocol{MESI, MSI} {
		if s == p.String() {
			return p, nil
		}
	}
	return 0, &trace.OptionError{Option: "protocol", Got: s, Want: "mesi or msi"}
}

// Bus counts what caches of one level put on the bus that connects them, and what
// they find there.
type Bus struct {
	Reads          uint64 // BusRd: a read that no cache of the core down to here could answer
	ReadsExclusive uint64 // BusRdX: a write of that kind
	Upgrades       uint64 // BusUpgr: a write to a line that is shared
	SilentUpgrades uint64 // a first write to a line that is exclusive, of which the bus sees nothing

	RemoteClean, RemoteDirty uint64 // Reads and ReadsExclusive of a line that caches beside it had

	// Dirty lines that were written back because another cache wanted to read
	// them, or to write to them.
	WriteBacksForReads, WriteBacksForWrites uint64
}

// bus connects caches that have the next level, or memory, in common. A member
// stands for all caches above it too: together they have a line or do not.
type bus struct {
	msi     bool
	members []*level
	shift   uint // it keeps lines of 1 << shift bytes coherent: the largest of its members and those above
	unit    uint // the smallest of these
	lines   lineTable
	full    int // lines, from which on those that nobody has are forgotten

	// The last stores of the owner to lines that were modified already: nothing
	// is to be done for the next one. One more than the line, 0 for none.
	recent [recentStores]recentStore
}

type recentStore struct {
	line   trace.Line // one more than it
	member int
}

// stored tells whether nothing is to be done for a store of a member to a line that it
// has: its last one is among the recent ones, and nobody asked for the line since.
func (b *bus) stored(member int, addr trace.Addr) bool {
	line := addr >> b.shift
	recent := b.recentOf(line)
	return recent.line == line+1 && recent.member == member
}

const (
	recentBits   = 10 // so many that lines of 64 cores seldom meet
	recentStores = 1 << recentBits
)

// recentOf is where the recent store to a line is, if there is one. Lines that cores have
// for themselves differ in their upper bits most.
func (b *bus) recentOf(line trace.Line) *recentStore {
	return &b.recent[line*spread>>(64-recentBits)]
}

// copies says who has a line, as far as the bus was told: members give lines up
// without a word.
type copies struct {
	holders  uint64 // a bit for each member that may have it; no other one has
	owner    int8   // who may write to it without a word, or nobody
	modified bool   // the owner wrote to it
}

const nobody = -1

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

// tell has the buses between a core and memory see an access within a line of its
// first level, from the nearest one to the farthest that it concerns.
func (c *core) tell(buses []int, addr trace.Addr, write bool) {
	first, here, next := c.path[0], false, 0
	start := addr >> first.shift << first.shift
	for _, i := range buses {
		for ; next <= i && !here; next++ {
			here = c.path[next].holds(start, first.lineBytes())
		}
		if here && !write {
			return
		}
		c.path[i].bus.see(c.path[i].member, addr, write, here)
	}
}

// holds tells whether all of a run of bytes is there.
func (l *level) holds(addr trace.Addr, bytes uint64) bool {
	for line := addr >> l.shift; line <= (addr+bytes-1)>>l.shift; line++ {
		if present, _ := l.tags.look(line); !present {
			return false
		}
	}
	return true
}

// see takes a write of a member to a line, or a read of one that the core does not
// have down to there; here: it has it.
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
	b.prune() // before: the line is on its way still
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
	case known.owner == int8(member) && b.has(m, line): // by another core of the member's
		c = known
	case !b.msi:
		c.owner = int8(member)
	}
	return c
}

// before is what there is to know of a line that the bus was never told of: it may
// be with the first core, from a time when the trace did not speak of threads.
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

// has tells whether a member or a cache above it has a part of a line.
func (b *bus) has(m *level, line trace.Line) (present bool) {
	m.everyCopy(line<<b.shift, 1<<b.shift, func(l *level, line trace.Line) {
		here, _ := l.tags.look(line)
		present = present || here
	})
	return present
}

// leastKept is from how many lines on those that nobody has are forgotten.
const leastKept = 1 << 12

// prune forgets the lines that nobody has, when they may be most of those kept.
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

// ask has the other holders of a line write back what is dirty, and give it up for
// a write. It tells which of them had it.
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

// snoop is a request on the bus as another member sees it.
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

// writeBack writes back what is dirty of a run of bytes in a member and above, in
// as few pieces as can be, and leaves it clean.
func (b *bus) writeBack(m *level, addr trace.Addr, bytes uint64) {
	unit, run := uint64(1)<<b.unit, uint64(0) // run: dirty bytes before at
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

// anyDirty tells whether bytes were changed in a cache or one above it.
func (l *level) anyDirty(addr trace.Addr, bytes uint64) (dirty bool) {
	l.everyCopy(addr, bytes, func(l *level, line trace.Line) {
		_, changed := l.tags.look(line)
		dirty = dirty || changed
	})
	return dirty
}

// lose gives a line up to another core's store.
func (l *level) lose(line trace.Line) {
	if present, _ := l.tags.remove(line); present {
		l.counts.Invalidated++
		if l.lost == nil {
			l.lost = map[trace.Line]struct{}{}
		}
		l.lost[line] = struct{}{}
	}
}
