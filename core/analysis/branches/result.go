package branches

import (
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// encodedProgram is the latest binary encoding of the program.
type encodedProgram struct {
	bytes             []byte
	blocks, functions int
	partial           bool // the result is for a segment, so it omits the program
}

// Bare omits the program from results. Only an analysis that knows the program can use such
// results.
func (a *Analysis) Bare() { a.encoded.partial = true }

// Result implements [contract.Analysis]. The result is empty if there are no blocks, or if calls
// are nested too deeply.
func (a *Analysis) Result(p *profile.Profile, state bool) {
	a.addProgram(a.program())
	p.Blocks = []byte{}
	if state {
		p.Segment.Blocks = a.state()
	}
	highest := a.lastCounted()
	if a.gone || highest == 0 {
		return
	}
	known := programUpTo(a.code.program, highest)
	p.Blocks = blocks.AppendRun(p.Blocks, a.encode(known), a.edges(known))
}

// lastCounted returns the last block that has any counts.
func (a *Analysis) lastCounted() uint32 {
	most := uint32(0)
	for n := uint32(len(a.code.nodes) - 1); n > 0 && most == 0; n-- {
		if a.counts.left[n]|a.counts.resumed[n] != 0 {
			most = n
		}
		for e := a.code.nodes[n].edge; e < a.code.endOf(n) && most == 0; e++ {
			if a.counts.taken[e] != 0 {
				most = n
			}
		}
	}
	for _, t := range a.threads {
		most = max(most, t.at)
		for _, n := range t.stack {
			most = max(most, n)
		}
	}
	return most
}

func (c *code) endOf(n uint32) uint32 {
	if int(n)+1 < len(c.nodes) {
		return c.nodes[n+1].edge
	}
	return c.edges
}

// programUpTo returns the program up to the module of a block. programUpTo omits later modules,
// because the header contains them only if the reader has read far enough ahead.
func programUpTo(p *trace.Program, block uint32) *trace.Program {
	last := &p.Blocks[block-1]
	some := *p
	some.Blocks = p.Blocks[:block]
	if uint64(last.Function) < uint64(len(p.Functions)) {
		module := p.Functions[last.Function].Module
		functions := int(last.Function) + 1
		for functions < len(p.Functions) && p.Functions[functions].Module == module {
			functions++
		}
		f := &p.Functions[functions-1]
		end := min(max(uint64(block), uint64(f.First)+uint64(f.Blocks)), uint64(len(p.Blocks)))
		some.Blocks, some.Functions = p.Blocks[:end], p.Functions[:functions]
		some.Modules = p.Modules[:min(uint64(module)+1, uint64(len(p.Modules)))]
	}
	sites := uint64(0)
	for i := range some.Blocks {
		sites = max(sites, uint64(some.Blocks[i].FirstSite)+uint64(some.Blocks[i].Sites))
	}
	some.Sites = p.Sites[:min(sites, uint64(len(p.Sites)))]
	return &some
}

func (a *Analysis) encode(p *trace.Program) []byte {
	e := &a.encoded
	if e.partial {
		return nil
	}
	if e.blocks != len(p.Blocks) || e.functions != len(p.Functions) {
		e.bytes, e.blocks, e.functions = blocks.AppendProgram(nil, p), len(p.Blocks), len(p.Functions)
	}
	return e.bytes
}

// edges returns the counts as if the run had ended now. Invocations that began before the segment
// count as resumed.
func (a *Analysis) edges(p *trace.Program) *blocks.Edges {
	e := blocks.NewEdges(p)
	for b := range p.Blocks {
		e.Left[b], e.Resumed[b] = a.counts.left[b+1], a.counts.resumed[b+1]
		copy(e.Taken[b], a.counts.taken[a.code.nodes[b+1].edge:])
	}
	for _, t := range a.threads {
		for _, n := range t.frames() {
			e.Left[n-1]++
		}
		for _, r := range t.continuations {
			if r.block != 0 {
				e.Resumed[r.block-1]++
			}
		}
	}
	for b := range p.Blocks {
		e.Visits[b] = e.Left[b]
		for _, n := range e.Taken[b] {
			e.Visits[b] += n
		}
	}
	if a.encoded.partial {
		return e
	}
	for f := range p.Functions {
		if about := &p.Functions[f]; uint64(about.First) < uint64(len(p.Blocks)) {
			e.Entered[f] = e.Visits[about.First]
		}
	}
	for b, f := range e.Callees(p) {
		if f == trace.NoFunction {
			continue
		}
		made := a.counts.callCount(uint32(b)+1, f)
		e.Unmade[b] = e.Visits[b] - made
		e.Entered[f] -= made
	}
	return e
}

// framePaths returns the paths of the invocations, from the bottom of the stack.
func (t *thread) framePaths() []uint32 {
	if t.at == 0 {
		return nil
	}
	return append(t.under[:len(t.under):len(t.under)], t.path)
}

// frames returns the latest blocks of the invocations, from the bottom of the stack.
func (t *thread) frames() []uint32 {
	if t.at == 0 {
		return nil
	}
	return append(t.stack[:len(t.stack):len(t.stack)], t.at)
}
