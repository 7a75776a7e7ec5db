package sma

import (
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

func load(site uint32, addr uint64, steps ...int64) loops.Item {
	return loops.Leaf(loops.Reference{Site: site, Bytes: 8, Kind: trace.Load}, addr, steps...)
}

func store(site uint32, addr uint64, steps ...int64) loops.Item {
	return loops.Leaf(loops.Reference{Site: site, Bytes: 8, Kind: trace.Store}, addr, steps...)
}

// The kernels of the vectors in the design: A at base, the others behind it, each from a
// line of its own on.
const base = 0x10000000

// after is where an array of so many bytes at addr leaves room for the next.
func after(addr, bytes uint64) uint64 { return (addr + bytes + 63) / 64 * 64 }

func gemm(n uint64) []loops.Item {
	row := int64(8 * n)
	a := uint64(base)
	b := after(a, 8*n*n)
	c := after(b, 8*n*n)
	return []loops.Item{loops.Loop(n, loops.Loop(n, loops.Loop(n,
		load(1, a, row, 0, 8), load(2, b, 0, 8, row), load(3, c, row, 8), store(4, c, row, 8))))}
}

// gemmSum keeps the sum in a register, as compilers do.
func gemmSum(n uint64) []loops.Item {
	row := int64(8 * n)
	a := uint64(base)
	b := after(a, 8*n*n)
	c := after(b, 8*n*n)
	return []loops.Item{loops.Loop(n, loops.Loop(n, load(3, c, row, 8),
		loops.Loop(n, load(1, a, row, 0, 8), load(2, b, 0, 8, row)), store(4, c, row, 8)))}
}

func blocked(n, side uint64) []loops.Item {
	row, wide := int64(8*n), int64(8*side)
	down := row * int64(side)
	a := uint64(base)
	b := after(a, 8*n*n)
	c := after(b, 8*n*n)
	m := n / side
	return []loops.Item{loops.Loop(m, loops.Loop(m, loops.Loop(m, loops.Loop(side, loops.Loop(side, loops.Loop(side,
		load(1, a, down, 0, wide, row, 0, 8), load(2, b, 0, wide, down, 0, 8, row),
		load(3, c, down, wide, 0, row, 8), store(4, c, down, wide, 0, row, 8)))))))}
}

func transpose(n uint64) []loops.Item {
	row := int64(8 * n)
	return []loops.Item{loops.Loop(n, loops.Loop(n, load(1, base, row, 8), store(2, after(base, 8*n*n), 8, row)))}
}

// trmm multiplies a lower triangle with a matrix.
func trmm(n uint64) []loops.Item {
	row := int64(8 * n)
	a := uint64(base)
	b := after(a, 8*n*n)
	c := after(b, 8*n*n)
	return []loops.Item{loops.Loop(n, loops.Item{Trips: 1, Steps: []int64{1}, Body: []loops.Item{loops.Loop(n,
		load(1, a, row, 8), load(2, b, 0, row, 8), load(3, c, row, 0, 8), store(4, c, row, 0, 8))}})}
}

func jacobi(n, steps uint64) []loops.Item {
	row := int64(8 * n)
	a := uint64(base)
	b := after(a, 8*n*n)
	sweep := func(from, to uint64, site uint32) loops.Item {
		at := func(down, right int64) uint64 { return from + uint64((1+down)*row+8*(1+right)) }
		return loops.Loop(n-2, loops.Loop(n-2,
			load(site, at(0, 0), 0, row, 8), load(site+1, at(0, -1), 0, row, 8), load(site+2, at(0, 1), 0, row, 8),
			load(site+3, at(-1, 0), 0, row, 8), load(site+4, at(1, 0), 0, row, 8), store(site+5, to+uint64(row)+8, 0, row, 8)))
	}
	return []loops.Item{loops.Loop(steps, sweep(a, b, 1), sweep(b, a, 11))}
}

// mvt multiplies a matrix and its transpose with vectors.
func mvt(n uint64) []loops.Item {
	row := int64(8 * n)
	x1 := after(base, 8*n*n)
	x2 := after(x1, 8*n)
	y1 := after(x2, 8*n)
	y2 := after(y1, 8*n)
	return []loops.Item{
		loops.Loop(n, loops.Loop(n, load(1, base, row, 8), load(2, y1, 0, 8), load(3, x1, 8), store(4, x1, 8))),
		loops.Loop(n, loops.Loop(n, load(5, base, 8, row), load(6, y2, 0, 8), load(7, x2, 8), store(8, x2, 8))),
	}
}

func strides(n, bytes, times uint64) []loops.Item {
	return []loops.Item{loops.Loop(times, loops.Loop(n, load(1, base, 0, int64(bytes))))}
}

// nested walks over an array of 8 to the power of depth doubles in as many loops.
func nested(depth int) []loops.Item {
	steps := make([]int64, depth)
	step := int64(8)
	for i := range steps {
		steps[depth-1-i] = step
		step *= 8
	}
	it := load(1, base, steps...)
	for range depth {
		it = loops.Loop(8, it)
	}
	return []loops.Item{it}
}

// kernel is a nest, and what kind it is of.
type kernel struct {
	family, name string
	items        []loops.Item
}

func kernels() (list []kernel) {
	add := func(family, name string, items []loops.Item) {
		list = append(list, kernel{family, family + " " + name, items})
	}
	text := func(n uint64) string { return strconv.FormatUint(n, 10) }
	for depth := 1; depth <= 6; depth++ {
		add("nested", strconv.Itoa(depth), nested(depth))
	}
	for _, s := range [][3]uint64{{20, 192, 3}, {100, 64, 8}, {300, 128, 8}, {64, 512, 8}, {77, 320, 8}} {
		add("strides", text(s[0])+"×"+text(s[1])+", "+text(s[2])+" times", strides(s[0], s[1], s[2]))
	}
	for _, n := range []uint64{16, 32, 48, 64, 80, 100} {
		add("gemm", text(n), gemm(n))
	}
	for _, n := range []uint64{16, 32, 64, 100} {
		add("gemm, sum in register", text(n), gemmSum(n))
	}
	for _, n := range [][2]uint64{{16, 4}, {32, 8}, {64, 8}, {64, 16}, {96, 8}, {100, 10}} {
		add("blocked gemm", text(n[0])+"/"+text(n[1]), blocked(n[0], n[1]))
	}
	for _, n := range []uint64{32, 64, 100, 128} {
		add("transpose", text(n), transpose(n))
	}
	for _, n := range []uint64{16, 32, 64, 100} {
		add("trmm", text(n), trmm(n))
	}
	for _, n := range [][2]uint64{{18, 3}, {34, 3}, {66, 3}, {102, 3}} {
		add("jacobi", text(n[0])+", "+text(n[1])+" steps", jacobi(n[0], n[1]))
	}
	for _, n := range []uint64{32, 64, 100, 200} {
		add("mvt", text(n), mvt(n))
	}
	return list
}
