package blocks

import (
	"errors"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// drawProgram returns a random program. The program's functions call each other, and have arbitrary
// control-flow graphs, some of which are irreducible.
func drawProgram(t *rapid.T) *trace.Program {
	p := &trace.Program{}
	functions := rapid.IntRange(1, 4).Draw(t, "functions")
	for n := range functions {
		first := len(p.Blocks)
		k := rapid.IntRange(1, 7).Draw(t, "blocks")
		p.Functions = append(p.Functions, trace.Function{Name: "f" + strconv.Itoa(n), First: uint32(first), Blocks: uint32(k)})
		for b := range k {
			block := trace.Block{Function: uint32(n), Label: "b" + strconv.Itoa(b), File: "a.c", FirstLine: uint32(b), LastLine: uint32(b)}
			if b == 0 {
				block.Flags = trace.EntryBlock
			}
			for range rapid.SampledFrom([]int{0, 1, 1, 2, 2, 3}).Draw(t, "ways") {
				if k > 1 {
					block.Successors = append(block.Successors, uint32(first+rapid.IntRange(1, k-1).Draw(t, "to")))
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "calls") == 0 {
				block.Callee = "f" + strconv.Itoa(rapid.IntRange(0, functions).Draw(t, "callee"))
			}
			p.Blocks = append(p.Blocks, block)
		}
	}
	return p
}

// drawSystem returns a system of a random program with random weights and entries.
func drawSystem(t *rapid.T) *System {
	p := drawProgram(t)
	s, err := NewSystem(p)
	if err != nil {
		t.Fatal(err)
	}
	weight := rapid.SampledFrom([]uint64{0, 1, 1, 2, 3, 7, 100, 1 << 31, 1 << 50})
	for b := range p.Blocks {
		w := make([]uint64, len(p.Blocks[b].Successors))
		for i := range w {
			w[i] = weight.Draw(t, "weight")
		}
		leaves := uint64(0)
		if rapid.IntRange(0, 2).Draw(t, "leaves") == 0 {
			leaves = weight.Draw(t, "weight of leaving")
		}
		if err := s.Set(b, w, leaves); err != nil {
			t.Fatal(err)
		}
	}
	s.Enter(0, uint64(rapid.IntRange(1, 3).Draw(t, "entries")))
	if rapid.IntRange(0, 2).Draw(t, "more entries") == 0 {
		s.Enter(len(p.Functions)-1, 5)
		s.Resume(len(p.Blocks)-1, 2)
	}
	return s
}

// naive solves the whole program at once, by Gaussian elimination over the reachable blocks. It
// returns nil if there is no solution, or if a count is negative.
func naive(s *System) []*big.Rat {
	p := s.program
	n := len(p.Blocks)
	reached := make([]bool, n)
	entryOf := map[string]int{}
	for i := range p.Functions {
		entryOf[p.Functions[i].Name] = int(p.Functions[i].First)
	}
	var follow func(b int)
	each := func(b int, visit func(to int, part *big.Rat)) {
		total := new(big.Int).SetUint64(s.leaves[b])
		for i := range p.Blocks[b].Successors {
			total.Add(total, new(big.Int).SetUint64(s.weight(uint32(b), i)))
		}
		for i, next := range p.Blocks[b].Successors {
			if w := s.weight(uint32(b), i); w > 0 {
				visit(int(next), new(big.Rat).SetFrac(new(big.Int).SetUint64(w), total))
			}
		}
		if to, ok := entryOf[p.Blocks[b].Callee]; ok {
			visit(to, big.NewRat(1, 1))
		}
	}
	follow = func(b int) {
		if !reached[b] {
			reached[b] = true
			each(b, func(to int, _ *big.Rat) { follow(to) })
		}
	}
	rows := make([][]*big.Rat, n)
	for j := range rows {
		rows[j] = rationals(n + 1)
		rows[j][j].SetInt64(1)
		rows[j][n].SetInt64(int64(s.resumed[j]))
	}
	for i := range p.Functions {
		f := &p.Functions[i]
		rows[f.First][n].Add(rows[f.First][n], big.NewRat(int64(s.entered[i]), 1))
	}
	for b := range p.Blocks {
		if rows[b][n].Sign() > 0 {
			follow(b)
		}
	}
	for b := range p.Blocks {
		if reached[b] {
			each(b, func(to int, part *big.Rat) { rows[to][b].Sub(rows[to][b], part) })
		}
	}
	for k := range n {
		at := k
		for at < n && rows[at][k].Sign() == 0 {
			at++
		}
		if at == n {
			return nil
		}
		rows[k], rows[at] = rows[at], rows[k]
		for i := range n {
			if i == k || rows[i][k].Sign() == 0 {
				continue
			}
			r := new(big.Rat).Quo(rows[i][k], rows[k][k])
			for j := k; j <= n; j++ {
				rows[i][j].Sub(rows[i][j], new(big.Rat).Mul(r, rows[k][j]))
			}
		}
	}
	x := make([]*big.Rat, n)
	for k := range x {
		if x[k] = new(big.Rat).Quo(rows[k][n], rows[k][k]); x[k].Sign() < 0 {
			return nil
		}
	}
	return x
}

// hasUnknown reports whether an error states that a branch without weights is reachable.
func hasUnknown(err error) bool {
	return strings.Contains(err.Error(), "its successors are unknown")
}

// TestSolutionEqualsReference compares counts with the reference implementation. Rational counts
// and proven integers must be equal to the reference, and floating-point counts must be within the
// stated error.
func TestSolutionEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		c, err := s.Solve()
		if err != nil {
			if !hasUnknown(err) && naive(s) != nil {
				t.Fatalf("Solve() = %v, but the system has a solution", err)
			}
			return
		}
		want := naive(s)
		if want == nil {
			t.Fatal("Solve found a solution of a system that has none")
		}
		exact, err := s.Rational()
		if err != nil {
			t.Fatal(err)
		}
		for b := range want {
			if exact[b].Cmp(want[b]) != 0 {
				t.Fatalf("block %d: rational count %v, want %v", b, exact[b], want[b])
			}
			w, _ := want[b].Float64()
			if f := s.program.Blocks[b].Function; c.Whole[f] {
				if !want[b].IsInt() || want[b].Num().Uint64() != c.Exact[b] {
					t.Fatalf("block %d: integer count %d, want %v", b, c.Exact[b], want[b])
				}
			} else if off := math.Abs(c.Visits[b]-w) / max(w, 1e-300); w > 0 && off > c.Error+1e-15 || w == 0 && c.Visits[b] != 0 {
				t.Fatalf("block %d: count %g, want %g: the relative error is %g, but the stated error is %g", b, c.Visits[b], w, off, c.Error)
			}
		}
		if c.Error > 1e-6 {
			t.Logf("error of %g", c.Error)
		}
	})
}

// walk executes a program with random branches, and counts its edges.
type walk struct {
	t     *rapid.T
	p     *trace.Program
	e     *Edges
	steps int
}

// invoke executes a function. It returns false if an exception leaves the function.
func (w *walk) invoke(n, depth int) bool {
	at := w.p.Functions[n].First
	for {
		b := &w.p.Blocks[at]
		w.e.Visits[at]++
		w.steps--
		for i := range w.p.Functions {
			if w.p.Functions[i].Name != b.Callee {
				continue
			}
			if w.steps <= 0 {
				w.e.Unmade[at]++
			} else if !w.invoke(i, depth+1) {
				// The exception is caught at a landing pad that no edge of the graph reaches.
				if pad := w.p.Functions[n].First + w.p.Functions[n].Blocks - 1; depth%3 == 0 && pad != w.p.Functions[n].First && w.steps > 0 {
					w.e.Left[at]++
					w.e.Resumed[pad]++
					at = pad
					b = nil
				} else {
					w.e.Left[at]++
					return false
				}
			}
			if b == nil {
				break
			}
		}
		if b == nil {
			continue
		}
		if len(b.Successors) == 0 || w.steps <= 0 {
			w.e.Left[at]++
			return w.steps > 0 && rapid.IntRange(0, 9).Draw(w.t, "throws") > 0
		}
		i := rapid.IntRange(0, len(b.Successors)-1).Draw(w.t, "way")
		w.e.Taken[at][i]++
		at = b.Successors[i]
	}
}

// TestEdgesReproduceCounts checks that the solution of a run's system equals the counts of the run.
func TestEdgesReproduceCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		w := &walk{t, p, NewEdges(p), 300}
		for w.steps > 0 {
			w.e.Entered[0]++
			w.invoke(0, 0)
			w.steps--
		}
		s, err := FromEdges(p, w.e)
		if err != nil {
			t.Fatal(err)
		}
		checkRun(t, s, w.e)
	})
}

func checkRun(t interface{ Fatalf(string, ...any) }, s *System, e *Edges) {
	c, err := s.Solve()
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !c.AllWhole() {
		t.Fatalf("not all counts of a run are proven: Whole = %v, Error = %g", c.Whole, c.Error)
	}
	for b := range c.Exact {
		if c.Exact[b] != e.Visits[b] || c.Visits[b] != float64(e.Visits[b]) {
			t.Fatalf("%s: count %d, want %d", name(s.program, b), c.Exact[b], e.Visits[b])
		}
	}
	for n := range s.program.Functions {
		if want := e.Visits[s.program.Functions[n].First] - e.Resumed[s.program.Functions[n].First]; c.Invoked[n] != want {
			t.Fatalf("%s: invoked %d times, want %d", s.program.Functions[n].Name, c.Invoked[n], want)
		}
	}
}

// nest returns a program of nested loops. Each loop has a head, which contains the test, and a
// latch.
func nest(depth int) *trace.Program {
	p := &trace.Program{Functions: []trace.Function{{Name: "main", Blocks: uint32(2 + 2*depth)}}}
	p.Blocks = append(p.Blocks, trace.Block{Label: "entry", Flags: trace.EntryBlock, Successors: []uint32{1}})
	for d := range uint32(depth) {
		leave := uint32(depth) + d // the latch of the enclosing loop
		if d == 0 {
			leave = uint32(1 + 2*depth)
		}
		p.Blocks = append(p.Blocks, trace.Block{Label: "head" + strconv.Itoa(int(d)), Flags: trace.HeaderBlock, Successors: []uint32{d + 2, leave}, Loop: d + 2, Depth: d + 1})
	}
	for d := range uint32(depth) {
		p.Blocks = append(p.Blocks, trace.Block{Label: "latch" + strconv.Itoa(int(d)), Flags: trace.LatchBlock, Successors: []uint32{d + 1}, Loop: d + 2, Depth: d + 1})
	}
	p.Blocks[depth].Successors[0] = uint32(2 * depth) // the innermost latch
	p.Blocks = append(p.Blocks, trace.Block{Label: "exit", Flags: trace.ReturnBlock})
	return p
}

// TestNestsAreExact checks that all counts are exact for one loop of 10^9 iterations, two nested
// loops of 2·10^6 iterations each, three nested loops of 3·10^5 iterations each, and deeper nests.
// If the elimination used subtraction, the errors in the first three nests would be 28, 3·10^7 and
// 5·10^13 (MODELS §12).
func TestNestsAreExact(t *testing.T) {
	for _, test := range []struct {
		depth int
		trips uint64
	}{{1, 1e9}, {2, 2e6}, {3, 3e5}, {1, 1e12}, {2, 1e6}, {3, 1e4}, {4, 1e3}, {6, 100}, {12, 10}, {18, 10}} {
		p := nest(test.depth)
		s, err := NewSystem(p)
		if err != nil {
			t.Fatal(err)
		}
		s.Enter(0, 1)
		for d := range test.depth {
			if err := s.Set(1+d, []uint64{test.trips, 1}, 0); err != nil {
				t.Fatal(err)
			}
		}
		c, err := s.Solve()
		if err != nil {
			t.Fatal(err)
		}
		n := uint64(1)
		for d := range test.depth {
			head := n * (test.trips + 1)
			n *= test.trips
			if got := c.Exact[1+d]; !c.AllWhole() || got != head || c.Exact[1+test.depth+d] != n {
				t.Errorf("%d nested loops of %d iterations: head %d runs %d times, want %d; the body runs %d times, want %d", test.depth, test.trips, d, got, head, c.Exact[1+test.depth+d], n)
			}
		}
	}
}

// fib returns a program with a function that calls itself twice.
func fib() *trace.Program {
	return &trace.Program{
		Functions: []trace.Function{{Name: "main", Blocks: 2}, {Name: "fib", First: 2, Blocks: 5}},
		Blocks: []trace.Block{
			{Label: "entry", Flags: trace.EntryBlock, Callee: "fib", Successors: []uint32{1}},
			{Label: "entry", Part: 1, Flags: trace.ReturnBlock},
			{Function: 1, Label: "entry", Flags: trace.EntryBlock, Successors: []uint32{3, 6}},
			{Function: 1, Label: "more", Callee: "fib", Successors: []uint32{4}},
			{Function: 1, Label: "more", Part: 1, Callee: "fib", Successors: []uint32{5}},
			{Function: 1, Label: "more", Part: 2, Successors: []uint32{6}},
			{Function: 1, Label: "done", Flags: trace.ReturnBlock},
		},
	}
}

// TestRecursionIsExact checks the counts of fib(n), which causes 2·F(n+1) − 1 invocations of fib.
// F(n+1) of these invocations make no further call.
func TestRecursionIsExact(t *testing.T) {
	for _, n := range []int{1, 2, 10, 30, 50, 80} {
		a, b := uint64(0), uint64(1) // F(0), F(1)
		for range n {
			a, b = b, a+b
		}
		leaves, more := b, b-1
		p := fib()
		e := NewEdges(p)
		e.Visits = []uint64{1, 1, leaves + more, more, more, more, leaves + more}
		e.Taken = [][]uint64{{1}, {}, {more, leaves}, {more}, {more}, {more}, {}}
		e.Entered[0], e.Left[1], e.Left[6] = 1, 1, leaves+more
		s, err := FromEdges(p, e)
		if err != nil {
			t.Fatal(err)
		}
		checkRun(t, s, e)
		// the weights alone also determine the solution
		s.known = nil
		checkRun(t, s, e)
		exact, err := s.Rational()
		if err != nil || exact[2].Num().Uint64() != leaves+more || !exact[2].IsInt() {
			t.Errorf("fib(%d): %v invocations, error %v, want %d", n, exact[2], err, leaves+more)
		}
	}
}

// TestMutualRecursion uses two functions, even and odd, which call each other while they count down
// from n.
func TestMutualRecursion(t *testing.T) {
	p := &trace.Program{}
	for n, callee := range []string{"odd", "even"} {
		first := uint32(3 * n)
		p.Functions = append(p.Functions, trace.Function{Name: []string{"even", "odd"}[n], First: first, Blocks: 3})
		p.Blocks = append(p.Blocks,
			trace.Block{Function: uint32(n), Label: "entry", Flags: trace.EntryBlock, Successors: []uint32{first + 1, first + 2}},
			trace.Block{Function: uint32(n), Label: "more", Callee: callee, Flags: trace.ReturnBlock},
			trace.Block{Function: uint32(n), Label: "zero", Flags: trace.ReturnBlock})
	}
	s, err := NewSystem(p)
	if err != nil {
		t.Fatal(err)
	}
	// even(10^12) causes 10^12/2 + 1 invocations of even
	const half = 500_000_000_000
	set(t, s, 0, half, 1)
	set(t, s, 3, 1, 0)
	s.Enter(0, 1)
	c, err := s.Solve()
	if err != nil {
		t.Fatal(err)
	}
	if !c.AllWhole() || c.Invoked[0] != half+1 || c.Invoked[1] != half {
		t.Errorf("invocations %v, Whole = %v; want %d and %d, proven to be whole numbers", c.Invocations, c.Whole, half+1, half)
	}
	set(t, s, 0, 1, 0)
	wantError(t, s, "even: the recursion never ends", "odd: the recursion never ends")
}

func set(t *testing.T, s *System, block int, weights ...uint64) {
	t.Helper()
	if err := s.Set(block, weights, 0); err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, s *System, want ...string) {
	t.Helper()
	_, err := s.Solve()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want an error about a block", err)
	}
	for _, w := range want {
		if strings.Contains(err.Error(), w) {
			return
		}
	}
	t.Errorf("%v, want %q", err, want)
}

// TestErrorsOfUnsolvableSystems checks that the error for a system without a solution contains the
// function, the block, the line and advice.
func TestErrorsOfUnsolvableSystems(t *testing.T) {
	p := loopProgram()
	for b := range p.Blocks {
		p.Blocks[b].File, p.Blocks[b].LastLine = "a.c", uint32(10+b)
	}
	s, err := NewSystem(p)
	if err != nil {
		t.Fatal(err)
	}
	s.Enter(0, 1)
	wantError(t, s, "block head of f (a.c:11): the block is reachable, but the probabilities of its successors are unknown; set probabilities")
	set(t, s, 1, 1, 0)
	wantError(t, s, "block head of f (a.c:11): the block is in an endless loop: the loop is reachable, but no path from it leaves the function; let a branch in the loop lead out of the loop, or give one of the loop's blocks a weight for leaving the function (a call in the block may throw, or end the program)")
	set(t, s, 1, 3, 1)
	c, err := s.Solve()
	if err != nil || c.Exact[2] != 3 {
		t.Errorf("the body runs %d times, error %v, want 3", c.Exact[2], err)
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{s.Set(1, []uint64{1}, 0), "block head of f (a.c:11): 1 weights for 2 successors; give one weight for each successor"},
		{s.Set(1, []uint64{1 << 63, 1}, 0), "block head of f (a.c:11): the weights of the block sum to more than 2^63; scale the weights down"},
		{s.Set(9, nil, 0), "there is no such block"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%v, want %q", test.err, test.want)
		}
	}
	// on average, this recursive function calls itself once per invocation
	q := fib()
	if s, err = NewSystem(q); err != nil {
		t.Fatal(err)
	}
	s.Enter(0, 1)
	set(t, s, 2, 1, 1)
	wantError(t, s, "fib: the recursion never ends: on average")
	set(t, s, 2, 1_000_000_000_000_000, 1_000_000_000_000_001)
	if c, err = s.Solve(); err != nil || !c.AllWhole() || c.Invoked[1] != 2_000_000_000_000_001 {
		t.Errorf("%v invocations, error %v, want 2·10^15 + 1", c.Invoked, err)
	}
}

// TestChangedSystemIsSolvedAgain checks that a system that has been changed after its first
// solution has the same solution as a new system.
func TestChangedSystemIsSolvedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		if _, err := s.Solve(); err != nil && !hasUnknown(err) {
			return
		}
		p := s.program
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			b := rapid.IntRange(0, len(p.Blocks)-1).Draw(t, "block")
			n := uint64(rapid.IntRange(0, 5).Draw(t, "number"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				s.Enter(int(p.Blocks[b].Function), n)
			case 1:
				s.Resume(b, n)
			default:
				w := make([]uint64, len(p.Blocks[b].Successors))
				for i := range w {
					w[i] = uint64(rapid.IntRange(0, 5).Draw(t, "weight"))
				}
				if err := s.Set(b, w, n); err != nil {
					t.Fatal(err)
				}
			}
			if rapid.Bool().Draw(t, "solve between") {
				_, _ = s.Solve()
			}
		}
		fresh, err := NewSystem(p)
		if err != nil {
			t.Fatal(err)
		}
		for b := range p.Blocks {
			w, leaves := s.Weights(b)
			if err := fresh.Set(b, w, leaves); err != nil {
				t.Fatal(err)
			}
			fresh.Resume(b, s.resumed[b])
		}
		for n := range p.Functions {
			fresh.Enter(n, s.entered[n])
		}
		got, failure := s.Solve()
		want, again := fresh.Solve()
		if (failure == nil) != (again == nil) || failure != nil && failure.Error() != again.Error() {
			t.Fatalf("%v, want %v", failure, again)
		}
		if want != nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

// TestWeightsOfProfile checks that the weights of a profile are used, and that the branch
// probabilities of a block are unknown if the profile does not contain weights for the block.
func TestWeightsOfProfile(t *testing.T) {
	s, err := FromProfile(nest(2), [][]uint64{nil, {10, 1}, {1000, 10}})
	if err != nil {
		t.Fatal(err)
	}
	s.EnterMain()
	c, err := s.Solve()
	if err != nil || c.Exact[4] != 1000 {
		t.Errorf("solution %v, error %v, want 1000 iterations of the innermost loop", c, err)
	}
	if _, err := FromProfile(nest(2), [][]uint64{nil, {10, 1, 1}}); err == nil || !strings.Contains(err.Error(), "3 weights for 2 successors") {
		t.Errorf("FromProfile: error %v, want an error about the weights", err)
	}
	s, err = FromProfile(nest(2), [][]uint64{nil, {10, 1}})
	if err != nil {
		t.Fatal(err)
	}
	s.EnterMain()
	wantError(t, s, "block head1 of main: the block is reachable, but the probabilities of its successors are unknown")
}
