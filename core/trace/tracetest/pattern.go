package tracetest

import (
	"io"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// Pattern is an endless sequence of addresses.
type Pattern interface {
	// Fill writes the next len(addrs) addresses.
	Fill(addrs []trace.Addr)
}

// Stream generates the first references of the pattern p. The parameter refs is the number of
// references. Each reference accesses 8 bytes. The address determines the kind: of four references,
// three are loads, and one is a store.
func Stream(refs int, p Pattern) trace.Reader { return &stream{left: refs, pattern: p} }

type stream struct {
	left    int
	pattern Pattern
}

func (s *stream) Next(b *trace.Batch) error {
	b.Reset()
	if s.left == 0 {
		return io.EOF
	}
	b.Resize(min(b.Cap(), s.left))
	s.left -= b.Len()
	s.pattern.Fill(b.Addr)
	for i, addr := range b.Addr {
		b.Bytes[i], b.Kind[i] = 8, trace.Load
		if addr>>3*0x9e3779b97f4a7c15>>62 == 0 {
			b.Kind[i] = trace.Store
		}
	}
	return nil
}

func (s *stream) Header() trace.Header { return trace.Header{Format: "test", Sizes: true} }

// Generate returns a batch with the first references of the pattern p. The parameter refs is the
// number of references.
func Generate(refs int, p Pattern) *trace.Batch {
	whole, _ := trace.ReadAll(Stream(refs, p)) // a stream never returns errors
	return whole
}

const base trace.Addr = 0x10000000

// Sequential repeatedly accesses footprintBytes bytes in sequence, 8 bytes at a time.
func Sequential(footprintBytes int) Pattern { return Strided(8, footprintBytes) }

// Strided repeatedly accesses footprintBytes bytes with a stride of strideBytes. Each repetition
// starts at the same address.
func Strided(strideBytes, footprintBytes int) Pattern {
	return &strided{step: trace.Addr(strideBytes), end: trace.Addr(footprintBytes)}
}

type strided struct{ step, end, at trace.Addr }

func (p *strided) Fill(addrs []trace.Addr) {
	for i := range addrs {
		addrs[i] = base + p.at
		if p.at += p.step; p.at >= p.end {
			p.at = 0
		}
	}
}

// Uniform accesses the given number of 64-byte lines with equal probability.
func Uniform(lines int, seed uint64) Pattern {
	return &uniform{lines: uint64(lines), random: rand.New(rand.NewPCG(seed, 2))}
}

type uniform struct {
	lines  uint64
	random *rand.Rand
}

func (p *uniform) Fill(addrs []trace.Addr) {
	for i := range addrs {
		addrs[i] = base + p.random.Uint64N(p.lines)*64
	}
}

// Zipf accesses the given number of 64-byte lines. The probability of the k-th most likely line is
// proportional to 1/k^exponent. The most likely lines are scattered in memory.
func Zipf(lines int, exponent float64, seed uint64) Pattern {
	p := &zipf{random: rand.New(rand.NewPCG(seed, 3)), upTo: make([]float64, lines)}
	var sum float64
	for k := range p.upTo {
		sum += math.Pow(float64(k+1), -exponent)
		p.upTo[k] = sum
	}
	for _, place := range p.random.Perm(lines) {
		p.place = append(p.place, uint32(place))
	}
	return p
}

type zipf struct {
	random *rand.Rand
	upTo   []float64 // cumulative weights
	place  []uint32  // line number of the k-th most likely line
}

func (p *zipf) Fill(addrs []trace.Addr) {
	last := len(p.upTo) - 1
	for i := range addrs {
		k := sort.SearchFloat64s(p.upTo, p.random.Float64()*p.upTo[last])
		addrs[i] = base + trace.Addr(p.place[min(k, last)])*64
	}
}

// Mixed switches randomly between patterns after every few references, like a program that uses a
// stack, a heap and an array. The patterns are 2^40 bytes apart.
func Mixed(seed uint64, patterns ...Pattern) Pattern {
	return &mixed{patterns: patterns, random: rand.New(rand.NewPCG(seed, 4))}
}

type mixed struct {
	patterns []Pattern
	random   *rand.Rand
	running  int
	left     int
}

func (p *mixed) Fill(addrs []trace.Addr) {
	for len(addrs) > 0 {
		if p.left == 0 {
			p.running, p.left = p.random.IntN(len(p.patterns)), 1+p.random.IntN(16)
		}
		n := min(p.left, len(addrs))
		p.patterns[p.running].Fill(addrs[:n])
		for i := range addrs[:n] {
			addrs[i] += trace.Addr(p.running) << 40
		}
		addrs, p.left = addrs[n:], p.left-n
	}
}

// Multiplication returns the tables and the steps of a program that computes C = A·B for matrices
// of n × n doubles, in the form that a compiler would generate. The function main clears C, and
// then calls multiply and printf. The body of the innermost loop runs n³ times, and contains three
// loads, a store and two flops.
func Multiplication(n uint64) (*trace.Program, []Step) {
	p := multiplication()
	a, b, c := uint64(1)<<20, uint64(1)<<24, uint64(1)<<28
	steps := []Step{{Block: 0, Values: []uint64{c, 8 * n * n}}, {Block: 2}}
	for i := range n {
		steps = append(steps, Step{Block: 3})
		for j := range n {
			steps = append(steps, Step{Block: 4})
			for k := range n {
				at := c + 8*(i*n+j)
				steps = append(steps, Step{Block: 5, Values: []uint64{a + 8*(i*n+k), b + 8*(k*n+j), at, at}})
			}
			steps = append(steps, Step{Block: 6})
		}
		steps = append(steps, Step{Block: 7})
	}
	steps = append(steps, Step{Block: 8}, Step{Block: 1})
	return p, steps
}

func multiplication() *trace.Program {
	op := func(opcode, of string, count uint32) trace.Op {
		return trace.Op{Opcode: opcode, Type: of, Count: count}
	}
	counting := []trace.Op{op("phi", "i64", 1), op("add", "i64", 1), op("icmp", "i64", 1), op("br", "i1", 1)}
	p := &trace.Program{
		Modules: []trace.Module{{Name: "src/multiply.c", Options: "-O1"}},
		Functions: []trace.Function{
			{Name: "main", Place: trace.Place{File: "src/multiply.c", Line: 20}, First: 0, Blocks: 2},
			{Name: "multiply", Place: trace.Place{File: "src/multiply.c", Line: 5}, First: 2, Blocks: 7},
		},
		Blocks: []trace.Block{
			{Label: "entry", Flags: trace.EntryBlock, FirstLine: 21, LastLine: 22, Sites: 1, Callee: "multiply",
				Ops: []trace.Op{op("llvm.memset", "void", 1), op("call", "void", 1)}, Successors: []uint32{1}},
			{Label: "entry", Part: 1, Flags: trace.ReturnBlock, FirstLine: 23, LastLine: 24, Callee: "printf",
				Ops: []trace.Op{op("call", "i32", 1), op("ret", "i32", 1)}},
			{Function: 1, Label: "entry", Flags: trace.EntryBlock, FirstLine: 5, LastLine: 6, Ops: []trace.Op{op("br", "", 1)}, Successors: []uint32{3}},
			{Function: 1, Label: "rows", Flags: trace.HeaderBlock, FirstLine: 6, LastLine: 6, Ops: counting, Successors: []uint32{4, 8}},
			{Function: 1, Label: "columns", Flags: trace.HeaderBlock, FirstLine: 7, LastLine: 7, Ops: counting, Successors: []uint32{5, 7}},
			{Function: 1, Label: "products", Flags: trace.HeaderBlock | trace.LatchBlock, FirstLine: 8, LastLine: 9, FirstSite: 1, Sites: 4,
				Ops: append([]trace.Op{op("load", "double", 3), op("getelementptr", "ptr", 3), op("fmul", "double", 1),
					op("fadd", "double", 1), op("store", "double", 1)}, counting...), Successors: []uint32{5, 6}},
			{Function: 1, Label: "next.column", Flags: trace.LatchBlock, FirstLine: 7, LastLine: 7, Ops: []trace.Op{op("br", "", 1)}, Successors: []uint32{4}},
			{Function: 1, Label: "next.row", Flags: trace.LatchBlock, FirstLine: 6, LastLine: 6, Ops: []trace.Op{op("br", "", 1)}, Successors: []uint32{3}},
			{Function: 1, Label: "end", Flags: trace.ReturnBlock, FirstLine: 10, LastLine: 10, Ops: []trace.Op{op("ret", "void", 1)}},
		},
		Sites: []trace.Site{{Kind: trace.RangeWrite, Block: 0, Object: "C"}},
	}
	for i := range p.Blocks {
		p.Blocks[i].File = "src/multiply.c"
	}
	for _, object := range []string{"A", "B", "C"} {
		p.Sites = append(p.Sites, trace.Site{Kind: trace.Load, Bytes: 8, Block: 5, Type: "double", Object: object})
	}
	p.Sites = append(p.Sites, trace.Site{Kind: trace.Store, Bytes: 8, Block: 5, Type: "double", Object: "C"})
	return p
}
