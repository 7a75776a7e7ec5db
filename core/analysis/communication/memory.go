package communication

import (
	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

type memory struct {
	lineShift uint
	wordMask  uint64 // number of words in a line - 1

	lines   arena[line]
	recent  [recentLines]*line
	private arena[privateWord] // the words of unshared lines: one run of words for each line
	free    []uint32           // unused runs of memory.private
	shares  arena[sharedLine]
	cells   arena[cell] // the words of shared lines: one run of cells for each line

	pageAt index.Table // index of each page, by page number
	pages  arena[share]
	latest struct {
		number uint64
		page   uint32
	}
	linesOf arena[uint32] // for each page: 1 + the index of each line of the page; 0: no line yet

	tallies []tally  // element 0 is unused
	tallyAt []uint32 // hash table of the indices of tallies; its length is a power of two; 0: empty
}

const (
	recentBits  = 8
	recentLines = 1 << recentBits // number of recently used lines that are found without a table look-up, sufficient for a typical loop
)

type line struct {
	number     trace.Line
	references uint64 // number of references before the line was shared
	page       uint32
	words      uint32 // index of the line in memory.private or, for a shared line, in memory.shares
	site       uint32 // before the line is shared: 1 + the slot of the site of the last store; 0: never written
	owner      uint8  // the thread of the first reference
	shared     bool
}

// privateWord is a word that only one thread has accessed.
type privateWord struct {
	site       uint32 // 1 + the slot of the site of the last store; 0: never written
	references uint32
	stores     uint8 // see cell.stores
}

const mostPrivate = 1<<32 - 1 // maximum number of references to an unshared word

// cell is a granule that several threads may have accessed.
type cell struct {
	used       uint64 // bit set of the threads that used the current value, except the thread that wrote it
	references uint64
	events     uint64
	site       uint32 // 1 + the slot of the site of the last store; 0: never written
	writer     uint8
	class      usage
	// For words only: handovers is the number of stores that follow a store by a different thread,
	// and stores is the number of all stores, limited to mostStores.
	handovers uint32
	stores    uint8
}

const mostStores = 255 // maximum value of cell.stores and privateWord.stores

func addStore(stores uint8) uint8 { return uint8(min(uint(stores)+1, mostStores)) }

// usage determines the sharing class of a granule.
type usage struct {
	first    uint8 // the thread of the first reference
	several  bool  // several threads have accessed the granule
	producer uint8 // 1 + the thread whose values other threads have used; 0: none
}

const manyProducers = 0xff // value of usage.producer if other threads used values that several threads wrote

func (u *usage) recordReference(thread uint8, isFirst bool) {
	if isFirst {
		u.first = thread
	}
	u.several = u.several || u.first != thread
}

func (u *usage) produce(thread uint8) {
	if u.producer == 0 {
		u.producer = thread + 1
	} else if u.producer != thread+1 {
		u.producer = manyProducers
	}
}

// join adds the usage of a later segment.
func (u *usage) join(next usage) {
	u.several = u.several || next.several || u.first != next.first
	if next.producer != 0 {
		u.produce(next.producer - 1) // also correct if next.producer is manyProducers
	}
}

func (u *usage) sharingClass(events, falseEvents uint64) profile.SharingClass {
	switch {
	case !u.several:
		return profile.PrivateData
	case falseEvents > events-falseEvents: // more than half of the events are false events
		return profile.FalselyShared
	case u.producer == 0:
		return profile.ReadShared
	case u.producer == manyProducers:
		return profile.Migratory
	}
	return profile.ProducerConsumer
}

type source struct {
	event, transfer bool
	thread          uint8
	site            uint32 // 1 + the slot of the site that wrote the value
}

func (c *cell) recordReference(r *reference) (from source) {
	c.class.recordReference(r.thread, c.references == 0)
	c.references++
	if c.site != 0 && c.writer != r.thread {
		c.events++
		from = source{event: true, thread: c.writer, site: c.site}
		if r.loads && c.used&r.bit == 0 {
			from.transfer = true
			c.used |= r.bit
			c.class.produce(c.writer)
		}
	}
	if r.stores {
		if c.site != 0 && c.writer != r.thread {
			c.handovers++
		}
		c.stores = addStore(c.stores)
		c.writer, c.site, c.used = r.thread, r.site, 0
	}
	return from
}

// share is a line or a page that several threads may have accessed.
type share struct {
	cell
	falseEvents uint64
}

// sharedLine is a shared line. If a thread has accessed the line, but not since the latest store by
// another thread, the thread's next access misses in a cache of any size. Such a miss is a
// coherence miss.
type sharedLine struct {
	share
	// Bit sets of threads: everAccessed contains the threads that have ever accessed the line, and
	// sinceStore contains the threads that have accessed the line since the latest store by another
	// thread.
	everAccessed, sinceStore uint64
	tallies                  uint32 // first tally of the line's false misses; 0: none
	// number of the thread that last wrote the line, instead of the thread's slot, because several
	// threads may share a slot
	lastWriter uint32

	// These fields describe the last reference: its pair of site and data object, and the address
	// of its memory block.
	pair  uint32
	begin trace.Addr
}

// recordReference records a reference to a line. recordReference returns the source of the value,
// and reports whether the reference is a coherence miss.
func (s *sharedLine) recordReference(r *reference) (from source, miss bool) {
	miss = s.everAccessed&^s.sinceStore&r.bit != 0
	s.everAccessed |= r.bit
	s.sinceStore |= r.bit
	s.pair, s.begin = r.pair, r.begin
	if r.stores {
		s.sinceStore, s.lastWriter = r.bit, r.number
	}
	return s.cell.recordReference(r), miss
}

// tally counts, for one key, the coherence misses of false events. Dubois et al. (1993) call such
// misses useless misses.
type tally struct {
	tallyKey
	next   uint32 // next tally of the line; 0: none
	misses uint64
}

type tallyKey struct {
	line       uint32 // index of the line in memory.shares
	site, pair uint32 // 1 + the slot of the store's site, and the pair of the missing reference
	from, to   uint8
	offset     uint64 // smallest offset of the line in its memory block, if the line is accessed in several blocks
}

func (m *memory) init(lineShift uint) {
	m.lineShift = lineShift
	m.wordMask = 1<<(lineShift-wordShift) - 1
	m.private.length, m.cells.length = int(m.wordMask+1), int(m.wordMask+1)
	m.lines.length, m.shares.length, m.pages.length = 1, 1, 1
	m.linesOf.length = 1 << (pageShift - lineShift)
	m.tallies = make([]tally, 1)
}

// lineOf returns a line. If the line is new, lineOf creates it, with the given thread as its owner.
func (m *memory) lineOf(number trace.Line, thread uint8) *line {
	seen := &m.recent[number*0x9e3779b97f4a7c15>>(64-recentBits)] // multiplicative hash, because the rows of a matrix are often a power of two apart
	if *seen != nil && (*seen).number == number {
		return *seen
	}
	page := m.pageOf(number >> (pageShift - m.lineShift))
	n := &m.linesOf.run(page)[number%uint64(m.linesOf.length)]
	if *n == 0 {
		*n = m.lines.add() + 1
		*m.lines.first(*n - 1) = line{number: number, page: page, words: m.newPrivate(), owner: thread}
	}
	*seen = m.lines.first(*n - 1)
	return *seen
}

func (m *memory) pageOf(number uint64) uint32 {
	if m.latest.number == number && m.pages.count > 0 {
		return m.latest.page
	}
	n, known := m.pageAt.Find(number)
	if !known {
		n = m.pages.add()
		m.linesOf.add()
		m.pageAt.Add(number, n)
	}
	m.latest.number, m.latest.page = number, n
	return n
}

func (m *memory) newPrivate() uint32 {
	last := len(m.free) - 1
	if last < 0 {
		return m.private.add()
	}
	n := m.free[last]
	m.free = m.free[:last]
	clear(m.private.run(n))
	return n
}

// countUnshared counts a reference to words of an unshared line. countUnshared returns false if a
// counter is full.
func (m *memory) countUnshared(l *line, r *reference, first, last uint64) bool {
	if l.references >= mostPrivate {
		return false
	}
	words := m.private.run(l.words)
	l.references++
	if !r.stores {
		for w := first; w <= last; w++ {
			words[w&m.wordMask].references++
		}
		return true
	}
	l.site = r.site
	for w := first; w <= last; w++ {
		word := &words[w&m.wordMask]
		word.references++
		word.stores = addStore(word.stores)
		word.site = r.site
	}
	return true
}

// convertToShared makes a line shared and converts its words to cells.
func (m *memory) convertToShared(l *line) {
	n := m.shares.add()
	m.cells.add()
	of := func(references uint64, site uint32) cell {
		return cell{references: references, site: site, writer: l.owner, class: usage{first: l.owner}}
	}
	s := m.shares.first(n)
	if s.cell = of(l.references, l.site); l.references > 0 {
		s.everAccessed, s.sinceStore = 1<<l.owner, 1<<l.owner
	}
	cells := m.cells.run(n)
	for i, w := range m.private.run(l.words) {
		cells[i] = of(uint64(w.references), w.site)
		cells[i].stores = w.stores
	}
	m.free = append(m.free, l.words)
	l.words, l.shared = n, true
}

// tallyFor returns the tally that counts the false misses of a reference. tallyFor uses a hash
// table, because many source locations can access the same line.
func (m *memory) tallyFor(s *sharedLine, l *line, from source, r *reference) *tally {
	t := tally{tallyKey: tallyKey{line: l.words, site: from.site, pair: r.pair, from: from.thread, to: r.thread}}
	t.offset = max(l.number<<m.lineShift, r.begin) - r.begin
	slot := m.tallySlot(t.tallyKey)
	if slot == nil || *slot == 0 {
		m.addTally(s, t)
		slot = m.tallySlot(t.tallyKey)
	}
	return &m.tallies[*slot]
}

// tallySlot returns the hash-table slot for the index of a tally, or nil if the table is full.
func (m *memory) tallySlot(k tallyKey) *uint32 {
	if len(m.tallyAt) == 0 {
		return nil
	}
	mask := uint64(len(m.tallyAt) - 1)
	h := index.Hash(uint64(k.site)<<32|uint64(k.pair)) + uint64(k.line)<<16 + uint64(k.from)<<8 + uint64(k.to) + k.offset<<32
	for i := index.Hash(h) & mask; ; i = (i + 1) & mask {
		if n := m.tallyAt[i]; n == 0 || m.tallies[n].tallyKey == k {
			return &m.tallyAt[i]
		}
	}
}

func (m *memory) addTally(s *sharedLine, t tally) {
	t.next, s.tallies = s.tallies, uint32(len(m.tallies))
	m.tallies = append(m.tallies, t)
	if 2*len(m.tallies) <= len(m.tallyAt) {
		*m.tallySlot(t.tallyKey) = s.tallies
		return
	}
	m.tallyAt = make([]uint32, max(firstTallies, 2*len(m.tallyAt)))
	for n := 1; n < len(m.tallies); n++ {
		*m.tallySlot(m.tallies[n].tallyKey) = uint32(n)
	}
}

const firstTallies = 64 // initial number of slots

// arena allocates runs of elements. All runs have the same length and are identified by an index.
// Runs never move in memory.
type arena[T any] struct {
	length int // length of a run
	count  uint32
	chunks [][]T
}

const (
	chunkBits = 8
	chunkRuns = 1 << chunkBits
)

// add allocates a run whose elements are zero, and returns the index of the run.
func (a *arena[T]) add() uint32 {
	if a.count%chunkRuns == 0 {
		a.chunks = append(a.chunks, make([]T, chunkRuns*a.length))
	}
	a.count++
	return a.count - 1
}

func (a *arena[T]) run(n uint32) []T {
	return a.chunks[n>>chunkBits][int(n%chunkRuns)*a.length:][:a.length]
}

// first returns the first element of a run.
func (a *arena[T]) first(n uint32) *T { return &a.chunks[n>>chunkBits][n%chunkRuns] }
