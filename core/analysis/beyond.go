package analysis

import "github.com/stackglass/stackglass/core/analysis/contract"

// Beyond returns the spec of a run that continues with its stacks outside of memory, without
// the analyses that keep something else of every line or byte.
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

// Spill moves the stacks to an empty spill store, and drops what [Spec.Beyond] leaves out. It
// returns the new spec, with which a state of the run is restored. If there are no stacks, or
// they were spilled before, nothing changes and ok is false. If the store fails, the next step
// does.
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
