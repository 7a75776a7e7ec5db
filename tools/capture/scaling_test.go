package capture

import (
	"bytes"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/blocks/scaling"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// TestScaling checks that runs of a compiled program with small inputs predict a run with a larger
// input. The instruction counts of every block and opcode must be exact, and the misses must be
// close.
func TestScaling(t *testing.T) {
	clang := newestClang(t)
	for _, name := range []string{"matmul", "jacobi"} {
		for level, sizes := range map[string][]int64{"-O0": {16, 24, 32, 40, 72}, "-O2": {32, 48, 64, 80, 144}} {
			t.Run(name+level, func(t *testing.T) {
				t.Parallel()
				source, err := filepath.Abs(filepath.Join("testdata", "scaling", name+".c"))
				if err != nil {
					t.Fatal(err)
				}
				traced := filepath.Join(t.TempDir(), "traced")
				traceCompile(t, clang, level, source, "-o", traced)
				at := func(n int64) scaling.Input {
					o := runProgram(t, nil, traced, strconv.FormatInt(n, 10))
					return scaling.Input{Name: name, Parameters: []int64{n}, Profile: sitesAndBlocks(t, filepath.Join(o.dir, "out.sgt"))}
				}
				small, large := sizes[:len(sizes)-1], sizes[len(sizes)-1]
				var inputs []scaling.Input
				for _, n := range small {
					inputs = append(inputs, at(n))
				}
				m, err := scaling.FitProgram([]string{"n"}, inputs)
				if err != nil {
					t.Fatal(err)
				}
				got, err := m.Predict([]int64{large})
				if err != nil {
					t.Fatal(err)
				}
				checkScaled(t, got, at(large).Profile)
			})
		}
	}
}

// TestScalingOfMisses checks the prediction of a larger power of two, at which columns conflict in
// the cache. The number of references must be exact, except for the merge sort, whose branches
// depend on the data: it must be within 1 %, or within 3 % if all merges are complete, unlike those
// of the runs. Where the loops are affine, misses must be within 5 %, and within their interval.
func TestScalingOfMisses(t *testing.T) {
	clang := newestClang(t)
	cache := hierarchy.Cache{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64}
	for _, k := range []struct {
		name   string
		small  []int64
		large  []int64
		affine bool
		most   float64 // maximum relative error of the number of references
	}{
		{"matmul", []int64{32, 48, 64, 80, 96}, []int64{160, 256}, true, 0},
		{"jacobi", []int64{32, 48, 64, 80, 96}, []int64{256}, true, 0},
		{"lu", []int64{32, 48, 64, 80, 96}, []int64{128}, true, 0},
		{"fft", []int64{8, 16, 32, 64}, []int64{128, 256}, false, 0},
		{"sort", []int64{1000, 1500, 2000, 2500, 3000}, []int64{10_000}, false, 0.01},
		{"sort", []int64{1000, 1500, 2000, 2500, 3000}, []int64{16_384}, false, 0.03},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			source, err := filepath.Abs(filepath.Join("testdata", "scaling", k.name+".c"))
			if err != nil {
				t.Fatal(err)
			}
			traced := filepath.Join(t.TempDir(), "traced")
			traceCompile(t, clang, "-O2", source, "-o", traced, "-lm")
			at := func(n int64) *profile.Profile {
				o := runProgram(t, nil, traced, strconv.FormatInt(n, 10))
				return profileOfTrace(t, filepath.Join(o.dir, "out.sgt"), analysis.Sites|analysis.Sets|analysis.Blocks|analysis.Loops)
			}
			var inputs []scaling.Input
			for _, n := range k.small {
				inputs = append(inputs, scaling.Input{Name: k.name, Parameters: []int64{n}, Profile: at(n)})
			}
			m, err := scaling.FitProgram([]string{"n"}, inputs)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range k.large {
				got, err := m.Predict([]int64{n})
				if err != nil {
					t.Fatal(err)
				}
				real := at(n)
				x, y := float64(got.Profile.Totals.AllReferences()), float64(real.Totals.AllReferences())
				if off := math.Abs(x-y) / y; off > k.most {
					t.Errorf("n = %d: %.0f references, want %.0f", n, x, y)
				}
				want, _, err := hierarchy.Predict(real, hierarchy.Hierarchy{Levels: []hierarchy.Cache{cache}})
				if err != nil {
					t.Fatal(err)
				}
				misses, f := want.Levels[0].Misses, got.Forecast(cache)
				t.Logf("n = %d: %.0f misses, from %.0f to %.0f; want %.0f; counted: %t", n, f.Misses, f.Low, f.High, misses, f.Counted)
				if f.Counted != k.affine || misses < f.Low || misses > f.High || k.affine && math.Abs(f.Misses-misses) > 0.05*misses {
					t.Errorf("n = %d: forecast %+v, want %.0f misses (%s)", n, f, misses, got.NoLoops)
				}
			}
		})
	}
}

func sitesAndBlocks(t *testing.T, file string) *profile.Profile {
	t.Helper()
	return profileOfTrace(t, file, analysis.Sites|analysis.Blocks|analysis.Counters)
}

func profileOfTrace(t *testing.T, file string, analyses analysis.Analyses) *profile.Profile {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := analysis.NewRunner(analysis.Spec{Analyses: analyses}, sgt.NewReader("out.sgt", bytes.NewReader(content), sgt.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return finish(t, r)
}

// checkScaled compares a prediction for a larger input with a real run.
func checkScaled(t *testing.T, got *scaling.Predicted, real *profile.Profile) {
	t.Helper()
	r, err := blocks.DecodeRun(real.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	for b, n := range r.Edges.Visits {
		if of := &got.Of[b]; of.Executions != n || of.Basis != scaling.Checked {
			t.Errorf("block %s: %d executions, predicted by the law %s (%s), want %d", r.Program.Blocks[b].Label, of.Executions, of.Law.String([]string{"n"}), of.Basis, n)
		}
	}
	system, err := blocks.FromEdges(got.Run.Program, got.Run.Edges)
	if err != nil {
		t.Fatal(err)
	}
	solution, err := system.Solve()
	if err != nil {
		t.Fatal(err)
	}
	foretold, counted := map[string]uint64{}, map[string]uint64{}
	list, whole := blocks.NewWork(got.Run.Program).Opcodes(solution, 0, len(got.Run.Program.Functions))
	for _, op := range list {
		foretold[op.Name] = op.Exact
	}
	for _, tally := range real.Counters.Tallies {
		if tally.Kind == profile.Opcodes {
			counted[tally.Name] = tally.Count
		}
	}
	if !whole || len(counted) < 10 || !maps.Equal(foretold, counted) {
		t.Errorf("instructions are %v, want %v", foretold, counted)
	}
	if got, want := got.Profile.Totals, real.Totals; got.References != want.References || got.Bytes != want.Bytes {
		t.Errorf("references %v and bytes %v, want %v and %v", got.References, got.Bytes, want.References, want.Bytes)
	}
	for _, lines := range []uint64{8, 64, 512, 4096} {
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64 * lines, LineBytes: 64}}}
		x, _, err := hierarchy.Predict(got.Profile, h)
		if err != nil {
			t.Fatal(err)
		}
		y, _, err := hierarchy.Predict(real, h)
		if err != nil {
			t.Fatal(err)
		}
		off := math.Abs(x.Levels[0].Misses-y.Levels[0].Misses) / y.Levels[0].Accesses
		t.Logf("%d lines: %.0f misses, want %.0f: %.2f points", lines, x.Levels[0].Misses, y.Levels[0].Misses, 100*off)
		if off > 0.03 {
			t.Errorf("cache of %d lines: %v misses predicted, want %v", lines, x.Levels[0].Misses, y.Levels[0].Misses)
		}
	}
	if !slices.IsSortedFunc(got.Profile.Sites.Code, func(x, y profile.Site) int { return profile.CompareSites(&x, &y) }) {
		t.Error("the sites in the predicted profile are not sorted")
	}
}
