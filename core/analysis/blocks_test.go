package analysis_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// branchingProgram returns a random program whose functions branch, call, jump, throw and catch.
func branchingProgram(rng *rand.Rand) *trace.Program {
	p := &trace.Program{Modules: []trace.Module{{Name: "src/a.c", Options: "-O2"}, {Name: "src/b.c"}}}
	functions := 2 + rng.IntN(5)
	names := make([]string, functions)
	for f := range names {
		names[f] = "f" + strconv.Itoa(f)
		if f > 2 && rng.IntN(4) == 0 {
			names[f] = names[f-1] // a function that has the same name, in a different module or as a copy
		}
	}
	callee := func() string {
		switch rng.IntN(6) {
		case 0:
			return "*"
		case 1:
			return "qsort"
		}
		return names[rng.IntN(functions)]
	}
	for f := range functions {
		first, n := uint32(len(p.Blocks)), uint32(2+rng.IntN(9))
		add := func(b trace.Block) uint32 {
			b.Function, b.FirstSite, b.File = uint32(f), uint32(len(p.Sites)), "src/a.c"
			if rng.IntN(3) > 0 {
				b.Sites = 1
				p.Sites = append(p.Sites, trace.Site{Kind: trace.Load, Bytes: 8, Block: uint32(len(p.Blocks)), Place: trace.Place{File: "src/a.c"}})
			}
			p.Blocks = append(p.Blocks, b)
			return uint32(len(p.Blocks)) - 1
		}
		var open []uint32 // blocks that may become successors of other blocks, and have no successors yet
		var heads []uint32
		for i := range n {
			b := trace.Block{Label: "b" + strconv.Itoa(int(i))}
			if i == 0 {
				b.Flags = trace.EntryBlock
			}
			if i == n-1 {
				b.Flags |= trace.ReturnBlock
			}
			kind := rng.IntN(8)
			switch {
			case i == n-1 && kind == 0, i < n-1 && kind == 1: // a tail call that is compiled to a jump
				b.Flags |= trace.ReturnBlock
				b.Callee = names[rng.IntN(functions)]
			case i < n-1 && kind < 4: // a call, followed by the block after it
				if b.Callee = callee(); kind == 2 {
					b.Callee = []string{"_setjmp", "longjmp", "throw"}[rng.IntN(3)]
				}
			}
			at := add(b)
			if heads = append(heads, at); b.Callee != "" && b.Flags&trace.ReturnBlock == 0 && rng.IntN(3) > 0 {
				p.Blocks[at].Successors = []uint32{at + 1}
				at = add(trace.Block{Label: b.Label, Part: 1})
			}
			if p.Blocks[at].Flags&trace.ReturnBlock == 0 {
				open = append(open, at)
			}
		}
		var pads []uint32
		for range rng.IntN(3) {
			at := add(trace.Block{Label: "pad", Flags: trace.LandingPad})
			pads, open = append(pads, at), append(open, at)
		}
		inner := heads[1:]
		for _, b := range open {
			block := &p.Blocks[b]
			to := func() uint32 { return inner[rng.IntN(len(inner))] }
			switch {
			case block.Callee == "_setjmp": // a call of setjmp must be followed by a block
				block.Callee = "printf"
				block.Successors = []uint32{to()}
			case block.Callee != "" && len(pads) > 0: // an invoke instruction
				block.Successors = []uint32{to(), pads[rng.IntN(len(pads))]}
			case block.Callee != "": // a tail call that shares its return block with other blocks
				if block.Callee = names[rng.IntN(functions)]; p.Blocks[heads[n-1]].Callee == "" {
					block.Successors = []uint32{heads[n-1]}
				} else {
					block.Flags |= trace.ReturnBlock
				}
			default:
				for range 1 + rng.IntN(3) + 4*(rng.IntN(5)/4) {
					block.Successors = append(block.Successors, to())
				}
			}
		}
		p.Functions = append(p.Functions, trace.Function{Name: names[f], Module: uint32(min(1, 2*f/functions)), First: first, Blocks: uint32(len(p.Blocks)) - first})
	}
	return p
}

// A walker simulates the threads of a program, and counts how often the threads take each edge.
type walker struct {
	p     *trace.Program
	rng   *rand.Rand
	steps []tracetest.Step
	edges *blocks.Edges
	named map[[2]uint32]uint64 // number of calls by name, for each pair of calling block and called function
	all   []uint64             // for each function: number of invocations so far
	jumps bool                 // longjmp may jump to any invocation below the topmost

	where   [][]uint32 // the call path of each step
	calling []calls
}

type calls struct {
	from []uint32 // call path of the caller
	to   uint32
}

type frame struct {
	at   uint32
	done bool     // whether the call has returned
	sets []uint32 // the block after each setjmp call that has been executed
}

type walk struct {
	number uint32
	frames []frame
	left   int // number of remaining steps
}

func (w *walker) enters(t *walk, f uint32) {
	w.all[f]++
	w.calling = append(w.calling, calls{w.pathOf(t.frames), f})
	t.frames = append(t.frames, frame{at: w.p.Functions[f].First})
	w.step(t)
}

// step executes the current block of the topmost invocation.
func (w *walker) step(t *walk) {
	t.left--
	b := t.frames[len(t.frames)-1].at
	t.frames[len(t.frames)-1].done = false
	s := tracetest.Step{Block: b, Thread: t.number}
	w.edges.Visits[b]++
	if w.p.Blocks[b].Sites > 0 {
		s.Values = []uint64{1<<12 + 8*w.rng.Uint64N(300)}
	}
	w.steps = append(w.steps, s)
	w.where = append(w.where, w.pathOf(t.frames))
}

// followEdge makes the topmost invocation take an outgoing edge of its block.
func (w *walker) followEdge(t *walk, edge int) {
	top := &t.frames[len(t.frames)-1]
	to := w.p.Blocks[top.at].Successors[edge]
	w.edges.Taken[top.at][slices.Index(w.p.Blocks[top.at].Successors, to)]++
	top.at = to
	w.step(t)
}

func (w *walker) pop(t *walk) {
	last := len(t.frames) - 1
	w.edges.Left[t.frames[last].at]++
	t.frames = t.frames[:last]
}

// functionOf returns one of the functions with the given name, at random.
func (w *walker) functionOf(name string) uint32 {
	var list []uint32
	for f := range w.p.Functions {
		if w.p.Functions[f].Name == name {
			list = append(list, uint32(f))
		}
	}
	return list[w.rng.IntN(len(list))]
}

// advance moves a thread to its next block.
func (w *walker) advance(t *walk) {
	if len(t.frames) == 0 {
		w.enters(t, w.rng.Uint32N(uint32(len(w.p.Functions)))) // a call from untraced code
		return
	}
	b := t.frames[len(t.frames)-1].at
	block := &w.p.Blocks[b]
	if w.rng.IntN(40) == 0 && len(t.frames) < 30 && block.Flags&trace.ReturnBlock == 0 && (block.Callee == "" || block.Callee == "printf") { // a signal handler
		w.enters(t, w.rng.Uint32N(uint32(len(w.p.Functions))))
		return
	}
	switch callee := block.Callee; {
	case block.Flags&trace.ReturnBlock != 0:
		if w.pop(t); callee != "" {
			w.callFunction(t, b, callee)
		}
	case callee == "longjmp" && w.jump(t):
	case callee == "throw" && w.throw(t):
	case callee == "qsort" || callee == "*":
		if w.rng.IntN(2) == 0 && len(t.frames) < 30 {
			w.enters(t, w.rng.Uint32N(uint32(len(w.p.Functions))))
			return
		}
		w.followEdge(t, 0)
	case callee == "" || callee == "longjmp" || callee == "throw" || callee == "printf" || callee == "_setjmp":
		if top := &t.frames[len(t.frames)-1]; callee == "_setjmp" {
			top.sets = append(top.sets, block.Successors[0])
		}
		w.followEdge(t, w.rng.IntN(len(block.Successors)))
	case len(block.Successors) == 1 && w.p.Blocks[block.Successors[0]].Part == 0: // the function returns through a block that is shared by several tail calls
		w.followEdge(t, 0)
		w.pop(t)
		w.callFunction(t, b, callee)
	case t.frames[len(t.frames)-1].done:
		w.followEdge(t, 0)
	default:
		t.frames[len(t.frames)-1].done = true
		w.callFunction(t, b, callee)
	}
}

// callFunction executes a call to a function with the given name. If the call stack is too deep, or
// the thread has no steps left, the program exits instead.
func (w *walker) callFunction(t *walk, from uint32, name string) {
	if len(t.frames) > 30 || t.left < 0 {
		t.frames = t.frames[:len(t.frames):len(t.frames)]
		for len(t.frames) > 0 {
			w.pop(t) // the program exits
		}
		t.left = -1
		return
	}
	f := w.functionOf(name)
	w.named[[2]uint32{from, f}]++
	w.enters(t, f)
}

// jump unwinds to the topmost invocation that called setjmp.
func (w *walker) jump(t *walk) bool {
	for i := len(t.frames) - 1; i >= 0; i-- {
		f := &t.frames[i]
		if len(f.sets) == 0 {
			if !w.jumps && i > 0 && slices.ContainsFunc(t.frames[:i], func(below frame) bool { return w.p.Blocks[below.at].Function == w.p.Blocks[f.at].Function }) {
				return false
			}
			continue
		}
		for len(t.frames) > i+1 {
			w.pop(t)
		}
		w.edges.Left[f.at]++
		f.at = f.sets[w.rng.IntN(len(f.sets))]
		w.edges.Resumed[f.at]++
		w.step(t)
		return true
	}
	return false
}

// throw unwinds to the topmost invocation that catches exceptions.
func (w *walker) throw(t *walk) bool {
	for i := len(t.frames) - 1; i >= 0; i-- {
		at := &w.p.Blocks[t.frames[i].at]
		for edge, to := range at.Successors {
			if w.p.Blocks[to].Flags&trace.LandingPad == 0 {
				continue
			}
			for len(t.frames) > i+1 {
				w.pop(t)
			}
			w.followEdge(t, edge)
			return true
		}
	}
	return false
}

// randomRun simulates a few threads. randomRun returns the walker, which contains the rows of the
// threads, and the counts of the edges that the threads took.
func randomRun(rng *rand.Rand, p *trace.Program, steps int) (*walker, *blocks.Edges) {
	w := &walker{p: p, rng: rng, edges: blocks.NewEdges(p), named: map[[2]uint32]uint64{}, all: make([]uint64, len(p.Functions))}
	threads := make([]walk, 1+rng.IntN(3))
	for i := range threads {
		threads[i] = walk{number: uint32(7 * i), left: steps / len(threads)}
	}
	for len(threads) > 0 {
		i := rng.IntN(len(threads))
		for range 1 + rng.IntN(20) {
			if threads[i].left >= 0 {
				w.advance(&threads[i])
			}
		}
		if threads[i].left < 0 {
			for len(threads[i].frames) > 0 {
				w.pop(&threads[i])
			}
			threads = slices.Delete(threads, i, i+1)
		}
	}
	e := w.edges
	copy(e.Entered, w.all)
	for b, f := range e.Callees(p) {
		if f != trace.NoFunction {
			made := w.named[[2]uint32{uint32(b), f}]
			e.Unmade[b] = e.Visits[b] - made
			e.Entered[f] -= made
		}
	}
	return w, e
}

// programReader is a reader that knows the whole program from the beginning, as the reader of a
// trace file does.
type programReader struct {
	*tracetest.ProgramReader
	p *trace.Program
}

func (r programReader) Header() trace.Header {
	h := r.ProgramReader.Header()
	h.Program = r.p
	return h
}

func reading(p *trace.Program, whole *trace.Batch, rows int) programReader {
	return programReader{tracetest.NewProgramReader(p, whole, rows), p}
}

func decodedRun(t *testing.T, p *profile.Profile) *blocks.Run {
	t.Helper()
	run, err := blocks.DecodeRun(p.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func sameEdges(t *testing.T, p *trace.Program, got, want *blocks.Edges) bool {
	t.Helper()
	at := func(list []uint64, b int) uint64 {
		if b < len(list) {
			return list[b]
		}
		return 0
	}
	same := true
	for b := range p.Blocks {
		var taken []uint64
		if b < len(got.Taken) {
			taken = got.Taken[b]
		} else {
			taken = make([]uint64, len(want.Taken[b]))
		}
		if at(got.Visits, b) != want.Visits[b] || !slices.Equal(taken, want.Taken[b]) || at(got.Left, b) != want.Left[b] || at(got.Resumed, b) != want.Resumed[b] || at(got.Unmade, b) != want.Unmade[b] {
			t.Errorf("block %d of %s, which calls %q: Visits = %d, Taken = %v, Left = %d, Resumed = %d, Unmade = %d; want %d, %v, %d, %d, %d", b, p.Functions[p.Blocks[b].Function].Name, p.Blocks[b].Callee,
				at(got.Visits, b), taken, at(got.Left, b), at(got.Resumed, b), at(got.Unmade, b), want.Visits[b], want.Taken[b], want.Left[b], want.Resumed[b], want.Unmade[b])
			same = false
		}
	}
	for f := range p.Functions {
		if at(got.Entered, f) != want.Entered[f] {
			t.Errorf("function %d %s: entered %d times, want %d", f, p.Functions[f].Name, at(got.Entered, f), want.Entered[f])
			same = false
		}
	}
	return same
}

var blocksAlone = analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Blocks | analysis.Locality}

// withEntriesForSomeSeeds usually returns the spec unchanged. For some seeds, the returned spec
// requires that readers report every block entry.
func withEntriesForSomeSeeds(seed uint64, spec analysis.Spec) analysis.Spec {
	if seed%4 == 0 {
		spec.Analyses |= analysis.Loops
	} else if seed%4 == 1 {
		spec.Kinds &^= 1 << trace.Store
	}
	return spec
}

// The analysis finds the edges that the program took.
func TestBlocksMatchTrace(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 91))
		p := branchingProgram(rng)
		w, want := randomRun(rng, p, 1+rng.IntN(3000))
		if err := want.Check(p); err != nil {
			t.Fatal(seed, err)
		}
		got, _ := analyseSequentially(t, withEntriesForSomeSeeds(seed, blocksAlone), reading(p, tracetest.Rows(p, w.steps...), 1+rng.IntN(4096)))
		run := decodedRun(t, got)
		if !sameEdges(t, p, run.Edges, want) {
			t.Fatalf("seed %d: the edge counts of a run of %d steps are wrong", seed, len(w.steps))
		}
		for b := range run.Program.Blocks {
			if x, y := &run.Program.Blocks[b], &p.Blocks[b]; x.Callee != y.Callee || x.Label != y.Label || !slices.Equal(x.Successors, y.Successors) || x.File != "a.c" || x.FirstSite != y.FirstSite {
				t.Fatalf("seed %d: block %d is %+v, want %+v", seed, b, x, y)
			}
		}
	}
}

// The result is byte-identical for any number of workers and any segment length.
func TestBlocksWithAnyNumberOfWorkers(t *testing.T) {
	joined := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 92))
		p := branchingProgram(rng)
		w, _ := randomRun(rng, p, 1+rng.IntN(12_000))
		spec := blocksAlone
		if rng.IntN(3) == 0 {
			spec.Analyses = analysis.Blocks
		}
		spec = withEntriesForSomeSeeds(seed, spec)
		file := container(t, rng, p, w.steps)
		want, _ := analyseSequentially(t, spec, readerOf(file))
		for _, workers := range []int{2, 3} {
			if got := toItsEnd(t, divided(t, spec, file, workers, 1+rng.IntN(1000), countingHelpers(&joined))); !bytes.Equal(got, want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers that read the trace themselves differs from the result of one worker", seed, workers)
			}
		}
		if rng.IntN(2) == 0 {
			spec.Limit = 1 + rng.Uint64N(8000)
		}
		whole := tracetest.Rows(p, w.steps...)
		want, _ = analyseSequentially(t, spec, reading(p, whole, 4096))
		for _, workers := range []int{2, 3, 8} {
			if got, _ := analyseInParallel(t, spec, reading(p, whole, 4096), workers, 1+rng.IntN(1000)); !bytes.Equal(got.Encode(), want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers differs from the result of one worker", seed, workers)
			}
		}
	}
	if joined < 100 {
		t.Errorf("%d segments were joined, want at least 100", joined)
	}
}

// joinRandomSegments analyses random segments of a trace, each of which begins with a block entry and
// contains a reference, and joins the segments in random order. joinRandomSegments returns an error
// if the segments cannot be joined.
func joinRandomSegments(t *testing.T, rng *rand.Rand, spec analysis.Spec, p *trace.Program, whole *trace.Batch) (*profile.Profile, error) {
	t.Helper()
	var parts []*profile.Profile
	for lo := 0; lo < whole.Len(); {
		hi := min(whole.Len(), lo+1+rng.IntN(1+whole.Len()/4))
		for hi < whole.Len() && (referencesBefore(whole, hi) == referencesBefore(whole, lo) || whole.Kind[hi] != trace.BlockEntry) {
			hi++
		}
		spec.Start = referencesBefore(whole, lo)
		part, err := analyseSequentially(t, spec, reading(p, tracetest.Part(whole, lo, hi), 1+rng.IntN(4096)))
		if err != nil {
			return nil, err
		}
		parts, lo = append(parts, part), hi
	}
	return appended(t, rng, spec, parts)
}

// The segments can be joined in any grouping: the joined result and the joined state equal the
// result and the state of the whole trace.
func TestBlocksInSegments(t *testing.T) {
	torn := 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 93))
		p := branchingProgram(rng)
		w, _ := randomRun(rng, p, 1+rng.IntN(3000))
		whole := tracetest.Rows(p, w.steps...)
		spec := blocksAlone
		spec.Mergeable = true
		want, _ := analyseSequentially(t, spec, reading(p, whole, 4096))
		if got, err := joinRandomSegments(t, rng, spec, p, whole); err != nil {
			torn++
		} else if !bytes.Equal(analysis.AsSegment(got).Encode(), analysis.AsSegment(want).Encode()) {
			t.Fatalf("seed %d: the joined result differs from the result of the whole trace", seed)
		}
	}
	if torn > 40 {
		t.Errorf("the segments of %d of 150 traces could not be joined, want at most 40", torn)
	}
}

// A run that is saved at any position and resumed has the same result as an uninterrupted run.
func TestBlocksResume(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 94))
		p := branchingProgram(rng)
		w, _ := randomRun(rng, p, 1+rng.IntN(6000))
		whole := tracetest.Rows(p, w.steps...)
		want, _ := analyseSequentially(t, blocksAlone, reading(p, whole, 4096))
		got := interrupted(t, rng, blocksAlone, 30, func() trace.Reader { return reading(p, whole, 1+rng.IntN(500)) }, func(sofar *profile.Profile) { decodedRun(t, sofar) })
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the result of an interrupted run differs from the result of an uninterrupted run", seed)
		}
	}
}

// A run that spills its stacks keeps its block counts, even if it is resumed afterwards.
func TestBlocksInSpilledRun(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 97))
		p := branchingProgram(rng)
		w, _ := randomRun(rng, p, 1000+rng.IntN(3000))
		whole := tracetest.Rows(p, w.steps...)
		spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: []analysis.Analyses{analysis.Blocks, analysis.Blocks | analysis.Locality}[seed%2]}
		want, _ := analyseSequentially(t, spec, reading(p, whole, 4096))
		r, err := analysis.NewRunner(spec, reading(p, whole, 200))
		if err == nil {
			err = r.Step()
		}
		if err != nil {
			t.Fatal(err)
		}
		now, ok := r.Spill(locality.Budget{Lines: 50, Shelf: new(stacktest.Shelf)})
		if err := r.Step(); !ok || err != nil && err != io.EOF {
			t.Fatalf("seed %d: Spill returned %t, and the run ended with %v", seed, ok, err)
		}
		saved := r.Save()
		if r, err = analysis.NewRunner(now, reading(p, whole, 300)); err == nil {
			err = r.Restore(saved)
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		finish(t, r)
		if got := checked(t, r.Finish(profile.State{})); !bytes.Equal(got.Blocks, want.Blocks) || len(got.Blocks) == 0 {
			t.Fatalf("seed %d: spilling changes the block counts", seed)
		}
	}
}

// Even in a trace of arbitrary rows, every row is counted, and the counts of each block balance.
func TestBlockCountsOfArbitraryRecords(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 95))
		p := branchingProgram(rng)
		steps := make([]tracetest.Step, rng.IntN(2000))
		for i := range steps {
			b := rng.Uint32N(uint32(len(p.Blocks)))
			steps[i] = tracetest.Step{Block: b, Thread: rng.Uint32N(2)}
			if p.Blocks[b].Sites > 0 {
				steps[i].Values = []uint64{1 << 12}
			}
		}
		whole := tracetest.Rows(p, steps...)
		want, _ := analyseSequentially(t, blocksAlone, reading(p, whole, 4096))
		if len(steps) > 0 {
			run := decodedRun(t, want)
			visits := make([]uint64, len(p.Blocks))
			for _, s := range steps {
				visits[s.Block]++
			}
			for b, n := range run.Edges.Visits {
				if n != visits[b] {
					t.Fatalf("seed %d: the counts have %d visits of block %d, want %d", seed, n, b, visits[b])
				}
			}
		}
		if got, _ := analyseInParallel(t, blocksAlone, reading(p, whole, 4096), 3, 1+rng.IntN(300)); !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the result of several workers differs from the result of one worker", seed)
		}
	}
}

// The histogram of a block is the sum of the histograms of its references.
func TestReuseByBlock(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 96))
		p := branchingProgram(rng)
		w, _ := randomRun(rng, p, 1+rng.IntN(3000))
		whole := tracetest.Rows(p, w.steps...)
		spec := blocksAlone
		spec.Analyses |= analysis.Sites
		got, _ := analyseSequentially(t, spec, reading(p, whole, 4096))
		if got.Sites == nil {
			continue
		}
		var model stacktest.Naive
		want := make([]map[uint8]uint64, len(p.Blocks)) // for each block: number of accesses by bin, with cold accesses under the key 255
		for i, k := range whole.Kind {
			if !k.IsReference() {
				continue
			}
			b, bin := p.Sites[whole.Site[i]].Block, uint8(255)
			if d := distance(&model, whole.Addr[i]/64); d != stack.Cold {
				bin = uint8(profile.SiteBin(d))
			}
			if want[b] == nil {
				want[b] = map[uint8]uint64{}
			}
			want[b][bin]++
		}
		for b, r := range decodedRun(t, got).Reuse(got.Sites) {
			of := map[uint8]uint64{}
			if r.Cold > 0 {
				of[255] = r.Cold
			}
			for _, bin := range r.Bins {
				of[bin.Bin] = bin.Count
			}
			if !maps.Equal(of, want[b]) || r.References != r.Accesses() {
				t.Fatalf("seed %d: block %d has the histogram %v, want %v; %d references", seed, b, of, want[b], r.References)
			}
		}
	}
}

// A row that refers to a block outside the tables causes an error, but no panic.
func TestUnknownBlockInBranches(t *testing.T) {
	p := branchingProgram(rand.New(rand.NewPCG(1, 97)))
	whole := tracetest.Rows(p, tracetest.Step{Block: 0, Thread: 1, Values: []uint64{8}})
	for _, block := range []uint32{uint32(len(p.Blocks)), ^uint32(0)} {
		whole.Site[0] = block
		r, err := analysis.NewRunner(withEntriesForSomeSeeds(1, blocksAlone), fixed{trace.Reader(tracetest.NewReader(whole, 1)), p})
		if err != nil {
			t.Fatal(err)
		}
		var unknown *contract.UnknownError
		if err := r.Step(); !errors.As(err, &unknown) || unknown.Number != block {
			t.Errorf("entry of the unknown block %d: error %v, want an UnknownError with this number", block, err)
		}
	}
}

type fixed struct {
	trace.Reader
	p *trace.Program
}

func (f fixed) Header() trace.Header { return trace.Header{Format: "test", Sites: true, Program: f.p} }

func distance(m *stacktest.Naive, line trace.Line) uint32 {
	var d [1]uint32
	m.Distances([]trace.Line{line}, d[:])
	return d[0]
}

// The windows contain all executions of a rare block, and 1 % of the executions of a frequent
// block. The histogram of the windows is close to the histogram of all executions.
func TestBlockWindows(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 98))
		p := branchingProgram(rng)
		w, _ := randomRun(rng, p, 1+rng.IntN(40_000))
		whole := tracetest.Rows(p, w.steps...)
		spec := blocksAlone
		spec.Analyses |= analysis.Sites
		got, _ := analyseSequentially(t, spec, reading(p, whole, 4096))
		if got.Sites == nil {
			continue
		}
		exact := decodedRun(t, got).Reuse(got.Sites)
		sample := func(batch int) []blocks.SampledReuse {
			s, err := blocksample.New(blocksample.Options{LineBytes: 64, Seed: seed}, func() *trace.Program { return p })
			if err != nil {
				t.Fatal(err)
			}
			r, b := reading(p, whole, batch), trace.NewBatch(0)
			for r.Next(b) == nil {
				if err := s.Consume(b); err != nil {
					t.Fatal(err)
				}
			}
			return s.Result()[0].Sampled()
		}
		list := sample(4096)
		if again := sample(100); !reflect.DeepEqual(again, list) {
			t.Fatalf("seed %d: the sampled windows depend on the batches of the trace", seed)
		}
		for b := range exact {
			if b >= len(list) {
				if exact[b].References > 0 {
					t.Fatalf("seed %d: the result does not contain block %d", seed, b)
				}
				continue
			}
			s, n := &list[b], list[b].Executions
			switch {
			case n != exact[b].References: // each execution makes one reference
				t.Fatalf("seed %d: block %d ran %d times, want %d", seed, b, n, exact[b].References)
			case s.Windows < min(n, blocksample.LeastWindows) || s.Windows != s.Accesses() || n < 1000 && s.Windows > blocksample.LeastWindows:
				t.Fatalf("seed %d: a block with %[4]d executions has %[2]d sampled windows, and %[3]d sampled accesses", seed, s.Windows, s.Accesses(), n)
			case n <= blocksample.LeastWindows && blocks.Accuracy(&s.Reuse, &exact[b].Reuse) != 1:
				t.Fatalf("seed %d: the windows contain all executions of block %d, but their histogram is %v, want %v", seed, b, s.Reuse, exact[b])
			case n > 2000 && blocks.Accuracy(&s.Reuse, &exact[b].Reuse) < 0.5:
				t.Errorf("seed %d: the accuracy of block %d is %v, which is too low", seed, b, blocks.Accuracy(&s.Reuse, &exact[b].Reuse))
			}
		}
	}
}

func TestAccuracyOfReuseProfiles(t *testing.T) {
	a := &profile.Reuse{Cold: 1, Bins: []profile.BinCount{{Bin: 2, Count: 3}}}
	for _, c := range []struct {
		b    profile.Reuse
		want float64
	}{
		{*a, 1},
		{profile.Reuse{Cold: 10, Bins: []profile.BinCount{{Bin: 2, Count: 30}}}, 1},
		{profile.Reuse{Bins: []profile.BinCount{{Bin: 1, Count: 4}}}, 0},
		{profile.Reuse{Cold: 1, Bins: []profile.BinCount{{Bin: 1, Count: 3}}}, 0.25},
		{profile.Reuse{}, 0},
	} {
		if got := blocks.Accuracy(a, &c.b); got != c.want || got != blocks.Accuracy(&c.b, a) {
			t.Errorf("Accuracy(%v) = %v, want %v", c.b, got, c.want)
		}
	}
}
