package analysis_test

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/branches"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// pathOf returns the call path of nested invocations according to the definition: a call to the
// last function on the path, or to the function before it, continues on the existing path of the
// called function.
func (w *walker) pathOf(frames []frame) (functions []uint32) {
	for _, f := range frames {
		functions, _ = calledPath(functions, w.p.Blocks[f.at].Function)
	}
	return functions
}

// furtherFunction stands for all functions whose calls exceed the limits.
const furtherFunction = 1 << 20

// calledPath returns the path of a function that is called from the given path, and the name of the
// counter that counts the call.
func calledPath(path []uint32, function uint32) (to []uint32, how string) {
	switch n := len(path); {
	case n > 0 && (path[n-1] == function || path[n-1] == furtherFunction):
		return path, "again"
	case n > 1 && path[n-2] == function:
		return path[:n-1], "back"
	case n >= branches.MostDepth:
		function = furtherFunction
	}
	return append(slices.Clone(path), function), "call"
}

func named(path []uint32) (text string) {
	for _, f := range path {
		text += "/" + strconv.Itoa(int(f))
	}
	return text
}

// pathCounts contains the counts of a path: calls (by counter), instructions, references, bytes,
// and accesses by bin (-1: cold).
type pathCounts struct {
	calls                           map[string]uint64
	instructions, references, bytes uint64
	bins                            map[int]uint64
}

func newPathCounts() *pathCounts {
	return &pathCounts{calls: map[string]uint64{}, bins: map[int]uint64{}}
}

func (c *pathCounts) equal(d *pathCounts) bool {
	return maps.Equal(c.calls, d.calls) && c.instructions == d.instructions && c.references == d.references && c.bytes == d.bytes && maps.Equal(c.bins, d.bins)
}

// pathsOf returns the counts of a profile by call path. pathsOf identifies functions by their
// source lines.
func pathsOf(t *testing.T, p *profile.Profile) map[string]*pathCounts {
	t.Helper()
	if p.Calls == nil {
		t.Fatal("the profile has no call paths")
	}
	names, all := make([]string, len(p.Calls.Paths)), map[string]*pathCounts{}
	for i := range p.Calls.Paths {
		at := &p.Calls.Paths[i]
		if i > 0 {
			names[i] = names[at.Parent] + "/" + strconv.Itoa(int(at.Line)-1)
			if at.Function == profile.FurtherPaths {
				names[i] = names[at.Parent] + "/" + strconv.Itoa(furtherFunction)
			}
		}
		c := newPathCounts()
		for how, n := range map[string]uint64{"call": at.Calls, "again": at.Again, "back": at.Back} {
			if n > 0 {
				c.calls[how] = n
			}
		}
		c.instructions, c.references, c.bytes = at.Instructions, at.References, at.Bytes
		if at.Reuse.Cold > 0 {
			c.bins[-1] = at.Reuse.Cold
		}
		for _, b := range at.Reuse.Bins {
			c.bins[int(b.Bin)] = b.Count
		}
		if all[names[i]] != nil {
			t.Fatalf("path %s occurs twice", names[i])
		}
		all[names[i]] = c
	}
	return all
}

// callingProgram returns a program like branchingProgram, but with line numbers for functions and
// with instructions in blocks.
func callingProgram(rng *rand.Rand) *trace.Program {
	p := branchingProgram(rng)
	for f := range p.Functions {
		p.Functions[f].Place = trace.Place{File: "src/a.c", Line: uint32(f) + 1}
	}
	for b := range p.Blocks {
		p.Blocks[b].Ops = []trace.Op{{Opcode: "add", Type: "i32", Count: uint32(b % 5)}, {Opcode: "load", Type: "i64", Count: p.Blocks[b].Sites}}
	}
	return p
}

var callSpec = analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Blocks | analysis.Sites}

// The test compares the counts of each call path with counts that are computed from the stack of
// active functions.
func TestCallPathsMatchTrace(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 101))
		p := callingProgram(rng)
		w, _ := randomRun(rng, p, 1+rng.IntN(3000))
		want := map[string]*pathCounts{"": newPathCounts()}
		at := func(path []uint32) *pathCounts {
			name := named(path)
			if want[name] == nil {
				want[name] = newPathCounts()
			}
			return want[name]
		}
		for _, c := range w.calling {
			to, how := calledPath(c.from, c.to)
			if how == "call" {
				at(to).calls[how]++
			} else {
				at(c.from).calls[how]++
			}
		}
		var model stacktest.Naive
		for i, s := range w.steps {
			c := at(w.where[i])
			for _, op := range p.Blocks[s.Block].Ops {
				c.instructions += uint64(op.Count)
			}
			for _, addr := range s.Values {
				c.references++
				c.bytes += 8
				bin := -1
				if d := distance(&model, addr/64); d != stack.Cold {
					bin = profile.SiteBin(d)
				}
				c.bins[bin]++
			}
		}
		got, _ := analyseSequentially(t, withEntriesForSomeSeeds(seed, callSpec), reading(p, tracetest.Rows(p, w.steps...), 1+rng.IntN(4096)))
		if got.Sites == nil {
			continue
		}
		all := pathsOf(t, got)
		for name, c := range want {
			if all[name] == nil || !all[name].equal(c) {
				t.Fatalf("seed %d: the counts of path %q are %+v, want %+v", seed, name, all[name], c)
			}
		}
		if len(all) != len(want) {
			t.Fatalf("seed %d: the profile has %d paths, want %d", seed, len(all), len(want))
		}
	}
}

// The call paths do not depend on the number of workers, on the grouping in which segments are
// joined, or on interruptions.
func TestCallPathsOfSegments(t *testing.T) {
	joined, torn := 0, 0
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 102))
		p := callingProgram(rng)
		w, _ := randomRun(rng, p, 1+rng.IntN(6000))
		whole := tracetest.Rows(p, w.steps...)
		spec := callSpec
		if seed%2 == 0 {
			spec.Analyses |= analysis.Sharing
		}
		want, _ := analyseSequentially(t, spec, reading(p, whole, 4096))
		for _, workers := range []int{2, 3, 8} {
			if got, _ := analyseInParallel(t, spec, reading(p, whole, 4096), workers, 1+rng.IntN(1000)); !bytes.Equal(got.Encode(), want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers differs from the result of one worker", seed, workers)
			}
		}
		file := container(t, rng, p, w.steps)
		want, _ = analyseSequentially(t, spec, readerOf(file))
		if got := toItsEnd(t, divided(t, spec, file, 3, 1+rng.IntN(1000), countingHelpers(&joined))); !bytes.Equal(got, want.Encode()) {
			t.Fatalf("seed %d: the result of workers that read the trace themselves differs from the result of one worker", seed)
		}
		again, _ := analyseSequentially(t, spec, reading(p, whole, 4096))
		got := interrupted(t, rng, spec, 5, func() trace.Reader { return reading(p, whole, 1+rng.IntN(500)) }, nil)
		if !bytes.Equal(got.Encode(), again.Encode()) {
			t.Fatalf("seed %d: interruptions change the result", seed)
		}
		spec.Mergeable = true
		want, _ = analyseSequentially(t, spec, reading(p, whole, 4096))
		if got, err := joinRandomSegments(t, rng, spec, p, whole); err != nil {
			torn++
		} else if !bytes.Equal(analysis.AsSegment(got).Encode(), analysis.AsSegment(want).Encode()) {
			t.Fatalf("seed %d: the joined result differs from the result of the whole trace", seed)
		}
	}
	if joined < 50 || torn > 30 {
		t.Errorf("%d segments were joined, want at least 50; the segments of %d of 80 traces could not be joined, want at most 30", joined, torn)
	}
}

// nestingProgram returns a program with the given number of functions, each of which may call any
// function, and a random run of the program. Each step is a call or a return. The function next
// receives the number of active functions, and returns the function to call, or -1 for a return.
// The third result contains the call path of each step.
func nestingProgram(rng *rand.Rand, functions, steps int, next func(active int) int) (p *trace.Program, run []tracetest.Step, paths [][]uint32, callers map[int][]uint32) {
	p = &trace.Program{Modules: []trace.Module{{Name: "a.c"}}}
	for f := range uint32(functions) {
		p.Functions = append(p.Functions, trace.Function{Name: "f" + strconv.Itoa(int(f)), First: 2 * f, Blocks: 2, Place: trace.Place{File: "a.c", Line: f + 1}})
		p.Blocks = append(p.Blocks,
			trace.Block{Function: f, Flags: trace.EntryBlock, Callee: "*", Successors: []uint32{2*f + 1}, FirstSite: 2 * f, Sites: 1, Ops: []trace.Op{{Opcode: "add", Type: "i32", Count: f + 1}}},
			trace.Block{Function: f, Flags: trace.ReturnBlock, FirstSite: 2*f + 1, Sites: 1})
		p.Sites = append(p.Sites, trace.Site{Kind: trace.Load, Bytes: 8, Block: 2 * f}, trace.Site{Kind: trace.Load, Bytes: 8, Block: 2*f + 1})
	}
	var active []uint32
	open := [][]uint32{nil}
	callers = map[int][]uint32{}
	for range steps {
		block := uint32(0)
		if f := next(len(active)); f >= 0 {
			path, _ := calledPath(open[len(open)-1], uint32(f))
			callers[len(run)] = open[len(open)-1]
			active, open, block = append(active, uint32(f)), append(open, path), 2*uint32(f)
			paths = append(paths, path)
		} else {
			paths = append(paths, open[len(open)-1])
			block = 2*active[len(active)-1] + 1
			active, open = active[:len(active)-1], open[:len(open)-1]
		}
		run = append(run, tracetest.Step{Block: block, Values: []uint64{1<<12 + 8*rng.Uint64N(300)}})
	}
	return p, run, paths, callers
}

// sameForWorkers analyses a run with one and with several workers, and returns its profile and the
// number of segments that were joined.
func sameForWorkers(t *testing.T, rng *rand.Rand, p *trace.Program, steps []tracetest.Step) (got *profile.Profile, joined int) {
	t.Helper()
	got, _ = analyseSequentially(t, callSpec, reading(p, tracetest.Rows(p, steps...), 4096))
	for _, workers := range []int{2, 3} {
		if shared, _ := analyseInParallel(t, callSpec, reading(p, tracetest.Rows(p, steps...), 4096), workers, 1000); !bytes.Equal(shared.Encode(), got.Encode()) {
			t.Errorf("the result of %d workers differs from the result of one worker", workers)
		}
	}
	resumed := interrupted(t, rng, callSpec, 8, func() trace.Reader { return reading(p, tracetest.Rows(p, steps...), 700) }, nil)
	if !bytes.Equal(resumed.Encode(), got.Encode()) {
		t.Error("interruptions change the result")
	}
	file := container(t, rng, p, steps)
	want, _ := analyseSequentially(t, callSpec, readerOf(file))
	if divided := toItsEnd(t, divided(t, callSpec, file, 3, 1000, countingHelpers(&joined))); !bytes.Equal(divided, want.Encode()) {
		t.Error("the result of workers that read the trace themselves differs from the result of one worker")
	}
	spec := callSpec
	spec.Mergeable = true
	if _, err := analyseSequentially(t, spec, reading(p, tracetest.Rows(p, steps...), 4096)); err != nil {
		t.Errorf("a run from the beginning ended with %v, want no error, because it has no limit", err)
	}
	spec.Start = 1
	r, err := analysis.NewRunner(spec, reading(p, tracetest.Rows(p, steps...), 4096))
	for err == nil {
		err = r.Step()
	}
	if !errors.Is(err, branches.ErrManyPaths) {
		t.Errorf("appending a segment that exceeds the limits = %v, want ErrManyPaths", err)
	}
	return got, joined
}

// If there are too many call paths, all further calls share one path, and every call is still
// counted.
func TestManyCallPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 103))
	p, steps, _, _ := nestingProgram(rng, 60, 80_000, func(active int) int {
		if active == 0 || active < 12 && rng.IntN(2) == 0 {
			return rng.IntN(60)
		}
		return -1
	})
	got, joined := sameForWorkers(t, rng, p, steps)
	if n := len(got.Calls.Paths); n < 16_000 || n > 17_000 {
		t.Errorf("the profile has %d paths, want 16,000 to 17,000", n)
	}
	if !slices.ContainsFunc(got.Calls.Paths, func(p profile.Path) bool { return p.Function == profile.FurtherPaths && p.References > 0 }) {
		t.Error("no path contains the calls beyond the limit")
	}
	if joined == 0 {
		t.Error("no segment was joined before the limit was reached")
	}
}

// According to the definition, a call that exceeds the maximum depth is counted on a path below the
// path of the caller.
func TestDeepCallPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 104))
	last, down := -1, 40
	p, steps, paths, callers := nestingProgram(rng, 4, 40_000, func(active int) int {
		if active == 0 {
			down = []int{5, 100, 300, 511, 512, 513, 700, 1500}[rng.IntN(8)]
		}
		if down > 0 {
			down--
			if last = (active + rng.IntN(50)/49) % 4; active < 600 || rng.IntN(3) > 0 {
				return last
			}
		}
		if down = 0; active > 400 && rng.IntN(200) == 0 {
			down = rng.IntN(300)
		}
		if active == 0 {
			return 0
		}
		return -1
	})
	want := map[string]*pathCounts{"": newPathCounts()}
	for i, path := range paths {
		name := named(path)
		if want[name] == nil {
			want[name] = newPathCounts()
		}
		want[name].references++
		want[name].instructions += uint64(p.Blocks[steps[i].Block].Function+1) * uint64(1-steps[i].Block%2)
		if from, calls := callers[i]; calls {
			if to, how := calledPath(from, steps[i].Block/2); how == "call" {
				want[named(to)].calls[how]++
			} else {
				want[named(from)].calls[how]++
			}
		}
	}
	got, joined := sameForWorkers(t, rng, p, steps)
	all, deep := pathsOf(t, got), 0
	for name, c := range want {
		at := all[name]
		if at == nil || at.references != c.references || at.instructions != c.instructions || !maps.Equal(at.calls, c.calls) {
			t.Fatalf("the counts of path %.100q are %+v, want %+v", name, at, c)
		}
		if strings.HasSuffix(name, strconv.Itoa(furtherFunction)) && c.references > 0 {
			deep++
		}
	}
	if len(all) != len(want) || deep == 0 || joined == 0 {
		t.Errorf("the profile has %d paths, want %d; %d of the paths contain further calls, and %d segments were joined, want at least one of each", len(all), len(want), deep, joined)
	}
}
