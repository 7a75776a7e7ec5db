package predict

import (
	"io"
	"slices"
	"sort"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// pass computes the results for one number of cores from one pass over the trace.
type pass struct {
	q         *Question
	cores     int
	threads   Threads
	simulator *simulate.Simulator
	timed     *timeCollector   // nil if no times are computed
	runner    *analysis.Runner // nil if there are no analyses
	windowed  *windowSampler   // nil if no windows are sampled
	own       *privatePass     // the second pass; nil if it has not begun or is not needed
	open      Source
	batch     *trace.Batch // the batch for the rows if there is no runner
	view      trace.Batch
	depths    []uint8

	references uint64
	byCore     []uint64
	used       []bool // by private range: whether a reference has accessed the range
	done       bool   // whether all rows of the threads have been read
	// whether more than mostDomains groups of cores share a cache; the stacks of these groups are
	// then not computed
	crowded bool
}

// mostDomains is the maximum number of groups of cores with a shared stack, in addition to the
// group of all cores.
const mostDomains = profile.MaxDomains - 1

func newPass(q *Question, cores int, base *timeCollector, open Source) (p *pass, err error) {
	o := q.Options
	o.Cores = cores
	p = &pass{q: q, cores: cores, open: open, byCore: make([]uint64, cores), used: make([]bool, len(q.Options.Private.Ranges))}
	p.simulator, err = simulate.New(q.Hierarchy.DataOnly(), simulate.Options{Seed: q.Seed, Protocol: q.Protocol, Cores: coresOf(cores), MemoryBytes: q.MemoryBytes})
	if err != nil {
		return nil, err
	}
	if q.Processor != nil {
		if base != nil && base.costs != nil {
			o.Order.Cycles = base.costs
		}
		p.timed = newTimed(cores, base, len(q.Hierarchy.Levels), func() *trace.Program { return p.threads.Header().Program })
	}
	if p.threads, err = open(o); err != nil {
		return nil, err
	}
	err = p.newWindowed()
	if err == nil {
		err = p.prepareAnalyses()
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// prepareAnalyses creates a runner for the analyses that the question needs.
func (p *pass) prepareAnalyses() (err error) {
	keep := p.q.Keep == p.cores
	p.Select(0)
	if !p.usesStacks() && !keep {
		p.batch = trace.NewBatch(0)
		return nil
	}
	spec := analysis.Spec{Analyses: analysis.Sharing}
	if p.cores == 1 {
		spec.Analyses = analysis.Locality
	}
	if spec.Sample = p.q.Sample; spec.Sample != nil && spec.Sample.KeepsLines() && p.cores > 1 {
		spec.Sample = byThread{spec.Sample}
	}
	if keep {
		spec = p.q.Spec
	}
	spec.LineBytes, spec.Domains, spec.Cores = linesOf(p.q.Hierarchy), nil, nil
	if p.cores > 1 {
		if spec.Domains = domainsOf(p.q.Hierarchy, p.cores); len(spec.Domains) > mostDomains {
			spec.Domains, p.crowded = nil, true
			if !keep {
				p.batch = trace.NewBatch(0)
				return nil
			}
		}
	}
	p.runner, err = analysis.NewRunner(spec, p)
	return err
}

// usesStacks reports whether SDCM is applied to the stacks of the analyses.
func (p *pass) usesStacks() bool { return p.q.Stacks && !p.divided() }

func (p *pass) close() {
	if c, ok := p.threads.(io.Closer); ok {
		c.Close()
	}
	p.own.close()
}

// Select selects the kinds of rows that the analyses need. Instruction fetches are omitted, because
// they access instruction caches.
func (p *pass) Select(kinds trace.Kinds) {
	kinds = (kinds | trace.DataKinds) &^ (1 << trace.Fetch)
	if p.timed != nil {
		kinds |= timedKinds
	}
	if p.windowed != nil {
		kinds |= blocksample.Kinds
	}
	p.threads.Select(kinds)
}

// Header returns the header of the synthesised trace.
func (p *pass) Header() trace.Header { return p.threads.Header() }

// Next reads the next rows of the threads, and simulates their accesses to the caches.
func (p *pass) Next(b *trace.Batch) error {
	if err := p.threads.Next(b); err != nil {
		return err
	}
	p.countReferences(b)
	if len(p.used) > 0 {
		p.markUsedRanges(b)
	}
	if p.windowed != nil {
		if err := p.sampleWindows(b, false); err != nil {
			return err
		}
	}
	if p.timed == nil {
		return p.simulator.Consume(b)
	}
	return p.simulate(b)
}

// countReferences counts the references of each core.
func (p *pass) countReferences(b *trace.Batch) {
	for i, k := range b.Kind {
		if !k.IsReference() {
			continue
		}
		p.references++
		if b.Thread == nil {
			p.byCore[0]++
		} else if t := b.Thread[i]; int(t) < len(p.byCore) {
			p.byCore[t]++
		}
	}
}

// lowBits is a mask for the address bits of the sequential run. The higher bits of private
// addresses contain the core's number.
const lowBits = 1<<48 - 1

// markUsedRanges records which private ranges the references in a batch access.
func (p *pass) markUsedRanges(b *trace.Batch) {
	ranges := p.q.Options.Private.Ranges
	for i, a := range b.Addr {
		if !b.Kind[i].IsReference() {
			continue
		}
		a &= lowBits
		if n := sort.Search(len(ranges), func(n int) bool { return ranges[n].High > a }); n < len(ranges) && a >= ranges[n].Low {
			p.used[n] = true
		}
	}
}

// simulate passes the rows of a batch to the simulator and to the time collector. It splits the batch
// at the beginnings and ends of regions.
func (p *pass) simulate(b *trace.Batch) error {
	for lo := 0; lo < b.Len(); {
		hi := lo + 1
		for hi < b.Len() && b.Kind[hi] != trace.ParallelBegin && b.Kind[hi] != trace.ParallelEnd {
			hi++
		}
		part := b.View(&p.view, lo, hi)
		if len(p.depths) < part.Len() {
			p.depths = make([]uint8, max(part.Len(), trace.DefaultRows))
		}
		before := p.simulator.FetchedBytes()
		if err := p.simulator.ConsumeDepths(part, p.depths); err != nil {
			return err
		}
		p.timed.consume(part, p.depths, p.simulator.FetchedBytes()-before)
		lo = hi
	}
	return nil
}

func (p *pass) step() (err error) {
	switch {
	case p.done:
		return p.stepPrivatePass()
	case p.runner != nil:
		err = p.runner.Step()
	default:
		err = p.Next(p.batch)
	}
	if p.done = err == io.EOF; p.done {
		return p.stepPrivatePass()
	}
	return err
}

func (p *pass) result() (Result, error) {
	counted := p.simulator.Result()
	r := Result{Cores: p.cores, References: p.references, ByCore: p.byCore, Header: p.threads.Header()}
	for i := range counted.Levels {
		r.Levels = append(r.Levels, simulated(&counted, i))
	}
	for _, n := range p.byCore {
		if n == 0 {
			r.Idle++
		}
	}
	r.Warnings = p.q.Hierarchy.SizeDoubts()
	if p.q.Processor != nil {
		_, assumed := costmodel.CompleteLatencies(p.q.Hierarchy, p.q.Processor)
		r.Warnings = append(r.Warnings, assumed...)
	}
	if p.own != nil && p.own.levels > 0 {
		p.own.replacePrivate(&r)
		r.Warnings = append(r.Warnings, "with this division, each private cache sees only the accesses of its core (Algorithm 1). Shared caches see the misses of private caches in a common order (Algorithm 2); these misses differ slightly from the misses listed for private caches")
	}
	if t, ok := unwrap(p.threads).(interface{ Report() multicore.Report }); ok {
		report := t.Report()
		if r.Report = &report; report.Regions == 0 {
			return r, ErrNoRegions
		}
		for _, doubt := range report.Doubts {
			r.Warnings = append(r.Warnings, hierarchy.Warning(doubt))
		}
	}
	if o := &p.q.Options; o.Order.Policy == interleave.ByTime && p.cores > 1 && (p.timed == nil || p.timed.weights == nil) {
		r.Warnings = append(r.Warnings, "the execution times of blocks are unknown, so every reference is assumed to take one cycle on each core: add --processor, and record blocks with their instructions")
	}
	if p.crowded {
		r.Warnings = append(r.Warnings, hierarchy.Warning("there are no SDCM results, because stacks are computed for at most "+strconv.Itoa(mostDomains)+" groups of cores that share a cache, and this hierarchy has more groups."))
	}
	if p.runner != nil {
		if err := p.addModelled(&r); err != nil {
			return r, err
		}
	}
	if err := p.addWindowed(&r); err != nil {
		return r, err
	}
	if p.timed != nil {
		if r.Untimed = p.timed.computeCosts(p.q, r.Header.Program); r.Untimed == "" {
			r.Time = p.timed.time(p.q)
		}
	}
	return r, nil
}

func simulated(r *simulate.Result, i int) Level {
	n, all := &r.Levels[i], float64(r.Levels[0].Run.Accesses())
	l := Level{
		Cache: n.Cache, Method: hierarchy.Simulated, Caches: n.Caches, Accesses: float64(n.Run.Accesses()), Hits: float64(n.Run.Hits()),
		Misses: float64(n.Run.Misses()), Coherence: float64(n.Run.CoherenceMisses),
	}
	l.setRates(all)
	for k := range n.Cores {
		c := &n.Cores[k]
		l.Cores = append(l.Cores, hierarchy.CoreLevel{
			Accesses: float64(c.Accesses()), Hits: float64(c.Hits()), Misses: float64(c.Misses()), Coherence: float64(c.CoherenceMisses),
		})
	}
	l.setMean(int(max(1, min(uint64(n.Cache.SharedBy), uint64(len(n.Cores))))))
	return l
}

// setRates computes the global and the local hit ratio. The parameter "all" is the number
// of accesses to the first level.
func (l *Level) setRates(all float64) {
	l.Global, l.Local = rate(l.Misses, all), rate(l.Misses, l.Accesses)
}

// setMean computes the mean local hit ratio of the caches that have accesses. The parameter
// sharedBy is the number of cores that share a cache.
func (l *Level) setMean(sharedBy int) {
	busy := 0
	l.Mean = 0
	for cores := range slices.Chunk(l.Cores, sharedBy) {
		var accesses, misses float64
		for _, c := range cores {
			accesses += c.Accesses
			misses += c.Misses
		}
		if accesses > 0 {
			busy++
			l.Mean += rate(misses, accesses)
		}
	}
	if l.Averaged = busy > 0; l.Averaged {
		l.Mean /= float64(busy)
	}
}

// sdcmMethod returns the variant of SDCM that the pass uses: with or without sampling.
func (p *pass) sdcmMethod() hierarchy.Method {
	if p.q.Sample != nil && p.q.Keep != p.cores {
		return hierarchy.SampledSDCM
	}
	return hierarchy.SDCM
}

// addModelled adds the results of SDCM to r. If the question requests the profile, addModelled also
// adds the profile.
func (p *pass) addModelled(r *Result) error {
	found := p.runner.Finish(profile.State{})
	if p.q.Keep == p.cores {
		found.Predicted = &profile.Predicted{Cores: uint32(p.cores), How: p.q.describeThreads()}
		r.Profile = found
	}
	if !p.usesStacks() || p.crowded {
		return nil
	}
	answer, _, err := hierarchy.NewAsker(found).Predict(p.q.Hierarchy, nil)
	if err != nil {
		return err
	}
	above := 0.0
	for i := range answer.Levels {
		from := &answer.Levels[i]
		l := Level{Cache: from.Cache, Method: p.sdcmMethod(), Caches: r.Levels[i].Caches, Misses: from.SDCMMisses}
		if from.Cache.Full() { // the miss count of a fully associative cache is exact
			l.Misses = from.Misses
		}
		if i == 0 {
			above = from.Accesses
		} else {
			above = r.Modelled[i-1].Misses
		}
		l.Accesses, l.Misses = above, min(l.Misses, above)
		l.Hits = l.Accesses - l.Misses
		l.setRates(answer.Levels[0].Accesses)
		if l.Averaged = l.Caches == 1 && l.Accesses > 0; l.Averaged {
			l.Mean = l.Local
		}
		l.setSampleBounds(found, answer.Levels[0].Accesses)
		r.Modelled = append(r.Modelled, l)
	}
	r.Warnings = append(r.Warnings, "SDCM assigns lines to sets at random, and treats every level as if it saw all accesses; a real lower level sees only the misses of the level above")
	return nil
}
