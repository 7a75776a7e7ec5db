package sasmm

import (
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// ref is a row in comparable form.
type ref struct {
	Kind   trace.Kind
	Addr   trace.Addr
	Bytes  uint32
	Site   uint32
	Arg    uint64
	Thread uint32
}

// window is one execution of a block. The paper calls an execution a window.
type window struct {
	block  uint32
	place  int  // position in the trace
	inside bool // whether the execution is inside a region
	rows   []ref
	stack  []bool // for each row, whether its address is private
}

const (
	forks = iota // this block forks and then makes a call; its part 1 runs after all threads have joined
	joins
	serial
	both
	body
	tail
	bareBody
	numBlocks
)

const frame = 0x7fff_0000_1000

// forking returns a program with a parallel region, whose first block forks.
func forking() *trace.Program {
	p := &trace.Program{Functions: []trace.Function{{Name: "main", Blocks: 3}, {Name: "h", First: 3, Blocks: 1}, {Name: "main.omp_outlined", First: 4, Blocks: 3, Outline: true}}}
	add := func(function uint32, kinds ...trace.Kind) {
		b := trace.Block{Function: function, FirstSite: uint32(len(p.Sites)), Sites: uint32(len(kinds))}
		for _, k := range kinds {
			s := trace.Site{Kind: k, Block: uint32(len(p.Blocks))}
			if k < trace.RangeRead {
				s.Bytes = 8
			}
			p.Sites = append(p.Sites, s)
		}
		p.Blocks = append(p.Blocks, b)
	}
	add(0, trace.Store, trace.ParallelBegin)
	add(0, trace.ParallelEnd, trace.Load)
	add(0, trace.Load, trace.Load)
	add(1, trace.Load, trace.Store)
	add(2, trace.Load, trace.RangeRead, trace.Store)
	add(2, trace.Modify)
	add(2, trace.LoopBegin)
	return p
}

// run returns the random steps of a run of the program, with the given number of regions. If the
// parameter end is false, the last region does not end.
func run(rng *rand.Rand, p *trace.Program, regions, length int, end bool) []tracetest.Step {
	var steps []tracetest.Step
	step := func(block uint32) {
		s := tracetest.Step{Block: block, Thread: 7}
		b := &p.Blocks[block]
		for n := b.FirstSite; n < b.FirstSite+b.Sites; n++ {
			addr := trace.Addr(0x1000) + rng.Uint64N(1<<12)
			switch rng.IntN(4) {
			case 0:
				addr = frame - 1 - rng.Uint64N(1<<12)
			case 1:
				addr = frame + rng.Uint64N(1<<12)
			}
			if p.Sites[n].Kind == trace.ParallelBegin {
				addr = frame
			}
			for v := range p.Sites[n].Values() {
				if v == 1 {
					addr = rng.Uint64N(3)
				}
				s.Values = append(s.Values, addr)
			}
		}
		steps = append(steps, s)
	}
	some := func(blocks ...uint32) {
		for range rng.IntN(length) {
			step(blocks[rng.IntN(len(blocks))])
		}
	}
	some(serial, both)
	for i := range regions {
		step(forks)
		if rng.IntN(2) == 0 {
			step(tail) // this block is executed at most once in each region
		}
		some(body, both, bareBody)
		if i+1 < regions || end {
			step(joins)
			some(serial, both)
		}
	}
	return steps
}

// windowsOf returns the executions of blocks that a trace consists of.
func windowsOf(p *trace.Program, steps []tracetest.Step) (all []window) {
	inside, forked := false, false
	for i, s := range steps {
		w := window{block: s.Block, place: i, inside: inside && s.Block != joins}
		rows := tracetest.Rows(p, s)
		for n, k := range rows.Kind {
			if k == trace.BareBlock {
				continue
			}
			w.rows = append(w.rows, ref{k, rows.Addr[n], rows.Bytes[n], rows.Site[n], rows.Arg[n], 0})
			w.stack = append(w.stack, forked && k.IsReference() && rows.Addr[n] < frame && rows.Addr[n] >= frame-stackBytes)
		}
		if s.Block == forks {
			inside, forked = true, true
		} else if s.Block == joins {
			inside = false
		}
		all = append(all, w)
	}
	return all
}

// movedTo returns a copy of the execution in which private addresses are moved to the address range
// of a core.
func (w window) movedTo(core int) window {
	w.rows = slices.Clone(w.rows)
	for i := range w.rows {
		w.rows[i].Thread = uint32(core)
		if w.stack[i] && core > 0 {
			w.rows[i].Addr += trace.Addr(core) << 48
		}
	}
	return w
}

// arrayDivide divides executions among cores. If the number of executions is not a multiple of the
// number of cores, the first cores get one more execution each.
func arrayDivide(wins []window, o Options) [][]window {
	m := o.Cores
	split := make([][]window, m)
	switch {
	case o.Guided:
		for len(wins) > 0 {
			free := 0
			for c := range split {
				if len(split[c]) < len(split[free]) {
					free = c
				}
			}
			n := min(len(wins), max(int(o.Chunk), (len(wins)+m-1)/m))
			split[free], wins = append(split[free], wins[:n]...), wins[n:]
		}
	case o.Chunk > 0:
		for i, w := range wins {
			split[i/int(o.Chunk)%m] = append(split[i/int(o.Chunk)%m], w)
		}
	default:
		for c := range split {
			n := len(wins) / (m - c)
			if len(wins)%(m-c) > 0 {
				n++
			}
			split[c], wins = wins[:n], wins[n:]
		}
	}
	return split
}

// genPrvtTrc implements Algorithm 1 with the corrections in the package documentation.
func genPrvtTrc(trc []window, parallel func(window) bool, o Options) [][]window {
	eachCoreTrace := make([][]window, o.Cores)
	for bb := range uint32(numBlocks) {
		var wins []window
		for _, w := range trc {
			if w.block == bb && parallel(w) {
				wins = append(wins, w)
			} else if w.block == bb {
				eachCoreTrace[0] = append(eachCoreTrace[0], w)
			}
		}
		if len(wins) == 1 {
			for core := range o.Cores {
				eachCoreTrace[core] = append(eachCoreTrace[core], wins[0].movedTo(core))
			}
			continue
		}
		for core, of := range arrayDivide(wins, o) {
			for _, w := range of {
				eachCoreTrace[core] = append(eachCoreTrace[core], w.movedTo(core))
			}
		}
	}
	for core := range eachCoreTrace {
		slices.SortFunc(eachCoreTrace[core], func(a, b window) int { return a.place - b.place })
	}
	return eachCoreTrace
}

// interleaveTraces implements Algorithm 2 with the round-robin strategy. The second result contains
// the positions in the shared trace at which groups of executions end.
func interleaveTraces(prvt [][]window, parallel func(window) bool) (shared []ref, groups []int) {
	allTraceWins := make([][numBlocks][]window, len(prvt))
	for core := range prvt {
		for _, w := range prvt[core] {
			if parallel(w) {
				allTraceWins[core][w.block] = append(allTraceWins[core][w.block], w)
			}
		}
	}
	instance := map[uint32]int{}
	for _, w := range prvt[0] {
		if !parallel(w) {
			shared = append(shared, w.rows...)
			groups = append(groups, len(shared))
			continue
		}
		mine := len(allTraceWins[0][w.block])
		for {
			n := instance[w.block]
			instance[w.block]++
			var refs [][]ref
			any := false
			for core := range prvt {
				refs = append(refs, nil)
				if wins := allTraceWins[core][w.block]; n < len(wins) {
					refs[core], any = slices.Clone(wins[n].rows), true
				}
			}
			if !any {
				break
			}
			for left := true; left; {
				left = false
				for core := range refs {
					for len(refs[core]) > 0 {
						next := refs[core][0]
						refs[core], shared = refs[core][1:], append(shared, next)
						left = true
						if next.Kind.IsReference() {
							break
						}
					}
				}
			}
			groups = append(groups, len(shared))
			if n+1 < mine {
				break
			}
		}
	}
	return shared, groups
}

// naive implements both algorithms. Executions are counted within sections. A section is the whole
// trace or a region.
func naive(trc []window, o Options) (prvt [][]window, shared []ref, groups []int) {
	parallelBlock := map[uint32]bool{}
	for _, w := range trc {
		parallelBlock[w.block] = parallelBlock[w.block] || w.inside
	}
	parallel := func(w window) bool { return parallelBlock[w.block] }
	if !o.PerRegion {
		prvt = genPrvtTrc(trc, parallel, o)
		shared, groups = interleaveTraces(prvt, parallel)
		return prvt, shared, groups
	}
	prvt = make([][]window, o.Cores)
	inside := func(w window) bool { return w.inside }
	for len(trc) > 0 {
		n := slices.IndexFunc(trc, func(w window) bool { return w.inside != trc[0].inside })
		if n < 0 {
			n = len(trc)
		}
		part := genPrvtTrc(trc[:n], inside, o)
		refs, at := interleaveTraces(part, inside)
		for _, g := range at {
			groups = append(groups, len(shared)+g)
		}
		shared = append(shared, refs...)
		for c := range part {
			prvt[c] = append(prvt[c], part[c]...)
		}
		trc = trc[n:]
	}
	return prvt, shared, groups
}

func drain(t rapid.TB, r *Reader, kinds trace.Kinds, rows int) (all []ref) {
	t.Helper()
	r.Select(kinds)
	s, b := tracetest.Spoil(r), trace.NewBatch(rows)
	for {
		err := s.Next(b)
		if err == io.EOF {
			if b.Len() > 0 {
				t.Fatalf("Next returned %d rows together with io.EOF, want none", b.Len())
			}
			return all
		}
		if err != nil || b.Len() == 0 {
			t.Fatalf("%d rows, %v", b.Len(), err)
		}
		for i := range b.Kind {
			x := ref{Kind: b.Kind[i], Addr: b.Addr[i], Bytes: b.Bytes[i], Site: b.Site[i], Thread: b.Thread[i]}
			if b.Arg != nil {
				x.Arg = b.Arg[i]
			}
			all = append(all, x)
		}
	}
}

func ofThread(all []ref, core int) (rows []ref) {
	for _, x := range all {
		if x.Thread == uint32(core) {
			rows = append(rows, x)
		}
	}
	return rows
}

const everything = trace.AllKinds | trace.EventKinds&^(1<<trace.BareBlock)

func wantSame(t rapid.TB, what string, got, want []ref) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: row %d of %d is %+v, want %+v", what, i, len(got), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
}

// TestMatchesPseudocode compares the readers with direct implementations of the algorithms, which
// keep everything in memory.
func TestMatchesPseudocode(t *testing.T) {
	p := forking()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		length := rapid.SampledFrom([]int{1, 6, 40, 40, 1200}).Draw(t, "length")
		steps := run(rng, p, rapid.IntRange(0, 4).Draw(t, "regions"), length, rapid.Bool().Draw(t, "ends"))
		o := Options{
			Cores: rapid.SampledFrom([]int{1, 2, 3, 4, 7, 64}).Draw(t, "cores"), PerRegion: rapid.Bool().Draw(t, "per region"),
			Chunk: rapid.SampledFrom([]uint64{0, 0, 1, 2, 5, 1 << 62}).Draw(t, "chunk"), Guided: rapid.Bool().Draw(t, "guided"),
		}
		if o.Guided && o.Chunk > 5 {
			o.Chunk = 5
		}
		trc := windowsOf(p, steps)
		prvt, shared, groups := naive(trc, o)
		whole := tracetest.Rows(p, steps...)
		rows := rapid.SampledFrom([]int{1, 7, 4096}).Draw(t, "rows")
		open := func(make func(trace.Reader, Options) (*Reader, error), o Options) *Reader {
			r, err := make(tracetest.NewProgramReader(p, whole, rows), o)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if len(steps) == 0 {
			t.Skip("no rows")
		}
		got := drain(t, open(Private, o), everything, rows)
		sum := 0
		for core := range prvt {
			var want []ref
			for _, w := range prvt[core] {
				want = append(want, w.rows...)
			}
			wantSame(t, "private", ofThread(got, core), want)
			sum += len(want)
		}
		if sum != len(got) {
			t.Fatalf("%d rows in all private traces, want %d", len(got), sum)
		}
		wantSame(t, "shared", drain(t, open(Shared, o), everything, rows), shared)

		only := slices.DeleteFunc(slices.Clone(shared), func(x ref) bool { return !x.Kind.IsReference() })
		r := open(Shared, o)
		wantSame(t, "shared references", drain(t, r, trace.AllKinds, rows), only)
		counts := make([]Count, numBlocks)
		for _, w := range trc {
			counts[w.block].Executions++
			for _, x := range w.rows {
				if x.Kind.IsReference() {
					counts[w.block].References++
				}
			}
		}
		for b, c := range r.Blocks() {
			if c.Executions != counts[b].Executions || c.References != counts[b].References || c.Parallel > c.Executions {
				t.Fatalf("counts of block %d = %+v, want %+v", b, c, counts[b])
			}
		}

		// If the order is random, each core's references keep their order, and the n-th executions
		// of all cores stay together.
		o.Order = interleave.Order{Policy: interleave.Uniform, Seed: rng.Uint64()}
		uniform := drain(t, open(Shared, o), everything, rows)
		for core := range o.Cores {
			wantSame(t, "uniform", ofThread(uniform, core), ofThread(shared, core))
		}
		for i, end := range groups {
			begin := 0
			if i > 0 {
				begin = groups[i-1]
			}
			for core := range o.Cores {
				wantSame(t, "uniform group", ofThread(uniform[begin:end], core), ofThread(shared[begin:end], core))
			}
		}
		wantSame(t, "uniform again", drain(t, open(Shared, o), everything, 100), uniform)
	})
}
