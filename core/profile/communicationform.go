package profile

import (
	"math/bits"
	"slices"
	"strconv"
)

func (c *Communication) encode(b []byte) []byte {
	b = appendUint(b, uint64(c.Beyond), uint64(len(c.Granules)))
	for i := range c.Granules {
		g := &c.Granules[i]
		b = appendFlows(appendUint(b, uint64(g.Bytes)), g.Flows)
		for _, class := range g.Classes {
			b = appendUint(b, class.Granules, class.References, class.Events)
		}
	}
	b = appendUint(b, uint64(len(c.Pairs)))
	for i := range c.Pairs {
		p := &c.Pairs[i]
		b = appendUint(appendIndices(b, p.Producer, p.Consumer, p.Object), uint64(p.From), uint64(p.To), p.Events, p.Transfers)
	}
	b = appendUint(b, c.Window, uint64(len(c.Windows)))
	for i := range c.Windows {
		b = appendFlows(b, c.Windows[i].Flows)
	}
	b = appendUint(b, uint64(len(c.Owners)))
	for i := range c.Owners {
		b = c.Owners[i].encode(b)
	}
	b = appendUint(b, uint64(len(c.False)))
	for i := range c.False {
		f := &c.False[i]
		b = appendIndices(b, f.Object, f.Sites[0], f.Sites[1])
		b = appendUint(b, f.Offset, uint64(f.Threads[0]), uint64(f.Threads[1]), f.Lines, f.Events, f.Misses, uint64(f.Apart))
	}
	if c.Sources == nil {
		return append(b, 0)
	}
	b = appendUint(append(b, 1), uint64(len(c.Sources)))
	for i := range c.Sources {
		s := &c.Sources[i]
		b = s.Transfers.encode(s.Distances.encode(appendUint(b, uint64(s.From), uint64(s.To))))
	}
	return b
}

func (c *Communication) encodeLineSharing(b []byte) []byte {
	b = appendUint(b, uint64(len(c.LineSharing)))
	for i := range c.LineSharing {
		l := &c.LineSharing[i]
		b = appendUint(appendIndices(b, l.Object, l.Sites[0], l.Sites[1]), l.Offset, l.Lines, uint64(l.Owners), l.Moves, l.PingPongs, uint64(l.Apart),
			uint64(l.Threads[0]), uint64(l.Threads[1]))
	}
	return b
}

func (c *Communication) decodeLineSharing(r *Decoder) {
	c.LineSharing = []LineSharing{}
	for range r.UintBelow(MaxLineSharing + 1) {
		c.LineSharing = append(c.LineSharing, LineSharing{
			Object: r.index(), Sites: [2]uint32{r.index(), r.index()}, Offset: r.Uint(), Lines: r.Uint(), Owners: r.number32(), Moves: r.Uint(), PingPongs: r.Uint(),
			Apart: r.number32(), Threads: [2]uint32{r.number32(), r.number32()},
		})
	}
}

func (p *Profile) checkLineSharing(c *Communication) error {
	for i := range c.LineSharing {
		l := &c.LineSharing[i]
		if i > 0 && CompareLineSharing(c.LineSharing[i-1], *l) >= 0 || l.Lines == 0 || l.Owners < 2 || l.Moves == 0 || l.Apart < WordBytes || l.Apart >= MaxLineBytes ||
			!p.isObject(l.Object) || !p.isSite(l.Sites[0]) || !p.isSite(l.Sites[1]) || l.Threads[0] == l.Threads[1] || !p.hasThread(l.Threads[0]) || !p.hasThread(l.Threads[1]) {
			return &CheckError{"the lines in which several threads have words are out of order or unknown"}
		}
	}
	return nil
}

func appendFlows(b []byte, flows []Flow) []byte {
	b = appendUint(b, uint64(len(flows)))
	for _, f := range flows {
		b = appendUint(b, uint64(f.From), uint64(f.To), f.Events, f.Transfers)
	}
	return b
}

// appendIndices writes indices + 1, NoSite as 0.
func appendIndices(b []byte, list ...uint32) []byte {
	for _, i := range list {
		b = appendUint(b, uint64(i+1))
	}
	return b
}

func (o *Ownership) encode(b []byte) []byte {
	b = appendUint(appendIndices(b, o.Object), uint64(bits.TrailingZeros64(o.PartBytes)), o.First, uint64(len(o.Parts)))
	for i := range o.Parts {
		p := &o.Parts[i]
		if b = appendUint(b, p.References); p.References != 0 {
			b = appendUint(b, uint64(p.FirstTouch), uint64(p.Most), uint64(p.Readers), uint64(p.Writers), uint64(p.Class), p.Own)
		}
	}
	return b
}

// communicationReader reads the section.
type communicationReader struct {
	*Decoder
	most  uint64 // the longest distance that there can be
	pages int    // of the histograms so far
}

func (p *Profile) decodeCommunication(d *Decoder) *Communication {
	r := communicationReader{Decoder: d}
	for i := range p.Locality {
		r.most = max(r.most, p.longest(&p.Locality[i]))
	}
	c := &Communication{Beyond: r.number32()}
	for range r.UintBelow(4) {
		c.Granules = append(c.Granules, r.granule())
	}
	for range r.Length(7) {
		c.Pairs = append(c.Pairs, SitePair{Producer: r.index(), Consumer: r.index(), Object: r.index(), From: r.number32(), To: r.number32(), Events: r.Uint(), Transfers: r.Uint()})
	}
	c.Window = r.Uint()
	for range r.UintBelow(MaxFlowWindows + 1) {
		c.Windows = append(c.Windows, FlowWindow{Flows: r.flows(WordBytes)})
	}
	for range r.Length(4) {
		c.Owners = append(c.Owners, r.ownership())
	}
	for range r.UintBelow(MaxFalseSharing + 1) {
		c.False = append(c.False, FalseSharing{
			Object: r.index(), Sites: [2]uint32{r.index(), r.index()}, Offset: r.Uint(), Threads: [2]uint32{r.number32(), r.number32()},
			Lines: r.Uint(), Events: r.Uint(), Misses: r.Uint(), Apart: r.number32(),
		})
	}
	r.sources(c)
	if len(c.Granules) > 0 {
		for _, f := range c.Granules[0].Flows {
			c.Messages += f.Bytes
		}
	}
	return c
}

func (r *communicationReader) granule() (g Granule) {
	g.Bytes = r.number32()
	g.Flows = r.flows(uint64(g.Bytes))
	for i := range g.Classes {
		g.Classes[i] = ClassCount{r.Uint(), r.Uint(), r.Uint()}
	}
	return g
}

func (r *communicationReader) flows(bytes uint64) (list []Flow) {
	for range r.Length(4) {
		f := Flow{From: r.number32(), To: r.number32(), Events: r.Uint(), Transfers: r.Uint()}
		f.Bytes = f.Transfers * bytes
		list = append(list, f)
	}
	return list
}

// index reads an index that appendIndices wrote.
func (r *Decoder) index() uint32 { return r.number32() - 1 }

func (r *communicationReader) ownership() (o Ownership) {
	o.Object, o.PartBytes, o.First = r.index(), 1<<r.UintBelow(64), r.Uint()
	n := r.Length(1)
	if n > MaxParts {
		r.fail("more than " + strconv.Itoa(MaxParts) + " parts of a data object")
		return o
	}
	o.Parts = make([]OwnedPart, n)
	for i := range o.Parts {
		p := &o.Parts[i]
		if p.References = r.Uint(); p.References != 0 {
			p.FirstTouch, p.Most, p.Readers, p.Writers = r.number32(), r.number32(), r.number32(), r.number32()
			p.Class, p.Own = SharingClass(r.UintBelow(uint64(NumSharingClasses))), r.Uint()
		}
	}
	return o
}

func (r *communicationReader) sources(c *Communication) {
	if r.UintBelow(2) == 0 {
		return
	}
	c.Sources = []SourceDistances{}
	for range r.Length(4) {
		c.Sources = append(c.Sources, SourceDistances{From: r.number32(), To: r.number32()})
		s := &c.Sources[len(c.Sources)-1]
		r.histogram(&s.Distances, r.most)
		r.histogram(&s.Transfers, r.most)
		if r.pages += len(s.Distances.pages) + len(s.Transfers.pages); r.pages > mostPages {
			r.fail("distances so long between so many threads that they take gigabytes; analyze fewer threads together")
		}
		if r.err != nil {
			return
		}
	}
}

// checkCommunication tests what ties the parts of the communication to each other.
func (p *Profile) checkCommunication() error {
	c := p.Communication
	if c == nil {
		return nil
	}
	estimated := p.Sampled.Chosen() // of lines, so nothing of pages
	if len(c.Granules) == 0 || c.Granules[0].Bytes != WordBytes || !estimated && (len(c.Granules) < 2 || c.Granules[len(c.Granules)-1].Bytes != PageBytes) {
		return &CheckError{"its communication is not of words, lines and pages"}
	}
	for i := range c.Granules {
		g := &c.Granules[i]
		if i > 0 && (g.Bytes <= c.Granules[i-1].Bytes || !ValidLineBytes(g.Bytes)) {
			return &CheckError{"its communication is at granularities that cannot be or are not ascending"}
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

// slack is how much sums may differ by of so many counts: each estimate is rounded.
func (p *Profile) slack(counts int) uint64 {
	if !p.Sampled.Chosen() {
		return 0
	}
	return uint64(counts)
}

// flowSums are what flows or pairs add up to.
type flowSums struct{ events, transfers counter }

func (s *flowSums) add(events, transfers uint64) {
	s.events.add(events)
	s.transfers.add(transfers)
}

// near reports whether sums differ by no more than slack.
func (s *flowSums) near(other flowSums, slack uint64) bool {
	return s.events.near(other.events, slack) && s.transfers.near(other.transfers, slack)
}

func (c *counter) near(other counter, slack uint64) bool {
	return c.over == other.over && max(c.n, other.n)-min(c.n, other.n) <= slack
}

// checkFlows adds flows up.
func (p *Profile) checkFlows(flows []Flow, bytes uint64, sum *flowSums) error {
	for i, f := range flows {
		ordered := i == 0 || flows[i-1].From < f.From || flows[i-1].From == f.From && flows[i-1].To < f.To
		if !ordered || f.From == f.To || f.Events == 0 || f.Transfers > f.Events || f.Bytes/bytes != f.Transfers || !p.hasThread(f.From) || !p.hasThread(f.To) {
			return &CheckError{"what goes between threads is out of order, or between threads that there are not"}
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
			return &CheckError{"a class of shared memory has fewer references than granules or events"}
		}
	}
	if !sum.events.near(events, p.slack(len(g.Flows)+len(g.Classes))) {
		return &CheckError{"the events of shared memory do not add up to what goes between threads"}
	}
	return nil
}

// words are the sums of the flows of words.
func (c *Communication) words() (sum flowSums) {
	for _, f := range c.Granules[0].Flows {
		sum.add(f.Events, f.Transfers)
	}
	return sum
}

// isSite and isObject tell whether an index is one of the profile's, or NoSite.
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
			return &CheckError{"its pairs of sites are out of order or unknown"}
		}
		sum.add(s.Events, s.Transfers)
	}
	if !sum.near(c.words(), p.slack(len(c.Pairs)+len(c.Granules[0].Flows))) {
		return &CheckError{"its pairs of sites do not add up to what goes between threads"}
	}
	return nil
}

func (p *Profile) checkFlowWindows(c *Communication) error {
	first, last := uint64(0), p.Totals.AllReferences()-1
	if p.Segment != nil {
		first, last = p.Segment.Start, last+p.Segment.Start
	}
	if c.Window == 0 || c.Window&(c.Window-1) != 0 || len(c.Windows) > MaxFlowWindows || p.Sampled == nil && uint64(len(c.Windows)) != last/c.Window-first/c.Window+1 {
		return &CheckError{"the windows of what goes between threads do not cover the references"}
	}
	var sum flowSums
	flows := len(c.Granules[0].Flows)
	for i := range c.Windows {
		flows += len(c.Windows[i].Flows)
		if err := p.checkFlows(c.Windows[i].Flows, WordBytes, &sum); err != nil {
			return err
		}
	}
	if !sum.near(c.words(), p.slack(flows)) {
		return &CheckError{"the windows of what goes between threads do not add up to it"}
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
			return &CheckError{"its owners of data are out of order, or of unknown data"}
		}
		for k := range o.Parts {
			if references.add(o.Parts[k].References); !p.isPart(&o.Parts[k]) {
				return &CheckError{"its owners of data are threads that there are not, or own more than there is"}
			}
		}
	}
	for _, class := range c.Granules[0].Classes {
		made.add(class.References)
	}
	if c.Owners != nil && !references.near(made, p.slack(parts)) {
		return &CheckError{"its owners of data do not add up to the references"}
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
			return &CheckError{"its falsely shared lines are out of order or unknown"}
		}
		lines.add(f.Lines)
	}
	if len(c.False) > 0 && (len(c.Granules) < 2 || lines.over || lines.n > c.Granules[1].Classes[FalselyShared].Granules+p.slack(len(c.False))) {
		return &CheckError{"its falsely shared lines are more than of their class"}
	}
	return nil
}

func (p *Profile) checkSources(c *Communication) error {
	for i := range c.Sources {
		s := &c.Sources[i]
		ordered := i == 0 || c.Sources[i-1].From < s.From || c.Sources[i-1].From == s.From && c.Sources[i-1].To < s.To
		if !ordered || !p.hasThread(s.From) || !p.hasThread(s.To) {
			return &CheckError{"the distances of sources are out of order, or of threads that there are not"}
		}
		for d, n := range s.Transfers.All() {
			if s.Distances.Count(d) < n {
				return &CheckError{"there are more transfers than events at a distance of a source"}
			}
		}
	}
	return nil
}
