package blocks

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/ir"
	"github.com/stackglass/stackglass/core/trace"
)

// largeSystem returns a system about as large as SQLite: the program in $STACKGLASS_IR or, if this
// variable is not set, a synthetic program of loop nests.
func largeSystem(b *testing.B) *System {
	p := &trace.Program{}
	if src, err := os.ReadFile(os.Getenv("STACKGLASS_IR")); err == nil {
		m, err := ir.Read(src)
		if err != nil {
			b.Fatal(err)
		}
		p = m.Program
	} else {
		for n := range 1500 {
			part := nest(n % 30)
			first := uint32(len(p.Blocks))
			for k := range part.Blocks {
				part.Blocks[k].Function = uint32(n)
				for i := range part.Blocks[k].Successors {
					part.Blocks[k].Successors[i] += first
				}
				if k%3 == 0 {
					part.Blocks[k].Callee = "f" + strconv.Itoa((n*7+k)%1500)
				}
			}
			p.Blocks = append(p.Blocks, part.Blocks...)
			p.Functions = append(p.Functions, trace.Function{Name: "f" + strconv.Itoa(n), First: first, Blocks: uint32(len(part.Blocks))})
		}
	}
	s, err := NewSystem(p)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for k := range p.Blocks {
		s.made[k] = share{1, 1000} // the recursion must terminate
		if s.isUnknown(k) {
			w := make([]uint64, len(p.Blocks[k].Successors))
			for i := range w {
				w[i] = 1 + r.Uint64N(20)
			}
			if err := s.Set(k, w, 1); err != nil {
				b.Fatal(err)
			}
		} else if len(p.Blocks[k].Successors) > 0 && r.IntN(20) == 0 {
			w := make([]uint64, len(p.Blocks[k].Successors))
			w[0] = 100
			if err := s.Set(k, w, 1); err != nil {
				b.Fatal(err)
			}
		}
	}
	for n := range p.Functions {
		s.Enter(n, 1000)
	}
	b.Logf("%d functions, %d blocks", len(p.Functions), len(p.Blocks))
	return s
}

// In each iteration, BenchmarkSolve solves the whole program.
func BenchmarkSolve(b *testing.B) {
	s := largeSystem(b)
	b.ReportAllocs()
	for b.Loop() {
		for n := range s.functions {
			s.functions[n].ready = false
		}
		if _, err := s.Solve(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(s.program.Blocks))*float64(b.N)/b.Elapsed().Seconds(), "blocks/s")
}

// In each iteration, BenchmarkEdit changes one branch and solves the program again.
func BenchmarkEdit(b *testing.B) {
	s := largeSystem(b)
	worst := 0
	for n := range s.program.Functions {
		if s.program.Functions[n].Blocks > s.program.Functions[worst].Blocks {
			worst = n
		}
	}
	at := int(s.program.Functions[worst].First)
	for !s.hasSeveralSuccessors(at) {
		at++
	}
	w := make([]uint64, len(s.program.Blocks[at].Successors))
	turn := uint64(0)
	for b.Loop() {
		turn++
		for i := range w {
			w[i] = 1 + turn%5 + uint64(i)
		}
		if err := s.Set(at, w, 0); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Solve(); err != nil {
			b.Fatal(err)
		}
	}
}
