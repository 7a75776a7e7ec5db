package blocks

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// sheetOf parses a branch-probability file and binds it to a new system of a program.
func sheetOf(t testing.TB, p *trace.Program, text string) (*Model, error) {
	t.Helper()
	sheet, err := ParseSheet("p.txt", []byte(text))
	if err != nil {
		return nil, err
	}
	s, err := NewSystem(p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := sheet.Bind(s)
	if err != nil {
		return nil, err
	}
	return m, m.Set(nil)
}

// A system that is written as a branch-probability file and read again has the same solution.
func TestSheetsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		p := s.program
		p.Modules = []trace.Module{{Name: "a.c"}, {Name: "b c.c"}}
		for n := range p.Functions {
			p.Functions[n].Module = uint32(n % 2)
		}
		p.Blocks[len(p.Blocks)-1].Label = rapid.SampledFrom([]string{"plain", "with blank", "a|b", "=", "\"q\"", "#x", "a:b"}).Draw(t, "label")
		if rapid.Bool().Draw(t, "calls fail") {
			s.setMade(0, share{1, 3})
		}
		text := s.AppendSheet(nil, "drawn\nby chance")
		sheet, err := ParseSheet("p.txt", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		fresh, err := NewSystem(p)
		if err != nil {
			t.Fatal(err)
		}
		m, err := sheet.Bind(fresh)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := m.Set(nil); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		want, failure := s.Rational()
		got, again := fresh.Rational()
		if (failure == nil) != (again == nil) {
			t.Fatalf("error %v, want %v\n%s", failure, again, text)
		}
		for b := range want {
			if got != nil && got[b].Cmp(want[b]) != 0 {
				t.Fatalf("block %d: %v, want %v\n%s", b, got[b], want[b], text)
			}
		}
	})
}

const nestSheet = `# two loops
n = 1000
m = n/4   # rows

enter main = 2
main head0 - | head1 exit = trip m
main head1 a.c:3 | latch1 latch0 = trip n
`

// TestParameters checks that changing the parameters yields the counts for other inputs.
func TestParameters(t *testing.T) {
	p := nest(2)
	m, err := sheetOf(t, p, nestSheet)
	if err != nil {
		t.Fatal(err)
	}
	check := func(rows, columns uint64) {
		t.Helper()
		c, err := m.System.Solve()
		if err != nil {
			t.Fatal(err)
		}
		if !c.AllWhole() || c.Exact[4] != 2*rows*columns || c.Exact[3] != 2*rows || c.Exact[1] != 2*(rows+1) {
			t.Errorf("counts %v, want the counts of 2 × %d × %d iterations", c.Exact, rows, columns)
		}
	}
	check(250, 1000)
	if err := m.Set(map[string]*big.Rat{"n": big.NewRat(4_000_000, 1)}); err != nil {
		t.Fatal(err)
	}
	check(1_000_000, 4_000_000)
	if err := m.Set(map[string]*big.Rat{"m": big.NewRat(7, 1)}); err != nil {
		t.Fatal(err)
	}
	check(7, 1000)
	if list := m.sheet.Parameters(); len(list) != 2 || list[1] != (Parameter{"m", "n/4"}) {
		t.Errorf("Parameters() = %v, want two parameters, the second being m = n/4", list)
	}
}

func TestSheetErrors(t *testing.T) {
	p := nest(2)
	for b := range p.Blocks {
		p.Blocks[b].File, p.Blocks[b].LastLine = "a.c", uint32(b)
	}
	for text, want := range map[string]string{
		"main head0 - | head1 exit":                     `p.txt:1: the line contains no "=" between blanks, want a parameter, an entry or a branch`,
		"\n\nn = 1 +":                                   `p.txt:3: the expression ends where a number was expected`,
		"n = 1.2.3":                                     `p.txt:1: "1.2.3" is not a number`,
		"n = (1":                                        `p.txt:1: an opening parenthesis has no closing parenthesis`,
		"n = sin(1)":                                    `p.txt:1: there is no function sin with 1 arguments, want min, max, floor or ceil`,
		"n = 1\nn = 2":                                  `p.txt:2: the parameter n is defined twice, first on line 1`,
		"what is this = 1":                              `p.txt:1: cannot read this line, want NAME = NUMBER`,
		"enter mian = 1":                                `p.txt:1: the program has no function mian; the file may belong to a different program or build`,
		"enter main = 1/2":                              `p.txt:1: 1/2 times, want a whole number from 0 to 2^62`,
		"resume main back = 1":                          `p.txt:1: main has no block back`,
		"made main entry = 3/2":                         `p.txt:1: the share is 3/2, want 0 to 1`,
		"main head0 - | exit head1 = 1 : 2":             `p.txt:1: block head0 of main continues to head1 exit, but the file says exit head1; the file may`,
		"main head0 - | head1 exit = 0.5":               `p.txt:1: 1 numbers for 2 successors; separate probabilities by commas, and weights by colons`,
		"main head0 - | head1 exit = 0.9, 0.2":          `p.txt:1: block head0 of main (a.c:1): the probabilities sum to 11/10, want 1; make the probabilities sum to 1`,
		"main head0 - | head1 exit = 1.5, rest":         `p.txt:1: block head0 of main (a.c:1): the probability is 3/2, want 0 to 1`,
		"main head0 - | head1 exit = -1 : 2":            `p.txt:1: block head0 of main (a.c:1): the weight is -1, want 0 or more`,
		"main head0 - | head1 exit = rest, rest":        `p.txt:1: several successors have the probability "rest", want at most one`,
		"main head0 - | head1 exit = trip k":            `p.txt:1: block head0 of main (a.c:1): there is no parameter k; define it as k = NUMBER`,
		"k = j\nj = k\nmain head0 - | head1 exit = k:1": `p.txt:3: block head0 of main (a.c:1): the parameter k depends on itself`,
		"main head0 - | head1 exit = 1/0 : 1":           `division by 0`,
		"main head0 - | head1 exit = 2^2^20 : 1":        `the exponent is 1048576, want a whole number up to 1000`,
		"main head0 - | head1 exit = 2^900 : 1":         `the weights of the branch need more than 63 bits as whole numbers; write the numbers with fewer digits`,
		"main head0 - | head1 exit = trip -1":           `the trip count is -1, want 0 or more`,
		"main latch0 - | head0 (leaves) = trip 3":       `"trip" requires a branch with one successor inside the loop and one outside`,
		`main "head0 - | head1 exit = 1 : 1`:            `p.txt:1: an opening quotation mark has no closing quotation mark`,
		"main | head1 exit = 1 : 1":                     `p.txt:1: want FUNCTION BLOCK LINE | SUCCESSORS = NUMBERS`,
	} {
		_, err := sheetOf(t, p, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("file %q: error %v, want an error with %s", text, err, want)
		}
	}
}

// TestTripCountsOfBodies checks that, if the branch is at the end of a loop's body, "trip" is the
// number of executions of the body.
func TestTripCountsOfBodies(t *testing.T) {
	p := &trace.Program{
		Functions: []trace.Function{{Name: "f", Blocks: 3}},
		Blocks: []trace.Block{
			{Label: "entry", Flags: trace.EntryBlock, Successors: []uint32{1}},
			{Label: "body", Flags: trace.HeaderBlock | trace.LatchBlock, Loop: 2, Depth: 1, Successors: []uint32{2, 1}},
			{Label: "exit", Flags: trace.ReturnBlock},
		},
	}
	m, err := sheetOf(t, p, "enter f = 1\nf body - | exit body = trip 100\n")
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.System.Solve()
	if err != nil || c.Exact[1] != 100 {
		t.Errorf("counts %v, error %v, want 100 executions of the body", c.Exact, err)
	}
	if text := string(m.System.AppendSheet(nil, "")); !strings.Contains(text, "\nf body - | exit body = trip 100\n") {
		t.Errorf("AppendSheet does not write the trip count:\n%s", text)
	}
	if _, err := sheetOf(t, p, "f body - | exit body = trip 0.5"); err == nil || !strings.Contains(err.Error(), "the trip count is 1/2, want 1 or more") {
		t.Errorf("error %v, want an error about the trip count", err)
	}
}

func TestExpressions(t *testing.T) {
	sheet := &Sheet{named: map[string]int{}}
	for text, want := range map[string]string{
		"1+2*3": "7", "(1+2)*3": "9", "2^3^2": "512", "-2^2": "-4", "10/4": "5/2", "0.1+0.2": "3/10", "7-2-1": "4", "8/4/2": "1",
		"floor(-1.5)": "-2", "ceil(-1.5)": "-1", "ceil(7/2)": "4", "min(3, 1, 2)": "1", "max(n, 4)": "5", "2^-1": "1/2", "n*n": "25", "--3": "3",
	} {
		e, why := parseExpression(text)
		if why != "" {
			t.Errorf("%s: %s", text, why)
			continue
		}
		v, why := e.value(sheet.parameterGetter(map[string]*big.Rat{"n": big.NewRat(5, 1)}))
		if why != "" || v.RatString() != want {
			t.Errorf("%s = %v, error %q, want %s", text, v, why, want)
		}
	}
}

// FuzzSheet checks that no text makes the parser panic, and that no accepted file makes Bind or
// Solve panic.
func FuzzSheet(f *testing.F) {
	f.Add([]byte(nestSheet))
	f.Add([]byte("main head0 a.c:1 | head1 exit = 0.5, rest\nmain \"head1\" | latch1 latch0 = 1 : n^2-min(3,n)\nn = floor(7/2)\nresume main exit = 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := sheetOf(t, nest(2), string(text))
		if err != nil {
			if err.Error() == "" {
				t.Error("the error has no text")
			}
			return
		}
		m.System.Enter(0, 1)
		if _, err := m.System.Solve(); err != nil && err.Error() == "" {
			t.Error("the error has no text")
		}
	})
}

// TestGuessedWeights checks that systems with guessed weights can be solved: loops run ten
// iterations, and recursion ends.
func TestGuessedWeights(t *testing.T) {
	p := fib()
	s, err := NewSystem(p)
	if err != nil {
		t.Fatal(err)
	}
	if n, m := s.Guess(), s.EnterMain(); n != 1 || m != 1 || s.entered[0] != 1 {
		t.Errorf("%d branches guessed, %d functions entered, want 1 branch and the function main", n, m)
	}
	if n := s.EnterProfile([]uint64{7, 70}, []bool{true, true}); n != 1 || s.entered[0] != 7 || s.entered[1] != 0 {
		t.Errorf("main is entered %d times and fib %d times, want 7 and 0", s.entered[0], s.entered[1])
	}
	if w, _ := s.Weights(2); w[0] != 1 || w[1] != guessedReturns {
		t.Errorf("the branch of fib has weights %v, want a high weight for returning", w)
	}
	if _, err := s.Solve(); err != nil {
		t.Error(err)
	}
	q, err := NewSystem(nest(3))
	if err != nil {
		t.Fatal(err)
	}
	q.program.Functions[0].Name = "kernel"
	if n, m := q.Guess(), q.EnterMain(); n != 3 || m != 1 {
		t.Errorf("%d branches guessed, %d functions entered, want 3 and 1", n, m)
	}
	c, err := q.Solve()
	if err != nil || c.Exact[6] != 1000 {
		t.Errorf("counts %v, error %v, want 1000 iterations of the innermost loop", c.Exact, err)
	}
}

// TestBranchLines checks that the branch lines of all functions equal the branch lines in the
// branch-probability file, in the same order.
func TestBranchLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		var want, got []string
		for l := range strings.Lines(string(s.AppendSheet(nil, ""))) {
			if !strings.HasPrefix(l, "#") && strings.Contains(l, " | ") {
				want = append(want, l)
			}
		}
		for f := range s.program.Functions {
			for _, line := range s.BranchLines(f) {
				got = append(got, line.Name+" = "+line.Value+"\n")
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}
