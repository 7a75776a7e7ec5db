package profile

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
)

func (c *Communication) code(w *coder) {
	if w.Reads() {
		for i := range w.of.Locality {
			w.most = max(w.most, w.of.longestDistance(&w.of.Locality[i]))
		}
		w.crowded = "the histograms of long stack distances between many threads need gigabytes of memory; analyse fewer threads at a time"
	}
	w.U32(&c.Beyond)
	codec.Bounded(w.Coder, &c.Granules, 3, func(g *Granule) {
		w.U32(&g.Bytes)
		w.flows(&g.Flows, uint64(g.Bytes))
		for i := range g.Classes {
			g.Classes[i].code(w)
		}
	})
	codec.Slice(w.Coder, &c.Pairs, 7, func(p *SitePair) {
		w.indices(&p.Producer, &p.Consumer, &p.Object)
		w.U32s(&p.From, &p.To)
		w.U64s(&p.Events, &p.Transfers)
	})
	w.U64(&c.Window)
	codec.Bounded(w.Coder, &c.Windows, MaxFlowWindows, func(f *FlowWindow) { w.flows(&f.Flows, WordBytes) })
	codec.Slice(w.Coder, &c.Owners, 4, w.ownership)
	codec.Bounded(w.Coder, &c.False, MaxFalseSharing, func(f *FalseSharing) {
		w.indices(&f.Object, &f.Sites[0], &f.Sites[1])
		w.U64(&f.Offset)
		w.U32s(&f.Threads[0], &f.Threads[1])
		w.U64s(&f.Lines, &f.Events, &f.Misses)
		w.U32(&f.Apart)
	})
	codec.Optional(w.Coder, &c.Sources, 4, func(s *SourceDistances) {
		w.U32s(&s.From, &s.To)
		s.Distances.code(w)
		s.Transfers.code(w)
	})
	if w.Reads() && len(c.Granules) > 0 {
		for _, f := range c.Granules[0].Flows {
			c.Messages += f.Bytes
		}
	}
}

func (c *Communication) codeLineSharing(w *coder) {
	codec.Bounded(w.Coder, &c.LineSharing, MaxLineSharing, func(l *LineSharing) {
		w.indices(&l.Object, &l.Sites[0], &l.Sites[1])
		w.U64s(&l.Offset, &l.Lines)
		w.U32(&l.Owners)
		w.U64s(&l.Moves, &l.PingPongs)
		w.U32s(&l.Apart, &l.Threads[0], &l.Threads[1])
	})
}

func (n *ClassCount) code(c *coder) { c.U64s(&n.Granules, &n.References, &n.Events) }

// indices encodes or decodes each index as index + 1, or as 0 for NoSite.
func (c *coder) indices(list ...*uint32) {
	for _, i := range list {
		c.Index(i)
	}
}

// flows encodes or decodes a list of flows. The parameter "bytes" is the size of a granule.
func (c *coder) flows(list *[]Flow, bytes uint64) {
	codec.Slice(c.Coder, list, 4, func(f *Flow) {
		c.U32s(&f.From, &f.To)
		if c.U64s(&f.Events, &f.Transfers); c.Reads() {
			f.Bytes = f.Transfers * bytes
		}
	})
}

func (c *coder) ownership(o *Ownership) {
	c.Index(&o.Object)
	shift := bits.TrailingZeros64(o.PartBytes)
	if codec.Below(c.Coder, &shift, 64); c.Reads() {
		o.PartBytes = 1 << shift
	}
	c.U64(&o.First)
	codec.Bounded(c.Coder, &o.Parts, MaxParts, func(p *OwnedPart) {
		if c.U64(&p.References); p.References == 0 {
			return
		}
		c.U32s(&p.FirstTouch, &p.Most, &p.Readers, &p.Writers)
		codec.Below(c.Coder, &p.Class, uint64(NumSharingClasses))
		c.U64(&p.Own)
	})
}

func (p *Profile) checkLineSharing(c *Communication) error {
	for i := range c.LineSharing {
		l := &c.LineSharing[i]
		if i > 0 && CompareLineSharing(c.LineSharing[i-1], *l) >= 0 || l.Lines == 0 || l.Owners < 2 || l.Moves == 0 || l.Apart < WordBytes || l.Apart >= MaxLineBytes ||
			!p.isObject(l.Object) || !p.isSite(l.Sites[0]) || !p.isSite(l.Sites[1]) || l.Threads[0] == l.Threads[1] || !p.hasThread(l.Threads[0]) || !p.hasThread(l.Threads[1]) {
			return &CheckError{"the shared lines are out of order, or refer to unknown data structures, sites or threads"}
		}
	}
	return nil
}

// check checks that the results in Communication are consistent with each other.
func (c *Communication) check(p *Profile) error {
	estimated := p.Sampled.Chosen() // a sample of lines cannot count pages
	if len(c.Granules) == 0 || c.Granules[0].Bytes != WordBytes || !estimated && (len(c.Granules) < 2 || c.Granules[len(c.Granules)-1].Bytes != PageBytes) {
		return &CheckError{"the granularities of the communication are not words, lines and pages"}
	}
	for i := range c.Granules {
		g := &c.Granules[i]
		if i > 0 && (g.Bytes <= c.Granules[i-1].Bytes || !ValidLineBytes(g.Bytes)) {
			return &CheckError{"the granularities of the communication are invalid or not in ascending order"}
		}
		if err := p.checkGranule(g); err != nil {
			return err
		}
	}
	for _, check := range []func(*Communication) error{p.checkPairs, p.checkFlowWindows, p.checkOwners, p.checkFalse, p.checkLineSharing, p.checkSources} {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

// roundingSlack returns the maximum difference between two sums of the given number of estimates,
// each of which is rounded.
func (p *Profile) roundingSlack(counts int) uint64 {
	if !p.Sampled.Chosen() {
		return 0
	}
	return uint64(counts)
}

// flowSums contains sums of the counts of flows or pairs.
type flowSums struct{ events, transfers counter }

func (s *flowSums) add(events, transfers uint64) {
	s.events.add(events)
	s.transfers.add(transfers)
}

// isNear reports whether the difference between two sums is at most the parameter "slack".
func (s *flowSums) isNear(other flowSums, slack uint64) bool {
	return s.events.isNear(other.events, slack) && s.transfers.isNear(other.transfers, slack)
}

func (c *counter) isNear(other counter, slack uint64) bool {
	return c.over == other.over && max(c.n, other.n)-min(c.n, other.n) <= slack
}

// checkFlows checks flows, and adds their counts to the parameter "sum".
func (p *Profile) checkFlows(flows []Flow, bytes uint64, sum *flowSums) error {
	for i, f := range flows {
		ordered := i == 0 || flows[i-1].From < f.From || flows[i-1].From == f.From && flows[i-1].To < f.To
		if !ordered || f.From == f.To || f.Events == 0 || f.Transfers > f.Events || f.Bytes/bytes != f.Transfers || !p.hasThread(f.From) || !p.hasThread(f.To) {
			return &CheckError{"flows between threads are out of order, or refer to unknown threads"}
		}
		sum.add(f.Events, f.Transfers)
	}
	return nil
}

func (p *Profile) hasThread(number uint32) bool {
	_, found := slices.BinarySearch(p.Totals.Threads, number)
	return found
}

func (p *Profile) checkGranule(g *Granule) error {
	var sum flowSums
	var events counter
	if err := p.checkFlows(g.Flows, uint64(g.Bytes), &sum); err != nil {
		return err
	}
	for class, c := range g.Classes {
		events.add(c.Events)
		if c.Granules > c.References || c.Events > c.References || class == int(PrivateData) && c.Events != 0 ||
			class == int(FalselyShared) && g.Bytes == WordBytes && c.Granules != 0 {
			return &CheckError{"a sharing class has fewer references than granules or events"}
		}
	}
	if !sum.events.isNear(events, p.roundingSlack(len(g.Flows)+len(g.Classes))) {
		return &CheckError{"the events of the sharing classes do not add up to the flows between threads"}
	}
	return nil
}

func (c *Communication) words() (sum flowSums) {
	for _, f := range c.Granules[0].Flows {
		sum.add(f.Events, f.Transfers)
	}
	return sum
}

// isSite and isObject report whether an index is valid in the profile, or is NoSite.
func (p *Profile) isSite(i uint32) bool {
	return i == NoSite || p.Sites != nil && uint64(i) < uint64(len(p.Sites.Code))
}

func (p *Profile) isObject(i uint32) bool {
	return i == NoSite || p.Sites != nil && uint64(i) < uint64(len(p.Sites.Data))
}

func (p *Profile) checkPairs(c *Communication) error {
	var sum flowSums
	for i := range c.Pairs {
		s := &c.Pairs[i]
		if i > 0 && ComparePairs(&c.Pairs[i-1], s) >= 0 || s.Events == 0 || s.Transfers > s.Events ||
			!p.isSite(s.Producer) || !p.isSite(s.Consumer) || !p.isObject(s.Object) || s.From == s.To || !p.hasThread(s.From) || !p.hasThread(s.To) {
			return &CheckError{"the pairs of sites are out of order, or refer to unknown sites"}
		}
		sum.add(s.Events, s.Transfers)
	}
	if !sum.isNear(c.words(), p.roundingSlack(len(c.Pairs)+len(c.Granules[0].Flows))) {
		return &CheckError{"the pairs of sites do not add up to the flows between threads"}
	}
	return nil
}

func (p *Profile) checkFlowWindows(c *Communication) error {
	first, last := uint64(0), p.Totals.AllReferences()-1
	if p.Segment != nil {
		first, last = p.Segment.Start, last+p.Segment.Start
	}
	if c.Window == 0 || c.Window&(c.Window-1) != 0 || len(c.Windows) > MaxFlowWindows || p.Sampled == nil && uint64(len(c.Windows)) != last/c.Window-first/c.Window+1 {
		return &CheckError{"the windows of the flows between threads do not cover the references"}
	}
	var sum flowSums
	flows := len(c.Granules[0].Flows)
	for i := range c.Windows {
		flows += len(c.Windows[i].Flows)
		if err := p.checkFlows(c.Windows[i].Flows, WordBytes, &sum); err != nil {
			return err
		}
	}
	if !sum.isNear(c.words(), p.roundingSlack(flows)) {
		return &CheckError{"the windows of the flows between threads do not add up to the flows"}
	}
	return nil
}

func (p *Profile) checkOwners(c *Communication) error {
	var references, made counter
	parts := len(c.Granules[0].Classes)
	for i := range c.Owners {
		o := &c.Owners[i]
		parts += len(o.Parts)
		if n := len(o.Parts); i > 0 && c.Owners[i-1].Object >= o.Object || !p.isObject(o.Object) || n == 0 || n > MaxParts ||
			o.PartBytes == 0 || o.PartBytes&(o.PartBytes-1) != 0 || o.Parts[0].References == 0 || o.Parts[n-1].References == 0 {
			return &CheckError{"the owners of data structures are out of order, or refer to unknown data structures"}
		}
		for k := range o.Parts {
			if references.add(o.Parts[k].References); !p.isPart(&o.Parts[k]) {
				return &CheckError{"the owner of a part of a data structure is an unknown thread, or makes more references than the part receives"}
			}
		}
	}
	for _, class := range c.Granules[0].Classes {
		made.add(class.References)
	}
	if c.Owners != nil && !references.isNear(made, p.roundingSlack(parts)) {
		return &CheckError{"the references to owned data structures do not add up to all references"}
	}
	return nil
}

func (p *Profile) isPart(part *OwnedPart) bool {
	if part.References == 0 {
		return *part == OwnedPart{}
	}
	return part.Own > 0 && part.Own <= part.References && part.Class < NumSharingClasses && max(part.Readers, part.Writers) <= MaxThreads &&
		part.Readers+part.Writers > 0 && p.hasThread(part.FirstTouch) && p.hasThread(part.Most)
}

func (p *Profile) checkFalse(c *Communication) error {
	var lines counter
	for i := range c.False {
		f := &c.False[i]
		sum := i == MaxFalseSharing-1 && f.Object == NoSite && f.Sites == [2]uint32{NoSite, NoSite}
		if !sum && i > 0 && c.False[i-1].Misses < f.Misses || f.Lines == 0 || f.Misses < f.Lines || f.Events < f.Misses || f.Apart < WordBytes || f.Apart >= MaxLineBytes ||
			!p.isObject(f.Object) || !p.isSite(f.Sites[0]) || !p.isSite(f.Sites[1]) || !sum && !(p.hasThread(f.Threads[0]) && p.hasThread(f.Threads[1])) {
			return &CheckError{"the falsely shared lines are out of order, or refer to unknown data structures, sites or threads"}
		}
		lines.add(f.Lines)
	}
	if len(c.False) > 0 && (len(c.Granules) < 2 || lines.over || lines.n > c.Granules[1].Classes[FalselyShared].Granules+p.roundingSlack(len(c.False))) {
		return &CheckError{"the list of falsely shared lines is longer than the number of falsely shared lines"}
	}
	return nil
}

func (p *Profile) checkSources(c *Communication) error {
	for i := range c.Sources {
		s := &c.Sources[i]
		ordered := i == 0 || c.Sources[i-1].From < s.From || c.Sources[i-1].From == s.From && c.Sources[i-1].To < s.To
		if !ordered || !p.hasThread(s.From) || !p.hasThread(s.To) {
			return &CheckError{"the stack distances of source threads are out of order, or refer to unknown threads"}
		}
		for d, n := range s.Transfers.All() {
			if s.Distances.Count(d) < n {
				return &CheckError{"the stack distances of a source thread count more transfers than events"}
			}
		}
	}
	return nil
}
