// Package simulate runs line accesses through a hierarchy of caches and counts every event exactly.
// Predictions from a profile are checked against it, so its code is deliberately simple. A
// simulation covers one hierarchy and needs a pass over the trace; package hierarchy predicts any
// hierarchy from a profile.
//
// # Accesses
//
// A reference makes one access to each line that it touches, in ascending order, as in
// DineroIV (MODELS §1). Loads, fetches and range reads are reads; stores, modifies and range
// writes are writes. A modify is one access, not a read and a write.
//
// # Demand
//
// Demand accesses of the first level are the accesses of the trace. A miss becomes a demand access
// of the next level, so a lower level's demand accesses are the misses of the level above. If lines
// are smaller in the lower level, a miss demands as many of them as fill one line of the level
// above. A fetch for a store counts as a read in the lower level. If the level above does not
// allocate for stores, the store counts as a write in the lower level. Other arrivals are counted
// separately: write-backs, stores written through, and victims.
//
// # One access
//
//  1. The line is looked up. A hit makes it the most recently used line.
//  2. A miss fetches it from below. Every level on its way up inserts it, except exclusive levels,
//     and levels that do not allocate for stores.
//  3. Then, if the set is full, another line is evicted: it is written back if it is dirty, and
//     dropped otherwise. (DineroIV's counts agree with this order; see the tests.)
//
// For other arrivals from above, the line is also looked up, and a hit makes it the most recently
// used line, as in DineroIV.
//
//   - A write-back that misses is inserted without a fetch if it is a whole line and the level
//     allocates for writes; otherwise it passes to the level below. A write-through level inserts
//     the line as clean and also writes it to the level below.
//   - A store that is written through and misses never allocates. It passes to the level below.
//
// # Inclusion
//
//   - An inclusive level contains all lines of the levels above it. When it evicts a line, the line
//     is invalidated in those levels, and their changes are written back with it. An inclusive
//     level's lines are at least as large as the lines of the levels above.
//   - A non-inclusive level, the default, inserts the lines that it fetches, and evicts them
//     without invalidating anything above. DineroIV, Cachegrind and drcachesim have such levels.
//   - An exclusive level is filled with the lines, clean and dirty, that the level above evicts. A
//     line on which a demand access hits moves up, together with its changes. Data that is written
//     through, or written back at the end, bypasses the level. An exclusive level must have the
//     line size of the level above.
//
// The inclusion policy of the first level is ignored.
//
// # Sets and replacement
//
// The set index is the line number modulo the number of sets, which need not be a power of two. A
// hashed index first splits the line number into pieces that are as long as a set index, and
// combines these pieces by exclusive or. A set that is not full uses the frame that was emptied
// last, or else the next unused frame. In a full set, the victim is the least recently used line
// (LRU), the line that a tree of bits selects (tree-PLRU, if the number of ways is a power of two),
// or a random line. The random choices depend only on the seed. With tree-PLRU, each use of a line
// turns the bits of the tree away from it.
//
// # Cores
//
// Each thread of the trace runs on its own core, unless [Options.Cores] assigns several threads to
// one core. Beyond [MaxCores] cores, further threads are assigned to the existing cores in turn. A
// level without SharedBy is private. A level that n cores share has one cache for every n
// consecutive cores. Cores are numbered as follows: first the groups of Options.Cores, by their
// lowest thread number, and then other threads in the order in which they appear. References are
// simulated in the order of the trace.
//
// # Coherence
//
// Private caches are kept coherent by snooping and write-invalidate (Culler and Singh, Parallel
// Computer Architecture, 1999, §5.3). If several caches share the next level or memory, a bus
// connects them. On the bus, a cache also represents the caches above it. A read that misses in all
// of these caches causes a bus transaction (BusRd). So does every store: BusRdX if it misses or, if
// the line is present, an upgrade (BusUpgr). Before the line is demanded from the next level,
//
//   - a cache with a dirty copy writes it back and, for a read, keeps it as a clean copy;
//   - for a store, all other caches invalidate it. Their next demand access to it, if it misses, is
//     a coherence miss. The empty frame is filled before another line is evicted.
//
// Stores are silent if the line is modified (M) already, and under MESI if it is exclusive (E),
// because no other cache had it when it was read. Under MSI, such a line is shared, and the store
// causes an upgrade. MSI and MESI therefore differ in traffic, but never in misses. Evictions are
// silent, so a line may count as shared although no other cache still has it.
//
// A miss fetches the line from the next level even if another cache has it. The lines that another
// cache could have supplied are counted (remote, clean or dirty). If the caches on one bus have
// lines of different sizes, coherence works on the largest size.
//
// For one private level, the misses of each core equal the misses on its coherent stack (MODELS §6.4).
//
// # The end
//
// [Simulator.Finish] writes back dirty lines in the same order as DineroIV: level by level,
// starting with the first level, and set by set, starting with the most recently used line. These
// writes are counted separately, in Flush.
package simulate

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Result contains the counts of a simulation.
type Result struct {
	Levels        []Level // counts of each level, starting with the first
	Cores         []Core  // indexed by core number
	Memory, Flush Traffic // traffic during the run, and of the write-backs at its end

	Folded     int    // number of threads that share a core because there are more than [MaxCores]
	References uint64 // number of references in the trace
	Split      uint64 // number of references that touch several lines of the first level
}

// Level contains the counts of the caches of one level, during the run and the flush.
type Level struct {
	Cache      hierarchy.Cache
	Run, Flush Counts
	Resident   uint64   // number of lines present at the end
	Caches     int      // number of caches
	Cores      []Counts // Run, divided by the core that caused each event; an invalidation counts for the core that loses the line
}

// Core is a simulated processor core.
type Core struct {
	Threads []uint32 // threads of the trace that run on the core, ascending
}

// Counts contains the numbers of events at one level.
type Counts struct {
	Reads, Writes, ReadMisses, WriteMisses uint64 // numbers of demand accesses and demand misses

	// Arrivals from the level above, other than demand accesses.
	WriteBacksReceived uint64 // number of dirty lines written back to this level
	WriteBackMisses    uint64 // number of write-backs received for lines that were absent
	Updates            uint64 // number of stores written through to this level
	CleanVictims       uint64 // number of clean lines received from the level above, in an exclusive level

	WriteBacksSent uint64 // number of write-backs sent to the level below

	// Fills is the sum of Evictions, Taken, Given, Invalidated and the resident lines.
	Fills     uint64 // number of lines inserted, on demand or from above
	Evictions uint64 // number of lines evicted to make room for fills
	Taken     uint64 // number of lines invalidated by an inclusive level below
	Given     uint64 // number of lines that an exclusive level passed to a level above

	// The following counts are 0 unless there are several cores.
	CoherenceMisses uint64 // number of misses of lines that another core's store invalidated
	Invalidated     uint64 // number of lines invalidated by another core's store
	Bus             Bus
}

// Accesses returns the number of demand accesses.
func (c *Counts) Accesses() uint64 { return c.Reads + c.Writes }

// Misses returns the number of demand misses.
func (c *Counts) Misses() uint64 { return c.ReadMisses + c.WriteMisses }

// Hits returns the number of demand hits.
func (c *Counts) Hits() uint64 { return c.Accesses() - c.Misses() }

// Traffic is the memory traffic.
type Traffic struct {
	Reads, Writes           uint64 // number of fetched lines; number of written lines and stores
	BytesRead, BytesWritten uint64
}

// Options configures a simulation.
type Options struct {
	Seed     uint64 // seed for random replacement
	Protocol Protocol
	// Cores lists groups of threads, each of which runs on one core. Every other thread has its own
	// core.
	Cores       [][]uint32
	MemoryBytes uint64 // limit of the simulator's memory; 0 if there is none
}

// Simulator simulates one hierarchy.
type Simulator struct {
	h        hierarchy.Hierarchy
	protocol Protocol
	seed     uint64
	caches   [][]*level // caches of each level
	connect  *bus       // bus between the caches of the last level
	buses    []int      // levels whose caches are on a bus
	memory   Traffic

	cores        []*core
	byThread     map[uint32]*core
	direct       [MaxCores]*core // byThread for small thread numbers
	unused       *core           // the first core, until a thread runs on it
	appeared     []*core
	folded       int    // number of threads that share a core because there are too many threads
	now          *core  // core of the current reference; nil if unknown
	thread       uint32 // the thread that runs on core now
	threaded     bool   // whether the trace has threads
	partly       []int  // levels whose caches are shared by some of the cores; events that other cores cause there count for the core of the last reference
	bytes, limit uint64

	references, split uint64
}

// mostLines is the maximum number of lines of a cache. Simulating such a cache takes a gigabyte of
// memory.
const mostLines = 1 << 27

// New returns a simulator for h with empty caches. The error is a [*trace.OptionError], or a
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

// MemoryBytes returns how much memory the caches of one core need. It returns the same errors as
// New.
func MemoryBytes(h hierarchy.Hierarchy) (bytes uint64, err error) {
	for i, c := range h.Levels {
		if err := check(h.Levels, i); err != nil {
			return 0, err
		}
		bytes += tagBytes(c)
	}
	return bytes, nil
}

// check returns an error if level i cannot be simulated.
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

// Consume simulates the references of a batch. If a new core's caches cannot be created, it returns
// the same errors as [New].
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

// wordBytes is the size of a reference whose size is missing, as in DineroIV (dinfmt.c). It affects
// how many bytes are written through.
const wordBytes = 4

// bytesOf returns the size of a reference. If the size is missing, the reference is assumed to
// extend to the end of its word, which lies within one line.
func bytesOf(addr trace.Addr, size uint32) uint64 {
	if size == 0 {
		return wordBytes - addr%wordBytes
	}
	return uint64(size)
}

// consumeThreads implements Consume for a trace with threads. A batch without threads belongs to
// thread 0.
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

// quick calls [core.quick] for the core of a thread.
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

// counted returns the counts of level i, in total and by core, and the number of its resident
// lines.
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

// Finish writes back all dirty lines, ends the simulation, and returns its result.
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
