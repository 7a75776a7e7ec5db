// Package hierarchy predicts, from a profile, the hits and misses in each level of any hierarchy of
// caches, and the average time of an access.
//
//   - A fully associative LRU level is predicted exactly from the stack-distance histogram of its
//     line size. Accesses with a stack distance below the level's number of lines are hits
//     (MODELS §2).
//   - A set-associative level is predicted exactly if the profile's table of depths within sets
//     covers the level. The table can cover a level only if the level has at most 32 ways, the
//     number of its sets is a power of two and at most 65,536, and the low bits of the line number
//     select the set (MODELS §4). The prediction is also exact if the profile contains the line
//     utilisation of the level, because the measurement simulates the sets.
//   - Any other set-associative level is predicted with SDCM, which computes the probability of a
//     hit at each distance for a random mapping of lines to sets (MODELS §5). Such a prediction
//     causes a warning. Exact predictions include the result of SDCM for comparison.
//
// Every level is predicted from the whole stream of accesses (the independent-level model,
// MODELS §3). Level i has misses_{i-1} accesses. The predicted number of misses of level i is the
// number of misses that the cache would have if it saw the whole stream, but at most misses_{i-1}.
// A real lower level sees only the misses of the level above, in a different order, so the
// prediction of a lower level causes a warning. Exclusive LRU levels with as many sets as the first
// level are predicted exactly, because such a level and the levels above it behave like a single
// cache with the ways of all these levels. Package simulate models other replacement policies,
// other exclusive levels and write policies.
//
// If the profile has per-thread stacks, a private level is predicted from the core's own stack, in
// which stores of other cores invalidate lines. A shared level is predicted from the common stack
// of the cores that share it (MODELS §6).
//
// Times are averages over accesses (MODELS §13.1). The latency of a level is the load-to-use
// latency of a load that hits in the level.
package hierarchy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Cache is one level of a hierarchy.
type Cache struct {
	Name      string
	SizeBytes uint64
	Ways      uint32 // number of ways; 0 if fully associative
	LineBytes uint32

	// Hashed means that a hash of the address, and not the low bits of the line number, selects the
	// set.
	Hashed      bool
	Replacement Replacement
	Inclusion   Inclusion
	Write       Write

	// SubBlockBytes is the size of a sub-block, the unit that is fetched and written back. 0 means
	// that lines are fetched as a whole.
	SubBlockBytes uint32
	Prefetch      Prefetch

	// Pages is the sum of the page sizes that a TLB holds; 0 if it holds pages of every size, and for
	// caches.
	Pages uint64

	SharedBy      uint32  // number of consecutive cores that share the cache; 0 or 1 if it is private
	LatencyCycles float64 // load-to-use latency of a hit; 0 if unknown
	BytesPerCycle float64 // bandwidth to the level above; 0 if unknown
}

// AllCores is the value of SharedBy for a level that all cores share.
const AllCores = 1<<32 - 1

// Replacement is the policy for choosing the line to evict from a set.
type Replacement uint8

// The replacement policies. Predictions from profiles assume LRU. Package simulate models and
// defines all policies.
const (
	LRU Replacement = iota
	TreePLRU
	Random
	FIFO
	BitPLRU
	NRU
	LFU
	SRRIP
	BRRIP
	DRRIP
)

// replacementWords lists the policies' names in the text form.
var replacementWords = [...]string{
	LRU: "lru", TreePLRU: "plru", Random: "random", FIFO: "fifo", BitPLRU: "bit-plru", NRU: "nru",
	LFU: "lfu", SRRIP: "srrip", BRRIP: "brrip", DRRIP: "drrip",
}

func (r Replacement) String() string { return replacementWords[r] }

// Replacements returns the names of the replacement policies, in the order of their constants.
func Replacements() []string { return replacementWords[:] }

// Inclusion is a level's inclusion policy with respect to the levels above.
type Inclusion uint8

// The inclusion policies of levels.
const (
	NonInclusive Inclusion = iota // the level keeps and evicts lines regardless of the levels above
	Inclusive                     // if the level evicts a line, the levels above invalidate it
	Exclusive                     // the level contains only lines that the level above has evicted
)

// Write is the write policy of a level.
type Write uint8

// The write policies of levels.
const (
	WriteBack          Write = iota // write-back, allocates on a store miss
	WriteBackAround                 // write-back, does not allocate on a store miss
	WriteThrough                    // write-through, allocates on a store miss
	WriteThroughAround              // write-through, does not allocate on a store miss
	WriteBackWhole                  // write-back, allocates only for stores that write whole sub-blocks
)

// Through reports whether every store is also written to the next level.
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

// Check returns an error if no cache can have this shape. The error is a [*trace.OptionError].
func (c Cache) Check() error {
	bad := func(want string) error {
		return &trace.OptionError{Option: "cache", Got: c.String(), Want: want}
	}
	if c.LineBytes != leastLineBytes && !profile.ValidLineBytes(c.LineBytes) {
		return bad("a line size that is a power of two from 4 to 4096 bytes")
	}
	return c.CheckShape()
}

// leastLineBytes is the smallest line size. The lines of profiles have at least 8 bytes, so caches
// with smaller lines can only be simulated.
const leastLineBytes = 4

// CheckShape is like Check, but does not check the line size, which must not be 0. The error is a
// [*trace.OptionError].
func (c Cache) CheckShape() error {
	bad := func(want string) error {
		return &trace.OptionError{Option: "cache", Got: c.String(), Want: want}
	}
	line := uint64(c.LineBytes)
	switch {
	case c.SizeBytes == 0 || c.SizeBytes%line != 0:
		return bad("a size that is a multiple of the line size of " + strconv.FormatUint(line, 10) + " bytes")
	case c.Ways > 0 && c.Lines()%uint64(c.Ways) != 0:
		return bad("a number of ways that divides the cache's " + strconv.FormatUint(c.Lines(), 10) + " lines, or full")
	case c.SubBlockBytes != 0 && (c.SubBlockBytes < leastLineBytes || c.SubBlockBytes&(c.SubBlockBytes-1) != 0 ||
		c.SubBlockBytes > c.LineBytes || c.LineBytes/c.SubBlockBytes > mostSubBlocks):
		return bad("a sub-block size that is a power of two, at least 4 bytes, at most a line, and at least 1/" + strconv.Itoa(mostSubBlocks) + " of a line")
	case c.SubBlockBytes == 0 && c.Write == WriteBackWhole:
		return bad("subblock=BYTES, for allocate-whole")
	case c.SubBlockBytes == 0 && c.Prefetch.withinLine():
		return bad("subblock=BYTES, for the prefetcher " + c.Prefetch.Kind.String() + ", which prefetches parts of a line")
	}
	return nil
}

// mostSubBlocks is the maximum number of sub-blocks of a line.
const mostSubBlocks = 64

// Hierarchy is a list of levels, starting with the first level.
type Hierarchy struct {
	Name  string
	Title string // display name of the processor; "" if Name is suitable for display
	About string // remarks about the hierarchy, in one or two sentences
	// Levels contains the caches for data, and Instructions contains the first caches for
	// instructions. An instruction fetch accesses the caches in Instructions, and then
	// Levels[len(Instructions):]. Predictions from profiles ignore Instructions.
	Levels       []Cache
	Instructions []Cache
	Memory       Memory

	ClockGHz float64  // clock rate of the processor; 0 if unknown
	Sources  []string // sources of the numbers, as listed in a configuration file

	Threads Placement

	// TLBs contains the translation look-aside buffers for data, which also translate addresses of
	// instructions unless InstructionTLBs has a TLB at the same depth. An entry is a line of
	// basePage bytes; Translation changes the page size to PageBytes. [Asker.Translate] predicts
	// the misses of the TLBs for data.
	TLBs, InstructionTLBs []Cache
	PageBytes             uint64 // page size for TLBs; 0 means basePage

	Simulation Simulation
}

const (
	basePage = 4 << 10
	mostPage = 1 << 30
)

// PageSize returns the page size for TLBs, in bytes.
func (h *Hierarchy) PageSize() uint64 { return max(h.PageBytes, basePage) }

// Translation returns the TLBs that hold pages of the hierarchy's page size, as a hierarchy of
// caches whose lines are pages.
func (h *Hierarchy) Translation() Hierarchy {
	page := h.PageSize()
	scaled := func(list []Cache) (out []Cache) {
		for _, c := range list {
			if c.Pages == 0 || c.Pages&page != 0 {
				c.SizeBytes, c.LineBytes = c.Lines()*page, uint32(page)
				out = append(out, c)
			}
		}
		return out
	}
	return Hierarchy{Name: h.Name, Levels: scaled(h.TLBs), Instructions: scaled(h.InstructionTLBs)}
}

// SetPages sets the page size: "4KiB" to "1GiB", a power of two. The error is a [*trace.OptionError].
func (h *Hierarchy) SetPages(text string) error {
	n, err := ParseSize(text)
	if err != nil || n < basePage || n > mostPage || n&(n-1) != 0 {
		return &trace.OptionError{Option: "pages", Got: text, Want: "a page size that is a power of two from 4KiB to 1GiB, for example 2MiB"}
	}
	h.PageBytes = n
	return nil
}

// Simulation contains settings that apply only to simulations. Configuration files of other
// simulators contain such settings, but the text form of a hierarchy does not.
type Simulation struct {
	// Cores is the number of cores; 0 means that it is not specified. Each thread runs on the core
	// with the fewest threads.
	Cores       int
	Skip        uint64  // number of references to skip at the start
	Warmup      uint64  // number of references before counting begins
	WarmupShare float64 // share of the last level's lines that must be in use before counting begins
	Limit       uint64  // maximum number of counted references; 0 if there is no limit
	FlushEvery  uint64  // number of references after which all lines are written back and invalidated; 0 means never
	Causes      bool    // whether the simulation determines the causes of misses
	Incoherent  bool    // if true, stores invalidate no lines in other cores' caches
	// PerReference means that a reference to several lines is one access, as in Cachegrind.
	PerReference bool
}

// Placement is a rule that assigns a program's threads to cores.
type Placement uint8

const (
	OnOwnCores Placement = iota // each thread runs on its own core, or threads are grouped as in the profile
	OnOneCore                   // all threads on one core
)

// MostLevels is the maximum number of levels, and of instruction caches, of a hierarchy in text
// form.
const MostLevels = 16

// CheckInstructions returns an error if the hierarchy has too many instruction caches. The error is a
// [*trace.OptionError].
func (h *Hierarchy) CheckInstructions() error {
	if n := len(h.Instructions); n > len(h.Levels) {
		return &trace.OptionError{Option: "cache", Got: h.Instructions[n-1].String() + "," + instructionsWord, Want: "at least as many levels for data as for instructions"}
	}
	if n := len(h.InstructionTLBs); n > len(h.TLBs) {
		return &trace.OptionError{Option: "cache", Got: h.InstructionTLBs[n-1].tlbText() + "," + instructionsWord, Want: "at least as many TLBs for data as for instructions"}
	}
	return nil
}

// tlbText formats a TLB in the text form, without the property for instructions.
func (c Cache) tlbText() string {
	c.SizeBytes, c.LineBytes = c.Lines(), DefaultLineBytes
	entries := strconv.FormatUint(c.SizeBytes, 10)
	text := c.String()
	_, rest, _ := strings.Cut(text, ",")
	text = c.Name + "=" + entries + "," + rest + "," + tlbWord
	for page, before := uint64(basePage), ","+pagesWord+"="; page <= mostPage; page <<= 1 {
		if c.Pages&page != 0 {
			text, before = text+before+FormatSize(page), "+"
		}
	}
	return text
}

// Above returns the instruction caches whose misses reach level i, followed by the data levels up
// to level i.
func (h *Hierarchy) Above(i int) []Cache {
	if n := len(h.Instructions); n > 0 && n <= i {
		return slices.Concat(h.Instructions, h.Levels[:i+1])
	}
	return h.Levels[:i+1]
}

// DataOnly returns the hierarchy without instruction caches, TLBs and settings of a simulation.
func (h Hierarchy) DataOnly() Hierarchy {
	h.Instructions, h.TLBs, h.InstructionTLBs, h.PageBytes, h.Simulation = nil, nil, nil, 0, Simulation{}
	return h
}

// Predictable returns the hierarchy without the parts that predictions from profiles ignore.
func (h Hierarchy) Predictable() Hierarchy {
	h.Levels = slices.Clone(h.Levels)
	for i := range h.Levels {
		c := &h.Levels[i]
		c.Prefetch, c.SubBlockBytes = Prefetch{}, 0
		if c.Write == WriteBackWhole {
			c.Write = WriteBack
		}
	}
	return h.DataOnly()
}

// Beyond returns phrases that name the features of the hierarchy that predictions from profiles
// ignore. Instruction caches are not included.
func (h *Hierarchy) Beyond() (parts []string) {
	for _, c := range h.Levels {
		if c.Prefetch.Kind != NoPrefetch {
			parts = append(parts, "the prefetcher of "+c.Name)
		}
		if c.SubBlockBytes != 0 {
			parts = append(parts, "the sub-blocks of "+c.Name)
		}
	}
	none := Simulation{Skip: h.Simulation.Skip, Incoherent: h.Simulation.Incoherent}
	if h.Simulation != none {
		parts = append(parts, "the settings of the simulation (cores, warm-up, limit, flushes)")
	}
	if h.Simulation.Skip > 0 {
		parts = append(parts, "the number of references to skip (--skip "+strconv.FormatUint(h.Simulation.Skip, 10)+" leaves these references out of an analysis)")
	}
	return parts
}

// Add parses one line and adds it to the hierarchy. The line describes one of the following: a
// cache in the syntax of [ParseCache], with the property "instructions" for an instruction cache; a
// TLB such as DTLB=64,4,tlb, whose size is a number of entries; the page size (pages=SIZE); the
// memory (memory= and a value in the syntax of [ParseMemory]); the clock rate (clock=GHZ); or the
// placement of threads (threads=one-core). The error is a [*trace.OptionError].
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
			return bad("a single clock rate in GHz, for example clock=3.5")
		}
		h.ClockGHz = ghz
		return nil
	case "pages":
		return h.SetPages(value)
	case "threads":
		if value = strings.TrimSpace(value); value != "one-core" && value != "own-cores" {
			return bad("threads=one-core (all threads on one core) or threads=own-cores")
		}
		if h.Threads = OnOwnCores; value == "one-core" {
			h.Threads = OnOneCore
		}
		return nil
	}
	text, instructions := cutProperty(line, instructionsWord)
	text, tlb := cutProperty(text, tlbWord)
	var cache Cache
	if tlb {
		cache, err = parseTLB(text)
	} else {
		cache, err = ParseCache(text)
	}
	if err != nil {
		return err
	}
	for _, other := range slices.Concat(h.Levels, h.Instructions, h.TLBs, h.InstructionTLBs) {
		if other.Name == cache.Name {
			return bad("a different name for each level; there is already a level " + cache.Name)
		}
	}
	list := &h.Levels
	switch {
	case tlb && instructions:
		list = &h.InstructionTLBs
	case tlb:
		list = &h.TLBs
	case instructions:
		list = &h.Instructions
	}
	if len(*list) == MostLevels {
		return bad("at most " + strconv.Itoa(MostLevels) + " levels")
	}
	*list = append(*list, cache)
	return nil
}

// In the text form, these properties mark instruction caches and TLBs.
const (
	instructionsWord = "instructions"
	tlbWord          = "tlb"
	pagesWord        = "pages"
)

// cutProperty removes a property from the text form of a cache, and reports whether the text
// contained it.
func cutProperty(line, property string) (rest string, found bool) {
	var kept []string
	for i, field := range strings.Split(line, ",") {
		if i > 0 && !found && strings.TrimSpace(field) == property {
			found = true
			continue
		}
		kept = append(kept, field)
	}
	return strings.Join(kept, ","), found
}

// parsePages parses the property pages=SIZE+SIZE… of a TLB, and removes it from the text form.
func parsePages(line string) (rest string, pages uint64, ok bool) {
	var kept []string
	for field := range strings.SplitSeq(line, ",") {
		key, value, _ := strings.Cut(field, "=")
		if strings.TrimSpace(key) != pagesWord || len(kept) == 0 {
			kept = append(kept, field)
			continue
		}
		if pages != 0 {
			return line, 0, false
		}
		for size := range strings.SplitSeq(value, "+") {
			var h Hierarchy
			if h.SetPages(size) != nil || pages&h.PageBytes != 0 {
				return line, 0, false
			}
			pages |= h.PageBytes
		}
	}
	return strings.Join(kept, ","), pages, true
}

// parseTLB parses a TLB: NAME=ENTRIES,WAYS and optional properties (a replacement policy,
// pages=SIZE+SIZE…, shared=CORES and hashed).
func parseTLB(text string) (Cache, error) {
	bad := &trace.OptionError{Option: "cache", Got: text + "," + tlbWord, Want: "NAME=ENTRIES,WAYS,tlb, for example DTLB=64,4,tlb, and only these properties: a replacement policy, " +
		"pages=SIZE+SIZE… for the page sizes that the TLB holds, shared=CORES, hashed, instructions"}
	text, pages, ok := parsePages(text)
	if !ok {
		return Cache{}, bad
	}
	name, rest, _ := strings.Cut(text, "=")
	entries, rest, _ := strings.Cut(rest, ",")
	n, err := strconv.ParseUint(strings.TrimSpace(entries), 10, 24)
	if err != nil || n == 0 {
		return Cache{}, bad
	}
	const line = "4096,"
	ways, rest, _ := strings.Cut(rest, ",")
	c, err := ParseCache(name + "=" + strconv.FormatUint(n*basePage, 10) + "," + ways + "," + line + rest)
	if rest == "" {
		c, err = ParseCache(name + "=" + strconv.FormatUint(n*basePage, 10) + "," + ways + "," + strings.TrimSuffix(line, ","))
	}
	plain := Cache{Name: c.Name, SizeBytes: c.SizeBytes, Ways: c.Ways, LineBytes: basePage, Hashed: c.Hashed, Replacement: c.Replacement, SharedBy: c.SharedBy}
	if err != nil || c != plain {
		return Cache{}, bad
	}
	c.Pages = pages
	return c, nil
}

// Lines writes the levels, the memory, the clock and the placement of threads in the form that Add
// reads.
func (h *Hierarchy) Lines() (lines []string) {
	for _, c := range h.Instructions {
		lines = append(lines, c.String()+","+instructionsWord)
	}
	for _, c := range h.Levels {
		lines = append(lines, c.String())
	}
	for _, c := range h.InstructionTLBs {
		lines = append(lines, c.tlbText()+","+instructionsWord)
	}
	for _, c := range h.TLBs {
		lines = append(lines, c.tlbText())
	}
	if h.PageBytes > 0 {
		lines = append(lines, "pages="+FormatSize(h.PageBytes))
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
