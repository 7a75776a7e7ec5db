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

// references contains the costs of the run's references in a hierarchy, by site.
type references struct {
	machine string // the hierarchy for which the costs were computed
	ranker  *attribution.Ranker
	known   bool
	sites   map[uint32]*site // by site number, only for sites with references
	notes   []string
}

// site is the cost of the references of a site.
type site struct {
	latency   float64          // mean latency E(λ), in cycles
	late      float64          // part of the latency beyond a hit in the first level
	near      [nearest]float64 // share of the accesses at each of the smallest stack distances, in lines
	crossing  float64          // share of the references that touch two lines
	misses    pipeline.Misses  // misses per reference, without references that follow a stride
	transfers float64          // cycles to transfer sequential lines, in the whole run
}

// nearest is the number of stack distances in site.near.
const nearest = 8

// fillWait returns the mean number of cycles per execution that a load waits for a line fetched by
// an earlier load in the same iteration. The addresses of both loads must be in the same structure.
// The load is assumed to touch the same line if its stack distance is at most the number of
// references since the earlier load. The earlier load or one of these references was then the last
// to touch the line.
func fillWait(load, fetching *site, between int) float64 {
	if load == nil || fetching == nil {
		return 0
	}
	share := 0.0
	for _, n := range load.near[:min(between+1, nearest)] {
		share += n
	}
	return share * fetching.late
}

// at returns a site of a block, given by its number as in trace.Instr; nil if the number is 0.
func (r *references) at(p *trace.Program, block, number uint32) *site {
	if number == 0 {
		return nil
	}
	return r.sites[p.Blocks[block].FirstSite+number-1]
}

// give sets the functions of run that return the costs of references.
func (r *references) give(run *pipeline.Run, measured []uint64) {
	of := func(block, number uint32) site {
		if s := r.at(run.Program, block, number); s != nil {
			return *s
		}
		return site{}
	}
	run.LoadLatency = func(block, number uint32) float64 { return of(block, number).latency }
	run.Crossing = func(block, number uint32) float64 { return of(block, number).crossing }
	run.Misses = func(block, number uint32) pipeline.Misses { return of(block, number).misses }
	run.FillWait = func(load, fetching pipeline.Access, between int) float64 {
		return fillWait(r.at(run.Program, uint32(load.Block), load.Site), r.at(run.Program, uint32(fetching.Block), fetching.Site), between)
	}
	run.Transfers = r.transfers(run.Program, run.Visits, measured)
}

// machine is a hierarchy with the cycles for transferring a line from each level and, as the last
// element, from memory, as in processor descriptions. A number of 0 cycles means unknown.
type machine struct {
	h                        hierarchy.Hierarchy
	read, written, scattered []float64
}

// asked returns the machine for the hierarchy of a question.
func asked(h hierarchy.Hierarchy) (m machine) {
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

// described returns the machine in a processor's description. The machine has no levels if the last
// level of the description is not memory.
func described(p *pipeline.Processor) (m machine) {
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

// remember computes the costs of the run's source locations on a machine, and caches them.
func (m *Models) remember(of machine, key string) {
	var assumed []hierarchy.Warning
	if of.h, assumed = CompleteLatencies(of.h, m.processor); len(assumed) > 0 {
		key += "\n" + m.processor.Name
	}
	if m.memory.machine == key && (m.memory.known || m.memory.notes != nil) {
		return
	}
	ranker := m.memory.ranker
	m.memory = references{machine: key, ranker: ranker}
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
	m.memory.sites = map[uint32]*site{}
	for i := range m.profile.Sites.Code {
		s := &m.profile.Sites.Code[i]
		if s.Number == profile.NoSite || s.References() == 0 {
			continue
		}
		misses := make([]float64, len(levels))
		for k := range levels {
			misses[k] = levels[k].Sites[i]
		}
		found, why := of.site(s, misses, m.profile.Sites.LineBytes)
		if found == nil {
			unknown(why)
			return
		}
		m.memory.sites[s.Number] = found
	}
	m.memory.known = true
	for _, w := range append(assumed, warnings...) {
		m.memory.notes = append(m.memory.notes, upper(string(w))+".")
	}
}

// site returns the costs of a site with these misses in each level, or nil and the reason why they
// are unknown.
func (of *machine) site(s *profile.Site, misses []float64, lineBytes uint32) (*site, string) {
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
	out := &site{latency: latency, crossing: crossing(s, lineBytes)}
	out.late = max(0, out.latency-of.h.Levels[0].LatencyCycles)
	out.near = nearOf(s)
	// Lines that follow a stride are prefetched. Other lines are fetched on demand.
	regular := float64(s.Strides[profile.ZeroStride]+s.Strides[profile.UnitStride]+s.Strides[profile.ConstantStride]) / references
	irregular := (1 - regular) / references
	stores := s.Kind == trace.Store || s.Kind == trace.Modify || s.Kind == trace.RangeWrite
	for k := range misses {
		from := misses[k] // lines that are fetched from the next level
		latency := of.h.Memory.LatencyCycles
		if k+1 < len(misses) {
			from -= misses[k+1]
			latency = of.h.Levels[k+1].LatencyCycles
		}
		if from <= 0 {
			continue
		}
		if stores { // stores leave the instruction window before their lines arrive
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

// nearOf returns the share of a site's accesses at each of the smallest stack distances.
func nearOf(s *profile.Site) (near [nearest]float64) {
	for _, b := range s.Reuse.Bins {
		if d := profile.SiteBinFrom(int(b.Bin)); d < nearest {
			near[d] = float64(b.Count) / float64(s.Reuse.Accesses())
		}
	}
	return near
}

// crossing returns the share of a site's references that cross a line boundary, and so touch one
// line more than their size requires.
func crossing(s *profile.Site, lineBytes uint32) float64 {
	if s.Bytes == 0 || lineBytes == 0 {
		return 0 // the site's references have different lengths
	}
	whole := (s.Bytes + lineBytes - 1) / lineBytes
	return max(0, min(1, float64(s.Reuse.Accesses())/float64(s.References())-float64(whole)))
}

// transfers returns, for each block, the cycles to transfer sequential lines: the cycles in the
// recorded run, scaled to the number of executions of the block.
func (r *references) transfers(p *trace.Program, visits []float64, measured []uint64) []float64 {
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

// upper capitalises the first letter of a text.
func upper(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}
