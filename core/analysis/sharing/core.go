package sharing

import (
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

type core struct {
	sets           stack.SetNumbers
	private        *stack.Sets
	coherent       *stack.Coherent // nil: no accesses follow, and the field encoded contains the stack
	encoded        []byte
	privateSets    table
	coherentSets   table
	foreignSets    table
	privateCounts  counts
	coherentCounts counts
	foreignCounts  counts // accesses on the private stack whose line another core touched last
	lost           counts
	invalidations  uint64

	// The pending accesses of the core, and other pending operations on its coherent stack.
	lines   []trace.Line
	foreign []bool // whether each access is foreign
	several bool   // at least one access is foreign
	turns   []coreRun
	others  []stackOperation

	alone          bool // distances on the private stack are counted
	noting         bool // the analysis records which holes are filled by accesses
	coherence      bool // the latest call of run has found coherence misses
	depths, lostAt []uint32
	asked          []uint32 // answers to the latest questions
}

// coreRun is a run of consecutive accesses by one core. The field first is the index of the run's
// first access among the accesses that package locality has passed.
type coreRun struct{ first, accesses int }

// stackOperation is an invalidation, or a question about a depth. stackOperation precedes one of
// the core's accesses.
type stackOperation struct {
	access int
	op     stack.Op
	line   trace.Line
}

func newCore(sets stack.SetNumbers, o *Options) *core {
	c := &core{sets: sets, private: stack.NewSets(sets), noting: o.Mergeable, alone: o.Stacks.has(Private)}
	c.omit(locality.Omitted(sets))
	c.privateSets.model, c.foreignSets.model = c.private, markedModel{c.private}
	if o.OnlyJoins {
		c.encoded = stack.CoherentState(nil)
	} else {
		c.coherent = stack.NewCoherent(sets)
		c.coherentSets.model = c.coherent
	}
	return c
}

func (c *core) omit(omitted uint32) {
	c.privateSets.omitted, c.coherentSets.omitted, c.foreignSets.omitted = omitted, omitted, omitted
}

// initialise sets the counts of the first core to the counts so far, and fills its stacks with the
// given lines, most recently used first.
func (c *core) initialise(before *profile.StackCounts, lines []trace.Line) {
	c.privateCounts.load(&before.Distances, before.Cold)
	c.coherentCounts.load(&before.Distances, before.Cold)
	c.privateSets.before.Add(&before.Sets)
	c.coherentSets.before.Add(&before.Sets)
	locality.PushAll(lines, c.private.Push)
	if c.coherent == nil {
		c.encoded = stack.CoherentState(lines)
		return
	}
	locality.PushAll(lines, c.pushCoherent)
}

// coherentState returns the encoded coherent stack.
func (c *core) coherentState() []byte {
	if c.coherent == nil {
		return c.encoded
	}
	return c.coherent.State()
}

// setCoherent replaces the coherent stack by an encoded stack.
func (c *core) setCoherent(state []byte) error {
	if c.coherent == nil {
		c.encoded = state
		return nil
	}
	c.coherentSets.close()
	c.coherent = stack.NewCoherent(c.sets)
	c.coherentSets.model = c.coherent
	return c.coherent.Restore(state)
}

// pushCoherent pushes lines onto the coherent stack, without counting depths. The lines must not be
// on the stack.
func (c *core) pushCoherent(lines []trace.Line) {
	c.room(len(lines))
	c.coherent.Access(lines, c.depths, c.lostAt)
}

// addAccesses adds a run of accesses. The parameter first is the index of the run's first access
// among the accesses from package locality. If the parameter several is true, the parameter foreign
// marks the foreign accesses; otherwise, no access is foreign.
func (c *core) addAccesses(lines []trace.Line, foreign []bool, first int, several bool) {
	c.lines, c.foreign = append(c.lines, lines...), append(c.foreign, foreign...)
	c.turns = append(c.turns, coreRun{first, len(lines)})
	c.several = c.several || several
}

func (c *core) addOperation(op stack.Op, line trace.Line) {
	c.others = append(c.others, stackOperation{len(c.lines), op, line})
}

// run performs the pending accesses and operations. The distances on the private stack are written
// to the elements of s.private that belong to the accesses. If there is a follower, the depths on
// the coherent stack are also written to s.coherent.
func (c *core) run(s *lineSize) {
	c.asked = c.asked[:0]
	c.room(len(c.lines))
	if c.alone {
		c.measure(&s.private)
	}
	if c.noting {
		// Record holes only after the initial lines have been pushed, because filling holes with
		// these lines does not count.
		c.coherent.NoteHoles()
	}
	c.coherence = c.runCoherent()
	if s.follower != nil {
		c.scatter(&s.coherent, c.depths)
		if c.coherence {
			c.scatter(&s.lostAt, c.lostAt)
		}
	}
	c.lines, c.foreign, c.turns, c.others, c.several = c.lines[:0], c.foreign[:0], c.turns[:0], c.others[:0], false
}

// scatter stores one number for each access of the core in an array. The index of the number is the
// index of the access among all accesses from package locality.
func (c *core) scatter(to *[maxAccesses]uint32, numbers []uint32) {
	for _, t := range c.turns {
		copy(to[t.first:], numbers[:t.accesses])
		numbers = numbers[t.accesses:]
	}
}

func (c *core) measure(private *[maxAccesses]uint32) {
	depths := c.depths[:len(c.lines)]
	if !c.several {
		c.private.Distances(c.lines, depths)
	} else {
		c.private.DistancesMarked(c.lines, c.foreign, depths)
		for i, d := range depths {
			if c.foreign[i] {
				c.foreignCounts.add(d)
			}
		}
	}
	c.privateCounts.addAll(depths)
	c.scatter(private, depths)
}

// runCoherent performs all pending operations on the coherent stack, and reports whether there were
// coherence misses.
func (c *core) runCoherent() (lost bool) {
	done := 0
	for i := range c.others {
		o := &c.others[i]
		lost = c.access(done, o.access) || lost
		done = o.access
		if o.op == stack.LoseOp {
			c.coherent.Lose(o.line)
			c.invalidations++
		} else {
			c.asked = append(c.asked, c.coherent.Depth(o.line))
		}
	}
	lost = c.access(done, len(c.lines)) || lost
	c.coherentCounts.addAll(c.depths[:len(c.lines)])
	return lost
}

// access performs the accesses [lo, hi) on the coherent stack, counts the coherence misses, and
// reports whether there were any.
func (c *core) access(lo, hi int) (some bool) {
	if lo == hi {
		return false
	}
	if c.coherent.Access(c.lines[lo:hi], c.depths[lo:], c.lostAt[lo:]) == 0 {
		return false
	}
	for i, d := range c.depths[lo:hi] {
		if d == lost {
			c.lost.add(c.lostAt[lo+i])
		}
	}
	return true
}

func (c *core) room(accesses int) {
	if len(c.depths) < accesses {
		n := max(accesses, maxAccesses)
		c.depths, c.lostAt = make([]uint32, n), make([]uint32, n)
	}
}

func (c *core) close() {
	c.privateSets.close()
	c.coherentSets.close()
	c.foreignSets.close()
	c.private, c.coherent = nil, nil
}

const topDepths = 16 // distances below topDepths are counted in an array

type counts struct {
	top  [topDepths]uint64
	cold uint64
	deep profile.Histogram
}

func (c *counts) add(distance uint32) {
	switch {
	case distance < topDepths:
		c.top[distance]++
	case distance == cold:
		c.cold++
	default:
		c.deep.Add(uint64(distance))
	}
}

// addAll adds distances, except for coherence misses.
func (c *counts) addAll(distances []uint32) {
	// two tables are used alternately, because otherwise an increment of a counter often has to
	// wait for the previous store to the same counter
	var top [2][topDepths]uint64
	for i, d := range distances {
		if d < topDepths {
			top[i&1][d]++
		} else if d != lost {
			c.add(d)
		}
	}
	for d := range c.top {
		c.top[d] += top[0][d] + top[1][d]
	}
}

func (c *counts) load(h *profile.Histogram, cold uint64) {
	c.cold += cold
	for d, n := range h.All() {
		if d < topDepths {
			c.top[d] += n
		} else {
			c.deep.AddN(d, n)
		}
	}
}

// histogram returns a new histogram of the finite distances.
func (c *counts) histogram() (h profile.Histogram) {
	for d, n := range c.top {
		h.AddN(uint64(d), n)
	}
	h.Merge(&c.deep)
	return h
}

func (c *counts) withTable(t *table) profile.StackCounts {
	return profile.StackCounts{Cold: c.cold, Distances: c.histogram(), Sets: t.sum()}
}

type tabled interface{ Depths() *stack.SetDepths }

// markedModel is a model whose method Depths returns the counts of the marked accesses.
type markedModel struct{ *stack.Sets }

// Depths implements tabled.
func (m markedModel) Depths() *stack.SetDepths { return m.MarkedDepths() }

// table is a set table: the sum of earlier counts and the counts of a model. The model is nil if it
// has been closed.
type table struct {
	before  profile.SetTable
	model   tabled
	omitted uint32 // bit set of the numbers of sets that are not counted
}

func (t *table) sum() profile.SetTable {
	sum := t.before
	if t.model != nil {
		sum.Add(&profile.SetTable{Depths: *t.model.Depths()})
	}
	sum.Omit(t.omitted)
	return sum
}

func (t *table) close() { t.before, t.model = t.sum(), nil }
