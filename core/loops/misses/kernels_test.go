package misses

import (
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// A program builds nests that access doubles. Each reference has a separate site.
type program struct{ sites uint32 }

func (p *program) ref(kind trace.Kind, addr trace.Addr, steps []int64) loops.Item {
	p.sites++
	return loops.Leaf(loops.Reference{Site: p.sites, Bytes: 8, Kind: kind}, addr, steps...)
}

func (p *program) load(addr trace.Addr, steps ...int64) loops.Item {
	return p.ref(trace.Load, addr, steps)
}

func (p *program) store(addr trace.Addr, steps ...int64) loops.Item {
	return p.ref(trace.Store, addr, steps)
}

// upTo returns a loop whose trip count is an affine function of the induction variables of the
// surrounding loops.
func upTo(trips int64, steps []int64, body ...loops.Item) loops.Item {
	return loops.Item{Trips: uint64(trips), Steps: steps, Body: body}
}

func build(t testing.TB, items ...loops.Item) *loops.Tree {
	t.Helper()
	tree, err := (&loops.Nest{Items: items}).Build()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

const arrayA = 0x10000000

// product returns the tree of a matrix product. Its innermost loop loads A[i][k], B[k][j] and
// C[i][j], and stores C[i][j]. The argument row is the distance between rows in bytes.
func product(t testing.TB, n uint64, row int64) *loops.Tree {
	var p program
	b, c := arrayA+n*uint64(row), arrayA+2*n*uint64(row)
	return build(t, loops.Loop(n, loops.Loop(n, loops.Loop(n,
		p.load(arrayA, row, 0, 8), p.load(b, 0, 8, row), p.load(c, row, 8), p.store(c, row, 8)))))
}

func blockedProduct(t testing.TB, n, side uint64) *loops.Tree {
	var p program
	row, b, c := int64(8*n), arrayA+8*n*n, arrayA+16*n*n
	in, down, blocks := int64(8*side), row*int64(side), n/side
	return build(t, loops.Loop(blocks, loops.Loop(blocks, loops.Loop(blocks, loops.Loop(side, loops.Loop(side, loops.Loop(side,
		p.load(arrayA, down, 0, in, row, 0, 8), p.load(b, 0, in, down, 0, 8, row),
		p.load(c, down, in, 0, row, 8), p.store(c, down, in, 0, row, 8))))))))
}

func transpose(t testing.TB, n uint64) *loops.Tree {
	var p program
	row := int64(8 * n)
	return build(t, loops.Loop(n, loops.Loop(n, p.load(arrayA, row, 8), p.store(arrayA+8*n*n, 8, row))))
}

// triangularProduct returns the tree of a product A·B with a lower triangular A.
func triangularProduct(t testing.TB, n uint64) *loops.Tree {
	var p program
	row, b, c := int64(8*n), arrayA+8*n*n, arrayA+16*n*n
	return build(t, loops.Loop(n, upTo(1, []int64{1}, loops.Loop(n,
		p.load(arrayA, row, 8), p.load(b, 0, row, 8), p.load(c, row, 0, 8), p.store(c, row, 0, 8)))))
}

// star returns a sweep of a five-point stencil.
func star(p *program, from, to trace.Addr, n uint64) loops.Item {
	row := int64(8 * n)
	at := func(i, j uint64) trace.Addr { return from + 8*(i*n+j) }
	return loops.Loop(n-2, loops.Loop(n-2,
		p.load(at(1, 1), 0, row, 8), p.load(at(1, 0), 0, row, 8), p.load(at(1, 2), 0, row, 8),
		p.load(at(2, 1), 0, row, 8), p.load(at(0, 1), 0, row, 8), p.store(to+8*(n+1), 0, row, 8)))
}

// In each step, the kernel jacobi computes the second array from the first array, and then the
// first array from the second array.
func jacobi(t testing.TB, n, steps uint64) *loops.Tree {
	var p program
	b := (arrayA + 8*n*n + 63) &^ 63
	return build(t, loops.Loop(steps, star(&p, arrayA, b, n), star(&p, b, arrayA, n)))
}

// vectors computes x1 += A·y1 and then x2 += Aᵀ·y2. The vectors are one line apart, so that they do
// not all map to the same sets.
func vectors(t testing.TB, n uint64) *loops.Tree {
	var p program
	row, apart := int64(8*n), 8*n+64
	x1 := arrayA + 8*n*n
	y1, x2, y2 := x1+apart, x1+2*apart, x1+3*apart
	return build(t,
		loops.Loop(n, loops.Loop(n, p.load(x1, 8), p.load(arrayA, row, 8), p.load(y1, 0, 8), p.store(x1, 8))),
		loops.Loop(n, loops.Loop(n, p.load(x2, 8), p.load(arrayA, 8, row), p.load(y2, 0, 8), p.store(x2, 8))))
}

func strided(t testing.TB, n, times uint64, step int64) *loops.Tree {
	var p program
	return build(t, loops.Loop(times, loops.Loop(n, p.load(arrayA, 0, step))))
}

// TestMissesOfKernels compares the misses of several kernels with the counts of DineroIV.
func TestMissesOfKernels(t *testing.T) {
	for _, k := range []struct {
		name   string
		tree   *loops.Tree
		misses [3]uint64 // misses in three caches: 1 KB with two ways, 1 KB with one way, and 2 KB with two ways
	}{
		{"product 16", product(t, 16, 128), [3]uint64{5372, 8494, 1398}},
		{"product 16 by blocks of 4", blockedProduct(t, 16, 4), [3]uint64{2180, 5314, 1236}},
		{"transpose 32", transpose(t, 32), [3]uint64{1152, 1208, 1152}},
		{"triangular product 16", triangularProduct(t, 16), [3]uint64{1180, 2916, 674}},
		{"jacobi 18, 3 steps", jacobi(t, 18, 3), [3]uint64{468, 468, 468}},
		{"matrix and vectors 32", vectors(t, 32), [3]uint64{1204, 1392, 1200}},
		{"20 x 192 bytes, 3 times", strided(t, 20, 3, 192), [3]uint64{44, 36, 20}},
	} {
		for i, c := range []Cache{{64, 8, 2}, {64, 16, 1}, {64, 16, 2}} {
			r, err := Run(k.tree, c)
			if err != nil || r.Total.Misses != k.misses[i] {
				t.Errorf("%s, %v: %d misses, error %v, want %d", k.name, c, r.Total.Misses, err, k.misses[i])
			}
		}
	}
}

// TestMissesOfChangedPrograms checks the misses of a matrix product with padded rows, and of a traversal by rows
// instead of columns. The compiled programs had the same numbers of misses.
func TestMissesOfChangedPrograms(t *testing.T) {
	var p program
	for _, c := range []struct {
		name string
		tree *loops.Tree
		want uint64
	}{
		{"a product", product(t, 128, 1024), 2_118_688},
		{"a product of padded rows", product(t, 128, 1088), 266_240},
		{"columns", build(t, loops.Loop(512, loops.Loop(512, p.load(arrayA, 8, 4096)))), 262_144},
		{"rows", build(t, loops.Loop(512, loops.Loop(512, p.load(arrayA, 4096, 8)))), 32_768},
	} {
		r, err := Run(c.tree, Cache{64, 64, 8})
		if err != nil || r.Total.Misses != c.want {
			t.Errorf("%s: %d misses, error %v, want %d", c.name, r.Total.Misses, err, c.want)
		}
	}
}

// polybench lists kernels of PolyBench/C 4.2 at size LARGE, with the same loops as in their
// sources, and their misses in a fully associative 32 KiB cache.
var polybench = []struct {
	name   string
	misses uint64
	tree   func(testing.TB) *loops.Tree
}{
	{"gemm", 165_287_500, func(t testing.TB) *loops.Tree {
		const ni, nj, nk = 1000, 1100, 1200
		var p program
		a, b, c := uint64(arrayA), uint64(arrayA+8*ni*nk), uint64(arrayA+8*ni*nk+8*nk*nj)
		return build(t, loops.Loop(ni,
			loops.Loop(nj, p.load(c, 8*nj, 8), p.store(c, 8*nj, 8)),
			loops.Loop(nk, loops.Loop(nj, p.load(c, 8*nj, 0, 8), p.load(a, 8*nk, 8), p.load(b, 0, 8*nj, 8), p.store(c, 8*nj, 0, 8)))))
	}},
	{"jacobi-2d", 843_702_000, func(t testing.TB) *loops.Tree { return jacobi(t, 1300, 500) }},
	{"seidel-2d", 749_250_000, func(t testing.TB) *loops.Tree {
		const n = 2000
		var p program
		var body []loops.Item
		for i := range uint64(3) {
			for j := range uint64(3) {
				body = append(body, p.load(arrayA+8*(i*n+j), 0, 8*n, 8))
			}
		}
		return build(t, loops.Loop(500, loops.Loop(n-2, loops.Loop(n-2, append(body, p.store(arrayA+8*(n+1), 0, 8*n, 8))...))))
	}},
	{"heat-3d", 838_980_000, func(t testing.TB) *loops.Tree {
		const n = 120
		var p program
		sweep := func(from, to trace.Addr) loops.Item {
			var body []loops.Item
			at := func(base trace.Addr, i, j, k uint64) trace.Addr { return base + 8*((i*n+j)*n+k) }
			for _, d := range [][3]uint64{{2, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 2, 1}, {1, 1, 1}, {1, 0, 1}, {1, 1, 2}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}} {
				body = append(body, p.load(at(from, d[0], d[1], d[2]), 0, 8*n*n, 8*n, 8))
			}
			body = append(body, p.store(at(to, 1, 1, 1), 0, 8*n*n, 8*n, 8))
			return loops.Loop(n-2, loops.Loop(n-2, loops.Loop(n-2, body...)))
		}
		const b = arrayA + 8*n*n*n
		return build(t, loops.Loop(500, sweep(arrayA, b), sweep(b, arrayA)))
	}},
	{"trmm", 1_125_513_565, func(t testing.TB) *loops.Tree {
		const m, n = 1000, 1200
		var p program
		const b = arrayA + 8*m*m
		return build(t, loops.Loop(m, loops.Loop(n,
			upTo(m-1, []int64{-1}, p.load(b, 8*n, 8), p.load(arrayA+8*m, 8*m+8, 0, 8*m), p.load(b+8*n, 8*n, 8, 8*n), p.store(b, 8*n, 8)),
			p.load(b, 8*n, 8), p.store(b, 8*n, 8))))
	}},
	{"syrk", 706_268_449, func(t testing.TB) *loops.Tree {
		const m, n = 1000, 1200
		var p program
		const c = arrayA + 8*n*m
		return build(t, loops.Loop(n,
			upTo(1, []int64{1}, p.load(c, 8*n, 8), p.store(c, 8*n, 8)),
			loops.Loop(m, upTo(1, []int64{1}, p.load(c, 8*n, 0, 8), p.load(arrayA, 8*m, 8), p.load(arrayA, 0, 8, 8*m), p.store(c, 8*n, 0, 8)))))
	}},
}

// The variable lu is PolyBench's kernel of this name. At size LARGE (n = 2000), a fully associative
// 32 KiB cache misses 2,647,699,541 of 10,664,665,000 accesses. The simulation of 1,678,652,284 of
// these accesses takes 75 s. While a column of lines fits in the cache, no iterations of the loops
// along the column can be skipped. The iterations of the outer loops are too long to be recorded.
var lu = func(t testing.TB, n uint64) *loops.Tree {
	var p program
	row := int64(8 * n)
	const a = arrayA
	return build(t, loops.Loop(n,
		upTo(0, []int64{1},
			upTo(0, []int64{0, 1}, p.load(a, row, 8), p.load(a, row, 0, 8), p.load(a, 0, 8, row), p.store(a, row, 8)),
			p.load(a, row, 8), p.load(a, 0, row+8), p.store(a, row, 8)),
		upTo(int64(n), []int64{-1},
			upTo(0, []int64{1}, p.load(a, row+8, 8), p.load(a, row, 0, 8), p.load(a, 8, 8, row), p.store(a, row+8, 8)))))
}

// TestPolyBench compares the misses of the kernels with counts that were verified with independent
// programs.
func TestPolyBench(t *testing.T) {
	for _, k := range polybench {
		tree := k.tree(t)
		e := newEngine(newLayout(tree, 64), 1, 512)
		e.run()
		misses := uint64(0)
		for _, n := range e.tally.counts {
			misses += n.misses
		}
		if misses != k.misses {
			t.Errorf("%s: %d misses, want %d; %d accesses were simulated", k.name, misses, k.misses, e.done)
		}
		t.Logf("%s: %d of %d accesses simulated", k.name, e.done, tree.Rows())
	}
}

func BenchmarkPolyBench(b *testing.B) {
	for _, k := range polybench {
		b.Run(k.name, func(b *testing.B) { benchmark(b, k.tree(b), 1, 512) })
	}
	for _, n := range []uint64{500, 1000} {
		b.Run("lu "+strconv.FormatUint(n, 10), func(b *testing.B) { benchmark(b, lu(b, n), 1, 512) })
	}
}

func benchmark(b *testing.B, tree *loops.Tree, sets, ways uint64) {
	var e *engine
	for b.Loop() {
		e = newEngine(newLayout(tree, 64), sets, ways)
		e.run()
	}
	total := uint64(0)
	for _, n := range e.tally.counts {
		total += n.accesses
	}
	b.ReportMetric(float64(e.done), "simulated")
	b.ReportMetric(float64(total)/float64(e.done), "refs/simulated")
}

func BenchmarkProduct(b *testing.B) {
	for _, n := range []uint64{64, 128, 256, 512, 1024, 2048, 4096, 8192} {
		b.Run("full/"+strconv.FormatUint(n, 10), func(b *testing.B) {
			tree := product(b, n, int64(8*n))
			for b.Loop() {
				capacities(tree, 64, 512)
			}
		})
	}
	for _, n := range []uint64{128, 256, 300, 512} {
		b.Run("64x8/"+strconv.FormatUint(n, 10), func(b *testing.B) { benchmark(b, product(b, n, int64(8*n)), 64, 8) })
	}
}
