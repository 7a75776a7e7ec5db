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

// Stream generates the first refs references of p, of 8 bytes each. Three of four are loads, by address, the
// others stores.
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

// Generate returns the first refs references of p in memory.
func Generate(refs int, p Pattern) *trace.Batch {
	whole, _ := trace.ReadAll(Stream(refs, p)) // a stream has no errors
	return whole
}

const base trace.Addr = 0x10000000

// Sequential walks through footprintBytes bytes, 8 at a time, again and again.
func Sequential(footprintBytes int) Pattern { return Strided(8, footprintBytes) }

// Strided walks through footprintBytes bytes in steps of strideBytes, again and again from the same begin.
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

// Uniform refers to lines lines of 64 bytes, all equally likely.
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

// Zipf refers to lines lines of 64 bytes, the k-th with a probability proportional to 1/k^exponent. Likely
// lines are scattered.
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
	upTo   []float64 // sums of the weights
	place  []uint32  // where the k-th line lies
}

func (p *zipf) Fill(addrs []trace.Addr) {
	last := len(p.upTo) - 1
	for i := range addrs {
		k := sort.SearchFloat64s(p.upTo, p.random.Float64()*p.upTo[last])
		addrs[i] = base + trace.Addr(p.place[min(k, last)])*64
	}
}

// Mixed switches between patterns every few references, at random, as programs with a stack, a heap and an
// array do. The patterns lie 2^40 bytes apart.
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
