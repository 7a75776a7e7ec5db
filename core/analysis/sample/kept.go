package sample

import (
	"cmp"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Result implements analysis.Analysis. It comes after the histograms of the sample.
func (k *kept) Result(p *profile.Profile, state bool) {
	var saved []byte
	if state {
		saved = appendUint([]byte{}, k.done)
	}
	if k.sites != nil {
		saved = k.siteResult(p, saved, state)
	}
	if p.Sampled == nil {
		k.describe(p)
	}
	for _, s := range k.sizes {
		if s.talk != nil {
			p.Communication = s.talk.result()
		}
		if s.threads != nil {
			if r, ok := s.threads.result(); ok {
				p.Sharing = append(p.Sharing, r)
			}
		}
		if !state {
			continue
		}
		if s.bySite != nil {
			saved = s.bySite.save(saved)
		}
		if s.threads != nil {
			saved = s.threads.save(saved)
		}
		if s.siteCores != nil {
			saved = s.siteCores.save(saved)
		}
		if s.talk != nil {
			saved = s.talk.save(p, saved)
		}
	}
	if state {
		p.Segment.Kept = saved
	}
}

// describe says of what the sample was, where the stack of all accesses together was left
// out, which does so else: the first domain has the same lines on its stack, by the same
// accesses.
func (k *kept) describe(p *profile.Profile) {
	p.Sampled = k.options.sampled()
	p.Sampled.Read = p.Totals.AllReferences()
	for _, s := range k.sizes {
		if s.threads == nil || s.threads.single() {
			continue
		}
		size, of := profile.SampledSize{LineBytes: s.bytes}, s.threads.domains[0].space
		of.describe(&size)
		size.Samples = of.looked
		p.Sampled.Sizes = append(p.Sampled.Sizes, size)
	}
}

// siteResult is that of sites. What is kept is a profile of what package sites counted,
// in which the accesses of the histograms are those of the sample.
func (k *kept) siteResult(p *profile.Profile, saved []byte, state bool) []byte {
	whole := &profile.Profile{Input: p.Input, Totals: p.Totals, Sampled: k.options.sampled()}
	whole.Sampled.Read = p.Totals.AllReferences()
	whole.Sampled.Sizes = []profile.SampledSize{{LineBytes: k.lineBytes}}
	if state {
		whole.Segment = &profile.Segment{Sample: []byte{}}
	}
	k.sites.Result(whole, state)
	if state {
		if l := p.LocalityAt(k.lineBytes); l != nil {
			whole.Locality = []profile.Locality{*l}
		}
		saved = appendProfile(saved, whole)
	}
	if p.Sites = whole.Sites; p.Sites == nil {
		return saved
	}
	for _, s := range k.sizes {
		if s.bySite != nil {
			s.bySite.result(p.Sites)
		}
		if s.siteCores != nil && p.Sites.Coherent != nil {
			s.siteCores.result(p.Sites.Coherent, s.threads.siteWeighing())
		}
	}
	return saved
}

// The state, in section segk: uv references; where sites are analysed, a profile of all
// accesses with those outside of the front at the shortest distance; and for each line
// size what bySite, threads and talk write, where they are. A profile is uv its length
// and that many bytes.

func appendProfile(b []byte, p *profile.Profile) []byte { return appendBytes(b, p.Encode()) }

func appendBytes(b, data []byte) []byte {
	return append(appendUint(b, uint64(len(data))), data...)
}

// Restore implements analysis.Analysis.
func (k *kept) Restore(p *profile.Profile) error {
	if p.Segment == nil || p.Segment.Kept == nil || p.Sampled == nil || optionsOf(p.Sampled) != k.options {
		return &StateError{"the saved run was not sampled, or in another way; start again"}
	}
	d := codec.NewDecoder(p.Segment.Kept)
	if k.done = d.Uint(); k.done != p.Totals.AllReferences() {
		return &StateError{"the saved run is damaged: it has other references than its sample; start again"}
	}
	if k.sites != nil {
		whole, err := profileOf(d)
		if err == nil {
			err = k.restoreSites(whole, p)
		}
		if err != nil {
			return err
		}
	}
	for _, s := range k.sizes {
		if s.bySite != nil {
			s.bySite.restore(d)
		}
		if s.threads != nil && d.Err() == nil {
			s.threads.restore(d)
		}
		if d.Err() == nil {
			s.restoreCores(d)
		}
		if s.talk != nil && d.Err() == nil {
			if err := s.talk.restore(d, p); err != nil {
				return err
			}
		}
	}
	if d.Err() == nil && len(d.Rest()) > 0 {
		return errKept
	}
	return d.Err()
}

var errKept = &StateError{"the saved run is damaged, or had other analyses; start again"}

// profileOf reads what appendProfile wrote.
func profileOf(d *codec.Decoder) (*profile.Profile, error) {
	data := d.String()
	if d.Err() != nil {
		return nil, d.Err()
	}
	p, err := profile.Decode([]byte(data))
	if err == nil && (p.Segment == nil || p.Segment.Start != 0) {
		err = errKept
	}
	return p, err
}

func (k *kept) restoreSites(whole, p *profile.Profile) error {
	if whole.Totals.AllReferences() != p.Totals.AllReferences() {
		return errKept
	}
	return k.sites.Restore(whole)
}

// placedCount is what is saved of a pair, by its places in the profile.
type placedCount struct {
	code, data, bin uint32
	parts           [groups]uint64
}

// save writes what is counted by places in the profile of package sites' latest result.
func (p *bySite) save(b []byte) []byte {
	b = appendUint(b, p.accesses, uint64(p.samples))
	var list []placedCount
	for key, n := range p.counts {
		slot, object := p.sites.Pair(key.pair)
		list = append(list, placedCount{p.sites.Code(slot), p.sites.Data(object), key.bin, p.parts[n]})
	}
	b = savePlaced(b, list)
	if p.time == nil {
		return p.space.save(b)
	}
	b = appendUint(p.time.save(b), p.first.threshold, uint64(p.first.halvings))
	return codec.AppendStack(b, sortedLines(p.first.lines))
}

// savePlaced writes counts by code, data and bin, which has them in order.
func savePlaced(b []byte, list []placedCount) []byte {
	sort.Slice(list, func(i, j int) bool {
		x, y := &list[i], &list[j]
		return cmp.Or(cmp.Compare(x.code, y.code), cmp.Compare(x.data, y.data), cmp.Compare(x.bin, y.bin)) < 0
	})
	b = appendUint(b, uint64(len(list)))
	for i := range list {
		x := &list[i]
		b = appendUint(b, uint64(x.code), uint64(x.data), uint64(x.bin))
		b = appendUint(b, x.parts[:]...)
	}
	return b
}

// restorePlaced reads what savePlaced wrote; bins are below a number.
func restorePlaced(d *codec.Decoder, bins uint64, add func(*placedCount)) {
	for range d.Length(3 + groups) {
		x := placedCount{code: uint32(d.UintBelow(1 << 32)), data: uint32(d.UintBelow(1 << 32)), bin: uint32(d.UintBelow(bins))}
		fill(x.parts[:], d)
		add(&x)
	}
}

func (p *bySite) restore(d *codec.Decoder) {
	p.accesses, p.samples = d.Uint(), int(d.UintBelow(1<<62))
	restorePlaced(d, outOf+1, func(x *placedCount) {
		key := placedBin{p.sites.PairOf(p.sites.Slot(x.code), p.sites.Object(x.data)), x.bin}
		n, known := p.counts[key]
		if !known {
			n = uint32(len(p.parts))
			p.counts[key] = n
			p.parts = append(p.parts, [groups]uint64{})
		}
		for g, weight := range x.parts {
			p.parts[n][g] += weight
		}
	})
	if p.time == nil {
		p.space.restore(d)
		return
	}
	p.time.restore(d)
	p.first.threshold, p.first.halvings = d.Uint(), uint(d.UintBelow(64))
	for _, line := range stackOf(d) {
		p.first.lines[line] = struct{}{}
	}
}

func sortedLines[T any](of map[trace.Line]T) []trace.Line {
	list := make([]trace.Line, 0, len(of))
	for line := range of {
		list = append(list, line)
	}
	slices.Sort(list)
	return list
}

// save writes the threads in the order in which they came; what is known of lines; and
// the stacks of cores and domains.
func (t *threads) save(b []byte) []byte {
	appeared := t.grouping.Appeared()
	b = appendUint(b, uint64(len(appeared)))
	for _, thread := range appeared {
		b = appendUint(b, uint64(thread))
	}
	b = appendUint(b, t.lines.threshold, uint64(t.lines.halvings), uint64(t.draws), uint64(len(t.lines.of)))
	for _, line := range sortedLines(t.lines.of) {
		l := t.lines.of[line]
		b = appendUint(b, line, l.ever, l.holders)
		for _, core := range l.last {
			b = appendUint(b, uint64(core))
		}
	}
	for _, c := range t.cores {
		b = c.save(b)
	}
	for _, d := range t.domains {
		b = d.save(b)
	}
	return b
}

func (t *threads) restore(d *codec.Decoder) {
	for range d.Length(1) {
		t.coreOf(uint32(d.UintBelow(1 << 32)))
	}
	t.lines.threshold, t.lines.halvings, t.draws = d.Uint(), uint(d.UintBelow(64)), int(d.UintBelow(1<<62))
	all := uint64(1)<<len(t.cores) - 1
	for range d.Length(3) {
		line := d.UintBelow(beyond)
		l := &knownLine{ever: d.Uint() & all, holders: d.Uint() & all, last: make([]uint8, len(t.domains))}
		for i := range l.last {
			l.last[i] = uint8(d.UintBelow(uint64(len(t.cores)) + 1))
		}
		t.lines.of[line] = l
	}
	for n, c := range t.cores {
		c.restore(d)
		t.find(uint8(n))
	}
	for _, dom := range t.domains {
		dom.restore(d, len(t.cores))
	}
}

// find makes what is known of all cores' lines follow from one of them.
func (t *threads) find(core uint8) {
	c := t.cores[core]
	for line := range c.waits {
		t.waiting[line] |= 1 << core
	}
	if c.space == nil {
		return
	}
	for _, line := range c.coherentTop() {
		if line < hole {
			t.inFront.add(line, core)
		}
	}
}

func (c *coreStacks) save(b []byte) []byte {
	b = appendUint(b, c.accesses)
	for _, x := range []*counted{&c.private, &c.coherent, &c.foreign} {
		b = x.save(b)
	}
	b = appendUint(b, c.lostNear[:]...)
	b = appendUint(saveHistogram(b, &c.lost), c.lostSpread[:]...)
	b = appendUint(b, c.taken[:]...)
	if c.time != nil {
		b = appendUint(c.time.save(b), uint64(len(c.waits)))
		for _, line := range sortedLines(c.waits) {
			w, how := c.waits[line], uint64(0)
			if w.foreign {
				how = 1
			}
			if w.lost {
				how |= 2
			}
			b = appendUint(b, line, how, uint64(w.at))
		}
		return b
	}
	b = c.space.save(b)
	for _, line := range c.coherentTop() {
		b = appendUint(b, line+2) // 0: a hole, 1: nothing
	}
	slices.SortFunc(c.nearLost, func(x, y nearLost) int { return cmp.Compare(x.line, y.line) })
	b = appendUint(b, uint64(len(c.nearLost)))
	for _, x := range c.nearLost {
		b = appendUint(b, x.line, uint64(x.at))
	}
	b = c.holed.save(c.own.save(b))
	b = appendUint(b, uint64(len(c.lostAt)))
	for _, line := range sortedLines(c.lostAt) {
		b = appendUint(b, line, uint64(c.lostAt[line]))
	}
	return b
}

func (c *coreStacks) restore(d *codec.Decoder) {
	c.accesses = d.Uint()
	for _, x := range []*counted{&c.private, &c.coherent, &c.foreign} {
		x.restore(d)
	}
	fill(c.lostNear[:], d)
	restoreHistogram(d, &c.lost)
	fill(c.lostSpread[:], d)
	fill(c.taken[:], d)
	if c.time != nil {
		c.time.restore(d)
		for range d.Length(3) {
			line, how := d.UintBelow(beyond), d.UintBelow(4)
			c.waits[line] = wait{how&1 != 0, how&2 != 0, uint32(d.UintBelow(1 << 32))}
		}
		return
	}
	c.space.restore(d)
	for i := range c.top {
		c.top[i] = d.UintBelow(beyond+2) - 2
	}
	c.same = front(c.top) == c.space.front
	for range d.Length(2) {
		line := d.UintBelow(beyond)
		c.loseNear(line, int(d.UintBelow(frontLines)))
	}
	c.own.restore(d)
	c.holed.restore(d)
	for range d.Length(2) {
		line := d.UintBelow(beyond)
		c.lostAt[line] = uint32(d.UintBelow(1 << 32))
	}
}

func (d *domainStacks) save(b []byte) []byte {
	b = appendUint(b, d.accesses)
	for _, m := range d.members {
		if m != nil {
			b = m.save(b)
		}
	}
	b = d.foreign.save(b)
	if d.time == nil {
		return d.space.save(b)
	}
	b = appendUint(d.time.save(b), uint64(len(d.waits)))
	for _, line := range sortedLines(d.waits) {
		b = appendUint(b, line, uint64(d.waits[line]))
	}
	return b
}

func (d *domainStacks) restore(r *codec.Decoder, cores int) {
	d.accesses = r.Uint()
	for _, m := range d.members {
		if m != nil {
			m.restore(r)
		}
	}
	d.foreign.restore(r)
	if d.time == nil {
		d.space.restore(r)
		return
	}
	d.time.restore(r)
	for range r.Length(2) {
		line := r.UintBelow(beyond)
		d.waits[line] = uint8(r.UintBelow(uint64(cores)))
	}
}

// save writes whether it is decided what to do (0: no, 1: yes, 2: against, or else 3 + the
// thread of the first reference); and, of each power of two of hashes, the state of the
// analyses that there are.
func (t *talk) save(p *profile.Profile, b []byte) []byte {
	how := uint64(0)
	switch {
	case t.off:
		how = 2
	case t.decides == nil:
		how = 1
	case t.met:
		how = 3 + uint64(t.first)
	}
	b = appendUint(b, how, uint64(len(t.live())))
	for n, o := range t.octaves {
		if o == nil {
			continue
		}
		b = appendUint(b, uint64(n))
		for _, l := range o.listeners() {
			part := &profile.Profile{Input: p.Input, Totals: p.Totals, Sites: p.Sites, Segment: new(profile.Segment)}
			l.Result(part, true)
			b = appendBytes(b, part.Segment.Communication)
		}
	}
	return b
}

func (t *talk) restore(d *codec.Decoder, p *profile.Profile) error {
	switch how := d.UintBelow(3 + 1<<32); how {
	case 0:
	case 1:
		t.decides = nil
	case 2:
		t.turnOff()
	default:
		t.met, t.first = true, uint32(how-3)
	}
	for range d.Length(1 + talkGroups) {
		n := int(d.UintBelow(uint64(len(t.octaves))))
		if t.off {
			return errKept
		}
		for _, l := range t.octave(n).listeners() {
			part := &profile.Profile{Input: p.Input, Totals: p.Totals, Sites: p.Sites, Segment: new(profile.Segment)}
			part.Segment.Communication = []byte(d.String())
			if d.Err() != nil {
				return d.Err()
			}
			if err := l.Restore(part); err != nil {
				return err
			}
		}
	}
	return d.Err()
}
