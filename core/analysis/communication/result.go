package communication

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
)

// Result implements [contract.Analysis]. The sites analysis must already have written its result. A
// trace with one thread has no result.
func (a *Analysis) Result(p *profile.Profile, state bool) {
	if a.off {
		return
	}
	if state {
		f := stateCoder{Coder: codec.Writer([]byte{}), sites: a.numbers}
		a.codeAll(&f)
		p.Segment.Communication = f.Out
	}
	if a.Threads() >= 2 {
		p.Communication = a.Told()
	}
}

// Threads returns the number of threads.
func (a *Analysis) Threads() int { return len(a.threads.numbers) }

// Told returns the counts that Result writes, even for a trace with one thread. The sites analysis
// must already have written its result.
func (a *Analysis) Told() *profile.Communication {
	c := &profile.Communication{
		Beyond: a.threads.beyond, Granules: a.granules(), Pairs: a.sitePairs(), Window: a.windows.size, Windows: a.flowWindows(),
		Owners: a.ownerships(), False: a.falseSharing(), LineSharing: a.lineSharing(), Sources: a.sourceDistances(),
	}
	for i := range c.Granules[words].Flows {
		c.Messages += c.Granules[words].Flows[i].Bytes
	}
	return c
}

// granules returns the results for words, lines and pages. Lines are omitted if they have the size
// of a word or of a page.
func (a *Analysis) granules() (list []profile.Granule) {
	classes := a.classes()
	for g, bytes := range [granularities]uint32{profile.WordBytes, 1 << a.lineShift, profile.PageBytes} {
		if len(list) > 0 && list[len(list)-1].Bytes == bytes {
			continue
		}
		list = append(list, profile.Granule{Bytes: bytes, Flows: a.flowsOf(a.flows[g].nonzero(), uint64(bytes)), Classes: classes[g]})
	}
	return list
}

// nonzero returns the flows that are not zero.
func (f flows) nonzero() window {
	var none windows
	return none.openCounts(f, nil)
}

func (a *Analysis) flowsOf(w window, bytes uint64) (list []profile.Flow) {
	for _, c := range w {
		from, to := a.flowThreads(c.place)
		list = append(list, profile.Flow{From: from, To: to, Events: c.events, Transfers: c.transfers, Bytes: c.transfers * bytes})
	}
	sort.Slice(list, func(i, j int) bool {
		return cmp.Or(cmp.Compare(list[i].From, list[j].From), cmp.Compare(list[i].To, list[j].To)) < 0
	})
	return list
}

// flowThreads returns the source thread and the destination thread of an index in flows.
func (a *Analysis) flowThreads(place uint32) (from, to uint32) {
	return a.threads.numbers[place/mostThreads], a.threads.numbers[place%mostThreads]
}

type classCounts [profile.NumSharingClasses]profile.ClassCount

func (c *classCounts) add(class profile.SharingClass, references, events uint64) {
	c[class].Granules++
	c[class].References += references
	c[class].Events += events
}

func (a *Analysis) classes() (classes [granularities]classCounts) {
	m := &a.memory
	for n := range m.lines.count {
		l := m.lines.first(n)
		if !l.shared {
			classes[lines].add(profile.PrivateData, l.references, 0)
			for _, w := range m.private.run(l.words) {
				if w.references > 0 {
					classes[words].add(profile.PrivateData, uint64(w.references), 0)
				}
			}
			continue
		}
		classes[lines].share(&m.shares.first(l.words).share)
		for i := range m.cells.run(l.words) {
			if c := &m.cells.run(l.words)[i]; c.references > 0 {
				classes[words].add(c.class.sharingClass(c.events, 0), c.references, c.events)
			}
		}
	}
	for n := range m.pages.count {
		classes[pages].share(m.pages.first(n))
	}
	return classes
}

func (c *classCounts) share(s *share) {
	c.add(s.class.sharingClass(s.events, s.falseEvents), s.references, s.events)
}

// codeIndex returns the profile's index of a site. The parameter is 1 + the slot of the site.
func (a *Analysis) codeIndex(site uint32) uint32 { return a.numbers.Code(site - 1) }

// pairIndices returns the profile's indices of the site and the object of a pair.
func (a *Analysis) pairIndices(pair uint32) (code, data uint32) {
	slot, object := a.numbers.Pair(pair)
	return a.numbers.Code(slot), a.numbers.Data(object)
}

func (a *Analysis) sitePairs() (list []profile.SitePair) {
	for i := range a.pairs.list {
		p := &a.pairs.list[i]
		code, data := a.pairIndices(p.pair)
		from, to := a.flowThreads(p.place)
		list = append(list, profile.SitePair{Producer: a.codeIndex(p.site), Consumer: code, Object: data, From: from, To: to, Events: p.events, Transfers: p.transfers})
	}
	sort.Slice(list, func(i, j int) bool { return profile.ComparePairs(&list[i], &list[j]) < 0 })
	return joinPairs(list)
}

// joinPairs adds up the counts of equal pairs, which exist if the tables name the sites of only a
// part of the trace.
func joinPairs(list []profile.SitePair) []profile.SitePair {
	out := list[:0]
	for i := range list {
		if last := len(out) - 1; last >= 0 && profile.ComparePairs(&out[last], &list[i]) == 0 {
			out[last].Events += list[i].Events
			out[last].Transfers += list[i].Transfers
		} else {
			out = append(out, list[i])
		}
	}
	return out
}

func (a *Analysis) flowWindows() (list []profile.FlowWindow) {
	all := a.windows.closed
	if a.windows.next-a.windows.size < a.done {
		all = append(slices.Clip(all), a.windows.openCounts(a.flows[words], nil))
	}
	for _, w := range all {
		list = append(list, profile.FlowWindow{Flows: a.flowsOf(w, profile.WordBytes)})
	}
	return list
}

// ownerships returns the owners of data objects, or nil if the tables name the data of only a part
// of the trace.
func (a *Analysis) ownerships() (list []profile.Ownership) {
	for n := range a.owners.objects {
		o := &a.owners.objects[n]
		if len(o.parts) == 0 {
			continue
		}
		out := profile.Ownership{Object: a.numbers.Data(uint32(n)), PartBytes: 1 << o.shift, First: o.first}
		for i := range o.parts {
			out.Parts = append(out.Parts, a.ownedPart(o, i))
		}
		list = append(list, out)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Object < list[j].Object })
	for i := range list {
		if i > 0 && list[i].Object == list[i-1].Object {
			return nil
		}
	}
	return list
}

func (a *Analysis) ownedPart(o *owned, i int) (out profile.OwnedPart) {
	p := &o.parts[i]
	if p.firstReference == 0 {
		return out
	}
	out = profile.OwnedPart{
		FirstTouch: a.threads.numbers[p.class.first], Readers: uint32(bits.OnesCount64(p.readers)), Writers: uint32(bits.OnesCount64(p.writers)),
		Class: p.class.sharingClass(p.events, p.falseEvents),
	}
	for slot, counts := range o.counts {
		if i >= len(counts) {
			continue
		}
		number, n := a.threads.numbers[slot], counts[i]
		out.References += n
		if n > out.Own || n == out.Own && n > 0 && number < out.Most {
			out.Most, out.Own = number, n
		}
	}
	return out
}
