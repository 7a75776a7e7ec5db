package estimate

import (
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
)

// result scales the counts of the sample to all accesses. The result ok is false if there is only
// one core.
func (t *threads) result() (r profile.Sharing, ok bool) {
	if len(t.cores) < 2 {
		return r, false
	}
	r.LineBytes = t.bytes
	order := t.grouping.Order()
	threads := t.grouping.Threads()
	for _, n := range order {
		core := t.cores[n].result(t)
		core.Threads = threads[n]
		r.Cores = append(r.Cores, core)
	}
	for _, d := range t.domains {
		if shared := d.result(t, order, r.Cores); len(shared.Cores) > 0 {
			r.Domains = append(r.Domains, shared)
		}
	}
	return r, true
}

// weighing converts the sampled counts of a stack to numbers of accesses.
type weighing struct {
	front      uint32  // distances below this limit are exact: frontLines, or 0
	deep, cold float64 // number of accesses that a sampled access represents
	deepRest   float64 // share of the accesses that are not in the sample
	coldRest   float64
	deviation  func(distance float64) float64
	least      uint64 // lower bound for the number of lines
}

// newWeighing returns the weighing for a stack with the given number of accesses and, if single
// accesses are sampled, the given number of samples. First accesses are estimated from lines whose
// hashes do not exceed the parameter threshold. The parameter halvings is the number of times that
// the rate has been halved. If single accesses are sampled, the parameter lines is nil. Otherwise,
// the parameter single is nil.
func newWeighing(threshold uint64, halvings uint, lines *spaceSampler, single *timeSampler, accesses, samples uint64) (w weighing) {
	rate := profile.RateOf(threshold)
	w.cold, w.coldRest = math.Exp2(-float64(halvings))/rate, 1-rate
	if single == nil {
		w.front, w.deep, w.deepRest, w.deviation = frontLines, w.cold, w.coldRest, lines.deviation
		return w
	}
	w.deep, w.deepRest, w.deviation = 1, 1, single.deviation
	if samples > 0 {
		w.deep = max(1, float64(accesses)/float64(samples))
	}
	if single.gap == 1 {
		w.deepRest = 0
	}
	return w
}

// weighing returns the weighing for one of the stacks.
func (t *threads) weighing(lines *spaceSampler, single *timeSampler, accesses uint64) weighing {
	if single != nil {
		w := newWeighing(t.lines.threshold, t.lines.halvings, nil, single, accesses, single.samples)
		w.least = 1
		return w
	}
	w := newWeighing(t.lines.threshold, t.lines.halvings, lines, nil, 0, 0)
	w.least = uint64(lines.front.lines())
	if lines.fetches > w.least {
		w.least++ // at least one line is beyond the front
	}
	return w
}

func (c *coreStacks) result(t *threads) (out profile.Core) {
	w := t.weighing(c.space, c.time, c.accesses)
	near, nearCoherent := c.private.nearTotal(), c.coherent.nearTotal()+sum(c.lostNear[:])
	b := scaledCounts{left: c.accesses - nearCoherent, factor: w.cold} // only accesses beyond the front
	cold := min(max(b.take(c.private.cold), w.least), c.accesses-nearCoherent)
	longest := max(cold, 1) - 1
	shortest := min(uint64(w.front), longest)

	p := &out.Private
	b = scaledCounts{left: c.accesses - near - cold, factor: w.deep}
	p.Cold = cold
	c.private.addNear(&p.Distances)
	b.addHistogram(&c.private.deep, &p.Distances, longest)
	b.addRemaining(&p.Distances, shortest)

	x := &out.Coherent
	b = scaledCounts{left: c.accesses - nearCoherent - cold, factor: w.deep}
	x.Cold = cold
	for d, n := range c.lostNear {
		x.Lost.AddN(uint64(d), n)
	}
	b.addHistogram(&c.lost, &x.Lost, longest)
	c.coherent.addNear(&x.Distances)
	b.addHistogram(&c.coherent.deep, &x.Distances, longest)
	b.addRemaining(&x.Distances, shortest)
	x.Invalidations = max(uint64(math.Round(float64(sum(c.taken[:]))*w.cold)), x.Lost.Total())
	w.addSubset(&out.Foreign, &c.foreign, &p.Distances, cold, longest)
	out.Off = c.intervals(&out, w)
	return out
}

// addSubset estimates the counts of a subset of the accesses. The parameter all is the histogram of
// all accesses.
func (w *weighing) addSubset(out *profile.StackCounts, c *stackSample, all *profile.Histogram, cold, longest uint64) {
	out.Cold = min(uint64(math.Round(float64(c.cold)*w.cold)), cold)
	for d, n := range c.deep.All() {
		to := min(d, longest)
		out.Distances.AddN(to, min(uint64(math.Round(float64(n)*w.deep)), all.Count(to)-out.Distances.Count(to)))
	}
}

func (d *domainStacks) result(t *threads, order []int, cores []profile.Core) (r profile.Domain) {
	w := t.weighing(d.space, d.time, d.accesses)
	var budgets []scaledCounts
	lines := uint64(0)
	for at, n := range order {
		if d.members[n] == nil {
			continue
		}
		r.Cores = append(r.Cores, uint32(at))
		b := scaledCounts{left: t.cores[n].accesses - d.members[n].nearTotal(), factor: w.cold}
		b.left = min(b.left, cores[at].Private.Cold)
		m := profile.Member{Cold: b.take(d.members[n].cold)}
		lines += m.Cold
		r.Members, budgets = append(r.Members, m), append(budgets, b)
	}
	for k := range r.Members { // raise the number of lines to its lower bound, as far as the remaining accesses allow
		n := min(w.least-min(lines, w.least), budgets[k].left)
		r.Members[k].Cold += n
		lines += n
	}
	longest := max(lines, 1) - 1
	shortest := min(uint64(w.front), longest)
	for k := range r.Members {
		m, c := &r.Members[k], d.members[order[r.Cores[k]]]
		c.addNear(&m.Distances)
		b := scaledCounts{left: t.cores[order[r.Cores[k]]].accesses - c.nearTotal() - m.Cold, factor: w.deep}
		b.addHistogram(&c.deep, &m.Distances, longest)
		b.addRemaining(&m.Distances, shortest)
		m.Bounds = w.bounds(&m.Distances, m.Cold, &c.spread, nil)
	}
	if len(r.Members) > 0 {
		all, _ := r.Concurrent()
		w.addSubset(&r.Foreign, &d.foreign, all, 0, longest)
	}
	return r
}

func (c *coreStacks) intervals(of *profile.Core, w weighing) *profile.CoreIntervals {
	if w.deepRest <= 0 && w.coldRest <= 0 {
		return nil
	}
	var cold, lost, taken [groups]float64
	for g := range cold {
		cold[g], lost[g], taken[g] = float64(c.private.spread[g][outOf]), float64(c.lostSpread[g]), float64(c.taken[g])
	}
	half := func(parts *[groups]float64, factor, rest float64) uint64 {
		return min(uint64(math.Ceil(halfWidth(parts[:], factor, rest))), c.accesses)
	}
	x := &of.Coherent
	return &profile.CoreIntervals{
		Private:  w.bounds(&of.Private.Distances, of.Private.Cold, &c.private.spread, nil),
		Coherent: w.bounds(&x.Distances, x.Cold+x.Lost.Total(), &c.coherent.spread, &c.lostSpread),
		Cold:     half(&cold, w.cold, w.coldRest), Lost: half(&lost, w.deep, w.deepRest), Invalidations: half(&taken, w.cold, w.coldRest),
	}
}

// bounds returns the confidence intervals of misses. The parameters s and lost contain the group
// weights of accesses and of coherence misses.
func (w *weighing) bounds(h *profile.Histogram, cold uint64, s *groupWeights, lost *[groups]uint64) []profile.Bound {
	if w.deepRest <= 0 && w.coldRest <= 0 {
		return nil
	}
	misses := siteBinMisses(h, cold)
	return w.boundsOf(&misses, s, lost)
}

func (w *weighing) boundsOf(misses *[outOf + 1]uint64, s *groupWeights, lost *[groups]uint64) []profile.Bound {
	off := w.missErrors(s, lost)
	var bounds [outOf + 1]profile.Bound
	for bin, half := range off {
		n := uint64(math.Ceil(half))
		bounds[bin] = profile.Bound{Low: n, High: n}
	}
	list := boundsOf(misses, &bounds, w.front, w.deviation)
	return slices.Clip(list[:min(len(list), profile.SiteBins)])
}

// missErrors computes the error of the number of misses for each bin from the group weights. If
// first accesses and distances come from different samples, their errors are independent.
func (w *weighing) missErrors(s *groupWeights, lost *[groups]uint64) (off [outOf + 1]float64) {
	var deep, cold [groups]float64
	for g := range s {
		cold[g] = float64(s[g][outOf])
		if lost != nil {
			deep[g] = float64(lost[g])
		}
	}
	together := w.front > 0
	coldOff := halfWidth(cold[:], w.cold, w.coldRest)
	for bin := outOf; bin >= 0; bin-- {
		for g := range s {
			if bin < outOf || together {
				deep[g] += float64(s[g][bin])
			}
		}
		if off[bin] = halfWidth(deep[:], w.deep, w.deepRest); !together {
			off[bin] = math.Hypot(off[bin], coldOff)
		}
	}
	return off
}
