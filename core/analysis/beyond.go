package analysis

import "github.com/stackglass/stackglass/core/analysis/contract"

// Beyond is the spec of a run that goes on with its stacks outside of memory: what
// keeps something else of every line, or of every byte, is left out.
func (s Spec) Beyond(b contract.Budget) Spec {
	if !s.isDefault() && s.Analyses != None {
		sets := s.has(Sets)
		s.Analyses = s.Analyses&bounded | Locality
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
func (r *Runner) Spill(b contract.Budget) (now Spec, ok bool) {
	if s := &r.spec; s.Budget != nil || s.Sample != nil || r.stretches != nil || s.Mergeable || s.Start > 0 || !s.has(Locality) {
		return r.spec, false
	}
	b.Events = r.intake.events
	r.spec = r.spec.Beyond(b)
	r.intake.want = r.spec
	var stacks contract.Spiller
	var kept []member
	for _, a := range r.analyses {
		if s, ok := a.Analysis.(contract.Spiller); ok {
			stacks = s
		} else if r.spec.has(a.tag) {
			kept = append(kept, a)
		}
	}
	r.analyses, r.rest.analyses = nil, r.rest.analyses[:0] // the others' memory is free before more is taken
	spilled := stacks.Spill(b)
	r.analyses = append([]member{{spilled, Locality}}, kept...)
	if pieces, ok := spilled.(contract.PieceConsumer); ok && r.rest.pending() {
		r.rest.analyses = append(r.rest.analyses, pieces)
	}
	return r.spec, true
}
