package sharing

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// segmentJoin describes a segment that is being appended, for one line size.
type segmentJoin struct {
	*sizePart
	// the holders of a line are the cores that have touched the line in the segment so far
	touchedBy directory
	kept      []bool   // for each note: whether the note is kept
	near      []uint32 // for each note of a first touch: the distance on the private stack
	depths    []uint32 // for each note of a first touch: the depth on the coherent stack
	// for each note of a first touch: if the line was invalidated, its depth at that time
	lostAt  []uint32
	touched []int    // notes that describe a core's first touch of a line
	work    []work   // for each core: the notes that must be resolved
	first   []firsts // first touches of each domain

	// These fields are used only while there is one core.
	stores  []store
	touches int

	resolved int // number of first touches that package locality has resolved so far
}

type work struct {
	steps []int // notes that depend on the coherent stack at the beginning of the segment

	// These lists describe first touches: the notes, the lines, whether another core touched the
	// line last, and whether the segment has already counted the access as foreign.
	touches          []int
	lines            []trace.Line
	foreign, counted []bool
}

type firsts struct {
	overlapped uint64 // bit set of the cores that have had an overlap in the segment so far
	list       []firstTouch
	others     []int // notes of a core's first touches of lines that another core of the domain had touched earlier in the segment
}

// firstTouch is the note of a first touch, with the state of the touched line.
type firstTouch struct {
	note             int
	foreign, overlap bool
}

// join appends a segment. The parameter coreNumbers maps the cores of the segment to cores of the
// run.
func (s *lineSize) join(p *sizePart, coreNumbers []uint8) error {
	s.addCores(len(s.analysis.cores.list))
	p.renumber(coreNumbers, len(s.cores))
	j := &segmentJoin{sizePart: p, kept: make([]bool, len(p.notes)), near: make([]uint32, len(p.notes))}
	j.depths, j.lostAt = make([]uint32, len(p.notes)), make([]uint32, len(p.notes))
	j.touchedBy.reset(p.lines.lines)
	j.work, j.first = make([]work, len(s.cores)), make([]firsts, len(p.domains))
	s.joint = j
	s.add(p)
	for i := range p.notes {
		s.findLineState(j, i)
	}
	for n, c := range s.cores {
		c.measureFirst(&j.work[n], j.near)
		if err := c.joinCoherent(j, n); err != nil {
			return err
		}
	}
	if s.follower != nil {
		depths, lostAt := []uint32{}, []uint32{} // depths of the cores' first touches, in order
		for _, i := range j.touched {
			depths, lostAt = append(depths, j.depths[i]), append(lostAt, j.lostAt[i])
		}
		s.follower.JoinCores(depths, lostAt)
	}
	for k, d := range s.domains {
		d.replayFirstTouches(j, k+1)
	}
	for _, note := range j.first[0].others {
		s.all.members[p.notes[note].core()].countForeignTouch(j.near[note])
	}
	s.putOnTop(j)
	s.keepNotes(j)
	return nil
}

// renumber replaces the numbers of cores in a segment with their numbers in the run.
func (p *sizePart) renumber(coreNumbers []uint8, cores int) {
	all := make([]corePart, cores)
	mask := func(set uint64) (there uint64) {
		for n, core := range coreNumbers {
			there |= set >> n & 1 << core
		}
		return there
	}
	for n := range p.cores {
		all[coreNumbers[n]] = p.cores[n]
	}
	p.cores = all
	for i := range p.notes {
		n := &p.notes[i]
		*n = noteOf(n.line, n.op(), coreNumbers[n.core()], n.filled())
	}
	for i := range p.domains {
		d := &p.domains[i]
		if d.Domain == nil {
			continue
		}
		members, overlaps := make([]*profile.Member, cores), make([]uint64, cores)
		for n, core := range coreNumbers {
			members[core], overlaps[core] = d.members[n], d.overlaps[n]
		}
		d.members, d.overlaps = members, overlaps
		for k := range d.touchers {
			t := &d.touchers[k]
			t.last, t.holders = coreNumbers[t.last], mask(t.holders)
		}
	}
}

func (s *lineSize) add(p *sizePart) {
	for n, c := range s.cores {
		if p.cores[n].Core != nil {
			c.load(p.cores[n].Core)
		}
	}
	for i, d := range s.allDomains() {
		if p.domains[i].Domain != nil {
			d.load(&p.domains[i])
		}
	}
}

// findLineState determines the state that the line of note i had at the beginning of the segment.
func (s *lineSize) findLineState(j *segmentJoin, i int) {
	n := j.notes[i]
	e, bit := j.touchedBy.entry(n.line), uint64(1)<<n.core()
	if n.op() == stored {
		if before := s.all.directory.lookUp(n.line); before != nil {
			for victims := before.holders &^ e.holders &^ bit; victims != 0; victims &= victims - 1 {
				w := &j.work[lowest(victims)]
				w.steps = append(w.steps, i)
			}
		}
		if s.segment != nil {
			before := s.segment.lines.lookUp(n.line)
			j.kept[i] = before == nil || before.last == 0
		}
		return
	}
	w := &j.work[n.core()]
	if w.steps = append(w.steps, i); n.op() == again {
		return
	}
	j.touched = append(j.touched, i)
	foreign := false
	for k, d := range s.allDomains() {
		if d.has(n.core()) && d.findForeign(&j.first[k], i, n, e.holders) && k == 0 {
			foreign = true
		}
	}
	w.touches, w.lines = append(w.touches, i), append(w.lines, n.line)
	w.foreign, w.counted = append(w.foreign, foreign), append(w.counted, e.holders != 0)
	e.holders |= bit
}

// findForeign determines which core of a domain last touched a line before a given core's first
// touch, and reports whether the two cores differ. The parameter others contains the cores that
// touched the line earlier in the segment.
func (d *domain) findForeign(f *firsts, i int, n note, others uint64) (foreign bool) {
	core, o := n.core(), &d.overlaps
	if others &= d.set(); others != 0 { // of the cores in others, the first to touch the line now has an overlap; the rest already had an overlap
		f.overlapped |= others | 1<<core
		f.others = append(f.others, i)
		return true
	}
	at := firstTouch{note: i}
	if e := d.directory.lookUp(n.line); e != nil {
		last, before := uint8(e.last), e.last>>8
		if at.foreign = last != core; at.foreign {
			o.both[core], o.both[last] = max(o.both[core], before), max(o.both[last], before)
		} else {
			at.overlap = f.overlapped>>core&1 != 0 || o.both[core] > before
		}
	}
	f.list = append(f.list, at)
	return at.foreign
}

func (c *core) measureFirst(w *work, near []uint32) {
	c.room(len(w.lines))
	c.private.DistancesMarked(w.lines, w.foreign, c.depths)
	for i, note := range w.touches {
		d := c.depths[i]
		if near[note] = d; d != cold {
			c.privateCounts.cold--
			c.privateCounts.add(d)
		}
		switch {
		case !w.foreign[i]:
		case !w.counted[i]:
			c.foreignCounts.add(d)
		case d != cold:
			c.foreignCounts.cold--
			c.foreignCounts.add(d)
		}
	}
}

// joinCoherent places the coherent stack of the segment on top of the core's coherent stack, and
// resolves the notes of the core.
func (c *core) joinCoherent(j *segmentJoin, number int) error {
	steps := j.work[number].steps
	if len(steps) == 0 {
		return nil
	}
	below, err := stack.NewBelow(c.sets, c.coherentState())
	if err != nil {
		return err
	}
	for _, i := range steps {
		n := &j.notes[i]
		switch n.op() {
		case stored:
			below.Lose(n.line)
			c.invalidations++
		case again:
			*n = noteOf(n.line, again, n.core(), below.Again(n.line, n.filled()))
			j.kept[i] = n.dependsOnEarlier()
		default:
			j.depths[i], j.lostAt[i], j.kept[i] = c.resolveTouch(below, n)
		}
	}
	state := j.cores[number].coherent
	if state == nil {
		state = stack.CoherentState(nil)
	}
	if state, err = below.Join(state); err != nil {
		return err
	}
	c.coherentSets.before.Add(&profile.SetTable{Depths: *below.Depths()})
	return c.setCoherent(state)
}

// resolveTouch counts a first touch of a segment. resolveTouch returns the depth of the line and,
// if the line was invalidated, its depth at that time. The result remains reports whether the note
// still depends on earlier segments.
func (c *core) resolveTouch(below *stack.Below, n *note) (depth, lostAt uint32, remains bool) {
	depth, lostAt, filled := below.Touch(n.line, n.filled())
	switch depth {
	case cold:
		*n = noteOf(n.line, touched, n.core(), filled)
		return depth, 0, true
	case lost:
		c.coherentCounts.cold--
		c.lost.add(lostAt)
		*n = noteOf(n.line, again, n.core(), filled)
		return depth, lostAt, n.dependsOnEarlier()
	}
	c.coherentCounts.cold--
	c.coherentCounts.add(depth)
	return depth, 0, false
}

// replayFirstTouches replays the first touches of a segment on the stack of a domain.
func (d *domain) replayFirstTouches(j *segmentJoin, k int) {
	f := &j.first[k]
	for len(f.list) > 0 {
		var lines [maxAccesses]trace.Line
		var foreign [maxAccesses]bool
		n := min(len(f.list), maxAccesses)
		for i, at := range f.list[:n] {
			lines[i], foreign[i] = j.notes[at.note].line, at.foreign
		}
		if len(d.distances) < n {
			d.distances = make([]uint32, maxAccesses)
		}
		d.sets.DistancesMarked(lines[:n], foreign[:n], d.distances)
		d.countFirstTouches(j, f.list[:n], d.distances)
		f.list = f.list[n:]
	}
	for _, note := range f.others {
		d.members[j.notes[note].core()].countForeignTouch(j.near[note])
	}
}

// countFirstTouches counts first touches by their distances on the stack of the domain. The segment
// has counted them as cold.
func (d *domain) countFirstTouches(j *segmentJoin, list []firstTouch, distances []uint32) {
	for i, at := range list {
		m, near, far := d.members[j.notes[at.note].core()], j.near[at.note], distances[i]
		if far == cold {
			continue
		}
		m.cold--
		m.add(far)
		switch {
		case at.foreign:
			d.foreign.add(far)
			if near == cold {
				m.brought++
			} else {
				m.intercepted++
			}
		case near == far:
		case at.overlap:
			m.overlapped++
		default:
			m.dilated++
		}
	}
}

// countForeignTouch counts a core's first touch of a line if another core touched the line earlier
// in the segment.
func (m *member) countForeignTouch(near uint32) {
	if near != cold {
		m.brought--
		m.intercepted++
	}
}

func (s *lineSize) putOnTop(j *segmentJoin) {
	for n, c := range s.cores {
		locality.PushAll(j.cores[n].private, c.private.Push)
	}
	for k, d := range s.allDomains() {
		d.putOnTop(&j.domains[k], &j.first[k], &j.lines)
	}
}

// putOnTop pushes the lines of a segment onto the stack. The parameter stored contains the lines to
// which a core stored.
func (d *domain) putOnTop(p *domainPart, f *firsts, stored *directory) {
	o := &d.overlaps
	before := o.now
	for i := len(p.stack) - 1; i >= 0; i-- {
		t, e := p.touchers[i], d.directory.entry(p.stack[i])
		if of := stored.lookUp(p.stack[i]); of == nil || of.last == 0 {
			t.holders |= e.holders
		}
		o.now++
		e.last, e.holders = o.now<<8|uint64(t.last), t.holders
	}
	for n, older := range p.overlaps {
		if f.overlapped>>n&1 != 0 {
			o.both[n] = before + older + 1
		}
	}
	if d.sets != nil {
		locality.PushAll(p.stack, d.sets.Push)
	}
}

// keepNotes keeps the notes that still depend on earlier segments.
func (s *lineSize) keepNotes(j *segmentJoin) {
	g := s.segment
	if g == nil {
		return
	}
	g.notes = slices.Grow(g.notes, len(j.notes))
	for i, n := range j.notes {
		if !j.kept[i] {
			continue
		}
		g.notes = append(g.notes, n)
		switch n.op() {
		case touched:
			g.lines.entry(n.line).holders |= 1 << n.core()
		case stored:
			g.lines.entry(n.line).last = 1
		}
	}
	g.from = len(g.notes)
}

// MarkFirst implements locality.Marker.
func (s *lineSize) MarkFirst(touches []profile.FirstTouch) []bool {
	if s.joint == nil || s.joint.sizePart == nil {
		return nil
	}
	foreign := make([]bool, len(touches))
	for i, at := range s.joint.first[0].list[:len(touches)] {
		foreign[i] = at.foreign
	}
	return foreign
}

// Resolve implements locality.Follower.
func (s *lineSize) Resolve(touches []profile.FirstTouch, distances []uint32) {
	j := s.joint
	switch {
	case j == nil:
		return
	case j.sizePart == nil && s.segment == nil:
		return
	case j.sizePart == nil:
		s.segment.resolveSingleCore(j, distances[:len(touches)])
		return
	}
	f := &j.first[0]
	s.all.countFirstTouches(j, f.list[:len(touches)], distances)
	if f.list = f.list[len(touches):]; len(f.list) == 0 {
		s.joint = nil
	}
}

// resolveSingleCore appends the accesses of the segment if the joined run still has only one core.
func (g *segment) resolveSingleCore(j *segmentJoin, distances []uint32) {
	for _, d := range distances {
		j.appendStores(g)
		if j.resolved++; d == cold {
			g.touches++
		}
	}
	if j.resolved == j.touches {
		j.appendStores(g)
	}
}

// appendStores appends the stores that precede the next first touch.
func (j *segmentJoin) appendStores(g *segment) {
	for len(j.stores) > 0 && j.stores[0].touches <= uint64(j.resolved) {
		if g.isFirst(j.stores[0].line) {
			g.stores = append(g.stores, store{j.stores[0].line, g.touches})
		}
		j.stores = j.stores[1:]
	}
}
