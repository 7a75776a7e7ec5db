package costmodel

import (
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
	sites   map[uint32]*siteCost // keyed by site number; sites without references are omitted
	notes   []string
}

// siteCost is the cost of a site's references.
type siteCost struct {
	latency   float64                // mean latency E(λ), in cycles
	delay     float64                // mean latency minus the latency of a hit in the first level, in cycles
	near      [nearDistances]float64 // share of the accesses at each stack distance below nearDistances
	crossing  float64                // share of the references that touch two lines
	misses    pipeline.Misses        // misses per reference, excluding references that follow a stride
	transfers float64                // cycles for the transfer of sequential lines in the whole run
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
	run.Transfers = r.transferCycles(run.Program, run.Visits, measured)
}

// machine is a hierarchy with transfer costs, as in processor descriptions: the cycles for the
// transfer of a line from each level and (in the last element) from memory. The number 0 means that
// the transfer cost is unknown.
type machine struct {
	h                        hierarchy.Hierarchy
	read, written, scattered []float64
}

// machineFor converts the hierarchy of a question to a machine.
func machineFor(h hierarchy.Hierarchy) (m machine) {
	m.h = h
	add := func(bytesPerCycle float64) {
		cycles := 0.0
		if bytesPerCycle > 0 {
			cycles = hierarchy.DefaultLineBytes / bytesPerCycle
		}
		m.read, m.written, m.scattered = append(m.read, cycles), append(m.written, cycles), append(m.scattered, 0)
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
		m.read, m.written, m.scattered = append(m.read, l.ReadCycles), append(m.written, l.WrittenCycles), append(m.scattered, l.ScatteredCycles)
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
	m.memory.sites = map[uint32]*siteCost{}
	for i := range m.profile.Sites.Code {
		s := &m.profile.Sites.Code[i]
		if s.Number == profile.NoSite || s.References() == 0 {
			continue
		}
		misses := make([]float64, len(levels))
		for k := range levels {
			misses[k] = levels[k].Sites[i]
		}
		found, why := of.costOfSite(s, misses, m.profile.Sites.LineBytes)
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

// costOfSite returns the cost of a site from its misses in each level. If the cost is unknown, it
// returns nil and the reason.
func (of *machine) costOfSite(s *profile.Site, misses []float64, lineBytes uint32) (*siteCost, string) {
	references := float64(s.References())
	hits := make([]float64, len(misses))
	for k := range misses {
		hits[k] = 1 - min(misses[k]/references, 1)
	}
	latency, known, err := memory.AverageLatency(of.h, hits)
	if err != nil {
		return nil, err.Error()
	}
	if !known {
		return nil, "the hierarchy does not state all latencies"
	}
	out := &siteCost{latency: latency, crossing: crossingShare(s, lineBytes)}
	out.delay = max(0, out.latency-of.h.Levels[0].LatencyCycles)
	out.near = nearShares(s)
	// Lines that follow a stride are prefetched. Other lines are fetched on demand.
	regular := float64(s.Strides[profile.ZeroStride]+s.Strides[profile.UnitStride]+s.Strides[profile.ConstantStride]) / references
	irregular := (1 - regular) / references
	stores := s.Kind == trace.Store || s.Kind == trace.Modify || s.Kind == trace.RangeWrite
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
		if stores { // stores do not wait: they leave the instruction window before their lines arrive
			latency = 0
			out.transfers += from * regular * of.written[k+1]
		} else {
			out.transfers += from * regular * of.read[k+1]
			out.misses.Lines += from * irregular
		}
		out.misses.Waits += from * irregular * latency
		out.misses.Scattered += from * irregular * of.scattered[k+1]
	}
	return out, ""
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

// transferCycles returns the cycles that each block spends on the transfer of sequential lines. It
// scales the cycles of the recorded run to the predicted number of executions of the block.
func (r *siteCosts) transferCycles(p *trace.Program, visits []float64, measured []uint64) []float64 {
	cycles := make([]float64, len(p.Blocks))
	for b := range p.Blocks {
		k := &p.Blocks[b]
		if measured[b] == 0 {
			continue
		}
		for number := k.FirstSite; number < k.FirstSite+k.Sites; number++ {
			if s := r.sites[number]; s != nil {
				cycles[b] += s.transfers * visits[b] / float64(measured[b])
			}
		}
	}
	return cycles
}

// capitalise capitalises the first letter of a text.
func capitalise(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}
