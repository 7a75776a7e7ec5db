package communication

import "github.com/stackglass/stackglass/core/analysis/index"

// pairs counts what one place in the code wrote and another used, of data objects.
type pairs struct {
	at   index.Table // by the site that wrote, and the pair that used
	list []sitePair
}

type sitePair struct {
	site, pair uint32 // 1 + the slot of the store; the pair of sites of the reference
	counts
}

func (p *pairs) add(from source, r *reference) {
	p.of(from.site, r.pair).add(from)
}

// of gives the counts of a pair.
func (p *pairs) of(site, pair uint32) *counts {
	key := uint64(site)<<32 | uint64(pair)
	n, known := p.at.Find(key)
	if !known {
		n = uint32(len(p.list))
		p.at.Add(key, n)
		p.list = append(p.list, sitePair{site: site, pair: pair})
	}
	return &p.list[n].counts
}
