package scaling

import (
	"cmp"
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/profile"
)

// RunOf returns the recorded run r with its parameters. The argument s contains the references of
// the blocks, and may be nil.
func RunOf(parameters []int64, r *blocks.Run, s *profile.Sites) Run {
	run := Run{Parameters: slices.Clone(parameters), Counts: slices.Clone(r.Edges.Visits)}
	if s == nil {
		return run
	}
	of := r.Reuse(s)
	run.References, run.Reuse = make([]uint64, len(of)), make([]*memory.Profile, len(of))
	for b := range of {
		if n := of[b].Accesses(); n > 0 {
			run.References[b] = n
			run.Reuse[b] = memory.FromReuse(&of[b].Reuse)
		}
	}
	return run
}

// quantiles is the number of quantiles of a block's distances that are compared between runs.
const quantiles = 512

// distanceClass is a class of accesses. In every run, gaps separate the distances of a class from
// all other distances.
type distanceClass struct {
	count     Law // the number of accesses
	distances []Law
}

// classLaws contains the laws of a reuse profile.
type classLaws struct {
	cold    Law
	classes []distanceClass
	// divided is true if the accesses are divided into classes, and each class has a law for its
	// number of accesses. Otherwise, a single class contains all accesses except first accesses to
	// lines.
	divided bool
}

// fitReuse finds laws for the references of each block, and for their reuse profiles.
func (m *Model) fitReuse(f *fitter) {
	blocks := len(m.Counts)
	m.perRun, m.reuse = make([]Law, blocks), make([]*classLaws, blocks)
	for b := range blocks {
		values := m.values(func(r *Run) uint64 { return r.References[b] })
		m.perRun[b] = f.countLaw(values)
		if slices.Max(values) == 0 {
			continue
		}
		if of, ok := m.blockProfiles(b); ok {
			m.reuse[b] = f.reuseLaws(of)
		}
	}
}

// blockProfiles returns the profiles of a block in all runs. ok is false if the profile is unknown
// in any run.
func (m *Model) blockProfiles(b int) (of []*memory.Profile, ok bool) {
	for i := range m.runs {
		r := &m.runs[i]
		if r.Reuse == nil || r.Reuse[b] == nil || r.Reuse[b].Accesses() == 0 {
			return nil, false
		}
		of = append(of, r.Reuse[b])
	}
	return of, true
}

// reuseLaws finds the laws of a reuse profile, given the profile in each run. It returns nil if no
// laws fit.
func (f *fitter) reuseLaws(of []*memory.Profile) *classLaws {
	c := &classLaws{}
	colds := make([]uint64, len(of))
	for i, p := range of {
		colds[i] = uint64(math.Round(p.Cold))
	}
	c.cold = f.countLaw(colds)
	for _, gap := range gaps {
		if list, ok := f.classes(of, gap); ok {
			c.classes, c.divided = list, true
			return c
		}
	}
	whole := make([][]memory.Span, len(of))
	for i, p := range of {
		whole[i] = p.Spans
	}
	if laws := f.quantiles(whole); laws != nil {
		c.classes = []distanceClass{{distances: laws}}
		return c
	}
	for i := range whole {
		if len(whole[i]) > 0 {
			return nil // in some runs, but not in all runs, all accesses are first accesses
		}
	}
	return c
}

// gaps lists the factors that may separate two classes of distances. Each factor is at least the
// ratio between the ends of a bin of distances.
var gaps = [...]float64{1.25, 1.5, 2, 4}

const maxClasses = 24

// classes divides the distances of all runs at gaps whose ends differ by at least the given factor.
// ok is false if runs have different numbers of classes, or if no checked polynomial fits the
// counts of a class. In both cases, classes have usually merged in some of the runs.
func (f *fitter) classes(of []*memory.Profile, gap float64) (list []distanceClass, ok bool) {
	parts := make([][][]memory.Span, len(of))
	for i, p := range of {
		if parts[i] = splitAtGaps(p.Spans, gap); len(parts[i]) != len(parts[0]) || len(parts[i]) == 0 || len(parts[i]) > maxClasses {
			return nil, false
		}
	}
	for k := range parts[0] {
		counts, spans := make([]uint64, len(of)), make([][]memory.Span, len(of))
		for i := range parts {
			spans[i] = parts[i][k]
			sum := 0.0
			for _, s := range spans[i] {
				sum += s.Accesses
			}
			counts[i] = uint64(math.Round(sum))
		}
		law, ok := f.exactCount(counts)
		if !ok || law.Checked == 0 {
			return nil, false
		}
		list = append(list, distanceClass{law, f.quantiles(spans)})
	}
	return list, true
}

// splitAtGaps divides spans at gaps that are wider than one line and whose ends differ by at least
// the given factor.
func splitAtGaps(spans []memory.Span, gap float64) (parts [][]memory.Span) {
	from := 0
	for i := range spans {
		if i > 0 && float64(spans[i].From) >= max(gap*float64(spans[i-1].To-1), float64(spans[i-1].To+1)) {
			parts, from = append(parts, spans[from:i]), i
		}
	}
	if len(spans) > 0 {
		parts = append(parts, spans[from:])
	}
	return parts
}

// quantiles returns the law of each quantile of the distances, given the distances in each run.
func (f *fitter) quantiles(of [][]memory.Span) []Law {
	var lists [][]float64
	bins := false
	for _, spans := range of {
		lists = append(lists, quantilesOf(spans))
		bins = bins || slices.ContainsFunc(spans, func(s memory.Span) bool { return s.To > s.From+1 })
	}
	laws := make([]Law, 0, quantiles)
	for q := range quantiles {
		values := make([]float64, len(of))
		for i := range lists {
			if lists[i] == nil {
				return nil // all accesses of this run are first accesses
			}
			values[i] = lists[i][q]
		}
		if q > 0 && slices.EqualFunc(lists, values, func(list []float64, v float64) bool { return list[q-1] == v }) {
			laws = append(laws, laws[q-1])
		} else {
			laws = append(laws, f.distanceLaw(values, bins))
		}
	}
	return laws
}

// quantilesOf returns the weighted midpoint quantiles of the distances, or nil if there are no
// distances.
func quantilesOf(spans []memory.Span) []float64 {
	all := 0.0
	for _, s := range spans {
		all += s.Accesses
	}
	if !(all > 0) {
		return nil
	}
	list := make([]float64, 0, quantiles)
	below := 0.0
	for _, s := range spans {
		for len(list) < quantiles {
			want := (float64(len(list)) + 0.5) / quantiles * all
			if want > below+s.Accesses {
				break
			}
			list = append(list, (float64(s.From)+float64(s.To-1))/2)
		}
		below += s.Accesses
	}
	for len(list) > 0 && len(list) < quantiles {
		list = append(list, list[len(list)-1])
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// profileFor returns the profile for the given parameters and the given total number of accesses.
func (c *classLaws) profileFor(at []int64, accesses float64) *memory.Profile {
	cold := min(c.cold.count(at).Executions, accesses)
	p := &memory.Profile{Cold: cold}
	left := accesses - cold
	sum := 0.0
	counts := make([]float64, len(c.classes))
	for i := range c.classes {
		if counts[i] = left; c.divided {
			counts[i] = c.classes[i].count.count(at).Executions
		}
		sum += counts[i]
	}
	if sum == 0 {
		p.Cold = accesses // all accesses are first accesses
		return p
	}
	var spans []memory.Span
	for i := range c.classes {
		for q := range c.classes[i].distances {
			d := uint64(math.Round(min(max(0, c.classes[i].distances[q].At(at)), 1<<60)))
			spans = append(spans, memory.Span{From: d, To: d + 1, Accesses: counts[i] / sum * left / quantiles})
		}
	}
	slices.SortFunc(spans, func(a, b memory.Span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range spans {
		if k := len(p.Spans); k > 0 && p.Spans[k-1].From == s.From {
			p.Spans[k-1].Accesses += s.Accesses
		} else if s.Accesses > 0 {
			p.Spans = append(p.Spans, s)
		}
	}
	return p
}

// block predicts a block's references and their reuse.
func (m *Model) block(b int, executions float64, at []int64, reuse Reuse) memory.Block {
	last := &m.runs[len(m.runs)-1]
	of := memory.Block{Executions: executions}
	if n := last.Counts[b]; n > 0 {
		of.References = float64(last.References[b]) / float64(n)
	}
	all := m.perRun[b].count(at).Executions
	if executions > 0 && all > 0 {
		of.References = all / executions
	}
	if last.Reuse != nil {
		of.Reuse = last.Reuse[b]
	}
	if reuse == Scaled && m.reuse[b] != nil && all > 0 {
		of.Reuse = m.reuse[b].profileFor(at, all)
	}
	return of
}
