package stack_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/stack"
)

// split returns random lengths that add up to n.
func split(t *rapid.T, n int) (lengths []int) {
	for n > 0 {
		part := rapid.IntRange(0, n).Draw(t, "length")
		lengths = append(lengths, part)
		n -= part
	}
	return append(lengths, 0)
}

func TestJoinSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := few(t)
		EqualAppended(t, rapid.SampledFrom(chosen).Draw(t, "numbers"), events, split(t, len(events)), func(pairs int) int { return rapid.IntRange(0, pairs-1).Draw(t, "pair") })
	})
}

// TestJoinLongSegments uses segments that are long enough for sets to have more entries than fit
// in the lists.
func TestJoinLongSegments(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		events := RandomEvents(rng, 1+rng.IntN(1500), 1+rng.IntN(1+rng.IntN(60)))
		var lengths []int
		for left := len(events); left > 0; {
			n := min(left, rng.IntN(1+len(events)/2))
			lengths, left = append(lengths, n), left-n
		}
		EqualAppended(t, chosen[seed%uint64(len(chosen))], events, lengths, rng.IntN)
	}
}

// FuzzBelow lets the fuzzer choose a state. If the model accepts the state, it must be possible to
// append a segment.
func FuzzBelow(f *testing.F) {
	for seed := range uint64(4) {
		m := stack.NewCoherent(stack.AllSetNumbers)
		var a Answers
		a.Run(m, RandomEvents(rand.New(rand.NewPCG(seed, 1)), 300, 5), []int{300})
		f.Add(m.State())
	}
	next := stack.NewCoherent(stack.AllSetNumbers)
	f.Fuzz(func(t *testing.T, state []byte) {
		r, err := stack.NewBelow(stack.AllSetNumbers, state)
		if err != nil {
			return
		}
		for line := range uint64(40) {
			r.Lose(line)
			r.Touch(line*7%31, uint32(line)|1<<20-1)
			r.Again(line, 0)
		}
		if _, err := r.Join(next.State()); err == nil {
			t.Error("a segment that pushed entries but ends with an empty stack was accepted")
		}
	})
}
