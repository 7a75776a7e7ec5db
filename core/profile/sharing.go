package profile

// Sharing counts how the threads of a trace use private and shared caches, at one line size
// (MODELS §6). Package analysis/sharing makes it.
//
// Everything is counted by core: the threads, mostly one, with a common private cache. Line
// accesses of a core are counted in up to four ways, each with a histogram and set tables:
//
//  1. private: on a stack of the core's own (PRD, MODELS §6.1);
//  2. concurrent: on the stack of a domain, the cores that share a cache (CRD, MODELS §6.2);
//  3. coherent after Anger: those of 1 and 2 whose line another core touched last (MODELS §6.3);
//  4. coherent after Schuff: on a stack of the core's own in which a store of another
//     core leaves a hole (MODELS §6.4).
type Sharing struct {
	LineBytes uint32
	Cores     []Core   // by their first thread, ascending
	Domains   []Domain // in the order of the options; the first one is all cores
}

const (
	// MaxCores is the most private stacks of one pass.
	MaxCores = 64
	// MaxDomains is the most stacks of one pass that cores share.
	MaxDomains = 16
)

// StackCounts counts line accesses by their distance on one stack.
type StackCounts struct {
	Cold      uint64
	Distances Histogram
	Sets      SetTable // of the same accesses, without cold ones
}

// Accesses returns the number of counted line accesses.
func (c *StackCounts) Accesses() uint64 { return c.Cold + c.Distances.Total() }

// Core counts the accesses of the threads with one private cache.
type Core struct {
	Threads []uint32 // ascending
	Private StackCounts
	// Foreign are those of Private whose line another core touched last:
	// F_invalidated of MODELS §6.3, where Private is F_private.
	Foreign  StackCounts
	Coherent CoherentCounts
	Off      *CoreIntervals // nil if the counts are exact
}

// CoreIntervals are 95 % confidence intervals. Bounds are of the misses of fully associative
// LRU private caches, as in [SampledSize]; other numbers are half the width of the interval
// about a count.
type CoreIntervals struct {
	Private, Coherent         []Bound
	Cold, Lost, Invalidations uint64
}

// CoherentCounts counts accesses on a stack with holes. An access to a line that another
// core's store invalidated since the core's last access is a coherence miss: it is neither cold
// nor at a distance.
type CoherentCounts struct {
	StackCounts
	// Lost counts coherence misses by the depth of the line when it was invalidated. In a
	// private cache of more lines than that, the store is the cause of the miss; a smaller
	// cache might have evicted the line before.
	Lost          Histogram
	Invalidations uint64 // of lines on the stack, by other cores' stores
}

// Accesses returns the number of line accesses, including coherence misses.
func (c *CoherentCounts) Accesses() uint64 { return c.StackCounts.Accesses() + c.Lost.Total() }

// Domain counts accesses on the stack that some cores share.
type Domain struct {
	Cores   []uint32 // indexes in Sharing.Cores, ascending
	Members []Member // of each of these cores
	Sets    SetTable // of the accesses of all
	// Foreign are the accesses whose line another core of the domain touched last:
	// F_shared of MODELS §6.3 in the domain of all cores.
	Foreign StackCounts
}

// Member is one core's part in the accesses of a domain.
type Member struct {
	Cold      uint64 // lines that no core of the domain touched before
	Distances Histogram
	Change    Change
	Bounds    []Bound // of estimates: see CoreIntervals
}

// Change counts a core's accesses by how their concurrent distances differ from the private
// ones (Wu and Yeung's terms; MODELS §6.6). Except for Brought, it counts accesses that are
// cold on neither stack.
type Change struct {
	Same        uint64 // no other core's access in between: the distances are equal
	Dilated     uint64 // others' lines in between, none of which the core used there too
	Overlapped  uint64 // others' lines in between, some of which the core used there too
	Intercepted uint64 // another core touched the line itself in between
	Brought     uint64 // cold on the private stack only: another core fetched the line
}

// Concurrent returns the sum of the members: the histogram of the domain's stack.
func (d *Domain) Concurrent() (sum *Histogram, cold uint64) {
	sum = new(Histogram)
	for i := range d.Members {
		sum.Merge(&d.Members[i].Distances)
		cold += d.Members[i].Cold
	}
	return sum, cold
}
