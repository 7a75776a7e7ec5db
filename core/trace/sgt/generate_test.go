package sgt

import (
	"math/rand/v2"

	"github.com/stackglass/stackglass/core/trace"
)

// The functions in this file produce the steps that instrumented programs would record. The
// benchmarks use these steps as input.

// A stepper receives the steps of a generated program.
type stepper func(block uint32, values ...uint64)

// The type "generated" is a generated program with its tables.
type generated struct {
	name    string
	regular bool
	program *trace.Program
	run     func(stepper)
}

// blocksOf returns a program with the given blocks. Each block is a string with one letter per
// site. The letters l and s are a load and a store of 8 bytes; L and S are a load and a store of 4
// bytes.
func blocksOf(blocks ...string) *trace.Program {
	p := &trace.Program{Modules: []trace.Module{{Name: "generated.c"}}, Functions: []trace.Function{{Name: "main", Blocks: uint32(len(blocks))}}}
	for i, sites := range blocks {
		p.Blocks = append(p.Blocks, trace.Block{FirstSite: uint32(len(p.Sites)), Sites: uint32(len(sites)), FirstLine: uint32(i + 1)})
		for _, letter := range sites {
			s := trace.Site{Block: uint32(i), Bytes: 8}
			if letter == 's' || letter == 'S' {
				s.Kind = trace.Store
			}
			if letter == 'L' || letter == 'S' {
				s.Bytes = 4
			}
			p.Sites = append(p.Sites, s)
		}
	}
	return p
}

var generatedPrograms = []generated{
	{"matmul", true, blocksOf("", "", "llls", ""), matmul},
	{"stencil", true, blocksOf("", "", "llllls", ""), stencil},
	{"tree", false, blocksOf("l", "L", "l", "l", ""), tree},
	{"gups", false, blocksOf("ls"), gups},
	{"quicksort", false, blocksOf("ss", "L", "L", "SS", "ll"), quicksort},
}

const words = 0x7f0000001000 // address range of the arrays

// matmul multiplies two matrices of 120 x 120 doubles. Block 2 is the inner loop.
func matmul(step stepper) {
	const n = 120
	at := func(matrix, i, j uint64) uint64 { return words + (matrix<<16+i*n+j)*8 }
	step(0)
	for i := range uint64(n) {
		step(1)
		for j := range uint64(n) {
			for k := range uint64(n) {
				step(2, at(0, i, k), at(1, k, j), at(2, i, j), at(2, i, j))
			}
			step(3)
		}
	}
}

// stencil computes five-point means on a grid of 300 x 300 doubles, ten times.
func stencil(step stepper) {
	const n = 300
	for range 10 {
		step(0)
		for i := uint64(1); i < n-1; i++ {
			step(1)
			for j := uint64(1); j < n-1; j++ {
				at := words + (i*n+j)*8
				step(2, at, at-8, at+8, at-n*8, at+n*8, at+(1<<24))
			}
			step(3)
		}
	}
}

// The function "tree" looks up keys in a binary search tree. Each node has 32 bytes, and contains a
// key and the pointers to its children.
func tree(step stepper) {
	const nodes = 1 << 15
	r := rand.New(rand.NewPCG(1, 1))
	type node struct{ key, left, right uint32 }
	all := make([]node, 1, nodes)
	all[0].key = 1 << 31
	descend := func(key uint32, each func(at uint32, right bool)) uint32 {
		at := uint32(0)
		for {
			right := key > all[at].key
			each(at, right)
			next := all[at].left
			if right {
				next = all[at].right
			}
			if next == 0 {
				return at
			}
			at = next
		}
	}
	for len(all) < nodes {
		key := r.Uint32()
		at := descend(key, func(uint32, bool) {})
		if all = append(all, node{key: key}); key > all[at].key {
			all[at].right = uint32(len(all) - 1)
		} else {
			all[at].left = uint32(len(all) - 1)
		}
	}
	place := r.Perm(nodes)
	for range 50000 {
		step(0, words)
		descend(r.Uint32(), func(at uint32, right bool) {
			addr := words + uint64(place[at])*32
			step(1, addr)
			if right {
				step(3, addr+16)
			} else {
				step(2, addr+8)
			}
		})
		step(4)
	}
}

// gups updates random words in a table of 64 MB.
func gups(step stepper) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1 << 20 {
		at := words + r.Uint64()>>41*8
		step(0, at, at)
	}
}

// quicksort sorts 200,000 random 4-byte numbers.
func quicksort(step stepper) {
	r := rand.New(rand.NewPCG(1, 3))
	a := make([]uint32, 200000)
	for i := range a {
		a[i] = r.Uint32()
	}
	at := func(i int) uint64 { return words + uint64(i)*4 }
	var sort func(lo, hi, depth int)
	sort = func(lo, hi, depth int) {
		stack := uint64(0x7fff00000000 - depth*64)
		step(0, stack, stack+8)
		for lo < hi {
			pivot, i, j := a[(lo+hi)/2], lo-1, hi+1
			for {
				for i++; ; i++ {
					if step(1, at(i)); a[i] >= pivot {
						break
					}
				}
				for j--; ; j-- {
					if step(2, at(j)); a[j] <= pivot {
						break
					}
				}
				if i >= j {
					break
				}
				step(3, at(i), at(j))
				a[i], a[j] = a[j], a[i]
			}
			sort(lo, j, depth+1)
			lo = j + 1
		}
		step(4, stack, stack+8)
	}
	sort(0, len(a)-1, 0)
}
