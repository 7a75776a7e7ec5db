package costmodel

import (
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Program returns the program of the models. Callers must not change it.
func (m *Models) Program() *trace.Program { return m.program }

// Visits returns how often each block of the program runs. Callers must not change it.
func (m *Models) Visits() []float64 { return m.counts.Visits }

// Price returns the time of the program on a processor where a load takes the cycles of a hit,
// plus its average delay. late has the delays by site number; others are 0.
func (m *Models) Price(p *pipeline.Processor, hit float64, late map[uint32]float64) (*pipeline.Runtime, error) {
	sites := map[uint32]*site{}
	if m.profile != nil && m.profile.Sites != nil {
		for i := range m.profile.Sites.Code {
			if s := &m.profile.Sites.Code[i]; s.Number != profile.NoSite && len(late) > 0 {
				sites[s.Number] = &site{late: late[s.Number], near: nearOf(s)}
			}
		}
	}
	of := references{sites: sites}
	return p.Runtime(pipeline.Run{Program: m.program, Visits: m.counts.Visits, Carried: m.carried,
		LoadLatency: func(block, number uint32) float64 {
			if s := of.at(m.program, block, number); s != nil {
				return hit + s.late
			}
			return hit
		},
		FillWait: func(load, fetching pipeline.Access, between int) float64 {
			return fillWait(of.at(m.program, uint32(load.Block), load.Site), of.at(m.program, uint32(fetching.Block), fetching.Site), between)
		},
	})
}
