// Package simulate runs line accesses through a hierarchy of caches, one after
// the other, and counts exactly what happens: the oracle that predictions from a
// profile are held against. It is plain on purpose. A simulation answers for one
// hierarchy and costs a pass over the trace; package hierarchy answers for any
// hierarchy from a profile.
//
// # Accesses
//
// A reference is one access for each line that it touches, in ascending order, as in
// DineroIV (MODELS §1). Loads, fetches and ranges that are read are reads; stores,
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
//   - A non-inclusive level, which is the default, keeps what comes by and
//     invalidates nothing above. DineroIV, Cachegrind and drcachesim have such.
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
// # Cores
//
// Each thread of the trace runs on a core of its own, unless [Options.Cores] puts
// several on one; beyond [MaxCores], threads that appear are put on those in turn. A
// level that SharedBy says nothing of is private: each core has a
// cache of it. Of a level that n cores share, every n consecutive cores have one.
// Cores are in the order that was asked for, by their first thread, and then in
// the order in which threads appear; references are made one after the other, in
// the order of the trace. One core goes through the caches as if there were no
// other.
//
// # Coherence
//
// Private caches are kept coherent by snooping and write-invalidate (Culler and
// Singh, Parallel Computer Architecture, 1999, §5.3). Wherever several caches have
// the next level or memory in common, a bus connects them; a cache with those above
// it stands for its cores there. A read that they cannot answer goes on the bus
// (BusRd), and so does every store, as a miss (BusRdX) or, of a line that they have,
// as an upgrade (BusUpgr). Before it is demanded of the next level,
//
//   - another that has the line dirty writes it back, and keeps it clean for a read;
//   - all others lose it for a store. Their next demand for it, if it misses, is a
//     coherence miss. The frame is empty then, and filled before another line leaves.
//
// Stores tell nobody where the line is modified (M) already, and under MESI where
// it is exclusive (E), for no other had it when it was read. Under MSI it would be
// shared, and an upgrade. So MSI and MESI differ in traffic, never in misses. A line
// that leaves leaves without a word, so others may be taken to share it still.
//
// Lines that another cache has too are still demanded of the next level; what could
// have come from a cache is counted (remote, clean or dirty). Where lines of the
// caches on one bus differ in size, the largest are kept coherent.
//
// For one private level, the misses of each core equal those of its coherent stack
// (MODELS §6.4).
//
// # The end
//
// [Simulator.Finish] writes back what is dirty, as DineroIV does: level by
// level, first level first, set by set, most recently used line first. What that
// does is counted apart, in Flush.
package simulate

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Result is what a simulation counted.
type Result struct {
	Levels        []Level // first level first
	Cores         []Core  // by number
	Memory, Flush Traffic // during the run, and by what is written back at its end

	Folded     int    // threads that share a core, for there are more than [MaxCores]
	References uint64 // of the trace
	Split      uint64 // those of them that touch more than one line of the first level
}

// Level is what the caches of one level counted, during the run and while they were
// flushed.
type Level struct {
	Cache      hierarchy.Cache
	Run, Flush Counts
	Resident   uint64   // lines that they hold at the end
	Caches     int      // how many there are
	Cores      []Counts // those of Run that each core is the cause of; what it loses to others is its own
}

// Core is a processor of the simulation.
type Core struct {
	Threads []uint32 // of the trace, ascending
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

	// The lines that it holds: what was filled was evicted, taken, given or
	// invalidated, or is still there.
	Fills     uint64 // lines that came, on demand or from above
	Evictions uint64 // lines that left because others came
	Taken     uint64 // lines that left because an inclusive level below lost them (back-invalidations)
	Given     uint64 // lines that left an exclusive level for one above

	// With several cores.
	CoherenceMisses uint64 // those of Misses whose line was here until another core stored to it
	Invalidated     uint64 // lines that left because another core stored to them
	Bus             Bus
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

// Options are choices about a simulation.
type Options struct {
	Seed     uint64 // of random replacement
	Protocol Protocol
	// Cores are the threads that run on one core, each thread in at most one; those
	// in none have one of their own.
	Cores       [][]uint32
	MemoryBytes uint64 // limit of what caches take; 0: none
}

// Simulator simulates one hierarchy.
type Simulator struct {
	h        hierarchy.Hierarchy
	protocol Protocol
	seed     uint64
	caches   [][]*level // of each level, by number
	connect  *bus       // between the caches of the last level
	buses    []int      // levels whose caches are on one
	memory   Traffic

	cores        []*core
	byThread     map[uint32]*core
	direct       [MaxCores]*core // of threads with small numbers that made a reference
	unused       *core           // the first one, until a thread runs on it
	appeared     []*core
	folded       int    // threads that had to share a core, for there were too many
	now          *core  // whose reference it is; nil: not known
	thread       uint32 // that runs on it
	threaded     bool   // the trace says who makes references
	partly       []int  // levels whose caches some cores share: what others do to one is put down to the core that made the last reference
	bytes, limit uint64

	references, split uint64
}

// mostLines is the largest cache: a gigabyte of memory while simulating it.
const mostLines = 1 << 27

// New makes a simulator of h with empty caches. The error is a
// [*trace.OptionError], or a [*MemoryError].
func New(h hierarchy.Hierarchy, o Options) (*Simulator, error) {
	if len(h.Levels) == 0 {
		return nil, &trace.OptionError{Option: "hierarchy", Got: h.Name, Want: "at least one level"}
	}
	s := &Simulator{
		h: h, protocol: o.Protocol, seed: o.Seed, limit: o.MemoryBytes,
		caches: make([][]*level, len(h.Levels)), byThread: map[uint32]*core{},
	}
	for i := range h.Levels {
		if err := check(h.Levels, i); err != nil {
			return nil, err
		}
		if n := h.Levels[i].SharedBy; n > 1 && n < MaxCores {
			s.partly = append(s.partly, i)
		}
		if isBus(h.Levels, i) {
			s.buses = append(s.buses, i)
		}
	}
	if len(o.Cores) > 0 {
		return s, s.setCores(o.Cores)
	}
	var err error
	s.unused, err = s.newCore()
	return s, err
}

// MemoryBytes is what the caches of one core take. The error is that of New.
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
// over. The error is that of [New], for caches of further cores.
func (s *Simulator) Consume(b *trace.Batch) error {
	s.threaded = s.threaded || b.Thread != nil
	if s.threaded {
		return s.consumeThreads(b)
	}
	if s.now == nil {
		if err := s.switchTo(0); err != nil {
			return err
		}
	}
	first := s.now.path[0]
	kinds := b.Kind
	addrs, sizes := b.Addr[:len(kinds)], b.Bytes[:len(kinds)]
	for i, kind := range kinds {
		if !kind.IsReference() {
			continue
		}
		addr, bytes, write := addrs[i], bytesOf(addrs[i], sizes[i]), writes.Has(kind)
		if addr>>first.shift < (addr+bytes-1)>>first.shift {
			s.reference(addr, bytes, write)
			continue
		}
		s.references++
		first.access(addr, min(bytes, first.room(addr)), write)
	}
	return nil
}

// wordBytes is the size of a reference whose trace gives none, which DineroIV assumes too
// (dinfmt.c). It matters for the bytes that are written through.
const wordBytes = 4

// bytesOf is the size of a reference: without one, the rest of its word, which lies in one
// line.
func bytesOf(addr trace.Addr, size uint32) uint64 {
	if size == 0 {
		return wordBytes - addr%wordBytes
	}
	return uint64(size)
}

// consumeThreads is Consume where the trace says who makes references. Rows that do
// not say are thread 0's.
func (s *Simulator) consumeThreads(b *trace.Batch) error {
	for i, kind := range b.Kind {
		if !kind.IsReference() {
			continue
		}
		thread := uint32(0)
		if b.Thread != nil {
			thread = b.Thread[i]
		}
		addr, bytes, write := b.Addr[i], bytesOf(b.Addr[i], b.Bytes[i]), writes.Has(kind)
		if s.quick(thread, addr, bytes, write) {
			continue
		}
		if s.now == nil || thread != s.thread {
			if err := s.switchTo(thread); err != nil {
				return err
			}
		}
		s.reference(addr, bytes, write)
	}
	return nil
}

// quick is [core.quick] of a thread's core.
func (s *Simulator) quick(thread uint32, addr trace.Addr, bytes uint64, write bool) bool {
	if thread >= MaxCores {
		return false
	}
	c := s.direct[thread]
	if c == nil || !c.quick(addr, bytes, write) {
		return false
	}
	s.references++
	if len(s.partly) > 0 && (s.now == nil || thread != s.thread) {
		for _, i := range s.partly {
			c.path[i].counts = c.counts[i]
		}
		s.now = nil
	}
	return true
}

// reference makes an access for each line that a reference touches.
func (s *Simulator) reference(addr trace.Addr, bytes uint64, write bool) {
	s.references++
	first := s.now.path[0]
	line, last := addr>>first.shift, (addr+bytes-1)>>first.shift
	if line >= last {
		s.access(addr, min(bytes, first.room(addr)), write)
		return
	}
	s.split++
	for ; line <= last; line++ {
		part := min(bytes, first.room(addr))
		s.access(addr, part, write)
		addr, bytes = addr+part, bytes-part
	}
}

// access is one of the core's, within a line of its first level.
func (s *Simulator) access(addr trace.Addr, bytes uint64, write bool) {
	if s.threaded {
		s.now.tell(s.buses, addr, write)
	}
	s.now.path[0].access(addr, bytes, write)
}

// writes are the kinds that change memory.
const writes = trace.Kinds(1<<trace.Store | 1<<trace.Modify | 1<<trace.RangeWrite)

// Result gives what was counted so far.
func (s *Simulator) Result() Result {
	r := Result{Memory: s.memory, References: s.references, Split: s.split, Folded: s.folded}
	for _, c := range s.cores {
		r.Cores = append(r.Cores, Core{slices.Sorted(slices.Values(c.threads))})
	}
	for i, caches := range s.caches {
		l := Level{Cache: s.h.Levels[i], Caches: len(caches)}
		l.Run, l.Cores, l.Resident = s.counted(i)
		r.Levels = append(r.Levels, l)
	}
	return r
}

// counted is what level i counted so far, in sum and by core, and what it holds.
func (s *Simulator) counted(i int) (sum Counts, cores []Counts, resident uint64) {
	for _, c := range s.cores {
		sum.add(c.counts[i])
		cores = append(cores, *c.counts[i])
	}
	for _, cache := range s.caches[i] {
		resident += cache.tags.resident()
	}
	return sum, cores, resident
}

// Finish writes back all that is dirty and gives the result. It ends the
// simulation.
func (s *Simulator) Finish() Result {
	r := s.Result()
	s.memory = Traffic{}
	for _, c := range s.cores {
		for _, counts := range c.counts {
			*counts = Counts{}
		}
	}
	for _, caches := range s.caches {
		for _, cache := range caches {
			cache.flush()
		}
	}
	for i := range s.caches {
		r.Levels[i].Flush, _, r.Levels[i].Resident = s.counted(i)
	}
	r.Flush = s.memory
	return r
}

func (c *Counts) add(d *Counts) {
	for _, n := range []struct {
		sum  *uint64
		more uint64
	}{
		{&c.Reads, d.Reads}, {&c.Writes, d.Writes}, {&c.ReadMisses, d.ReadMisses}, {&c.WriteMisses, d.WriteMisses},
		{&c.WriteBacksReceived, d.WriteBacksReceived}, {&c.WriteBackMisses, d.WriteBackMisses},
		{&c.Updates, d.Updates}, {&c.CleanVictims, d.CleanVictims}, {&c.WriteBacksSent, d.WriteBacksSent},
		{&c.Fills, d.Fills}, {&c.Evictions, d.Evictions}, {&c.Taken, d.Taken}, {&c.Given, d.Given},
		{&c.CoherenceMisses, d.CoherenceMisses}, {&c.Invalidated, d.Invalidated},
		{&c.Bus.Reads, d.Bus.Reads}, {&c.Bus.ReadsExclusive, d.Bus.ReadsExclusive},
		{&c.Bus.Upgrades, d.Bus.Upgrades}, {&c.Bus.SilentUpgrades, d.Bus.SilentUpgrades},
		{&c.Bus.RemoteClean, d.Bus.RemoteClean}, {&c.Bus.RemoteDirty, d.Bus.RemoteDirty},
		{&c.Bus.WriteBacksForReads, d.Bus.WriteBacksForReads}, {&c.Bus.WriteBacksForWrites, d.Bus.WriteBacksForWrites},
	} {
		*n.sum += n.more
	}
}
