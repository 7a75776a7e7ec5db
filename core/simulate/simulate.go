// Package simulate runs line accesses through a hierarchy of caches and counts exactly what happens: the
// oracle for predictions from a profile. It is plain on purpose. A simulation answers for one hierarchy
// and costs a pass over the trace; package hierarchy answers for any hierarchy from a profile.
//
// # Accesses
//
// A reference is one access for each line that it touches, in ascending order, as in
// DineroIV (MODELS §1). Loads, fetches and range reads are reads; stores, modifies and range
// writes are writes. A modify is one access.
//
// # Demand
//
// Demand accesses of the first level are the accesses of the trace. Misses are demanded of the next
// level, so that a level's demand accesses are the misses of the level above (times the number of
// lines that fill one there, if lines are smaller below). A line that is fetched for a store is a
// read below; a store is a write below if the level above does not allocate for it. Everything else
// that arrives is counted separately: write-backs, stores written through, and victims.
//
// # One access
//
//  1. The line is looked up. A hit makes it the most recently used one.
//  2. A miss fetches it from below. Every level on its way keeps it, except exclusive ones,
//     and levels that do not allocate for stores.
//  3. Then another line is evicted, if the set is full: written back if it is dirty, or
//     dropped. (DineroIV counts the same in this order; see the tests.)
//
// Other arrivals from above also look their line up, and a hit makes it the most recently
// used one, as in DineroIV.
//
//   - A write-back that misses is kept without a fetch, if it is a whole line and the level allocates for
//     writes; otherwise it goes down. A write-through level keeps it clean and sends it on.
//   - A store written through that misses never allocates: it goes down.
//
// # Inclusion
//
//   - An inclusive level has all lines of the levels above it. When it evicts a line, the line
//     is invalidated above, and changes there are written back with it. Its lines are at
//     least as large as those above.
//   - A non-inclusive level, the default, keeps the lines that it fetched and invalidates
//     nothing above. DineroIV, Cachegrind and drcachesim have such levels.
//   - An exclusive level is filled with the lines, clean and dirty, that the level above evicts,
//     and removes a line that is demanded of it; changes move up with the line. Data written
//     through, or written back at the end, passes it by. Its lines are as large as the lines above.
//
// The first level's inclusion has no meaning.
//
// # Sets and replacement
//
// The set is the line's number modulo the number of sets, which need not be a power of two. A hashed index
// first cuts the number into pieces as long as a set's number, and combines them by exclusive or. A set
// that is not full uses the frame that was emptied last, or else the next unused one. Otherwise the victim
// is the least recently used line; the line that the tree of bits selects, which every use turns away from
// the used line (tree-PLRU, a power of two of ways); or a random one, the same for the same seed.
//
// # Cores
//
// Each thread of the trace runs on its own core, unless [Options.Cores] puts several on one;
// beyond [MaxCores], new threads are put on these cores in turn. A level without SharedBy is
// private. A level that n cores share has one cache for every n consecutive cores. Cores are
// in the order of Options.Cores, by their first thread, and then in the order in which
// threads appear. References are simulated in the order of the trace.
//
// # Coherence
//
// Private caches are kept coherent by snooping and write-invalidate (Culler and Singh, Parallel
// Computer Architecture, 1999, §5.3). If several caches share the next level or memory, a bus
// connects them; a cache also represents the caches above it. A read miss in all of these is a bus
// transaction (BusRd), and so is every store: a miss (BusRdX) or, if the line is present, an
// upgrade (BusUpgr). Before the line is demanded of the next level,
//
//   - another cache with a dirty copy writes it back, and keeps it clean for a read;
//   - all others invalidate it for a store. Their next demand for it, if it misses, is a
//     coherence miss. The empty frame is filled before another line is evicted.
//
// Stores are silent if the line is modified (M) already, and under MESI if it is exclusive
// (E), because no other cache had it when it was read. Under MSI the line would be shared, and
// the store an upgrade. So MSI and MESI differ in traffic, never in misses. Evictions are
// silent, so that a line may still count as shared.
//
// Lines that another cache has are still demanded of the next level; the lines that a cache could
// have sent are counted (remote, clean or dirty). If the caches on one bus have lines of different
// sizes, the largest are kept coherent.
//
// For one private level, the misses of each core equal the misses on its coherent stack (MODELS §6.4).
//
// # The end
//
// [Simulator.Finish] writes back dirty lines, as DineroIV does: level by level, first level
// first, set by set, most recently used line first. These writes are counted separately, in Flush.
package simulate

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Result contains the counts of a simulation.
type Result struct {
	Levels        []Level // first level first
	Cores         []Core  // by number
	Memory, Flush Traffic // during the run, and by write-backs at its end

	Folded     int    // threads that share a core, because there are more than [MaxCores]
	References uint64 // of the trace
	Split      uint64 // references that touch several lines of the first level
}

// Level has the counts of the caches of one level, during the run and the flush.
type Level struct {
	Cache      hierarchy.Cache
	Run, Flush Counts
	Resident   uint64   // lines at the end
	Caches     int      // number of caches
	Cores      []Counts // parts of Run by the core that causes them; a core's invalidated lines are its own
}

// Core is a processor of the simulation.
type Core struct {
	Threads []uint32 // of the trace, ascending
}

// Counts are the events at one level.
type Counts struct {
	Reads, Writes, ReadMisses, WriteMisses uint64 // demand accesses

	// Other arrivals from the level above than demand accesses.
	WriteBacksReceived uint64 // dirty lines
	WriteBackMisses    uint64 // WriteBacksReceived whose line was absent
	Updates            uint64 // stores written through
	CleanVictims       uint64 // clean lines evicted above, for an exclusive level

	WriteBacksSent uint64 // to the level below

	// Fills are the sum of Evictions, Taken, Given, Invalidated and the resident lines.
	Fills     uint64 // lines inserted, on demand or from above
	Evictions uint64 // by fills
	Taken     uint64 // back-invalidations by an inclusive level below
	Given     uint64 // lines that an exclusive level gave to one above

	// With several cores.
	CoherenceMisses uint64 // Misses of lines that another core's store invalidated
	Invalidated     uint64 // by another core's store
	Bus             Bus
}

// Accesses returns the number of demand accesses.
func (c *Counts) Accesses() uint64 { return c.Reads + c.Writes }

// Misses returns the number of demand misses.
func (c *Counts) Misses() uint64 { return c.ReadMisses + c.WriteMisses }

// Hits returns the number of demand hits.
func (c *Counts) Hits() uint64 { return c.Accesses() - c.Misses() }

// Traffic is the traffic of memory.
type Traffic struct {
	Reads, Writes           uint64 // lines fetched; lines and stores written
	BytesRead, BytesWritten uint64
}

// Options are the options of a simulation.
type Options struct {
	Seed     uint64 // of random replacement
	Protocol Protocol
	// Cores are groups of threads that run on one core. Other threads have their own cores.
	Cores       [][]uint32
	MemoryBytes uint64 // limit of the simulator's memory; 0: none
}

// Simulator simulates one hierarchy.
type Simulator struct {
	h        hierarchy.Hierarchy
	protocol Protocol
	seed     uint64
	caches   [][]*level // by level
	connect  *bus       // between the caches of the last level
	buses    []int      // levels whose caches are on a bus
	memory   Traffic

	cores        []*core
	byThread     map[uint32]*core
	direct       [MaxCores]*core // byThread for small numbers
	unused       *core           // the first core, until a thread runs on it
	appeared     []*core
	folded       int    // threads that share a core, because there are too many
	now          *core  // of the current reference; nil: unknown
	thread       uint32 // that runs on now
	threaded     bool   // the trace has threads
	partly       []int  // levels whose caches only some cores share: events caused by other cores count for the core of the last reference
	bytes, limit uint64

	references, split uint64
}

// mostLines bounds a cache: its simulation needs a gigabyte of memory.
const mostLines = 1 << 27

// New returns a simulator of h with empty caches. The error is a [*trace.OptionError], or a
// [*MemoryError].
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

// MemoryBytes returns the memory for the caches of one core. The error is as in New.
func MemoryBytes(h hierarchy.Hierarchy) (bytes uint64, err error) {
	for i, c := range h.Levels {
		if err := check(h.Levels, i); err != nil {
			return 0, err
		}
		bytes += tagBytes(c)
	}
	return bytes, nil
}

// check tests whether level i can be simulated.
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
		want = "lines as large as in " + levels[i-1].Name + " above it, to be exclusive"
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

// Consume simulates the references of a batch. The error is as in [New], for the caches of further
// cores.
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

// wordBytes is the size of a reference without one, as in DineroIV (dinfmt.c). It matters for
// the bytes that are written through.
const wordBytes = 4

// bytesOf returns the size of a reference: without one, the rest of its word, within one line.
func bytesOf(addr trace.Addr, size uint32) uint64 {
	if size == 0 {
		return wordBytes - addr%wordBytes
	}
	return uint64(size)
}

// consumeThreads is Consume for a trace with threads. Batches without threads are of thread 0.
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

// quick is [core.quick] for a thread.
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

// reference simulates an access to each line that a reference touches.
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

// access simulates an access within a line of the first level.
func (s *Simulator) access(addr trace.Addr, bytes uint64, write bool) {
	if s.threaded {
		s.now.tell(s.buses, addr, write)
	}
	s.now.path[0].access(addr, bytes, write)
}

// writes are the kinds that change memory.
const writes = trace.Kinds(1<<trace.Store | 1<<trace.Modify | 1<<trace.RangeWrite)

// Result returns the counts so far.
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

// counted returns the counts of level i, in sum and by core, and its resident lines.
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

// Finish writes back all dirty lines, and returns the result. It ends the simulation.
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
