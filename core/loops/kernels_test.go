package loops

import (
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// A code builds the rows of a program with sites. Each method call adds one row.
type code struct {
	rows   []row
	blocks bool
}

func (c *code) load(site uint32, addr uint64) {
	c.rows = append(c.rows, row{Reference{Site: site, Bytes: 8, Kind: trace.Load}, addr})
}

func (c *code) store(site uint32, addr uint64) {
	c.rows = append(c.rows, row{Reference{Site: site, Bytes: 8, Kind: trace.Store}, addr})
}

func (c *code) block(number uint32) {
	if c.blocks {
		c.rows = append(c.rows, row{Reference{Site: number, Kind: trace.BlockEntry}, 0})
	}
}

func (c *code) event(kind trace.Kind, site uint32) {
	c.rows = append(c.rows, row{Reference{Site: site, Kind: kind}, 0})
}

const arrayA, arrayB, arrayC = 0x10000000, 0x20000000, 0x30000000

// kernels lists programs whose problem size is n.
var kernels = []struct {
	name string
	run  func(c *code, n uint64)
	// These fields are the expected numbers of leaves in the tree, with and without block entries,
	// for any n. If a field is 0, the number is not known.
	leaves, plain int
}{
	{"gemm", gemm, 9, 4},
	{"trmm", trmm, 10, 6},
	{"jacobi", jacobi, 17, 12},
	{"walk", contiguous, 3, 1},
	{"blocked", blocked, 8, 0},
	{"triangle down", down, 4, 2},
	{"lu", lu, 150, 87},
	{"cholesky", cholesky, 151, 88},
}

func gemm(c *code, n uint64) {
	for i := range n {
		c.block(1)
		for j := range n {
			c.block(2)
			c.load(1, arrayC+8*(i*n+j))
			for k := range n {
				c.block(3)
				c.load(2, arrayA+8*(i*n+k))
				c.load(3, arrayB+8*(k*n+j))
			}
			c.block(4)
			c.store(4, arrayC+8*(i*n+j))
		}
		c.block(5)
	}
}

func trmm(c *code, n uint64) {
	for i := range n {
		c.block(1)
		for j := range n {
			c.block(2)
			for k := i + 1; k < n; k++ {
				c.block(3)
				c.load(1, arrayA+8*(k*n+i))
				c.load(2, arrayB+8*(k*n+j))
				c.load(3, arrayB+8*(i*n+j))
				c.store(4, arrayB+8*(i*n+j))
			}
			c.block(4)
			c.load(5, arrayB+8*(i*n+j))
			c.store(6, arrayB+8*(i*n+j))
		}
	}
}

func jacobi(c *code, n uint64) {
	sweep := func(from, to uint64, site, block uint32) {
		for i := uint64(1); i < n-1; i++ {
			c.block(block)
			for j := uint64(1); j < n-1; j++ {
				c.block(block + 1)
				for s, d := range []uint64{0, ^uint64(0), 1, ^(n - 1), n} {
					c.load(site+uint32(s), from+8*(i*n+j+d))
				}
				c.store(site+5, to+8*(i*n+j))
			}
		}
	}
	for range n / 2 {
		c.block(1)
		sweep(arrayA, arrayB, 10, 2)
		sweep(arrayB, arrayA, 20, 4)
	}
}

func contiguous(c *code, n uint64) {
	for i := range n {
		c.block(1)
		for j := range n {
			c.block(2)
			c.load(1, arrayA+8*(i*n+j))
		}
	}
}

func blocked(c *code, n uint64) {
	const side = 4
	for ii := uint64(0); ii < n; ii += side {
		for jj := uint64(0); jj < n; jj += side {
			for kk := uint64(0); kk < n; kk += side {
				c.block(1)
				for i := ii; i < ii+side; i++ {
					c.block(2)
					for j := jj; j < jj+side; j++ {
						c.block(3)
						c.load(1, arrayC+8*(i*n+j))
						for k := kk; k < kk+side; k++ {
							c.block(4)
							c.load(2, arrayA+8*(i*n+k))
							c.load(3, arrayB+8*(k*n+j))
						}
						c.store(4, arrayC+8*(i*n+j))
					}
				}
			}
		}
	}
}

func lu(c *code, n uint64) {
	at := func(i, j uint64) uint64 { return arrayA + 8*(i*n+j) }
	for i := range n {
		c.block(1)
		for j := range i {
			c.block(2)
			for k := range j {
				c.block(3)
				c.load(1, at(i, k))
				c.load(2, at(k, j))
				c.store(3, at(i, j))
			}
			c.block(4)
			c.load(4, at(j, j))
			c.store(5, at(i, j))
		}
		for j := i; j < n; j++ {
			c.block(5)
			for k := range i {
				c.block(6)
				c.load(6, at(i, k))
				c.load(7, at(k, j))
				c.store(8, at(i, j))
			}
		}
	}
}

func cholesky(c *code, n uint64) {
	at := func(i, j uint64) uint64 { return arrayA + 8*(i*n+j) }
	for i := range n {
		c.block(1)
		for j := range i {
			c.block(2)
			for k := range j {
				c.block(3)
				c.load(1, at(i, k))
				c.load(2, at(j, k))
				c.store(3, at(i, j))
			}
			c.block(4)
			c.load(4, at(j, j))
			c.store(5, at(i, j))
		}
		for k := range i {
			c.block(5)
			c.load(6, at(i, k))
			c.store(7, at(i, i))
		}
		c.block(6)
		c.store(8, at(i, i))
	}
}

func down(c *code, n uint64) {
	for i := range n {
		c.block(1)
		for j := range n - i {
			c.block(2)
			c.load(1, arrayA+8*(i*n+j))
		}
		c.store(2, arrayB+8*i)
	}
}

// TestKernelsCompressToTheirCode checks that the size of a kernel's tree depends only on its code,
// and not on n.
func TestKernelsCompressToTheirCode(t *testing.T) {
	for _, k := range kernels {
		for _, blocks := range []bool{true, false} {
			want := k.leaves
			if !blocks {
				want = k.plain
			}
			for _, n := range []uint64{12, 24, 40} {
				c := code{blocks: blocks}
				k.run(&c, n)
				tree := fold(t, 0, batch(c.rows, columns{site: true}), func() int { return 1000 })
				checkSameRows(t, unfold(t, tree, 512), c.rows)
				if got := tree.Size(); want > 0 && got.Leaves != want {
					t.Errorf("%s, block entries %v, n = %d: %d leaves, want %d; size %+v", k.name, blocks, n, got.Leaves, want, got)
				}
			}
		}
	}
}

// TestMatrixTraversalFoldsIntoTwoLoops checks that a traversal of a whole matrix folds into two
// loops, as in the source, if the trace contains block entries.
func TestMatrixTraversalFoldsIntoTwoLoops(t *testing.T) {
	c := code{blocks: true}
	contiguous(&c, 10)
	tree := fold(t, 0, batch(c.rows, columns{site: true}), func() int { return 7 })
	for n := range tree.Nodes() {
		if !n.IsLoop() || n.Trips() != 10 || n.Len() != 2 {
			t.Fatalf("outer node: %d items, trip count %d, want a block entry and a loop, and trip count 10", n.Len(), n.Trips())
		}
		inner, steps := n.Item(1)
		if !inner.IsLoop() || inner.Trips() != 10 || inner.Len() != 2 || steps[0] != 0 || steps[2] != 80 {
			t.Fatalf("inner loop: trip count %d, steps %v, want trip count 10 and steps 0, 0, 80", inner.Trips(), steps)
		}
		leaf, steps := inner.Item(1)
		if r, addr, wild := leaf.Leaf(); r != (Reference{Site: 1, Bytes: 8}) || addr != arrayA || wild || steps[0] != 8 {
			t.Fatalf("leaf %+v at %#x, irregular = %v, step %d, want a regular load of 8 bytes at site 1 and %#x, step 8", r, addr, wild, steps[0], arrayA)
		}
	}
}

// TestGatherFoldsIntoOneLoop checks that a gather x[index[i]] folds into a single loop, with the
// addresses of x in a separate list.
func TestGatherFoldsIntoOneLoop(t *testing.T) {
	var c code
	gather(&c, 5000)
	tree := fold(t, 0, batch(c.rows, columns{site: true}), func() int { return 1000 })
	checkSameRows(t, unfold(t, tree, 512), c.rows)
	checkSameRows(t, naive(tree), c.rows)
	if got := tree.Size(); got.Leaves > 150 || got.Wild < 4900 || got.WildBytes > 4*got.Wild {
		t.Errorf("size %+v, want at most 150 leaves, and at least 4,900 irregular addresses of at most 4 bytes each", got)
	}
}

func gather(c *code, n uint64) {
	seed := uint64(1)
	for i := range n {
		seed = mix(seed)
		c.load(1, arrayA+4*i)
		c.load(2, arrayB+seed%(1<<20))
		c.store(3, arrayC+8*i)
	}
}
