package sharing

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
)

// Result implements [contract.Analysis].
func (a *Analysis) Result(p *profile.Profile, state bool) {
	if a.running {
		order := a.cores.Order()
		for _, s := range a.sizes {
			s.addCores(len(order)) // a core that appeared with the last references may have no stack yet
			p.Sharing = append(p.Sharing, s.result(order))
		}
	}
	if state && (a.running || a.options.Mergeable && a.seen && !a.absent) {
		p.Segment.Sharing = a.state()
	}
}

func (s *lineSize) result(order []int) profile.Sharing {
	r := profile.Sharing{LineBytes: s.bytes}
	for _, n := range order {
		r.Cores = append(r.Cores, s.cores[n].result(s.analysis.cores.list[n].threads))
	}
	all := s.all.result(order)
	all.Sets = *s.analysis.pass.Table(s.bytes)
	foreign := s.analysis.pass.Marked(s.bytes)
	all.Foreign.Sets.Add(&foreign)
	r.Domains = append(r.Domains, all)
	for _, d := range s.domains {
		if shared := d.result(order); len(shared.Cores) > 0 {
			shared.Sets = d.table.sum()
			r.Domains = append(r.Domains, shared)
		}
	}
	return r
}

func (c *core) result(threads []uint32) profile.Core {
	return profile.Core{
		Threads: slices.Clone(threads),
		Private: c.privateCounts.withTable(&c.privateSets),
		Foreign: c.foreignCounts.withTable(&c.foreignSets),
		Coherent: profile.CoherentCounts{
			StackCounts:   c.coherentCounts.withTable(&c.coherentSets),
			Lost:          c.lost.histogram(),
			Invalidations: c.invalidations,
		},
	}
}

func (d *domain) result(order []int) (r profile.Domain) {
	for at, n := range order {
		if !d.has(uint8(n)) {
			continue
		}
		r.Cores = append(r.Cores, uint32(at))
		r.Members = append(r.Members, d.members[n].result())
	}
	r.Foreign.Distances, r.Foreign.Sets = d.foreign.histogram(), d.foreignTable.sum()
	return r
}

func (m *member) result() profile.Member {
	r := profile.Member{Cold: m.cold, Distances: m.histogram(), Change: profile.Change{
		Dilated: m.dilated, Overlapped: m.overlapped, Intercepted: m.intercepted, Brought: m.brought,
	}}
	r.Change.Same = r.Distances.Total() - m.dilated - m.overlapped - m.intercepted - m.brought
	return r
}
