package simulate

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// MaxCores is the maximum number of cores.
const MaxCores = hierarchy.MostCores

// core is a processor core with its caches, starting with the first level.
type core struct {
	threads []uint32
	path    []*level
	counts  []*Counts // the core's counts at each level
	// the caches for instruction fetches, from the first level to the last; as many levels as in
	// the slice "path"
	fetches     []*level
	icounts     []*Counts // counts of the instruction caches
	threadCount int       // number of threads of the core
	seen        []uint64  // number of misses at each level except the first, up to the last reference; for ConsumeDepths
	near        *recency  // tags of the first-level cache; nil unless it has LRU replacement and few ways
	buses       []port    // the core's ports on the buses between the core and memory
}

// port is the position of a cache on a bus.
type port struct {
	bus    *bus
	member int
	level  int // index of the level
}

// hitFirstLevel performs an access within one line if the first-level cache contains the line and
// no other cache must be informed, as for most accesses. Otherwise, hitFirstLevel does nothing and
// returns false.
func (c *core) hitFirstLevel(addr trace.Addr, bytes uint64, write bool) bool {
	first := c.path[0]
	line := addr >> first.shift
	if c.near == nil || (addr+bytes-1)>>first.shift != line || write && first.through {
		return false
	}
	set := c.near.of(line)
	at := 0
	for ; at < len(set) && set[at].line() != line; at++ {
	}
	if at == len(set) {
		return false
	}
	f := set[at]
	if write {
		for i := range c.buses {
			if p := &c.buses[i]; !p.bus.isRepeatedStore(p.member, addr) {
				return false
			}
		}
		f |= 1
		c.counts[0].Writes++
	} else {
		c.counts[0].Reads++
	}
	for ; at > 0; at-- {
		set[at] = set[at-1]
	}
	set[0] = f
	return true
}

// cacheNumber returns the number of the cache that a core uses at a level. Each level's caches are
// numbered from 0.
func cacheNumber(c hierarchy.Cache, core int) int { return core / int(max(c.SharedBy, 1)) }

// needsBus reports whether the caches of level i must be kept coherent. The caches must be kept
// coherent if a cache of the level below serves more cores than a cache of level i.
func needsBus(levels []hierarchy.Cache, i int) bool {
	behind := uint32(hierarchy.AllCores)
	if i+1 < len(levels) {
		behind = levels[i+1].SharedBy
	}
	return max(levels[i].SharedBy, 1) < min(max(behind, 1), MaxCores)
}

// checkShared returns an error unless cores that share a cache also share all levels below.
func checkShared(levels []hierarchy.Cache) error {
	for i := 1; i < len(levels); i++ {
		above, here := max(levels[i-1].SharedBy, 1), max(levels[i].SharedBy, 1)
		if here < MaxCores && here%above != 0 {
			return &trace.OptionError{Option: "cache", Got: levels[i].String(), Want: "shared=CORES, where CORES is a multiple of the " +
				strconv.FormatUint(uint64(above), 10) + " cores that share " + levels[i-1].Name + ", or shared=all"}
		}
	}
	return nil
}

// setCores creates a core for each group of threads, in the order of their first threads.
func (s *Simulator) setCores(groups [][]uint32) error {
	sorted := make([][]uint32, len(groups))
	for i, threads := range groups {
		sorted[i] = slices.Sorted(slices.Values(threads))
		if len(threads) == 0 {
			return &trace.OptionError{Option: "cores", Got: "a core without threads", Want: "at least one thread for each core"}
		}
	}
	slices.SortFunc(sorted, func(a, b []uint32) int { return cmp.Compare(a[0], b[0]) })
	for _, threads := range sorted {
		c, err := s.newCore()
		if err != nil {
			return err
		}
		for _, t := range threads {
			if _, twice := s.byThread[t]; twice {
				return &trace.OptionError{Option: "cores", Got: "thread " + strconv.FormatUint(uint64(t), 10) + " twice", Want: "each thread on one core"}
			}
			s.byThread[t] = c
		}
	}
	return nil
}

// switchTo sets the current core to the core of a thread.
func (s *Simulator) switchTo(thread uint32) error {
	if thread < MaxCores && s.direct[thread] != nil {
		s.use(s.direct[thread], thread)
		return nil
	}
	c := s.byThread[thread]
	if c == nil {
		var err error
		if c, err = s.assignCore(); err != nil {
			return err
		}
		s.byThread[thread] = c
	}
	c.threadCount++
	if len(c.threads) == 0 {
		s.appeared = append(s.appeared, c)
	}
	if !slices.Contains(c.threads, thread) {
		c.threads = append(c.threads, thread)
	}
	if thread < MaxCores {
		s.direct[thread] = c
	}
	s.use(c, thread)
	return nil
}

func (s *Simulator) use(c *core, thread uint32) {
	s.now, s.thread = c, thread
	for i, l := range c.path {
		l.counts = c.counts[i]
	}
	for i, counts := range c.icounts {
		c.fetches[i].counts = counts
	}
}

// assignCore returns a core for a thread that is not in a group of Options.Cores. The result is
// usually a new core. If MaxCores cores exist already, threads are assigned to the existing cores
// in turn. If Options.MostCores is set, the result is the core with the fewest threads.
func (s *Simulator) assignCore() (*core, error) {
	if s.options.MostCores > 0 {
		return slices.MinFunc(s.cores, func(a, b *core) int { return cmp.Compare(a.threadCount, b.threadCount) }), nil
	}
	switch first := s.unused; {
	case first != nil:
		s.unused = nil
		return first, nil
	case len(s.cores) < MaxCores:
		return s.newCore()
	case len(s.appeared) == 0:
		return s.cores[0], nil
	}
	s.folded++
	return s.appeared[(s.folded-1)%len(s.appeared)], nil
}

// newCore adds a core, with caches for the levels that it does not share with an existing core.
func (s *Simulator) newCore() (*core, error) {
	n := len(s.cores)
	if n == 1 {
		if err := s.checkSeveral(); err != nil {
			return nil, err
		}
	}
	if n == MaxCores {
		return nil, &trace.OptionError{Option: "cores", Got: "more than " + strconv.Itoa(MaxCores), Want: "at most " + strconv.Itoa(MaxCores) + " cores"}
	}
	if err := s.reserve(n); err != nil {
		return nil, err
	}
	c := &core{path: make([]*level, len(s.h.Levels)), counts: make([]*Counts, len(s.h.Levels))}
	for i := len(s.h.Levels) - 1; i >= 0; i-- {
		cache := s.h.Levels[i]
		if cacheNumber(cache, n) == len(s.caches[i]) {
			s.addCache(c, i)
		}
		c.path[i], c.counts[i] = s.caches[i][cacheNumber(cache, n)], new(Counts)
		c.path[i].counts = c.counts[i]
	}
	c.near, _ = c.path[0].tags.(*recency)
	for _, i := range s.buses {
		c.buses = append(c.buses, port{c.path[i].bus, c.path[i].member, i})
	}
	c.fetches = slices.Clone(c.path)
	for i := len(s.h.Instructions) - 1; i >= 0; i-- {
		cache := s.h.Instructions[i]
		if cacheNumber(cache, n) == len(s.icaches[i]) {
			s.addInstructions(c, i)
		}
		c.fetches[i] = s.icaches[i][cacheNumber(cache, n)]
	}
	for i := range s.h.Instructions {
		c.icounts = append(c.icounts, new(Counts))
		c.fetches[i].counts = c.icounts[i]
	}
	s.cores = append(s.cores, c)
	return c, nil
}

// reserve returns an error if the caches of core n would exceed the memory limit.
func (s *Simulator) reserve(n int) error {
	need := *s.bytes
	for i, cache := range s.h.Levels {
		if cacheNumber(cache, n) == len(s.caches[i]) {
			need += tagBytes(cache)
		}
	}
	for i, cache := range s.h.Instructions {
		if cacheNumber(cache, n) == len(s.icaches[i]) {
			need += tagBytes(cache)
		}
	}
	if s.limit > 0 && need > s.limit {
		return &MemoryError{LimitBytes: s.limit, NeedBytes: need, Cores: n + 1}
	}
	*s.bytes = need
	return nil
}

// addCache adds a cache of level i. Core c is the first core that uses the new cache.
func (s *Simulator) addCache(c *core, i int) {
	l := s.newLevel(s.h.Levels[i], i, s.options.Seed+uint64(i)+uint64(len(s.caches[i]))<<32)
	s.caches[i] = append(s.caches[i], l)
	connect := &s.connect
	if i+1 < len(s.h.Levels) {
		l.below = c.path[i+1]
		l.below.above = append(l.below.above, l)
		connect = &l.below.connect
	}
	if !s.coherent || !needsBus(s.h.Levels, i) {
		return
	}
	if *connect == nil {
		*connect = newBus(s.h.Above(i), s.options.Protocol)
	}
	(*connect).join(l)
}

// newLevel returns a cache at the given depth.
func (s *Simulator) newLevel(cache hierarchy.Cache, depth int, seed uint64) *level {
	return &level{
		memory:    &s.memory,
		cache:     cache,
		shift:     lineShift(cache.LineBytes),
		tags:      newTags(cache, seed),
		through:   cache.Write.Through(),
		around:    cache.Write.Around(),
		wholeOnly: cache.Write == hierarchy.WriteBackWhole,
		inclusive: depth > 0 && cache.Inclusion == hierarchy.Inclusive,
		exclusive: depth > 0 && cache.Inclusion == hierarchy.Exclusive,
		watch:     s.newWatch(cache, depth, seed),
	}
}

// lineShift returns the binary logarithm of a line size.
func lineShift(lineBytes uint32) uint { return uint(bits.TrailingZeros32(lineBytes)) }

// addInstructions adds an instruction cache at depth i. Core c is the first core that uses the new
// cache.
func (s *Simulator) addInstructions(c *core, i int) {
	const own = 1 << 62 // this constant makes the seeds of instruction caches differ from the seeds of data caches
	l := s.newLevel(s.h.Instructions[i], i, own+s.options.Seed+uint64(i)+uint64(len(s.icaches[i]))<<32)
	s.icaches[i] = append(s.icaches[i], l)
	if i+1 < len(c.fetches) {
		l.below = c.fetches[i+1]
		l.below.above = append(l.below.above, l)
		l.below.readers = append(l.below.readers, l)
	}
}

// checkSeveral returns an error if the hierarchy does not support several cores.
func (s *Simulator) checkSeveral() error {
	for _, levels := range [][]hierarchy.Cache{s.h.Levels, append(s.h.Instructions[:len(s.h.Instructions):len(s.h.Instructions)], s.h.Levels[len(s.h.Instructions):]...)} {
		if err := checkShared(levels); err != nil {
			return err
		}
		for _, c := range levels {
			if c.SubBlockBytes > 0 {
				return &trace.OptionError{Option: "cache", Got: c.String(), Want: "no sub-blocks if there are several cores; use --cores to run all threads on one core"}
			}
		}
	}
	if s.options.PerReference {
		return &trace.OptionError{Option: "cores", Got: "several cores", Want: "one core, because each reference counts only once, as in Cachegrind; use --cores to run all threads on one core"}
	}
	return nil
}

// MemoryError reports that the caches of all cores need more memory than the limit.
type MemoryError struct {
	LimitBytes, NeedBytes uint64
	Cores                 int
}

func (e *MemoryError) Error() string {
	return "simulating the caches of " + strconv.Itoa(e.Cores) + " cores needs " + strconv.FormatUint(e.NeedBytes, 10) +
		" bytes of memory, more than the limit of " + strconv.FormatUint(e.LimitBytes, 10) +
		"; raise the limit, or assign threads to fewer cores"
}
