package validate

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func machine(t *testing.T, lines ...string) (h hierarchy.Hierarchy) {
	t.Helper()
	for _, line := range lines {
		if err := h.Add(line); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// twoThreads returns a trace of a region with two threads. Each thread repeatedly stores to its own
// lines and then loads the lines of the other thread. Before the region, thread 0 loads all lines.
func twoThreads(lines int) *trace.Batch {
	b := trace.NewBatch(8 * lines * 4)
	b.NeedThread()
	for i := range 2 * lines {
		b.Append(trace.Load, trace.Addr(64*i), 8, 0, 0)
	}
	b.Append(trace.ParallelBegin, 0, 0, 0, 0)
	for turn := range 2 {
		for thread := range 2 {
			if turn > 0 {
				b.Append(trace.Barrier, 0, 0, uint32(thread), 0)
			}
			for i := range lines {
				if turn == 0 {
					b.Append(trace.Store, trace.Addr(64*(lines*thread+i)), 8, uint32(thread), 0)
				} else {
					b.Append(trace.Load, trace.Addr(64*(lines*(1-thread)+i)), 8, uint32(thread), 0)
				}
			}
		}
	}
	b.Append(trace.ParallelEnd, 0, 0, 0, 0)
	return b
}

func sourceOf(b *trace.Batch) predict.Source {
	return Truth(func() (trace.Reader, error) { return tracetest.NewReader(b, 100), nil })
}

// TestCompareEqualRuns compares a run with itself: there must be no errors, and the hit ratios must
// equal the hit ratios computed by hand. With 10 lines per thread, thread 0 loads 20 lines (all
// misses), stores to 10 of these lines (hits), and loads 10 lines that thread 1 has stored to
// (coherence misses, but hits if thread 0 runs alone). Thread 1 stores to 10 lines (misses) and
// loads 10 of thread 0's lines (misses).
func TestCompareEqualRuns(t *testing.T) {
	q := predict.Question{Cores: []int{2}, Hierarchy: machine(t, "L1=4KiB,full", "L2=8KiB,full,shared=all"), Stacks: true}
	row, err := Compare(q, sourceOf(twoThreads(10)), sourceOf(twoThreads(10)))
	if err != nil {
		t.Fatal(err)
	}
	if row.Cores != 2 || row.TrueReferences != 60 || row.PredictedReferences != 60 || len(row.Levels) != 2 {
		t.Fatalf("%+v", row)
	}
	first, last := &row.Levels[0], &row.Levels[1]
	if first.Shared || !last.Shared || first.Error() != 0 || first.Weighted() != 0 || last.Error() != 0 {
		t.Errorf("%+v", row)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"L1, mean", first.Truth.Mean, (10.0/40 + 0) / 2},
		{"L1, of all references", first.Truth.Global, 10.0 / 60},
		{"L1 without coherence, mean", first.Alone.Mean, (20.0/40 + 0) / 2},
		{"L1 without coherence, of all references", first.Alone.Global, 20.0 / 60},
		{"without coherence", first.CoherenceError(), 12.5},
		{"L2", last.Truth.Global, 40.0 / 60},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestCompareDifferentRuns checks that one additional miss of a thread changes the hit ratios by the
// corresponding number of percentage points.
func TestCompareDifferentRuns(t *testing.T) {
	other := twoThreads(10)
	other.Addr[0] += 1 << 20 // one additional store miss of thread 0
	q := predict.Question{Cores: []int{2}, Hierarchy: machine(t, "L1=4KiB,full", "L2=8KiB,full,shared=all")}
	row, err := Compare(q, sourceOf(other), sourceOf(twoThreads(10)))
	if err != nil {
		t.Fatal(err)
	}
	first, last := &row.Levels[0], &row.Levels[1]
	if want := -100.0 / 40 / 2; math.Abs(first.Error()-want) > 1e-12 {
		t.Errorf("the error of L1 is %v points, want %v", first.Error(), want)
	}
	if want := -100.0 / 60; math.Abs(first.Weighted()-want) > 1e-12 || math.Abs(last.Error()-want) > 1e-12 {
		t.Errorf("the error of L1, weighted by references, is %v points, and the error of L2 is %v points, want %v for both", first.Weighted(), last.Error(), want)
	}
}

// twoBlockRun returns a source of threads that are synthesised from a single-threaded run, which
// executes two blocks repeatedly in a region.
func twoBlockRun(executions int) predict.Source {
	p := &trace.Program{
		Functions: []trace.Function{{Name: "main"}},
		Blocks:    []trace.Block{{Sites: 1}, {FirstSite: 1, Sites: 2}, {FirstSite: 3, Sites: 1}, {FirstSite: 4, Sites: 1}},
		Sites: []trace.Site{
			{Kind: trace.ParallelBegin}, {Kind: trace.ParallelEnd, Block: 1}, {Kind: trace.Load, Bytes: 8, Block: 1},
			{Kind: trace.Load, Bytes: 8, Block: 2}, {Kind: trace.Load, Bytes: 8, Block: 3},
		},
	}
	steps := []tracetest.Step{{Block: 0, Values: []uint64{0x7fff_0000_0000}}}
	for i := range uint64(executions) {
		if steps = append(steps, tracetest.Step{Block: 2, Values: []uint64{0x10000 + 8*i}}); i < 1000 {
			steps = append(steps, tracetest.Step{Block: 3, Values: []uint64{0x80000 + 64*(i*i%61)}})
		}
	}
	whole := tracetest.Rows(p, append(steps, tracetest.Step{Block: 1, Values: []uint64{0x10000}})...)
	return func(o multicore.Options) (predict.Threads, error) {
		return multicore.Mimic(tracetest.NewProgramReader(p, whole, 0), o, nil)
	}
}

// TestSampling checks that all windows together have no sampling error, and that the error of a
// sample of the windows is within the confidence interval. SDCM must predict the same hit ratios
// from complete stacks as from all windows.
func TestSampling(t *testing.T) {
	q := predict.Question{Cores: []int{4}, Hierarchy: machine(t, "L1=1KiB,2", "L2=2KiB,4,shared=all"), Stacks: true, Options: multicore.Options{Division: multicore.ByRegion}}
	source := twoBlockRun(4000)
	row, err := Compare(q, source, source)
	if err != nil || row.Levels[0].HasSampled {
		t.Fatalf("%+v, %v", row, err)
	}
	q.Windows = []predict.WindowSampling{{Looked: blocksample.All, Weights: blocksample.Counted}}
	if row, err = Compare(q, source, source); err != nil {
		t.Fatal(err)
	}
	for _, l := range row.Levels {
		if !l.HasSampled || l.SamplingError() != 0 || l.SampledOff != 0 || l.WeightsError() != 0 {
			t.Errorf("%+v", l)
		}
		if l.Shared && math.Abs(l.SDCM.Global-l.Counted.Global) > 1e-4 {
			t.Errorf("SDCM predicts %v from stacks and %v from all windows, want equal hit ratios", l.SDCM.Global, l.Counted.Global)
		}
	}
	q.Windows = []predict.WindowSampling{{Weights: blocksample.Printed}}
	if row, err = Compare(q, source, source); err != nil {
		t.Fatal(err)
	}
	for _, l := range row.Levels {
		if off := l.SamplingError(); off == 0 || math.Abs(off) > 2*l.SampledOff || (l.WeightsError() == 0) != l.Shared { // each execution of a block makes one reference
			t.Errorf("the sampling error is %v points, want another value than 0 and at most twice %v; the error of the weights is %v, want 0 only for a shared cache", off, l.SampledOff, l.WeightsError())
		}
	}
	if l := row.Levels[0]; !(l.MeanOff > 0) || row.Levels[1].MeanOff != 0 {
		t.Errorf("%+v", row.Levels)
	}
}

// TestMeanOfSeveralRuns checks that the mean of several runs is the reference value, and that the
// difference between the runs is reported.
func TestMeanOfSeveralRuns(t *testing.T) {
	other := twoThreads(10)
	other.Addr[0] += 1 << 20 // one additional store miss of thread 0
	q := predict.Question{Cores: []int{2}, Hierarchy: machine(t, "L1=4KiB,full", "L2=8KiB,full,shared=all")}
	row, err := Compare(q, sourceOf(twoThreads(10)), sourceOf(twoThreads(10)), sourceOf(other), sourceOf(other), sourceOf(twoThreads(10)))
	if err != nil {
		t.Fatal(err)
	}
	first, last := &row.Levels[0], &row.Levels[1]
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"L1 is off", first.Error(), 100.0 / 40 / 4},
		{"L1 varies", first.Varies.Mean, 1.0 / 40 / 2},
		{"L2 is off", last.Error(), 100.0 / 60 / 2},
		{"L2 varies", last.Varies.Global, 1.0 / 60},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s by %v, want %v", c.name, c.got, c.want)
		}
	}
	if row.TrueReferences != 60 {
		t.Errorf("%d references, want 60", row.TrueReferences)
	}
}

func TestCompareErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	bad := func(multicore.Options) (predict.Threads, error) { return nil, broken }
	q := predict.Question{Cores: []int{2}, Hierarchy: machine(t, "L1=4KiB,full")}
	if _, err := Compare(q, bad, sourceOf(twoThreads(1))); err != broken {
		t.Error(err)
	}
	if _, err := Compare(q, sourceOf(twoThreads(1)), bad); err != broken {
		t.Error(err)
	}
}

const cachegrindFile = `desc: I1 cache: 8192 B, 64 B, 8-way associative
cmd: ./prog
events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw
fl=/build/prog.c
fn=main
12 100 0 0 40 4 1 10 2 1
13 7
fn=work
20 9 0 0 30 3 2 20 1 0
fl=/lib/runtime.c
fn=__kmp_wait
1 1000 0 0 500 400 300 100 90 80
summary: 1116 0 0 570 407 303 130 93 81
`

func TestReadCachegrind(t *testing.T) {
	own := func(file string) bool { return file == "/build/prog.c" }
	c, err := ReadCachegrind("cachegrind.out", strings.NewReader(cachegrindFile), own)
	if want := (Cachegrind{References: 100, FirstMisses: 10, LastMisses: 4}); err != nil || c != want {
		t.Errorf("ReadCachegrind = %+v, error %v, want %+v", c, err, want)
	}
	if c.First() != 0.9 || c.Last() != 0.96 {
		t.Errorf("rates %v and %v", c.First(), c.Last())
	}
	if none := (Cachegrind{}); none.First() != 1 || none.Last() != 1 {
		t.Error("a hit ratio without references is not 1")
	}
	for text, want := range map[string]string{
		"":                           `file "no events"`,
		"events: Ir\n":               "cachegrind.out:1: events \"Ir\"",
		cachegrindFile[:len("desc")]: `file "no events"`,
		strings.Replace(cachegrindFile, "12 100 0", "12 x 0", 1):             `cachegrind.out:6: count "x"`,
		strings.Replace(cachegrindFile, "13 7", "13 7 0 0 0 0 0 0 0 0 0", 1): `cachegrind.out:7: counts`,
	} {
		if _, err := ReadCachegrind("cachegrind.out", strings.NewReader(text), own); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadCachegrind of %q: error %v, want an error with %s", text, err, want)
		}
	}
}
