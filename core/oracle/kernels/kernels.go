// Package kernels describes the loop nests of well-known programs, for the validation of cache
// models: matrix products (plain, blocked and triangular), transposition, matrix-vector products,
// Jacobi's method, and strided walks. Elements are doubles. Array A begins at [Base]. The other
// arrays follow A; each array begins at the start of a 64-byte line. The vectors of [MVT] are
// separated by an unused line.
package kernels

import (
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// Base is the address of the first array.
const Base trace.Addr = 0x10000000

// Kernel is a named loop nest.
type Kernel struct {
	Family, Name string // Name consists of the family and the size
	Nest         loops.Nest
	Known        []Known
}

// Known is a miss count that DineroIV reported for a cache with 64-byte lines.
type Known struct {
	SizeBytes, Ways, Misses uint64
}

// Vectors returns the kernels whose DineroIV counts are known, and [GemmSum].
func Vectors() []Kernel {
	known := func(k Kernel, a, b, c uint64) Kernel {
		k.Known = []Known{{1 << 10, 2, a}, {1 << 10, 1, b}, {2 << 10, 2, c}}
		return k
	}
	return []Kernel{
		known(Gemm(16), 5372, 8494, 1398),
		GemmSum(16),
		known(BlockedGemm(16, 4), 2180, 5314, 1236),
		known(Transpose(32), 1152, 1208, 1152),
		known(Trmm(16), 1180, 2916, 674),
		known(Jacobi(18, 3), 468, 468, 468),
		known(MVT(32), 1204, 1392, 1200),
		known(Strides(20, 192, 3), 44, 36, 20),
	}
}

func kernel(family, size string, items ...loops.Item) Kernel {
	return Kernel{Family: family, Name: family + " " + size, Nest: loops.Nest{Items: items}}
}

func text(n uint64) string { return strconv.FormatUint(n, 10) }

func load(site uint32, addr trace.Addr, steps ...int64) loops.Item {
	return loops.Leaf(loops.Reference{Site: site, Bytes: 8, Kind: trace.Load}, addr, steps...)
}

func store(site uint32, addr trace.Addr, steps ...int64) loops.Item {
	return loops.Leaf(loops.Reference{Site: site, Bytes: 8, Kind: trace.Store}, addr, steps...)
}

// nextArray returns the address of the next array, which follows an array with the given address
// and size.
func nextArray(addr trace.Addr, bytes uint64) trace.Addr { return (addr + bytes + 63) / 64 * 64 }

// matrices returns the addresses of three n × n matrices, and the size of a row in bytes.
func matrices(n uint64) (a, b, c trace.Addr, row int64) {
	b = nextArray(Base, 8*n*n)
	return Base, b, nextArray(b, 8*n*n), int64(8 * n)
}

// Gemm is C += A·B for n × n matrices, with C loaded and stored in the innermost loop.
func Gemm(n uint64) Kernel {
	a, b, c, row := matrices(n)
	return kernel("gemm", text(n), loops.Loop(n, loops.Loop(n, loops.Loop(n,
		load(1, a, row, 0, 8), load(2, b, 0, 8, row), load(3, c, row, 8), store(4, c, row, 8)))))
}

// GemmSum is Gemm with the sum in a register, as in compiled code.
func GemmSum(n uint64) Kernel {
	a, b, c, row := matrices(n)
	return kernel("gemm, sum in register", text(n), loops.Loop(n, loops.Loop(n,
		load(1, c, row, 8), loops.Loop(n, load(2, a, row, 0, 8), load(3, b, 0, 8, row)), store(4, c, row, 8))))
}

// BlockedGemm is Gemm in blocks of side × side elements. The parameter n must be a multiple of
// side.
func BlockedGemm(n, side uint64) Kernel {
	a, b, c, row := matrices(n)
	wide, down, m := int64(8*side), row*int64(side), n/side
	return kernel("blocked gemm", text(n)+"/"+text(side), loops.Loop(m, loops.Loop(m, loops.Loop(m, loops.Loop(side, loops.Loop(side, loops.Loop(side,
		load(1, a, down, 0, wide, row, 0, 8), load(2, b, 0, wide, down, 0, 8, row),
		load(3, c, down, wide, 0, row, 8), store(4, c, down, wide, 0, row, 8))))))))
}

// Transpose is B = Aᵀ for n × n matrices. The inner loop runs along a row of A.
func Transpose(n uint64) Kernel {
	a, b, _, row := matrices(n)
	return kernel("transpose", text(n), loops.Loop(n, loops.Loop(n, load(1, a, row, 8), store(2, b, 8, row))))
}

// Trmm is C += A·B for n × n matrices with a lower triangular A. The inner loop runs along a row of
// B.
func Trmm(n uint64) Kernel {
	a, b, c, row := matrices(n)
	return kernel("trmm", text(n), loops.Loop(n, loops.Item{Trips: 1, Steps: []int64{1}, Body: []loops.Item{loops.Loop(n,
		load(1, a, row, 8), load(2, b, 0, row, 8), load(3, c, row, 0, 8), store(4, c, row, 0, 8))}}))
}

// Jacobi is the five-point stencil on a grid of n × n points, border included. Each step computes
// B from A, and then A from B.
func Jacobi(n, steps uint64) Kernel {
	a, b, _, row := matrices(n)
	sweep := func(from, to trace.Addr, site uint32) loops.Item {
		at := func(down, right int64) trace.Addr { return from + uint64((1+down)*row+8*(1+right)) }
		return loops.Loop(n-2, loops.Loop(n-2,
			load(site, at(0, 0), 0, row, 8), load(site+1, at(0, -1), 0, row, 8), load(site+2, at(0, 1), 0, row, 8),
			load(site+3, at(-1, 0), 0, row, 8), load(site+4, at(1, 0), 0, row, 8), store(site+5, to+uint64(row)+8, 0, row, 8)))
	}
	return kernel("jacobi", text(n)+", "+text(steps)+" steps", loops.Loop(steps, sweep(a, b, 1), sweep(b, a, 11)))
}

// MVT is x1 += A·y1, then x2 += Aᵀ·y2, for an n × n matrix. The vectors are separated by one
// unused line. Without the unused lines, vectors whose length in lines is a multiple of the
// number of sets would conflict with A in every set.
func MVT(n uint64) Kernel {
	row := int64(8 * n)
	x1 := nextArray(Base, 8*n*n)
	y1 := nextArray(x1, 8*n) + 64
	x2 := nextArray(y1, 8*n) + 64
	y2 := nextArray(x2, 8*n) + 64
	return kernel("mvt", text(n),
		loops.Loop(n, loops.Loop(n, load(1, x1, 8), load(2, Base, row, 8), load(3, y1, 0, 8), store(4, x1, 8))),
		loops.Loop(n, loops.Loop(n, load(5, x2, 8), load(6, Base, 8, row), load(7, y2, 0, 8), store(8, x2, 8))))
}

// Strides traverses memory repeatedly, with n loads at a constant stride in bytes.
func Strides(n, bytes, times uint64) Kernel {
	return kernel("strides", text(n)+" × "+text(bytes)+" B, "+text(times)+" times",
		loops.Loop(times, loops.Loop(n, load(1, Base, 0, int64(bytes)))))
}
