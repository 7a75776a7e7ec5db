package blocksample

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*(1+math.Abs(a)+math.Abs(b)) }

func collect(t rapid.TB, o Options, p *trace.Program, whole *trace.Batch, rows int) []*Stack {
	t.Helper()
	c, err := New(o, func() *trace.Program { return p })
	if err != nil {
		t.Fatal(err)
	}
	r, b := tracetest.NewReader(whole, rows), trace.NewBatch(0)
	for r.Next(b) == nil {
		if err := c.Consume(b); err != nil {
			t.Fatal(err)
		}
	}
	return c.Result()
}

// oneEach returns a program in which each row belongs to a separate block, so that the distances of
// individual rows can be checked.
func oneEach(whole *trace.Batch) *trace.Program {
	p := &trace.Program{}
	whole.NeedSite()
	for i := range whole.Kind {
		whole.Site[i] = uint32(i)
		p.Blocks = append(p.Blocks, trace.Block{FirstSite: uint32(i), Sites: 1})
		p.Sites = append(p.Sites, trace.Site{Block: uint32(i), Bytes: 1})
	}
	return p
}

// stackDistances returns the stack distance of each row; for a cold access, it returns -1.
func stackDistances(stacks []*Stack, rows int) []int {
	list := make([]int, rows)
	for _, s := range stacks {
		for b := range s.Blocks {
			switch p := s.Blocks[b].Profile(); {
			case p == nil:
			case p.Cold > 0:
				list[b] = -1
			default:
				list[b] = int(p.Spans[0].From)
			}
		}
	}
	return list
}

// TestTable1 checks Table 1 of the paper.
func TestTable1(t *testing.T) {
	whole := tracetest.Lines(64, "a b a c b d d a")
	stacks := collect(t, Options{LineBytes: 64}, oneEach(whole), whole, 0)
	if got, want := stackDistances(stacks, 8), []int{-1, -1, 1, -1, 2, -1, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// "50 % of memory references will cause a compulsory cache miss. If cache size is three,
	// then 13 % of all memory references will cause a capacity miss."
	r, err := stacks[0].Rate(stacks[0].Counted(), hierarchy.Cache{SizeBytes: 3 * 64, LineBytes: 64})
	if err != nil || r.HitRate != 3./8 || r.Weight != 1 || r.Off != 0 || r.Method != hierarchy.Exact {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestTable2 checks Table 2 of the paper: at time 4, line a has a concurrent distance of 2, but a
// private distance of 1. At time 9, line a has a concurrent distance of 3, because d occurs twice
// but counts once. At time 10, line b has a concurrent distance of 2, which is less than its
// private distance.
func TestTable2(t *testing.T) {
	whole := tracetest.Lines(64, "a c b a e d b d a b")
	p := oneEach(whole)
	whole.NeedThread()
	copy(whole.Thread, []uint32{0, 1, 0, 0, 0, 1, 1, 0, 0, 0})
	crd := stackDistances(collect(t, Options{LineBytes: 64}, p, whole, 3), 10)
	prd := stackDistances(collect(t, Options{LineBytes: 64, SharedBy: 1}, p, whole, 3), 10)
	if want := []int{-1, -1, -1, 2, -1, -1, 3, 1, 3, 2}; !slices.Equal(crd, want) {
		t.Errorf("distances in the shared stack = %v, want %v", crd, want)
	}
	if want := []int{-1, -1, -1, 1, -1, -1, -1, -1, 2, 3}; !slices.Equal(prd, want) {
		t.Errorf("distances in the private stacks = %v, want %v", prd, want)
	}
}

// TestSDCM checks that the probability of a hit at a given distance follows eq. 5 and 6.
func TestSDCM(t *testing.T) {
	for _, c := range []struct {
		distance, ways, lines uint64
		want, off             float64
	}{
		{8, 8, 128, 0.999999999767, 1e-12},
		{100, 8, 128, 0.712466058, 1e-9},
		{127, 8, 128, 0.457447584, 1e-9},
		{2048, 16, 2048, 0.466355578, 1e-9},
		{5000, 16, 2048, 9.330426e-6, 1e-12},
		{3, 1, 64, math.Pow(63./64, 3), 1e-15},
	} {
		b := trace.NewBatch(int(c.distance) + 2)
		for i := range c.distance + 1 {
			b.Append(trace.Load, i*64, 1, 0, 0)
		}
		b.Append(trace.Load, 0, 1, 0, 0)
		p := oneEach(b)
		s := collect(t, Options{LineBytes: 64}, p, b, 0)[0]
		weights := make([]float64, b.Len())
		weights[b.Len()-1] = 1
		r, err := s.Rate(weights, hierarchy.Cache{Name: "L", SizeBytes: c.lines * 64, Ways: uint32(c.ways), LineBytes: 64})
		if err != nil || math.Abs(r.HitRate-c.want) > c.off || r.Method != hierarchy.SDCM {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
	}
}

func sum(list []float64) (n float64) {
	for _, x := range list {
		n += x
	}
	return n
}

// TestWeights compares the weights with values computed by hand from the equations.
func TestWeights(t *testing.T) {
	blocks := []Block{
		{Executions: 50, Accesses: 1},
		{Executions: 30, Parallel: 30, Accesses: 10},
		{Executions: 20, Parallel: 20, Accesses: 5},
		{Executions: 1000}, // a block without references
	}
	for _, c := range []struct {
		what      string
		got, want []float64
	}{
		{"eq. 1 printed", ForShared(blocks, Printed), []float64{0.5, 0.3, 0.2, 0}},
		{"eq. 1", ForShared(blocks, Corrected), []float64{50. / 450, 300. / 450, 100. / 450, 0}},
		// Half of the executions are parallel, on four cores: 0.5 + (0.5 / 4) / (0.5 + 0.5 / 4) =
		// 0.70.
		{"eq. 2 and 3 printed, core 0", ForPrivate(blocks, 4, 0, Printed), []float64{0.5, 0.075 / 0.625, 0.05 / 0.625, 0}},
		{"eq. 2 and 3 printed, core 3", ForPrivate(blocks, 4, 3, Printed), []float64{0, 0.075 / 0.625, 0.05 / 0.625, 0}},
		{"eq. 2 and 3, core 0", ForPrivate(blocks, 4, 0, Corrected), []float64{50. / 150, 75. / 150, 25. / 150, 0}},
		{"eq. 2 and 3, core 3", ForPrivate(blocks, 4, 3, Corrected), []float64{0, 0.75, 0.25, 0}},
		{"one core", ForPrivate(blocks, 1, 0, Printed), []float64{0.5, 0.3, 0.2, 0}},
		{"nothing", ForPrivate(make([]Block, 2), 4, 0, Corrected), []float64{0, 0}},
		{"nothing printed", ForPrivate(make([]Block, 2), 4, 0, Printed), []float64{0, 0}},
		{"partly parallel", ForPrivate([]Block{{Executions: 10, Parallel: 8, Accesses: 3}, {Executions: 5, Accesses: 6}}, 2, 0, Corrected),
			[]float64{(2*3 + 8*3/2.) / (6 + 30 + 12), 30. / (6 + 30 + 12)}},
	} {
		if !slices.EqualFunc(c.got, c.want, near) {
			t.Errorf("%s: weights %v, want %v", c.what, c.got, c.want)
		}
	}
	if n := sum(ForPrivate(blocks, 4, 0, Printed)); !near(n, 0.7) {
		t.Errorf("the weights by the printed equation sum to %v, want 0.70", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		var blocks []Block
		for range rapid.IntRange(1, 6).Draw(t, "blocks") {
			b := Block{Executions: rapid.Float64Range(1, 1e6).Draw(t, "executions"), Accesses: rapid.Float64Range(0.1, 30).Draw(t, "accesses")}
			b.Parallel = b.Executions * rapid.SampledFrom([]float64{0, 1, 0.5}).Draw(t, "parallel")
			blocks = append(blocks, b)
		}
		blocks = append(blocks, Block{Executions: 1, Parallel: 1, Accesses: 1})
		cores := rapid.IntRange(1, 64).Draw(t, "cores")
		for core := range min(cores, 2) {
			if n := sum(ForPrivate(blocks, cores, core, Corrected)); math.Abs(n-1) > 1e-9 {
				t.Fatalf("the weights for core %d of %d sum to %v, want 1", core, cores, n)
			}
			if n := sum(ForPrivate(blocks, cores, core, Printed)); n > 1+1e-9 {
				t.Fatalf("the weights by the printed equation for core %d of %d sum to %v, want at most 1", core, cores, n)
			}
		}
		for _, by := range []Weighting{Corrected, Printed} {
			if n := sum(ForShared(blocks, by)); math.Abs(n-1) > 1e-9 {
				t.Fatalf("the weights for a shared cache sum to %v, want 1", n)
			}
		}
	})
}

// randomRows generates rows, with or without block entries. The threads execute random blocks of
// one to three references.
func randomRows(rng *rand.Rand, threads, executions, lines int, entries bool) (*trace.Program, *trace.Batch) {
	p := &trace.Program{}
	for range 4 {
		n := uint32(1 + rng.IntN(3))
		p.Blocks = append(p.Blocks, trace.Block{FirstSite: uint32(len(p.Sites)), Sites: n})
		for range n {
			p.Sites = append(p.Sites, trace.Site{Block: uint32(len(p.Blocks)) - 1, Bytes: 8})
		}
	}
	b := trace.NewBatch(0)
	b.NeedThread()
	b.NeedSite()
	type running struct{ block, at uint32 }
	now := make([]running, threads)
	for i := range now {
		now[i].at = 99
	}
	for executions > 0 {
		t := rng.IntN(threads)
		x := &now[t]
		of := &p.Blocks[x.block]
		if x.at >= of.Sites {
			executions--
			*x = running{block: min(3, uint32(rng.IntN(40)/2))}
			if entries {
				b.Append(trace.BlockEntry, 0, 0, uint32(t), 0)
				b.Site[b.Len()-1] = x.block
			}
			continue
		}
		addr := uint64(rng.IntN(lines) * 64)
		if x.block == 1 {
			addr = uint64(t * 64)
		}
		b.Append(trace.Load, addr+uint64(rng.IntN(64)), 8, uint32(t), 0)
		b.Site[b.Len()-1] = of.FirstSite + x.at
		x.at++
	}
	return p, b
}

const cold = stack.Cold

// algorithm3 runs the paper's Algorithm 3 for the windows that windowNumber selects. It returns the
// distances in each block's windows, and the number of windows. The distance of a cold access is
// stack.Cold.
func algorithm3(p *trace.Program, whole *trace.Batch, stack uint32, o Options, seed uint64) (reuseDists [][]uint32, wins []uint64, executions []uint64) {
	type memRef struct {
		line   uint64
		window int
	}
	var memTrace []memRef
	var bbOf []uint32         // the block of each window
	now := map[uint32]int{}   // the current window of each thread
	at := map[uint32]uint32{} // the site of each thread's last reference
	// whether the thread has entered a block, but has not made a reference in this block yet
	entered := map[uint32]bool{}
	for i, k := range whole.Kind {
		th := whole.Thread[i]
		if o.SharedBy > 0 && th/o.SharedBy != stack {
			continue
		}
		if k == trace.BlockEntry {
			entered[th] = true
			continue
		}
		site := whole.Site[i]
		block := p.Sites[site].Block
		if w, ok := now[th]; !ok || entered[th] || bbOf[w] != block || site <= at[th] {
			now[th] = len(bbOf)
			bbOf = append(bbOf, block)
		}
		entered[th], at[th] = false, site
		for line := whole.Addr[i] / 64; line <= (whole.Addr[i]+uint64(whole.Bytes[i])-1)/64; line++ {
			memTrace = append(memTrace, memRef{line, now[th]})
		}
	}
	getRD := func(idx int) uint32 {
		seen := map[uint64]bool{}
		for j := idx - 1; j >= 0; j-- {
			if memTrace[j].line == memTrace[idx].line {
				return uint32(len(seen))
			}
			seen[memTrace[j].line] = true
		}
		return cold
	}
	reuseDists, wins, executions = make([][]uint32, len(p.Blocks)), make([]uint64, len(p.Blocks)), make([]uint64, len(p.Blocks))
	for bb := range p.Blocks {
		type numbered struct {
			number uint64
			window int
		}
		var bbWins []numbered
		for w, of := range bbOf {
			if of == uint32(bb) {
				bbWins = append(bbWins, numbered{windowNumber(seed, of, uint64(len(bbWins))), w})
			}
		}
		executions[bb] = uint64(len(bbWins))
		slices.SortFunc(bbWins, func(a, b numbered) int {
			if a.number < b.number {
				return -1
			}
			return 1
		})
		n, looked := 0, o.Looked.WithDefaults()
		for n < len(bbWins) && (n < looked.Least || float64(bbWins[n].number) < looked.Rate*(1<<64)) {
			n++
		}
		wins[bb] = uint64(n)
		chosen := map[int]bool{}
		for _, w := range bbWins[:n] {
			chosen[w.window] = true
		}
		for idx, ref := range memTrace {
			if chosen[ref.window] {
				reuseDists[bb] = append(reuseDists[bb], getRD(idx))
			}
		}
		slices.Sort(reuseDists[bb])
	}
	return reuseDists, wins, executions
}

// TestMatchesAlgorithm3 compares the windows and their distances with the results of a direct
// implementation of the paper's algorithm. The test uses both per-thread stacks and a common stack.
func TestMatchesAlgorithm3(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		threads := rapid.IntRange(1, 3).Draw(t, "threads")
		p, whole := randomRows(rng, threads, rapid.SampledFrom([]int{1, 20, 200, 900}).Draw(t, "executions"), 30, rapid.Bool().Draw(t, "entries"))
		o := Options{LineBytes: 64, Seed: rng.Uint64(), Looked: rapid.SampledFrom([]Looked{{}, All, {Rate: 0.2, Least: 3}, {Rate: 0.05, Least: 100}}).Draw(t, "looked"), SharedBy: rapid.SampledFrom([]uint32{0, 1, 2}).Draw(t, "shared by")}
		stacks := collect(t, o, p, whole, rapid.SampledFrom([]int{1, 10, 4096}).Draw(t, "rows"))
		for i, s := range stacks {
			c, _ := New(o, nil)
			if err := c.meet(uint32(threads) - 1); err != nil {
				t.Fatal(err)
			}
			dists, wins, executions := algorithm3(p, whole, uint32(i), o, c.stacks[i].seed)
			for b := range dists {
				var got []uint32
				var x Conditional
				if b < len(s.Blocks) {
					x = s.Blocks[b]
				}
				if x.groups != nil {
					for _, c := range x.sum() {
						for range c.n {
							got = append(got, c.distance)
						}
					}
				}
				if !slices.Equal(got, dists[b]) || x.Windows != wins[b] || x.Executions != executions[b] {
					t.Fatalf("stack %d, block %d: %d of %d windows are sampled, with the distances %v; want %d of %d with %v", i, b, x.Windows, x.Executions, got, wins[b], executions[b], dists[b])
				}
			}
		}
	})
}

var caches = []hierarchy.Cache{
	{Name: "full", SizeBytes: 64 * 64, LineBytes: 64},
	{Name: "sets", SizeBytes: 128 * 64, Ways: 8, LineBytes: 64},
	{Name: "direct", SizeBytes: 256 * 64, Ways: 1, LineBytes: 64},
}

// TestSampleOfAllWindowsEqualsTrace checks that the sum of all windows' profiles, weighted by
// accesses, equals the trace's profile (eq. 4), and that the hit ratios are also equal.
func TestSampleOfAllWindowsEqualsTrace(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 4))
	p, whole := randomRows(rng, 3, 5000, 400, true)
	s := collect(t, Options{LineBytes: 64, Looked: All}, p, whole, 0)[0]
	model, n := stack.NewExact(), 0.0
	hits := make([]float64, len(caches))
	for i, k := range whole.Kind {
		if !k.IsReference() {
			continue
		}
		for line := whole.Addr[i] / 64; line <= (whole.Addr[i]+7)/64; line++ {
			var d [1]uint32
			model.Distances([]trace.Line{line}, d[:])
			n++
			for j := range caches {
				if d[0] != stack.Cold {
					hits[j] += chance(&caches[j], uint64(d[0]))
				}
			}
		}
	}
	weights := s.Counted()
	for j, c := range caches {
		r, err := s.Rate(weights, c)
		if err != nil || math.Abs(r.HitRate-hits[j]/n) > 1e-9 || r.Off != 0 || r.Unknown != 0 {
			t.Errorf("%s: Rate = %+v, error %v, want the hit ratio %v", c.Name, r, err, hits[j]/n)
		}
		all := s.Profile(weights)
		if h, _ := all.Hits(c); math.Abs(h-r.HitRate) > 1e-9 || math.Abs(all.Accesses()-1) > 1e-9 {
			t.Errorf("%s: the profile has %v hits of %v accesses, but the hit ratio from the blocks is %v", c.Name, h, all.Accesses(), r.HitRate)
		}
	}
}

// TestStandardErrors checks that about 95 % of the samples are within two standard errors of the
// exact value, and that the error decreases with the number of windows.
func TestStandardErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 4))
	p, whole := randomRows(rng, 2, 30_000, 150, true)
	truth := collect(t, Options{LineBytes: 64, Looked: All}, p, whole, 0)[0]
	weights := truth.Counted()
	for _, c := range caches {
		want, err := truth.Rate(weights, c)
		if err != nil {
			t.Fatal(err)
		}
		within, squares, offs := 0, 0.0, 0.0
		const seeds = 60
		for seed := range uint64(seeds) {
			s := collect(t, Options{LineBytes: 64, Seed: seed}, p, whole, 0)[0]
			r, err := s.Rate(weights, c)
			if err != nil || !(r.Off > 0) {
				t.Fatalf("%s: %+v, %v", c.Name, r, err)
			}
			if math.Abs(r.HitRate-want.HitRate) <= 2*r.Off {
				within++
			}
			squares += (r.HitRate - want.HitRate) * (r.HitRate - want.HitRate)
			offs += r.Off * r.Off
		}
		if within < seeds*85/100 {
			t.Errorf("%s: %d of %d samples are within two standard errors", c.Name, within, seeds)
		}
		if ratio := math.Sqrt(squares / offs); ratio < 0.7 || ratio > 1.4 {
			t.Errorf("%s: the errors are %v times the estimated standard errors, want 0.7 to 1.4 times", c.Name, ratio)
		}
	}
}

// TestPredictionFromSingleThreadedRun checks the complete prediction, from a single-threaded run to
// the hit ratios of both levels.
func TestPredictionFromSingleThreadedRun(t *testing.T) {
	p := &trace.Program{
		Functions: []trace.Function{{Name: "main"}},
		Blocks:    []trace.Block{{Sites: 1}, {FirstSite: 1, Sites: 2}, {FirstSite: 3, Sites: 2}},
		Sites: []trace.Site{
			{Kind: trace.ParallelBegin}, {Kind: trace.ParallelEnd, Block: 1}, {Kind: trace.Load, Bytes: 8, Block: 1},
			{Kind: trace.Load, Bytes: 8, Block: 2}, {Kind: trace.Store, Bytes: 8, Block: 2},
		},
	}
	const cores, frame = 4, 0x7fff_0000_0000
	steps := []tracetest.Step{{Block: 0, Values: []uint64{frame}}}
	for i := range uint64(4000) { // references to a[i] and to a local variable
		steps = append(steps, tracetest.Step{Block: 2, Values: []uint64{0x10000 + 8*i, frame - 8}})
	}
	steps = append(steps, tracetest.Step{Block: 1, Values: []uint64{0x10000}})
	whole := tracetest.Rows(p, steps...)
	see := func(make func(trace.Reader, sasmm.Options) (*sasmm.Reader, error), private, all bool) ([]*Stack, []sasmm.Count) {
		r, err := make(tracetest.NewProgramReader(p, whole, 0), sasmm.Options{Cores: cores})
		if err != nil {
			t.Fatal(err)
		}
		o := Options{LineBytes: 64}
		if private {
			o.SharedBy = 1
		}
		if all {
			o.Looked = All
		}
		c, err := New(o, func() *trace.Program { return r.Header().Program })
		if err != nil {
			t.Fatal(err)
		}
		r.Select(trace.DataKinds | 1<<trace.BlockEntry)
		b := trace.NewBatch(0)
		for r.Next(b) == nil {
			if err := c.Consume(b); err != nil {
				t.Fatal(err)
			}
		}
		return c.Result(), r.Blocks()
	}
	own, counts := see(sasmm.Private, true, true)
	together, _ := see(sasmm.Shared, false, true)
	if len(own) != cores || len(together) != 1 || counts[2].Parallel != 4000 || counts[1].Parallel != 0 {
		t.Fatalf("%d and %d stacks, %+v", len(own), len(together), counts)
	}
	blocks := Blocks(counts, own...)
	c := caches[0]
	var rates []Rate
	for core, s := range own {
		r, err := s.Rate(ForPrivate(blocks, cores, core, Corrected), c)
		if err != nil {
			t.Fatal(err)
		}
		rates = append(rates, r)
		// Each core accesses a variable and a thousand elements of the array a, which occupy 125
		// lines.
		if core > 0 && !near(r.HitRate, 1-126./2000) {
			t.Errorf("core %d: %+v", core, r)
		}
	}
	if m := Mean(rates); math.Abs(m.HitRate-(1-126./2000)) > 0.001 || m.Off != 0 || !near(m.Weight, 1) {
		t.Errorf("%+v", m)
	}
	r, err := together[0].Rate(ForShared(blocks, Corrected), c)
	if err != nil || math.Abs(r.HitRate-(1-504./8001)) > 0.001 {
		t.Errorf("shared: %+v, %v", r, err)
	}
	// The error of an estimate from a sample is at most four times the stated standard error.
	some, _ := see(sasmm.Private, true, false)
	var sampled []Rate
	for core, s := range some {
		r, err := s.Rate(ForPrivate(blocks, cores, core, Corrected), c)
		if err != nil {
			t.Fatal(err)
		}
		sampled = append(sampled, r)
	}
	if m := Mean(sampled); !(m.Off > 0) || math.Abs(m.HitRate-(1-126./2000)) > 4*m.Off {
		t.Errorf("sampled: %+v", m)
	}
}

// TestImpossibleRequests checks that invalid line sizes, invalid rows and unsuitable caches return
// errors.
func TestImpossibleRequests(t *testing.T) {
	for _, line := range []uint32{0, 4, 48} {
		if _, err := New(Options{LineBytes: line}, nil); err == nil {
			t.Errorf("lines of %d bytes were accepted", line)
		}
	}
	p, whole := randomRows(rand.New(rand.NewPCG(1, 1)), 1, 20, 9, true)
	for want, change := range map[string]func(b *trace.Batch){
		"site 99":             func(b *trace.Batch) { b.Site[b.Len()-1] = 99 },
		"beyond the end":      func(b *trace.Batch) { b.Addr[b.Len()-1] = math.MaxUint64 - 3 },
		"threads \"number 70": func(b *trace.Batch) { b.Thread[b.Len()-1] = 70_000 },
	} {
		b := tracetest.Part(whole, 0, whole.Len())
		b.Addr, b.Site, b.Thread = slices.Clone(b.Addr), slices.Clone(b.Site), slices.Clone(b.Thread)
		b.Kind = slices.Clone(b.Kind)
		b.Kind[b.Len()-1], b.Bytes = trace.Load, slices.Clone(b.Bytes)
		b.Bytes[b.Len()-1] = 8
		change(b)
		c, err := New(Options{LineBytes: 64, SharedBy: 1}, func() *trace.Program { return p })
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Consume(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		c, _ = New(Options{LineBytes: 64}, func() *trace.Program { return p }) // a single stack accepts any number of threads
		if err := c.Consume(b); (err == nil) != (b.Thread[b.Len()-1] == 70_000) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s := collect(t, Options{LineBytes: 64}, p, whole, 0)[0]
	if _, err := s.Rate(s.Counted(), hierarchy.Cache{SizeBytes: 4096, LineBytes: 32}); err == nil {
		t.Error("a cache with a different line size was accepted")
	}
	r, err := s.Rate([]float64{0, 0, 0, 0, 0.5}, caches[0])
	if err != nil || r.Unknown != 0.5 || r.Weight != 0 || r.HitRate != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
