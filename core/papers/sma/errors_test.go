package sma

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/oracle/kernels"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

var update = flag.Bool("update", false, "write the measured errors to testdata")

// simulated expands a tree once and simulates it in several caches.
func simulated(t testing.TB, tree *loops.Tree, caches []misses.Cache) (accesses, missed []uint64) {
	t.Helper()
	var all []*simulate.Simulator
	for _, c := range caches {
		s, err := simulate.New(hierarchy.Hierarchy{Levels: []hierarchy.Cache{{
			Name: "L1", SizeBytes: c.Lines() * c.LineBytes, Ways: uint32(c.Ways), LineBytes: uint32(c.LineBytes),
		}}}, simulate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	rows, b := tree.Expand(), trace.NewBatch(4096)
	for {
		if err := rows.Next(b); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if err := s.Consume(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range all {
		run := s.Result().Levels[0].Run
		accesses = append(accesses, run.Accesses())
		missed = append(missed, run.Misses())
	}
	return accesses, missed
}

// thesisCaches returns some small caches, followed by the caches in chapter 5 of the thesis.
// The caches have 1 to 64 KB, 1 to 8 ways and 64-byte lines.
func thesisCaches() (list []misses.Cache) {
	for kb := uint64(1); kb <= 64; kb *= 2 {
		for ways := uint64(1); ways <= 8; ways *= 2 {
			list = append(list, misses.Cache{LineBytes: 64, Sets: kb * 16 / ways, Ways: ways})
		}
	}
	return list
}

// offBy contains SMA's errors for a cache in percent: the error of the latency; the error of the
// misses, relative to the misses (field misses); and the same error, relative to the accesses
// (field rate).
type offBy struct{ latency, misses, rate float64 }

// bound contains the largest errors that the thesis reports for a family of kernels in caches of 4
// KB or more, except for a share of outliers (Figures 5.6 to 5.18, in percent).
type bound struct {
	offBy
	outliers float64
}

var bounds = map[string]bound{
	"nested":                {offBy{2, 0.1, 0.1}, 0},
	"strides":               {offBy{2, 0.1, 0.1}, 0},
	"gemm":                  {offBy{8, 45, 4}, 0},
	"gemm, sum in register": {offBy{8, 45, 4}, 0},
	"blocked gemm":          {offBy{8, 40, 8}, 0.02}, // the thesis shows several spikes in which the error is 60 to 80 % of the misses
	// The thesis does not measure the following kernels. Their bounds are SMA's errors for the NAS
	// benchmarks, as reported in the thesis.
	"transpose": {offBy{9, 40, 4}, 0},
	"jacobi":    {offBy{9, 40, 4}, 0},
	"mvt":       {offBy{9, 40, 4}, 0.02}, // in one of 80 cases, the error is 41 % of the misses (0.9 % of the accesses)
	"trmm":      {offBy{9, 40, 4}, 0},
}

// TestErrors compares SMA with simulation. The differences must equal the table in testdata. SMA's
// errors must not exceed the errors that the thesis reports, and exact counts on the tree must have
// no errors.
func TestErrors(t *testing.T) {
	var table bytes.Buffer
	table.WriteString("# Kernel, bytes and ways of the cache: accesses, misses by simulation and by SMA, and the\n" +
		"# errors of SMA: latency with 3 and 12 cycles, misses, miss rate (of the accesses), in percent.\n")
	by := map[string][]offBy{}
	latency := Opteron()
	for _, k := range manyKernels() {
		tree, err := k.Nest.Build()
		if err != nil {
			t.Fatal(err)
		}
		accesses, missed := simulated(t, tree, thesisCaches())
		for i, c := range thesisCaches() {
			r, err := Analyze(tree, c)
			if err != nil {
				t.Fatal(err)
			}
			n, m := float64(accesses[i]), float64(missed[i])
			if math.Abs(r.Total.Accesses-n) > 1e-6*n {
				t.Errorf("%s, %v: %v accesses, want %v", k.Name, c, r.Total.Accesses, n)
			}
			if exact, err := misses.Run(tree, c); err != nil || exact.Total.Misses != missed[i] {
				t.Errorf("%s, %v: exact counts on the tree %+v, error %v, want %d misses", k.Name, c, exact, err, missed[i])
			}
			e := offBy{
				100 * (latency.Mean(n, r.Total.Misses)/latency.Mean(n, m) - 1),
				100 * (r.Total.Misses/m - 1),
				100 * (r.Total.Misses - m) / n,
			}
			fmt.Fprintf(&table, "%-28s %6d %d %8d %8d %8.0f %+7.1f %+7.1f %+6.1f\n", k.Name, c.Lines()*64, c.Ways, accesses[i], missed[i], r.Total.Misses, e.latency, e.misses, e.rate)
			if c.Lines() >= 64 {
				by[k.Family] = append(by[k.Family], e)
			}
		}
	}
	for family, list := range by {
		b, out := bounds[family], 0
		for _, e := range list {
			if math.Abs(e.latency) > b.latency || math.Abs(e.misses) > b.misses || math.Abs(e.rate) > b.rate {
				out++
			}
		}
		if share := float64(out) / float64(len(list)); share > b.outliers {
			t.Errorf("%s: in %d of %d caches, the errors exceed the bounds %v (in percent)", family, out, len(list), b.offBy)
		}
		most := offBy{}
		for _, e := range list {
			most = offBy{max(most.latency, math.Abs(e.latency)), max(most.misses, math.Abs(e.misses)), max(most.rate, math.Abs(e.rate))}
		}
		t.Logf("%s: off by at most %.1f %% of the latency, %.1f %% of the misses, %.1f %% of the accesses", family, most.latency, most.misses, most.rate)
	}
	const name = "testdata/errors.txt"
	if *update {
		if err := os.WriteFile(name, table.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got := bytes.Split(table.Bytes(), []byte("\n"))
	for i, line := range bytes.Split(want, []byte("\n")) {
		if i >= len(got) || !bytes.Equal(got[i], line) {
			t.Fatalf("%s:%d: got %s, want %s; to rewrite the file, run go test -update", name, i+1, got[min(i, len(got)-1)], line)
		}
	}
}

func manyKernels() (list []kernels.Kernel) {
	for depth := 1; depth <= 6; depth++ {
		list = append(list, nested(depth))
	}
	for _, s := range [][3]uint64{{20, 192, 3}, {100, 64, 8}, {300, 128, 8}, {64, 512, 8}, {77, 320, 8}} {
		list = append(list, kernels.Strides(s[0], s[1], s[2]))
	}
	for _, n := range []uint64{16, 32, 48, 64, 80, 100} {
		list = append(list, kernels.Gemm(n))
	}
	for _, n := range []uint64{16, 32, 64, 100} {
		list = append(list, kernels.GemmSum(n))
	}
	for _, n := range [][2]uint64{{16, 4}, {32, 8}, {64, 8}, {64, 16}, {96, 8}, {100, 10}} {
		list = append(list, kernels.BlockedGemm(n[0], n[1]))
	}
	for _, n := range []uint64{32, 64, 100, 128} {
		list = append(list, kernels.Transpose(n))
	}
	for _, n := range []uint64{16, 32, 64, 100} {
		list = append(list, kernels.Trmm(n))
	}
	for _, n := range []uint64{18, 34, 66, 102} {
		list = append(list, kernels.Jacobi(n, 3))
	}
	for _, n := range []uint64{32, 64, 100, 200} {
		list = append(list, kernels.MVT(n))
	}
	return list
}

// nested returns a nest of the given depth. Each loop has 8 iterations, so the nest accesses
// 8^depth doubles.
func nested(depth int) kernels.Kernel {
	steps := make([]int64, depth)
	step := int64(8)
	for i := range steps {
		steps[depth-1-i] = step
		step *= 8
	}
	it := loops.Leaf(loops.Reference{Site: 1, Bytes: 8, Kind: trace.Load}, kernels.Base, steps...)
	for range depth {
		it = loops.Loop(8, it)
	}
	return kernels.Kernel{Family: "nested", Name: "nested " + strconv.Itoa(depth), Nest: loops.Nest{Items: []loops.Item{it}}}
}
