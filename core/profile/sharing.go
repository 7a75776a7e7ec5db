package profile

// Sharing tells how the threads of a trace use caches of their own and caches that
// they share, at one line size (MODELS §6). Package analysis/sharing makes it.
//
// Everything is counted by core: the threads that have a private cache in common,
// mostly one. Line accesses of a core are counted in up to four ways, of which each
// has the whole histogram and the set tables:
//
//  1. private: on a stack of the core's own (PRD, MODELS §6.1);
//  2. concurrent: on the stack of a domain, the cores that share a cache (CRD, MODELS §6.2);
//  3. coherent after Anger: those of 1 and 2 whose line another core touched last,
//     apart (MODELS §6.3);
//  4. coherent after Schuff: on a stack of the core's own in which a store of another
//     core leaves a hole (MODELS §6.4).
type Sharing struct {
	LineBytes uint32
	Cores     []Core   // by their first thread, ascending
	Domains   []Domain // in the order asked for; the first one is all cores
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
	Sets      SetTable // of the same accesses; without cold ones, as always
}

// Accesses is the number of line accesses that were counted.
func (c *StackCounts) Accesses() uint64 { return c.Cold + c.Distances.Total() }

// Core is what was counted of the threads that have one private cache.
type Core struct {
	Threads []uint32 // ascending
	Private StackCounts
	// Foreign are those of Private whose line another core touched last:
	// F_invalidated of MODELS §6.3, where Private is F_private.
	Foreign  StackCounts
	Coherent CoherentCounts
	// Off is how far off estimates are; nil where they are none.
	Off *CoreIntervals
}

// CoreIntervals are those that have the truth in 95 of 100 runs. Bounds hold the misses
// of fully associative LRU caches, as in [SampledSize], of the core's own; other numbers
// are half of an interval about a count.
type CoreIntervals struct {
	Private, Coherent         []Bound
	Cold, Lost, Invalidations uint64
}

// CoherentCounts are accesses on a stack with holes. An access to a line that was
// lost to another core's store since the core's last one is a coherence miss: it
// is neither cold nor at a distance.
type CoherentCounts struct {
	StackCounts
	// Lost counts coherence misses by the depth that the line had when it was
	// lost: in a private cache of more lines than that, the store is the cause of
	// the miss; in smaller ones the line might have been gone by then.
	Lost Histogram
	// Invalidations is how often another core's store took a line from the stack.
	Invalidations uint64
}

// Accesses is the number of line accesses, coherence misses among them.
func (c *CoherentCounts) Accesses() uint64 { return c.StackCounts.Accesses() + c.Lost.Total() }

// Domain is what was counted on the stack that some cores share.
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

// Change tells how the concurrent distances of a core's accesses differ from its
// private ones, and why (Wu and Yeung's terms; MODELS §6.6). It counts the accesses
// that are cold in neither, the last one apart, each once.
type Change struct {
	Same        uint64 // nothing of others in between: the distances are equal
	Dilated     uint64 // others' lines in between, none of which the core used there too
	Overlapped  uint64 // others' lines in between, some of which the core used there too
	Intercepted uint64 // another core touched the line itself in between
	Brought     uint64 // cold on the private stack only: another core brought the line
}

// Concurrent sums the members: the histogram of the domain's stack.
func (d *Domain) Concurrent() (sum *Histogram, cold uint64) {
	sum = new(Histogram)
	for i := range d.Members {
		sum.Merge(&d.Members[i].Distances)
		cold += d.Members[i].Cold
	}
	return sum, cold
}
