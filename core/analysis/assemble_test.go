package analysis_test

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// segmentOf analyses a single segment. The function begin must call Begin or BeginLaid.
func segmentOf(t *testing.T, spec analysis.Spec, source trace.Source, begin func(*analysis.Stretcher)) *profile.Profile {
	t.Helper()
	s := analysis.NewStretcher(spec, source)
	begin(s)
	var err error
	for err == nil {
		err = s.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return s.Segment(true).Profile
}

// joinedInTrees joins random pairs of neighbouring segments until only one segment is left.
func joinedInTrees(t *testing.T, rng *rand.Rand, spec analysis.Spec, list []*profile.Profile) *profile.Profile {
	t.Helper()
	for len(list) > 1 {
		i := rng.IntN(len(list) - 1)
		n := 2 + rng.IntN(min(4, len(list)-i-1))
		joined, err := analysis.JoinSegments(spec, list[i:i+n]...)
		if err != nil {
			t.Fatal(err)
		}
		again, err := profile.Decode(joined.Encode())
		if err != nil {
			t.Fatal(err)
		}
		list = append(append(append([]*profile.Profile{}, list[:i]...), again), list[i+n:]...)
	}
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func TestDividedSingleThreadedTraceEqualsRunner(t *testing.T) {
	planEqualsRunner(t, 120, func(uint32) uint32 { return 1 }, 3, 0)
}

// Traces with several threads can also be divided. Communication and other analyses without support
// for segments run separately over the whole trace.
func TestDividedMultiThreadedTraceEqualsRunner(t *testing.T) {
	planEqualsRunner(t, 40, func(thread uint32) uint32 { return 3 * (thread + 1) }, 0, 6)
}

func planEqualsRunner(t *testing.T, seeds uint64, thread func(uint32) uint32, leastBlocks, leastOrdered int) {
	t.Helper()
	goesOn := func(analysis.Progress) error { return nil }
	stretches, most, inOrder := 0, 0, 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 22))
		p := allocatingProgram()
		file := threadedContainer(t, rng, p, allocatingSteps(rng, p, 1+rng.IntN(12_000)), thread)
		spec := dividedSpecs(rng)
		spec.Mergeable = false
		if spec.Analyses == analysis.Default {
			for _, beside := range []analysis.Analyses{analysis.Loops, analysis.Regular, analysis.Footprint, analysis.Data} {
				if rng.IntN(3) == 0 {
					spec.Analyses |= beside
				}
			}
		}
		whole := readerOf(file)
		if outline, err := sgt.ReadOutline(bytes.NewReader(file), int64(len(file))); err == nil {
			whole.Expect(outline)
		}
		want, _ := analyseSequentially(t, spec, whole)
		source := sourceOf(t, file).Merged()
		plan, err := analysis.NewPlanBehind(spec, source, uint64(1+rng.IntN(4000)), uint64(1+rng.IntN(2000)))
		if err != nil {
			t.Fatal(err)
		}
		var list []*profile.Profile
		layouts, laid := plan.Layouts(source), rng.IntN(2) == 0
		for i, stretch := range plan.Stretches {
			begin := func(s *analysis.Stretcher) { s.Begin(stretch) }
			if plan.Moves && laid {
				moves, err := plan.MovesOf(source, i-1)
				if err != nil {
					t.Fatal(err)
				}
				layout := layouts.Behind(moves)
				begin = func(s *analysis.Stretcher) { s.BeginLaid(stretch, layout) }
				most = max(most, len(layout))
			}
			list = append(list, segmentOf(t, spec, source, begin))
		}
		var ordered []*profile.Profile
		plan.Shares = rng.IntN(5)
		for i := range plan.InOrderRuns() {
			inOrder++
			of, err := plan.InOrder(i, source.Open(0, trace.AllKinds), goesOn)
			if err == nil {
				of, err = profile.Decode(of.Encode())
			}
			if err != nil {
				t.Fatal(err)
			}
			ordered = append(ordered, of)
		}
		got, joined, err := plan.Finish(source.Open(0, trace.AllKinds), source, joinedInTrees(t, rng, spec, list), ordered, goesOn)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if joined {
			stretches += len(list)
		}
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the result of %d segments differs from the result of one run; joined: %v, spec: %+v", seed, len(list), joined, spec)
		}
	}
	if stretches < int(seeds) || most < leastBlocks || inOrder < leastOrdered {
		t.Errorf("%d segments were joined, the largest layout has %d memory blocks, and %d runs read the whole trace in order; want at least %d, %d and %d", stretches, most, inOrder, seeds, leastBlocks, leastOrdered)
	}
}

// If the requested length exceeds the length of the trace, the plan has one segment.
func TestPlanWithOneSegment(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 22))
	p := allocatingProgram()
	source := sourceOf(t, container(t, rng, p, allocatingSteps(rng, p, 5000)))
	for _, references := range []uint64{1 << 40, math.MaxUint64 - 1000, math.MaxUint64} {
		plan, err := analysis.NewPlanBehind(analysis.Spec{Analyses: analysis.Locality, Kinds: trace.AllKinds}, source, references, 100)
		if err != nil || len(plan.Stretches) != 1 {
			t.Errorf("the plan for segments of %d references has %d segments, error %v, want one segment", references, len(plan.Stretches), err)
		}
	}
}
