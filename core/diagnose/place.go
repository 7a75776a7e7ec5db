package diagnose

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// tlb simulates the two levels of a core's TLB.
type tlb struct {
	first  *recent
	second *lru[uint64]
}

func newTLB() tlb { return tlb{&recent{}, newLRU[uint64](secondPages, secondPageWays)} }

// use translates an address of a page for a site. For each site, it counts the translations that
// are not in the first level. The parameter second contains the numbers of translations from the
// second level, and the parameter walks contains the numbers of page walks.
func (t *tlb) use(page uint64, site int32, second, walks []float64) {
	switch first, in := t.first.use(page), t.second.use(page, page+1); {
	case first:
	case in:
		second[site]++
	default:
		walks[site]++
	}
}

// visit is an access to a cache line in a replay of several threads.
type visit struct {
	at     trace.Line
	line   uint32 // the index of the line in counts.lines
	site   int32
	thread uint8
	store  bool
	missed bool // the last level missed
	lost   bool // another core had invalidated the line
}

// placer records which threads use which pages, and simulates the TLBs, in a replay of several
// threads. The order in which threads run does not depend on the placer's results, so the placer
// runs in its own goroutine.
type placer struct {
	*counts
	shift, pageShift uint
	remote           []float64 // extra cycles for another socket's memory, by site
	second, walks    []float64 // translations, by site
	cores            [mostCores]struct {
		tlb    tlb
		latest uint64 // the most recently used page, plus one
	}
	placed []placed // by index of the line

	_ gap

	next       []visit // the most recently added visits
	full, free chan []visit
	reached    chan struct{} // receives a value after all visits so far, see translations
	done       chan struct{}
}

// placed describes a cache line.
type placed struct {
	seen uint64 // the cores that have fetched the line; a bit for each core
	page uint32 // 1 + the number of the page in counts.numbered; 0 if unknown
}

// visitsPassed is the number of visits that are passed to the placer's goroutine at a time.
const visitsPassed = 1 << 12

func newPlacer(c *counts, shift, pageShift uint) *placer {
	n := len(c.sites)
	return &placer{counts: c, shift: shift, pageShift: pageShift, remote: make([]float64, n), second: bySite[float64](n), walks: bySite[float64](n)}
}

// start starts the goroutine. The caller must call finish.
func (p *placer) start() {
	const waiting = 16
	p.full, p.free, p.done = make(chan []visit, waiting), make(chan []visit, waiting+1), make(chan struct{})
	p.reached = make(chan struct{})
	p.next = make([]visit, 0, visitsPassed)
	for range waiting {
		p.free <- make([]visit, 0, visitsPassed)
	}
	go func() {
		for visits := range p.full {
			if visits == nil {
				p.reached <- struct{}{}
				continue
			}
			for i := range visits {
				p.place(&visits[i])
			}
			p.free <- visits[:0]
		}
		close(p.done)
	}()
}

// add processes a visit, now or later.
func (p *placer) add(v visit) {
	if p.next = append(p.next, v); len(p.next) == visitsPassed {
		p.full <- p.next
		p.next = <-p.free
	}
}

// translations returns the numbers of translations of the visits so far: from the second level of
// the TLB, and from the page table.
func (p *placer) translations() (second, walks []float64) {
	p.full <- p.next
	p.next = <-p.free
	p.full <- nil
	<-p.reached
	return slices.Clone(p.second), slices.Clone(p.walks)
}

// finish processes the visits that have not been processed yet, and ends the goroutine.
func (p *placer) finish() {
	p.full <- p.next
	close(p.full)
	<-p.done
}

// place processes a visit.
func (p *placer) place(v *visit) {
	k := &p.cores[v.thread]
	address := v.at << p.shift >> p.pageShift
	if k.latest != address+1 {
		if k.latest == 0 {
			k.tlb = newTLB()
		}
		k.latest = address + 1
		k.tlb.use(address, v.site, p.second, p.walks)
	}
	for int(v.line) >= len(p.placed) {
		p.placed = append(p.placed, placed{})
	}
	of := &p.placed[v.line]
	if of.page == 0 {
		address := v.at << p.shift >> pageShift
		at := p.pages[address]
		if at == nil {
			if !v.store {
				return
			}
			at = &page{number: uint32(len(p.numbered)) + 1, first: v.thread, firstSite: v.site, owner: v.thread, user: v.site}
			p.pages[address], p.numbered = at, append(p.numbered, at)
		}
		of.page = at.number
	}
	at := p.numbered[of.page-1]
	at.shared = at.shared || at.first != v.thread
	switch {
	case !at.shared: // the thread is filling the page
	case at.owner == v.thread:
		at.lead++
		at.user = v.site
	case at.lead == 0:
		at.owner, at.lead, at.user = v.thread, 1, v.site
	default:
		at.lead--
	}
	if at.first == v.thread {
		return
	}
	if v.missed {
		at.far += p.remote[v.site]
	} else if !v.lost && of.seen&(1<<v.thread) == 0 {
		at.moved += p.remote[v.site]
	}
	of.seen |= 1 << v.thread
}
