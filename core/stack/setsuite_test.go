package stack_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
)

// Depths computes the counts of [stack.Sets] by their definition. Depths simulates one LRU cache
// for each number of sets and ways. The depth of an access is d if it hits with d+1 ways, and
// misses with d ways.
func Depths(lines []trace.Line) *stack.SetDepths {
	hits := new(stack.SetDepths)
	for a := range hits {
		for w := range hits[a] {
			hits[a][w] = cacheHits(lines, 1<<a, w+1)
		}
		for w := stack.MaxWays - 1; w > 0; w-- {
			hits[a][w] -= hits[a][w-1]
		}
	}
	return hits
}

// cacheHits simulates one cache.
func cacheHits(lines []trace.Line, sets, ways int) (hits uint64) {
	cache := map[trace.Line][]trace.Line{}
	for _, x := range lines {
		set := cache[x%trace.Line(sets)]
		if way := slices.Index(set, x); way >= 0 {
			hits++
			set = slices.Delete(set, way, way+1)
		} else if len(set) == ways {
			set = set[:ways-1]
		}
		cache[x%trace.Line(sets)] = slices.Insert(set, 0, x)
	}
	return hits
}

// RunSets checks a model for all numbers of sets. RunSets runs the tests of distances, and compares
// depths with the reference implementation. The trace is processed in batches of any length, and
// also in two parts. The model of the second part starts with the stack of the first part.
func RunSets(t *testing.T, fresh func() *stack.Sets) {
	Run(t, func() stack.Model { return fresh() })
	t.Run("depths", func(t *testing.T) {
		for seed := range uint64(24) {
			rng := rand.New(rand.NewPCG(seed, 2))
			lines := stacktest.Random(rng, 1+rng.IntN(3000))
			crowd(rng, lines)
			EqualDepths(t, fresh, lines, cuts(rng, len(lines)))
		}
	})
	t.Run("two parts", func(t *testing.T) {
		for seed := range uint64(24) {
			rng := rand.New(rand.NewPCG(seed, 3))
			lines := stacktest.Random(rng, 1+rng.IntN(6000))
			crowd(rng, lines)
			inParts(t, fresh, lines, rng.IntN(len(lines)+1))
		}
	})
	// The lines fill the lists of up to 2^10 sets.
	t.Run("chase", func(t *testing.T) {
		lines := Chase(60_000, 600_000)
		m, plain := fresh(), NewPlain(stack.AllSetNumbers)
		defer check(m)
		m.Distances(lines, make([]uint32, len(lines)))
		plain.Distances(lines, nil)
		want := new(stack.SetDepths)
		for a := range want {
			copy(want[a][:], plain.Depths[a][:])
			for b := range a { // Plain stops when a line is at the front of its set's list
				want[a][0] += plain.Depths[b][0]
			}
		}
		sameDepths(t, m.Depths(), want)
	})
	t.Run("twins", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 4))
		lines := stacktest.Random(rng, 2000)
		sameDepths(t, stacktest.DepthsInLists(lines), Depths(lines))
	})
}

// crowd multiplies line numbers by a power of two, so that the lines share few sets.
func crowd(rng *rand.Rand, lines []trace.Line) {
	shift := rng.UintN(setBits + 1)
	for i := range lines {
		lines[i] = lines[i] << shift % (1 << 61)
	}
}

const setBits = stack.SetCounts - 1

func allSets() *stack.Sets { return stack.NewSets(stack.AllSetNumbers) }

// EqualDepths passes lines to a model in batches of the given lengths, and compares the model's
// counts with the reference implementation.
func EqualDepths(t *testing.T, fresh func() *stack.Sets, lines []trace.Line, batches []int) {
	t.Helper()
	m, at := fresh(), 0
	for _, n := range batches {
		m.Distances(lines[at:at+n], make([]uint32, n))
		check(m)
		at += n
	}
	sameDepths(t, m.Depths(), Depths(lines))
}

func sameDepths(t *testing.T, got, want *stack.SetDepths) {
	t.Helper()
	for a := range want {
		for d := range want[a] {
			if got[a][d] != want[a][d] {
				t.Fatalf("%d accesses at depth %d of 2^%d sets, want %d", got[a][d], d, a, want[a][d])
			}
		}
	}
}

// inParts checks that, if the lines are divided into two parts at index cut, the depths of both
// parts add up to the depths of all lines.
func inParts(t *testing.T, fresh func() *stack.Sets, lines []trace.Line, cut int) {
	t.Helper()
	out := make([]uint32, len(lines))
	whole, first, second := fresh(), fresh(), fresh()
	whole.Distances(lines, out)
	first.Distances(lines[:cut], out)
	before := first.Stack()
	slices.Reverse(before)
	second.Push(before)
	second.Distances(lines[cut:], out)
	sum := first.Depths()
	sum.Add(second.Depths())
	sameDepths(t, sum, whole.Depths())
}
