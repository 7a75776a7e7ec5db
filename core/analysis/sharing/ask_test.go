package sharing_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// asker requests, before each access, the depth of the accessed line or of a neighbouring line on
// the stacks of some cores. asker compares the answers with plain lists that contain holes.
type asker struct {
	t         rapid.TB
	analysis  *sharing.Analysis
	holes     []stacktest.Holes // indexed by core
	want      []uint32
	questions int
}

// Ask implements sharing.Asker.
func (a *asker) Ask(accesses *sharing.Accesses, q []sharing.Question) []sharing.Question {
	a.want = a.want[:0]
	appeared := len(a.analysis.Threads())
	for i, x := range accesses.Lines {
		for n := range i % 3 {
			about, line := (int(x)+i*n)%appeared, x^trace.Line(n)
			q = append(q, sharing.Question{Access: uint32(i), Core: uint8(about), Line: line})
			depth := a.holes[about].Do(stacktest.Event{Op: stack.AskOp, Line: line})
			a.want = append(a.want, uint32(depth)) // -1 represents stack.Cold
		}
		row := accesses.First + i
		if accesses.Rows != nil {
			row = accesses.First + int(accesses.Rows[i])
		}
		a.access(int(accesses.Cores[i]), x, accesses.Batch.Kind[row])
	}
	a.questions += len(q)
	return q
}

func (a *asker) access(core int, x trace.Line, kind trace.Kind) {
	for other := range a.holes {
		if other != core && (kind == trace.Store || kind == trace.Modify || kind == trace.RangeWrite) {
			a.holes[other].Do(stacktest.Event{Op: stack.LoseOp, Line: x})
		}
	}
	a.holes[core].Do(stacktest.Event{Op: stack.AccessOp, Line: x})
}

// Answer implements sharing.Asker.
func (a *asker) Answer(depths []uint32) {
	if !slices.Equal(depths, a.want) {
		a.t.Fatalf("the answers are %v, want %v", depths, a.want)
	}
}

func TestDepthsForOtherAnalysesEqualLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := multithreaded(100).Draw(t, "trace")
		threads, coreOf := ascending(whole)
		pass := locality.New([]uint32{64}, 0, false, stack.AllSetNumbers)
		a := sharing.New(sharing.Options{LineBytes: []uint32{64}}, pass)
		asks := &asker{t: t, analysis: a, holes: make([]stacktest.Holes, len(threads))}
		a.Feed(64, asks)
		rows := rapid.IntRange(1, 50).Draw(t, "rows")
		for lo := 0; lo < whole.Len(); lo += rows {
			b := tracetest.Part(whole, lo, min(lo+rows, whole.Len()))
			for _, err := range []error{a.Consume(b), pass.Consume(b)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if len(a.Threads()) == 1 { // if there is only one thread, the analysis never calls Ask
				for _, x := range accessesOf(b, 64, coreOf) {
					asks.access(0, x.line, trace.Load)
				}
			}
		}
		if len(threads) == 1 && asks.questions > 0 {
			t.Fatal("Ask was called although there is only one core")
		}
	})
}

// When all lines are known, the analysis of a batch allocates no memory.
func TestNoAllocations(t *testing.T) {
	b := &trace.Batch{Thread: []uint32{}}
	for i := range 20_000 {
		b.Append(trace.Kind(i/3%2), uint64(i*i%7919)*64, 8, uint32(i/40%6), 0)
	}
	pass := locality.New([]uint32{64}, 0, false, stack.AllSetNumbers)
	a := sharing.New(sharing.Options{LineBytes: []uint32{64}, Domains: [][]uint32{{0, 1, 2}}}, pass)
	again := func() {
		for _, err := range []error{a.Consume(b), pass.Consume(b)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 40 {
		again()
	}
	if n := testing.AllocsPerRun(5, again); n > 2 { // the histograms occasionally allocate memory
		t.Errorf("%d references cause %v allocations, want at most 2", b.Len(), n)
	}
}
