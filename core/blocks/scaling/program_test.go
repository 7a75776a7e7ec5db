package scaling

import (
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// nest is a loop with inner loops. The trip count of a rectangular loop is times·n + more, where
// "times" and "more" are fields. The trip count of a triangular loop is the number of completed
// iterations of the enclosing loop, plus the value of the field "more".
type nest struct {
	times, more int64
	triangle    bool
	inside      []*nest

	head, body uint32 // the blocks that contain the test and the body of this loop
}

// nested is a program whose main function consists of loop nests.
type nested struct {
	nests   []*nest
	program *trace.Program
	last    uint32
}

func drawNest(t *rapid.T, depth int) *nest {
	l := &nest{times: rapid.Int64Range(0, 3).Draw(t, "times"), more: rapid.Int64Range(0, 4).Draw(t, "more")}
	l.triangle = depth == 1 && rapid.Bool().Draw(t, "triangle")
	if depth < 2 {
		for range rapid.IntRange(0, 2-depth).Draw(t, "inside") {
			l.inside = append(l.inside, drawNest(t, depth+1))
		}
	}
	return l
}

func newNested(nests []*nest) *nested {
	p := &nested{nests: nests, program: &trace.Program{Modules: []trace.Module{{Name: "nests.c"}}}}
	add := func() uint32 {
		n := len(p.program.Blocks)
		p.program.Blocks = append(p.program.Blocks, trace.Block{
			Label: "b" + string(rune('a'+n)), FirstSite: uint32(n), Sites: 1,
			Ops: []trace.Op{{Opcode: "load", Type: "double", Count: 1}, {Opcode: "fadd", Type: "double", Count: uint32(n + 1)}},
		})
		p.program.Sites = append(p.program.Sites, trace.Site{Block: uint32(n), Kind: trace.Load, Bytes: 8})
		return uint32(n)
	}
	var lay func(l *nest, from uint32)
	lay = func(l *nest, from uint32) {
		l.head, l.body = add(), add()
		to := &p.program.Blocks[from]
		to.Successors = append(to.Successors, l.head)
		p.program.Blocks[l.head].Successors = []uint32{l.body}
		end := l.body
		for _, in := range l.inside {
			lay(in, end)
			end = in.head
		}
		p.program.Blocks[end].Successors = append(p.program.Blocks[end].Successors, l.head)
	}
	end := add()
	p.program.Blocks[0].Flags = trace.EntryBlock
	for _, l := range nests {
		lay(l, end)
		end = l.head
	}
	p.last = add()
	p.program.Blocks[end].Successors = append(p.program.Blocks[end].Successors, p.last)
	p.program.Functions = []trace.Function{{Name: "main", Blocks: p.last + 1}}
	return p
}

// run executes all iterations, and counts how often each edge is taken.
func (p *nested) run(n int64) (*blocks.Edges, *profile.Profile) {
	e := blocks.NewEdges(p.program)
	e.Entered[0] = 1
	at := uint32(0)
	e.Visits[0] = 1
	goTo := func(to uint32) {
		e.Taken[at][slices.Index(p.program.Blocks[at].Successors, to)]++
		e.Visits[to]++
		at = to
	}
	var walk func(l *nest, around int64)
	walk = func(l *nest, around int64) {
		goTo(l.head)
		trips := l.times*n + l.more
		if l.triangle {
			trips = around + l.more
		}
		for i := range trips {
			goTo(l.body)
			for _, in := range l.inside {
				walk(in, i)
			}
			goTo(l.head)
		}
	}
	for _, l := range p.nests {
		walk(l, 0)
	}
	goTo(p.last)
	e.Left[p.last] = 1
	return e, p.profile(e)
}

// profile returns the profile of a run. Every execution of a block accesses the same line, which no
// other block accesses.
func (p *nested) profile(e *blocks.Edges) *profile.Profile {
	out := &profile.Profile{Sites: &profile.Sites{LineBytes: 64}}
	out.Input.Kinds = trace.AllKinds
	kind := profile.KindLocality{Kind: trace.Load}
	for b, n := range e.Visits {
		if n == 0 {
			continue
		}
		s := profile.Site{Number: uint32(b), Kind: trace.Load, Bytes: 8, Reuse: profile.Reuse{Cold: 1}}
		s.Strides[profile.IrregularStride] = 1
		if s.Strides[profile.ZeroStride] = n - 1; n > 1 {
			s.Reuse.Bins = []profile.BinCount{{Bin: 1, Count: n - 1}}
		}
		out.Sites.Code = append(out.Sites.Code, s)
		kind.Cold++
		kind.Distances.AddN(1, n-1)
		out.Totals.References[trace.Load] += n
		out.Totals.Bytes[trace.Load] += 8 * n
	}
	out.Locality = []profile.Locality{{LineBytes: 64, Kinds: []profile.KindLocality{kind}}}
	out.Blocks = (&blocks.Run{Program: p.program, Edges: e}).Append(nil)
	return out
}

func (p *nested) input(n int64) Input {
	_, of := p.run(n)
	return Input{Name: "nests.sgp", Parameters: []int64{n}, Profile: of}
}

// TestAffineNestsArePredictedExactly checks that, for affine nests, every edge, count and reference
// is predicted exactly for a larger input.
func TestAffineNestsArePredictedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nests []*nest
		for range rapid.IntRange(1, 3).Draw(t, "nests") {
			nests = append(nests, drawNest(t, 0))
		}
		p := newNested(nests)
		var inputs []Input
		for _, n := range []int64{28, 12, 20, 40, 33} {
			inputs = append(inputs, p.input(n))
		}
		m, err := FitProgram([]string{"n"}, inputs)
		if err != nil {
			t.Fatal(err)
		}
		out, err := m.Predict([]int64{64})
		if err != nil {
			t.Fatal(err)
		}
		e, real := p.run(64)
		for b := range out.Of {
			if out.Of[b].Basis != Checked || out.Of[b].Executions != e.Visits[b] {
				t.Fatalf("block %d: predicted %d executions with the law %s (%s), want %d", b, out.Of[b].Executions, out.Of[b].Law.String(m.Names), out.Of[b].Basis, e.Visits[b])
			}
		}
		got := out.Run.Edges
		if out.Slack != 0 || !slices.EqualFunc(got.Taken, e.Taken, slices.Equal[[]uint64]) || !slices.Equal(got.Left, e.Left) || !slices.Equal(got.Entered, e.Entered) {
			t.Fatalf("predicted edges = %+v, want %+v", got, e)
		}
		if x, y := out.Profile, real; x.Totals.References != y.Totals.References || x.Totals.Bytes != y.Totals.Bytes || x.Locality[0].Lines() != y.Locality[0].Lines() ||
			x.Locality[0].Kinds[0].Distances.Count(1) != y.Locality[0].Kinds[0].Distances.Count(1) {
			t.Fatalf("predicted totals = %+v, want %+v", x.Totals, y.Totals)
		}
		for i := range real.Sites.Code {
			x, y := &out.Profile.Sites.Code[i], &real.Sites.Code[i]
			if x.Number != y.Number || x.Strides != y.Strides || x.Reuse.Cold != y.Reuse.Cold || !slices.Equal(x.Reuse.Bins, y.Reuse.Bins) {
				t.Fatalf("predicted site = %+v, want %+v", x, y)
			}
		}
		if _, err := costmodel.OpenPredicted(out.Profile, "", nil); err != nil {
			t.Fatal(err)
		}
	})
}

// irregular returns a run of a program with one loop. The argument trips is the trip count of the
// loop. The argument conditional is the number of iterations that execute a conditional block.
func irregular(name string, n int64, trips, conditional uint64) Input {
	p := &trace.Program{
		Modules: []trace.Module{{Name: "odd.c"}}, Functions: []trace.Function{{Name: "main", Blocks: 5}},
		Blocks: []trace.Block{
			{Label: "entry", Flags: trace.EntryBlock, Successors: []uint32{1}}, {Label: "head", Successors: []uint32{2, 4}},
			{Label: "body", Successors: []uint32{3, 1}}, {Label: "some", Successors: []uint32{1}}, {Label: "end"},
		},
	}
	e := blocks.NewEdges(p)
	e.Entered[0], e.Left[4] = 1, 1
	e.Visits = []uint64{1, trips + 1, trips, conditional, 1}
	e.Taken = [][]uint64{{1}, {trips, 1}, {conditional, trips - conditional}, {conditional}, {}}
	of := &profile.Profile{Sites: &profile.Sites{LineBytes: 64}, Locality: []profile.Locality{{LineBytes: 64}}}
	of.Blocks = (&blocks.Run{Program: p, Edges: e}).Append(nil)
	return Input{Name: name, Parameters: []int64{n}, Profile: of}
}

func predictProgram(t *testing.T, at int64, inputs ...Input) (*Predicted, error) {
	t.Helper()
	m, err := FitProgram([]string{"n"}, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return m.Predict([]int64{at})
}

// TestDataDependentProgram checks that data-dependent counts are marked as data-dependent, and that their
// predictions balance.
func TestDataDependentProgram(t *testing.T) {
	out, err := predictProgram(t, 1000, irregular("a", 100, 10_000, 517), irregular("b", 200, 40_000, 1089), irregular("c", 300, 90_000, 1733))
	if err != nil {
		t.Fatal(err)
	}
	for b, want := range []Basis{Checked, Checked, Checked, Fitted, Checked} {
		if out.Of[b].Basis != want {
			t.Errorf("block %d: basis %q with the law %s, want basis %q", b, out.Of[b].Basis, out.Of[b].Law.String([]string{"n"}), want)
		}
	}
	if got := out.Run.Edges.Visits[2]; got != 1_000_000 {
		t.Errorf("the loop runs %d iterations, want 1,000,000", got)
	}
	if got := out.Run.Edges.Visits[3]; got < 5_000 || got > 8_000 {
		t.Errorf("the data-dependent block runs %d times, want about 6,500", got)
	}
	if err := out.Run.Edges.Check(out.Run.Program); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(out.Doubts, func(s string) bool { return strings.Contains(s, "2 more runs") }) {
		t.Errorf("caveats %q, want a caveat that states how many more runs are needed", out.Doubts)
	}
}

// TestBlockInOnlyOneRun checks that a block is marked if only one of the runs executes it.
func TestBlockInOnlyOneRun(t *testing.T) {
	out, err := predictProgram(t, 1000, irregular("a", 100, 10_000, 0), irregular("b", 200, 40_000, 0), irregular("c", 300, 90_000, 33))
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Of[3]; got.Basis != Once {
		t.Errorf("block 3 is %+v, want the basis \"one run\"", got)
	}
	if err := out.Run.Edges.Check(out.Run.Program); err != nil {
		t.Error(err)
	}
}

// TestPredictedEdgesBalance checks that, for random runs, either the predicted edges balance, or
// the error contains the reason.
func TestPredictedEdgesBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inputs []Input
		for i := range rapid.Int64Range(2, 4).Draw(t, "runs") {
			trips := rapid.Uint64Range(1, 1<<rapid.IntRange(1, 50).Draw(t, "bits")).Draw(t, "trips")
			inputs = append(inputs, irregular("run", 10+i, trips, rapid.Uint64Range(0, trips).Draw(t, "some")))
		}
		m, err := FitProgram([]string{"n"}, inputs)
		if err != nil {
			t.Fatal(err)
		}
		out, err := m.Predict([]int64{rapid.Int64Range(1, 1<<30).Draw(t, "at")})
		if err != nil {
			return
		}
		if err := out.Run.Edges.Check(out.Run.Program); err != nil {
			t.Fatal(err)
		}
		if _, err := blocks.DecodeRun(out.Profile.Blocks); err != nil {
			t.Fatal(err)
		}
	})
}

// TestErrorsOfUnpredictableRuns checks the errors for runs that allow no prediction, and for laws
// that yield impossible counts.
func TestErrorsOfUnpredictableRuns(t *testing.T) {
	a, b, c := irregular("a", 100, 1_000, 0), irregular("b", 200, 800, 0), irregular("c", 300, 600, 0)
	if _, err := predictProgram(t, 1000, a, b, c); err == nil || !strings.Contains(err.Error(), "block head of main runs -799 times, according to the formula −2 n + 1201") {
		t.Errorf("error %v, want an error with the block, the count and the law", err)
	}
	a, b, c = irregular("a", 100, 1_000_000, 0), irregular("b", 200, 8_000_000, 0), irregular("c", 300, 27_000_000, 0)
	if _, err := predictProgram(t, 1<<24, a, b, c); err == nil || !strings.Contains(err.Error(), "2^64") {
		t.Errorf("error %v, want an error about a count of 2^64 or more", err)
	}
	if out, err := predictProgram(t, 200, a, b, c); err != nil || !slices.ContainsFunc(out.Doubts, func(s string) bool { return strings.Contains(s, "No parameter is larger") }) {
		t.Errorf("error %v, want no error, and a caveat about an input within the range of the runs", err)
	}
	other := newNested([]*nest{{times: 1}}).input(400)
	partial, extent, sampled, bare := irregular("p", 400, 1, 0), irregular("e", 400, 1, 0), irregular("s", 400, 1, 0), irregular("n", 400, 1, 0)
	extent.Profile.Input.Header.Extent.For = 1
	partial.Profile.State.Partial = true
	sampled.Profile.Sampled = &profile.Sampled{}
	bare.Profile.Blocks = nil
	for want, inputs := range map[string][]Input{
		"at least two": {a}, "different inputs": {a, a}, "different programs or builds": {a, other}, "p: the profile covers only a part of the run": {a, partial},
		"e: the profile covers only a part of the run": {a, extent}, "only a sample of the run": {a, sampled}, "contains no blocks": {a, bare},
	} {
		if _, err := FitProgram([]string{"n"}, inputs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("FitProgram: error %v, want an error with %q", err, want)
		}
	}
}
