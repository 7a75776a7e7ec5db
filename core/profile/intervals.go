package profile

import "github.com/stackglass/stackglass/core/codec"

// hasIntervals reports whether parts of a sample besides the histograms have intervals.
func (p *Profile) hasIntervals() bool {
	return p.Sampled.Estimates() && (len(p.Sharing) > 0 || p.Sites != nil || p.Communication != nil)
}

// codeIntervals codes the section smpi: the intervals of all parts, in the order of the profile.
func (p *Profile) codeIntervals(c *coder) {
	for i := range p.Sharing {
		s := &p.Sharing[i]
		for k := range s.Cores {
			c.core(&s.Cores[k].Off)
		}
		for k := range s.Domains {
			for m := range s.Domains[k].Members {
				c.bounds(&s.Domains[k].Members[m].Bounds)
			}
		}
	}
	if p.Sites != nil {
		for i := range p.Sites.Code {
			c.off(&p.Sites.Code[i].Reuse.Off)
		}
		for i := range p.Sites.Data {
			c.off(&p.Sites.Data[i].Reuse.Off)
		}
		if s := p.Sites.Coherent; s != nil {
			for i := range s.Code {
				c.off(&s.Code[i].Off)
			}
			for i := range s.Data {
				c.off(&s.Data[i].Off)
			}
		}
	}
	if p.Communication != nil {
		p.Communication.codeOff(c)
	}
}

// there codes whether v is not nil, and allocates it while reading.
func there[T any](c *coder, v **T) bool {
	is := *v != nil
	if c.Flag(&is); is && c.Reads() {
		*v = new(T)
	}
	return is
}

func (c *coder) core(off **CoreIntervals) {
	if !there(c, off) {
		return
	}
	o := *off
	c.bounds(&o.Private)
	c.bounds(&o.Coherent)
	c.U64s(&o.Cold, &o.Lost, &o.Invalidations)
}

func (c *coder) bounds(list *[]Bound) {
	if c.Reads() {
		*list = nil // from a previous section
	}
	codec.Bounded(c.Coder, list, SiteBins, func(b *Bound) {
		c.bound(b)
		c.Check(b.Low <= b.High, "an interval ends before it begins")
	})
}

func (c *coder) off(list *[]BinCount) {
	if c.Reads() {
		*list = nil
	}
	next := uint8(0)
	codec.Slice(c.Coder, list, 2, func(b *BinCount) {
		codec.Below(c.Coder, &b.Bin, SiteBins)
		c.Check(b.Bin >= next, "intervals that are not ascending")
		next = b.Bin + 1
		c.U64(&b.Count)
	})
}

func (c *Communication) codeOff(w *coder) {
	if !there(w, &c.Off) {
		return
	}
	o := c.Off
	flow := func(f *FlowOff) { w.U64s(&f.Events, &f.Transfers) }
	i := 0
	codec.Members(w.Coder, &o.Granules, len(c.Granules), func(g *GranuleOff) {
		codec.Members(w.Coder, &g.Flows, len(c.Granules[i].Flows), flow)
		for k := range g.Classes {
			g.Classes[k].code(w)
		}
		i++
	})
	codec.Members(w.Coder, &o.Pairs, len(c.Pairs), flow)
	codec.Members(w.Coder, &o.False, len(c.False), func(f *FalseOff) { w.U64s(&f.Lines, &f.Events, &f.Misses) })
}
