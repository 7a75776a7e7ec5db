package sample

import (
	"math"

	"github.com/stackglass/stackglass/core/profile"
)

// scale makes counts of a sample of lines stand for all lines. No distance is beyond
// longest: a stack has as many lines as it has first accesses, which are rounded, too.
type scale struct {
	rate    float64
	longest uint64
}

// upTo is a scale for a stack of so many lines.
func (s scale) upTo(lines uint64) scale {
	s.longest = min(s.longest, max(lines, 1)-1)
	return s
}

func (s scale) distance(d uint64) uint64 {
	return min(uint64(scaledDistance(uint32(d), s.rate)), s.longest)
}

// count is what a count stands for.
func (s scale) count(n uint64) uint64 { return uint64(math.Round(float64(n) / s.rate)) }

func (s scale) counts(list ...*uint64) {
	for _, n := range list {
		*n = s.count(*n)
	}
}

// budget gives accesses out of those that there are, in sum, to counts of the sample,
// rounded so that the sum is. Who comes first has the more certain ones: first
// accesses, and then the longest distances; what is left over, or missing, are the
// shortest (SHARDS-adj).
type budget struct {
	scale
	left  uint64
	whole float64
}

func (b *budget) take(n uint64) uint64 {
	before := math.Round(b.whole)
	b.whole += float64(n) / b.rate
	got := min(uint64(math.Round(b.whole)-before), b.left)
	b.left -= got
	return got
}

// histogram takes what a histogram stands for, from its longest distance down.
func (b *budget) histogram(h *profile.Histogram) (out profile.Histogram) {
	for _, x := range descending(h) {
		out.AddN(b.distance(x.distance), b.take(x.count))
	}
	return out
}

// rest are the accesses that the sample does not account for.
func (b *budget) rest(h *profile.Histogram) {
	h.AddN(0, b.left)
	b.left = 0
}

// reuse scales the distances of a site or an object, all of whose accesses are there:
// those outside of the sample at distance 0.
func (s scale) reuse(r *profile.Reuse) {
	b := budget{scale: s, left: r.Accesses()}
	r.Cold = b.take(r.Cold)
	bins := make([]profile.BinCount, len(r.Bins)+1)
	at := len(bins)
	for i := len(r.Bins) - 1; i >= 0 && r.Bins[i].Bin > 0; i-- {
		if n := b.take(r.Bins[i].Count); n > 0 {
			at--
			bins[at] = profile.BinCount{Bin: r.Bins[i].Bin, Count: n}
		}
	}
	if b.left > 0 {
		at--
		bins[at] = profile.BinCount{Count: b.left}
	}
	r.Bins = bins[at:]
}

// sites scales distances; references and strides are those of all references.
func (s scale) sites(p *profile.Sites) {
	for i := range p.Code {
		s.reuse(&p.Code[i].Reuse)
	}
	for i := range p.Data {
		s.reuse(&p.Data[i].Reuse)
	}
}

// sharing scales the stacks of cores, of which each made so many accesses. Depths in
// sets, and how distances change, are not to be had from few lines.
func (s scale) sharing(p *profile.Sharing, made func(threads []uint32) uint64) {
	for i := range p.Cores {
		s.core(&p.Cores[i], made(p.Cores[i].Threads))
	}
	for i := range p.Domains {
		d := &p.Domains[i]
		d.Sets = profile.SetTable{}
		lines, budgets := uint64(0), make([]budget, len(d.Members))
		for k := range d.Members {
			m, b := &d.Members[k], &budgets[k]
			*b = budget{scale: s, left: made(p.Cores[d.Cores[k]].Threads)}
			m.Cold, m.Change = b.take(m.Cold), profile.Change{}
			lines += m.Cold
		}
		of := s.upTo(lines)
		for k := range d.Members {
			m, b := &d.Members[k], &budgets[k]
			b.scale = of
			m.Distances = b.histogram(&m.Distances)
			b.rest(&m.Distances)
		}
		all, _ := d.Concurrent()
		of.within(&d.Foreign, all, 0)
	}
}

func (s scale) core(c *profile.Core, accesses uint64) {
	b := budget{scale: s, left: accesses}
	c.Private.Cold = b.take(c.Private.Cold)
	s = s.upTo(c.Private.Cold)
	b.scale = s
	c.Private.Distances = b.histogram(&c.Private.Distances)
	b.rest(&c.Private.Distances)
	c.Private.Sets = profile.SetTable{}
	s.within(&c.Foreign, &c.Private.Distances, c.Private.Cold)

	x := &c.Coherent
	b = budget{scale: s, left: accesses}
	x.Cold = b.take(x.Cold)
	x.Lost = b.histogram(&x.Lost)
	x.Distances = b.histogram(&x.Distances)
	b.rest(&x.Distances)
	x.Sets = profile.SetTable{}
	x.Invalidations = max(s.count(x.Invalidations), x.Lost.Total())
}

// within scales counts of some of the accesses of which others count all.
func (s scale) within(c *profile.StackCounts, all *profile.Histogram, cold uint64) {
	c.Cold = min(s.count(c.Cold), cold)
	var out profile.Histogram
	for d, n := range c.Distances.All() {
		to := s.distance(d)
		out.AddN(to, min(s.count(n), all.Count(to)-out.Count(to)))
	}
	c.Distances, c.Sets = out, profile.SetTable{}
}

// communication scales what goes between threads, and leaves pages out: what happens
// to one is known from all its lines only.
func (s scale) communication(c *profile.Communication, lineBytes uint32) {
	if last := len(c.Granules) - 1; c.Granules[last].Bytes > lineBytes {
		c.Granules = c.Granules[:last]
	}
	for i := range c.Granules {
		g := &c.Granules[i]
		s.flows(g.Flows, uint64(g.Bytes))
		for class := range g.Classes {
			n := &g.Classes[class]
			s.counts(&n.Granules, &n.References, &n.Events)
		}
	}
	c.Messages = 0
	for i := range c.Granules[0].Flows {
		c.Messages += c.Granules[0].Flows[i].Bytes
	}
	for i := range c.Pairs {
		s.counts(&c.Pairs[i].Events, &c.Pairs[i].Transfers)
	}
	for i := range c.Windows {
		s.flows(c.Windows[i].Flows, profile.WordBytes)
	}
	for i := range c.Owners {
		for k := range c.Owners[i].Parts {
			s.counts(&c.Owners[i].Parts[k].References, &c.Owners[i].Parts[k].Own)
		}
	}
	for i := range c.False {
		s.counts(&c.False[i].Lines, &c.False[i].Events, &c.False[i].Misses)
	}
	for i := range c.Sources {
		c.Sources[i].Distances = s.histogram(&c.Sources[i].Distances)
		c.Sources[i].Transfers = s.histogram(&c.Sources[i].Transfers)
	}
}

func (s scale) flows(list []profile.Flow, bytes uint64) {
	for i := range list {
		s.counts(&list[i].Events, &list[i].Transfers)
		list[i].Bytes = list[i].Transfers * bytes
	}
}

// histogram scales counts of which it is not known how many there are in sum.
func (s scale) histogram(h *profile.Histogram) (out profile.Histogram) {
	for d, n := range h.All() {
		out.AddN(s.distance(d), s.count(n))
	}
	return out
}
