package simulate

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// naive is the reference implementation. naive follows the package documentation, keeps the data of
// each line, and finds everything by linear search. The data of an 8-byte word is the number of the
// store that wrote it.
type naive struct {
	h        hierarchy.Hierarchy
	caches   [][]*naiveLevel // data caches of each level
	icaches  [][]*naiveLevel // instruction caches of each level
	levels   []*naiveLevel   // caches for the current reference, first level first
	core     int             // the core that issues the current reference
	fetching bool            // whether the current reference is an instruction fetch
	threaded bool
	waiting  []func()   // prefetches that have not been issued yet
	off      bool       // whether coherence is off
	addr, pc trace.Addr // address of the accessed part of the reference, and address of its instruction
	states   map[busLine]map[int]byte
	msi      bool
	words    data // the contents of memory
	memory   Traffic
	now      int
}

type data map[uint64]int

// busLine is a line on a bus that connects the caches of a level.
type busLine struct {
	level, behind int
	line          uint64
}

type naiveLevel struct {
	hierarchy.Cache
	number               int
	first, end           int // the cores from first to end-1 use the cache
	sets, ways           uint64
	inclusive, exclusive bool
	lines                map[uint64]*naiveLine
	lost                 map[uint64]bool
	depth                int
	instructions         bool              // whether the cache is an instruction cache
	inserted, uses       map[[2]uint64]int // keyed by set and way: the time of the insertion, and the number of uses since then
	bits                 map[[2]uint64]bool
	rrpv                 map[[2]uint64]int
	bimodal, selector    int
	pushed               map[uint64]bool
	strides              map[trace.Addr][]trace.Addr // the addresses that each instruction has accessed since its entry was created
	strideOrder          []trace.Addr
	streams              []naiveStream     // the most recently used entry is last
	full                 *naiveLevel       // fully associative cache that determines the causes of misses
	seen                 map[uint64]bool   // the sub-blocks or lines that have been accessed
	demands              []uint64          // the lines of all demand accesses, in order
	used, emptied        map[[2]uint64]int // keyed by set and way: the time of the last use, and the time of the last removal
	draw                 *rand.Rand        // selects victims
	drops                *rand.Rand        // selects the prefetches that are dropped
	counts               *Counts
	by                   map[int]*Counts // the counts of each core
}

type naiveLine struct {
	number, set, way uint64
	words            data
	dirty            bool
	fresh            bool // whether the line was prefetched and has not been used yet
	// Keyed by address: the sub-blocks that are present, the dirty sub-blocks, and the sub-blocks
	// that a demand access has used.
	valid, changed, touched map[uint64]bool
}

type naiveStream struct {
	page  uint64
	units []uint64 // accessed units; consecutive accesses to one unit are stored once
}

func newNaive(h hierarchy.Hierarchy, cores int, o Options) *naive {
	n := &naive{h: h, words: data{}, states: map[busLine]map[int]byte{}, msi: o.Protocol == MSI, off: o.Protocol == Incoherent}
	make := func(levels []hierarchy.Cache, seed uint64) (all [][]*naiveLevel) {
		for i, c := range levels {
			each := min(max(int(c.SharedBy), 1), cores)
			all = append(all, nil)
			for first := 0; first < cores; first += each {
				l := newNaiveLevel(c, i, first, first+each, seed)
				if o.Causes {
					whole := c
					if lines := c.Lines(); whole.Replacement == hierarchy.TreePLRU && lines&(lines-1) != 0 {
						whole.Replacement = hierarchy.LRU
					}
					whole.Ways, whole.Hashed = 0, false
					l.full = newNaiveLevel(whole, 0, 0, 1, ^(seed + uint64(i) + uint64(first/each)<<32))
				}
				l.number, l.instructions = len(all[i]), seed != o.Seed
				all[i] = append(all[i], l)
			}
		}
		return all
	}
	n.caches, n.icaches = make(h.Levels, o.Seed), make(h.Instructions, o.Seed+1<<62)
	return n
}

func newNaiveLevel(c hierarchy.Cache, i, first, end int, seed uint64) *naiveLevel {
	l := &naiveLevel{
		Cache: c, depth: i, first: first, end: end, ways: uint64(c.Ways), lines: map[uint64]*naiveLine{}, lost: map[uint64]bool{},
		inserted: map[[2]uint64]int{}, uses: map[[2]uint64]int{}, bits: map[[2]uint64]bool{}, rrpv: map[[2]uint64]int{}, selector: 511,
		pushed: map[uint64]bool{}, strides: map[trace.Addr][]trace.Addr{}, seen: map[uint64]bool{},
		used: map[[2]uint64]int{}, emptied: map[[2]uint64]int{}, by: map[int]*Counts{},
	}
	if c.Ways == 0 {
		l.ways = c.Lines()
	}
	for core := first; core < end; core++ {
		l.by[core] = new(Counts)
	}
	l.counts = l.by[first]
	l.sets = c.Lines() / l.ways
	l.inclusive, l.exclusive = i > 0 && c.Inclusion == hierarchy.Inclusive, i > 0 && c.Inclusion == hierarchy.Exclusive
	seed += uint64(i) + uint64(first/(end-first))<<32
	l.draw, l.drops = rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	return l
}

// path returns the caches that a core uses for data or for instruction fetches, first level first.
func (n *naive) path(core int, fetch bool) (path []*naiveLevel) {
	for i, caches := range n.caches {
		if fetch && i < len(n.icaches) {
			caches = n.icaches[i]
		}
		for _, l := range caches {
			if l.first <= core && core < l.end {
				path = append(path, l)
			}
		}
	}
	return path
}

// setCore selects the core that issues the next reference, and specifies whether this reference is
// an instruction fetch.
func (n *naive) setCore(core int, fetch bool) {
	n.core, n.fetching = core, fetch
	for _, fetch := range []bool{!fetch, fetch} {
		n.levels = n.path(core, fetch)
		for _, l := range n.levels {
			l.counts = l.by[core]
		}
	}
}

// sum returns the total counts of a level's caches, and the number of lines in these caches.
func sum(caches []*naiveLevel) (sum Counts, lines int) {
	for _, l := range caches {
		lines += len(l.lines)
		for _, c := range l.by {
			sum.add(c)
		}
	}
	return sum, lines
}

func (l *naiveLevel) lineSize() uint64 { return uint64(l.LineBytes) }

func (l *naiveLevel) set(line uint64) uint64 {
	if !l.Hashed || l.sets == 1 {
		return line % l.sets
	}
	width := 0
	for 1<<width < l.sets {
		width++
	}
	var number uint64
	for bit := range 64 {
		number ^= line >> bit & 1 << (bit % width)
	}
	return number % l.sets
}

func (n *naive) use(l *naiveLevel, x *naiveLine) {
	n.now++
	l.use(x, n.now, true)
}

// use updates the replacement state after a line has been hit or inserted.
func (l *naiveLevel) use(x *naiveLine, now int, hit bool) {
	at := [2]uint64{x.set, x.way}
	l.used[at] = now
	l.uses[at]++
	if !hit {
		l.inserted[at], l.uses[at] = now, 1
	}
	l.bits[at] = true
	if all := !slices.Contains(l.eachBit(x.set), false); all && l.Replacement == hierarchy.BitPLRU {
		for w := range l.ways {
			l.bits[[2]uint64{x.set, w}] = w == x.way
		}
	}
	l.rrpv[at] = 0
	if hit {
		return
	}
	policy := l.Replacement
	if group := max(2, l.sets/32); policy == hierarchy.DRRIP {
		switch x.set % group {
		case 0:
			l.selector, policy = min(1023, l.selector+1), hierarchy.SRRIP
		case group - 1:
			l.selector, policy = max(0, l.selector-1), hierarchy.BRRIP
		default:
			if policy = hierarchy.SRRIP; l.selector > 511 {
				policy = hierarchy.BRRIP
			}
		}
	}
	if l.rrpv[at] = 2; policy == hierarchy.BRRIP {
		if l.bimodal%32 != 0 {
			l.rrpv[at] = 3
		}
		l.bimodal++
	}
}

func (l *naiveLevel) eachBit(set uint64) (bits []bool) {
	for w := range l.ways {
		bits = append(bits, l.bits[[2]uint64{set, w}])
	}
	return bits
}

func (n *naive) drop(l *naiveLevel, x *naiveLine) {
	n.now++
	if x.fresh {
		l.counts.Prefetch.Unused++
	}
	l.emptied[[2]uint64{x.set, x.way}] = n.now
	delete(l.lines, x.number)
}

// linesOfSet returns the lines of a set, keyed by way.
func (l *naiveLevel) linesOfSet(set uint64) map[uint64]*naiveLine {
	found := map[uint64]*naiveLine{}
	for _, x := range l.lines {
		if x.set == set {
			found[x.way] = x
		}
	}
	return found
}

// wayFor returns the way of a set into which the next line is inserted.
func (l *naiveLevel) wayFor(set uint64) uint64 {
	there := l.linesOfSet(set)
	way, latest := uint64(0), -1
	for w := range l.ways {
		if at := l.emptied[[2]uint64{set, w}]; there[w] == nil && at > latest {
			way, latest = w, at
		}
	}
	switch {
	case latest >= 0:
		return way
	case l.Replacement == hierarchy.Random:
		return l.draw.Uint64N(l.ways)
	case l.Replacement == hierarchy.TreePLRU:
		return l.treeVictim(set, 0, l.ways)
	case l.Replacement == hierarchy.BitPLRU || l.Replacement == hierarchy.NRU:
		if w := slices.Index(l.eachBit(set), false); w >= 0 {
			return uint64(w)
		}
		for w := range l.ways {
			l.bits[[2]uint64{set, w}] = false
		}
		return 0
	case l.Replacement >= hierarchy.SRRIP:
		for {
			for w := range l.ways {
				if l.rrpv[[2]uint64{set, w}] == 3 {
					return w
				}
			}
			for w := range l.ways {
				l.rrpv[[2]uint64{set, w}]++
			}
		}
	}
	by := map[hierarchy.Replacement]map[[2]uint64]int{hierarchy.LRU: l.used, hierarchy.FIFO: l.inserted, hierarchy.LFU: l.uses}[l.Replacement]
	return slices.MinFunc(slices.Sorted(maps.Keys(there)), func(v, w uint64) int {
		return cmp.Compare(by[[2]uint64{set, v}], by[[2]uint64{set, w}])
	})
}

// treeVictim implements tree-PLRU by its definition. treeVictim chooses the half of the ways that
// does not contain the most recently used way, and repeats this within the chosen half.
func (l *naiveLevel) treeVictim(set, from, to uint64) uint64 {
	if to-from == 1 {
		return from
	}
	latest := func(from, to uint64) (at int) {
		for w := from; w < to; w++ {
			at = max(at, l.used[[2]uint64{set, w}])
		}
		return at
	}
	middle := (from + to) / 2
	if latest(from, middle) > latest(middle, to) {
		return l.treeVictim(set, middle, to)
	}
	return l.treeVictim(set, from, middle)
}

// part returns the words of d that lie within a range of bytes.
func (d data) part(addr, bytes uint64) data {
	found := data{}
	for word, version := range d {
		if word >= addr/8 && word <= (addr+bytes-1)/8 {
			found[word] = version
		}
	}
	return found
}

// demand performs a demand access that fetches a range of bytes from level i or below. It returns
// the words in this range.
func (n *naive) demand(i int, addr, bytes uint64) (words data, dirty bool) {
	if i == len(n.levels) {
		n.memory.Reads++
		n.memory.BytesRead += bytes
		return n.words.part(addr, bytes), false
	}
	l, words := n.levels[i], data{}
	if l.SubBlockBytes > 0 {
		for _, piece := range splitAtLines(addr, bytes, l.lineSize()) {
			maps.Copy(words, n.accessParts(i, request{}, piece[0], piece[1], nil))
		}
		return words, false
	}
	for line := addr / l.lineSize(); line <= (addr+bytes-1)/l.lineSize(); line++ {
		more, changed := n.read(i, line)
		maps.Copy(words, more.part(addr, bytes))
		dirty = dirty || changed
	}
	return words, dirty
}

func (n *naive) read(i int, line uint64) (words data, dirty bool) {
	n.demanded(i, line, false, func() { words, dirty = n.readAlone(i, line) })
	return words, dirty
}

func (n *naive) readAlone(i int, line uint64) (words data, dirty bool) {
	l := n.levels[i]
	l.counts.Reads++
	x := l.lines[line]
	switch {
	case x != nil && l.exclusive:
		l.counts.Given++
		n.drop(l, x)
		return x.words, x.dirty
	case x != nil:
		n.use(l, x)
		return maps.Clone(x.words), false
	}
	l.counts.ReadMisses++
	l.missed(line)
	words, dirty = n.demand(i+1, line*l.lineSize(), l.lineSize())
	if l.exclusive {
		return words, dirty
	}
	n.put(i, line, maps.Clone(words), dirty)
	return words, false
}

func (l *naiveLevel) missed(line uint64) {
	if l.lost[line] {
		l.counts.CoherenceMisses++
	}
	l.lost[line] = false
}

func (n *naive) put(i int, line uint64, words data, dirty bool) {
	n.putLine(i, &naiveLine{number: line, words: words, dirty: dirty})
}

// putLine inserts a line, and returns the line that it replaces.
func (n *naive) putLine(i int, x *naiveLine) *naiveLine {
	l := n.levels[i]
	l.counts.Fills++
	l.lost[x.number] = false
	victim := n.insert(l, x)
	if victim == nil {
		return nil
	}
	addr := victim.number * l.lineSize()
	if l.inclusive {
		n.collectFromAbove(i, victim, addr)
	}
	if i+1 < len(n.levels) && n.levels[i+1].exclusive {
		n.accept(i, victim, addr)
	} else if victim.dirty {
		n.writeBack(i, addr, victim.words)
	}
	return victim
}

// insert inserts a line into a level, and returns the line that it replaces.
func (n *naive) insert(l *naiveLevel, x *naiveLine) (victim *naiveLine) {
	n.now++
	victim = l.insert(x, n.now)
	l.pushed[x.number] = false
	if victim != nil {
		l.counts.Evictions++
		if victim.fresh {
			l.counts.Prefetch.Unused++
		}
	}
	return victim
}

func (l *naiveLevel) insert(x *naiveLine, now int) (victim *naiveLine) {
	x.set = l.set(x.number)
	x.way = l.wayFor(x.set)
	victim = l.linesOfSet(x.set)[x.way]
	if victim != nil {
		delete(l.lines, victim.number)
	}
	l.lines[x.number] = x
	l.use(x, now, false)
	return victim
}

// collectFromAbove collects the victim's lines from the levels above level i. The level that is
// nearest to the processor contains the newest words.
func (n *naive) collectFromAbove(i int, victim *naiveLine, addr uint64) {
	for k := i - 1; k >= 0; k-- {
		all := n.atDepth(k, i)
		if n.levels[i].instructions {
			all = n.icaches[k]
		}
		for _, above := range all {
			if above.first < n.levels[i].first || above.first >= n.levels[i].end {
				continue
			}
			for at := addr; at != addr+n.levels[i].lineSize(); at += above.lineSize() {
				x := above.lines[at/above.lineSize()]
				if x == nil {
					continue
				}
				above.counts.Taken++
				n.drop(above, x)
				if x.dirty {
					victim.dirty = true
					maps.Copy(victim.words, x.words)
				}
			}
		}
	}
}

// atDepth returns the caches of level k that are above caches of level i.
func (n *naive) atDepth(k, i int) []*naiveLevel {
	if k < len(n.icaches) && len(n.icaches) <= i {
		return slices.Concat(n.caches[k], n.icaches[k])
	}
	return n.caches[k]
}

// accept moves a line that level i has evicted into the exclusive level below.
func (n *naive) accept(i int, victim *naiveLine, addr uint64) {
	l := n.levels[i+1]
	there := l.lines[victim.number]
	if victim.dirty {
		n.levels[i].counts.WriteBacksSent++
		l.counts.WriteBacksReceived++
		if there == nil {
			l.counts.WriteBackMisses++
		}
	} else {
		l.counts.CleanVictims++
	}
	if there == nil {
		n.put(i+1, victim.number, victim.words, victim.dirty && !l.Write.Through())
	} else {
		n.use(l, there)
		there.words = victim.words
		there.dirty = there.dirty || victim.dirty && !l.Write.Through()
	}
	if victim.dirty && l.Write.Through() {
		n.writeBack(i+1, addr, victim.words)
	}
}

// writeBack sends words to the level below i. The words are either a whole line of level i, or
// words that level i received from the level above.
func (n *naive) writeBack(i int, addr uint64, words data) {
	n.writeBackRun(i, addr, n.levels[i].lineSize(), words)
}

func (n *naive) writeBackRun(i int, addr, bytes uint64, words data) {
	n.levels[i].counts.WriteBacksSent++
	if i+1 == len(n.levels) {
		n.write(addr, bytes, words)
		return
	}
	l := n.levels[i+1]
	for _, piece := range splitAtLines(addr, bytes, l.lineSize()) {
		l.counts.WriteBacksReceived++
		some := words.part(piece[0], piece[1])
		line := piece[0] / l.lineSize()
		x := l.lines[line]
		if l.SubBlockBytes > 0 {
			if !n.receiveParts(i+1, piece[0], piece[1], some, true) || l.Write.Through() {
				n.writeBackRun(i+1, piece[0], piece[1], some)
			}
			continue
		}
		if x == nil {
			l.counts.WriteBackMisses++
			if piece[1] < l.lineSize() || l.Write.Around() || l.exclusive {
				n.writeBackRun(i+1, piece[0], piece[1], some)
				continue
			}
			for k := i + 2; k < len(n.levels) && n.levels[k].exclusive; k++ {
				if old := n.levels[k].lines[line]; old != nil {
					n.levels[k].counts.Given++
					n.drop(n.levels[k], old)
				}
			}
			n.put(i+1, line, maps.Clone(some), !l.Write.Through())
		} else {
			n.use(l, x)
			maps.Copy(x.words, some)
			x.dirty = x.dirty || !l.Write.Through()
		}
		if l.Write.Through() {
			n.writeBackRun(i+1, piece[0], piece[1], some)
		}
	}
}

func (n *naive) write(addr, bytes uint64, words data) {
	n.memory.Writes++
	n.memory.BytesWritten += bytes
	maps.Copy(n.words, words.part(addr, bytes))
}

// store performs a demand write to level i.
func (n *naive) store(i int, addr, bytes uint64, words data) {
	if i == len(n.levels) {
		n.write(addr, bytes, words)
		return
	}
	l := n.levels[i]
	for _, piece := range splitAtLines(addr, bytes, l.lineSize()) {
		some := words.part(piece[0], piece[1])
		if l.SubBlockBytes > 0 {
			n.accessParts(i, request{store: true}, piece[0], piece[1], some)
			continue
		}
		n.demanded(i, piece[0]/l.lineSize(), true, func() { n.storeAlone(i, piece, some) })
	}
}

func (n *naive) storeAlone(i int, piece [2]uint64, some data) {
	l := n.levels[i]
	{
		l.counts.Writes++
		line := piece[0] / l.lineSize()
		if l.lines[line] == nil {
			l.counts.WriteMisses++
			l.missed(line)
			if l.Write.Around() || l.exclusive {
				n.store(i+1, piece[0], piece[1], some)
				return
			}
			all, dirty := n.demand(i+1, line*l.lineSize(), l.lineSize())
			maps.Copy(all, some)
			n.put(i, line, all, dirty || !l.Write.Through())
		} else {
			n.writeLine(l, line, some)
		}
		if l.Write.Through() {
			n.update(i+1, piece[0], piece[1], some)
		}
	}
}

// writeLine writes words to a line that is present.
func (n *naive) writeLine(l *naiveLevel, line uint64, words data) {
	x := l.lines[line]
	n.use(l, x)
	maps.Copy(x.words, words)
	x.dirty = x.dirty || !l.Write.Through()
}

// update processes a store that is written through to level i.
func (n *naive) update(i int, addr, bytes uint64, words data) {
	if i == len(n.levels) {
		n.write(addr, bytes, words)
		return
	}
	l := n.levels[i]
	for _, piece := range splitAtLines(addr, bytes, l.lineSize()) {
		l.counts.Updates++
		line := piece[0] / l.lineSize()
		some := words.part(piece[0], piece[1])
		if l.SubBlockBytes > 0 {
			if !n.receiveParts(i, piece[0], piece[1], some, false) || l.Write.Through() {
				n.update(i+1, piece[0], piece[1], some)
			}
			continue
		}
		hit := l.lines[line] != nil
		if hit {
			n.writeLine(l, line, some)
		}
		if !hit || l.Write.Through() {
			n.update(i+1, piece[0], piece[1], some)
		}
	}
}

// flush writes back all dirty lines.
func (n *naive) flush() {
	for i, caches := range n.caches {
		for _, l := range caches {
			n.levels = n.path(l.first, false)
			n.flushCache(i, l)
		}
		if i < len(n.icaches) {
			for _, l := range n.icaches[i] {
				n.levels = n.path(l.first, true)
				n.flushCache(i, l)
			}
		}
	}
}

func (n *naive) flushCache(i int, l *naiveLevel) {
	lines := slices.SortedFunc(maps.Values(l.lines), func(x, y *naiveLine) int {
		if x.set != y.set {
			return cmp.Compare(x.set, y.set)
		}
		switch l.Replacement {
		case hierarchy.FIFO:
			return -cmp.Compare(l.inserted[[2]uint64{x.set, x.way}], l.inserted[[2]uint64{y.set, y.way}])
		case hierarchy.LRU:
			return -cmp.Compare(l.used[[2]uint64{x.set, x.way}], l.used[[2]uint64{y.set, y.way}])
		}
		return cmp.Compare(x.way, y.way)
	})
	for _, x := range lines {
		if x.dirty {
			x.dirty = false
			if l.SubBlockBytes > 0 {
				n.writeBackParts(i, x)
				continue
			}
			n.writeBack(i, x.number*l.lineSize(), x.words)
		}
	}
}

// notifyOtherCores notifies the other cores that one core accesses a level. The parameter addr is
// the address of the line in that level.
func (n *naive) notifyOtherCores(from int, addr uint64, write bool) {
	if !n.threaded || n.off {
		return
	}
	for i, l := range n.levels {
		if i < from || n.fetching && i < len(n.icaches) {
			continue
		}
		own, behind, members := max(l.SharedBy, 1), 0, n.caches[i]
		if i+1 < len(n.levels) {
			next := n.levels[i+1]
			behind = next.number
			members = slices.DeleteFunc(slices.Clone(members), func(m *naiveLevel) bool { return m.first < next.first || m.first >= next.end })
			if own == max(next.SharedBy, 1) {
				continue // each cache of the next level is below only one cache
			}
		}
		if own >= MaxCores {
			continue
		}
		bytes := uint64(0)
		for k := range i + 1 {
			for _, above := range n.atDepth(k, i) {
				bytes = max(bytes, above.lineSize())
			}
		}
		line := addr / bytes
		here := slices.ContainsFunc(n.levels[from:i+1], func(l *naiveLevel) bool { return l.hasAll(addr, n.levels[from].lineSize()) })
		if here && !write {
			return
		}
		n.busRequest(i, busLine{i, behind, line}, l, members, bytes, write, here)
	}
}

func (l *naiveLevel) hasAll(addr, bytes uint64) bool {
	for at := addr; at != addr+bytes; at += 8 {
		if l.lines[at/l.lineSize()] == nil {
			return false
		}
	}
	return true
}

// busRequest performs one bus request exactly as the protocol specifies.
func (n *naive) busRequest(i int, p busLine, me *naiveLevel, members []*naiveLevel, bytes uint64, write, here bool) {
	state := n.states[p]
	if state == nil {
		state = map[int]byte{}
		n.states[p] = state
	}
	addr := p.line * bytes
	for _, m := range members {
		if !n.forEachCopy(i, m, addr, bytes, func(*naiveLevel, *naiveLine) {}) {
			delete(state, m.number) // neither cache m nor the caches above it contain a word of the line
		}
	}
	mine := state[me.number]
	switch {
	case write && here && mine == 'M':
	case write && here && mine == 'E':
		me.counts.Bus.SilentUpgrades++
	case write && here:
		me.counts.Bus.Upgrades++
	case write:
		me.counts.Bus.ReadsExclusive++
	default:
		me.counts.Bus.Reads++
	}
	others, dirty := false, false
	for _, m := range members {
		if m == me || state[m.number] == 0 {
			continue
		}
		others = true
		dirty = n.writeBackCopies(i, m, addr, bytes, write) || dirty
		if state[m.number] = 'S'; write {
			delete(state, m.number)
		}
	}
	if !here && others && dirty {
		me.counts.Bus.RemoteDirty++
	} else if !here && others {
		me.counts.Bus.RemoteClean++
	}
	switch {
	case write:
		state[me.number] = 'M'
	case others:
		state[me.number] = 'S'
	case mine == 'M' || mine == 'E':
	case n.msi:
		state[me.number] = 'S'
	default:
		state[me.number] = 'E'
	}
}

// forEachCopy calls visit for every cached line of a range of bytes, in cache m of level i and in the
// caches above m. It reports whether any of these caches contains such a line.
func (n *naive) forEachCopy(i int, m *naiveLevel, addr, bytes uint64, visit func(*naiveLevel, *naiveLine)) (found bool) {
	for k := i; k >= 0; k-- {
		for _, l := range n.atDepth(k, i) {
			if l.first < m.first || l.first >= m.end {
				continue
			}
			for _, piece := range splitAtLines(addr, bytes, l.lineSize()) {
				if x := l.lines[piece[0]/l.lineSize()]; x != nil {
					found = true
					visit(l, x)
				}
			}
		}
	}
	return found
}

// writeBackCopies makes a cache and the caches above it write back a line. If the reason is a store
// by another core, writeBackCopies also makes these caches invalidate their copies.
func (n *naive) writeBackCopies(i int, m *naiveLevel, addr, bytes uint64, write bool) (dirty bool) {
	changed := data{} // the words are the newest, because the level nearest to the processor is visited last
	n.forEachCopy(i, m, addr, bytes, func(_ *naiveLevel, x *naiveLine) {
		if x.dirty {
			dirty = true
			maps.Copy(changed, x.words)
		}
	})
	if dirty {
		if write {
			m.counts.Bus.WriteBacksForWrites++
		} else {
			m.counts.Bus.WriteBacksForReads++
		}
		n.writeBackRange(i, m, addr, bytes, changed)
	}
	n.forEachCopy(i, m, addr, bytes, func(l *naiveLevel, x *naiveLine) {
		x.dirty = false
		maps.Copy(x.words, changed.part(x.number*l.lineSize(), l.lineSize()))
		if write {
			l.counts.Invalidated++
			l.lost[x.number] = true
			n.drop(l, x)
		}
	})
	return dirty
}

// writeBackRange writes back the dirty lines in a range of bytes. writeBackRange combines adjacent
// lines.
func (n *naive) writeBackRange(i int, m *naiveLevel, addr, bytes uint64, changed data) {
	back := n.levels
	defer func() { n.levels = back }()
	n.levels = n.path(m.first, false)
	dirty := map[uint64]bool{}
	n.forEachCopy(i, m, addr, bytes, func(l *naiveLevel, x *naiveLine) {
		for at := range l.lineSize() {
			if x.dirty {
				dirty[x.number*l.lineSize()+at] = true
			}
		}
	})
	for at := uint64(0); at < bytes; {
		end := at
		for end < bytes && dirty[addr+end] {
			end++
		}
		if end > at {
			n.writeBackRun(i, addr+at, end-at, changed.part(addr+at, end-at))
		}
		at = end + 1
	}
}

// splitAtLines splits a range of bytes at line boundaries.
func splitAtLines(addr, bytes, lineBytes uint64) (pieces [][2]uint64) {
	for a := addr; a != addr+bytes; a++ { // compare with !=, because addr+bytes may overflow to 0
		if len(pieces) == 0 || a%lineBytes == 0 {
			pieces = append(pieces, [2]uint64{a, 0})
		}
		pieces[len(pieces)-1][1]++
	}
	return pieces
}
