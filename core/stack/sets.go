package stack

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

const (
	// SetCounts is how many numbers of sets [Sets] answers for: 2^0 to 2^16.
	SetCounts = 17
	// MaxWays is the most ways of a set that [Sets] answers for.
	MaxWays = 32
)

// SetDepths counts accesses by how deep in its set the line lay: element [a][d] those with Δ^a = d,
// for 2^a sets (MODELS §4). An LRU cache of 2^a sets and w ways hits exactly those with d < w.
type SetDepths [SetCounts][MaxWays]uint64

// Add adds the counts of other.
func (t *SetDepths) Add(other *SetDepths) {
	for a := range t {
		for d := range t[a] {
			t[a][d] += other[a][d]
		}
	}
}

// Sets is the model for set-associative caches: [Exact], and for every number of sets at once
// how deep each access found its line in its set. Make one with [NewSets].
type Sets struct {
	exact  Exact
	above  [topLines]above
	now    uint32 // the last number that a fall or an access was given
	last   uint32 // renew when now reaches it
	recent recency
	pushed bool // what is taken is not counted
	tally  tally
	marks  marks
	packed [chunk]uint64 // hits of a scan, in lanes
}

type tally struct {
	accesses uint64
	cold     uint64
	whole    [MaxWays]uint64 // accesses at distance d > 0, of all sets in one
	beyond   uint64          // of those below the top array, at MaxWays or more

	// Hits in the front of the top array by the set bits that the line shares with each line
	// above it; 0: none.
	front [(setBits + 1) * (setBits + 1) * (setBits + 1)]uint64
	// Other hits in the top array, by two lanes each.
	pairs [setBits / 2][1 << (2 * laneBits)]uint64
}

const (
	setBits  = SetCounts - 1
	laneBits = 4 // of a word of depths, one for each number of sets from 2^1 on
	laneMask = 1<<laneBits - 1
)

// above is a line of the top array, in no order.
type above struct {
	line  trace.Line
	after uint32 // as in visit; or notThere
}

const notThere = ^uint32(0) // is left out when lines above are counted

// sharing[n] adds one to the depths in 2^1 to 2^n sets: those in which two lines
// meet whose numbers have the last n bits in common.
var sharing = func() (lanes [setBits + 1]uint64) {
	for n := 1; n <= setBits; n++ {
		lanes[n] = lanes[n-1] | 1<<((n-1)*laneBits)
	}
	return lanes
}()

// common returns the number of last bits that two lines have in common, up to setBits.
func common(x, y trace.Line) int { return bits.TrailingZeros16(uint16(x ^ y)) }

// NewSets makes an empty model.
func NewSets() *Sets {
	m := &Sets{last: notThere - 2*chunk}
	m.reset()
	return m
}

func (m *Sets) reset() {
	m.exact = Exact{top: emptyTop}
	for i := range m.above {
		m.above[i] = above{noLine, notThere}
	}
	m.exact.stamps.reset(blockStamps, 0)
	m.now = 0
	m.recent.reset()
}

// Reset forgets every line and what was counted, and keeps the memory of the table.
func (m *Sets) Reset() {
	exact := m.exact
	exact.Reset()
	m.recent.settle()
	m.reset()
	m.exact = exact
	m.tally, m.marks, m.recent.depths = tally{}, marks{}, [setBits + 1][2 * depthRoom]uint64{}
}

// Lines implements [Model].
func (m *Sets) Lines() int { return m.exact.Lines() }

// Stack implements [Model].
func (m *Sets) Stack() []trace.Line { return m.exact.Stack() }

// Distances implements [Model], and counts depths.
func (m *Sets) Distances(lines []trace.Line, out []uint32) {
	m.tally.accesses += uint64(len(lines))
	m.marks.now = nil
	for len(lines) > 0 {
		n := min(len(lines), chunk)
		m.makeRoom()
		m.finish(m.exact.queue[:m.scan(lines[:n], out[:n])], out[:n])
		lines, out = lines[n:], out[n:]
	}
}

// makeRoom makes sure that there are numbers for the moves of a chunk.
func (m *Sets) makeRoom() {
	if m.now >= m.last {
		m.renew()
	}
}

// finish settles the accesses that the scan of a chunk has queued.
func (m *Sets) finish(queue []deep, out []uint32) {
	stamped := m.exact.stamped
	if stamped {
		m.settleStamped(queue, out)
	} else {
		m.settle(queue, out)
	}
	m.follow(m.exact.share.prefers(stamped, out))
}

// Push accesses the lines in order and counts nothing.
func (m *Sets) Push(lines []trace.Line) {
	m.recent.settle()
	counted, depths := m.tally, m.recent.depths
	var out [chunk]uint32
	m.pushed = true // to find out how deep they lay takes most of the time
	for len(lines) > 0 {
		n := min(len(lines), chunk)
		m.Distances(lines[:n], out[:])
		lines = lines[n:]
	}
	m.recent.settle()
	m.pushed = false
	m.tally, m.recent.depths = counted, depths // marked ones are not in tally, and not pushed
}

// renew numbers the falls from zero: it rebuilds the model from its stack, which determines all
// later depths.
func (m *Sets) renew() {
	stack, marked := m.Stack(), m.marks.now
	m.recent.settle()
	m.reset()
	slices.Reverse(stack)
	m.Push(stack)
	m.marks.now = marked
}

func (t *tally) add(hits []uint64) {
	for _, depths := range hits {
		t.addLanes(depths)
	}
}

// addLanes counts a hit in lanes. Depths never grow with the number of sets, so 0 ends a word.
func (t *tally) addLanes(depths uint64) {
	const two = 2 * laneBits
	t.pairs[0][depths&(1<<two-1)]++
	t.pairs[1][depths>>two&(1<<two-1)]++
	depths >>= 2 * two
	for k := 2; depths != 0; k++ {
		t.pairs[k%len(t.pairs)][depths&(1<<two-1)]++
		depths >>= two
	}
}

// settle is [Exact]'s, and updates the lists of recency.
func (m *Sets) settle(queue []deep, out []uint32) {
	var entries, evicted [burst]*entry
	for at := 0; at < len(queue); at += burst {
		few := queue[at:min(at+burst, len(queue))]
		m.exact.lookUp(few, &entries)
		m.exact.lookUpEvicted(few, &evicted)
		for i := range few {
			out[few[i].index] = m.arrive(&few[i], entries[i], evicted[i])
		}
	}
}

// arrive brings a line, whose entry is e, into the top array in place of one that fell off.
func (m *Sets) arrive(q *deep, e, evicted *entry) (d uint32) {
	d = m.exact.pull(e)
	m.exact.drop(evicted)
	at := m.find(q.evicted)
	if evicted != nil {
		m.now++
		evicted.fell = m.now
		m.recent.visit(visit{after: at.after, now: m.now, line: uint32(q.evicted)})
	}
	t, how := m.tallyOf(q.index)
	t.settle(d)
	if d == Cold {
		*at = above{q.line, never}
		return d
	}
	*at = above{noLine, notThere}
	after := e.fell + 1
	if !m.pushed {
		m.recent.visit(visit{after: after, line: uint32(q.line)&^marked | how, above: m.older(q.line, after)})
	}
	*at = above{q.line, after}
	return d
}

// settle counts an access that a scan has queued.
func (t *tally) settle(d uint32) {
	switch {
	case d == Cold:
		t.cold++
	case d < MaxWays:
		t.whole[d]++
	default:
		t.beyond++
	}
}

// follow switches between lists that follow accesses, with all lines stamped, and falls.
func (m *Sets) follow(accesses bool) {
	if m.exact.stamped == accesses {
		return
	}
	m.exact.stampAll(accesses)
	m.recent.settle()
	for i := topLines - 1; i >= 0; i-- {
		line := m.exact.top[i]
		e := m.exact.table.find(line)
		switch {
		case e == nil:
			m.above[i] = above{noLine, notThere}
		case accesses:
			m.access(e, line, m.find(line).after, uncounted)
		default:
			m.above[i] = above{line, e.fell + 1}
		}
	}
	m.recent.settle()
}

// access moves a line to the front in the lists that follow accesses.
func (m *Sets) access(e *entry, line trace.Line, after, how uint32) {
	m.now++
	e.fell = m.now
	m.recent.access(access{after, m.now, uint32(line)&^(uncounted|marked) | how})
}

// settleStamped is [Exact]'s, and updates the lists of recency.
func (m *Sets) settleStamped(queue []deep, out []uint32) {
	var entries [burst]*entry
	for at := 0; at < len(queue); at += burst {
		few := queue[at:min(at+burst, len(queue))]
		m.exact.lookUp(few, &entries)
		for i := range few {
			q, e := &few[i], entries[i]
			d := m.exact.restamp(e)
			out[q.index] = d
			t, how := m.tallyOf(q.index)
			t.settle(d)
			if d == Cold || m.pushed {
				how = uncounted
			}
			m.access(e, q.line, e.fell+1, how)
		}
	}
	m.exact.bringUp(queue)
}

// find returns the place of a line of the top array, or a free one.
func (m *Sets) find(line trace.Line) *above {
	for i := range m.above[:topLines-1] {
		if m.above[i].line == line {
			return &m.above[i]
		}
	}
	return &m.above[topLines-1]
}

// older counts, in lanes, the lines in the top array that share a set with x but were not below
// it since x was: the lists do not have them before x.
func (m *Sets) older(x trace.Line, after uint32) (depths uint64) {
	for i := range m.above {
		y := &m.above[i]
		lanes := sharing[common(x, y.line)]
		if y.after > after {
			lanes = 0
		}
		depths += lanes
	}
	return depths
}

// Depths returns the counts, including marked accesses.
func (m *Sets) Depths() *SetDepths {
	m.recent.settle()
	t := m.tally.with(&m.recent.depths, 0)
	if m.marks.tally != nil {
		t.Add(m.MarkedDepths())
	}
	return t
}

// with combines the counts of the top array and of the lists, whose depths begin at at.
func (t *tally) with(lists *[setBits + 1][2 * depthRoom]uint64, at int) *SetDepths {
	s := t.depths()
	for a := 1; a < SetCounts; a++ {
		deeper := uint64(0)
		for d, n := range lists[a][at : at+depthRoom] {
			if d < MaxWays {
				s[a][d] += n
			} else {
				deeper += n
			}
		}
		s[a][0] = t.accesses - t.cold - deeper // and those that are not counted below
		for _, n := range s[a][1:] {
			s[a][0] -= n
		}
	}
	return s
}

// depths returns what the top array counted, and the row of a single set.
func (t *tally) depths() *SetDepths {
	s := new(SetDepths)
	s[0] = t.whole
	s[0][0] = t.accesses - t.cold - t.beyond
	for _, n := range t.whole[1:] {
		s[0][0] -= n
	}
	const base = setBits + 1
	for i, n := range t.front {
		if n == 0 { // as for most triples of a short run
			continue
		}
		depths := sharing[i/base/base] + sharing[i/base%base] + sharing[i%base]
		for a := 1; depths != 0; a++ {
			s[a][depths&laneMask] += n
			depths >>= laneBits
		}
	}
	for k := range t.pairs {
		for pair, n := range t.pairs[k] {
			s[2*k+1][pair&laneMask] += n
			s[2*k+2][pair>>laneBits] += n
		}
	}
	return s
}

// marks count some accesses of a [Sets] separately.
type marks struct {
	now   []bool // of the chunk that is being taken; nil: none
	tally *tally // of marked accesses, which the model's own has not; nil: there were none
}

// DistancesMarked is [Sets.Distances] that also counts marked accesses for [Sets.MarkedDepths].
func (m *Sets) DistancesMarked(lines []trace.Line, marked []bool, out []uint32) {
	if m.marks.tally == nil {
		m.marks.tally = new(tally)
	}
	for len(lines) > 0 {
		n := min(len(lines), chunk)
		m.makeRoom()
		m.marks.now = marked[:n]
		m.finish(m.exact.queue[:m.scanMarked(lines[:n], marked[:n], out[:n])], out[:n])
		lines, marked, out = lines[n:], marked[n:], out[n:]
	}
	m.marks.now = nil
}

// scanMarked scans in steps, as scanSteps does, to know what each access counts and where.
func (m *Sets) scanMarked(lines []trace.Line, marked []bool, out []uint32) (misses int) {
	few := uint64(0)
	for _, is := range marked {
		if is {
			few++
		}
	}
	m.marks.tally.accesses += few
	m.tally.accesses += uint64(len(marked)) - few
	if m.exact.stamped {
		return m.exact.scanStamped(lines, out)
	}
	var front, rest [chunk]uint16
	_, deeper := m.scanFront(lines, out, &front)
	_, misses = m.scanRest(deeper, out, &rest)
	for _, q := range m.exact.queue[:misses] {
		out[q.index] = topLines
	}
	tallies := [2]*tally{&m.tally, m.marks.tally}
	near, far := 0, 0
	for i, d := range out[:len(lines)] {
		if d-1 >= topLines-1 {
			continue
		}
		t := tallies[0]
		if marked[i] {
			t = tallies[1]
		}
		t.whole[d%MaxWays]++
		if d < frontLines {
			t.front[front[near&(chunk-1)]&noteIndex]++
			near++
		} else {
			t.addLanes(m.packed[far&(chunk-1)])
			far++
		}
	}
	return misses
}

// tallyOf returns where an access of the chunk counts, and how in the lists.
func (m *Sets) tallyOf(index int) (t *tally, how uint32) {
	if m.marks.now != nil && m.marks.now[index] {
		return m.marks.tally, marked
	}
	return &m.tally, 0
}

// MarkedDepths returns the counts of marked accesses.
func (m *Sets) MarkedDepths() *SetDepths {
	if m.marks.tally == nil {
		return new(SetDepths)
	}
	m.recent.settle()
	return m.marks.tally.with(&m.recent.depths, depthRoom)
}
