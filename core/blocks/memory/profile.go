package memory

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// Profile is a reuse profile: the (expected) number of line accesses at each stack distance.
type Profile struct {
	Spans []Span  // disjoint, in ascending order
	Cold  float64 // first accesses to a line
}

// Span is a number of accesses whose distances, in lines, are uniformly distributed in [From, To).
type Span struct {
	From, To uint64
	Accesses float64
}

// FromReuse returns the reuse profile for a list of binned stack distances.
func FromReuse(r *profile.Reuse) *Profile {
	p := &Profile{Cold: float64(r.Cold)}
	for _, b := range r.Bins {
		p.Spans = append(p.Spans, Span{profile.SiteBinFrom(int(b.Bin)), profile.SiteBinFrom(int(b.Bin) + 1), float64(b.Count)})
	}
	return p
}

// Accesses returns the number of accesses.
func (p *Profile) Accesses() float64 {
	n := p.Cold
	for i := range p.Spans {
		n += p.Spans[i].Accesses
	}
	return n
}

// Hits returns the number of accesses that hit in a single LRU cache, and the method used:
// [hierarchy.Exact] or [hierarchy.SDCM].
func (p *Profile) Hits(c hierarchy.Cache) (hits float64, how hierarchy.Method) {
	lines := c.Lines()
	if c.Full() {
		for i := range p.Spans {
			s := &p.Spans[i]
			switch {
			case s.To <= lines:
				hits += s.Accesses
			case s.From < lines:
				hits += s.Accesses * float64(lines-s.From) / float64(s.To-s.From)
			}
		}
		return hits, hierarchy.Exact
	}
	for i := range p.Spans {
		s := &p.Spans[i]
		hits += s.Accesses * s.hitProbability(lines, uint64(c.Ways))
	}
	return hits, hierarchy.SDCM
}

// hitProbability returns the mean hit probability of the accesses in the span. It evaluates the
// stack distance cache model at a few distances.
func (s *Span) hitProbability(lines, ways uint64) (mean float64) {
	const places = 4
	wide := s.To - s.From
	if wide <= places {
		for d := s.From; d < s.To; d++ {
			mean += hierarchy.HitProbability(d, lines, ways) / float64(wide)
		}
		return mean
	}
	for i := range uint64(places) {
		d := s.From + wide/places*i + wide/(2*places)
		mean += hierarchy.HitProbability(d, lines, ways) / places
	}
	return mean
}

// Block describes a basic block for Mix.
type Block struct {
	Executions float64  // number of executions, N_i
	References float64  // line accesses per execution, r_i
	Reuse      *Profile // P(Δ|BB_i), not normalised; nil or empty if unknown
}

// Mix returns the profile of a program, P(Δ) = Σ P(Δ|BB_i) P(BB_i) with P(BB_i) = N_i r_i / Σ N_j
// r_j, multiplied by its number of accesses. Blocks with unknown reuse are assumed to behave like
// the other blocks.
func Mix(blocks []Block) *Profile {
	p := new(Profile)
	all, known := 0.0, 0.0
	for i := range blocks {
		b := &blocks[i]
		if n := b.accesses(); n > 0 {
			all += n
			if b.Reuse != nil && b.Reuse.Accesses() > 0 {
				known += n
			}
		}
	}
	var spans []Span
	for i := range blocks {
		b := &blocks[i]
		weight := b.accesses()
		if weight == 0 || b.Reuse == nil {
			continue
		}
		n := b.Reuse.Accesses()
		if n == 0 {
			continue
		}
		share := weight / known * all / n
		p.Cold += b.Reuse.Cold * share
		for _, s := range b.Reuse.Spans {
			s.Accesses *= share
			spans = append(spans, s)
		}
	}
	p.Spans = disjoint(spans)
	return p
}

// accesses returns N_i r_i, or 0 if either factor is not positive.
func (b *Block) accesses() float64 {
	if !(b.Executions > 0) || !(b.References > 0) {
		return 0
	}
	return b.Executions * b.References
}

// disjoint splits spans at the ends of overlapping spans, and then merges equal spans.
func disjoint(spans []Span) []Span {
	var edges []uint64
	for i := range spans {
		edges = append(edges, spans[i].From, spans[i].To)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	var out []Span
	open, next := []Span{}, 0
	for i := 0; i+1 < len(edges); i++ {
		from, to := edges[i], edges[i+1]
		for next < len(spans) && spans[next].From <= from {
			open = append(open, spans[next])
			next++
		}
		open = slices.DeleteFunc(open, func(s Span) bool { return s.To <= from })
		n := 0.0
		for _, s := range open {
			n += s.Accesses * float64(to-from) / float64(s.To-s.From)
		}
		if n > 0 {
			out = append(out, Span{from, to, n})
		}
	}
	return out
}
