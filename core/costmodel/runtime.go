package costmodel

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// DefaultProcessor is the default processor of questions.
const DefaultProcessor = "znver4"

// runtimeInputs identifies the inputs from which the run time was computed last.
type runtimeInputs struct {
	counts    *blocks.Solution
	processor *pipeline.Processor
	machine   string
}

// computeRuntime computes the time of all blocks on the processor and with the caches that the
// question names.
func (m *Models) computeRuntime(q answers.ModelQuestion, r *answers.Reply) {
	h := hierarchy.Hierarchy{}
	for _, line := range q.Machine {
		if err := h.Add(line); err != nil {
			r.Notes = append(r.Notes, "The hierarchy is ignored: "+err.Error()+".")
			h = hierarchy.Hierarchy{}
			break
		}
	}
	name := cmp.Or(q.Processor, DefaultProcessor)
	switch {
	case m.defaultProcessor != nil && q.Processor == "":
		m.processor = m.defaultProcessor
	case m.processor == nil || m.processor == m.defaultProcessor || m.processor.Name != name:
		p, err := pipeline.Named(name)
		if err != nil {
			r.Notes = append(r.Notes, err.Error()+"; "+DefaultProcessor+" is used instead.")
			p, _ = pipeline.Named(DefaultProcessor)
		}
		m.processor = p
	}
	of, key := machineFor(h), strings.Join(q.Machine, "\n")
	if own := describedMachine(m.processor); len(q.Machine) == 0 && len(own.h.Levels) > 0 {
		of, key = own, "of the description of "+m.processor.Name
	}
	m.updateCosts(of, key)
	r.Notes = append(r.Notes, m.memory.notes...)
	defer m.noteRuntime(h, r)
	now := runtimeInputs{m.counts, m.processor, m.memory.machine}
	// only the displayed function or block has changed, so the run time is still valid
	if m.priced == now {
		return
	}
	m.priced = now
	run := pipeline.Run{Program: m.program, Visits: m.counts.Visits, Carried: m.blockInputs}
	if m.memory.known {
		m.memory.setCostFunctions(&run, m.run.Edges.Visits)
	}
	m.runtime, _ = m.processor.Runtime(run) // the slices of m.runtime have the same indices as the slices of the program
}

// Use sets the default processor, for questions that name no processor.
func (m *Models) Use(p *pipeline.Processor) { m.defaultProcessor = p }

// noteRuntime adds notes about the limitations of the predicted run time.
func (m *Models) noteRuntime(h hierarchy.Hierarchy, r *answers.Reply) {
	r.Unmodelled = pipeline.NotModelled()
	if w := &m.memory.walks; m.memory.known && w.waited+w.hidden > 0 {
		r.Unmodelled = slices.DeleteFunc(r.Unmodelled, func(what string) bool { return what == pipeline.Translation })
	}
	m.noteWalks(h, r)
	bare := 0
	for b := range m.program.Blocks {
		if len(m.program.Blocks[b].Instrs) == 0 && m.counts.Visits[b] > 0 && len(m.program.Blocks[b].Ops) > 0 {
			bare++
		}
	}
	if bare > 0 {
		r.Notes = append(r.Notes, "The trace lacks the instructions of "+strconv.Itoa(bare)+" blocks, so these blocks are assumed to take no time. Add the LLVM IR of the program (.ll).")
	}
	for i, lacks := range m.runtime.Missing {
		if i == mostNoted {
			break
		}
		k := &m.program.Blocks[lacks.Block]
		r.Notes = append(r.Notes, "The description of "+m.processor.Name+" has no number for "+string(lacks.Class)+" "+lacks.Type+", which block "+blocks.Label(k)+" needs, so this operation is assumed to take no time there.")
	}
	if len(m.runtime.Unknown) > 0 {
		text := "Functions outside the program are assumed to take no time"
		names := slices.DeleteFunc(slices.Clone(m.runtime.Unknown), func(name string) bool { return name == "call" || name == "invoke" }) // calls of functions that the trace does not name
		if n := len(names); n > mostNoted {
			text += ": " + strings.Join(names[:mostNoted], ", ") + " and " + strconv.Itoa(n-mostNoted) + " more"
		} else if n > 0 {
			text += ": " + strings.Join(names, ", ")
		}
		r.Notes = append(r.Notes, text+".")
	}
}

// WalkCycles is the cost of a translation that is read from the page table. It is a round figure for
// current cores (MODELS §13.5).
const WalkCycles = 40.0

// leastWalks is the minimum time of all page walks, as a share of the run time, at which they are noted.
const leastWalks = 0.01

// noteWalks adds a note about the page walks of the run.
func (m *Models) noteWalks(h hierarchy.Hierarchy, r *answers.Reply) {
	w := &m.memory.walks
	if !m.memory.known {
		return
	}
	if w.unknown != "" {
		r.Notes = append(r.Notes, "The page walks of this run are unknown: "+w.unknown+".")
		return
	}
	all := w.waited + w.hidden
	if !(all*WalkCycles/m.runtime.Cycles >= leastWalks) {
		return
	}
	number := func(x float64) string { return report.Count(uint64(x + 0.5)).Human() }
	text := "The time includes about " + number(w.waited) + " page walks of " + hierarchy.FormatNumber(WalkCycles) + " cycles each"
	if w.hidden >= 0.5 {
		text += ", but not about " + number(w.hidden) + " page walks for lines that a prefetcher fetches"
	}
	h.PageBytes = max(h.PageBytes, 2<<20)
	if large, err := hierarchy.NewAsker(m.profile).Translate(h); err == nil && len(large.Levels) > 0 && large.MemoryAccesses < all {
		text += ". Pages of " + report.Bytes(h.PageBytes).Human() + " avoid " + percent(1-large.MemoryAccesses/all) + " of the page walks"
	}
	r.Notes = append(r.Notes, text+".")
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

// mostNoted is the maximum number of names in a note.
const mostNoted = 3

// processorTitles returns the names and titles of the known processors. The descriptions are read
// only once, because reading them takes longer than the rest of an answer.
var processorTitles = sync.OnceValue(func() (list [][2]string) {
	for _, name := range pipeline.Processors() {
		title := name
		if p, err := pipeline.Named(name); err == nil {
			title = cmp.Or(p.Title, name)
		}
		list = append(list, [2]string{name, title})
	}
	return list
})

// Processors returns the table "processors" for the reply to an answers.ModelQuestion.
func Processors(chosen string) report.Table {
	t := report.Table{Key: "processors", Title: "Processors", Columns: report.Columns("name", "title", "chosen")}
	for _, p := range processorTitles() {
		t.Add(report.TextOf(p[0]), report.TextOf(p[1]), report.YesNo(p[0] == chosen))
	}
	return t
}

// Program returns the program of the models. Callers must not change the result.
func (m *Models) Program() *trace.Program { return m.program }

// Visits returns the number of executions of each block of the program. Callers must not change the
// result.
func (m *Models) Visits() []float64 { return m.counts.Visits }

// Price returns the predicted time of the program on a processor. The latency of a load is the
// given number of cycles (hit) plus the average delay of its site. The delay of site s is late[s];
// sites that are not in the map have no delay.
func (m *Models) Price(p *pipeline.Processor, hit float64, late map[uint32]float64) (*pipeline.Runtime, error) {
	sites := map[uint32]*siteCost{}
	if m.profile != nil && m.profile.Sites != nil {
		for i := range m.profile.Sites.Code {
			if s := &m.profile.Sites.Code[i]; s.Number != profile.NoSite && len(late) > 0 {
				sites[s.Number] = &siteCost{delay: late[s.Number], near: nearShares(s)}
			}
		}
	}
	of := siteCosts{sites: sites}
	return p.Runtime(pipeline.Run{Program: m.program, Visits: m.counts.Visits, Carried: m.blockInputs,
		LoadLatency: func(block, number uint32) float64 {
			if s := of.costOf(m.program, block, number); s != nil {
				return hit + s.delay
			}
			return hit
		},
		FillWait: func(load, fetching pipeline.Access, between int) float64 {
			return fillWait(of.costOf(m.program, uint32(load.Block), load.Site), of.costOf(m.program, uint32(fetching.Block), fetching.Site), between)
		},
	})
}
