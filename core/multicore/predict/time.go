package predict

import (
	"slices"

	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/trace"
)

// Time contains the predicted run time on several cores, in cycles of the processor.
//
// Outside parallel regions, only core 0 works. A region consists of phases between barriers. Each
// phase takes as long as its busiest core. A region takes as long as its phases together, but at
// least as long as memory needs to deliver the lines that all cores fetch in the region. The total
// time of all cores, Cores × Cycles, is exactly the time of a run on one core plus these losses:
//
//	Serial     time of idle cores while core 0 works alone (Amdahl)
//	Imbalance  time during which cores wait at the ends of phases
//	Copied     time for work in regions that is repeated on every core
//	Caches     additional time of loads, compared with a run on one core; negative if loads take less time
//	Bandwidth  time during which memory transfers lines
//
// The cycles of each phase are first computed from the cycles of blocks in a run on one core, and
// added up for each region. The sum is then multiplied by the ratio between the cycles of the
// region's blocks in the run on several cores and in the run on one core.
type Time struct {
	Cycles  float64
	Seconds float64 // 0 if the clock frequency of the processor is unknown
	SpeedUp float64 // cycles of a run on one core, divided by Cycles
	// Serial, Imbalance, Copied, Caches and Bandwidth are losses of time, as shares of Cores ×
	// Cycles. The losses and Efficiency add up to 1.
	Serial, Imbalance, Copied, Caches, Bandwidth float64
	Efficiency                                   float64 // SpeedUp / Cores
	Limit                                        Limit
	Cores                                        []float64 // cycles in which each core works, without waiting for other cores
	Missing                                      []pipeline.Missing
}

// Limit is the cause of the largest loss of time.
type Limit string

const (
	NoLimit        Limit = "none"
	SerialLimit    Limit = "serial work"
	ImbalanceLimit Limit = "imbalance"
	CopiedLimit    Limit = "copied work"
	CachesLimit    Limit = "caches"
	BandwidthLimit Limit = "bandwidth"
	unlimited            = 0.05
)

// NotModelled returns descriptions of the effects that predicted times do not include.
func NotModelled() []string {
	return append(pipeline.NotModelled(), "the cost of forks, joins, barriers and locks, and the time spent waiting for locks",
		"clock frequencies that depend on the number of active cores", "transfers of lines between cores, except for the cache misses that they cause")
}

// timedKinds contains the kinds of events from which run times are computed.
const timedKinds = trace.Kinds(1<<trace.BlockEntry | 1<<trace.ParallelBegin | 1<<trace.ParallelEnd | 1<<trace.Barrier)

// mostRegions is the maximum number of regions that are distinguished. All further regions are
// merged into the last region.
const mostRegions = 64

// timeCollector collects the counts from which the run time in a pass is computed.
type timeCollector struct {
	cores, levels int
	program       func() *trace.Program // returns the part of the program that is known so far
	base          *timeCollector        // the counts of the pass with one core; nil in that pass
	weights       []float64             // cycles per execution of each block with one core; nil if unknown

	blocks, sites int        // numbers of blocks and sites in the program so far
	served        [][]uint64 // by site: number of references that each level served, memory last
	strides       []stride   // strides by site; only in the pass with one core
	serial        []uint64   // by block: number of executions outside of regions
	visits        [][]uint64 // by core and block: number of executions in regions
	serialBytes   uint64     // number of bytes fetched from memory outside regions
	regions       []*region
	byPlace       map[uint32]*region // the regions by the site of their fork
	now           *region            // nil outside of regions
	depth         int                // nesting depth of regions at the current row
	clocks        []float64          // cycles of each core in this phase
	barriers      []uint64           // number of barriers that each core has passed
	phase         uint64

	costs   []float64 // cycles per execution of each block with this number of cores
	missing []pipeline.Missing
}

// stride counts how often the references of a site repeat the previous stride of this site.
type stride struct {
	last, step         trace.Addr
	regular, irregular uint64
}

// region contains totals over all executions of the region at one fork.
type region struct {
	visits   []uint64 // number of executions of each block, on all cores
	bytes    uint64   // number of bytes fetched from memory
	critical float64  // cycles of the busiest core in each phase, summed over phases
}

func newTimed(cores int, base *timeCollector, levels int, program func() *trace.Program) *timeCollector {
	t := &timeCollector{
		program: program, cores: cores, base: base, levels: levels, byPlace: map[uint32]*region{},
		visits: make([][]uint64, cores), clocks: make([]float64, cores), barriers: make([]uint64, cores),
	}
	if base != nil {
		t.weights = base.costs
	}
	return t
}

func (t *timeCollector) knows(p *trace.Program) {
	if p == nil || len(p.Blocks) == t.blocks && len(p.Sites) == t.sites {
		return
	}
	t.blocks, t.sites = len(p.Blocks), len(p.Sites)
	t.serial = grown(t.serial, t.blocks)
	for k := range t.visits {
		t.visits[k] = grown(t.visits[k], t.blocks)
	}
	for _, r := range t.regions {
		r.visits = grown(r.visits, t.blocks)
	}
	for len(t.served) < t.sites {
		t.served = append(t.served, nil)
	}
	if t.base == nil {
		t.strides = append(t.strides, make([]stride, t.sites-len(t.strides))...)
	}
}

func grown(list []uint64, to int) []uint64 {
	return append(list, make([]uint64, max(0, to-len(list)))...)
}

// consume counts the rows of a batch. All rows must be in the same region, or all rows must be outside
// regions. Only the first row may be the beginning or the end of a region.
func (t *timeCollector) consume(b *trace.Batch, depths []uint8, fetched uint64) {
	for i, kind := range b.Kind {
		core := uint32(0)
		if b.Thread != nil {
			core = b.Thread[i]
		}
		if int(core) >= t.cores {
			continue // the simulator reports the error
		}
		site := ^uint32(0)
		if b.Site != nil {
			site = b.Site[i]
		}
		switch {
		case kind.IsReference():
			if int64(site) >= int64(t.sites) && b.Site != nil {
				t.knows(t.program())
			}
			if int64(site) < int64(t.sites) {
				t.countReference(site, depths[i], b.Addr[i])
			}
		case kind == trace.BlockEntry:
			if int64(site) >= int64(t.blocks) {
				t.knows(t.program())
			}
			if int64(site) < int64(t.blocks) {
				t.enter(core, site)
			}
		case kind == trace.ParallelBegin:
			t.begin(site)
		case kind == trace.ParallelEnd:
			t.end()
		case kind == trace.Barrier:
			t.leaveBarrier(core)
		}
	}
	if t.now != nil {
		t.now.bytes += fetched
	} else {
		t.serialBytes += fetched
	}
}

// countReference counts a reference for the level that served it.
func (t *timeCollector) countReference(site uint32, depth uint8, addr trace.Addr) {
	of := t.served[site]
	if of == nil {
		of = make([]uint64, t.levels+1)
		t.served[site] = of
	}
	of[depth]++
	if t.base != nil {
		return
	}
	s := &t.strides[site]
	step := addr - s.last
	if step == s.step || step == 0 {
		s.regular++
	} else {
		s.irregular++
	}
	s.last, s.step = addr, step
}

func (t *timeCollector) enter(core, block uint32) {
	if t.now == nil {
		t.serial[block]++
		return
	}
	t.visits[core][block]++
	t.now.visits[block]++
	if int(block) < len(t.weights) {
		t.clocks[core] += t.weights[block]
	}
}

func (t *timeCollector) begin(place uint32) {
	if t.depth++; t.depth > 1 {
		return // a nested region is executed by one core
	}
	t.now = t.byPlace[place]
	if t.now == nil && len(t.regions) < mostRegions {
		t.now = &region{visits: make([]uint64, t.blocks)}
		t.regions = append(t.regions, t.now)
	} else if t.now == nil {
		t.now = t.regions[mostRegions-1]
	}
	t.byPlace[place] = t.now
	clear(t.barriers)
	t.phase = 0
}

func (t *timeCollector) end() {
	if t.depth == 0 {
		return
	}
	if t.depth--; t.depth == 0 {
		t.endPhase()
		t.now = nil
	}
}

// leaveBarrier records that a core has left a barrier. A core can leave a barrier only when all cores
// have reached it, so the first core that leaves ends the phase.
func (t *timeCollector) leaveBarrier(core uint32) {
	if t.now == nil {
		return
	}
	if t.barriers[core]++; t.barriers[core] > t.phase {
		t.phase = t.barriers[core]
		t.endPhase()
	}
}

func (t *timeCollector) endPhase() {
	t.now.critical += slices.Max(t.clocks)
	clear(t.clocks)
}

// computeCosts computes the cycles of each block with this number of cores. If this is impossible, it
// returns the reason as a sentence.
func (t *timeCollector) computeCosts(q *Question, p *trace.Program) (problem string) {
	if p == nil || len(p.Blocks) == 0 {
		return "The trace contains no blocks, so times cannot be computed: compile the program with \"stackglass cc -- clang …\", which records blocks."
	}
	t.knows(p)
	run := pipeline.Run{Program: p, Visits: make([]float64, t.blocks)}
	told := false
	for b := range run.Visits {
		n := t.serial[b]
		for _, r := range t.regions {
			n += r.visits[b]
		}
		run.Visits[b] = float64(n)
		told = told || n > 0 && len(p.Blocks[b].Instrs) > 0
	}
	if !told {
		return "The trace does not contain the instructions of blocks, so times cannot be computed: record the instructions."
	}
	latency := t.latencies(q)
	run.LoadLatency = func(block, site uint32) float64 {
		if at := int(p.Blocks[block].FirstSite+site) - 1; site > 0 && at < len(latency) {
			return latency[at]
		}
		return 0
	}
	if bytes := q.Hierarchy.Memory.BytesPerCycle; bytes > 0 {
		last := q.Hierarchy.Levels[t.levels-1]
		run.Transfers = make([]pipeline.Transfer, t.blocks)
		t.addSequential(p, run.Transfers, float64(last.LineBytes)/bytes)
	}
	made, err := q.Processor.Runtime(run)
	if err != nil {
		return "Times cannot be computed: " + err.Error() + "."
	}
	t.missing, t.costs = made.Missing, make([]float64, t.blocks)
	for b, n := range run.Visits {
		if n > 0 {
			t.costs[b] = made.Blocks[b].Cycles / n
		}
	}
	return ""
}

// latencies returns the expected latency E(λ) of each site, or 0 if it is unknown.
func (t *timeCollector) latencies(q *Question) []float64 {
	list, hits := make([]float64, t.sites), make([]float64, t.levels)
	h, _ := costmodel.CompleteLatencies(q.Hierarchy, q.Processor)
	for site, of := range t.served {
		var all, upto uint64
		for _, n := range of {
			all += n
		}
		if all == 0 {
			continue
		}
		for k := range hits {
			upto += of[k]
			hits[k] = float64(upto) / float64(all)
		}
		if latency, known, err := memory.AverageLatency(h, hits); err == nil && known {
			list[site] = latency
		}
	}
	return list
}

// addSequential adds the cycles that each block takes to fetch lines from memory in sequence.
func (t *timeCollector) addSequential(p *trace.Program, to []pipeline.Transfer, lineCycles float64) {
	base := t
	if t.base != nil {
		base = t.base
	}
	for b := range p.Blocks {
		k := &p.Blocks[b]
		for s := int(k.FirstSite); s < min(int(k.FirstSite+k.Sites), t.sites, len(base.strides)); s++ {
			of := &base.strides[s]
			if t.served[s] == nil || of.regular == 0 {
				continue
			}
			to[b].Cycles += lineCycles * float64(t.served[s][t.levels]) * float64(of.regular) / float64(of.regular+of.irregular)
		}
	}
}

// totalCycles returns the total cycles over all executions of all blocks.
func totalCycles(visits []uint64, cycles []float64) (sum float64) {
	for b, n := range visits {
		if n > 0 && b < len(cycles) {
			sum += float64(n) * cycles[b]
		}
	}
	return sum
}

func (t *timeCollector) time(q *Question) *Time {
	one := t
	if t.base != nil {
		one = t.base
	}
	memory := func(bytes uint64) float64 {
		if perCycle := q.Hierarchy.Memory.BytesPerCycle; perCycle > 0 {
			return float64(bytes) / perCycle
		}
		return 0
	}
	n := float64(t.cores)
	out := &Time{Missing: t.missing}
	alone, aloneBefore := totalCycles(t.serial, t.costs), totalCycles(t.serial, one.costs)
	serial := max(alone, memory(t.serialBytes))
	out.Cycles, out.Serial = serial, (n-1)*serial
	out.Bandwidth = serial - alone
	out.Caches = alone - aloneBefore
	for _, r := range t.regions {
		before, now := totalCycles(r.visits, one.costs), totalCycles(r.visits, t.costs)
		critical := now
		if t.base != nil && before > 0 {
			critical = r.critical * now / before
		}
		cycles := max(critical, memory(r.bytes))
		out.Cycles += cycles
		out.Imbalance += n*critical - now
		out.Bandwidth += n * (cycles - critical)
		out.Caches += now - before
		out.Copied += before
	}
	first := one.oneCore(memory)
	out.Copied -= first.regions
	out.Bandwidth -= first.bandwidth
	out.finish(first.cycles, n, q)
	for k := range t.visits {
		own := totalCycles(t.visits[k], t.costs)
		if k == 0 {
			own += alone
		}
		out.Cores = append(out.Cores, own)
	}
	return out
}

// oneCore contains the times of the pass with one core.
type oneCore struct{ cycles, regions, bandwidth float64 }

func (t *timeCollector) oneCore(memory func(uint64) float64) (one oneCore) {
	alone := totalCycles(t.serial, t.costs)
	one.cycles = max(alone, memory(t.serialBytes))
	one.bandwidth = one.cycles - alone
	for _, r := range t.regions {
		own := totalCycles(r.visits, t.costs)
		cycles := max(own, memory(r.bytes))
		one.regions += own
		one.cycles += cycles
		one.bandwidth += cycles - own
	}
	return one
}

// finish converts the losses to shares of the total time of all cores, and sets the field Limit.
func (out *Time) finish(one, cores float64, q *Question) {
	if q.Processor.ClockGHz > 0 {
		out.Seconds = out.Cycles / (q.Processor.ClockGHz * 1e9)
	}
	out.Limit, out.SpeedUp, out.Efficiency = NoLimit, 1, 1/cores
	if out.Cycles <= 0 {
		return
	}
	out.SpeedUp = one / out.Cycles
	out.Efficiency = out.SpeedUp / cores
	most := unlimited
	for _, lost := range []struct {
		cycles *float64
		limit  Limit
	}{
		{&out.Serial, SerialLimit}, {&out.Imbalance, ImbalanceLimit}, {&out.Copied, CopiedLimit}, {&out.Caches, CachesLimit}, {&out.Bandwidth, BandwidthLimit},
	} {
		if *lost.cycles /= cores * out.Cycles; *lost.cycles > most {
			most, out.Limit = *lost.cycles, lost.limit
		}
	}
}
