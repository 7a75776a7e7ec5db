package estimate

import (
	"math"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// threads estimates the counts of package sharing for one line size.
type threads struct {
	options  sample.Options
	bytes    uint32
	grouping *sharing.Grouping
	cores    []*coreStacks
	domains  []*domainStacks // the first domain contains all cores

	lines   knownLines
	inFront lineCores             // for each line: the cores whose coherent stacks contain the line in the front
	waiting map[trace.Line]uint64 // for each line: the cores that have an open sample of the line
	draws   int                   // number of samples of single accesses that have begun

	sites *siteCores // receives the depth of each access on the coherent stack of its core; may be nil
}

// knownLines contains lines, chosen by their hash, that are observed at every access. The known
// lines are the sampled lines or, if single accesses are sampled, lines from which the numbers of
// first accesses and invalidations are estimated.
type knownLines struct {
	seed, threshold uint64
	most            int // maximum number of lines; 0: no limit
	halvings        uint
	of              map[trace.Line]*knownLine
}

// knownLine contains the cores that have ever accessed a line, the cores that currently have a
// valid copy of the line, and the core that last accessed the line.
type knownLine struct {
	ever, holders uint64
	last          []uint8 // for each domain: 1 + the core of the domain that last accessed the line
}

const firstLines = 1 << 13 // number of known lines if single accesses are sampled

type coreStacks struct {
	accesses                   uint64
	private, coherent, foreign stackSample
	lostNear                   [frontLines]uint64 // number of coherence misses whose line is in the front of the private stack
	lost                       profile.Histogram  // all other sampled coherence misses
	lostSpread                 [groups]uint64
	taken                      [groups]uint64 // number of invalidations by stores of other cores

	// These fields are used in samples of lines.
	space    *spaceSampler
	top      holedFront    // front of the coherent stack; not updated while it equals the front of the private stack
	same     bool          // the two fronts are equal, because no line has been invalidated so far
	nearLost []nearLost    // invalidated lines that are still in the front of the private stack
	own      *sampledOrder // sampled lines on the private stack
	holed    *holedStack   // sampled lines on the coherent stack
	lostAt   map[trace.Line]uint32

	// These fields are used in samples of single accesses.
	time  *timeSampler
	waits map[trace.Line]pendingSample
}

// nearLost is an invalidated line with its depth at the time of the invalidation.
type nearLost struct {
	line trace.Line
	at   int
}

// pendingSample records which accesses other cores have made to the line of a sample since the
// sampled access.
type pendingSample struct {
	foreign bool // another core has accessed the line
	lost    bool // another core has stored to the line
	at      uint32
}

// domainStacks contains the stacks of the cores of a domain, which share a cache.
type domainStacks struct {
	threads  []uint32 // nil: all threads
	accesses uint64
	members  []*stackSample // indexed by core; nil: the core is not in the domain
	foreign  stackSample
	space    *spaceSampler
	time     *timeSampler
	waits    map[trace.Line]uint8 // for each line: the core that began the sample
}

func newThreads(o sample.Options, lineBytes uint32, w *sharing.Options) *threads {
	t := &threads{options: o, bytes: lineBytes, grouping: sharing.NewGrouping(w.Cores),
		waiting: map[trace.Line]uint64{}}
	t.lines = knownLines{seed: o.Seed, threshold: o.Threshold, of: map[trace.Line]*knownLine{}}
	switch o.Mode {
	case profile.LinesSample:
		t.lines.threshold, t.lines.most = math.MaxUint64, int(o.Lines)
	case profile.TimeSample:
		t.lines.threshold, t.lines.most = math.MaxUint64, firstLines
	}
	t.addDomain(nil)
	for _, threads := range w.Domains {
		t.addDomain(threads)
	}
	return t
}

func (t *threads) addDomain(threads []uint32) {
	d := &domainStacks{threads: threads}
	if t.single() {
		d.time, d.waits = newTime(t.options.Gap, t.seedOf(profile.MaxCores+len(t.domains))), map[trace.Line]uint8{}
	} else {
		d.space = t.newSpace()
	}
	t.domains = append(t.domains, d)
}

func (t *threads) single() bool { return t.options.Mode == profile.TimeSample }

// seedOf returns the random seed for the samples of a stack.
func (t *threads) seedOf(number int) uint64 { return hashLine(uint64(number)+1, t.options.Seed) }

// newSpace returns a stack of the lines that are currently sampled.
func (t *threads) newSpace() *spaceSampler {
	s := newSpace(t.lines.threshold, t.lines.seed, 0)
	s.halvings = t.lines.halvings
	return s
}

// coreOf returns the core of a thread, and creates the stacks of the core if necessary.
func (t *threads) coreOf(thread uint32) uint8 {
	core := t.grouping.Core(thread)
	for len(t.cores) < t.grouping.Cores() {
		number := uint8(len(t.cores))
		c := &coreStacks{}
		if t.single() {
			c.time, c.waits = newTime(t.options.Gap, t.seedOf(int(number))), map[trace.Line]pendingSample{}
		} else {
			c.space, c.own, c.holed = t.newSpace(), newOrder(), newHoled()
			c.lostAt, c.same = map[trace.Line]uint32{}, true
		}
		t.cores = append(t.cores, c)
		for _, d := range t.domains {
			member := (*stackSample)(nil)
			if d.threads == nil || t.grouping.IsIn(number, d.threads) {
				member = new(stackSample)
			}
			d.members = append(d.members, member)
		}
	}
	return core
}

// weight returns the number of accesses that an access to a known line represents.
func (l *knownLines) weight() uint64 { return 1 << l.halvings }

func (t *threads) access(core uint8, line trace.Line, write bool) {
	c, bit := t.cores[core], uint64(1)<<core
	c.accesses++
	h := hashLine(line, t.lines.seed)
	group := int(h % groups)
	var known *knownLine
	if h <= t.lines.threshold {
		known = t.lines.of[line]
		if known == nil {
			known = &knownLine{last: make([]uint8, len(t.domains))}
			t.lines.of[line] = known
		}
	}
	if t.single() {
		t.accessTimed(c, core, line, write, known, group)
	} else {
		t.accessSampled(c, core, line, h, write, known, group)
	}
	if known == nil {
		return
	}
	if write {
		for others := known.holders &^ bit; others != 0; others &= others - 1 {
			t.cores[bits.TrailingZeros64(others)].taken[group] += t.lines.weight()
		}
		known.holders = 0
	}
	known.ever |= bit
	known.holders |= bit
	for i, d := range t.domains {
		if d.members[core] != nil {
			known.last[i] = core + 1
		}
	}
	for t.lines.most > 0 && len(t.lines.of) > t.lines.most {
		t.halveRate()
	}
}

// accessSampled performs an access in a sample of lines. The parameter h is the hash of the line.
// The parameter known is nil if the line is not in the sample.
func (t *threads) accessSampled(c *coreStacks, core uint8, line trace.Line, h uint64, write bool, known *knownLine, group int) {
	weight := t.lines.weight()
	d, left := c.space.front.access(line)
	if d < frontLines {
		c.private.near[d]++
	} else {
		d = int(c.space.fetchIntoFront(line, h, left))
		c.private.add(uint32(d), weight, group)
	}
	t.accessCoherent(c, core, line, left, uint32(d), known, group)
	if write {
		t.invalidateOthers(core, line, known)
	}
	for i, dom := range t.domains {
		member := dom.members[core]
		if member == nil {
			continue
		}
		dom.accesses++
		together, left := dom.space.front.access(line)
		if together < frontLines {
			member.near[together]++
		} else {
			together = int(dom.space.fetchIntoFront(line, h, left))
			member.add(uint32(together), weight, group)
		}
		if known == nil || known.last[i] == 0 || known.last[i] == core+1 {
			continue
		}
		dom.foreign.addSampled(uint32(together), weight, group)
		if i == 0 && d == stack.Cold {
			c.foreign.add(uint32(d), weight, group)
		} else if i == 0 {
			c.foreign.addSampled(uint32(d), weight, group)
		}
	}
}

// accessCoherent counts an access on a core's coherent stack. The parameter private is the distance
// on the private stack, and the parameter evicted is the line that left the front of the private
// stack.
//
// The fronts of both stacks are exact. No line is deeper on the coherent stack than on the private
// stack, so a line that is only in the private front has been invalidated. Both fronts are equal
// until a line is invalidated. For sampled lines beyond the front, the distance on the coherent
// stack is estimated: it is the distance on the private stack, multiplied by the number of sampled
// lines above the line on the coherent stack, and divided by the number of sampled lines above the
// line on the private stack.
func (t *threads) accessCoherent(c *coreStacks, core uint8, line, evicted trace.Line, private uint32, known *knownLine, group int) {
	at := int(min(private, frontLines))
	if !c.same {
		at, evicted = c.top.access(line)
		c.same = front(c.top) == c.space.front
	}
	if at < frontLines {
		c.coherent.near[at]++
		t.sites.setDepths(uint32(at), 0)
	} else {
		t.inFront.add(line, core)
		if evicted != noLine {
			t.inFront.remove(evicted, core)
		}
		if lost := c.takeNearLost(line); private < frontLines {
			c.lostNear[lost&(frontLines-1)]++
			t.sites.setDepths(stack.Lost, uint32(lost&(frontLines-1)))
		}
	}
	if known == nil || at == 0 {
		return // if the line is on top of the stack, it is also on top of the sampled stack
	}
	ownAbove, _, _ := c.own.removeLine(line)
	c.own.register(line)
	c.own.push(line, 0)
	above, how := c.holed.access(line)
	lostAt := c.lostAt[line]
	if how == foundLost {
		delete(c.lostAt, line)
	}
	weight := t.lines.weight()
	switch {
	case at < frontLines || private < frontLines: // this access has already been counted
	case how == foundLost:
		c.lost.AddN(uint64(lostAt), weight)
		c.lostSpread[group] += weight
		t.sites.countSampled(stack.Lost, lostAt, weight, group)
	case how == foundNew || private == stack.Cold:
		c.coherent.add(stack.Cold, weight, group)
		t.sites.countSampled(stack.Cold, 0, weight, group)
	default:
		depth := c.coherentDistance(private, ownAbove, above)
		c.coherent.addSampled(depth, weight, group)
		t.sites.countSampled(depth, 0, weight, group)
	}
}

// takeNearLost removes a line from the list nearLost, and returns the line's depth at the time of
// the invalidation.
func (c *coreStacks) takeNearLost(line trace.Line) (at int) {
	for i, x := range c.nearLost {
		if x.line == line {
			c.nearLost = slices.Delete(c.nearLost, i, i+1)
			return x.at
		}
	}
	return 0
}

// coherentDistance returns the distance on the coherent stack for a line that is not in the front.
func (c *coreStacks) coherentDistance(private uint32, ownAbove, above int) uint32 {
	if c.space.rate >= 1 {
		return uint32(above)
	}
	if above == ownAbove || ownAbove == 0 {
		return private
	}
	return max(frontLines, uint32(math.Round(float64(private)*float64(above)/float64(ownAbove))))
}

const mostNearLost = 4 * frontLines // maximum length of the list nearLost; at most frontLines of these lines can still be in the private front

// invalidateOthers invalidates a line on the stacks of all other cores, because a core has stored
// to the line.
func (t *threads) invalidateOthers(core uint8, line trace.Line, known *knownLine) {
	for others := t.inFront.coresOf(line) &^ (1 << core); others != 0; others &= others - 1 {
		other := uint8(bits.TrailingZeros64(others))
		c := t.cores[other]
		if c.same {
			c.top, c.same = holedFront(c.space.front), false
		}
		at := c.top.invalidate(line)
		t.inFront.remove(line, other)
		if known != nil {
			c.lostAt[line] = uint32(at)
		}
		if slices.Contains(c.space.front[:], line) {
			c.recordNearLost(line, at)
		}
	}
	if known == nil {
		return
	}
	for others := known.holders &^ (1 << core); others != 0; others &= others - 1 {
		c := t.cores[bits.TrailingZeros64(others)]
		above, here := c.holed.invalidate(line)
		if _, near := c.lostAt[line]; here && !near {
			c.lostAt[line] = c.toDepth(above)
		}
	}
}

func (c *coreStacks) coherentTop() *holedFront {
	if c.same {
		return (*holedFront)(&c.space.front)
	}
	return &c.top
}

// recordNearLost records the depth of an invalidated line that is in the private front.
func (c *coreStacks) recordNearLost(line trace.Line, at int) {
	c.takeNearLost(line)
	if len(c.nearLost) == mostNearLost {
		c.nearLost = slices.DeleteFunc(c.nearLost, func(x nearLost) bool { return !slices.Contains(c.space.front[:], x.line) })
	}
	c.nearLost = append(c.nearLost, nearLost{line, at})
}

// toDepth converts the number of sampled lines above a line to the depth of the line, which must
// not be in the front.
func (c *coreStacks) toDepth(above int) uint32 {
	if c.space.rate >= 1 {
		return uint32(above)
	}
	return uint32(min(max(frontLines, math.Round(float64(above)/c.space.rate)), farthest))
}

// depth returns the depth of a sampled line on a core's coherent stack, or stack.Cold.
func (t *threads) depth(core uint8, line trace.Line) uint32 {
	if int(core) >= len(t.cores) {
		return stack.Cold
	}
	c := t.cores[core]
	if at := c.coherentTop().depth(line); at < frontLines {
		return uint32(at)
	}
	if above, here := c.holed.depth(line); here {
		return c.toDepth(above)
	}
	return stack.Cold
}

// accessTimed performs an access in a sample of single accesses. Each stack has its own samples. A
// sample ends when the same core next accesses the line. This access is a coherence miss if another
// core has stored to the line.
func (t *threads) accessTimed(c *coreStacks, core uint8, line trace.Line, write bool, known *knownLine, group int) {
	bit := uint64(1) << core
	if len(t.waiting) > 0 {
		for others := t.waiting[line] &^ bit; others != 0; others &= others - 1 {
			other := t.cores[bits.TrailingZeros64(others)]
			w := other.waits[line]
			if w.foreign = true; write && !w.lost {
				w.lost, w.at = true, other.time.currentDistance(line)
			}
			other.waits[line] = w
		}
	}
	d, began := c.time.access(line)
	if d != passed {
		w := c.waits[line]
		delete(c.waits, line)
		t.stopWaiting(line, bit)
		of := t.draw()
		c.private.addSampled(d, 1, of)
		if w.foreign {
			c.foreign.addSampled(d, 1, of)
		}
		if w.lost {
			c.lost.Add(uint64(w.at))
			c.lostSpread[of]++
			t.sites.countSampled(stack.Lost, w.at, 1, of)
		} else {
			c.coherent.addSampled(d, 1, of)
			t.sites.countSampled(d, 0, 1, of)
		}
	}
	if began {
		c.waits[line] = pendingSample{}
		t.waiting[line] |= bit
	}
	weight := t.lines.weight()
	if known != nil && known.ever&bit == 0 {
		c.private.add(stack.Cold, weight, group)
		c.coherent.add(stack.Cold, weight, group)
		t.sites.countSampled(stack.Cold, 0, weight, group)
	}
	for i, dom := range t.domains {
		member := dom.members[core]
		if member == nil {
			continue
		}
		dom.accesses++
		if known != nil && known.last[i] == 0 {
			member.add(stack.Cold, weight, group)
		}
		d, began := dom.time.access(line)
		if d != passed {
			of := t.draw()
			member.addSampled(d, 1, of)
			if dom.waits[line] != core {
				dom.foreign.addSampled(d, 1, of)
			}
			delete(dom.waits, line)
		}
		if began {
			dom.waits[line] = core
		}
		if i == 0 && known != nil && known.ever&bit == 0 && known.last[0] != 0 && known.last[0] != core+1 {
			c.foreign.add(stack.Cold, weight, group)
		}
	}
}

// draw returns the group of the next sample of a single access. Samples are assigned to groups in
// turn.
func (t *threads) draw() int {
	t.draws++
	return t.draws % groups
}

func (t *threads) stopWaiting(line trace.Line, bit uint64) {
	if cores := t.waiting[line] &^ bit; cores != 0 {
		t.waiting[line] = cores
	} else {
		delete(t.waiting, line)
	}
}

// halveRate halves the sampling rate of lines for all stacks.
func (t *threads) halveRate() {
	t.lines.threshold /= 2
	t.lines.halvings++
	keep := func(line trace.Line) bool { return hashLine(line, t.lines.seed) <= t.lines.threshold }
	for line := range t.lines.of {
		if !keep(line) {
			delete(t.lines.of, line)
		}
	}
	if t.single() {
		return
	}
	for _, d := range t.domains {
		d.space.halve()
	}
	for _, c := range t.cores {
		c.space.halve()
		c.own.dropLines(keep)
		c.holed.dropLines(keep)
		for line := range c.lostAt {
			if !keep(line) {
				delete(c.lostAt, line)
			}
		}
	}
}
