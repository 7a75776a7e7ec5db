package diagnose

import (
	"cmp"
	"math/bits"
	"path"
	"slices"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// imbalance adds findings about the source locations at which threads wait for the slowest thread.
func (r *run) imbalance() {
	of := r.cost.replay
	if of == nil || r.cost.program == nil {
		return
	}
	type group struct {
		cycles, most float64
		worst        waiting
		times        uint64
	}
	type region struct{ fork, divides uint32 }
	byFork := map[region]*group{}
	var order []region
	for _, w := range of.idle {
		if w.dynamic {
			continue
		}
		of := region{w.fork, w.divides}
		g := byFork[of]
		if g == nil {
			g = &group{}
			byFork[of] = g
			order = append(order, of)
		}
		g.times++
		g.cycles += w.cycles
		if w.cycles > g.most {
			g.most, g.worst = w.cycles, w
		}
	}
	for _, of := range order {
		g := byFork[of]
		if g.cycles < Least*r.out.Cycles {
			continue
		}
		at := r.placeOfBlock(g.worst.block)
		if line := max(r.dividedAt(of.divides, at), r.forkedAt(of.fork, g.worst.block, at)); line > 0 {
			at = &place{function: at.function, file: at.file, line: line}
		} else if line := r.outermost(g.worst.block, at.file); line > 0 {
			at.line = line
		}
		r.add(at, Finding{Kind: Imbalance, Cost: g.cycles, Saved: g.cycles, Tried: true,
			Why:  "the work of this parallel region is divided unevenly: the other threads spend " + percent2(share(g.cycles, r.out.Cycles)) + " of all cycles waiting for the slowest thread",
			Fix:  "divide the work by its cost: schedule(dynamic) or schedule(static, 1) for the loop, or use parts of equal work instead of equal length",
			How:  "The cycles of all threads between two synchronisation points were added up and divided evenly among the threads.",
			More: "threads"})
	}
}

// placeOfBlock returns the source location of a block.
func (r *run) placeOfBlock(b uint32) *place {
	at := &place{}
	if int(b) >= len(r.cost.program.Blocks) {
		return at
	}
	k := &r.cost.program.Blocks[b]
	at.file, at.line = k.File, k.FirstLine
	if isLibrary(k.File) && int64(k.Function) < int64(len(r.cost.program.Functions)) {
		at.file, at.line = r.sourceOfBlock(b)
	}
	if k.Function != trace.NoFunction {
		at.function = r.Readable(r.cost.program.Functions[k.Function].Name)
	}
	return at
}

// outermost returns the first line of the outermost loop around a block, or 0 if there is no loop.
// The outermost loop divides the work among the threads.
func (r *run) outermost(b uint32, file string) (line uint32) {
	if int(b) >= len(r.cost.program.Blocks) {
		return 0
	}
	last := uint32(0)
	for head := r.cost.program.Blocks[b].Loop; head > 0; head = r.outer(head) {
		if of := r.firstLine(head, file); of > 0 {
			line, last = of, head
		}
	}
	// use the first line in the same file, because a body may begin with code from an inlined
	// function
	for n := range r.cost.program.Blocks {
		if k := &r.cost.program.Blocks[n]; last > 0 && k.Loop == last && slices.Contains(k.Successors, last-1) && k.FirstLine == k.LastLine && path.Base(k.File) == path.Base(file) && k.FirstLine > line {
			line = k.FirstLine
		}
	}
	return line
}

// forkedAt returns the line of the call that forks, or 0 if it is unknown. It returns the first
// line of the region instead if that line is between the call and the code of the slowest thread.
// It also returns the first line of the region if both are before the call, because Fortran
// compilers locate the call at a declaration or in the region.
func (r *run) forkedAt(site, slowest uint32, at *place) uint32 {
	p := r.cost.program
	if int64(site) >= int64(len(p.Sites)) || p.Sites[site].Kind != trace.ParallelBegin {
		return 0
	}
	line := p.Sites[site].Place.Line
	if of := p.Blocks[slowest].Function; int64(of) < int64(len(p.Functions)) {
		if first := &p.Blocks[p.Functions[of].First]; line > 0 && first.File == at.file && first.FirstLine > 0 && (first.FirstLine > line && first.FirstLine <= at.line || first.FirstLine < line && at.line < line) {
			return first.FirstLine
		}
	}
	return line
}

// dividedAt returns the line of the loop around a source location that was divided among threads,
// or 0 if it is unknown.
func (r *run) dividedAt(site uint32, at *place) uint32 {
	p := r.cost.program
	if int64(site) >= int64(len(p.Sites)) || p.Sites[site].Kind != trace.LoopBegin {
		return 0
	}
	if of := p.Sites[site].Place; of.File == at.file && of.Line <= at.line {
		return of.Line
	}
	return 0
}

// minimum number of pages of data for a finding about another socket's memory
const leastFarPages = 32

// sockets adds findings about data that is in the memory of one socket, because a thread of that
// socket stored to it first, although threads of other sockets use it.
func (r *run) sockets() {
	of := r.cost.replay
	if of == nil || of.pages == nil {
		return
	}
	type group struct {
		at         *place
		far, moved float64
		pages      int
		owners     uint64
		firsts     uint64 // a bit for each thread that stores first to a page
		user       map[int32]float64
	}
	bySite := map[*place]*group{}
	var order []*group
	addresses := make([]trace.Addr, 0, len(of.pages))
	for n := range of.pages {
		addresses = append(addresses, n)
	}
	slices.Sort(addresses)
	for _, n := range addresses {
		p := of.pages[n]
		if p.owner == p.first || p.far+p.moved == 0 {
			continue
		}
		at := r.cost.bySite[&r.p.Sites.Code[p.firstSite]]
		if at == nil {
			continue
		}
		g := bySite[at]
		if g == nil {
			g = &group{at: at, user: map[int32]float64{}}
			bySite[at] = g
			order = append(order, g)
		}
		g.far += p.far
		g.moved += p.moved
		g.pages++
		g.owners |= 1 << p.owner
		g.firsts |= 1 << p.first
		g.user[p.user] += p.far + p.moved
	}
	private := uint64(0)
	for _, l := range r.Machine.Levels {
		if l.SharedBy <= 1 {
			private = max(private, l.SizeBytes)
		}
	}
	for _, g := range order {
		most := g.far
		if uint64(g.pages)<<pageShift > private*uint64(of.team) {
			// the data does not fit in the threads' private caches, so each run of the loop fetches
			// it again
			most += g.moved
		}
		if g.pages < leastFarPages || most/2 < Least*r.out.Cycles {
			continue
		}
		var user int32
		worst := -1.0
		for i, cycles := range g.user {
			if cycles > worst || cycles == worst && i < user {
				user, worst = i, cycles
			}
		}
		where := ""
		if at := r.cost.bySite[&r.p.Sites.Code[user]]; at != nil && at.source() != "" {
			where = ", mostly at " + at.source()
		}
		size := report.Bytes(uint64(g.pages) << pageShift).Human()
		why := "one thread stores to " + size + " first, so the operating system places these pages in the memory of its socket; other threads use these pages" + where
		fix := "let each thread initialise the part of the data that it uses later: make this loop parallel, with the same schedule(static) as the loop that uses the data"
		if bits.OnesCount64(g.firsts) > 1 {
			why = "the operating system places a page in the memory of the socket whose thread stores to the page first; for " + size + ", another thread uses the page more" + where
			fix = "divide this loop among the threads in the same way as the loop that uses the data: over the same dimension, with the same schedule(static)"
		}
		var stores []int
		for _, i := range g.at.sites {
			if r.p.Sites.Code[i].Kind != trace.Load {
				stores = append(stores, i)
			}
		}
		r.add(g.at, Finding{Kind: NUMA, Data: r.dataOf(stores), Cost: most, Saved: min(most/2, mostGuessed*r.out.Cycles), Least: 0, Most: most,
			Why:  why,
			Fix:  fix,
			How:  "Not tried. The lower bound assumes that all threads run on one socket. The upper bound assumes that the other threads run on other sockets, for which an access to this memory takes 70 % longer.",
			More: "communication --by object"})
	}
}

// byWait returns the source locations in descending order of their waits.
func (r *run) byWait() []*place {
	list := slices.Clone(r.places)
	slices.SortStableFunc(list, func(a, b *place) int { return cmp.Compare(b.wait+b.pages+b.split, a.wait+a.pages+a.split) })
	return list
}
