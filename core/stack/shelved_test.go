package stack_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
)

// inSegments takes a trace through models of segments of up to so many lines, and
// gives the distances and depths of the whole.
func inSegments(m *stack.Shelved, segment stack.Segment, lines []trace.Line, room int) ([]uint32, *stack.SetDepths, error) {
	out := make([]uint32, len(lines))
	sets, _ := segment.(*stack.Sets)
	depths := new(stack.SetDepths)
	var touches []trace.Line
	var at []int
	end := func() error {
		if err := m.Join(segment, slices.Values(touches)); err != nil {
			return err
		}
		resolved := make([]uint32, len(touches))
		half := len(touches) / 2
		m.Distances(touches[:half], resolved[:half])
		m.Distances(touches[half:], resolved[half:])
		for i, d := range resolved {
			out[at[i]] = d
		}
		if sets != nil {
			depths.Add(sets.Depths())
			sets.Reset()
		} else {
			segment.(*stack.Exact).Reset()
		}
		touches, at = touches[:0], at[:0]
		return nil
	}
	for i := range lines {
		segment.Distances(lines[i:i+1], out[i:i+1])
		if out[i] != stack.Cold {
			continue
		}
		touches, at = append(touches, lines[i]), append(at, i)
		if len(touches) == room {
			if err := end(); err != nil {
				return nil, nil, err
			}
		}
	}
	err := end()
	if sets != nil {
		depths.Add(m.Depths())
	}
	return out, depths, err
}

func TestShelved(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 4))
		n := 1 + rng.IntN(6000)
		if seed%10 == 0 {
			n = 150_000 // stamps are renumbered
		}
		lines := stacktest.Random(rng, n)
		room := 1 + rng.IntN(1+rng.IntN(2000))
		whole := stack.NewSets()
		want := make([]uint32, n)
		whole.Distances(lines, want)

		shelf := new(stacktest.Shelf)
		m := stack.NewShelvedInBlocks(shelf, false, 100)
		got, _, err := inSegments(m, stack.NewExact(), lines, room)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d: in segments of %d lines, distances differ from those of the whole (error %v)", seed, room, err)
		}
		if m.Lines() != whole.Lines() {
			t.Errorf("seed %d: %d lines, want %d", seed, m.Lines(), whole.Lines())
		}
		most := m.Lines()*20/100 + 2
		if shelf.Most > 2*most || shelf.Blocks() > most {
			t.Errorf("seed %d: %d blocks, at most %d at a time, for %d lines", seed, shelf.Blocks(), shelf.Most, m.Lines())
		}

		got, depths, err := inSegments(stack.NewShelvedInBlocks(new(stacktest.Shelf), true, 100), stack.NewSets(), lines, room)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d: with sets, in segments of %d lines, distances differ from those of the whole (error %v)", seed, room, err)
		}
		if *depths != *whole.Depths() {
			t.Fatalf("seed %d: in segments of %d lines, depths differ from those of the whole", seed, room)
		}
	}
}

// Wherever the shelf fails, and whatever byte of it is wrong, there is an error, and
// the same one from then on.
func TestShelvedFails(t *testing.T) {
	lines := stacktest.Random(rand.New(rand.NewPCG(1, 1)), 3000)
	run := func(shelf *stacktest.Shelf) (*stack.Shelved, error) {
		m := stack.NewShelvedInBlocks(shelf, false, 200)
		_, _, err := inSegments(m, stack.NewExact(), lines, 100)
		return m, err
	}
	whole := new(stacktest.Shelf)
	if _, err := run(whole); err != nil || whole.Calls() < 100 {
		t.Fatalf("%d calls, error %v", whole.Calls(), err)
	}
	for n := range whole.Calls() {
		m, err := run(&stacktest.Shelf{Fails: n + 1})
		if !errors.Is(err, stacktest.ErrShelf) {
			t.Fatalf("call %d failed: error %v, want the shelf's", n+1, err)
		}
		if again := m.Join(stack.NewExact(), slices.Values([]trace.Line(nil))); again != err {
			t.Fatalf("call %d failed: afterwards %v", n+1, again)
		}
	}
	for n := range 40 {
		if _, err := run(&stacktest.Shelf{Flips: n + 1}); err == nil {
			t.Errorf("read %d gave a wrong byte: no error", n+1)
		}
	}
}
