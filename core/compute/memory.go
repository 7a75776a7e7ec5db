package compute

import (
	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/ranking"
	"github.com/stackglass/stackglass/core/trace"
)

// references are what a hierarchy makes of the run's references, by place in the code.
type references struct {
	machine string // that they are of
	ranker  *ranking.Ranker
	known   bool
	latency map[uint32]float64 // by site of the program: E(λ), cycles
	lines   map[uint32]float64 // that come from memory in sequence, in the run
	// lineCycles is how far lines from memory come apart; 0: not known.
	lineCycles float64
	notes      []string
}

// latencyAt is E(λ) of a site as trace.Instr has it, 0 where it is not known.
func (r *references) latencyAt(site uint32) float64 {
	if site == 0 {
		return 0
	}
	return r.latency[site-1]
}

// remember asks the hierarchy about the run's places in the code.
func (m *Models) remember(h hierarchy.Hierarchy, key string) {
	if m.memory.machine == key && (m.memory.known || m.memory.notes != nil) {
		return
	}
	ranker := m.memory.ranker
	m.memory = references{machine: key, ranker: ranker}
	unknown := func(why string) {
		m.memory.notes = []string{"Every load takes what the processor's first level does: " + why + "."}
	}
	if m.run == nil || m.profile.Sites == nil {
		unknown("no trace tells where its lines are found; drop the program's trace to have loads take what its caches say")
		return
	}
	if ranker == nil {
		var ok bool
		if ranker, ok = ranking.New(m.profile); !ok {
			unknown("the profile does not tell which place in the code misses")
			return
		}
		m.memory.ranker = ranker
	}
	levels, warnings, err := ranker.Attribute(h)
	if err != nil {
		unknown(err.Error())
		return
	}
	m.memory.latency, m.memory.lines = map[uint32]float64{}, map[uint32]float64{}
	for i := range m.profile.Sites.Code {
		s := &m.profile.Sites.Code[i]
		of := float64(s.References())
		if s.Number == profile.NoSite || of == 0 {
			continue
		}
		hits := make([]float64, len(levels))
		for k := range levels {
			hits[k] = 1 - min(levels[k].Sites[i]/of, 1)
		}
		costs, err := memory.New(h, hits, memory.WordBytes)
		if err != nil {
			unknown(err.Error())
			return
		}
		if !costs.LatencyKnown {
			unknown("the hierarchy in question does not say all its latencies; presets do")
			return
		}
		m.memory.latency[s.Number] = costs.LatencyCycles
		regular := float64(s.Strides[profile.ZeroStride]+s.Strides[profile.UnitStride]+s.Strides[profile.ConstantStride]) / of
		if n := len(levels); n > 0 {
			m.memory.lines[s.Number] = levels[n-1].Sites[i] * regular
		}
	}
	if h.Memory.BytesPerCycle > 0 {
		m.memory.lineCycles = float64(m.profile.Sites.LineBytes) / h.Memory.BytesPerCycle
	}
	m.memory.known = true
	for _, w := range warnings {
		m.memory.notes = append(m.memory.notes, upper(string(w))+".")
	}
}

// sequential are the lines that come from memory in sequence, by block: those of the run,
// as often as the block runs more or less often than there.
func (r *references) sequential(p *trace.Program, visits []float64, measured []uint64) []float64 {
	lines := make([]float64, len(p.Blocks))
	for b := range p.Blocks {
		k := &p.Blocks[b]
		if measured[b] == 0 {
			continue
		}
		for s := k.FirstSite; s < k.FirstSite+k.Sites; s++ {
			lines[b] += r.lines[s] * visits[b] / float64(measured[b])
		}
	}
	return lines
}

// upper begins a sentence.
func upper(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}
