package estimate

import (
	"errors"
	"maps"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
)

// Result implements [contract.Analysis]. The sampled locality analysis must already have written
// its result.
func (k *sampledAnalyses) Result(p *profile.Profile, state bool) {
	var saved *codec.Coder
	if state {
		saved = codec.Writer([]byte{})
		saved.U64(&k.done)
	}
	if k.sites != nil {
		k.siteResult(p, saved)
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
		if state {
			_ = s.code(saved, p) // fails only when reading
		}
	}
	if state {
		p.Segment.Kept = saved.Out
	}
}

func (s *sampledLineSize) code(c *codec.Coder, p *profile.Profile) error {
	if s.bySite != nil {
		s.bySite.code(c)
	}
	if s.threads != nil && !c.Failed() {
		s.threads.code(c)
	}
	if c.Reads() && !c.Failed() {
		s.continueSites()
	}
	if s.siteCores != nil {
		s.siteCores.code(c)
	}
	if s.talk != nil && !c.Failed() {
		return s.talk.code(c, p)
	}
	return nil
}

// describe adds a description of the sample. It is called if the run has no sampled locality
// analysis; otherwise, that analysis adds the description. The stack of the first domain contains
// the same lines as the stack of a sampled locality analysis.
func (k *sampledAnalyses) describe(p *profile.Profile) {
	p.Sampled = sampledOf(k.options)
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

// siteResult writes the result of the sites analysis. The saved state is a profile with the counts
// of package sites and the histograms of the sample.
func (k *sampledAnalyses) siteResult(p *profile.Profile, saved *codec.Coder) {
	state := saved != nil
	whole := &profile.Profile{Input: p.Input, Totals: p.Totals, Sampled: sampledOf(k.options)}
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
		encoded := whole.Encode()
		saved.Bytes(&encoded)
	}
	if p.Sites = whole.Sites; p.Sites == nil {
		return
	}
	p.Sites.Covered = nil // the distances of the covered accesses are unknown
	for _, s := range k.sizes {
		if s.bySite != nil {
			s.bySite.result(p.Sites)
		}
		if s.siteCores != nil && p.Sites.Coherent != nil {
			s.siteCores.result(p.Sites.Coherent, s.threads.siteWeighing())
		}
	}
}

// The state, in section segk, begins with the number of references (uv). If sites are analysed, a
// profile of all accesses follows, in which all accesses beyond the front count at the shortest
// distance. A profile is encoded as its length (uv) and its bytes. For each line size, the states
// of bySite, threads and talk follow, if present.

// Restore implements [contract.Analysis].
func (k *sampledAnalyses) Restore(p *profile.Profile) error {
	if p.Segment == nil || p.Segment.Kept == nil || p.Sampled == nil || optionsOf(p.Sampled) != k.options {
		return errors.New("the checkpoint was saved without a sample, or with a different sample; analyse the trace again from its start")
	}
	c := codec.Reader(p.Segment.Kept)
	if c.U64(&k.done); k.done != p.Totals.AllReferences() {
		return errors.New("the checkpoint is damaged: the number of references does not match the sample; analyse the trace again from its start")
	}
	if k.sites != nil {
		whole, err := profileOf(c.In)
		if err == nil && whole.Totals.AllReferences() != k.done {
			err = errKept
		}
		if err == nil {
			err = k.sites.Restore(whole)
		}
		if err != nil {
			return err
		}
	}
	for _, s := range k.sizes {
		if err := s.code(c, p); err != nil {
			return err
		}
	}
	if !c.Failed() && c.More() {
		return errKept
	}
	return c.In.Err()
}

var errKept = errors.New("the checkpoint is damaged, or was saved by different analyses; analyse the trace again from its start")

func profileOf(d *codec.Decoder) (*profile.Profile, error) {
	data := d.Bytes()
	if d.Err() != nil {
		return nil, d.Err()
	}
	p, err := profile.Decode(data)
	if err == nil && (p.Segment == nil || p.Segment.Start != 0) {
		err = errKept
	}
	return p, err
}

func (p *siteSampler) code(c *codec.Coder) {
	c.U64(&p.accesses)
	codec.Below(c, &p.samples, 1<<62)
	p.counts.code(c, p.sites, outOf+1)
	if p.time == nil {
		p.space.code(c)
		return
	}
	p.time.code(c)
	c.U64(&p.first.threshold)
	codec.Below(c, &p.first.halvings, 64)
	lines := slices.Sorted(maps.Keys(p.first.lines))
	if codeLines(c, &lines); c.Reads() {
		for _, line := range lines {
			p.first.lines[line] = struct{}{}
		}
	}
}

// code reads or writes the threads in the order of their first references, the known lines, and the
// stacks of cores and domains.
func (t *threads) code(c *codec.Coder) {
	var appeared []uint32
	if !c.Reads() {
		appeared = t.grouping.Appeared()
	}
	codec.Slice(c, &appeared, 1, func(thread *uint32) {
		if c.U32(thread); c.Reads() {
			t.coreOf(*thread)
		}
	})
	c.U64(&t.lines.threshold)
	codec.Below(c, &t.lines.halvings, 64)
	codec.Below(c, &t.draws, 1<<62)
	all := uint64(1)<<len(t.cores) - 1
	codeByLine(c, t.lines.of, 3, func(l **knownLine) {
		if c.Reads() {
			*l = &knownLine{last: make([]uint8, len(t.domains))}
		}
		if c.U64s(&(*l).ever, &(*l).holders); c.Reads() {
			(*l).ever, (*l).holders = (*l).ever&all, (*l).holders&all
		}
		for i := range (*l).last {
			codec.Below(c, &(*l).last[i], uint64(len(t.cores))+1)
		}
	})
	for n, core := range t.cores {
		if core.code(c); c.Reads() {
			t.addToTables(uint8(n))
		}
	}
	for _, d := range t.domains {
		d.code(c, len(t.cores))
	}
}

// addToTables adds the restored samples and lines of a core to the tables that cover all cores.
func (t *threads) addToTables(core uint8) {
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

func (c *coreStacks) code(w *codec.Coder) {
	w.U64(&c.accesses)
	c.private.code(w)
	c.coherent.code(w)
	c.foreign.code(w)
	w.Array(c.lostNear[:])
	codeHistogram(w, &c.lost)
	w.Array(c.lostSpread[:])
	w.Array(c.taken[:])
	if c.time != nil {
		c.time.code(w)
		codeByLine(w, c.waits, 3, func(x *pendingSample) {
			w.Flags(&x.foreign, &x.lost)
			w.U32(&x.at)
		})
		return
	}
	c.space.code(w)
	top := &c.top
	if !w.Reads() {
		top = c.coherentTop()
	}
	for i := range top {
		codeLine(w, &top[i], 2) // 0 represents a hole, and 1 represents no line
	}
	var near []nearLost
	if w.Reads() {
		c.same = front(c.top) == c.space.front
	} else {
		sort.Slice(c.nearLost, func(i, j int) bool { return c.nearLost[i].line < c.nearLost[j].line })
		near = c.nearLost
	}
	codec.Slice(w, &near, 2, func(x *nearLost) {
		codec.Below(w, &x.line, beyond)
		if codec.Below(w, &x.at, frontLines); w.Reads() {
			c.recordNearLost(x.line, x.at)
		}
	})
	c.own.code(w)
	c.holed.code(w)
	codeByLine(w, c.lostAt, 2, w.U32)
}

func (d *domainStacks) code(c *codec.Coder, cores int) {
	c.U64(&d.accesses)
	for _, m := range d.members {
		if m != nil {
			m.code(c)
		}
	}
	d.foreign.code(c)
	if d.time == nil {
		d.space.code(c)
		return
	}
	d.time.code(c)
	codeByLine(c, d.waits, 2, func(core *uint8) { codec.Below(c, core, uint64(cores)) })
}

// code reads or writes the decision whether to run, and then the states of the analyses, one for
// each power-of-two range of hashes. The decision is encoded as 0 if it has not been made, as 1 for
// yes, as 2 for no, and otherwise as 3 + the thread of the first reference.
func (t *sampledCommunication) code(c *codec.Coder, p *profile.Profile) error {
	how := uint64(0)
	switch {
	case t.off:
		how = 2
	case t.decides == nil:
		how = 1
	case t.met:
		how = 3 + uint64(t.first)
	}
	if codec.Below(c, &how, 3+1<<32); c.Reads() {
		switch how {
		case 0:
		case 1:
			t.decides = nil
		case 2:
			t.turnOff()
		default:
			t.met, t.first = true, uint32(how-3)
		}
	}
	var octaves []int
	if !c.Reads() {
		t.liveAnalyses()
		for n, o := range t.octaves {
			if o != nil {
				octaves = append(octaves, n)
			}
		}
	}
	var err error
	codec.Slice(c, &octaves, 1+talkGroups, func(n *int) {
		codec.Below(c, n, uint64(len(t.octaves)))
		if t.off && err == nil {
			err = errKept
		}
		if err != nil {
			return
		}
		for _, l := range t.analysesFor(*n).listeners() {
			part := &profile.Profile{Input: p.Input, Totals: p.Totals, Sites: p.Sites, Segment: new(profile.Segment)}
			if !c.Reads() {
				l.Result(part, true)
			}
			c.Bytes(&part.Segment.Communication)
			if c.Reads() && err == nil && !c.Failed() {
				err = l.Restore(part)
			}
		}
	})
	return err
}
