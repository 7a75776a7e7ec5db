package profile

// hasIntervals reports whether something of a sample tells how far off it is, besides the
// histograms.
func (p *Profile) hasIntervals() bool {
	if !p.Sampled.Estimates() {
		return false
	}
	return len(p.Sharing) > 0 || p.Sites != nil || p.Communication != nil
}

// intervals writes or reads the section smpi: of everything that may have intervals, in
// the order of the profile, those that it has.
type intervals struct {
	out []byte
	in  *Decoder // nil while writing
}

func (p *Profile) encodeIntervals(b []byte) []byte {
	f := intervals{out: b}
	f.all(p)
	return f.out
}

func (p *Profile) decodeIntervals(r *Decoder) {
	f := intervals{in: r}
	f.all(p)
}

func (f *intervals) all(p *Profile) {
	for i := range p.Sharing {
		s := &p.Sharing[i]
		for k := range s.Cores {
			f.core(&s.Cores[k].Off)
		}
		for k := range s.Domains {
			for m := range s.Domains[k].Members {
				f.bounds(&s.Domains[k].Members[m].Bounds)
			}
		}
	}
	if p.Sites != nil {
		for i := range p.Sites.Code {
			f.bins(&p.Sites.Code[i].Reuse.Off)
		}
		for i := range p.Sites.Data {
			f.bins(&p.Sites.Data[i].Reuse.Off)
		}
		if c := p.Sites.Coherent; c != nil {
			for i := range c.Code {
				f.bins(&c.Code[i].Off)
			}
			for i := range c.Data {
				f.bins(&c.Data[i].Off)
			}
		}
	}
	if p.Communication != nil {
		f.communication(p.Communication)
	}
}

func (f *intervals) uint(v *uint64) {
	if f.in == nil {
		f.out = appendUint(f.out, *v)
		return
	}
	*v = f.in.Uint()
}

// flag writes whether something is there, or reads it.
func (f *intervals) flag(is bool) bool {
	n := uint64(0)
	if is {
		n = 1
	}
	if f.uint(&n); n > 1 {
		f.in.fail("a flag that is neither 0 nor 1")
	}
	return n == 1
}

// length is that of a list whose members take at least so many bytes each.
func (f *intervals) length(n, least int) int {
	if f.in == nil {
		f.out = appendUint(f.out, uint64(n))
		return n
	}
	return f.in.Length(least)
}

func (f *intervals) core(off **CoreIntervals) {
	if !f.flag(*off != nil) {
		return
	}
	if *off == nil {
		*off = new(CoreIntervals)
	}
	o := *off
	f.bounds(&o.Private)
	f.bounds(&o.Coherent)
	f.uint(&o.Cold)
	f.uint(&o.Lost)
	f.uint(&o.Invalidations)
}

func (f *intervals) bounds(list *[]Bound) {
	for i := range f.length(len(*list), 2) {
		if f.in != nil {
			*list = append(*list, Bound{})
		}
		b := &(*list)[i]
		f.uint(&b.Low)
		if f.uint(&b.High); f.in != nil && b.Low > b.High {
			f.in.fail("an interval ends before it begins")
		}
	}
	if f.in != nil && len(*list) > SiteBins {
		f.in.fail("more intervals than there are distances")
	}
}

func (f *intervals) bins(list *[]BinCount) {
	for i := range f.length(len(*list), 2) {
		if f.in != nil {
			*list = append(*list, BinCount{Bin: uint8(f.in.UintBelow(SiteBins)), Count: f.in.Uint()})
			if i > 0 && (*list)[i-1].Bin >= (*list)[i].Bin {
				f.in.fail("intervals that are not ascending")
			}
			continue
		}
		f.out = appendUint(f.out, uint64((*list)[i].Bin), (*list)[i].Count)
	}
}

func (f *intervals) communication(c *Communication) {
	if !f.flag(c.Off != nil) {
		return
	}
	if c.Off == nil {
		c.Off = &CommunicationOff{Granules: make([]GranuleOff, len(c.Granules))}
	}
	o := c.Off
	for i := range c.Granules {
		f.flows(&o.Granules[i].Flows, len(c.Granules[i].Flows))
		for k := range o.Granules[i].Classes {
			n := &o.Granules[i].Classes[k]
			f.uint(&n.Granules)
			f.uint(&n.References)
			f.uint(&n.Events)
		}
	}
	f.flows(&o.Pairs, len(c.Pairs))
	if f.in != nil && len(c.False) > 0 {
		o.False = make([]FalseOff, len(c.False))
	}
	for i := range o.False {
		f.uint(&o.False[i].Lines)
		f.uint(&o.False[i].Events)
		f.uint(&o.False[i].Misses)
	}
}

func (f *intervals) flows(list *[]FlowOff, n int) {
	if f.in != nil && n > 0 {
		*list = make([]FlowOff, n)
	}
	for i := range *list {
		f.uint(&(*list)[i].Events)
		f.uint(&(*list)[i].Transfers)
	}
}
