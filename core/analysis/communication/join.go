package communication

import (
	"slices"
	"sort"
)

// join adds the counts of a segment. Threads have the slots to here.
func (a *Analysis) join(b *Analysis, to []uint8) {
	for g := range a.flows {
		a.flows[g].join(b.flows[g].all(), to)
	}
	for _, p := range b.pairs.list {
		a.pairs.of(p.site, p.pair, placeIn(p.place, to)).join(p.counts)
	}
	a.memory.join(&b.memory, to)
	a.pending.countClosed(&a.memory)
	a.done = b.done
}

// placeIn translates a place in flows to other slots.
func placeIn(place uint32, to []uint8) uint32 {
	return placeOf(to[place/mostThreads], to[place%mostThreads])
}

func (f *flows) join(next window, to []uint8) {
	for _, c := range next {
		f.at(placeIn(c.place, to)).join(c.counts)
	}
}

// slots translates a set of threads to other slots.
func slots(set uint64, to []uint8) (there uint64) {
	for slot, n := range to {
		there |= set >> slot & 1 << n
	}
	return there
}

// join appends the windows of a segment up to reference done. flows are the sums of all windows.
func (w *windows) join(next *windows, flows, nextFlows flows, to []uint8, done uint64) {
	all, following := w.all(flows), next.all(nextFlows)
	size := max(w.size, next.size, sizeFor(done-1))
	*w = windows{size: size, first: w.first * w.size / size, open: true, next: ((done-1)/size + 1) * size, closed: halves(all, w.first, size/w.size)}
	for i, flows := range following {
		n := (next.first + uint64(i)) * next.size / size
		for w.first+uint64(len(w.closed)) <= n {
			w.closed = append(w.closed, nil)
		}
		at := &w.closed[n-w.first]
		*at = merged(nil, *at, flows.in(to))
	}
	w.closed = w.closed[:len(w.closed)-1]
	for _, closed := range w.closed {
		w.count(closed)
	}
}

// all returns the closed windows and the open one.
func (w *windows) all(flows flows) []window {
	return append(slices.Clip(w.closed), w.since(flows, nil))
}

// halves joins windows until they are so many times as long. The first one has a number.
func halves(list []window, first, times uint64) (sums []window) {
	for i, flows := range list {
		n := int((first+uint64(i))/times - first/times)
		if n == len(sums) {
			sums = append(sums, nil)
		}
		sums[n] = merged(nil, sums[n], flows)
	}
	return sums
}

// in translates a window to other slots.
func (w window) in(to []uint8) window {
	out := slices.Clone(w)
	for i := range out {
		out[i].place = placeIn(out[i].place, to)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].place < out[j].place })
	return out
}

func (w *window) at(place uint32) *counts {
	i := sort.Search(len(*w), func(i int) bool { return (*w)[i].place >= place })
	if i == len(*w) || (*w)[i].place != place {
		*w = slices.Insert(*w, i, placed{place: place})
	}
	return &(*w)[i].counts
}

func (o *owners) join(next *owners, to []uint8) {
	for n := range next.objects {
		from := &next.objects[n]
		if len(from.parts) == 0 {
			continue
		}
		if n >= len(o.objects) {
			o.grow(uint32(n))
		}
		o.objects[n].join(from, to)
	}
}

func (o *owned) join(next *owned, to []uint8) {
	for next.shift < o.shift {
		next.coarsen()
	}
	last := (next.first+uint64(len(next.parts)))<<next.shift - 1
	if len(o.parts) == 0 {
		o.shift = next.shift
	}
	for o.shift < next.shift {
		o.coarsen()
	}
	o.extend(next.first<<next.shift, last)
	for next.shift < o.shift {
		next.coarsen()
	}
	for i := range next.parts {
		p := next.parts[i]
		p.readers, p.writers = slots(p.readers, to), slots(p.writers, to)
		p.class.move(to)
		o.parts[next.first+uint64(i)-o.first].join(&p)
	}
	for slot, counts := range next.counts {
		if len(counts) == 0 {
			continue
		}
		thread := to[slot]
		o.count(thread)
		for i, n := range counts {
			o.counts[thread][next.first+uint64(i)-o.first] += n
		}
	}
}

// move translates threads to other slots.
func (u *usage) move(to []uint8) {
	u.first = to[u.first]
	if u.producer != 0 && u.producer != manyProducers {
		u.producer = to[u.producer-1] + 1
	}
}

// join adds later usage.
func (u *usage) join(next usage) {
	u.several = u.several || next.several || u.first != next.first
	if next.producer != 0 {
		u.produce(next.producer - 1) // also if that stands for several
	}
}

func (m *memory) join(next *memory, to []uint8) {
	numbers := next.pageNumbers()
	for n, number := range numbers {
		page := m.pageOf(number)
		m.pages.at(page).join(next.pages.at(uint32(n)), to)
	}
	for n := range next.lines.count {
		from := next.lines.at(n)
		l := m.lineOf(from.number, to[from.owner])
		m.joinLine(l, next, from.words, to)
	}
}

// joinLine appends the shared line with this number of the next segment.
func (m *memory) joinLine(l *line, next *memory, number uint32, to []uint8) {
	s, from := m.shares.at(l.words), next.shares.at(number)
	has := slots(from.has, to)
	if from.site == 0 {
		has |= s.has
	}
	s.had, s.has = s.had|slots(from.had, to), has
	s.pair, s.begin = from.pair, from.begin
	if from.site != 0 {
		s.wrote = from.wrote
	}
	s.share.join(&from.share, to)
	cells := m.cells.run(l.words)
	for i, c := range next.cells.run(number) {
		cells[i].join(&c, to)
	}
	for n := from.tallies; n != 0; n = next.tallies[n].next {
		t := next.tallies[n]
		misses := t.misses
		t.line, t.from, t.to, t.misses = l.words, to[t.from], to[t.to], 0
		m.tallyOf(s, t).misses += misses
	}
}

func (s *share) join(next *share, to []uint8) {
	s.cell.join(&next.cell, to)
	s.falseEvents += next.falseEvents
}

func (c *cell) join(next *cell, to []uint8) {
	if next.references == 0 {
		return
	}
	used, class := slots(next.used, to), next.class
	class.move(to)
	if c.references == 0 {
		c.class = class
	} else {
		c.class.join(class)
	}
	c.references += next.references
	c.events += next.events
	c.handovers += next.handovers
	c.stores = addStores(c.stores, next.stores)
	switch {
	case next.site != 0:
		c.writer, c.site, c.used = to[next.writer], next.site, used
	case c.site != 0:
		c.used |= used &^ (1 << c.writer)
	default:
		c.used |= used
	}
}
