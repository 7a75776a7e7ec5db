package diagnose

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/parallel"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// A replay simulates the references of the loop-compressed trace in the machine's caches, either
// with the recorded addresses or with the addresses of a different data layout. Every level sees
// every access, as everywhere in this package.

// The limits of replays.
const (
	mostReplayed = 20 << 20 // rows in one replay; longer traces with one thread are replayed in parts
	mostSampled  = 12 << 20 // rows replayed of a longer trace
	numParts     = 4        // number of parts of a longer trace
	mostSkimmed  = 1 << 27  // rows of a trace that is replayed in parts
	mostRows     = 80 << 20 // total number of rows in all replays
	mostShared   = 1 << 20  // lines in a run with several threads
	mostWays     = 64       // ways; caches with more ways cannot be replayed
)

// The TLBs of a core. These are round figures for current cores.
const (
	pageShift      = 12
	hugeShift      = 21
	firstPages     = 64
	firstPageWays  = firstPages
	secondPages    = 2048
	secondPageWays = 16

	secondPageCycles = 7.0 // cost of a translation found in the second-level TLB
	walkCycles       = costmodel.WalkCycles
	// number of page walks in flight at a time, if no load depends on the previous load
	walkOverlap = 4.0
)

// splitCycles is the additional cost of a reference that crosses a line boundary.
const splitCycles = 2.0

// remoteExtra is the additional latency of another socket's memory, as a share of the latency of
// memory.
const remoteExtra = 0.7

// counts contains the results of a replay.
type counts struct {
	sites     []siteCounts
	misses    [][]float64 // by level and site; nil if not counted yet
	coherence [][]float64 // misses after another core's store, by level and site
	// misses after another core's store, in the first level, for words to which no other core has
	// stored since the core lost the line, by site (Dubois et al., ISCA 1993)
	falsely []float64
	// misses after another core's store, in the first level, for lines that contain a word to which
	// several threads stored, by site
	severally []float64
	// misses after another core's store, in the first level, for words to which another thread has
	// stored while several threads ran, by site
	exchanged []float64
	idle      []waiting            // waits of threads for the slowest thread
	blocks    []block              // allocated blocks, ascending by address
	pages     map[trace.Addr]*page // nil if there is only one thread
	numbered  []*page
	lines     lineTable
	team      int     // number of threads
	claimed   []claim // atomic operations on the same word, by site
	// counts of the first part of a run of several threads, up to a synchronisation point; nil if
	// the run is short, or if no part of it represents the whole run
	beginning *beginning
	steady    []beginning // the result of findSteady
	simulated float64     // the share of the accesses that were simulated
}

// siteCounts contains the counts of one site.
type siteCounts struct {
	siteAccesses
	references, split uint64
	strides           [profile.NumStrides]uint64
	low, high         trace.Addr
	grain             uint64 // largest number that divides all distances between references
	step              uint64 // the last constant stride
}

// siteAccesses contains the counts of one site that depend on the order of the threads.
type siteAccesses struct {
	accesses, near uint64
	second, walks  float64 // number of translations from the second-level TLB, and from the page table
}

// claim counts the atomic operations of a site that access the same word as the thread's previous
// atomic operation, and records the word.
type claim struct {
	times float64
	word  trace.Addr
}

// waiting is the time that threads wait for the slowest thread, between two consecutive
// synchronisation points.
type waiting struct {
	cycles  float64
	slowest uint8
	fork    uint32 // the block at which the threads were forked
	divides uint32 // the site at which a loop was divided among the threads; 0: none
	dynamic bool   // the runtime divided the work while the program ran
	block   uint32 // the block in which the slowest thread spent the most time
}

// page records which threads use a page.
type page struct {
	number    uint32
	first     uint8 // the first thread that stored to the page
	firstSite int32
	// the thread that uses the page most; valid once a thread other than first has used the page
	owner  uint8
	shared bool
	lead   int32
	user   int32   // a site at which the owner uses the page
	far    float64 // additional cycles for another socket's memory, for threads that did not store first
	moved  float64 // like the field far, but only for lines that these threads fetch for the first time
}

// line records the cores that have a cache line. It is apart from the line's history, so that the
// lines of a run fit in the host's caches.
type line struct {
	sharers, lost uint64 // a bit for each core
}

// history records the threads that stored to the words of a cache line.
type history struct {
	// by word: 1 + the only thread that stored to the word, or the constant several
	owner     [words]uint8
	modified  uint32 // 1 + the number of the line in replay.modified; 0 if no core has lost the line
	contended bool   // several cores invalidated the line in each other's caches
	severally bool   // several threads stored to the same word of the line
	// the latest access after an invalidation was to a word to which another core had stored since the
	// invalidation
	honest    bool
	exchanged bool // the latest access after an invalidation was to a word to which another thread had stored
}

// words is the number of words in a line.
const (
	wordBytes = 4
	words     = 64 / wordBytes
)

const several = 255

// numbers is a hash table with open addressing that assigns consecutive numbers to keys, in the
// order of their first use.
type numbers struct {
	slots []uint32 // 1 + the number of a key; 0 if the slot is empty
	keys  []uint64
}

// slot returns the slot that contains a key, or the slot in which the key would be stored. The
// table must not be empty.
func (t *numbers) slot(key uint64) int {
	mask := len(t.slots) - 1
	for slot := int(key*0x9e3779b97f4a7c15>>32) & mask; ; slot = (slot + 1) & mask {
		if n := t.slots[slot]; n == 0 || t.keys[n-1] == key {
			return slot
		}
	}
}

// find returns the number of a key. ok is false if the key has no number.
func (t *numbers) find(key uint64) (number uint32, ok bool) {
	if len(t.keys) == 0 {
		return 0, false
	}
	number = t.slots[t.slot(key)]
	return number - 1, number > 0
}

// need returns the number of a key. It assigns the next number to a new key.
func (t *numbers) need(key uint64) uint32 {
	if number, ok := t.find(key); ok {
		return number
	}
	if 2*len(t.keys) >= len(t.slots) {
		t.slots = make([]uint32, max(64, 2*len(t.slots)))
		for i, key := range t.keys {
			t.slots[t.slot(key)] = uint32(i) + 1
		}
	}
	slot := t.slot(key)
	t.keys = append(t.keys, key)
	t.slots[slot] = uint32(len(t.keys))
	return uint32(len(t.keys)) - 1
}

// lineTable finds lines by line number. Lines with consecutive numbers form a group.
type lineTable struct {
	numbers numbers // numbers of groups, by the high bits of the line numbers
	// by number of the group; slices, because indexing a pointer to an array also reads its first element
	groups    [][]line
	histories [][]history
}

const (
	groupShift = 6
	groupMask  = 1<<groupShift - 1
	mostGroups = 1 << 16
)

// lineAt returns the line with the given index.
func (t *lineTable) lineAt(index uint32) *line { return &t.groups[index>>groupShift][index&groupMask] }

// historyAt returns the history of the line with the given index.
func (t *lineTable) historyAt(index uint32) *history {
	return &t.histories[index>>groupShift][index&groupMask]
}

// known returns the index of a line. ok is false if the table contains no line of the line's group.
func (t *lineTable) known(at trace.Line) (index uint32, ok bool) {
	group, ok := t.numbers.find(at >> groupShift)
	return group<<groupShift + uint32(at)&groupMask, ok
}

// find returns the history of a line, or nil if the table contains no line of the line's group.
func (t *lineTable) find(at trace.Line) *history {
	if index, ok := t.known(at); ok {
		return t.historyAt(index)
	}
	return nil
}

// index returns the index of a line. If the line is new, its group is assigned a number, but no
// memory yet.
func (t *lineTable) index(at trace.Line) uint32 {
	return t.numbers.need(at>>groupShift)<<groupShift + uint32(at)&groupMask
}

// grow returns a line by its index, after it has added all groups up to the group of the line.
func (t *lineTable) grow(index uint32) *line {
	for int(index>>groupShift) >= len(t.groups) {
		t.groups = append(t.groups, make([]line, 1<<groupShift))
		t.histories = append(t.histories, make([]history, 1<<groupShift))
	}
	return t.lineAt(index)
}

// need returns the history of a line, and adds the line if it is new.
func (t *lineTable) need(at trace.Line) *history {
	index := t.index(at)
	t.grow(index)
	return t.historyAt(index)
}

// each calls the function do for every line of every group.
func (t *lineTable) each(do func(at trace.Line, of *history)) {
	for g, key := range t.numbers.keys {
		for i := range t.groups[g] {
			do(key<<groupShift+uint64(i), &t.histories[g][i])
		}
	}
}

// lru is a single-level LRU cache. Each set contains the tags of its lines, most recently used
// first. A tag is a number that identifies a line, and is not 0.
type lru[Tag uint32 | uint64] struct {
	sets  uint64
	mask  uint64 // sets-1 if sets are a power of two; otherwise 0
	ways  int
	tags  []Tag
	first []Tag // the first tag of each set. Most accesses only read this slice, which is small

	touched uint64 // a value computed from prefetched tags, so that the compiler keeps the loads
}

func newLRU[Tag uint32 | uint64](lines, ways uint64) *lru[Tag] {
	c := &lru[Tag]{sets: lines / ways, ways: int(ways), tags: make([]Tag, lines), first: make([]Tag, lines/ways)}
	if bits.OnesCount64(c.sets) == 1 {
		c.mask = c.sets - 1
	}
	return c
}

// number returns the number of a line's set.
func (c *lru[Tag]) number(line uint64) int {
	switch {
	case c.mask != 0:
		return int(line & c.mask)
	case c.sets > 1:
		return int(line % c.sets)
	}
	return 0
}

// set returns the tags of a set.
func (c *lru[Tag]) set(number int) []Tag {
	lo := number * c.ways
	return c.tags[lo : lo+c.ways : lo+c.ways]
}

// use performs an access, and reports whether it hits.
func (c *lru[Tag]) use(line uint64, tag Tag) bool {
	number := c.number(line)
	if c.first[number] == tag {
		return true
	}
	c.first[number] = tag
	set := c.set(number)
	last := tag
	for i := range set[:min(fewWays, len(set))] {
		set[i], last = last, set[i]
		if last == tag {
			return true
		}
	}
	if len(set) <= fewWays {
		return false
	}
	set = set[fewWays:]
	at := slices.Index(set, tag)
	found := at >= 0
	if !found {
		at = len(set) - 1
	}
	copy(set[1:at+1], set[:at])
	set[0] = last
	return found
}

// fewWays is the largest number of ways that are moved one at a time.
const fewWays = 16

// drop removes a line.
func (c *lru[Tag]) drop(line uint64, tag Tag) {
	number := c.number(line)
	set := c.set(number)
	if i := slices.Index(set, tag); i >= 0 {
		copy(set[i:], set[i+1:])
		set[len(set)-1] = 0
		c.first[number] = set[0]
	}
}

// recent is a fully associative cache of [firstPages] pages. Pages are in one list, most recently
// used first, and in lists by hash value. Entry 0 is the end of all lists.
type recent struct {
	pages               [firstPages + 1]uint64
	before, next, chain [firstPages + 1]uint8
	heads               [2 * firstPages]uint8
	held                uint8
}

func (c *recent) head(page uint64) *uint8 {
	return &c.heads[page*0x9e3779b97f4a7c15>>32%uint64(len(c.heads))]
}

// use performs an access, and reports whether it hits.
func (c *recent) use(page uint64) bool {
	head := c.head(page)
	entry := *head
	for entry != 0 && c.pages[entry] != page {
		entry = c.chain[entry]
	}
	found := entry != 0
	if !found && c.held < firstPages {
		c.held++
		entry = c.held
	} else {
		if !found {
			entry = c.before[0]
			link := c.head(c.pages[entry])
			for *link != entry {
				link = &c.chain[*link]
			}
			*link = c.chain[entry]
		}
		c.next[c.before[entry]], c.before[c.next[entry]] = c.next[entry], c.before[entry]
	}
	if !found {
		c.pages[entry], c.chain[entry], *head = page, *head, entry
	}
	c.before[entry], c.next[entry] = 0, c.next[0]
	c.before[c.next[0]], c.next[0] = entry, entry
	return found
}

// rename returns the address of a reference after a change.
type rename func(r *row, site int) trace.Addr

// replay is the state of one replay. In a replay of several threads, references are prepared while
// earlier references are passed to the caches: the fields before the first gap are used by both,
// the next fields by the preparation, and the remaining fields by the caches.
type replay struct {
	*counts
	to        rename // nil if addresses are unchanged
	shift     uint   // log2 of the line size
	pageShift uint
	like      bool // strides are only needed for sites with atomic operations
	levels    []hierarchy.Cache
	placer    *placer // nil if there is only one thread, or if like is set
	// numbers of the synchronisation points at which the counts are stored, ascending; the replay ends
	// at the last of them. Empty: the replay ends at the end of the trace
	until    []int
	native   []uint64          // size of the widest machine access, by site
	atomic   []bool            // by site: whether it performs atomic operations
	locks    func(uint32) bool // whether a block ends with a call that waits for a lock; nil if no block does
	perFetch []float64         // cycles per fetch, by site and level
	perVisit []float64         // cycles per execution, by block
	perMiss  float64           // cycles per coherence miss
	last     []lastOf          // the last reference, by site and thread
	uses     []siteAccesses    // by site

	_ gap

	groups [mostCores]struct { // by thread: the group of lines looked up last
		key    trace.Line // number of the group, plus one
		number uint32
	}
	overfull bool // there are too many groups

	schedule

	caches   [][]*lru[uint32] // caches by level and number; a tag is the index of a line, plus one
	group    []int            // by level: number of cores that share a cache
	private  int              // number of levels that are private to a core
	used     int              // number of lines that have been used
	modified []uint16         // the results of modifiedOf, by number of the line
	numCores int              // number of cores that run threads, also threads without references
	cores    [mostCores]core
	taken    uint64      // number of references
	met      int         // number of synchronisation points
	begun    []beginning // the counts at some synchronisation points
	enough   atomic.Bool // the replay has reached its last synchronisation point (until)
	prepared []row       // the accesses of the current reference, if there is only one thread
	// number of lock operations, and of atomic operations on the same word as the previous atomic
	// operation, since the last synchronisation point
	claims   int
	fork     uint32
	divides  uint32
	dynamic  bool
	broken   bool
	followed *followed // accesses of the only thread; nil if there are several threads

	// differ is a mask of bits of line numbers. Lines with different values of these bits are in
	// different sets of every cache. For each value of the bits, latest contains the most recently
	// accessed line: a repeated access to this line hits in every cache and changes no cache.
	differ uint64
	latest []uint64 // line numbers plus one; nil if misses are not counted
}

// core is the state of a core: its caches, and the lines that it used most recently.
type core struct {
	near   [nearLines + 1]uint64 // the most recently used lines, plus one
	caches []*lru[uint32]        // the cache that the core uses in each level
	latest uint64                // the most recently used page, plus one

	work    float64   // cycles of the executed blocks
	waited  float64   // cycles for lines that no other core invalidated
	began   float64   // value of work at the last synchronisation point
	awaited float64   // value of waited at the last synchronisation point
	longest []float64 // cycles by block since the last synchronisation point
	ran     []bool    // by block: whether the block is listed in blocks
	blocks  []uint32  // the blocks that were executed since the last synchronisation point
	block   uint32
}

type lastOf struct {
	addr   trace.Addr
	stride int64
	seen   bool
}

// parts returns the parts of the trace that replays simulate.
func (r *run) parts() parts {
	rows := r.loops.Tree().Rows()
	if rows <= mostReplayed {
		return parts{}
	}
	return parts{rows / numParts, mostSampled / numParts}
}

// rows returns the number of rows in a replay.
func (r *run) rows() uint64 {
	if p := r.parts(); p.period > 0 {
		return p.rows * numParts
	}
	return r.loops.Tree().Rows()
}

// tooLong reports whether the trace is too long to be replayed. Runs with several threads cannot be
// replayed in parts, because the threads are replayed from one synchronisation point to the next.
func (r *run) tooLong() bool {
	rows := r.loops.Tree().Rows()
	return rows > mostSkimmed || rows > mostReplayed && len(r.p.Totals.Threads) > 1
}

// scale converts the counts of the replayed parts to counts of the whole run. The references of
// each site are the site's references in the profile.
func (c *counts) scale(p *profile.Profile) {
	for i := range c.sites {
		n := &c.sites[i]
		if n.references == 0 {
			continue
		}
		by := float64(p.Sites.Code[i].References()) / float64(n.references)
		n.scale(by)
		for _, of := range []*uint64{&n.accesses, &n.near} {
			*of = uint64(float64(*of)*by + 0.5)
		}
		n.second, n.walks = n.second*by, n.walks*by
		for k := range c.misses {
			c.misses[k][i] *= by
		}
	}
}

// scale multiplies the counts of references.
func (n *siteCounts) scale(by float64) {
	for _, of := range []*uint64{&n.references, &n.split} {
		*of = uint64(float64(*of)*by + 0.5)
	}
	for k := range n.strides {
		n.strides[k] = uint64(float64(n.strides[k])*by + 0.5)
	}
}

// canReplay reports whether the trace can be replayed.
func (r *run) canReplay() bool {
	if r.loops == nil || r.p.State.Partial || r.p.Sampled != nil || r.tooLong() {
		return false
	}
	for _, l := range r.Machine.Levels {
		ways := uint64(l.Ways)
		if l.Full() {
			ways = l.Lines()
		}
		if l.Hashed || ways == 0 || ways > mostWays || l.Lines()%ways != 0 || l.LineBytes != r.p.Sites.LineBytes {
			return false
		}
	}
	return true
}

// again replays the trace. If the parameter to is not nil, it changes the addresses of references.
// If the parameter order is not nil, it changes the order of references. Pages have 1<<pageShift
// bytes. again returns nil if the trace cannot be replayed. If the parameter levels is false and
// there is only one thread, again does not count misses, because [run.exactMisses] returns the
// misses of the unchanged run. Several replays may run at the same time.
func (r *run) again(to rename, order *reorder, pageShift uint, levels bool) *counts {
	return r.replay(to, order, pageShift, levels, nil, false)
}

// againLike replays a trace of several threads like [run.again]. The change preserves the strides
// and the offsets in pages, so againLike copies the numbers of translations, the strides and the
// pages from the replay of the unchanged run, and does not count them again. For a long run, it
// simulates only the beginning, and scales the differences to the whole run.
func (r *run) againLike(of *counts, to rename) *counts {
	return r.replay(to, nil, pageShift, true, of, true)
}

// replay is [run.again] or, if like is set, [run.againLike]. If unchanged is not nil, it contains
// the counts of the unchanged run, and replay simulates only the beginning of a long run of several
// threads if that is sufficient.
func (r *run) replay(to rename, order *reorder, pageShift uint, levels bool, unchanged *counts, like bool) *counts {
	if !r.canReplay() {
		return nil
	}
	parts, rows := r.parts(), r.rows()
	if parts.period > 0 {
		levels = true // the misses of both runs must come from the same parts
	}
	if parts.period > 0 && order != nil { // a change of order needs whole loops, but a part may contain only a piece of a loop
		return nil
	}
	r.replaying.Lock()
	possible := r.replayed+rows <= mostRows
	if possible {
		r.replayed += rows
	}
	r.replaying.Unlock()
	if !possible {
		return nil
	}
	if to != nil || order != nil {
		r.changes.Add(1)
	}
	n := len(r.p.Sites.Code)
	c := &counts{sites: make([]siteCounts, n), claimed: make([]claim, n), falsely: make([]float64, n), severally: make([]float64, n), exchanged: make([]float64, n), team: max(1, len(r.p.Totals.Threads))}
	for range r.Machine.Levels {
		c.misses = append(c.misses, make([]float64, n))
		c.coherence = append(c.coherence, make([]float64, n))
	}
	s := &replay{counts: c, to: to, shift: uint(bits.TrailingZeros32(r.p.Sites.LineBytes)), pageShift: pageShift, levels: r.Machine.Levels,
		caches: make([][]*lru[uint32], len(c.misses)), last: make([]lastOf, n*min(c.team, mostCores)), uses: bySite[siteAccesses](n)}
	s.schedule = schedule{tree: r.loops.Tree(), take: s.row, index: newSiteIndex(r.p), joined: s.join, forked: s.begin, parts: parts, goOn: r.GoOn, threads: c.team, creates: r.createCalls(), joins: r.joinCalls()}
	if order != nil {
		order.give, s.order, s.take = s.row, order, order.take
	}
	if c.team > 1 {
		switch s.like = like; {
		case like && unchanged.beginning != nil:
			s.until = []int{unchanged.beginning.met}
		case !like && unchanged != nil && unchanged.steady != nil:
			s.until = []int{unchanged.steady[0].met, unchanged.steady[1].met}
		}
		if !s.like {
			c.pages = map[trace.Addr]*page{}
			s.placer = newPlacer(c, s.shift, pageShift)
		}
		s.reuse, s.divide, s.take = r.newReuse(), s.split, s.use
		s.goOn = func() bool { return !s.overfull && !s.enough.Load() && r.GoOn() }
	}
	if to == nil {
		s.alloc = s.allocated
	}
	s.numCores = coresOf(s.tree)
	s.private = len(c.misses)
	for k, l := range r.Machine.Levels {
		shared := int(min(max(l.SharedBy, 1), mostCores))
		s.group = append(s.group, shared)
		if shared > 1 {
			s.private = min(s.private, k)
		}
	}
	memory := r.cost.latency[len(c.misses)-1]
	for i := range n {
		of := &r.p.Sites.Code[i]
		for k := range c.misses {
			wait := r.cost.latency[k] / r.cost.run.overlap[i]
			if k > 0 {
				wait -= r.cost.latency[k-1] / r.cost.run.overlap[i]
			}
			s.perFetch = append(s.perFetch, wait)
		}
		s.native = append(s.native, nativeBytes(r.cost.program, of))
		s.atomic = append(s.atomic, r.cost.program != nil && int64(of.Number) < int64(len(r.cost.program.Sites)) && r.cost.program.Sites[of.Number].Flags&trace.AtomicSite != 0)
		if s.placer != nil {
			s.placer.remote[i] = remoteExtra * memory / r.cost.run.overlap[i]
		}
	}
	s.perMiss, s.locks = r.handOver(), r.lockCalls()
	if r.cost.program != nil {
		s.perVisit = make([]float64, len(r.cost.program.Blocks))
		for b := range s.perVisit {
			s.perVisit[b] = share(r.cost.hits.Blocks[b].Cycles, r.cost.visits[b])
		}
	}
	s.pool = &r.pool
	done := false
	if c.team > 1 {
		if s.placer != nil {
			s.placer.start()
		}
		done = s.schedule.run() || s.enough.Load()
		if s.placer != nil {
			s.placer.finish()
			s.translations(s.placer.second, s.placer.walks)
		}
	} else {
		done = s.replayAlone(levels)
	}
	if !done || s.broken || len(s.until) > len(s.begun) {
		return nil
	}
	for i := range c.sites {
		if like {
			s.uses[i].second, s.uses[i].walks = unchanged.sites[i].second, unchanged.sites[i].walks
			c.sites[i] = unchanged.sites[i]
		}
		c.sites[i].siteAccesses = s.uses[i]
	}
	switch {
	case len(s.until) == 1:
		c.extend(unchanged, &s.begun[0])
	case len(s.until) > 1:
		c.extendSteady(unchanged, s.begun)
	case unchanged == nil:
		c.steady = c.findSteady(s.begun)
		if i := slices.IndexFunc(s.begun, c.represents); i >= 0 {
			c.beginning = &s.begun[i]
		}
	}
	c.blocks = sortBlocks(c.blocks)
	if parts.period > 0 {
		c.scale(r.p)
	}
	return c
}

// createCalls returns a function that reports whether a block ends with a call that creates a
// thread.
func (r *run) createCalls() func(uint32) bool {
	return r.callsOf("pthread_create", "thrd_create", "_ZNSt6thread15_M_start_thread")
}

// joinCalls returns a function that reports whether a block ends with a call that waits for a
// thread to end.
func (r *run) joinCalls() func(uint32) bool {
	return r.callsOf("pthread_join", "thrd_join", "_ZNSt6thread4joinEv")
}

// lockCalls returns a function that reports whether a block ends with a call that waits for a lock;
// nil if no block does.
func (r *run) lockCalls() func(uint32) bool {
	return r.callsOf("pthread_mutex_lock", "__kmpc_critical", "mtx_lock", "omp_set_lock")
}

// callsOf returns a function that reports whether a block ends with a call of a function whose name
// begins with one of names. It returns nil if no block does.
func (r *run) callsOf(names ...string) func(uint32) bool {
	p := r.cost.program
	if p == nil {
		return nil
	}
	does, any := make([]bool, len(p.Blocks)), false
	for b := range p.Blocks {
		callee := p.Blocks[b].Callee
		does[b] = callee != "" && slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(callee, name) })
		any = any || does[b]
	}
	if !any {
		return nil
	}
	return func(b uint32) bool { return int64(b) < int64(len(does)) && does[b] }
}

// siteIndex finds the sites of references in the profile.
type siteIndex struct {
	byNumber []int32
	byPC     map[sitePC]int32 // used for a trace without site numbers
}

type sitePC struct {
	pc   uint64
	kind trace.Kind
}

func newSiteIndex(p *profile.Profile) *siteIndex {
	x := &siteIndex{byPC: map[sitePC]int32{}}
	for i := range p.Sites.Code {
		s := &p.Sites.Code[i]
		if s.Number == profile.NoSite {
			x.byPC[sitePC{s.PC, s.Kind}] = int32(i)
			continue
		}
		if s.Number > 1<<24 {
			continue
		}
		for int(s.Number) >= len(x.byNumber) {
			x.byNumber = append(x.byNumber, -1)
		}
		x.byNumber[s.Number] = int32(i)
	}
	return x
}

// indexOf returns the index of the site of a reference, or -1 if the profile has no such site.
func (x *siteIndex) indexOf(site uint32, pc trace.Addr, kind trace.Kind) int32 {
	if int64(site) < int64(len(x.byNumber)) {
		return x.byNumber[site]
	}
	if x.byNumber == nil {
		if i, ok := x.byPC[sitePC{pc, kind}]; ok {
			return i
		}
	}
	return -1
}

// row processes a row of the trace.
func (s *replay) row(r *row) {
	if !r.kind.IsReference() || r.index < 0 || s.prepare(r) {
		s.use(r)
		return
	}
	s.prepared = s.pieces(append(s.prepared[:0], *r))
	for i := range s.prepared {
		s.use(&s.prepared[i])
	}
}

// prepare changes the address of a reference, and counts everything that does not depend on the
// order of the threads. If there are several threads, the site number of the row becomes the index
// of the line. whole reports whether the reference accesses a single line. If the reference
// accesses several lines, pieces must divide it.
func (s *replay) prepare(r *row) (whole bool) {
	if s.scatters(r) {
		return false
	}
	i := int(r.index)
	if s.to != nil {
		r.addr = s.to(r, i)
	}
	addr, bytes := r.addr, uint64(max(1, r.bytes))
	c := &s.sites[i]
	if !s.like || s.atomic[i] {
		r.again = s.atomic[i] && s.lastAt(i, r.thread).addr == addr
		s.classify(c, i, r, addr)
	}
	first, last := addr>>s.shift, (addr+bytes-1)>>s.shift
	if s.threads > 1 {
		r.site = s.indexOf(r.thread, first)
	}
	if first == last {
		return true
	}
	borders := splits(addr, bytes, s.native[i], s.shift)
	c.split += borders
	r.splits = uint8(min(borders, math.MaxUint8))
	return false
}

// split prepares the reference in the last row, and replaces the row with a row for each line that
// the reference accesses.
func (s *replay) split(rows []row) []row {
	if s.prepare(&rows[len(rows)-1]) {
		return rows
	}
	return s.pieces(rows)
}

// pieces replaces the prepared reference in the last row with a row for each line that the
// reference accesses.
func (s *replay) pieces(rows []row) []row {
	n := len(rows) - 1
	r := rows[n]
	if s.scatters(&r) {
		return s.scattered(rows[:n], r)
	}
	end := r.addr + uint64(max(1, r.bytes))
	first, last := r.addr>>s.shift, (end-1)>>s.shift
	for at := first; at <= last && at-first < 1<<20; at++ {
		if at > first {
			rows = append(rows, row{addr: at << s.shift, index: r.index, site: s.indexOf(r.thread, at), thread: r.thread, kind: r.kind})
		}
		piece := &rows[len(rows)-1]
		piece.bytes = uint32(min(end, (at+1)<<s.shift) - piece.addr)
	}
	return rows
}

// scatters reports whether a change of addresses may move the words of a memory range apart.
func (s *replay) scatters(r *row) bool { return s.to != nil && r.bytes > 2<<s.shift }

// indexOf returns the index of a line that a thread accesses, or 0 if there is only one thread.
func (s *replay) indexOf(thread uint8, at trace.Line) uint32 {
	if s.threads < 2 {
		return 0
	}
	g := &s.groups[thread]
	if key := at>>groupShift + 1; g.key != key {
		g.key, g.number = key, s.lines.index(at)>>groupShift
		s.overfull = s.overfull || len(s.lines.numbers.keys) > mostGroups
	}
	return g.number<<groupShift + uint32(at)&groupMask
}

// use processes a prepared reference to a single line, or a row that is not a reference.
func (s *replay) use(r *row) {
	if !r.kind.IsReference() {
		if s.threads > 1 {
			s.event(r)
		}
		return
	}
	i := int(r.index)
	if i < 0 {
		return
	}
	s.taken++
	if s.open && r.again {
		s.claims++
		s.claimed[i].times++
		s.claimed[i].word = r.addr
	}
	if r.splits > 0 {
		s.clock[r.thread] += splitCycles * float64(r.splits)
	}
	s.access(i, r)
}

// stores reports whether a reference is a store.
func (r *row) stores() bool {
	return r.kind == trace.Store || r.kind == trace.Modify || r.kind == trace.RangeWrite
}

// scattered appends the accesses to a memory range, such as the target of a copy or fill, whose words
// are moved apart by a change of addresses.
func (s *replay) scattered(rows []row, r row) []row {
	const word = 8
	i := int(r.index)
	at := r
	var lately [2]trace.Line
	for at.addr = r.addr; at.addr-r.addr < uint64(r.bytes); at.addr += word {
		addr := s.to(&at, i)
		line := addr >> s.shift
		if line == lately[0] || line == lately[1] {
			continue
		}
		lately[0], lately[1] = line, lately[0]
		rows = append(rows, row{addr: addr, bytes: word, index: r.index, site: s.indexOf(r.thread, line), thread: r.thread, kind: r.kind})
	}
	if !s.like {
		s.classify(&s.sites[i], i, &r, s.to(&r, i))
	}
	return rows
}

// splits returns the number of accesses of a reference that cross a line boundary. The machine
// divides a reference into accesses of at most native bytes each.
func splits(addr trace.Addr, bytes, native uint64, shift uint) (n uint64) {
	if bytes > 16*native {
		return 0 // a memory range, which the runtime library accesses in pieces of its own choice
	}
	for border := (addr>>shift + 1) << shift; border < addr+bytes; border += 1 << shift {
		if (border-addr)%native != 0 {
			n++
		}
	}
	return n
}

// lastAt returns the last reference of a site and thread.
func (s *replay) lastAt(site int, thread uint8) *lastOf {
	if s.threads < 2 {
		return &s.last[site]
	}
	team, number := min(s.team, mostCores), int(thread)
	if number >= team {
		number %= team
	}
	return &s.last[site*team+number]
}

// classify counts a reference by its distance from the previous reference of the same site and
// thread.
func (s *replay) classify(c *siteCounts, i int, r *row, addr trace.Addr) {
	if c.references == 0 {
		c.low, c.high = addr, addr
	}
	c.references++
	c.low, c.high = min(c.low, addr), max(c.high, addr+uint64(max(1, r.bytes))-1)
	l := s.lastAt(i, r.thread)
	by := int64(addr - l.addr)
	class := profile.IrregularStride
	switch {
	case !l.seen:
	case by == 0:
		class = profile.ZeroStride
	case magnitude(by) == int64(r.bytes):
		class = profile.UnitStride
	case by == l.stride:
		class = profile.ConstantStride
		c.step = uint64(magnitude(by))
	}
	c.strides[class]++
	if below := c.grain - 1; by != l.stride && l.seen && c.grain != 1 && (c.grain&below != 0 || uint64(by)&below != 0) {
		c.grain = gcd(uint64(magnitude(by)), c.grain)
	}
	l.addr, l.stride, l.seen = addr, by, true
}

// access processes an access of a site to a line.
func (s *replay) access(i int, r *row) {
	c := &s.uses[i]
	c.accesses++
	number, at := r.thread, r.addr>>s.shift
	k := &s.cores[number]
	tag := at + 1
	position := 0
	for position < len(k.near) && k.near[position] != tag {
		position++
	}
	store := s.threads > 1 && r.stores()
	near := position < len(k.near)
	if near {
		c.near++
		if position == 0 {
			if store {
				s.share(s.lines.lineAt(r.site), number, at, r, store)
			}
			return
		}
	} else {
		position--
	}
	for ; position > 0; position-- {
		k.near[position] = k.near[position-1]
	}
	k.near[0] = tag
	if f := s.followed; f != nil {
		if s.latest != nil && s.latest[at&s.differ] != tag {
			s.latest[at&s.differ] = tag
			f.lines, f.lineSites = append(f.lines, at), append(f.lineSites, int32(i))
		}
		if page := r.addr >> s.pageShift; k.latest != page+1 {
			k.latest = page + 1
			f.pages, f.pageSites = append(f.pages, page), append(f.pageSites, int32(i))
		}
		return
	}
	if k.caches == nil {
		s.start(int(number))
	}
	hit, lost := k.caches[0].use(at, r.site+1), false
	// If another core had stored to the line, the line would not be in this core's cache.
	if store || !near && (!hit || s.private == 0) {
		of := s.lines.grow(r.site)
		if of.sharers == 0 {
			if s.used++; s.used > mostShared {
				s.broken = true
				return
			}
		}
		if lost = s.share(of, number, at, r, store); lost {
			for level := range s.private {
				s.coherence[level][i]++
			}
			s.clock[number] += s.perMiss
			was := s.lines.historyAt(r.site)
			if !was.honest {
				s.falsely[i]++
			}
			if was.severally {
				s.severally[i]++
			}
			if was.exchanged {
				s.exchanged[i]++
			}
		}
	}
	for level := 0; ; {
		if !hit {
			s.misses[level][i]++
			if !lost {
				cycles := s.perFetch[i*len(k.caches)+level]
				s.clock[number] += cycles
				k.waited += cycles
			}
		}
		if level++; level == len(k.caches) {
			break
		}
		hit = k.caches[level].use(at, r.site+1)
	}
	if s.placer != nil {
		s.placer.add(visit{at: at, line: r.site, site: int32(i), thread: number, store: store, missed: !hit, lost: lost})
	}
}

// followed contains the accesses to lines and pages that have not been passed to the caches yet, in
// a replay with one thread.
type followed struct {
	_                    gap
	lines, pages         []uint64
	lineSites, pageSites []int32
	_                    gap
}

// mostLatest is the number of recently used lines that are remembered, which is a power of two.
const mostLatest = 1 << 10

func (f *followed) reset() {
	f.lines, f.lineSites, f.pages, f.pageSites = f.lines[:0], f.lineSites[:0], f.pages[:0], f.pageSites[:0]
}

// rowsAtATime is the approximate number of rows in a batch.
const rowsAtATime = 1 << 14

// replayAlone replays a trace with one thread. Nothing else changes the caches, so accesses are
// made in batches while the next accesses are read. If levels is false, misses are not counted. It
// returns false if the replay was stopped.
func (s *replay) replayAlone(levels bool) bool {
	tlb := newTLB()
	var caches []*lru[uint64]
	for _, l := range s.levels {
		caches = append(caches, cacheOf[uint64](l))
	}
	second, walks := bySite[float64](len(s.sites)), bySite[float64](len(s.sites))
	tasks := 3
	if s.differ = mostLatest - 1; levels {
		s.latest = make([]uint64, mostLatest)
	} else {
		s.misses = nil
	}
	for _, cache := range caches {
		s.differ &= cache.sets&-cache.sets - 1
	}
	for level := range s.misses {
		s.misses[level] = bySite[float64](len(s.sites))
		tasks++
	}
	now, next := new(followed), new(followed)
	s.followed = next
	var rows, read []row
	for more := true; more || len(rows) > 0 || len(now.pages)+len(now.lines) > 0; {
		last := !more
		parallel.Each(tasks, func(task int) {
			switch task {
			case 0:
				if read = read[:0]; more {
					read, more = s.read(read, rowsAtATime)
				}
			case 1:
				for j := range rows {
					s.take(&rows[j])
				}
				if s.order != nil && last {
					s.order.flush()
				}
			case 2:
				sites := now.pageSites
				for j, page := range now.pages {
					tlb.use(page, sites[j], second, walks)
				}
			default:
				caches[task-3].follow(now.lines, now.lineSites, s.misses[task-3])
			}
		})
		rows, read = read, rows
		now, next = next, now
		next.reset()
		s.followed = next
	}
	s.translations(second, walks)
	return !s.stopped
}

// translations sets the numbers of translations of each site.
func (s *replay) translations(second, walks []float64) {
	for i := range s.uses {
		s.uses[i].second, s.uses[i].walks = second[i], walks[i]
	}
}

// bySite returns a slice with an element for each site. The slice shares no cache line of the host
// with other memory.
func bySite[T any](sites int) []T {
	const around = 16
	return make([]T, around+sites+around)[around : around+sites]
}

// follow performs accesses, and counts the misses of each site.
func (c *lru[Tag]) follow(lines []uint64, sites []int32, misses []float64) {
	const ahead = 12
	touched := uint64(0)
	for j, line := range lines {
		if j+ahead < len(lines) {
			// prefetch the tags, so that they are in the host's cache when they are needed
			touched += uint64(c.tags[c.number(lines[j+ahead])*c.ways])
		}
		if !c.use(line, Tag(line+1)) {
			misses[sites[j]]++
		}
	}
	c.touched = touched
}

// cacheOf returns an empty cache.
func cacheOf[Tag uint32 | uint64](l hierarchy.Cache) *lru[Tag] {
	ways := uint64(l.Ways)
	if l.Full() {
		ways = l.Lines()
	}
	return newLRU[Tag](l.Lines(), ways)
}

// start creates the caches of a core.
func (s *replay) start(number int) {
	k := &s.cores[number]
	for level, l := range s.levels {
		n := number / s.group[level]
		for len(s.caches[level]) <= n {
			s.caches[level] = append(s.caches[level], nil)
		}
		if s.caches[level][n] == nil {
			s.caches[level][n] = cacheOf[uint32](l)
		}
		k.caches = append(k.caches, s.caches[level][n])
	}
}

// share keeps a line coherent: a store invalidates it in the other cores. lost reports whether this
// core lost the line because another core stored to it.
func (s *replay) share(of *line, core uint8, at trace.Line, r *row, store bool) (lost bool) {
	me := uint64(1) << core
	if !store && of.sharers&me != 0 {
		return false // a core that lost the line is not among the line's sharers
	}
	if lost = of.lost&me != 0; lost || store {
		s.record(of, core, at, r, store)
	}
	of.lost &^= me
	of.sharers |= me
	return lost
}

// record updates the history of a line. If the access is a store, record invalidates the line in
// the other cores.
func (s *replay) record(of *line, core uint8, at trace.Line, r *row, store bool) {
	was, me := s.lines.historyAt(r.site), uint64(1)<<core
	lost, exchanged := of.lost&me != 0, false
	lo := (r.addr - at<<s.shift) / wordBytes
	hi := min(lo+(r.addr%wordBytes+uint64(max(1, r.bytes))-1)/wordBytes, words-1)
	for w := lo; w <= hi; w++ {
		owner := was.owner[w]
		if lost && owner != 0 && owner != core+1 {
			exchanged = true
		}
		if store {
			switch {
			case !s.open: // only one thread is running, for example before the other threads begin
			case owner == 0:
				was.owner[w] = core + 1
			case owner != core+1:
				was.owner[w], was.severally = several, true
			}
		}
	}
	accessed := uint16(1<<(hi+1) - 1<<lo)
	if lost {
		since := &s.modifiedOf(was)[core]
		was.contended, was.honest, was.exchanged = true, *since&accessed != 0, exchanged
		*since = 0
	}
	if !store {
		return
	}
	of.lost &^= me
	for others := of.sharers &^ me; others != 0; others &= others - 1 {
		other := bits.TrailingZeros64(others)
		of.lost |= 1 << other
		k := &s.cores[other]
		for level := range s.private {
			k.caches[level].drop(at, r.site+1)
		}
		for j := range k.near {
			if k.near[j] == at+1 {
				k.near[j] = 0
			}
		}
	}
	of.sharers &= me
	if of.lost != 0 {
		modified := s.modifiedOf(was)
		for lost := of.lost; lost != 0; lost &= lost - 1 {
			modified[bits.TrailingZeros64(lost)] |= accessed
		}
	}
}

// coresOf returns the number of cores on which the threads of a trace run. Threads may have events,
// but no references.
func coresOf(t *loops.Tree) int {
	threads := map[uint32]bool{}
	for _, of := range t.References() {
		threads[of.Thread] = true
	}
	return min(len(threads), mostCores)
}

// modifiedOf returns, for each core, a bit for each word of a line to which other cores have stored
// since the core lost the line.
func (s *replay) modifiedOf(of *history) []uint16 {
	if of.modified == 0 {
		s.modified = append(s.modified, make([]uint16, s.numCores)...)
		of.modified = uint32(len(s.modified) / s.numCores)
	}
	begin := int(of.modified-1) * s.numCores
	return s.modified[begin : begin+s.numCores]
}

// event processes a row that is not a reference.
func (s *replay) event(r *row) {
	switch r.kind {
	case trace.BlockEntry, trace.BareBlock:
		if s.locks != nil && s.open && s.locks(r.site) {
			s.claims++
		}
		if int(r.site) < len(s.perVisit) {
			cycles := s.perVisit[r.site]
			k := &s.cores[r.thread]
			s.clock[r.thread] += cycles
			k.work += cycles
			k.block = r.site
			if s.threads > 1 && s.open {
				if k.longest == nil {
					k.longest = make([]float64, len(s.perVisit))
					k.ran = make([]bool, len(s.perVisit))
				}
				if !k.ran[r.site] {
					k.ran[r.site] = true
					k.blocks = append(k.blocks, r.site)
				}
				k.longest[r.site] += cycles
			}
		}
	case trace.ParallelBegin:
		if s.fork = r.site; s.fork == 0 {
			s.fork = s.cores[r.thread].block
		}
	case trace.LoopBegin:
		s.divides, s.dynamic = r.site, s.dynamic || !static(r.addr)
	case trace.TaskBegin:
		s.dynamic = true
	}
}

// allocated processes an allocation.
func (s *replay) allocated(addr trace.Addr, bytes uint64) {
	if len(s.blocks) < mostShared {
		s.blocks = append(s.blocks, block{addr: addr, bytes: bytes})
	}
}

// static reports whether an OpenMP schedule divides a loop before the loop runs.
func static(schedule trace.Addr) bool {
	const chunked, plain, ordered, modifiers = 33, 34, 32, 1<<29 | 1<<30
	schedule &^= modifiers
	return schedule == chunked || schedule == plain || schedule == chunked+ordered || schedule == plain+ordered
}

// mostClaims is the largest number of atomic operations on one word, or of lock operations, that a
// thread needs for a sum or a barrier. More operations mean that threads take their work from a
// queue, so an idle thread would take more work.
const mostClaims = 8

// join synchronises the threads, after all threads have waited for the slowest thread. Only
// differences due to the division of work count. If a thread is slower because its share of the
// work misses more often, that is a separate problem.
func (s *replay) join() {
	slowest, latest, sum, waited, working := 0, 0.0, 0.0, 0.0, 0
	for i := range mostCores {
		if s.worked>>i&1 == 0 {
			continue
		}
		k := &s.cores[i]
		own := k.work - k.began
		if !s.regions && uint8(i) == s.master { // the master waits for the threads that it started
			continue
		}
		working++
		sum += own
		waited += k.waited - k.awaited
		if own > latest {
			slowest, latest = i, own
		}
	}
	if working > 1 {
		w := waiting{cycles: (float64(working)*latest - sum) * (1 + share(waited, sum)), slowest: uint8(slowest), fork: s.fork, divides: s.divides, dynamic: s.dynamic || s.claims > mostClaims*working}
		most := -1.0
		k := &s.cores[slowest]
		for _, b := range k.blocks {
			if cycles := k.longest[b]; cycles > most || cycles == most && b < w.block {
				w.block, most = b, cycles
			}
		}
		s.idle = append(s.idle, w)
	}
	for i := range s.cores {
		k := &s.cores[i]
		for _, b := range k.blocks {
			k.longest[b], k.ran[b] = 0, false
		}
		k.blocks = k.blocks[:0]
	}
	s.divides, s.dynamic, s.claims = 0, false, 0
	s.begin()
	switch s.met++; {
	case slices.Contains(s.until, s.met):
		s.begun = append(s.begun, s.snapshot())
		s.enough.Store(len(s.begun) == len(s.until))
	case len(s.until) == 0 && s.taken >= uint64(leastBeginning+len(s.begun)*stepOfBeginnings) && len(s.begun) < mostBeginnings:
		s.begun = append(s.begun, s.snapshot())
	}
}

// begin starts the threads.
func (s *replay) begin() {
	for i := range s.cores {
		k := &s.cores[i]
		k.began, k.awaited = k.work, k.waited
	}
}

// nativeLeast is the number of bytes that every current machine can access at a time.
const nativeLeast = 16

// nativeBytes returns the size of the widest machine access that the code of a site makes.
func nativeBytes(p *trace.Program, s *profile.Site) uint64 {
	const least = nativeLeast
	if p == nil || int64(s.Number) >= int64(len(p.Sites)) {
		return least
	}
	b := p.Sites[s.Number].Block
	if int64(b) >= int64(len(p.Blocks)) || int64(p.Blocks[b].Function) >= int64(len(p.Functions)) {
		return least
	}
	float := strings.Contains(s.Type, "float") || strings.Contains(s.Type, "double")
	return uint64(max(least, p.Functions[p.Blocks[b].Function].Target.VectorBits(float)/8))
}
