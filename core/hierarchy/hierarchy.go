// Package hierarchy predicts, from a profile, the hits and misses in each level of any hierarchy of
// caches, and the average time of an access.
//
//   - A fully associative LRU level is predicted exactly from the stack-distance histogram of its
//     line size: the hits are the accesses with a stack distance less than its number of lines
//     (MODELS §2).
//   - A set-associative level is predicted exactly if a set table of the profile covers it. This
//     requires a number of sets that is a power of two and at most 65,536, sets that are selected
//     by the low bits of the line number, and at most 32 ways (MODELS §4). The prediction is also
//     exact if the profile contains the line utilisation of the level, because measuring it
//     simulates the sets.
//   - Any other set-associative level is predicted with SDCM, which computes the probability of a
//     hit at each distance, assuming that lines are mapped to sets at random (MODELS §5). A warning
//     says so. Exact predictions include the result of SDCM for comparison.
//
// Every level is predicted from the whole stream of accesses (the independent-level model,
// MODELS §3). Level i sees misses_{i-1} accesses. It misses as often as a cache of its size that sees the
// whole stream, but at most misses_{i-1} times. A real lower level sees only the misses of the
// level above, which arrive in a different order. A warning says so. Exclusive LRU levels with as
// many sets as the first level are predicted exactly: together with the levels above, they behave
// like a single cache that has as many ways as all these levels together. Package simulate models
// other replacement policies, other exclusive levels and write policies.
//
// If the profile has per-thread stacks, a private level is predicted from the core's own stack, in
// which stores of other cores invalidate lines. A shared level is predicted from the common stack
// of the cores that share it (MODELS §6).
//
// Times are averages over accesses (MODELS §13.1). The latency of a level is the load-to-use
// latency of a load that hits there.
package hierarchy

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Cache is one level of a hierarchy.
type Cache struct {
	Name      string
	SizeBytes uint64
	Ways      uint32 // 0 if fully associative
	LineBytes uint32

	// Hashed means that the set is selected by a hash of the address instead of the low bits of the
	// line number.
	Hashed      bool
	Replacement Replacement
	Inclusion   Inclusion
	Write       Write

	SharedBy      uint32  // number of consecutive cores that share the cache; 0 or 1 if it is private
	LatencyCycles float64 // load-to-use latency of a hit; 0 if unknown
	BytesPerCycle float64 // bandwidth to the level above; 0 if unknown
}

// AllCores is the value of SharedBy for a level that all cores share.
const AllCores = 1<<32 - 1

// Replacement is the policy that selects the line to evict from a set.
type Replacement uint8

// The replacement policies. Predictions from profiles assume LRU. Package simulate models all
// policies.
const (
	LRU Replacement = iota
	TreePLRU
	Random
)

// Inclusion is a level's inclusion policy with respect to the levels above.
type Inclusion uint8

// The inclusion policies.
const (
	NonInclusive Inclusion = iota // keeps and evicts lines regardless of the levels above
	Inclusive                     // a line that is evicted here is invalidated above
	Exclusive                     // contains only lines that were evicted above
)

// Write is the write policy of a level.
type Write uint8

// The write policies.
const (
	WriteBack          Write = iota // write-back, allocates on a store miss
	WriteBackAround                 // write-back, does not allocate on a store miss
	WriteThrough                    // write-through, allocates on a store miss
	WriteThroughAround              // write-through, does not allocate on a store miss
)

// Through reports whether every store is passed on to the next level.
func (w Write) Through() bool { return w == WriteThrough || w == WriteThroughAround }

// Around reports whether store misses bypass the level instead of allocating a line.
func (w Write) Around() bool { return w == WriteBackAround || w == WriteThroughAround }

// Memory is the memory below the last level.
type Memory struct {
	LatencyCycles float64 // load-to-use latency; 0 if unknown
	BytesPerCycle float64 // bandwidth to the last level; 0 if unknown
}

// Lines returns the capacity in lines.
func (c Cache) Lines() uint64 { return c.SizeBytes / uint64(max(c.LineBytes, 1)) }

// Full reports whether the cache is fully associative.
func (c Cache) Full() bool { return c.Ways == 0 || uint64(c.Ways) == c.Lines() }

// Sets returns the number of sets, 1 for a fully associative cache.
func (c Cache) Sets() uint64 {
	if c.Full() {
		return 1
	}
	return c.Lines() / uint64(c.Ways)
}

// Check returns an error if the cache is impossible. The error is a [*trace.OptionError].
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
	Title  string // name of the processor for display; "" if Name suffices
	About  string // remarks, one or two sentences
	Levels []Cache
	Memory Memory

	ClockGHz float64  // clock rate of the cycles; 0 if unknown
	Sources  []string // where the numbers come from

	Threads Placement
}

// Placement says on which cores the threads of a program run.
type Placement uint8

const (
	OnOwnCores Placement = iota // each thread on its own core, or grouped as in the profile
	OnOneCore                   // all threads on one core
)

// MostLevels is the maximum number of levels of a hierarchy in text form.
const MostLevels = 16

// Add parses one line and adds it to the hierarchy. A line is a cache in the syntax of
// [ParseCache], memory= followed by a value in the syntax of [ParseMemory], clock=GHZ, or
// threads=one-core. The error is a [*trace.OptionError].
func (h *Hierarchy) Add(line string) (err error) {
	bad := func(want string) error { return &trace.OptionError{Option: "cache", Got: line, Want: want} }
	name, value, _ := strings.Cut(line, "=")
	switch strings.TrimSpace(name) {
	case "memory":
		if h.Memory != (Memory{}) {
			return bad("memory= only once")
		}
		h.Memory, err = ParseMemory(value)
		return err
	case "clock":
		ghz, ok := ParsePositive(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "GHz")))
		if !ok || h.ClockGHz != 0 {
			return bad("a single clock rate in GHz, as in clock=3.5")
		}
		h.ClockGHz = ghz
		return nil
	case "threads":
		if value = strings.TrimSpace(value); value != "one-core" && value != "own-cores" {
			return bad("threads=one-core (all threads on one core) or threads=own-cores")
		}
		if h.Threads = OnOwnCores; value == "one-core" {
			h.Threads = OnOneCore
		}
		return nil
	}
	cache, err := ParseCache(line)
	if err != nil {
		return err
	}
	for _, other := range h.Levels {
		if other.Name == cache.Name {
			return bad("different names for the levels; there is a " + cache.Name + " already")
		}
	}
	if len(h.Levels) == MostLevels {
		return bad("at most " + strconv.Itoa(MostLevels) + " levels")
	}
	h.Levels = append(h.Levels, cache)
	return nil
}

// Lines writes the levels, the memory, the clock and the placement of threads in the form that Add
// reads.
func (h *Hierarchy) Lines() (lines []string) {
	for _, c := range h.Levels {
		lines = append(lines, c.String())
	}
	if m := h.Memory.String(); m != "" {
		lines = append(lines, "memory="+m)
	}
	if h.ClockGHz > 0 {
		lines = append(lines, "clock="+FormatNumber(h.ClockGHz))
	}
	if h.Threads == OnOneCore {
		lines = append(lines, "threads=one-core")
	}
	return lines
}
