// Package stack_test contains the tests that every implementation of [stack.Model] must pass. It
// also contains the textbook method, which is the baseline for the benchmarks.
package stack_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
)

// Run checks the models that the function "fresh" creates. Run uses the examples in MODELS §1,
// random traces of every shape, and long loops over a few lines. The batches have random lengths.
// Run compares the distances and the final stack with the results of the reference implementation.
func Run(t *testing.T, fresh func() stack.Model) {
	t.Run("vectors", func(t *testing.T) {
		for _, v := range Vectors {
			Equal(t, fresh(), v.Lines, []int{len(v.Lines)})
			out := make([]uint32, len(v.Lines))
			fresh().Distances(v.Lines, out)
			if !slices.Equal(out, v.Distances) {
				t.Errorf("%s: distances %v, want %v", v.Name, out, v.Distances)
			}
		}
	})
	t.Run("random", func(t *testing.T) {
		for seed := range uint64(60) {
			rng := rand.New(rand.NewPCG(seed, 1))
			lines := stacktest.Random(rng, 1+rng.IntN(6000))
			Equal(t, fresh(), lines, cuts(rng, len(lines)))
		}
	})
	t.Run("loops", func(t *testing.T) {
		for _, length := range []int{1, 15, 16, 17, 18} { // numbers of lines close to the size of the top array
			lines := make([]trace.Line, 140_000) // more lines than a block has stamps
			for i := range lines {
				lines[i] = trace.Line(i % length)
			}
			Equal(t, fresh(), lines, []int{len(lines)})
		}
	})
	t.Run("empty", func(t *testing.T) {
		m := fresh()
		m.Distances(nil, nil)
		if m.Lines() != 0 || len(m.Stack()) != 0 {
			t.Errorf("a new model has %d lines and a stack of %d lines, want 0", m.Lines(), len(m.Stack()))
		}
	})
}

// A Vector is a short trace with known stack distances.
type Vector struct {
	Name      string
	Lines     []trace.Line
	Distances []uint32
}

const inf = stack.Cold

// Vectors are handwritten traces, including the examples in MODELS §1.
var Vectors = []Vector{
	{"SASMM Table 1", letters("abacbdda"), []uint32{inf, inf, 1, inf, 2, inf, 0, 3}},
	{"SASMM Table 2, all threads", letters("acbaedbdab"), []uint32{inf, inf, inf, 2, inf, inf, 3, 1, 3, 2}},
	{"line numbers 0 and 2^61-1", []trace.Line{0, 1<<61 - 1, 0, 1<<61 - 1}, []uint32{inf, inf, 1, 1}},
}

// letters converts each byte of a string to a line number.
func letters(s string) (lines []trace.Line) {
	for _, c := range []byte(s) {
		lines = append(lines, trace.Line(c))
	}
	return lines
}

// Equal passes the lines to a model and to the reference implementation, in batches of the given
// lengths, and compares the results of all methods.
func Equal(t *testing.T, m stack.Model, lines []trace.Line, batches []int) {
	t.Helper()
	twin := new(stacktest.Naive)
	got, want := make([]uint32, len(lines)), make([]uint32, len(lines))
	twin.Distances(lines, want)
	at := 0
	for _, n := range batches {
		m.Distances(lines[at:at+n], got[at:at+n])
		check(m)
		at += n
	}
	if at != len(lines) {
		t.Fatalf("the batches cover %d of %d accesses", at, len(lines))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("access %d of %d: distance %d, want %d", i, len(lines), got[i], want[i])
		}
	}
	if m.Lines() != twin.Lines() {
		t.Errorf("%d distinct lines, want %d", m.Lines(), twin.Lines())
	}
	if !slices.Equal(m.Stack(), twin.Stack()) {
		t.Errorf("the final stack differs from the reference implementation's")
	}
}

// The function cuts returns random batch lengths with a given sum.
func cuts(rng *rand.Rand, n int) (lengths []int) {
	for n > 0 {
		length := min(n, 1+rng.IntN(1+rng.IntN(3000)))
		lengths = append(lengths, length)
		n -= length
	}
	return lengths
}

// check verifies a model's invariants if the model defines any.
func check(m any) {
	if m, ok := m.(interface{ CheckInvariants() }); ok {
		m.CheckInvariants()
	}
}
