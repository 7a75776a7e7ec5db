package costmodel

import (
	"cmp"
	"errors"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// siteCosts contains the costs of the run's sites in a hierarchy.
type siteCosts struct {
	machine string // the hierarchy for which the costs were computed
	ranker  *attribution.Ranker
	known   bool
	walks   pageWalks
	sites   map[uint32]*siteCost // keyed by site number; sites without references are omitted
	notes   []string
}

// siteCost is the cost of a site's references.
type siteCost struct {
	references float64                // in the whole run
	latency    float64                // mean latency E(λ), in cycles
	delay      float64                // mean latency minus the latency of a hit in the first level, in cycles
	near       [nearDistances]float64 // share of the accesses at each stack distance below nearDistances
	crossing   float64                // share of the references that touch two lines
	misses     pipeline.Misses        // misses per reference, excluding references that follow a stride
	transfers  pipeline.Transfer      // transfer of sequential lines in the whole run
}

// nearDistances is the number of stack distances for which a siteCost contains the share of
// accesses.
const nearDistances = 8

// fillWait returns how many cycles, on average, a load waits for a line that an earlier load in the
// same iteration fetches. Both loads must access the same structure. If the stack distance of the
// load is at most the number of references since the earlier load, the load is assumed to access
// the same line as the earlier load. In this case, either the earlier load or one of these
// references made the last access to the line.
func fillWait(load, fetching *siteCost, between int) float64 {
	if load == nil || fetching == nil {
		return 0
	}
	share := 0.0
	for _, n := range load.near[:min(between+1, nearDistances)] {
		share += n
	}
	return share * fetching.delay
}

// costOf returns the cost of a site of a block. The site is given by its number in the block, as in
// trace.Instr. If this number is 0, the result is nil.
func (r *siteCosts) costOf(p *trace.Program, block, number uint32) *siteCost {
	if number == 0 {
		return nil
	}
	return r.sites[p.Blocks[block].FirstSite+number-1]
}

// setCostFunctions sets the functions of a pipeline.Run that return the costs of references.
func (r *siteCosts) setCostFunctions(run *pipeline.Run, measured []uint64) {
	of := func(block, number uint32) siteCost {
		if s := r.costOf(run.Program, block, number); s != nil {
			return *s
		}
		return siteCost{}
	}
	run.LoadLatency = func(block, number uint32) float64 { return of(block, number).latency }
	run.Crossing = func(block, number uint32) float64 { return of(block, number).crossing }
	run.Misses = func(block, number uint32) pipeline.Misses { return of(block, number).misses }
	run.FillWait = func(load, fetching pipeline.Access, between int) float64 {
		return fillWait(r.costOf(run.Program, uint32(load.Block), load.Site), r.costOf(run.Program, uint32(fetching.Block), fetching.Site), between)
	}
	run.Transfers = r.transferCosts(run.Program, run.Visits, measured)
}

// machine is a hierarchy with transfer costs, as in processor descriptions: the cycles for the
// transfer of a line from each level and (in the last element) from memory. The number 0 means that
// the transfer cost is unknown.
type machine struct {
	h                                hierarchy.Hierarchy
	read, written, scattered, stored []float64
	// mean cycles of waiting for a page walk: of a first-level miss that no prefetcher fetches, and of
	// every reference
	missWalk, anyWalk float64
}

// machineFor converts the hierarchy of a question to a machine.
func machineFor(h hierarchy.Hierarchy) (m machine) {
	m.h = h
	add := func(bytesPerCycle float64) {
		cycles := 0.0
		if bytesPerCycle > 0 {
			cycles = hierarchy.DefaultLineBytes / bytesPerCycle
		}
		m.read, m.written = append(m.read, cycles), append(m.written, cycles)
		m.scattered, m.stored = append(m.scattered, 0), append(m.stored, 0)
	}
	for _, l := range h.Levels {
		add(l.BytesPerCycle)
	}
	add(h.Memory.BytesPerCycle)
	return m
}

// describedMachine returns the machine of a processor's description. If the last level of the
// description is not memory, the returned machine has no caches.
func describedMachine(p *pipeline.Processor) (m machine) {
	for _, l := range p.Levels {
		switch {
		case l.SizeBytes > 0:
			m.h.Levels = append(m.h.Levels, hierarchy.Cache{Name: l.Name, SizeBytes: l.SizeBytes, Ways: l.Ways, LineBytes: hierarchy.DefaultLineBytes,
				LatencyCycles: l.LatencyCycles, Inclusion: hierarchy.NonInclusive})
		case len(m.h.Levels) == 0 || m.h.Memory.LatencyCycles > 0:
			return machine{}
		default:
			m.h.Memory.LatencyCycles = l.LatencyCycles
		}
		m.read, m.written = append(m.read, l.ReadCycles), append(m.written, l.WrittenCycles)
		m.scattered, m.stored = append(m.scattered, l.ScatteredCycles), append(m.stored, cmp.Or(l.StoredCycles, l.ScatteredCycles))
	}
	if m.h.Memory.LatencyCycles == 0 {
		return machine{}
	}
	return m
}

// updateCosts computes the costs of the run's sites on a machine, unless they are already known for
// the given key.
func (m *Models) updateCosts(of machine, key string) {
	var assumed []hierarchy.Warning
	if of.h, assumed = CompleteLatencies(of.h, m.processor); len(assumed) > 0 {
		key += "\n" + m.processor.Name
	}
	if m.memory.machine == key && (m.memory.known || m.memory.notes != nil) {
		return
	}
	ranker := m.memory.ranker
	m.memory = siteCosts{machine: key, ranker: ranker}
	unknown := func(why string) {
		m.memory.notes = []string{"Every load is assumed to hit in the processor's first level: " + why + "."}
	}
	if m.run == nil || m.profile.Sites == nil {
		unknown("without a trace, it is unknown in which levels loads hit; open a trace of the program to use the latencies of the caches")
		return
	}
	if len(of.h.Levels) == 0 {
		m.memory.notes = []string{answers.NoHierarchy}
		return
	}
	if ranker == nil {
		var ok bool
		if ranker, ok = attribution.New(m.profile); !ok {
			unknown("the profile does not say which source locations miss")
			return
		}
		m.memory.ranker = ranker
	}
	levels, warnings, err := ranker.Attribute(of.h)
	if err != nil {
		unknown(err.Error())
		return
	}
	prefetched := m.prefetchedShares(of.h)
	m.memory.walks = m.pageWalks(of.h, levels[0].Sites, prefetched[0])
	of.missWalk, of.anyWalk = WalkCycles*m.memory.walks.perMiss, WalkCycles*m.memory.walks.perReference
	m.memory.sites = map[uint32]*siteCost{}
	for i := range m.profile.Sites.Code {
		s := &m.profile.Sites.Code[i]
		if s.Number == profile.NoSite || s.References() == 0 {
			continue
		}
		misses, shares := make([]float64, len(levels)), make([]float64, len(levels))
		for k := range levels {
			misses[k], shares[k] = levels[k].Sites[i], prefetched[k][i]
		}
		found, why := of.costOfSite(s, misses, shares, m.profile.Sites.LineBytes)
		if found == nil {
			unknown(why)
			return
		}
		m.memory.sites[s.Number] = found
	}
	m.memory.known = true
	for _, w := range append(assumed, warnings...) {
		m.memory.notes = append(m.memory.notes, capitalise(string(w))+".")
	}
}

// costOfSite returns the cost of a site from its misses in each level, and the shares of them that a
// prefetcher fetches. If the cost is unknown, it returns nil and the reason.
func (of *machine) costOfSite(s *profile.Site, misses, prefetched []float64, lineBytes uint32) (*siteCost, string) {
	references := float64(s.References())
	hits := make([]float64, len(misses))
	for k := range misses {
		hits[k] = 1 - min(misses[k]/references, 1)
	}
	fetched := min(misses[0], references) * (1 - prefetched[0]) // lines that are fetched on demand
	latency, known, err := memory.AverageLatency(of.h, hits)
	if err != nil {
		return nil, err.Error()
	}
	if !known {
		return nil, "the hierarchy does not state all latencies"
	}
	walk := of.anyWalk + fetched/references*of.missWalk
	out := &siteCost{references: references, latency: latency + walk, crossing: crossingShare(s, lineBytes)}
	out.delay = max(0, out.latency-of.h.Levels[0].LatencyCycles)
	out.near = nearShares(s)
	inSequence, scattered := of.read, of.scattered
	stores := s.Kind == trace.Store || s.Kind == trace.Modify || s.Kind == trace.RangeWrite
	if stores {
		inSequence, scattered = of.written, of.stored
	}
	if !stores { // stores do not wait: they leave the instruction window before their lines arrive
		out.misses.Waits = walk
	}
	for k := range misses {
		from := misses[k] // number of lines that are fetched from the next level
		latency := of.h.Memory.LatencyCycles
		if k+1 < len(misses) {
			from -= misses[k+1]
			latency = of.h.Levels[k+1].LatencyCycles
		}
		if from <= 0 {
			continue
		}
		regular, irregular := prefetched[k], (1-prefetched[k])/references
		out.transfers = out.transfers.Plus(from*regular, pipeline.Transfer{Cycles: inSequence[k+1], Near: inSequence[1]})
		out.misses.Scattered = out.misses.Scattered.Plus(from*irregular, pipeline.Transfer{Cycles: scattered[k+1], Near: scattered[1]})
		if !stores {
			out.misses.Lines += from * irregular
			out.misses.Waits += from * irregular * latency
		}
	}
	return out, ""
}

// prefetchedShares returns, for each level and site, the share of the site's misses that a prefetcher
// hides (MODELS §15). Other lines are fetched on demand. If the profile does not contain these
// misses, it is the share of the references that follow a stride.
func (m *Models) prefetchedShares(h hierarchy.Hierarchy) [][]float64 {
	sites := m.profile.Sites
	shares := make([][]float64, len(h.Levels))
	for k := range shares {
		shares[k] = make([]float64, len(sites.Code))
		for i := range sites.Code {
			s := &sites.Code[i]
			if share, ok := sites.Coverage([]int{i}, h.Levels[k].SizeBytes/uint64(sites.LineBytes)); ok {
				shares[k][i] = share
			} else if n := s.References(); sites.Covered == nil && n > 0 {
				shares[k][i] = float64(s.Strides[profile.ZeroStride]+s.Strides[profile.UnitStride]+s.Strides[profile.ConstantStride]) / float64(n)
			}
		}
	}
	return shares
}

// pageWalks contains the predicted page walks of a run, which the misses of TLBs cause.
type pageWalks struct {
	waited  float64 // number of page walks for which loads and stores wait
	hidden  float64 // number of page walks for prefetched lines, for which nothing waits
	unknown string  // why the page walks are unknown, or ""
	// mean number of waits for each first-level miss that is fetched on demand, and for each reference
	perMiss, perReference float64
}

// pageWalks predicts the page walks of the run in a hierarchy. The parameters contain, for each site,
// the first-level misses, and the share of them that a prefetcher fetches. Stack distances of pages
// are not known by site (MODELS §13.4).
func (m *Models) pageWalks(h hierarchy.Hierarchy, misses, prefetched []float64) (w pageWalks) {
	if len(h.TLBs) == 0 {
		return w
	}
	if len(m.profile.Pages) == 0 {
		w.unknown = "its profile does not contain stack distances of pages"
		return w
	}
	found, err := hierarchy.NewAsker(m.profile).Translate(h)
	var option *trace.OptionError
	if errors.As(err, &option) {
		w.unknown = "a prediction needs " + option.Want
		return w
	}
	onDemand, references := 0.0, 0.0
	linesOfPage := float64(h.PageSize()) / float64(m.profile.Sites.LineBytes)
	for i := range m.profile.Sites.Code {
		references += float64(m.profile.Sites.Code[i].References())
		w.hidden += misses[i] * prefetched[i] / linesOfPage
		onDemand += misses[i] * (1 - prefetched[i])
	}
	w.hidden = min(w.hidden, found.MemoryAccesses)
	w.waited = found.MemoryAccesses - w.hidden
	if onDemand > 0 {
		w.perMiss = min(w.waited/onDemand, 1)
	}
	if references > 0 {
		w.perReference = (w.waited - w.perMiss*onDemand) / references
	}
	return w
}

// nearShares returns the share of a site's accesses at each stack distance below nearDistances.
func nearShares(s *profile.Site) (near [nearDistances]float64) {
	for _, b := range s.Reuse.Bins {
		if d := profile.SiteBinFrom(int(b.Bin)); d < nearDistances {
			near[d] = float64(b.Count) / float64(s.Reuse.Accesses())
		}
	}
	return near
}

// crossingShare returns the share of a site's references that cross a line border, and therefore
// touch one more line than their size requires.
func crossingShare(s *profile.Site, lineBytes uint32) float64 {
	if s.Bytes == 0 || lineBytes == 0 {
		return 0 // the site's references have different sizes
	}
	whole := (s.Bytes + lineBytes - 1) / lineBytes
	return max(0, min(1, float64(s.Reuse.Accesses())/float64(s.References())-float64(whole)))
}

// transferCosts returns the cost of transferring the sequential lines of each block. It scales the
// cost of the recorded run to the predicted number of executions of the block. The references of a
// gather or scatter belong to a synthetic block without instructions, and the next block contains the
// instruction: its cost also contains the scattered lines of these references.
func (r *siteCosts) transferCosts(p *trace.Program, visits []float64, measured []uint64) []pipeline.Transfer {
	costs := make([]pipeline.Transfer, len(p.Blocks))
	for b := range p.Blocks {
		k, at := &p.Blocks[b], b
		synthetic := k.Flags&trace.Synthetic != 0 && b+1 < len(p.Blocks)
		if synthetic {
			at++
		}
		if measured[at] == 0 {
			continue
		}
		executions := visits[at] / float64(measured[at])
		for number := k.FirstSite; number < k.FirstSite+k.Sites; number++ {
			s := r.sites[number]
			if s == nil {
				continue
			}
			if costs[at] = costs[at].Plus(executions, s.transfers); synthetic {
				costs[at] = costs[at].Plus(executions*s.references, s.misses.Scattered)
			}
		}
	}
	return costs
}

// capitalise capitalises the first letter of a text.
func capitalise(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}
