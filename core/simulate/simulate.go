// Package simulate simulates every line access of a trace in one hierarchy of caches, and counts
// all events exactly. The code is deliberately simple, because tests compare predictions with the
// counts of the simulator. Each hierarchy needs a separate pass over the trace, whereas package
// hierarchy predicts any hierarchy from a profile.
//
// # Accesses
//
// A reference makes one access to each line that it touches, in ascending order, as in DineroIV
// (MODELS §1). Loads, instruction fetches and range reads count as reads. Stores, modifies and
// range writes count as writes. A modify counts as a single write, not as a read and a write.
//
// # Demand accesses
//
// The demand accesses of the first level are the accesses of the trace. A miss becomes a demand
// access of the next level, so a lower level's demand accesses are the misses of the level above.
// If the lines of the lower level are smaller, a miss accesses every smaller line that is part of
// the missing line. A fetch for a store counts as a read in the lower level. If the level above
// does not allocate for stores, the store counts as a write in the lower level. Write-backs, stores
// that are written through, and victims are not demand accesses, and are counted separately.
//
// # Order of events in an access
//
//  1. The line is looked up. A hit makes the line the most recently used line of its set.
//  2. A miss fetches the line from the level below. Every level through which the line passes
//     inserts the line, except exclusive levels, and levels that do not allocate for stores.
//  3. If the set is full, a victim is then evicted. A dirty victim is written back, and a clean
//     victim is discarded. (DineroIV's counts agree with this order; see the tests.)
//
// The line is also looked up for write-backs, for stores that are written through, and for victims
// from the level above. A hit makes the line the most recently used line of its set, as in
// DineroIV.
//
//   - A write-back that misses is inserted without a fetch if it is a whole line and the level
//     allocates for writes. Otherwise, the write-back continues to the level below. A write-through
//     level inserts the line as clean and also writes it to the level below.
//   - A write-through store that misses never allocates a line. The store continues to the
//     level below.
//
// # Inclusion
//
//   - An inclusive level contains all lines of the levels above it. When an inclusive level evicts
//     a line, the line is invalidated in the levels above, and modified data in these levels is
//     also written back. The lines of an inclusive level are at least as large as the lines of the
//     levels above.
//   - A non-inclusive level, the default, inserts the lines that it fetches, and evicts lines
//     without invalidating them in the levels above. Levels are non-inclusive in DineroIV,
//     Cachegrind and drcachesim.
//   - An exclusive level is filled with the lines, clean and dirty, that the level above evicts. If
//     a demand access hits in an exclusive level, the line and its modified data move to the level
//     above. A small, fully associative, exclusive level is therefore a victim cache (Jouppi,
//     Improving Direct-Mapped Cache Performance, ISCA 1990). Data that is written through, or written
//     back at the end of the trace, bypasses exclusive levels that do not contain the line. An
//     exclusive level must have the same line size as the level above.
//
// The inclusion policy of the first level is ignored.
//
// A dirty victim can also be present in the level below:
//
//   - An inclusive or non-inclusive level usually contains a copy, which was inserted together with
//     the line of the level above. The write-back hits and updates this copy. The copy becomes dirty,
//     and the most recently used line of its set. Nothing is fetched, inserted or evicted.
//   - If the non-inclusive level has already evicted its copy, the write-back inserts the line. If
//     the levels below are exclusive, they may contain the evicted copy, which is outdated. This copy
//     is removed, and counts as a line that moved up (Given).
//   - An exclusive level can contain the line if it serves several caches, and another of these
//     caches has evicted a copy. The victim hits, updates this copy, and makes it dirty and the most
//     recently used line of its set. A clean victim that hits only makes the copy the most recently
//     used line.
//
// # Sets and replacement
//
// The set index is the line number modulo the number of sets. The number of sets need not be a
// power of two. A hashed index is the XOR of consecutive bit fields of the line number, each as
// wide as a set index. In a set that is not full, a new line is stored in the frame that was
// emptied last, or else in the next unused frame. In a full set, the victim is the least recently
// used line (LRU), or the line that one of these policies selects:
//
//   - FIFO selects the line that was inserted first.
//   - Random selects a random line. The random choices depend only on the seed.
//   - Tree-PLRU uses a binary tree of bits to select a line. The number of ways must be a power of
//     two. Each use of a line makes the bits on the path to the line point away from the line.
//   - Bit-PLRU selects the first way whose bit is not set. Each use of a line sets the bit of its
//     way. If all bits are then set, the bits of the other ways are cleared. (drcachesim selects a
//     random way whose bit is not set.)
//   - NRU works like Bit-PLRU, but the bits are cleared only when a victim is needed and all bits
//     are set.
//   - LFU selects the line with the fewest uses since its insertion. Ties are resolved in favour of
//     the first way, as in drcachesim.
//   - SRRIP, BRRIP and DRRIP are implemented as described by Jaleel et al. (High Performance Cache
//     Replacement Using Re-Reference Interval Prediction, ISCA 2010), with 2-bit re-reference
//     values and hit priority. A hit sets the value of the line to 0. The victim is the first line
//     with the value 3. If no line has the value 3, all values are incremented until a line has the
//     value 3. SRRIP inserts lines with the value 2. BRRIP inserts the first of every 32 lines with
//     the value 2, and all other lines with the value 3. DRRIP chooses between SRRIP and BRRIP by
//     set dueling. The sets are divided into at most 32 groups of consecutive sets. The first set
//     of a group always uses SRRIP, and the last set always uses BRRIP. All other sets use the
//     policy that has fewer misses in these dedicated sets. A 10-bit counter compares the misses. A
//     DRRIP cache with only one set uses SRRIP.
//
// Hits of any kind, including hits of prefetches and write-backs, count as uses of a line.
//
// # Instructions
//
// If the hierarchy has instruction caches, instruction fetches go first through the n levels of
// instruction caches, and then through the data levels below level n. Otherwise, fetches go through
// the same caches as data. Stores invalidate lines of instruction caches only through a bus. If an
// inclusive level below evicts a line, the line is also invalidated in the instruction caches.
//
// # Sub-blocks
//
// In a level with sub-blocks (sectors), lines are replaced as a whole, but their sub-blocks are
// fetched and written back separately, as in DineroIV. A miss fetches only the sub-blocks that the
// access touches. A store that writes whole sub-blocks causes no fetch. Adjacent dirty sub-blocks
// are written back together. Sub-blocks are supported only with one core and in non-inclusive
// hierarchies.
//
// # Prefetchers
//
// After an access, the prefetcher of a level may insert lines that the level does not contain:
//
//   - The next-line prefetcher fetches the next lines after a miss. DineroIV calls this prefetcher
//     "miss prefetch", and drcachesim calls it "nextline".
//   - The tagged prefetcher fetches the next lines after a miss, and after the first demand access
//     to a prefetched line. The always prefetcher fetches the next lines after every access.
//   - The adjacent prefetcher fetches, after a miss, the other line of an aligned pair of lines.
//   - The stride prefetcher records the last address and stride of each instruction, in a table
//     with 256 entries and FIFO replacement (Baer and Chen, Supercomputing 1991). If the stride of
//     an instruction is the same twice in a row, the next lines at this stride are prefetched.
//   - The stream prefetcher records the last accessed line and the direction of accesses in each
//     page of 4 KiB, in a table with 16 entries and LRU replacement. After two moves in the same
//     direction, the next lines in that direction are prefetched, but only within the page.
//   - The load-forward and sub-block prefetchers fetch the next sub-blocks of the line after every
//     access. The load-forward prefetcher stops at the end of the line, and the sub-block
//     prefetcher wraps around.
//
// The degree of a prefetcher is the number of lines that it fetches at a time. The distance is the
// number of lines or strides from the access to the first prefetched line. In a level with
// sub-blocks, prefetchers fetch sub-blocks instead of lines. By default, only demand accesses cause
// prefetches. With the option "chained", prefetches by levels above also cause prefetches. With the
// option "reads", stores cause no prefetches. Prefetches that miss continue to the lower levels,
// where they do not count as demand accesses. A prefetch takes no time, so it is never late. If a
// level is inclusive, or if there is an inclusive level below it, the level issues its prefetches
// only after the levels above have inserted the lines of the current reference.
//
// # Optimal replacement
//
// Options.Bound also counts how often the demand accesses that reach each level would miss with
// optimal replacement (Belady, A Study of Replacement Algorithms for a Virtual-Storage Computer,
// IBM Systems Journal 5(2), 1966). No replacement policy that inserts every line has fewer misses
// than optimal replacement. The misses of optimal replacement are not counted in exclusive levels,
// in levels with sub-blocks, and in levels that do not allocate for stores. Options.Bound requires
// at most 80 bytes of memory for each distinct line.
//
// # Cores
//
// Each thread of the trace runs on its own core, unless [Options.Cores] assigns several threads to
// one core. Once there are [MaxCores] cores, further threads are assigned to the existing cores
// round-robin. A level whose SharedBy field is not set has a private cache for each core. If
// SharedBy is n, the level has one cache for every n consecutive cores. Cores are numbered as
// follows: first the groups of Options.Cores, by their lowest thread number, and then other threads
// in the order in which they appear. References are simulated in the order of the trace.
//
// # Coherence
//
// Private caches are kept coherent by snooping and write-invalidate (Culler and Singh, Parallel
// Computer Architecture, 1999, §5.3). If several caches share the next level or memory, a bus
// connects them. On the bus, a cache also represents the caches above it. A read that misses in all
// of these caches causes a BusRd transaction. A store causes a BusRdX transaction if it misses, and
// an upgrade (BusUpgr) if the line is present. The other caches react before the next level
// receives the demand access for the line:
//
//   - A cache with a dirty copy writes the copy back. After a read by another core, the cache keeps
//     the line as a clean copy.
//   - After a store, all other caches invalidate the line. After a cache has invalidated a line,
//     the cache's next demand access to this line is a coherence miss if the access misses. Before
//     a cache evicts a line from a set, the cache uses the set's frames that invalidations have
//     emptied.
//
// A store to a modified line (M) causes no transaction. Under MESI, a store to an exclusive line
// (E), which no other cache contained when the line was read, causes no transaction either. Under
// MSI, a line that was only read is shared (S), and a store to it causes an upgrade. MSI and MESI
// therefore differ in traffic, but never in misses. Evictions are silent, so a line may count as
// shared although no other cache contains it any more.
//
// A miss fetches the line from the next level even if another cache contains the line. If another
// cache could have supplied the line, the miss is counted as remote, and as either clean or dirty.
// If the caches on one bus have lines of different sizes, coherence is maintained for lines of the
// largest size.
//
// For one private level, the misses of each core equal the misses on its coherent stack (MODELS §6.4).
//
// # End of the trace
//
// [Simulator.Finish] writes back dirty lines in the same order as DineroIV: level by level,
// starting with the first level, then set by set, beginning with the most recently used line. These
// writes at the end of the trace are counted separately, in the field Flush.
package simulate

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Result contains the counts of a simulation.
type Result struct {
	Levels        []Level // counts of each level, starting with the first
	Instructions  []Level // counts of the instruction caches, starting with the first level
	Cores         []Core  // indexed by core number
	Memory, Flush Traffic // traffic during the run, and traffic of the write-backs at the end of the run

	Folded     int    // number of threads that share a core because there are more than [MaxCores] threads
	References uint64 // number of references in the trace
	Split      uint64 // number of references that touch several lines of the first level

	// WarmingUp means that the trace ended before the warm-up. The counts are then the counts of the
	// whole trace, as in drcachesim.
	WarmingUp bool
}

// Level contains the counts of the caches of one level, during the run and the flush.
type Level struct {
	Cache      hierarchy.Cache
	Run, Flush Counts
	// BestMisses is the number of demand misses under optimal replacement (Belady's OPT) if Bounded
	// is set.
	BestMisses uint64
	Bounded    bool
	Resident   uint64 // number of lines present at the end
	Caches     int
	// the counts of Run for each core: an event counts for the core that caused it, but an
	// invalidation counts for the core whose line is invalidated
	Cores []Counts
}

// Core is a simulated processor core.
type Core struct {
	Threads []uint32 // threads of the trace that run on the core, ascending
}

// Counts contains the numbers of events at one level.
type Counts struct {
	Reads, Writes, ReadMisses, WriteMisses uint64 // numbers of demand accesses and demand misses

	// These fields count the requests from the level above, other than demand accesses.
	WriteBacksReceived uint64 // number of dirty lines written back to this level
	WriteBackMisses    uint64 // number of write-backs received for lines that were absent
	Updates            uint64 // number of stores written through to this level
	CleanVictims       uint64 // number of clean lines received from the level above, in an exclusive level

	WriteBacksSent uint64 // number of write-backs sent to the level below

	// If the hierarchy has instruction caches, Fetches and FetchMisses count the Reads and ReadMisses
	// that are instruction fetches. Otherwise, both counts are 0.
	Fetches, FetchMisses uint64
	// LineMisses counts demand misses in a level with sub-blocks: the misses for which no sub-block
	// of the line was present.
	LineMisses uint64

	// number of prefetches by levels above, and number of these prefetches that missed in this
	// level
	PrefetchReads, PrefetchReadMisses uint64
	Prefetch                          Prefetches

	Cold, Capacity, Conflict uint64 // numbers of demand misses by cause, if Options.Causes is set

	// Fills is the sum of Evictions, Taken, Given, Invalidated, Flushed and the resident lines.
	Fills     uint64 // number of inserted lines: fetched, or received from the level above
	Evictions uint64 // number of lines evicted to make room for fills
	Taken     uint64 // number of lines invalidated by an inclusive level below
	Given     uint64 // number of lines that an exclusive level passed to a level above
	Flushed   uint64 // number of lines invalidated by the flushes that Options.FlushEvery causes

	// The bus counts and coherence counts are 0 unless there are several cores.
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
	Reads, Writes           uint64 // number of lines fetched from memory, and number of lines and stores written to memory
	BytesRead, BytesWritten uint64
}

// Options configures a simulation.
type Options struct {
	Seed     uint64 // seed of the random numbers for random replacement
	Protocol Protocol
	// Cores lists groups of threads that run on the same core. A thread that is in no group has its
	// own core.
	Cores       [][]uint32
	MemoryBytes uint64 // maximum memory of the simulator in bytes; 0 if there is no limit
	// UsedBytes counts the memory of all simulators that share the limit MemoryBytes. If UsedBytes is
	// nil, the limit is for this simulator alone.
	UsedBytes *uint64

	// MostCores is the number of cores, or 0 if the number of threads determines it. If MostCores is
	// not 0, a thread without a group in Cores runs on the core with the fewest threads, as in
	// drcachesim. Unlike drcachesim, the simulator does not know which threads have ended.
	MostCores int

	Causes bool // whether to determine the causes of demand misses
	Bound  bool // whether to count the misses under optimal replacement

	// Warmup is the number of references before counting begins. WarmupShare, if not 0, is the share
	// of the last level's lines that must have been filled before counting begins. Limit, if not 0, is
	// the maximum number of counted references. All references after the limit are ignored. If the
	// warm-up never ends, Result.WarmingUp is set.
	Warmup      uint64
	WarmupShare float64
	Limit       uint64
	FlushEvery  uint64 // number of references after which all levels write back and invalidate their lines; 0 means never

	// Region, if not nil, reports whether references are counted in marked regions with a tag, which is
	// an index in trace.Program.Tags. A reference of any thread is counted if at least one such region
	// of any thread is open. All other references only fill the caches. Region cannot be combined with
	// Warmup, WarmupShare and Limit. The batches must contain the events RegionBegin and RegionEnd.
	Region func(tag trace.Addr) bool

	// Translation is set if the caches are TLBs, in which a line is a page. Stores do not make
	// pages dirty.
	Translation bool

	// PerReference selects Cachegrind's counting: a reference to several lines of a level is one
	// access, which misses if any of these lines is absent. A miss accesses the same bytes in the next
	// level. Stores do not make lines dirty, so there are no write-backs.
	PerReference bool
}

// Simulator simulates one hierarchy.
type Simulator struct {
	h        hierarchy.Hierarchy
	options  Options
	careful  bool       // whether consumeCarefully simulates the references, because the faster code lacks a required feature
	coherent bool       // whether the caches of the levels in buses are kept coherent
	caches   [][]*level // caches of each level
	icaches  [][]*level // instruction caches of each level
	connect  *bus       // bus between the caches of the last level
	buses    []int      // levels whose caches are on a bus
	memory   Traffic

	cores    []*core
	byThread map[uint32]*core
	direct   [MaxCores]*core // replaces byThread for small thread numbers
	unused   *core           // the first core until a thread runs on it, and then nil
	appeared []*core
	folded   int    // number of threads that share a core because there are more threads than MaxCores
	now      *core  // core of the current reference; nil if unknown
	thread   uint32 // number of the thread that runs on the core now
	threaded bool   // whether the trace has threads
	// levels whose caches some, but not all, cores share; an event that another core causes in such
	// a cache is counted for the last core that used the cache
	partly []int
	limit  uint64
	bytes  *uint64 // the memory in use by all simulators that share the limit

	references, split uint64

	// These fields describe the current reference, for consumeCarefully.
	fetching bool       // whether the reference is an instruction fetch
	addr, pc trace.Addr // address of the accessed part, and number that identifies the instruction
	silent   bool       // whether the reference does not cause prefetches
	waiting  []waiting
	warm     bool   // whether the warm-up has ended and counting has begun
	seen     uint64 // number of references so far, including warm-up

	regions *regions // nil unless Options.Region is set
}

// maxLines is the maximum number of lines of a cache. A cache of this size needs 1 GiB of memory.
const maxLines = 1 << 27

// New returns a simulator for the hierarchy h, with empty caches. The error is a
// [*trace.OptionError], or a [*MemoryError].
func New(h hierarchy.Hierarchy, o Options) (*Simulator, error) {
	if len(h.Levels) == 0 {
		return nil, &trace.OptionError{Option: "hierarchy", Got: h.Name, Want: "at least one level"}
	}
	s := &Simulator{
		h: h, options: o, limit: o.MemoryBytes, bytes: cmp.Or(o.UsedBytes, new(uint64)), coherent: o.Protocol != Incoherent,
		caches: make([][]*level, len(h.Levels)), icaches: make([][]*level, len(h.Instructions)), byThread: map[uint32]*core{},
	}
	if err := checkAll(&h, o); err != nil {
		return nil, err
	}
	s.careful = len(h.Instructions) > 0 || o.Causes || o.Bound || o.Warmup > 0 || o.WarmupShare > 0 || o.Limit > 0 ||
		o.FlushEvery > 0 || o.Region != nil || o.PerReference || o.Translation || o.MostCores > 0
	s.warm = o.Warmup == 0 && o.WarmupShare == 0
	if o.Region != nil {
		s.regions = &regions{isCounted: o.Region, open: map[uint32][]bool{}}
	}
	for i, c := range h.Levels {
		s.careful = s.careful || c.SubBlockBytes > 0 || c.Prefetch.Kind != hierarchy.NoPrefetch
		if n := h.Levels[i].SharedBy; n > 1 && n < MaxCores {
			s.partly = append(s.partly, i)
		}
		if s.coherent && needsBus(h.Levels, i) {
			s.buses = append(s.buses, i)
		}
	}
	if len(o.Cores) > 0 {
		return s, s.setCores(o.Cores)
	}
	var err error
	s.unused, err = s.newCore()
	for n := 1; n < o.MostCores && err == nil; n++ {
		_, err = s.newCore()
	}
	return s, err
}

// MemoryBytes returns the number of bytes that the caches of one core need. The errors are the same
// as in [New].
func MemoryBytes(h hierarchy.Hierarchy) (bytes uint64, err error) {
	if err := checkAll(&h, Options{}); err != nil {
		return 0, err
	}
	for _, c := range slices.Concat(h.Levels, h.Instructions) {
		bytes += tagBytes(c)
	}
	return bytes, nil
}

// checkAll returns an error if a hierarchy cannot be simulated.
func checkAll(h *hierarchy.Hierarchy, o Options) error {
	if err := h.CheckInstructions(); err != nil {
		return err
	}
	for i := range h.Levels {
		if err := check(h.Levels, i); err != nil {
			return err
		}
	}
	if len(h.Instructions) > 0 {
		path := slices.Concat(h.Instructions, h.Levels[len(h.Instructions):])
		for i := range path {
			if err := check(path, i); err != nil {
				return err
			}
		}
	}
	if o.PerReference {
		for _, c := range slices.Concat(h.Levels, h.Instructions) {
			if c.Inclusion != hierarchy.NonInclusive || c.SubBlockBytes > 0 || c.Prefetch.Kind != hierarchy.NoPrefetch || c.Write != hierarchy.WriteBack || o.Causes || o.Bound {
				return &trace.OptionError{Option: "cache", Got: c.String(), Want: "only SIZE, WAYS and LINE, and neither causes nor bounds, because each reference counts only once, as in Cachegrind"}
			}
		}
	}
	if o.Region != nil && (o.Warmup > 0 || o.WarmupShare > 0 || o.Limit > 0) {
		return &trace.OptionError{Option: "region", Got: "a warm-up or a limit", Want: "neither a warm-up nor a limit, because only the references in marked regions are counted"}
	}
	if n := o.MostCores; n > MaxCores {
		return &trace.OptionError{Option: "cores", Got: strconv.Itoa(n), Want: "at most " + strconv.Itoa(MaxCores) + " cores"}
	}
	return nil
}

// check returns an error if level i cannot be simulated.
func check(levels []hierarchy.Cache, i int) error {
	c := levels[i]
	want := ""
	if c.LineBytes < 4 || c.LineBytes&(c.LineBytes-1) != 0 {
		return &trace.OptionError{Option: "cache", Got: c.String(), Want: "a line size that is a power of two, and at least 4 bytes"}
	}
	if err := c.CheckShape(); err != nil {
		return err
	}
	ways := c.Lines() / c.Sets()
	parted := func(c hierarchy.Cache) bool { return c.SubBlockBytes > 0 }
	switch {
	case i > 0 && c.Inclusion != hierarchy.NonInclusive && slices.ContainsFunc(levels, parted):
		want = "only non-inclusive levels, if a level has sub-blocks"
	case i > 0 && c.Inclusion == hierarchy.Exclusive && c.Prefetch.Kind != hierarchy.NoPrefetch:
		want = "no prefetcher in an exclusive level, which contains only lines that the level above evicts"
	case c.Lines() > maxLines:
		want = "at most " + strconv.Itoa(maxLines) + " lines per cache"
	case c.Replacement == hierarchy.TreePLRU && ways&(ways-1) != 0:
		want = "a number of ways that is a power of two, for tree-PLRU"
	case i > 0 && c.Inclusion == hierarchy.Inclusive && c.LineBytes < largestLine(levels[:i]):
		want = "a line size at least as large as in the levels above, because the level is inclusive"
	case i > 0 && c.Inclusion == hierarchy.Exclusive && c.LineBytes != levels[i-1].LineBytes:
		want = "the line size of " + levels[i-1].Name + ", because the level is exclusive"
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

// Consume simulates the references of a batch. Consume fails like [New] if a new core's caches
// cannot be created.
func (s *Simulator) Consume(b *trace.Batch) error {
	s.threaded = s.threaded || b.Thread != nil
	if s.careful {
		return s.consumeCarefully(b)
	}
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

// wordBytes is the assumed size of a reference without a size, as in DineroIV (dinfmt.c). This size
// affects the number of bytes that are written through.
const wordBytes = 4

// bytesOf returns the size of a reference. A reference without a size is assumed to extend to the
// end of its word, which lies within one line.
func bytesOf(addr trace.Addr, size uint32) uint64 {
	if size == 0 {
		return wordBytes - addr%wordBytes
	}
	return uint64(size)
}

// consumeThreads implements Consume for a trace with threads. If a batch has no thread numbers, its
// references belong to thread 0.
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
		if s.hitFirstLevel(thread, addr, bytes, write) {
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

// hitFirstLevel calls [core.hitFirstLevel] for the core on which a thread runs.
func (s *Simulator) hitFirstLevel(thread uint32, addr trace.Addr, bytes uint64, write bool) bool {
	if thread >= MaxCores {
		return false
	}
	c := s.direct[thread]
	if c == nil || !c.hitFirstLevel(addr, bytes, write) {
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
		s.now.notifyBuses(s.now.path, 0, addr, write)
	}
	s.now.path[0].access(addr, bytes, write)
}

// writes contains the kinds of references that change memory.
const writes = trace.Kinds(1<<trace.Store | 1<<trace.Modify | 1<<trace.RangeWrite)

// Result returns the counts so far.
func (s *Simulator) Result() Result {
	s.dropUncounted()
	return s.result()
}

func (s *Simulator) result() Result {
	r := Result{Memory: s.memory, References: s.references, Split: s.split, Folded: s.folded, WarmingUp: !s.warm}
	for _, c := range s.cores {
		r.Cores = append(r.Cores, Core{slices.Sorted(slices.Values(c.threads))})
	}
	for i, caches := range s.caches {
		l := Level{Cache: s.h.Levels[i], Caches: len(caches)}
		l.count(s.cores, caches, func(c *core) *Counts { return c.counts[i] })
		r.Levels = append(r.Levels, l)
	}
	for i, caches := range s.icaches {
		l := Level{Cache: s.h.Instructions[i], Caches: len(caches)}
		l.count(s.cores, caches, func(c *core) *Counts { return c.icounts[i] })
		r.Instructions = append(r.Instructions, l)
	}
	return r
}

// count computes the counts of a level, in total and by core, and the number of its resident lines.
func (l *Level) count(cores []*core, caches []*level, of func(*core) *Counts) {
	for _, c := range cores {
		l.Run.add(of(c))
		l.Cores = append(l.Cores, *of(c))
	}
	for _, cache := range caches {
		l.Resident += cache.tags.resident()
		if cache.watch != nil && cache.watch.bound != nil {
			l.Bounded = true
			l.BestMisses += cache.watch.bound.misses
		}
	}
}

// Finish writes back all dirty lines, ends the simulation, and returns its result.
func (s *Simulator) Finish() Result {
	r := s.Result()
	s.restoreCounts(&savedCounts{})
	s.flush()
	end := s.result()
	for i := range r.Levels {
		r.Levels[i].Flush, r.Levels[i].Resident = end.Levels[i].Run, end.Levels[i].Resident
	}
	for i := range r.Instructions {
		r.Instructions[i].Flush, r.Instructions[i].Resident = end.Instructions[i].Run, end.Instructions[i].Resident
	}
	r.Flush = s.memory
	return r
}

// flush writes back all dirty lines, level by level. In each level, data caches come first.
func (s *Simulator) flush() {
	for i, caches := range s.caches {
		for _, cache := range caches {
			cache.flush()
		}
		if i < len(s.icaches) {
			for _, cache := range s.icaches[i] {
				cache.flush()
			}
		}
	}
}

func (c *Counts) add(d *Counts) {
	for _, n := range []struct {
		sum  *uint64
		more uint64
	}{
		{&c.Reads, d.Reads}, {&c.Writes, d.Writes}, {&c.ReadMisses, d.ReadMisses}, {&c.WriteMisses, d.WriteMisses},
		{&c.WriteBacksReceived, d.WriteBacksReceived}, {&c.WriteBackMisses, d.WriteBackMisses},
		{&c.Updates, d.Updates}, {&c.CleanVictims, d.CleanVictims}, {&c.WriteBacksSent, d.WriteBacksSent},
		{&c.Fills, d.Fills}, {&c.Evictions, d.Evictions}, {&c.Taken, d.Taken}, {&c.Given, d.Given}, {&c.Flushed, d.Flushed},
		{&c.Fetches, d.Fetches}, {&c.FetchMisses, d.FetchMisses}, {&c.LineMisses, d.LineMisses},
		{&c.PrefetchReads, d.PrefetchReads}, {&c.PrefetchReadMisses, d.PrefetchReadMisses},
		{&c.Prefetch.Hits, d.Prefetch.Hits}, {&c.Prefetch.Misses, d.Prefetch.Misses}, {&c.Prefetch.Dropped, d.Prefetch.Dropped},
		{&c.Prefetch.Useful, d.Prefetch.Useful}, {&c.Prefetch.Unused, d.Prefetch.Unused}, {&c.Prefetch.Pollution, d.Prefetch.Pollution},
		{&c.Cold, d.Cold}, {&c.Capacity, d.Capacity}, {&c.Conflict, d.Conflict},
		{&c.CoherenceMisses, d.CoherenceMisses}, {&c.Invalidated, d.Invalidated},
		{&c.Bus.Reads, d.Bus.Reads}, {&c.Bus.ReadsExclusive, d.Bus.ReadsExclusive},
		{&c.Bus.Upgrades, d.Bus.Upgrades}, {&c.Bus.SilentUpgrades, d.Bus.SilentUpgrades},
		{&c.Bus.RemoteClean, d.Bus.RemoteClean}, {&c.Bus.RemoteDirty, d.Bus.RemoteDirty},
		{&c.Bus.WriteBacksForReads, d.Bus.WriteBacksForReads}, {&c.Bus.WriteBacksForWrites, d.Bus.WriteBacksForWrites},
	} {
		*n.sum += n.more
	}
}
