package profile

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// Sharing counts how the threads of a trace use private and shared caches, at one line size
// (MODELS §6). Package analysis/sharing computes these counts.
//
// Each core has its own counts. A core represents all threads that use one private cache, usually a
// single thread. The line accesses of a core are counted in up to four ways, each with a histogram
// and a set table:
//
//  1. private: on a stack that contains only the accesses of this core (PRD, MODELS §6.1);
//  2. concurrent: on the stack of a domain, which consists of the cores that share a cache (CRD,
//     MODELS §6.2);
//  3. coherent according to Anger: on stacks 1 and 2, but only for accesses to lines that another
//     core touched last (MODELS §6.3);
//  4. coherent according to Schuff: on a stack that contains only the accesses of this core, and in
//     which a store by another core leaves a hole (MODELS §6.4).
type Sharing struct {
	LineBytes uint32
	Cores     []Core   // in ascending order of their first threads
	Domains   []Domain // in the order of the options; the first domain contains all cores
}

const (
	// MaxCores is the maximum number of private stacks in one pass.
	MaxCores = 64
	// MaxDomains is the maximum number of shared stacks in one pass.
	MaxDomains = 16
)

// StackCounts counts line accesses by their distances on one stack.
type StackCounts struct {
	Cold      uint64
	Distances Histogram
	Sets      SetTable // distances within sets, for the same accesses except cold accesses
}

// Accesses returns the number of counted line accesses.
func (c *StackCounts) Accesses() uint64 { return c.Cold + c.Distances.Total() }

// Core counts the accesses of the threads that use one private cache.
type Core struct {
	Threads []uint32 // ascending
	Private StackCounts
	// Foreign counts the accesses in Private whose line was last touched by another core. In
	// MODELS §6.3, Foreign is F_invalidated, and Private is F_private.
	Foreign  StackCounts
	Coherent CoherentCounts
	Off      *CoreIntervals // nil if the counts are exact
}

// CoreIntervals contains 95 % confidence intervals. The lists contain the confidence intervals of
// the misses of fully associative private LRU caches, in the format of SampledSize.Bounds. The
// other fields are the half-widths of the confidence intervals of single counts.
type CoreIntervals struct {
	Private, Coherent         []Bound
	Cold, Lost, Invalidations uint64
}

// CoherentCounts counts accesses on a stack with holes. An access is a coherence miss if a store by
// another core has invalidated the line since the core's last access to the line. A coherence miss
// is not cold, and has no distance.
type CoherentCounts struct {
	StackCounts
	// Lost counts coherence misses, grouped by the depth of the line at the time of the
	// invalidation. If a private cache has more lines than this depth, the store caused the miss. A
	// smaller cache had already evicted the line before the store.
	Lost          Histogram
	Invalidations uint64 // number of times that a store by another core invalidated a line on the stack
}

// Accesses returns the number of line accesses, including coherence misses.
func (c *CoherentCounts) Accesses() uint64 { return c.StackCounts.Accesses() + c.Lost.Total() }

// Domain counts accesses on a stack that several cores share.
type Domain struct {
	Cores   []uint32 // indices into Sharing.Cores, ascending
	Members []Member // counts of each core in Cores
	Sets    SetTable // distances within sets, for the accesses of all cores of the domain
	// Foreign counts the accesses whose line was last touched by another core of the domain. For
	// the domain of all cores, this is F_shared in MODELS §6.3.
	Foreign StackCounts
}

// Member counts one core's accesses in a domain.
type Member struct {
	Cold      uint64 // number of accesses to lines that no core of the domain has touched before
	Distances Histogram
	Change    Change
	Bounds    []Bound // only for estimates: see CoreIntervals
}

// Change classifies the accesses of a core by the difference between their concurrent and private
// distances, in the terms of Wu and Yeung (MODELS §6.6). Only Brought counts accesses that are cold
// on one of the two stacks.
type Change struct {
	Same uint64 // the distances are equal: since this core's last access to the line, other cores have accessed no lines, or only lines that this core also accessed
	// other cores accessed lines since this core's last access to the line, but this core accessed
	// none of these lines
	Dilated uint64
	// other cores accessed lines since this core's last access to the line, and this core also
	// accessed some of these lines
	Overlapped  uint64
	Intercepted uint64 // another core accessed the line itself since this core's last access
	Brought     uint64 // cold only on the private stack: another core fetched the line
}

// Concurrent returns the histogram of the domain's stack and the number of cold accesses. Both are
// sums over the members of the domain.
func (d *Domain) Concurrent() (sum *Histogram, cold uint64) {
	sum = new(Histogram)
	for i := range d.Members {
		sum.Merge(&d.Members[i].Distances)
		cold += d.Members[i].Cold
	}
	return sum, cold
}

func (s *Sharing) code(c *coder) {
	c.U32(&s.LineBytes)
	if c.Reads() {
		l := c.of.LocalityAt(s.LineBytes)
		if l == nil || s.LineBytes <= c.above {
			c.In.Fail("the line sizes of the cores' stacks are not in ascending order, or have no histogram")
			return
		}
		c.most, c.crowded = c.of.longestDistance(l), "the histograms of long stack distances on many cores need gigabytes of memory; analyse fewer cores at a time"
	}
	codec.Bounded(c.Coder, &s.Cores, MaxCores, func(k *Core) {
		c.ascending(&k.Threads, 1<<32)
		k.Private.code(c)
		k.Foreign.code(c)
		k.Coherent.StackCounts.code(c)
		k.Coherent.Lost.code(c)
		c.U64(&k.Coherent.Invalidations)
	})
	codec.Bounded(c.Coder, &s.Domains, MaxDomains, func(d *Domain) {
		c.ascending(&d.Cores, uint64(len(s.Cores)))
		codec.Members(c.Coder, &d.Members, len(d.Cores), func(m *Member) {
			c.U64(&m.Cold)
			m.Distances.code(c)
			c.U64s(m.Change.counts()...)
		})
		d.Sets.code(c)
		d.Foreign.code(c)
	})
}

// dropSetCounts removes the rows for the given numbers of sets from all tables.
func (s *Sharing) dropSetCounts(omitted uint32) {
	for i := range s.Cores {
		k := &s.Cores[i]
		k.Private.Sets.Omit(omitted)
		k.Foreign.Sets.Omit(omitted)
		k.Coherent.Sets.Omit(omitted)
	}
	for i := range s.Domains {
		s.Domains[i].Sets.Omit(omitted)
		s.Domains[i].Foreign.Sets.Omit(omitted)
	}
}

func (s *StackCounts) code(c *coder) {
	c.U64(&s.Cold)
	s.Distances.code(c)
	s.Sets.code(c)
}

// counts returns pointers to the counts, in the order of the binary format.
func (c *Change) counts() []*uint64 {
	return []*uint64{&c.Same, &c.Dilated, &c.Overlapped, &c.Intercepted, &c.Brought}
}

// longestDistance returns the longest possible distance for a line size. In a sample of lines, the
// number of lines is estimated separately for each stack, and the estimates may differ.
func (p *Profile) longestDistance(l *Locality) uint64 {
	if p.Sampled.Chosen() {
		return min(max(l.Lines(), l.Accesses()), MaxDistance)
	}
	return l.Lines()
}

// mostPages is the maximum number of histogram pages in one section. Without this limit, decoding a
// damaged file could need too much memory, because a few bytes can describe a histogram with many
// pages, and a section may contain thousands of histograms.
const mostPages = 1 << 20

// checkSharing checks that the counts of all cores and domains are consistent, and that the
// histogram of the domain of all cores equals the histogram of the whole trace.
func (p *Profile) checkSharing() error {
	for i := range p.Sharing {
		s := &p.Sharing[i]
		l := p.LocalityAt(s.LineBytes)
		if l == nil || i > 0 && s.LineBytes <= p.Sharing[i-1].LineBytes {
			return &CheckError{"the cores' stacks have a line size without a histogram"}
		}
		if err := s.check(l, p.Sampled.Chosen()); err != nil {
			return err
		}
	}
	return nil
}

// check validates the stacks. Estimated stacks have no set tables and no counts of changed
// distances, and omit threads without samples.
func (s *Sharing) check(l *Locality, estimated bool) error {
	if len(s.Cores) == 0 || len(s.Cores) > MaxCores || len(s.Domains) == 0 || len(s.Domains) > MaxDomains {
		return &CheckError{"the profile has no cores, or too many cores or domains"}
	}
	if !s.threadsInOrder() {
		return &CheckError{"the threads of the cores are out of order, or a thread is on two cores"}
	}
	var accesses counter
	for i := range s.Cores {
		if err := s.Cores[i].checkStacks(l.Accesses(), estimated); err != nil {
			return err
		}
		n, _ := s.Cores[i].Private.accessesWithin(l.Accesses())
		accesses.add(n)
	}
	if accesses.over || accesses.n > l.Accesses() || !estimated && accesses.n != l.Accesses() {
		return &CheckError{"the accesses of the cores do not add up to the accesses of the whole trace"}
	}
	for i := range s.Domains {
		if err := s.Domains[i].check(s.Cores, estimated); err != nil {
			return err
		}
	}
	if estimated && len(s.Domains[0].Cores) == len(s.Cores) {
		return nil
	}
	return s.Domains[0].checkAll(s, l)
}

// threadsInOrder reports whether the threads of each core are in ascending order, whether no thread
// is on two cores, and whether the cores are in the order of their first threads.
func (s *Sharing) threadsInOrder() bool {
	seen := map[uint32]bool{}
	for i := range s.Cores {
		threads := s.Cores[i].Threads
		if len(threads) == 0 || i > 0 && threads[0] <= s.Cores[i-1].Threads[0] || !ascending(threads, compareNumbers) {
			return false
		}
		for _, t := range threads {
			if seen[t] {
				return false
			}
			seen[t] = true
		}
	}
	return true
}

func compareNumbers(x, y *uint32) int { return cmp.Compare(*x, *y) }

func (c *Core) checkStacks(most uint64, estimated bool) error {
	accesses, ok := c.Private.accessesWithin(most)
	if !ok {
		return &CheckError{"a core has more accesses than the trace contains"}
	}
	lost, fits := sumWithin(&c.Coherent.Lost, most)
	if coherent, ok := c.Coherent.accessesWithin(most); !ok || !fits || c.Coherent.Cold != c.Private.Cold || coherent+lost != accesses {
		return &CheckError{"the coherent and the private stack of a core have different numbers of accesses"}
	}
	if lost > c.Coherent.Invalidations {
		return &CheckError{"a core has more coherence misses than invalidations of its lines"}
	}
	for _, h := range []*Histogram{&c.Private.Distances, &c.Coherent.Distances, &c.Coherent.Lost} {
		if !h.isBelow(c.Private.Cold) {
			return &CheckError{"a distance on a core's stack is not smaller than the number of lines on the stack"}
		}
	}
	if err := c.Private.Sets.checkOf(&c.Private.Distances, estimated); err != nil {
		return err
	}
	if err := c.Coherent.Sets.checkOf(&c.Coherent.Distances, estimated); err != nil {
		return err
	}
	return c.Foreign.checkWithin(&c.Private.Distances, &c.Private.Sets, c.Private.Cold, estimated)
}

// checkOf calls the method "check" if distances are exact. If distances are estimated, checkOf
// instead checks that the table is empty.
func (t *SetTable) checkOf(h *Histogram, estimated bool) error {
	if !estimated {
		return t.check(h)
	}
	if !t.empty() {
		return &CheckError{"a stack with estimated distances has a set table"}
	}
	return nil
}

// checkWithin checks that the counts of some accesses do not exceed the counts of all accesses.
func (c *StackCounts) checkWithin(all *Histogram, sets *SetTable, cold uint64, estimated bool) error {
	more := &CheckError{"a core has fewer accesses in total than accesses to lines that another core touched last"}
	if c.Cold > cold {
		return more
	}
	for d, n := range c.Distances.All() {
		if n > all.Count(d) {
			return more
		}
	}
	for a := range c.Sets.Depths {
		for d, n := range c.Sets.Depths[a] {
			if n > sets.Depths[a][d] {
				return more
			}
		}
	}
	return c.Sets.checkOf(&c.Distances, estimated)
}

func (d *Domain) check(cores []Core, estimated bool) error {
	if len(d.Cores) == 0 || len(d.Members) != len(d.Cores) || !ascending(d.Cores, compareNumbers) || int(slices.Max(d.Cores)) >= len(cores) {
		return &CheckError{"a domain has no cores, or unknown cores"}
	}
	var lines counter
	for i := range d.Members {
		if !d.Members[i].fits(&cores[d.Cores[i]].Private, estimated) {
			return &CheckError{"the accesses of a core in a domain do not match the core's private stack"}
		}
		lines.add(d.Members[i].Cold)
	}
	sum, cold := d.Concurrent()
	if lines.over || !sum.isBelow(cold) {
		return &CheckError{"a distance in a domain is not smaller than the number of lines of the domain"}
	}
	if err := d.Sets.checkOf(sum, estimated); err != nil {
		return err
	}
	return d.Foreign.checkWithin(sum, &d.Sets, 0, estimated)
}

// fits reports whether the counts of a member are consistent with the private counts of its core,
// and whether the counts in Change add up to the number of accesses.
func (m *Member) fits(private *StackCounts, estimated bool) bool {
	accesses, _ := private.accessesWithin(^uint64(0))
	finite, ok := sumWithin(&m.Distances, accesses)
	if !ok || m.Cold != accesses-finite || m.Cold > private.Cold {
		return false
	}
	if estimated {
		return m.Change == Change{}
	}
	if m.Change.Brought != private.Cold-m.Cold {
		return false
	}
	var changes counter
	for _, n := range m.Change.counts() {
		changes.add(*n)
	}
	return !changes.over && changes.n == finite
}

// checkAll checks that the domain contains all cores, and that its stack equals the stack of the
// whole trace.
func (d *Domain) checkAll(s *Sharing, l *Locality) error {
	sum, cold := d.Concurrent()
	all, lines := l.Histogram(^trace.Kinds(0))
	if len(d.Cores) != len(s.Cores) || cold != lines || !sum.equal(all) || l.Sets != nil && d.Sets != *l.Sets {
		return &CheckError{"the counts of the first domain differ from the counts of the whole trace"}
	}
	return nil
}

// accessesWithin returns the number of accesses. The result ok is false if this number is greater
// than the parameter "most".
func (c *StackCounts) accessesWithin(most uint64) (accesses uint64, ok bool) {
	n, ok := sumWithin(&c.Distances, most)
	return n + c.Cold, ok && n+c.Cold >= n && n+c.Cold <= most
}

// sumWithin returns the total count of a histogram, and reports whether the total is at most the
// parameter "most".
func sumWithin(h *Histogram, most uint64) (uint64, bool) {
	var sum counter
	for _, n := range h.All() {
		sum.add(n)
	}
	return sum.n, !sum.over && sum.n <= most
}

// isBelow reports whether every distance is below the limit.
func (h *Histogram) isBelow(limit uint64) bool {
	for d := range h.All() {
		if d >= limit {
			return false
		}
	}
	return true
}

func (h *Histogram) equal(other *Histogram) bool {
	for d, n := range h.All() {
		if other.Count(d) != n {
			return false
		}
	}
	return h.Total() == other.Total()
}
