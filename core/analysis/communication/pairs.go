package communication

import "github.com/stackglass/stackglass/core/analysis/index"

// pairs counts what one site wrote and another used, by data object and threads.
type pairs struct {
	at     index.Table // by the site that wrote, and the pair that used: which of both
	both   uint32      // how many of both there are
	placed index.Table // by these, and the place in flows: in list
	list   []sitePair
}

type sitePair struct {
	site, pair uint32 // 1 + the slot of the store; the pair of sites of the reference
	place      uint32 // in flows
	counts
}

// of returns the counts of a pair at a place in flows.
func (p *pairs) of(site, pair, place uint32) *counts {
	key := p.key(site, pair, place)
	n, known := p.placed.Find(key)
	if !known {
		n = uint32(len(p.list))
		p.placed.Add(key, n)
		p.list = append(p.list, sitePair{site: site, pair: pair, place: place})
	}
	return &p.list[n].counts
}

// key numbers the combinations of a pair and a place in flows.
func (p *pairs) key(site, pair, place uint32) uint64 {
	two := uint64(site)<<32 | uint64(pair)
	n, known := p.at.Find(two)
	if !known {
		n = p.both
		p.both++
		p.at.Add(two, n)
	}
	return uint64(n)*mostThreads*mostThreads + uint64(place)
}
