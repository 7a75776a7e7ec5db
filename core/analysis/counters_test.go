package analysis_test

import (
	"bytes"
	"cmp"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// worth contains the counts that one execution adds, for each instruction in
// tracetest.RandomProgram. The counts were written by hand according to the definitions.
var worth = map[string]profile.Counts{
	"fadd double":       {profile.Flops: 1, profile.FlopBits: 192, profile.OpBits: 192},
	"fmul <4 x float>":  {profile.Flops: 4, profile.VectorOps: 4, profile.FlopBits: 384, profile.OpBits: 384},
	"fcmp float":        {profile.FloatOther: 1, profile.OpBits: 65},
	"add i32":           {profile.IntegerOps: 1, profile.OpBits: 96},
	"icmp <2 x i64>":    {profile.IntegerOps: 2, profile.VectorOps: 2, profile.OpBits: 258},
	"getelementptr ptr": {profile.IntegerOps: 1, profile.OpBits: 192},
	"select i8":         {profile.IntegerOps: 1, profile.OpBits: 25},
	"sitofp double":     {profile.FloatOther: 1, profile.OpBits: 128},
	"call void":         {profile.CallOps: 1}, "call sin double": {profile.CallOps: 1},
	"phi i64": {}, "load double": {}, "alloca ptr": {},
}

// naiveCounters is a direct implementation of the definition of the counters: it counts every
// reference and every block entry separately.
type naiveCounters struct {
	p           *trace.Program
	code        map[uint32]*profile.BlockCounters // keyed by the block number of part 0 of the basic block
	loose       map[uint32]*profile.Counts        // keyed by function
	invocations map[uint32]uint64
	calls, mix  map[string]uint64
	accesses    map[uint64]uint64 // number of accesses to each byte
	by          map[uint32]map[uint64]bool
}

func (n *naiveCounters) basicBlock(number uint32) *profile.BlockCounters {
	first := number
	for n.p.Blocks[first].Part > 0 && first > 0 && n.p.Blocks[first-1].Label == n.p.Blocks[number].Label &&
		n.p.Blocks[first-1].Function == n.p.Blocks[number].Function {
		first--
	}
	if n.code[first] == nil {
		n.code[first] = &profile.BlockCounters{}
	}
	return n.code[first]
}

func (n *naiveCounters) enter(number uint32) {
	b, row := &n.p.Blocks[number], n.basicBlock(number)
	if b.Part == 0 {
		row.Executions++
	}
	if b.Flags&trace.EntryBlock != 0 {
		n.invocations[b.Function]++
	}
	if b.Callee != "" {
		n.calls[b.Callee]++
	}
	for _, op := range b.Ops {
		for range op.Count {
			n.mix[op.Opcode]++
			if op.Opcode == "call sin" {
				n.calls["sin"]++
			}
			row.Counts[profile.Instructions]++
			if op.Opcode == "br" {
				row.Counts[profile.UnconditionalBranches]++
				if len(b.Successors) == 2 {
					row.Counts[profile.UnconditionalBranches]--
					row.Counts[profile.ConditionalBranches]++
				}
				continue
			}
			w, ok := worth[op.Opcode+" "+op.Type]
			if !ok {
				panic("no counts are defined for " + op.Opcode + " " + op.Type)
			}
			row.Counts.Add(&w)
		}
	}
}

func (n *naiveCounters) reference(kind trace.Kind, site uint32, addr uint64, size uint32) {
	number := n.p.Sites[site].Block
	function := n.p.Blocks[number].Function
	var counts *profile.Counts
	if n.p.Blocks[number].Flags&trace.Synthetic == 0 {
		counts = &n.basicBlock(number).Counts
	} else {
		if n.loose[function] == nil {
			n.loose[function] = new(profile.Counts)
		}
		counts = n.loose[function]
	}
	times := uint64(1)
	switch kind {
	case trace.Load:
		counts[profile.Loads]++
		counts[profile.BytesLoaded] += uint64(size)
	case trace.Store:
		counts[profile.Stores]++
		counts[profile.BytesStored] += uint64(size)
	case trace.Modify:
		n.reference(trace.Load, site, addr, size)
		n.reference(trace.Store, site, addr, size)
		return
	case trace.RangeRead:
		counts[profile.RangesRead]++
		counts[profile.RangeBytesRead] += uint64(size)
	case trace.RangeWrite:
		counts[profile.RangesWritten]++
		counts[profile.RangeBytesWritten] += uint64(size)
	case trace.Fetch:
		return
	}
	if n.by[function] == nil {
		n.by[function] = map[uint64]bool{}
	}
	for i := range uint64(max(size, 1)) {
		n.accesses[addr+i] += times
		n.by[function][addr+i] = true
	}
}

// usage sorts all bytes by number of accesses, and adds up these numbers one by one.
func (n *naiveCounters) usage() (steps [profile.UsageSteps]uint64) {
	var counts []uint64
	total := uint64(0)
	for _, c := range n.accesses {
		counts = append(counts, c)
		total += c
	}
	slices.SortFunc(counts, func(x, y uint64) int { return cmp.Compare(y, x) })
	for step := range steps {
		held := uint64(0)
		for _, c := range counts {
			if held*profile.UsageSteps >= total*uint64(step+1) {
				break
			}
			held += c
			steps[step]++
		}
	}
	return steps
}

func countNaively(p *trace.Program, whole *trace.Batch, spec analysis.Spec) *naiveCounters {
	n := &naiveCounters{p: p, code: map[uint32]*profile.BlockCounters{}, loose: map[uint32]*profile.Counts{}, invocations: map[uint32]uint64{},
		calls: map[string]uint64{}, mix: map[string]uint64{}, accesses: map[uint64]uint64{}, by: map[uint32]map[uint64]bool{}}
	for i, k := range whole.Kind {
		if spec.Threads != nil && !slices.Contains(spec.Threads, whole.Thread[i]) {
			continue
		}
		switch {
		case k == trace.BlockEntry:
			n.enter(whole.Site[i])
		case k.IsReference() && spec.Kinds.Has(k):
			n.reference(k, whole.Site[i], whole.Addr[i], whole.Bytes[i])
		}
	}
	return n
}

func (n *naiveCounters) compare(t *testing.T, seed uint64, c *profile.Counters) {
	t.Helper()
	check := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %s: %+v, want %+v", seed, what, got, want)
		}
	}
	var code int
	for number, want := range n.code {
		if want.Executions == 0 && want.Counts == (profile.Counts{}) {
			continue
		}
		code++
		at := slices.IndexFunc(c.Code, func(b profile.BlockCounters) bool { return b.Number == number })
		if at < 0 {
			t.Fatalf("seed %d: the counters do not contain block %d", seed, number)
		}
		check("executions", c.Code[at].Executions, want.Executions)
		check("counts", c.Code[at].Counts, want.Counts)
	}
	check("basic blocks", len(c.Code), code)
	for i := range c.Functions {
		f := &c.Functions[i]
		check("invocations of "+f.Name, f.Invocations, n.invocations[f.Number])
		check("unique bytes of "+f.Name, f.UniqueBytes, uint64(len(n.by[f.Number])))
		if n.loose[f.Number] != nil {
			check("references outside the blocks of "+f.Name, f.Loose, *n.loose[f.Number])
		}
	}
	calls, mix := map[string]uint64{}, map[string]uint64{}
	for _, call := range c.Tallied(profile.Callees) {
		calls[call.Name] = call.Count
	}
	for _, op := range c.Tallied(profile.Opcodes) {
		mix[op.Name] = op.Count
	}
	check("calls", calls, n.calls)
	check("instruction mix", mix, n.mix)
	check("unique bytes", c.UniqueBytes, uint64(len(n.accesses)))
	check("memory usage", c.Usage, n.usage())
	total := c.Program()
	var references, bytes, instructions uint64
	for _, u := range append(c.Tallied(profile.LoadTypes), c.Tallied(profile.StoreTypes)...) {
		references += u.Count
		bytes += u.Bytes
	}
	for _, n := range mix {
		instructions += n
	}
	check("references by type", references, total[profile.Loads]+total[profile.Stores])
	check("bytes by type", bytes, total.Bytes())
	check("instructions", instructions, total[profile.Instructions])
}

func TestCountersEqualNaive(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 6))
		p := tracetest.RandomProgram(rng)
		whole := tracetest.Rows(p, tracetest.RandomSteps(rng, p, 1+rng.IntN(600))...)
		spec := analysis.Spec{Analyses: analysis.Counters, Kinds: trace.DataKinds}
		if seed%3 == 1 {
			spec.Threads = []uint32{0, 2}
		}
		if seed%3 == 2 {
			spec.Kinds = 1<<trace.Store | 1<<trace.RangeRead
		}
		r, err := analysis.NewRunner(spec, tracetest.NewProgramReader(p, whole, 1+rng.IntN(300)))
		if err != nil {
			t.Fatal(err)
		}
		finish(t, r)
		countNaively(p, whole, spec).compare(t, seed, checked(t, r.Finish(profile.State{})).Counters)
	}
}

// The counts of a matrix multiplication can be computed from the algorithm.
func TestCountersOfMatrixMultiplication(t *testing.T) {
	const n = 12
	p, steps := tracetest.Multiplication(n)
	got := resultOf(t, analysis.Spec{Analyses: analysis.Locality | analysis.Counters}, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 0))
	c := got.Counters
	sum, functions := c.Program(), c.ByFunction()
	for counter, want := range map[profile.Counter]uint64{
		profile.Flops: 2 * n * n * n, profile.Loads: 3 * n * n * n, profile.Stores: n * n * n, profile.BytesLoaded: 24 * n * n * n,
		profile.BytesStored: 8 * n * n * n, profile.ConditionalBranches: n*n*n + n*n + n, profile.UnconditionalBranches: n*n + n + 1,
		profile.CallOps: 2, profile.Returns: 2, profile.FlopBits: 2 * 192 * n * n * n,
	} {
		if sum[counter] != want {
			t.Errorf("%s: %d, want %d", counter.Meaning().Label, sum[counter], want)
		}
	}
	calls, bytes := sum.Sets()
	if calls != 1 || bytes != 8*n*n || functions[0][profile.RangesWritten] != 1 || functions[1][profile.Loads] != sum[profile.Loads] {
		t.Errorf("memset was called %d times with %d bytes; by function: %v", calls, bytes, functions)
	}
	if c.UniqueBytes != 3*8*n*n || c.Functions[0].UniqueBytes != 8*n*n || c.Functions[1].UniqueBytes != 3*8*n*n {
		t.Errorf("the number of unique bytes is %d; by function: %+v", c.UniqueBytes, c.Functions)
	}
	if c.Functions[1].Invocations != 1 || c.Functions[1].File != "multiply.c" || c.Code[0].Executions != 1 || len(c.Code) != 8 {
		t.Errorf("the functions are %+v, and the blocks are %+v", c.Functions, c.Code)
	}
	// Each byte of C is accessed 2n+1 times, and each byte of A and of B is accessed n times, so
	// half of all accesses are to C.
	const half = 8 * n * n * (2*n + 1 + n + n) / 2
	if c.Usage[profile.UsageSteps-1] != 3*8*n*n || c.Usage[9] != (half+2*n)/(2*n+1) {
		t.Errorf("the memory usage is %v", c.Usage)
	}
	want := []profile.Tally{{Kind: profile.Callees, Name: "multiply", Count: 1}, {Kind: profile.Callees, Name: "printf", Count: 1}}
	if got := c.Tallied(profile.Callees); !reflect.DeepEqual(got, want) {
		t.Errorf("the calls are %+v, want %+v", got, want)
	}
}

// The counts do not depend on whether the executions of a block are counted at its sites or at its
// entry.
func TestCountersBySite(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 14))
		p := tracetest.RandomProgram(rng)
		whole := tracetest.Rows(p, tracetest.RandomSteps(rng, p, 1+rng.IntN(600))...)
		spec := analysis.Spec{Kinds: []trace.Kinds{trace.DataKinds, trace.AllKinds, 1<<trace.Store | 1<<trace.RangeWrite}[seed%3]}
		if seed%4 == 0 {
			spec.Threads = []uint32{1}
		}
		few := resultOf(t, spec, tracetest.NewProgramReader(p, whole, 1+rng.IntN(300))).Counters
		spec.Analyses = analysis.Locality | analysis.Counters
		all := resultOf(t, spec, tracetest.NewProgramReader(p, whole, 1+rng.IntN(300))).Counters
		if few == nil {
			few = &profile.Counters{} // no block that has instructions was entered
		}
		if !reflect.DeepEqual(few.Code, all.Code) || !reflect.DeepEqual(few.Tallied(profile.Opcodes), all.Tallied(profile.Opcodes)) {
			if len(few.Code) != 0 || all.Ops {
				t.Fatalf("seed %d, %v: counting by site yields the blocks %+v, want %+v, as from counting by entry", seed, spec.Kinds, few.Code, all.Code)
			}
		}
	}
}

// By default, only counters that cost no time per reference are active, and only if the trace has
// instructions.
func TestDefaultCounters(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	p := tracetest.RandomProgram(rng)
	whole := tracetest.Rows(p, tracetest.RandomSteps(rng, p, 3000)...)
	all := resultOf(t, analysis.Spec{Analyses: analysis.Locality | analysis.Counters}, tracetest.NewProgramReader(p, whole, 0))
	few := resultOf(t, analysis.Spec{}, tracetest.NewProgramReader(p, whole, 0))
	if few.Counters == nil || few.Counters.Touched || few.Counters.UniqueBytes != 0 {
		t.Fatalf("the default counters are %+v, want counters without unique bytes", few.Counters)
	}
	got, want := few.Counters.Program(), all.Counters.Program()
	for _, c := range []profile.Counter{profile.Flops, profile.IntegerOps, profile.Instructions, profile.Loads} {
		if got[c] != want[c] {
			t.Errorf("counter %d is %d by default, but %d if counters are requested", c, got[c], want[c])
		}
	}
	for i := range p.Blocks {
		p.Blocks[i].Ops = nil
	}
	if c := resultOf(t, analysis.Spec{}, tracetest.NewProgramReader(p, whole, 0)).Counters; c != nil {
		t.Errorf("the default counters for blocks without instructions are %+v, want none", c)
	}
	if c := resultOf(t, analysis.Spec{}, tracetest.NewReader(randomTrace(rng, 1000), 0)).Counters; c != nil {
		t.Errorf("the default counters for a trace without blocks are %+v, want none", c)
	}
}

func resultOf(t *testing.T, spec analysis.Spec, r trace.Reader) *profile.Profile {
	t.Helper()
	runner, err := analysis.NewRunner(spec, r)
	if err != nil {
		t.Fatal(err)
	}
	finish(t, runner)
	return checked(t, runner.Finish(profile.State{}))
}

// For any analysed part of the trace, events do not change the results for references.
func TestEventsDoNotChangeResults(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 8))
		p := tracetest.RandomProgram(rng)
		whole := tracetest.Rows(p, tracetest.RandomSteps(rng, p, 1+rng.IntN(3000))...)
		spec := specs(rng, whole.Len())
		plain, mixed := spec, spec
		plain.Analyses, mixed.Analyses = analysis.Locality, analysis.Locality|analysis.Counters
		want := resultOf(t, plain, tracetest.NewProgramReader(p, whole, 1+rng.IntN(4000)))
		got := resultOf(t, mixed, tracetest.NewProgramReader(p, whole, 1+rng.IntN(4000)))
		if want.Counters != nil || got.Counters == nil {
			t.Fatalf("seed %d: the profile contains counters that were not requested, or does not contain requested counters", seed)
		}
		got.Counters = nil
		if got.Segment != nil {
			got.Segment.Touched = nil
		}
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d, %+v: events in the trace change the result", seed, spec)
		}
	}
}

// The code has a separate path for batches with few events among many references. This test covers
// that path.
func TestFewEventsDoNotChangeResults(t *testing.T) {
	p, steps := tracetest.Multiplication(40)
	whole := tracetest.Rows(p, steps...)
	want := resultOf(t, analysis.Spec{Analyses: analysis.Sets}, tracetest.NewProgramReader(p, whole, 0))
	got := resultOf(t, analysis.Spec{}, tracetest.NewProgramReader(p, whole, 0))
	if got.Counters == nil || got.Counters.Program()[profile.Flops] != 2*40*40*40 {
		t.Errorf("the counters are %+v, want none", got.Counters)
	}
	got.Counters, got.Sites, got.Timeline, got.Pages = nil, nil, nil, nil
	if !bytes.Equal(got.Encode(), want.Encode()) {
		t.Error("a few events in the trace change the result")
	}
}

// If only a part of a trace is analysed, exactly the events in this part are counted.
func TestEventsInPartOfTrace(t *testing.T) {
	p := &trace.Program{
		Blocks: []trace.Block{{Sites: 1, Ops: []trace.Op{{Opcode: "load", Type: "i8", Count: 1}}}},
		Sites:  []trace.Site{{Kind: trace.Load, Bytes: 1}},
	}
	var steps []tracetest.Step
	for i := range 10 {
		steps = append(steps, tracetest.Step{Values: []uint64{uint64(i)}})
	}
	whole := tracetest.Rows(p, steps...)
	for _, c := range []struct{ skip, limit, references, entered uint64 }{
		{0, 0, 10, 10}, {3, 0, 7, 7}, {0, 4, 4, 4}, {3, 4, 4, 4}, {10, 0, 0, 0}, {9, 5, 1, 1}, {0, 10, 10, 10}, {20, 0, 0, 0},
	} {
		for rows := 1; rows < 25; rows++ {
			spec := analysis.Spec{Skip: c.skip, Limit: c.limit, Analyses: analysis.Counters}
			got := resultOf(t, spec, tracetest.NewProgramReader(p, whole, rows))
			entered := uint64(0)
			if len(got.Counters.Code) > 0 {
				entered = got.Counters.Code[0].Executions
			}
			if got.Totals.AllReferences() != c.references || entered != c.entered {
				t.Fatalf("skip %d, limit %d, %d rows per batch: counted %d references and %d block entries, want %d and %d",
					c.skip, c.limit, rows, got.Totals.AllReferences(), entered, c.references, c.entered)
			}
		}
	}
}

func TestSaveRestoreWithEvents(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 9))
		p := tracetest.RandomProgram(rng)
		whole := tracetest.Rows(p, tracetest.RandomSteps(rng, p, 1+rng.IntN(4000))...)
		spec := specs(rng, whole.Len())
		spec.Analyses = analysis.Analyses(rng.UintN(4))
		want := resultOf(t, spec, tracetest.NewProgramReader(p, whole, 0))
		got := interrupted(t, rng, spec, 30, func() trace.Reader { return tracetest.NewProgramReader(p, whole, 1+rng.IntN(4096)) }, nil)
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the result of the resumed run differs from the result of the uninterrupted run", seed)
		}
	}
}

func TestAppendWithEvents(t *testing.T) {
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 10))
		p := tracetest.RandomProgram(rng)
		whole := tracetest.Rows(p, tracetest.RandomSteps(rng, p, 1+rng.IntN(2000))...)
		n := whole.Len()
		spec := analysis.Spec{Kinds: []trace.Kinds{trace.AllKinds, 1 << trace.Load, trace.DataKinds}[rng.IntN(3)], Mergeable: true, Analyses: []analysis.Analyses{analysis.Default,
			analysis.Counters, analysis.Locality | analysis.Counters}[seed%3]}
		if rng.IntN(2) == 0 {
			spec.Threads = []uint32{0, 1}[:1+rng.IntN(2)]
		}
		if rng.IntN(2) == 0 {
			spec.Limit = 1 + rng.Uint64N(uint64(n))
		}
		want := analysis.AsSegment(resultOf(t, spec, tracetest.NewProgramReader(p, whole, 0)))
		var parts []*profile.Profile
		for lo := 0; lo < n; {
			hi := min(n, lo+1+rng.IntN(1+n/2))
			if rng.IntN(3) == 0 {
				hi = min(n, lo+rng.IntN(4)) // the part may contain no references, or even no rows
			}
			part := spec
			if part.Start = selectedBefore(whole, lo, spec); spec.Limit > 0 {
				part.Start = min(part.Start, spec.Limit)
			}
			parts = append(parts, resultOf(t, part, tracetest.NewProgramReader(p, tracetest.Part(whole, lo, hi), 1+rng.IntN(4096))))
			lo = hi
		}
		got, err := appended(t, rng, spec, parts)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(analysis.AsSegment(got).Encode(), want.Encode()) {
			t.Fatalf("seed %d: the joined profile differs from the profile of the whole trace:\n%+v\n%+v", seed, got.Counters, want.Counters)
		}
	}
}

// referencesBefore returns the number of references before a row.
func referencesBefore(b *trace.Batch, before int) (n uint64) {
	for _, k := range b.Kind[:before] {
		if k.IsReference() {
			n++
		}
	}
	return n
}

func TestAppendRejectsOtherPrograms(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 11))
	p := tracetest.RandomProgram(rng)
	whole := tracetest.Rows(p, tracetest.RandomSteps(rng, p, 500)...)
	spec := analysis.Spec{Mergeable: true, Analyses: analysis.Counters}
	a := resultOf(t, spec, tracetest.NewProgramReader(p, whole, 0))
	spec.Start = a.Totals.AllReferences()
	other := *p
	other.Functions = slices.Clone(p.Functions)
	for i := range other.Functions {
		other.Functions[i].Name += "x"
	}
	b := resultOf(t, spec, tracetest.NewProgramReader(&other, whole, 0))
	if _, err := analysis.Append(spec, a, b); err == nil {
		t.Error("joining segments of two programs returned no error")
	}
}

func TestUnknownBlock(t *testing.T) {
	p := tracetest.RandomProgram(rand.New(rand.NewPCG(4, 12)))
	whole := tracetest.Rows(p, tracetest.Step{Block: 0, Values: make([]uint64, 20)})
	for _, kind := range []trace.Kind{trace.BareBlock, trace.RangeRead} {
		broken := *whole
		broken.Kind, broken.Site = slices.Clone(whole.Kind), slices.Clone(whole.Site)
		broken.Kind[0], broken.Site[0] = kind, 1<<30
		r, err := analysis.NewRunner(analysis.Spec{}, programTables{tracetest.NewReader(&broken, 0), p})
		for err == nil {
			err = r.Step()
		}
		if err == io.EOF {
			t.Errorf("a %v with an unknown site returned no error", kind)
		}
	}
}

// programTables is a reader that returns the rows of another reader, and adds the tables of a
// program.
type programTables struct {
	*tracetest.Reader
	p *trace.Program
}

func (r programTables) Header() trace.Header { return trace.Header{Program: r.p} }

func TestStepWithEventsAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 13))
	p := tracetest.RandomProgram(rng)
	whole := tracetest.Rows(p, tracetest.RandomSteps(rng, p, 200_000)...)
	r, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Locality | analysis.Counters}, tracetest.NewProgramReader(p, whole, 0))
	if err != nil {
		t.Fatal(err)
	}
	allocatesNothing(t, r, 60)
}

func TestParseAnalyses(t *testing.T) {
	for text, want := range map[string]analysis.Analyses{
		"default": analysis.Default, "locality": analysis.Locality, "counters": analysis.Counters,
		"locality, counters": analysis.Locality | analysis.Counters, "sets": analysis.Sets, "sites,sets": analysis.Sites | analysis.Sets,
		"loops": analysis.Loops, "default,loops": analysis.Loops, "locality,loops": analysis.Locality | analysis.Loops,
	} {
		got, err := analysis.ParseAnalyses(text)
		if err != nil || got != want {
			t.Errorf("ParseAnalyses(%q) = %v, error %v, want %v", text, got, err, want)
		}
		if again, err := analysis.ParseAnalyses(got.String()); err != nil || again != got {
			t.Errorf("%s is formatted as %q, which is parsed as %v, %v", text, got.String(), again, err)
		}
	}
	for _, text := range []string{"", "count", "locality,", "default,counters"} {
		if got, err := analysis.ParseAnalyses(text); err == nil {
			t.Errorf("ParseAnalyses(%q) = %v, want an error", text, got)
		}
	}
}

// selectedBefore returns the number of references before a row, counting only references that the
// spec selects.
func selectedBefore(b *trace.Batch, before int, spec analysis.Spec) (n uint64) {
	for i, k := range b.Kind[:before] {
		if k.IsReference() && spec.Kinds.Has(k) && (spec.Threads == nil || slices.Contains(spec.Threads, b.Thread[i])) {
			n++
		}
	}
	return n
}
