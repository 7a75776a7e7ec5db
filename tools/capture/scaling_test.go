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

func sitesAndBlocks(t *testing.T, file string) *profile.Profile {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Sites | analysis.Blocks | analysis.Counters}, sgt.NewReader("out.sgt", bytes.NewReader(content), sgt.Options{}))
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
