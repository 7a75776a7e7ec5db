package stack_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
)

func TestExact(t *testing.T) {
	Run(t, func() stack.Model { return stack.NewExact() })
}

func TestSets(t *testing.T) { RunSets(t, allSets) }

func TestReferenceImplementations(t *testing.T) {
	t.Run("naive", func(t *testing.T) { Run(t, func() stack.Model { return new(stacktest.Naive) }) })
	t.Run("fenwick", func(t *testing.T) { Run(t, func() stack.Model { return NewFenwick(0) }) })
	t.Run("fenwick16", func(t *testing.T) { Run(t, func() stack.Model { return NewFenwick(16) }) })
}

// TestExactOnLongTraces compares the model with the textbook method, because the reference
// implementation is too slow for long traces. Long traces use up all stamps, make the table grow,
// and require wide levels.
func TestExactOnLongTraces(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	fast, twin := stack.NewExact(), NewFenwick(0)
	span := uint64(400_000)
	lines := make([]trace.Line, 10_000)
	got, want := make([]uint32, len(lines)), make([]uint32, len(lines))
	for round := range 200 {
		if round == 120 {
			span = 3000 // few lines, so that most stamps are old
		}
		for i := range lines {
			lines[i] = rng.Uint64N(span) * 64
		}
		fast.Distances(lines, got)
		twin.Distances(lines, want)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("round %d, access %d: distance %d, want %d", round, i, got[i], want[i])
			}
		}
	}
	a, b := fast.Stack(), twin.Stack()
	for i := range b {
		if a[i] != b[i] {
			t.Fatalf("position %d of the stack contains line %d, want %d", i, a[i], b[i])
		}
	}
}

// In FuzzExact, the fuzzer chooses the lines, how often each access is repeated, and where each
// batch ends.
func FuzzExact(f *testing.F) {
	f.Add([]byte("abacbdda"), byte(3), uint16(1))
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789"), byte(40), uint16(300))
	f.Fuzz(func(t *testing.T, pattern []byte, repeat byte, stride uint16) {
		var lines []trace.Line
		for round := range uint64(repeat%64) + 1 {
			for i, c := range pattern {
				lines = append(lines, trace.Line(c)*trace.Line(stride)+round*uint64(i)%7)
				if len(lines) == 20_000 {
					break
				}
			}
		}
		var batches []int
		for left := len(lines); left > 0; {
			n := min(left, 1+int(stride)%997)
			batches = append(batches, n)
			left -= n
		}
		Equal(t, stack.NewExact(), lines, batches)
		EqualDepths(t, allSets, lines[:min(len(lines), 2000)], []int{min(len(lines), 2000)})
	})
}
