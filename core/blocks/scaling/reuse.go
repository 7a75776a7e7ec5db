package scaling

import (
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/profile"
)

// RunOf is the run that a trace recorded, at these parameters; nil sites: references are
// not known.
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

// quantiles is in how many parts of equal weight the distances of a block are followed.
const quantiles = 512

// fitReuse finds laws of references and their reuse.
func (m *Model) fitReuse(f *fitter) {
	blocks := len(m.Counts)
	m.perRun, m.cold, m.quantiles = make([]Law, blocks), make([]Law, blocks), make([][]Law, blocks)
	for b := range blocks {
		values := m.values(func(r *Run) uint64 { return r.References[b] })
		m.perRun[b] = f.counts(values)
		if slices.Max(values) == 0 {
			continue
		}
		if of, ok := m.profiles(b); ok {
			m.cold[b] = f.counts(m.values(func(r *Run) uint64 { return uint64(math.Round(r.Reuse[b].Cold)) }))
			m.quantiles[b] = f.quantiles(of)
		}
	}
}

// profiles gives those of a block in all runs, if each is known.
func (m *Model) profiles(b int) (of []*memory.Profile, ok bool) {
	for i := range m.runs {
		r := &m.runs[i]
		if r.Reuse == nil || r.Reuse[b] == nil || r.Reuse[b].Accesses() == 0 {
			return nil, false
		}
		of = append(of, r.Reuse[b])
	}
	return of, true
}

// quantiles follows the distances of a block.
func (f *fitter) quantiles(of []*memory.Profile) []Law {
	var lists [][]float64
	bins := false
	for _, p := range of {
		lists = append(lists, quantilesOf(p))
		bins = bins || slices.ContainsFunc(p.Spans, func(s memory.Span) bool { return s.To > s.From+1 })
	}
	laws := make([]Law, 0, quantiles)
	for q := range quantiles {
		values := make([]float64, len(of))
		for i := range lists {
			if lists[i] == nil {
				return nil // nothing but first touches in some run
			}
			values[i] = lists[i][q]
		}
		if q > 0 && slices.EqualFunc(lists, values, func(list []float64, v float64) bool { return list[q-1] == v }) {
			laws = append(laws, laws[q-1])
		} else {
			laws = append(laws, f.distances(values, bins))
		}
	}
	return laws
}

// quantilesOf gives the distances in the middle of parts of equal weight; nil without any.
func quantilesOf(p *memory.Profile) []float64 {
	all := p.Accesses() - p.Cold
	if !(all > 0) {
		return nil
	}
	list := make([]float64, 0, quantiles)
	below := 0.0
	for _, s := range p.Spans {
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
	if reuse == Kept || m.quantiles[b] == nil || all == 0 {
		return of
	}
	cold := min(m.cold[b].count(at).Executions, all)
	distances := make([]float64, 0, quantiles)
	for i := range m.quantiles[b] {
		distances = append(distances, max(0, m.quantiles[b][i].At(at)))
	}
	slices.Sort(distances)
	p := &memory.Profile{Cold: cold}
	for _, d := range distances {
		from := uint64(math.Round(min(d, 1<<60)))
		n := (all - cold) / quantiles
		if k := len(p.Spans); k > 0 && p.Spans[k-1].From == from {
			p.Spans[k-1].Accesses += n
		} else {
			p.Spans = append(p.Spans, memory.Span{From: from, To: from + 1, Accesses: n})
		}
	}
	of.Reuse = p
	return of
}
