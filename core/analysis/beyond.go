package analysis

import (
	"github.com/stackglass/stackglass/core/analysis/blocks"
	"github.com/stackglass/stackglass/core/analysis/counters"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/nests"
)

// Beyond is the spec of a run that goes on with its stacks outside of memory: what
// keeps something else of every line, or of every byte, is left out.
func (s Spec) Beyond(b locality.Budget) Spec {
	if !s.isDefault() && s.Analyses != None {
		sets := s.has(Sets)
		s.Analyses = s.Analyses&(Loops|Blocks|Operations) | Locality
		if sets {
			s.Analyses |= Sets
		}
	}
	s.Utilisation, s.UtilisationWays, s.Previous = nil, nil, false
	s.Cores, s.Domains = nil, nil
	s.Budget = &b
	return s
}

// Spill has the run go on with its stacks on an empty shelf, and without what [Spec.Beyond]
// leaves out: what that found is lost. It gives the spec that
// the run has now, with which a state of it is restored. Where there are no such
// stacks, or they were spilled already, nothing changes, and ok is false. Where the
// shelf fails, the next step tells.
func (r *Runner) Spill(b locality.Budget) (now Spec, ok bool) {
	if s := &r.spec; s.Budget != nil || s.Sample != nil || r.stretches != nil || s.Mergeable || s.Start > 0 || !s.has(Locality) {
		return r.spec, false
	}
	b.Events = r.intake.events
	r.spec = r.spec.Beyond(b)
	r.intake.want = r.spec
	var distances *locality.Analysis
	var kept []Analysis
	counts := r.spec.has(Counters)
	for _, a := range r.analyses {
		switch a := a.(type) {
		case *locality.Analysis:
			distances = a
		case *counters.Analysis:
			if counts {
				kept = append(kept, a)
			}
		case *blocks.Analysis, *nests.Analysis:
			kept = append(kept, a)
		}
	}
	r.analyses, r.rest.analyses = nil, r.rest.analyses[:0] // the others' memory is free before more is taken
	shelved := distances.Shelve(b)
	r.analyses = append([]Analysis{shelved}, kept...)
	if r.rest.pending() {
		r.rest.analyses = append(r.rest.analyses, shelved)
	}
	return r.spec, true
}
