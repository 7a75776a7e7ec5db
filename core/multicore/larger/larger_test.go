package larger_test

import (
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/larger"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// sweepRun returns a single-threaded run with three regions. Each region executes a block n times.
// The block loads an element of an array of n lines, and an element of a small array.
func sweepRun(n uint64) predict.Source {
	p := &trace.Program{
		Functions: []trace.Function{{Name: "main", Blocks: 3}},
		Blocks:    []trace.Block{{Sites: 1}, {FirstSite: 1, Sites: 2}, {FirstSite: 3, Sites: 2}},
		Sites: []trace.Site{
			{Kind: trace.ParallelBegin}, {Kind: trace.ParallelEnd, Block: 1}, {Kind: trace.Load, Bytes: 8, Block: 1},
			{Kind: trace.Load, Bytes: 8, Block: 2}, {Kind: trace.Load, Bytes: 8, Block: 2},
		},
	}
	var steps []tracetest.Step
	for range 3 {
		steps = append(steps, tracetest.Step{Block: 0, Values: []uint64{0x7fff_0000_0000}})
		for i := range n {
			steps = append(steps, tracetest.Step{Block: 2, Values: []uint64{0x10_0000 + 64*i, 0x1000 + 64*(i%4)}})
		}
		steps = append(steps, tracetest.Step{Block: 1, Values: []uint64{0x9000}})
	}
	whole := tracetest.Rows(p, steps...)
	return func(o multicore.Options) (predict.Threads, error) {
		return multicore.Mimic(tracetest.NewProgramReader(p, whole, 0), o, nil)
	}
}

func run(t *testing.T, q predict.Question, open predict.Source) []predict.Result {
	t.Helper()
	r, err := predict.New(larger.Ask(q), open)
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return r.Results()
}

// TestPredictionEqualsRun checks that the predicted counts and hit ratios equal the results of
// a run if distances continue to grow as before. Predictions with constant distances are too
// optimistic if the small inputs fit in the cache.
func TestPredictionEqualsRun(t *testing.T) {
	q := predict.Question{Cores: []int{1, 2, 4}, Options: multicore.Options{Division: multicore.ByRegion}}
	for _, line := range []string{"L1=2KiB,full", "L2=16KiB,8,shared=all"} {
		if err := q.Hierarchy.Add(line); err != nil {
			t.Fatal(err)
		}
	}
	var inputs []larger.Input
	for _, n := range []uint64{16, 32, 48, 64} {
		inputs = append(inputs, larger.Input{Name: "small", Parameters: []int64{int64(n)}, Results: run(t, q, sweepRun(n))})
	}
	found, err := larger.Predict([]string{"n"}, inputs, []int64{480})
	if err != nil {
		t.Fatal(err)
	}
	tooHigh := 0
	for i, real := range run(t, q, sweepRun(480)) {
		if found[i].Cores != real.Cores || len(found[i].Levels) != 2 {
			t.Fatalf("%+v", found[i])
		}
		for k, l := range found[i].Levels {
			want := &real.Windowed[0][k]
			if math.Abs(l.Accesses-real.Levels[0].Accesses) > 1e-6 || l.Caches != want.Caches || l.Cache != q.Hierarchy.Levels[k] {
				t.Errorf("%d cores: %+v, want %v accesses", real.Cores, l, real.Levels[0].Accesses)
			}
			if math.Abs(l.Scaled-want.Global) > 0.02 {
				t.Errorf("%d cores, %s: the hit ratio with extrapolated distances is %v, want %v (with unchanged distances, it is %v)", real.Cores, l.Cache.Name, l.Scaled, want.Global, l.Kept)
			}
			if l.Kept > want.Global+0.05 {
				tooHigh++
			}
		}
	}
	if tooHigh == 0 {
		t.Error("predictions with constant distances are as accurate as with extrapolated distances, so the test does not distinguish them")
	}
}

// TestErrors checks the errors that are returned for too few runs, and for runs of different
// programs.
func TestErrors(t *testing.T) {
	q := predict.Question{Cores: []int{2}, Hierarchy: hierarchy.Hierarchy{}, Options: multicore.Options{Division: multicore.ByRegion}}
	if err := q.Hierarchy.Add("L1=1KiB,2"); err != nil {
		t.Fatal(err)
	}
	one := larger.Input{Name: "one", Parameters: []int64{8}, Results: run(t, q, sweepRun(8))}
	two := larger.Input{Name: "two", Parameters: []int64{16}, Results: run(t, q, sweepRun(16))}
	other := two
	other.Results = append([]predict.Result(nil), two.Results...)
	program := *other.Results[0].Header.Program
	program.Blocks = program.Blocks[:2]
	other.Results[0].Header.Program = &program
	plain := two
	plain.Results = append([]predict.Result(nil), two.Results...)
	plain.Results[0].Stacks = nil
	fewer := two
	fewer.Results = nil
	for want, c := range map[string]struct {
		inputs []larger.Input
		at     int64
	}{
		"one run":                      {[]larger.Input{one}, 9},
		"a different program or build": {[]larger.Input{one, other}, 9},
		"different cores or caches":    {[]larger.Input{one, plain}, 9},
		"no results":                   {[]larger.Input{fewer, fewer}, 9},
		"different numbers of cores":   {[]larger.Input{one, fewer}, 9},
		"runs with different inputs":   {[]larger.Input{one, one}, 9},
		"a value from −2^40 to 2^40":   {[]larger.Input{one, two}, 1 << 50},
	} {
		if _, err := larger.Predict([]string{"n"}, c.inputs, []int64{c.at}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
