package simulate

import (
	"math/rand/v2"
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Prefetches counts the actions of a level's prefetcher, and their effects.
type Prefetches struct {
	Hits    uint64 // number of prefetches of lines that were present
	Misses  uint64 // number of prefetches that inserted a line
	Dropped uint64 // number of prefetches that were dropped at random
	Useful  uint64 // number of inserted lines that a demand access used
	Unused  uint64 // number of inserted lines that were evicted or invalidated before a demand access used them

	// Pollution is the number of demand misses of lines that a prefetched line had evicted.
	Pollution uint64
}

// Issued returns the number of prefetches that were not dropped.
func (p *Prefetches) Issued() uint64 { return p.Hits + p.Misses }

// prefetcher decides which units a level prefetches. A unit is a line, or a sub-block if the level
// has sub-blocks.
type prefetcher struct {
	hierarchy.Prefetch
	shift uint                    // units have 1 << shift bytes
	line  uint                    // lines have 1 << line bytes
	fresh map[trace.Line]struct{} // prefetched lines that have not been used yet
	// lines that prefetched lines have evicted, and that have not been fetched again
	pushed  map[trace.Line]struct{}
	strides map[trace.Addr]*strideEntry
	order   []trace.Addr // keys of strides, in the order in which the entries were created
	streams []streamEntry
	wanted  []trace.Addr // addresses to prefetch after the last access
	dropped func() bool  // decides at random whether to drop a prefetch; nil if no prefetch is dropped
}

// strideEntry is an entry of the reference prediction table (Baer and Chen, Supercomputing 1991).
type strideEntry struct {
	last   trace.Addr
	stride uint64 // difference between successive addresses, modulo 2^64
}

// streamEntry tracks the direction of the accesses within a page.
type streamEntry struct {
	page, last trace.Addr // page number and unit number of the last access
	down       bool
	confidence uint8 // number of successive moves in the same direction, at most minConfidence
}

const (
	strideEntries = 256
	streamEntries = 16
	streamPage    = 12 // binary logarithm of the page size that bounds a stream
	minConfidence = 2
)

func newPrefetcher(c hierarchy.Prefetch, line, shift uint, seed uint64) *prefetcher {
	c.Degree, c.Distance = max(c.Degree, 1), max(c.Distance, 1)
	p := &prefetcher{Prefetch: c, shift: shift, line: line, fresh: map[trace.Line]struct{}{}, pushed: map[trace.Line]struct{}{},
		strides: map[trace.Addr]*strideEntry{}}
	if c.Drop > 0 {
		draw := rand.New(rand.NewPCG(seed, 1))
		p.dropped = func() bool { return draw.Uint64N(100) < uint64(c.Drop) }
	}
	return p
}

// candidates returns the addresses to prefetch after an access. The parameter "missed" is true if
// the access missed. The parameter firstUse is true if the access is the first use of a prefetched
// unit. The result is valid until the next call.
func (p *prefetcher) candidates(addr, pc trace.Addr, missed, firstUse bool) []trace.Addr {
	p.wanted = p.wanted[:0]
	switch p.Kind {
	case hierarchy.NextLine:
		if missed {
			p.addCandidates(addr, 1<<p.shift)
		}
	case hierarchy.Tagged:
		if missed || firstUse {
			p.addCandidates(addr, 1<<p.shift)
		}
	case hierarchy.Always:
		p.addCandidates(addr, 1<<p.shift)
	case hierarchy.Adjacent:
		if missed {
			p.wanted = append(p.wanted, addr>>p.shift<<p.shift^1<<p.shift)
		}
	case hierarchy.Stride:
		p.stride(addr, pc)
	case hierarchy.Stream:
		p.stream(addr)
	case hierarchy.LoadForward:
		p.addCandidates(addr, 1<<p.shift)
		p.wanted = slices.DeleteFunc(p.wanted, func(a trace.Addr) bool { return a>>p.line != addr>>p.line })
	case hierarchy.SubBlock:
		p.addCandidates(addr, 1<<p.shift)
		for i, a := range p.wanted {
			p.wanted[i] = addr>>p.line<<p.line | a&(1<<p.line-1)
		}
	}
	return p.wanted
}

// addCandidates adds Degree addresses to the candidates, starting Distance strides after addr.
func (p *prefetcher) addCandidates(addr trace.Addr, stride uint64) {
	for k := range uint64(p.Degree) {
		p.wanted = append(p.wanted, addr+stride*(uint64(p.Distance)+k))
	}
}

func (p *prefetcher) stride(addr, pc trace.Addr) {
	e := p.strides[pc]
	if e == nil {
		if len(p.order) == strideEntries {
			delete(p.strides, p.order[0])
			p.order = append(p.order[:0], p.order[1:]...)
		}
		p.strides[pc], p.order = &strideEntry{last: addr}, append(p.order, pc)
		return
	}
	stride := addr - e.last
	again := stride == e.stride && stride != 0
	e.last, e.stride = addr, stride
	if !again {
		return
	}
	before := addr >> p.shift
	p.addCandidates(addr, stride)
	// prefetch each unit once, but not the accessed unit
	p.wanted = slices.DeleteFunc(p.wanted, func(a trace.Addr) bool {
		same := a>>p.shift == before || a>>p.shift == addr>>p.shift
		before = a >> p.shift
		return same
	})
}

func (p *prefetcher) stream(addr trace.Addr) {
	page, unit := addr>>streamPage, addr>>p.shift
	i := slices.IndexFunc(p.streams, func(e streamEntry) bool { return e.page == page })
	if i < 0 {
		if len(p.streams) == streamEntries {
			p.streams = append(p.streams[:0], p.streams[1:]...)
		}
		p.streams = append(p.streams, streamEntry{page: page, last: unit})
		return
	}
	e := p.streams[i]
	p.streams = append(append(p.streams[:i], p.streams[i+1:]...), e) // the most recently used entry is last
	now := &p.streams[len(p.streams)-1]
	if unit == e.last {
		return
	}
	down := unit < e.last
	now.last = unit
	switch {
	case e.confidence > 0 && down != e.down:
		now.down, now.confidence = down, 1
	case e.confidence < minConfidence:
		now.down, now.confidence = down, e.confidence+1
	}
	if now.confidence < minConfidence {
		return
	}
	stride := uint64(1) << p.shift
	if down {
		stride = -stride
	}
	p.addCandidates(addr, stride)
	p.wanted = slices.DeleteFunc(p.wanted, func(a trace.Addr) bool { return a>>streamPage != page })
}
