package memory

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Profile is a reuse profile: line accesses by their stack distance. They are counts, or
// expected ones.
type Profile struct {
	Spans []Span  // ascending, none meets another
	Cold  float64 // first accesses to a line
}

// Span are accesses whose distances, in lines, are From or more and below To, all
// equally likely.
type Span struct {
	From, To uint64
	Accesses float64
}

// FromHistogram gives the profile of a histogram of distances, each by itself.
func FromHistogram(h *profile.Histogram, cold uint64) *Profile {
	p := &Profile{Cold: float64(cold)}
	for d, n := range h.All() {
		p.Spans = append(p.Spans, Span{d, d + 1, float64(n)})
	}
	return p
}

// FromReuse gives the profile of distances in bins, as a block's sites have them.
func FromReuse(r *profile.Reuse) *Profile {
	p := &Profile{Cold: float64(r.Cold)}
	for _, b := range r.Bins {
		p.Spans = append(p.Spans, Span{profile.SiteBinFrom(int(b.Bin)), profile.SiteBinFrom(int(b.Bin) + 1), float64(b.Count)})
	}
	return p
}

// Accesses is how many there are in all.
func (p *Profile) Accesses() float64 {
	n := p.Cold
	for i := range p.Spans {
		n += p.Spans[i].Accesses
	}
	return n
}

// Hits is how many of the accesses hit in an LRU cache by itself; the method is
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
		hits += s.Accesses * s.chance(lines, uint64(c.Ways))
	}
	return hits, hierarchy.SDCM
}

// chance is the mean of the stack distance cache model over the span, at a few places.
func (s *Span) chance(lines, ways uint64) (mean float64) {
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

// Ratios are the shares of all accesses that hit at each level of h or above, and how
// each was found. Distances are lines of lineBytes bytes: a level with others is an error,
// a [*trace.OptionError]. Of no accesses all hit.
func (p *Profile) Ratios(h hierarchy.Hierarchy, lineBytes uint32) (cumulative []float64, how []hierarchy.Method, err error) {
	all := p.Accesses()
	above := 0.0
	for i, c := range h.Levels {
		if err := c.Check(); err != nil {
			return nil, nil, err
		}
		if c.LineBytes != lineBytes {
			return nil, nil, &trace.OptionError{Option: "cache", Got: c.String(), Want: "lines of " + strconv.Itoa(int(lineBytes)) + " bytes, as the reuse profiles of the blocks have"}
		}
		hits, method := p.Hits(c)
		if i > 0 && method == hierarchy.Exact {
			method = hierarchy.Independent
		}
		ratio := 1.0
		if all > 0 {
			ratio = math.Min(1, hits/all)
		}
		above = max(above, ratio)
		cumulative, how = append(cumulative, above), append(how, method)
	}
	return cumulative, how, nil
}

// Block is what is known of a basic block.
type Block struct {
	Executions float64  // N_i, of the run that is asked about
	References float64  // r_i, line accesses of an execution
	Reuse      *Profile // P(Δ|BB_i), of any number of accesses; nil or of none: not known
}

// Weighting is how much the profile of a block counts.
type Weighting uint8

const (
	// ByReferences: P(BB_i) = N_i r_i / Σ N_j r_j.
	ByReferences Weighting = iota
	// ByExecutions: P(BB_i) = N_i / Σ N_j, over blocks with references. The slides have
	// it so, which is right only if all blocks refer equally often.
	ByExecutions
)

// Mix gives the profile of a program, P(Δ) = Σ P(Δ|BB_i) P(BB_i), times the accesses that
// it makes in all. unknown is the share of the accesses that are of blocks whose reuse is
// not known; the others stand for them.
func Mix(blocks []Block, by Weighting) (p *Profile, unknown float64) {
	p = new(Profile)
	var all, known float64 // accesses; weights
	weight := func(b *Block) float64 {
		if !(b.Executions > 0) || !(b.References > 0) {
			return 0
		}
		if by == ByExecutions {
			return b.Executions
		}
		return b.Executions * b.References
	}
	sum := 0.0
	for i := range blocks {
		b := &blocks[i]
		w := weight(b)
		if w == 0 {
			continue
		}
		all += b.Executions * b.References
		sum += w
		if b.Reuse != nil && b.Reuse.Accesses() > 0 {
			known += w
		}
	}
	if known == 0 {
		if sum > 0 {
			unknown = 1
		}
		return p, unknown
	}
	var spans []Span
	for i := range blocks {
		b := &blocks[i]
		w := weight(b)
		if w == 0 || b.Reuse == nil {
			continue
		}
		n := b.Reuse.Accesses()
		if n == 0 {
			continue
		}
		share := w / known * all / n
		p.Cold += b.Reuse.Cold * share
		for _, s := range b.Reuse.Spans {
			s.Accesses *= share
			spans = append(spans, s)
		}
	}
	p.Spans = disjoint(spans)
	return p, 1 - known/sum
}

// disjoint cuts spans where others begin or end, and joins those that are one.
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
