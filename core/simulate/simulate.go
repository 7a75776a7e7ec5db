// Package simulate runs line accesses through a hierarchy of caches, one after
// the other, and counts exactly what happens: the oracle that predictions from a
// profile are held against. It is plain on purpose. A simulation answers for one
// hierarchy and costs a pass over the trace; package hierarchy answers for any
// hierarchy from a profile.
//
// # Accesses
//
// A reference is one access a line that it touches, in ascending order (MODELS
// §1, as DineroIV). Loads, fetches and ranges that are read are reads; stores,
// modifies and ranges that are written are writes: a modify is one access, a
// write.
//
// # Demand
//
// Demand accesses of the first level are those of the trace. What misses is
// demanded of the next level, so a level's demand accesses are the misses of
// the one above (times the lines that it takes to fill one there, where lines
// are smaller below). A line that is fetched for a store is a read below; a
// store is a write below where it goes on by itself, because a level above does
// not allocate for it. Everything else that arrives is no demand and is counted
// apart: lines written back, stores written through, and victims.
//
// # One access
//
//  1. The line is looked up. A hit makes it the most recently used one.
//  2. A miss fetches it from below; every level that it comes through keeps it,
//     but exclusive ones, and stores at levels that do not allocate for them.
//  3. Only then another line leaves, if the set is full: written back if it is
//     dirty, or dropped. (DineroIV counts the same in this order; see the tests.)
//
// What arrives from above besides demand looks its line up too, and a hit makes
// it the most recently used one, as in DineroIV.
//
//   - A write-back that misses is kept without fetching anything, if it brings
//     a whole line and the level allocates for writes; or else it goes on down.
//     A level that writes through keeps it clean and sends it on.
//   - A store written through, of what has hit above, never allocates: where it
//     misses it goes on down.
//
// # Inclusion
//
//   - An inclusive level holds all that the levels above it hold. When a line
//     leaves it, it leaves above as well, and what was changed there is written
//     back with it. Its lines are at least as large as those above.
//   - A non-inclusive level keeps what comes by and sends no word up. This is
//     DineroIV's second level.
//   - An exclusive level is filled with the lines, clean and dirty, that leave
//     the level above, and gives a line up when it is asked for it; changes move
//     up with the line. What is written back because it is written through, or
//     at the end, passes it by. Its lines are as large as those above.
//
// The first level's inclusion says nothing.
//
// # Sets and replacement
//
// The set is the line's number modulo the number of sets, which need be no
// power of two. A hashed index first folds the number: it is cut into pieces as
// long as a set's number, which are added bit by bit without carry. A set that
// is not full takes the frame that was emptied last, or else the next that was
// never used. Then the line that gives way is the least recently used one; that
// at which the tree of bits points, which every use turns away from what was
// used (tree-PLRU, ways a power of two); or a random one, the same for the same
// seed.
//
// # The end
//
// [Simulator.Finish] writes back what is dirty, as DineroIV does: level by
// level, first level first, set by set, most recently used line first. What that
// does is counted apart, in Flush.
package simulate

import (
	"math/bits"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Result is what a simulation counted.
type Result struct {
	Levels        []Level // first level first
	Memory, Flush Traffic // during the run, and by what is written back at its end

	References uint64 // of the trace
	Split      uint64 // those of them that touch more than one line of the first level
}

// Level is what one cache counted, during the run and while it was flushed.
type Level struct {
	Cache      hierarchy.Cache
	Run, Flush Counts
	Resident   uint64 // lines that it holds at the end
}

// Counts are what happened at one level.
type Counts struct {
	// Demand accesses, and those of them that did not find their line.
	Reads, Writes, ReadMisses, WriteMisses uint64

	// What arrives from the level above besides demand.
	WriteBacksReceived uint64 // dirty lines
	WriteBackMisses    uint64 // those of them that did not find their line
	Updates            uint64 // stores written through
	CleanVictims       uint64 // clean lines that left above, for an exclusive level

	// What goes to the level below besides demand.
	WriteBacksSent uint64

	// The lines that it holds: what was filled was evicted, taken or given, or
	// is still there.
	Fills     uint64 // lines that came, on demand or from above
	Evictions uint64 // lines that left because others came
	Taken     uint64 // lines that left because an inclusive level below lost them (back-invalidations)
	Given     uint64 // lines that left an exclusive level for one above
}

// Accesses is the number of demand accesses.
func (c *Counts) Accesses() uint64 { return c.Reads + c.Writes }

// Misses is the number of demand accesses that did not find their line.
func (c *Counts) Misses() uint64 { return c.ReadMisses + c.WriteMisses }

// Hits is the number of demand accesses that found their line.
func (c *Counts) Hits() uint64 { return c.Accesses() - c.Misses() }

// Traffic is what happened at memory.
type Traffic struct {
	Reads, Writes           uint64 // lines fetched; lines and stores written
	BytesRead, BytesWritten uint64
}

// Simulator simulates one hierarchy.
type Simulator struct {
	levels []*level
	memory Traffic

	references, split uint64
}

// mostLines is the largest cache: a gigabyte of memory while simulating it.
const mostLines = 1 << 27

// New makes a simulator of h with empty caches. The error is a
// [*trace.OptionError]. Random replacement is drawn from seed.
func New(h hierarchy.Hierarchy, seed uint64) (*Simulator, error) {
	if len(h.Levels) == 0 {
		return nil, &trace.OptionError{Option: "hierarchy", Got: h.Name, Want: "at least one level"}
	}
	s := &Simulator{}
	for i, c := range h.Levels {
		if err := check(h.Levels, i); err != nil {
			return nil, err
		}
		l := &level{
			memory:    &s.memory,
			cache:     c,
			shift:     uint(bits.TrailingZeros32(c.LineBytes)),
			tags:      newTags(c, seed+uint64(i)),
			through:   c.Write.Through(),
			around:    c.Write.Around(),
			inclusive: i > 0 && c.Inclusion == hierarchy.Inclusive,
			exclusive: i > 0 && c.Inclusion == hierarchy.Exclusive,
		}
		if i > 0 {
			l.above, s.levels[i-1].below = s.levels[i-1], l
		}
		s.levels = append(s.levels, l)
	}
	return s, nil
}

// MemoryBytes is what New of h takes. The error is that of New.
func MemoryBytes(h hierarchy.Hierarchy) (bytes uint64, err error) {
	for i, c := range h.Levels {
		if err := check(h.Levels, i); err != nil {
			return 0, err
		}
		bytes += tagBytes(c)
	}
	return bytes, nil
}

// check tests whether level i can be simulated where it stands.
func check(levels []hierarchy.Cache, i int) error {
	c := levels[i]
	if err := c.Check(); err != nil {
		return err
	}
	want := ""
	ways := c.Lines() / c.Sets()
	switch {
	case c.Lines() > mostLines:
		want = "at most " + strconv.Itoa(mostLines) + " lines to simulate"
	case c.Replacement == hierarchy.TreePLRU && ways&(ways-1) != 0:
		want = "a number of ways that is a power of two, for tree-PLRU"
	case i > 0 && c.Inclusion == hierarchy.Inclusive && c.LineBytes < largestLine(levels[:i]):
		want = "lines at least as large as those above it, to be inclusive"
	case i > 0 && c.Inclusion == hierarchy.Exclusive && c.LineBytes != levels[i-1].LineBytes:
		want = "lines as large as those of " + levels[i-1].Name + " above it, to be exclusive"
	default:
		return nil
	}
	return &trace.OptionError{Option: "cache", Got: c.String(), Want: want}
}

func largestLine(levels []hierarchy.Cache) (bytes uint32) {
	for _, c := range levels {
		bytes = max(bytes, c.LineBytes)
	}
	return bytes
}

// Consume simulates the references of a batch; rows that are none are passed
// over.
func (s *Simulator) Consume(b *trace.Batch) error {
	first := s.levels[0]
	kinds := b.Kind
	addrs, sizes := b.Addr[:len(kinds)], b.Bytes[:len(kinds)]
	for i, kind := range kinds {
		if !kind.IsReference() {
			continue
		}
		s.references++
		addr, bytes, write := addrs[i], uint64(max(sizes[i], 1)), writes.Has(kind)
		line, last := addr>>first.shift, (addr+bytes-1)>>first.shift
		if line >= last {
			first.access(addr, min(bytes, first.room(addr)), write)
			continue
		}
		s.split++
		for ; line <= last; line++ {
			part := min(bytes, first.room(addr))
			first.access(addr, part, write)
			addr, bytes = addr+part, bytes-part
		}
	}
	return nil
}

// writes are the kinds that change memory.
const writes = trace.Kinds(1<<trace.Store | 1<<trace.Modify | 1<<trace.RangeWrite)

// Result gives what was counted so far.
func (s *Simulator) Result() Result {
	r := Result{Memory: s.memory, References: s.references, Split: s.split}
	for _, l := range s.levels {
		r.Levels = append(r.Levels, Level{Cache: l.cache, Run: l.counts, Resident: l.tags.resident()})
	}
	return r
}

// Finish writes back all that is dirty and gives the result. It ends the
// simulation.
func (s *Simulator) Finish() Result {
	r := s.Result()
	s.memory = Traffic{}
	for _, l := range s.levels {
		l.counts = Counts{}
	}
	for _, l := range s.levels {
		l.flush()
	}
	for i, l := range s.levels {
		r.Levels[i].Flush, r.Levels[i].Resident = l.counts, l.tags.resident()
	}
	r.Flush = s.memory
	return r
}
