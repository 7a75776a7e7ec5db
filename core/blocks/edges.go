package blocks

import (
	"errors"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Edges contains the execution counts of a program's edges. All slices are indexed by block, except
// Entered, which is indexed by function. For every block b, the counts satisfy
//
//	Visits[b] = Σ Taken into b + Resumed[b], + (for the first block of a function) Entered and its calls
//	Visits[b] = Σ Taken[b] + Left[b]
//
// The number of calls to a function is the sum of Visits - Unmade over all blocks for which
// [Edges.Callees] returns this function.
type Edges struct {
	Visits []uint64
	// Taken[b][i] counts executions of the edge from b to Successors[i]. The part of a basic block
	// after a call is a successor of the part before the call.
	Taken [][]uint64
	// Entered counts the invocations of a function that do not come from a direct call: invocations
	// of main, callbacks and thread functions, and calls through pointers.
	Entered []uint64
	// Unmade counts calls that name a function of the program but do not enter it, because the trace
	// ends before the call or because another function with the same name is called.
	Unmade []uint64
	// Left counts executions that end the invocation by a return, an exception, longjmp, or the end
	// of the program.
	Left []uint64
	// Resumed counts executions that reached the block without following an edge, such as by a
	// longjmp to a setjmp.
	Resumed []uint64
}

// NewEdges returns edges whose counts are all 0.
func NewEdges(p *trace.Program) *Edges {
	e := &Edges{
		Visits: make([]uint64, len(p.Blocks)), Taken: make([][]uint64, len(p.Blocks)), Entered: make([]uint64, len(p.Functions)),
		Unmade: make([]uint64, len(p.Blocks)), Left: make([]uint64, len(p.Blocks)), Resumed: make([]uint64, len(p.Blocks)),
	}
	for b := range p.Blocks {
		e.Taken[b] = make([]uint64, len(p.Blocks[b].Successors))
	}
	return e
}

// Check returns an error if the edges do not match the program, or if the numbers of entries and
// exits of a block differ. The counts of a partial trace do not balance.
func (e *Edges) Check(p *trace.Program) error {
	if len(e.Visits) != len(p.Blocks) || len(e.Taken) != len(p.Blocks) || len(e.Left) != len(p.Blocks) || len(e.Resumed) != len(p.Blocks) || len(e.Unmade) != len(p.Blocks) || len(e.Entered) != len(p.Functions) {
		return errors.New("the counts cover " + strconv.Itoa(len(e.Visits)) + " blocks and " + strconv.Itoa(len(e.Entered)) + " functions, but the program has " +
			strconv.Itoa(len(p.Blocks)) + " blocks and " + strconv.Itoa(len(p.Functions)) + " functions")
	}
	into := make([]uint64, len(p.Blocks))
	for b := range p.Blocks {
		if len(e.Taken[b]) != len(p.Blocks[b].Successors) {
			return errors.New(name(p, b) + ": has counts for " + strconv.Itoa(len(e.Taken[b])) + " outgoing edges, want " + strconv.Itoa(len(p.Blocks[b].Successors)))
		}
		out := e.Left[b]
		for i, n := range e.Taken[b] {
			out += n
			into[p.Blocks[b].Successors[i]] += n
		}
		if out != e.Visits[b] {
			return errors.New(name(p, b) + ": ran " + strconv.FormatUint(e.Visits[b], 10) + " times, but was left " + strconv.FormatUint(out, 10) + " times, want equal numbers")
		}
	}
	callees := e.Callees(p)
	calls := append([]uint64{}, e.Entered...)
	for b, f := range callees {
		if f == trace.NoFunction && e.Unmade[b] > 0 || e.Unmade[b] > e.Visits[b] {
			return errors.New(name(p, b) + ": " + strconv.FormatUint(e.Unmade[b], 10) + " calls are recorded as not entering a function of the program, but the block makes fewer calls")
		}
		if f != trace.NoFunction {
			calls[f] += e.Visits[b] - e.Unmade[b]
		}
	}
	for b := range p.Blocks {
		in := into[b] + e.Resumed[b]
		if f := p.Blocks[b].Function; p.Blocks[b].Flags&trace.EntryBlock != 0 && f < uint32(len(calls)) {
			in += calls[f]
		}
		if in != e.Visits[b] {
			return errors.New(name(p, b) + ": ran " + strconv.FormatUint(e.Visits[b], 10) + " times, but was entered " + strconv.FormatUint(in, 10) + " times, want equal numbers")
		}
	}
	return nil
}

// Callees returns, for every block, the function that the block calls by name, or
// [trace.NoFunction]. If several modules have a function of that name, Callees prefers a function
// that ran, then the function in the block's module, then the first function.
func (e *Edges) Callees(p *trace.Program) []uint32 {
	named := map[string][]uint32{}
	ran := make([]bool, len(p.Functions))
	for f := range p.Functions {
		about := &p.Functions[f]
		named[about.Name] = append(named[about.Name], uint32(f))
		ran[f] = uint64(about.First) < uint64(len(e.Visits)) && e.Visits[about.First] > 0
	}
	callees := make([]uint32, len(p.Blocks))
	for b := range p.Blocks {
		callees[b] = trace.NoFunction
		if p.Blocks[b].Callee == "" {
			continue
		}
		best := -1
		for _, f := range named[p.Blocks[b].Callee] {
			fits := 0
			if ran[f] {
				fits = 2
			}
			if of := p.Blocks[b].Function; of < uint32(len(p.Functions)) && p.Functions[of].Module == p.Functions[f].Module {
				fits++
			}
			if fits > best {
				callees[b], best = f, fits
			}
		}
	}
	return callees
}

// name returns the names of a block and its function, for errors.
func name(p *trace.Program, b int) string {
	if f := p.Blocks[b].Function; f < uint32(len(p.Functions)) {
		return "block " + Label(&p.Blocks[b]) + " of " + p.Functions[f].Name
	}
	return "block " + Label(&p.Blocks[b])
}
