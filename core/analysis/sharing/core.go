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
	coherent       *stack.Coherent
	privateSets    table
	coherentSets   table
	foreignSets    table
	privateCounts  counts
	coherentCounts counts
	foreignCounts  counts // accesses on the private stack to lines that another core touched last
	lost           counts
	invalidations  uint64

	// The pending work of the core: its accesses, and the operations that precede some of the
	// accesses.
	lines   []trace.Line
	foreign []bool // whether each access is foreign
	several bool   // at least one access is foreign
	turns   []coreRun
	others  []stackOperation

	alone          bool // the distances on the private stack are counted
	noting         bool // the analysis records which holes accesses fill
	coherence      bool // the latest call of run found coherence misses
	depths, lostAt []uint32
	asked          []uint32 // the depths for the latest questions
}

// coreRun is a run of accesses of the core, with its position among the accesses from the pass.
type coreRun struct{ first, accesses int }

// stackOperation is an invalidation or a question that precedes one of the accesses.
type stackOperation struct {
	access int
	op     stack.Op
	line   trace.Line
}

func newCore(sets stack.SetNumbers, stacks Stacks, noting bool) *core {
	c := &core{sets: sets, private: stack.NewSets(sets), coherent: stack.NewCoherent(sets), noting: noting, alone: stacks.has(Private)}
	c.omit(locality.Omitted(sets))
	c.privateSets.model, c.coherentSets.model, c.foreignSets.model = c.private, c.coherent, markedModel{c.private}
	return c
}

func (c *core) omit(omitted uint32) {
	c.privateSets.omitted, c.coherentSets.omitted, c.foreignSets.omitted = omitted, omitted, omitted
}

// initialise initialises a core with the counts so far, and with the lines on the stacks, most recently
// used first.
func (c *core) initialise(before *profile.StackCounts, lines []trace.Line) {
	c.privateCounts.load(&before.Distances, before.Cold)
	c.coherentCounts.load(&before.Distances, before.Cold)
	c.privateSets.before.Add(&before.Sets)
	c.coherentSets.before.Add(&before.Sets)
	locality.PushAll(lines, c.private.Push)
	locality.PushAll(lines, c.pushCoherent)
}

// pushCoherent pushes lines onto the coherent stack, without counting depths. The lines must not be
// on the stack.
func (c *core) pushCoherent(lines []trace.Line) {
	c.room(len(lines))
	c.coherent.Access(lines, c.depths, c.lostAt)
}

// addAccesses adds a run of accesses. first is the run's position among the accesses from the pass.
// several is true if any access is foreign; foreign, which marks the foreign accesses, is used only
// in this case.
func (c *core) addAccesses(lines []trace.Line, foreign []bool, first int, several bool) {
	c.lines, c.foreign = append(c.lines, lines...), append(c.foreign, foreign...)
	c.turns = append(c.turns, coreRun{first, len(lines)})
	c.several = c.several || several
}

func (c *core) addOperation(op stack.Op, line trace.Line) {
	c.others = append(c.others, stackOperation{len(c.lines), op, line})
}

// run performs the accesses and other operations. run writes the distances on the private stack to
// the accesses' positions in the pass. If there is a follower, it also writes the depths on the
// coherent stack.
func (c *core) run(s *lineSize) {
	c.asked = c.asked[:0]
	c.room(len(c.lines))
	if c.alone {
		c.measure(&s.private)
	}
	if c.noting {
		// Record holes only after the initial lines have been pushed, because these lines do not
		// count.
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

// scatter copies a number for each access to the access's position in the pass.
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

// runCoherent performs all operations on the coherent stack. runCoherent reports whether there were coherence
// misses.
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

// access performs the accesses [lo, hi) on the coherent stack, and counts coherence misses. access
// reports whether there were coherence misses.
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

const topDepths = 16 // distances less than topDepths are counted in an array

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

// addAll adds distances, but ignores coherence misses.
func (c *counts) addAll(distances []uint32) {
	// two tables are used in turn, because each increment of a counter must wait for the previous
	// store to the counter
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

// markedModel is a model whose Depths are the counts of the marked accesses.
type markedModel struct{ *stack.Sets }

// Depths implements tabled.
func (m markedModel) Depths() *stack.SetDepths { return m.MarkedDepths() }

// table is the sum of earlier counts and a model's counts. model is nil if the model has been
// closed.
type table struct {
	before  profile.SetTable
	model   tabled
	omitted uint32 // numbers of sets that are omitted
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
