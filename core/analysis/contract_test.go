package analysis_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// witness is an analysis for tests that records how the framework calls it.
type witness struct {
	references, bytes, hash uint64

	pieces, appended, appendedRows, settled, results int
	concurrent, closed                               bool
	faults                                           []string
}

var (
	_ contract.Analysis      = (*witness)(nil)
	_ contract.LineCounter   = (*witness)(nil)
	_ contract.PieceConsumer = (*witness)(nil)
	_ contract.RowAppender   = (*witness)(nil)
	_ contract.Settler       = (*witness)(nil)
	_ contract.Concurrent    = (*witness)(nil)
)

func (w *witness) Takes() (events trace.Kinds, sites, pcs bool) { return trace.EventKinds, true, true }

// Consume hashes the rows. The hash does not depend on how the rows are divided into batches.
func (w *witness) Consume(b *trace.Batch) error {
	if w.closed || b.Len() == 0 {
		w.faults = append(w.faults, "Consume received an empty batch, or a batch after Close")
	}
	h := fnv.New64a()
	for i, k := range b.Kind {
		h.Reset()
		fmt.Fprint(h, w.hash, k, b.Addr[i], b.Bytes[i], b.Site != nil, b.Arg != nil && b.Arg[i] != 0)
		if w.hash = h.Sum64(); k.IsReference() {
			w.references, w.bytes = w.references+1, w.bytes+uint64(b.Bytes[i])
		}
	}
	return nil
}

func (w *witness) ConsumePiece(b *trace.Batch, from, end uint64) {
	if b.Len() != 1 || end <= from || end > uint64(b.Bytes[0]) {
		w.faults = append(w.faults, fmt.Sprintf("ConsumePiece received %d rows and the piece from %d to %d", b.Len(), from, end))
	}
	if w.pieces++; from == 0 {
		w.references++
	}
	w.bytes += end - from
}

func (w *witness) Append(next *profile.Profile) error {
	w.appended++
	before, behind := next.Segment.Start, next.Segment.Start+next.Totals.AllReferences()
	if w.references != before && w.references != behind {
		w.faults = append(w.faults, "a segment does not begin at the end of the previous rows")
	}
	return nil
}

func (w *witness) Reads() bool { return true }

func (w *witness) AppendRows(b *trace.Batch) error {
	w.appendedRows += b.Len()
	return w.Consume(b)
}

func (w *witness) Settle() error                     { w.settled++; return nil }
func (w *witness) Lines() uint64                     { return w.hash }
func (w *witness) RunConcurrently()                  { w.concurrent = true }
func (w *witness) Result(_ *profile.Profile, _ bool) { w.results++ }
func (w *witness) Close()                            { w.closed = true }
func (w *witness) Restore(*profile.Profile) error    { return nil }

// In every kind of run, the framework follows the contract when it calls the methods of a
// registered analysis.
func TestContract(t *testing.T) {
	var w *witness
	tag, undo := analysis.Register("witness", func() analysis.Analysis {
		w = &witness{}
		return w
	})
	defer undo()
	if got, err := analysis.ParseAnalyses("locality,witness"); err != nil || got != analysis.Locality|tag || got.String() != "locality,witness" {
		t.Fatalf("ParseAnalyses of the registered name = %v, %v", got, err)
	}
	if !slices.Contains(analysis.AnalysisNames(), "witness") || (analysis.Spec{}).Runs(tag) || !(analysis.Spec{Analyses: tag}).Runs(analysis.Sites) {
		t.Error("the additional analysis is part of Default, or selecting it excludes Default")
	}
	if err := (analysis.Spec{Analyses: tag, Mergeable: true}).Check(); err == nil {
		t.Error("Check accepts an analysis without segments for a mergeable profile")
	}

	spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: tag | analysis.Locality | analysis.Counters | analysis.Loops}
	p := allocatingProgram()
	var segments int
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 98))
		file := container(t, rng, p, allocatingSteps(rng, p, 4000))
		var want witness
		check := func(kind string, segments, concurrent bool) {
			t.Helper()
			if w.hash != want.hash || w.references != want.references || len(w.faults) > 0 {
				t.Errorf("seed %d, %s: the analysis received %d references, want %d, with hash %x, want %x; faults: %v", seed, kind, w.references, want.references, w.hash, want.hash, w.faults)
			}
			if w.settled != 1 || w.results != 1 || !w.closed || w.concurrent != concurrent || segments != (w.appended > 0) || segments != (w.appendedRows > 0) {
				t.Errorf("seed %d, %s: settled = %d, results = %d, want 1 and 1; closed = %t, want true; concurrent = %t, want %t; %d segments with %d rows were appended, want segments = %t", seed, kind, w.settled, w.results, w.closed, w.concurrent, concurrent, w.appended, w.appendedRows, segments)
			}
		}
		r, err := analysis.NewRunner(spec, readerOf(file))
		if err != nil {
			t.Fatal(err)
		}
		finish(t, r)
		if lines := r.Progress().Lines; lines != w.hash || lines == 0 {
			t.Errorf("seed %d: Progress reports %d lines, want %d, the count of the last LineCounter", seed, lines, w.hash)
		}
		r.Finish(profile.State{})
		want = *w
		check("one goroutine", false, false)

		toItsEnd(t, divided(t, spec, file, 3, 300, countingHelpers(&segments)))
		check("divided", w.appended > 0, false)
		segments += w.appended
		if _, err := analyseInParallel(t, spec, readerOf(file), 3, 300); err != nil {
			t.Fatal(err)
		}
		check("parallel", w.appended > 0, true)
		segments += w.appended

		if r, err = analysis.NewRunner(spec, readerOf(file)); err != nil {
			t.Fatal(err)
		}
		if err := r.Step(); err != nil {
			t.Fatal(err)
		}
		r.Spill(locality.Budget{Lines: 40, Shelf: new(stacktest.Shelf)})
		finish(t, r)
		r.Finish(profile.State{})
		check("spilled", false, false)
	}
	if segments < 10 {
		t.Errorf("%d segments were joined, want at least 10", segments)
	}
}

// A reference that touches very many bytes is passed to PieceConsumers in pieces.
func TestLongReferencesAreSplitForPieceConsumers(t *testing.T) {
	var w *witness
	tag, undo := analysis.Register("witness", func() analysis.Analysis {
		w = &witness{}
		return w
	})
	defer undo()
	whole := &trace.Batch{}
	for range 3 {
		whole.Append(trace.Load, 40, 8, 0, 0)
		whole.Append(trace.RangeWrite, 100, 10<<20, 0, 0)
	}
	run(t, analysis.Spec{Kinds: trace.AllKinds, Analyses: tag | analysis.Counters}, tracetest.NewReader(whole, 2))
	if w.references != 6 || w.bytes != 3*(8+10<<20) || w.pieces != 9 || len(w.faults) > 0 {
		t.Errorf("the analysis received %d references to %d bytes in %d pieces; faults: %v", w.references, w.bytes, w.pieces, w.faults)
	}
}

// TestEveryAnalysisInEveryKindOfRun checks, for every registered analysis, that the profiles of a
// run with helpers, a run on several processors, an interrupted run and joined segments are
// byte-identical to the profile of a plain run. For analyses without support for segments, joined
// segments are not tested.
func TestEveryAnalysisInEveryKindOfRun(t *testing.T) {
	for _, name := range analysis.AnalysisNames() {
		t.Run(name, func(t *testing.T) {
			tag, err := analysis.ParseAnalyses(name)
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(2) {
				everyRun(t, rand.New(rand.NewPCG(seed, 99)), analysis.Spec{Kinds: trace.AllKinds, Analyses: tag})
			}
		})
	}
}

// everyRun checks that all kinds of runs have the same result as a plain run.
func everyRun(t *testing.T, rng *rand.Rand, spec analysis.Spec) {
	t.Helper()
	same := func(kind string, got, want []byte) {
		t.Helper()
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the result differs from the result of a plain run", kind)
		}
	}
	p := allocatingProgram()
	steps := allocatingSteps(rng, p, 3000)
	file := container(t, rng, p, steps)
	want, _ := analyseSequentially(t, spec, readerOf(file))
	same("helpers", toItsEnd(t, divided(t, spec, file, 3, 1+rng.IntN(1000), analysis.Goroutines)), want.Encode())

	whole := tracetest.Rows(p, steps...)
	want, _ = analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 4096))
	got, _ := analyseInParallel(t, spec, tracetest.NewProgramReader(p, whole, 4096), 3, 1+rng.IntN(1000))
	same("several processors", got.Encode(), want.Encode())
	got = interrupted(t, rng, spec, 8, func() trace.Reader { return tracetest.NewProgramReader(p, whole, 1+rng.IntN(1000)) }, nil)
	same("interrupted", got.Encode(), want.Encode())

	if spec.Mergeable = true; spec.Check() != nil || spec.Analyses == analysis.Blocks {
		return // segments that contain random jumps cannot be joined: see branches.ErrTorn
	}
	want = analysis.AsSegment(resultOf(t, spec, tracetest.NewProgramReader(p, whole, 4096)))
	var parts []*profile.Profile
	for i := range 3 {
		lo, hi := whole.Len()*i/3, whole.Len()*(i+1)/3
		spec.Start = referencesBefore(whole, lo)
		parts = append(parts, resultOf(t, spec, tracetest.NewProgramReader(p, tracetest.Part(whole, lo, hi), 4096)))
	}
	joined, err := analysis.Append(spec, parts...)
	if err != nil {
		t.Fatal(err)
	}
	same("segments", joined.Encode(), want.Encode())
}
