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

// joinedInTrees joins random neighbouring segments until at most the given number of segments is left.
func joinedInTrees(t *testing.T, rng *rand.Rand, spec analysis.Spec, list []*profile.Profile, left int) []*profile.Profile {
	t.Helper()
	for len(list) > left {
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
	return list
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
		some := joinedInTrees(t, rng, spec, list, 1+rng.IntN(4))
		got, joined, err := plan.Finish(source.Open(0, trace.AllKinds), source, analysis.Sequence(some...), goesOn)
		if err == nil {
			got, err = profile.Decode(got.Encode())
		}
		if err == nil {
			err = plan.AddOrdered(got, ordered)
		}
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

// If a later segment cannot be appended, because another thread appears that the trace's tables do not
// list, Finish analyses the whole trace.
func TestFinishWithThreadInLaterSegment(t *testing.T) {
	var file bytes.Buffer
	w := sgt.NewImporter(&file, nil)
	rng := rand.New(rand.NewPCG(1, 28))
	for i := range 20 {
		b := trace.NewBatch(500)
		for range 500 {
			b.Kind, b.Addr, b.Bytes = append(b.Kind, trace.Load), append(b.Addr, 64*rng.Uint64N(300)), append(b.Bytes, 8)
			b.Thread = append(b.Thread, uint32(1+i/15))
		}
		if err := w.Write(b, trace.Header{Threads: true, Sizes: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(sgt.End{}); err != nil {
		t.Fatal(err)
	}
	spec := analysis.Spec{Analyses: analysis.Default}
	want, _ := analyseSequentially(t, spec, readerOf(file.Bytes()))
	source := sourceOf(t, file.Bytes()).Merged()
	plan, err := analysis.NewPlanBehind(spec, unlisted{source}, 2000, 500)
	if err != nil {
		t.Fatal(err)
	}
	var list []*profile.Profile
	for _, stretch := range plan.Stretches {
		list = append(list, segmentOf(t, spec, source, func(s *analysis.Stretcher) { s.Begin(stretch) }))
	}
	got, joined, err := plan.Finish(source.Open(0, trace.AllKinds), source, analysis.Sequence(list...), func(analysis.Progress) error { return nil })
	if err != nil || joined || len(list) < 4 {
		t.Fatalf("%d segments; joined: %v, error %v; want at least 4 segments that are not joined", len(list), joined, err)
	}
	if !bytes.Equal(got.Encode(), want.Encode()) {
		t.Error("the profile differs from the profile of one run")
	}
}

// unlisted is a source whose tables list no threads.
type unlisted struct{ trace.Source }

func (s unlisted) Open(chunk uint64, kinds trace.Kinds) trace.Mover {
	return unlistedReader{s.Source.Open(chunk, kinds)}
}

type unlistedReader struct{ trace.Mover }

func (r unlistedReader) Header() trace.Header {
	h := r.Mover.Header()
	h.Program = nil
	return h
}
