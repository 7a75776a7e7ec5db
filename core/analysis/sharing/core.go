package sharing

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// core is the stacks of one core.
type core struct {
	private        *stack.Sets
	coherent       *stack.Coherent
	privateSets    table
	coherentSets   table
	foreignSets    table
	privateCounts  counts
	coherentCounts counts
	foreign        counts // of the private stack, lines that another core touched last
	lost           counts
	invalidations  uint64

	// What the core has to do. ops holds losses and questions too, but only once
	// there is one; until then it is lines that are all accessed.
	lines   []trace.Line
	indexes []uint32 // of the accesses
	marks   []bool   // those that are foreign
	several bool     // some are
	mixed   bool
	ops     []stack.Op
	opLines []trace.Line

	depths, lostAt []uint32
	asked          []uint32 // depths that were asked for
}

func newCore() *core {
	c := &core{private: stack.NewSets(), coherent: stack.NewCoherent()}
	c.privateSets.model, c.coherentSets.model, c.foreignSets.model = c.private, c.coherent, marked{c.private}
	return c
}

// start has a core begin with what was counted before, and with these lines on its
// stacks, most recently used first.
func (c *core) start(before *profile.StackCounts, lines []trace.Line) {
	c.privateCounts.load(&before.Distances, before.Cold)
	c.coherentCounts.load(&before.Distances, before.Cold)
	c.privateSets.before.Add(&before.Sets)
	c.coherentSets.before.Add(&before.Sets)
	push(lines, c.private.Push)
	push(lines, c.pushCoherent)
}

// pushCoherent accesses lines for the first time: that counts no depth.
func (c *core) pushCoherent(lines []trace.Line) {
	c.room(len(lines))
	c.coherent.Do(onlyAccesses[:len(lines)], lines, c.depths, c.lostAt)
}

// push pushes lines, the last one first.
func push(lines []trace.Line, on func([]trace.Line)) {
	var some [maxAccesses]trace.Line
	for end := len(lines); end > 0; {
		n := min(end, len(some))
		for i := range n {
			some[i] = lines[end-1-i]
		}
		on(some[:n])
		end -= n
	}
}

func (c *core) access(line trace.Line, index uint32, foreign bool) {
	c.lines, c.indexes, c.marks = append(c.lines, line), append(c.indexes, index), append(c.marks, foreign)
	c.several = c.several || foreign
	if c.mixed {
		c.ops, c.opLines = append(c.ops, stack.AccessOp), append(c.opLines, line)
	}
}

func (c *core) lose(line trace.Line) { c.other(stack.LoseOp, line) }
func (c *core) ask(line trace.Line)  { c.other(stack.AskOp, line) }

func (c *core) other(op stack.Op, line trace.Line) {
	if !c.mixed {
		c.mixed = true
		c.opLines = append(c.opLines[:0], c.lines...)
		c.ops = c.ops[:0]
		for range c.lines {
			c.ops = append(c.ops, stack.AccessOp)
		}
	}
	c.ops, c.opLines = append(c.ops, op), append(c.opLines, line)
}

// onlyAccesses are the operations of a core that loses nothing.
var onlyAccesses [maxAccesses]stack.Op

// run does what there is to do, and writes the distances of the accesses on the
// private stack to where their indexes say.
func (c *core) run(private *[maxAccesses]uint32) {
	c.asked = c.asked[:0]
	ops, lines := onlyAccesses[:len(c.lines)], c.lines
	if c.mixed {
		ops, lines = c.ops, c.opLines
	}
	if len(lines) == 0 {
		return
	}
	c.room(len(lines))
	c.measure(private)
	c.coherent.Do(ops, lines, c.depths, c.lostAt)
	c.count(ops, c.depths[:len(ops)], c.lostAt)
	c.lines, c.indexes, c.marks, c.mixed, c.several = c.lines[:0], c.indexes[:0], c.marks[:0], false, false
}

// measure makes the accesses on the private stack.
func (c *core) measure(private *[maxAccesses]uint32) {
	if c.several {
		c.private.DistancesMarked(c.lines, c.marks, c.depths)
	} else {
		c.private.Distances(c.lines, c.depths)
	}
	for i, index := range c.indexes {
		d := c.depths[i]
		private[index%maxAccesses] = d
		c.privateCounts.add(d)
		if c.several && c.marks[i] {
			c.foreign.add(d)
		}
	}
}

// room makes room for the results of so many operations.
func (c *core) room(operations int) {
	if len(c.depths) < operations {
		n := max(operations, maxAccesses)
		c.depths, c.lostAt = make([]uint32, n), make([]uint32, n)
	}
}

// count counts what operations on the coherent stack gave.
func (c *core) count(ops []stack.Op, depths, lostAt []uint32) {
	for i, d := range depths {
		switch {
		case ops[i] == stack.LoseOp:
			c.invalidations++
		case ops[i] == stack.AskOp:
			c.asked = append(c.asked, d)
		case d == lost:
			c.lost.add(lostAt[i])
		default:
			c.coherentCounts.add(d)
		}
	}
}

func (c *core) close() {
	c.privateSets.close()
	c.coherentSets.close()
	c.foreignSets.close()
	c.private, c.coherent = nil, nil
}
