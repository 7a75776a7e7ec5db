package analysis_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// partialWitness is a witness that stops reading after a few rows.
type partialWitness struct {
	witness
	most int // maximum number of rows that the analysis reads
	rows int
}

func (w *partialWitness) Consume(b *trace.Batch) error {
	n := min(b.Len(), w.most-w.rows)
	if w.rows += n; n == 0 {
		return nil
	}
	return w.witness.Consume(b.View(&trace.Batch{}, 0, n))
}

func (w *partialWitness) AppendRows(b *trace.Batch) error { return w.Consume(b) }
func (w *partialWitness) Reads() bool                     { return w.rows < w.most }
func (w *partialWitness) Append(*profile.Profile) error   { return nil }

// TestOmittedEventsDoNotChangeResult checks that the result of a run whose helpers omit events is
// byte-identical to the result of a run that reads all events, even if helpers end segments within
// chunks. (The run itself also omits these events as soon as no analysis needs all rows.)
func TestOmittedEventsDoNotChangeResult(t *testing.T) {
	most := 0
	var w *partialWitness
	tag, undo := analysis.Register("weary", func() analysis.Analysis {
		w = &partialWitness{most: most}
		return w
	})
	defer undo()
	joined := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 25))
		spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: tag | analysis.Blocks | analysis.Counters}
		var file []byte
		if rng.IntN(2) == 0 {
			p := branchingProgram(rng)
			walk, _ := randomRun(rng, p, 1+rng.IntN(12_000))
			file = container(t, rng, p, walk.steps)
		} else {
			p := allocatingProgram()
			file = container(t, rng, p, loopingSteps(rng, p, 1+rng.IntN(12_000)))
			if spec.Analyses |= analysis.Sites; rng.IntN(2) == 0 {
				spec.Analyses = tag | analysis.Blocks | analysis.Loops | analysis.Locality
			}
		}
		most = rng.IntN(8000)
		want, _ := analyseSequentially(t, spec, readerOf(file))
		hash := w.hash
		for _, segment := range []int{0, 1 + rng.IntN(1000), 1 + rng.IntN(4000)} {
			helpers := countingHelpers(&joined)
			if segment == 0 {
				helpers = func(n int, spec analysis.Spec, source trace.Source) func(func()) []analysis.Helper {
					return func(func()) []analysis.Helper {
						return []analysis.Helper{&unreliableHelper{spec: spec, source: source, rng: rng}}
					}
				}
				segment = 1 + rng.IntN(2000)
			}
			source, r := sourceOf(t, file), readerOf(file)
			d, err := analysis.NewDivided(spec, r, r, source, analysis.DividedOptions{
				Helpers: helpers(1+rng.IntN(3), spec, source), SegmentReferences: segment, Narrow: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.State().EncodeTo(io.Discard); err == nil {
				t.Fatalf("seed %d: encoding the state of a narrow run returned no error", seed)
			}
			if got := toItsEnd(t, d); !bytes.Equal(got, want.Encode()) || w.hash != hash || len(w.faults) > 0 {
				t.Fatalf("seed %d: the result of a narrow run differs from the result of a run that reads all events; faults: %v", seed, w.faults)
			}
		}
	}
	if joined < 50 {
		t.Errorf("%d segments were joined, want at least 50", joined)
	}
}

// TestCutBetweenChunks checks that Cut makes a segment end at the end of the current chunk, with
// all references of the chunk.
func TestCutBetweenChunks(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 26))
		p := allocatingProgram()
		source := sourceOf(t, container(t, rng, p, allocatingSteps(rng, p, 1+rng.IntN(12_000))))
		chunks := source.Chunks()
		first := rng.IntN(len(chunks))
		stretch := analysis.Stretch{From: trace.Position{Chunk: chunks[first].At}, To: trace.Position{Chunk: trace.AtEnd}, Whole: true}
		s := analysis.NewStretcher(analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Locality}, source)
		s.Begin(stretch)
		err := error(nil)
		for range rng.IntN(8) {
			if err = s.Step(); err != nil {
				break
			}
		}
		for s.Cut(); err == nil; {
			err = s.Step()
		}
		if err != io.EOF {
			t.Fatal(seed, err)
		}
		segment, want := s.Segment(true), uint64(0)
		for _, c := range chunks[first:] {
			if c.At < segment.To.Chunk {
				want += c.References
			}
		}
		if got := segment.Profile.Totals.AllReferences(); got != want || got == 0 || segment.To.Rows != 0 {
			t.Errorf("seed %d: the segment has %d references, want %d, and ends at %+v", seed, got, want, segment.To)
		}
	}
}
