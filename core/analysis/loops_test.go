package analysis_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// loopingSteps returns the steps of random loop nests over a few blocks. Sometimes, the result also
// contains steps that compress badly.
func loopingSteps(rng *rand.Rand, p *trace.Program, steps int) (list []tracetest.Step) {
	for len(list) < steps {
		if rng.IntN(6) == 0 {
			list = append(list, allocatingSteps(rng, p, 1+rng.IntN(100))...)
			continue
		}
		type walk struct {
			block        uint32
			start        trace.Addr
			outer, inner uint64
		}
		body := make([]walk, 1+rng.IntN(4))
		for i := range body {
			body[i] = walk{rng.Uint32N(7), 1<<12 + rng.Uint64N(2000), 8 * rng.Uint64N(20), 8 * rng.Uint64N(3)}
		}
		trips, inner, grows := 1+rng.Uint64N(20), 1+rng.Uint64N(12), rng.Uint64N(2)
		for i := range trips {
			for j := range inner + i*grows {
				for _, w := range body {
					s := tracetest.Step{Block: w.block, Thread: 1, Values: []uint64{w.start + i*w.outer + j*w.inner}}
					if p.Sites[w.block].Values() == 2 {
						s.Values = append(s.Values, 16)
					}
					list = append(list, s)
				}
			}
		}
	}
	return list
}

// expandedRows expands the loops of a profile, and returns the rows.
func expandedRows(t *testing.T, p *profile.Profile) *trace.Batch {
	t.Helper()
	tree, err := loops.Decode(p.Loops)
	if err != nil {
		t.Fatal(err)
	}
	all := &trace.Batch{Thread: []uint32{}, Site: []uint32{}, Arg: []uint64{}}
	e, b := tree.Expand(), trace.NewBatch(0)
	for {
		if err := e.Next(b); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all.Addr, all.Bytes, all.Kind = append(all.Addr, b.Addr...), append(all.Bytes, b.Bytes...), append(all.Kind, b.Kind...)
		all.Thread, all.Site, all.Arg = append(all.Thread, b.Thread...), append(all.Site, b.Site...), append(all.Arg, b.Arg...)
	}
}

// Expanding the loops of a run yields the rows that the spec selects, including all events.
func TestLoopsExpandToSelectedRecords(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 41))
		p := allocatingProgram()
		whole := tracetest.Rows(p, loopingSteps(rng, p, 1+rng.IntN(9000))...)
		spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Loops}
		if rng.IntN(2) == 0 {
			spec.Kinds, spec.Analyses = 1<<trace.Load|1<<trace.Store, analysis.Counters|analysis.Loops
		}
		profiled, _ := analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 1+rng.IntN(4096)))
		got := expandedRows(t, profiled)
		row := 0
		for i, k := range whole.Kind {
			if k.IsReference() && !spec.Kinds.Has(k) || k == trace.BareBlock { // readers report BareBlock rows in addition to block entries
				continue
			}
			if row == got.Len() || got.Kind[row] != k || got.Addr[row] != whole.Addr[i] || got.Bytes[row] != whole.Bytes[i] ||
				got.Thread[row] != whole.Thread[i] || got.Site[row] != whole.Site[i] || got.Arg[row] != whole.Arg[i] {
				t.Fatalf("seed %d: row %d of the expanded rows differs or is missing; there are %d rows", seed, i, got.Len())
			}
			row++
		}
		if row != got.Len() {
			t.Fatalf("seed %d: the loops expand to %d rows, want %d", seed, got.Len(), row)
		}
	}
}

// Loops do not change the results of other analyses.
func TestLoopsDoNotChangeOtherResults(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 41))
	p := allocatingProgram()
	whole := tracetest.Rows(p, loopingSteps(rng, p, 9000)...)
	for _, spec := range []analysis.Spec{{}, {Analyses: analysis.Sites | analysis.Counters}} {
		want, _ := analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 1000))
		spec.Analyses |= analysis.Loops
		got, _ := analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 1000))
		if len(got.Loops) == 0 || want.Loops != nil {
			t.Fatalf("the profile has %d bytes of loops, and %d bytes if loops are not requested; want more than 0, and 0", len(got.Loops), len(want.Loops))
		}
		got.Loops = nil
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Errorf("analyses %v: loop compression changes the results of other analyses", spec.Analyses)
		}
	}
}

// loopSpecs returns a random spec. Some of the selected analyses must read every row in order.
func loopSpecs(rng *rand.Rand) analysis.Spec {
	spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Loops}
	switch rng.IntN(4) {
	case 0:
		spec.Analyses |= analysis.Sites | analysis.Counters
	case 1:
		spec.Analyses |= analysis.Locality
	}
	if rng.IntN(3) == 0 {
		spec.Analyses |= analysis.Footprint
	}
	return spec
}

func TestLoopsWithAnyNumberOfWorkers(t *testing.T) {
	joined := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 42))
		p := allocatingProgram()
		steps := loopingSteps(rng, p, 1+rng.IntN(12_000))
		spec := loopSpecs(rng)
		file := container(t, rng, p, steps)
		want, _ := analyseSequentially(t, spec, readerOf(file))
		for _, workers := range []int{2, 3} {
			if got := toItsEnd(t, divided(t, spec, file, workers, 1+rng.IntN(4000), countingHelpers(&joined))); !bytes.Equal(got, want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers that read the trace themselves differs from the result of one worker; spec: %+v", seed, workers, spec)
			}
		}
		if rng.IntN(2) == 0 {
			spec.Limit = 1 + rng.Uint64N(8000)
		}
		whole := tracetest.Rows(p, steps...)
		want, _ = analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 4096))
		for _, workers := range []int{2, 3, 8} {
			if got, _ := analyseInParallel(t, spec, tracetest.NewProgramReader(p, whole, 4096), workers, 1+rng.IntN(4000)); !bytes.Equal(got.Encode(), want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers differs from the result of one worker; spec: %+v", seed, workers, spec)
			}
		}
	}
	if joined < 50 {
		t.Errorf("%d segments were joined, want at least 50", joined)
	}
}

// If a run with loops is saved at any position and resumed, its result equals the result of an
// uninterrupted run.
func TestLoopsResume(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 43))
		p := allocatingProgram()
		whole := tracetest.Rows(p, loopingSteps(rng, p, 1+rng.IntN(12_000))...)
		spec := loopSpecs(rng)
		want, _ := analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 4096))
		got := interrupted(t, rng, spec, 30, func() trace.Reader { return tracetest.NewProgramReader(p, whole, 1+rng.IntN(4096)) }, nil)
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the profile of an interrupted run differs from the profile of an uninterrupted run; spec: %+v", seed, spec)
		}
	}
}

// If a tree exceeds its memory limit, the tree is dropped for the rest of the run, at a row that
// depends neither on the number of workers nor on interruptions.
func TestLargeTreesAreDropped(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 44))
	whole := randomTrace(rng, 600_000)
	for _, c := range []struct {
		limit uint64
		gone  bool
	}{{1 << 20, true}, {1 << 30, false}} {
		spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Loops | analysis.Locality}
		defer analysis.LimitLoops(c.limit)()
		want, _ := analyseSequentially(t, spec, tracetest.NewReader(whole, 4096))
		if gone := want.Loops != nil && len(want.Loops) == 0; gone != c.gone {
			t.Fatalf("with a limit of %d bytes, the tree is dropped: %v (%d bytes), want %v", c.limit, gone, len(want.Loops), c.gone)
		}
		got := resumed(t, spec, 400, func() trace.Reader { return tracetest.NewReader(whole, 1000) })
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Errorf("with a limit of %d bytes, the result of a resumed run differs from the result of an uninterrupted run", c.limit)
		}
		if got, _ := analyseInParallel(t, spec, tracetest.NewReader(whole, 4096), 3, 50_000); !bytes.Equal(got.Encode(), want.Encode()) {
			t.Errorf("with a limit of %d bytes, the result of three workers differs from the result of one worker", c.limit)
		}
	}
}

// A run that starts to spill keeps the loops that it has found.
func TestLoopsInSpilledRun(t *testing.T) {
	whole := randomTrace(rand.New(rand.NewPCG(1, 45)), 9000)
	spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Loops}
	want, _ := analyseSequentially(t, spec, tracetest.NewReader(whole, 1000))
	r, err := analysis.NewRunner(spec, tracetest.NewReader(whole, 1000))
	if err == nil {
		err = r.Step()
	}
	if err != nil {
		t.Fatal(err)
	}
	now, ok := r.Spill(locality.Budget{Lines: 100, Shelf: new(stacktest.Shelf)})
	if !ok {
		t.Fatal("Spill returned false, want true")
	}
	for range 3 {
		if err := r.Step(); err != nil {
			t.Fatal(err)
		}
	}
	saved := r.Save()
	finish(t, r)
	if got := checked(t, r.Finish(profile.State{})); !bytes.Equal(got.Loops, want.Loops) || len(got.Loops) == 0 {
		t.Error("spilling changes the loops")
	}
	if now.Analyses&analysis.Loops == 0 || len(saved) == 0 {
		t.Errorf("the spec after spilling selects %v, want loops", now.Analyses)
	}
}

func TestLoopsErrors(t *testing.T) {
	whole := randomTrace(rand.New(rand.NewPCG(1, 46)), 100)
	if _, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Loops, Mergeable: true}, nil); err == nil {
		t.Error("a spec with loops and a mergeable profile is accepted, want an error")
	}
	r, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Loops}, tracetest.NewReader(whole, 10))
	if err == nil {
		err = r.Step()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := r.Profile(profile.State{})
	damaged, err := profile.Decode(p.Encode())
	if err != nil || !bytes.Equal(damaged.Loops, p.Loops) {
		t.Fatalf("the decoded profile has different loops, or could not be decoded: %v", err)
	}
}

func TestLoopCompressionAllocatesNothing(t *testing.T) {
	r, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Loops | analysis.Locality}, tracetest.Stream(10_000_000, tracetest.Sequential(1<<12)))
	if err != nil {
		t.Fatal(err)
	}
	allocatesNothing(t, r, 300)
}
