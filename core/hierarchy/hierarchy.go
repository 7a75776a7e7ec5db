// Package hierarchy answers questions about caches from a profile: how many
// accesses hit and miss in each level of a hierarchy that nobody had to choose
// before the run, and what that costs.
//
//   - A fully associative LRU level is exact, from the stack-distance histogram
//     of its line size: hits are the accesses with a distance below its number
//     of lines (MODELS §2).
//   - A set-associative one is exact too where the profile has a set table: sets
//     a power of two up to 65,536, of up to 32 ways, chosen by the low bits of
//     the line's number (MODELS §4). So is one for which the profile measured
//     utilisation: its sets were simulated, whatever their number.
//   - Any other set-associative level is predicted by SDCM, from the histogram:
//     the chance of a hit at each distance when lines fall into sets at random
//     (MODELS §5). It is a model, and a warning says so. Where the table answers,
//     what SDCM would have said stands beside it.
//
// Every level is asked about the whole stream of accesses (the independent-level
// model, MODELS §3): level i sees misses_{i-1} accesses and misses what a cache of its size
// would miss of the whole stream, and no more than it sees. A real lower level
// sees only what the upper ones let through, in another order of use; a warning
// says so too. Exclusive LRU levels of as many sets as the first one are exact:
// together with those above they are one cache, of the sum of their ways. Package
// simulate has what this model has not: other replacements, other exclusive
// levels, write policies.
//
// That is for one core. [CoreAsker] answers for the cores that the threads of a
// program run on: private levels from each core's own stack, which other cores'
// stores take lines from, and shared ones from the stack of those that share them
// (MODELS §6).
//
// Times are averages over accesses (MODELS §13.1): each level's latency counts for
// what hits there, from the load to the use of its value.
//
// [Predict] is pure and does no input or output. [Asker] keeps what several
// questions about one profile share.
package hierarchy

import (
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Cache is one level of a hierarchy.
type Cache struct {
	Name      string
	SizeBytes uint64
	Ways      uint32 // 0: fully associative
	LineBytes uint32

	// Hashed: the set is chosen by a hash of the address, not by its low bits.
	Hashed      bool
	Replacement Replacement
	Inclusion   Inclusion
	Write       Write

	SharedBy      uint32  // consecutive cores; 0 or 1: private to one
	LatencyCycles float64 // from a load to the use of what hits here; 0: not known
	BytesPerCycle float64 // that it can give to the level above; 0: not known
}

// AllCores is SharedBy of a level that all cores share, however many there are.
const AllCores = 1<<32 - 1

// Replacement is how a set chooses the line to give up.
type Replacement uint8

// The replacements. Profiles answer for LRU; package simulate has all of them.
const (
	LRU Replacement = iota
	TreePLRU
	Random
)

// Inclusion is what a level holds of what the levels above it hold.
type Inclusion uint8

// The inclusions.
const (
	NonInclusive Inclusion = iota // what it fetched: it keeps and evicts lines without regard to them
	Inclusive                     // all of it: a line that is evicted here is invalidated above
	Exclusive                     // none of it: lines come from above only
)

// Write is what a level does with stores.
type Write uint8

// The writes.
const (
	WriteBack          Write = iota // and allocate
	WriteBackAround                 // and do not allocate what misses
	WriteThrough                    // and allocate
	WriteThroughAround              // and do not allocate what misses
)

// Through reports whether every store goes on to the next level.
func (w Write) Through() bool { return w == WriteThrough || w == WriteThroughAround }

// Around reports whether stores that miss leave the cache as it is.
func (w Write) Around() bool { return w == WriteBackAround || w == WriteThroughAround }

// Memory is what is behind the last level.
type Memory struct {
	LatencyCycles float64 // from a load to its use; 0: not known
	BytesPerCycle float64 // that it can give to the last level; 0: not known
}

// Lines is the cache's capacity in lines.
func (c Cache) Lines() uint64 { return c.SizeBytes / uint64(max(c.LineBytes, 1)) }

// Full reports whether the cache is fully associative.
func (c Cache) Full() bool { return c.Ways == 0 || uint64(c.Ways) == c.Lines() }

// Sets is the number of sets, one where the cache is fully associative.
func (c Cache) Sets() uint64 {
	if c.Full() {
		return 1
	}
	return c.Lines() / uint64(c.Ways)
}

// Check tests that the cache can exist; the error is a [*trace.OptionError].
func (c Cache) Check() error {
	bad := func(want string) error {
		return &trace.OptionError{Option: "cache", Got: c.String(), Want: want}
	}
	line := uint64(c.LineBytes)
	switch {
	case !profile.ValidLineBytes(c.LineBytes):
		return bad("a line size that is a power of two from 8 to 4096 bytes")
	case c.SizeBytes == 0 || c.SizeBytes%line != 0:
		return bad("a size that is a multiple of the line size of " + strconv.FormatUint(line, 10) + " bytes")
	case c.Ways > 0 && c.Lines()%uint64(c.Ways) != 0:
		return bad("a number of ways that divides its " + strconv.FormatUint(c.Lines(), 10) + " lines, or full")
	}
	return nil
}

// Hierarchy is a list of levels, first level first.
type Hierarchy struct {
	Name   string
	Title  string // for people: what processor this is; "": the name says it
	About  string // what should be known of it, in a sentence or two
	Levels []Cache
	Memory Memory

	ClockGHz float64  // at which cycles are counted; 0: not known
	Sources  []string // where the numbers are from

	Threads Placement // of the program that is asked about
}

// Placement says on which cores the threads of a program run.
type Placement uint8

const (
	OnOwnCores Placement = iota // each on its own core, or on the one that the profile's groups put it on
	OnOneCore                   // all on one core, whose private caches they use together
)
