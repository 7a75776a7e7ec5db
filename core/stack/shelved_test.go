package stack_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
)

// inSegments analyses a trace in segments with a limited number of lines, and returns the distances
// and depths for the whole trace. If the function "again" is not nil, inSegments calls it before it
// joins each segment.
func inSegments(m *stack.Shelved, segment stack.Segment, lines []trace.Line, room int, again func(**stack.Shelved) error) ([]uint32, *stack.SetDepths, error) {
	out := make([]uint32, len(lines))
	sets, _ := segment.(*stack.Sets)
	depths := new(stack.SetDepths)
	var touches []trace.Line
	var at []int
	end := func() error {
		if again != nil {
			if err := again(&m); err != nil {
				return err
			}
		}
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

func TestShelvedEqualsModelInMemory(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 4))
		n := 1 + rng.IntN(6000)
		if seed%10 == 0 {
			n = 150_000 // so many accesses that the model renumbers its stamps
		}
		lines := stacktest.Random(rng, n)
		room := 1 + rng.IntN(1+rng.IntN(2000))
		whole := stack.NewSets(stack.AllSetNumbers)
		want := make([]uint32, n)
		whole.Distances(lines, want)

		shelf := new(stacktest.Shelf)
		m := stack.NewShelvedInBlocks(shelf, 0, 100)
		got, _, err := inSegments(m, stack.NewExact(), lines, room, nil)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d: in segments of %d lines, distances differ from the distances in the whole trace (error %v)", seed, room, err)
		}
		if m.Lines() != whole.Lines() {
			t.Errorf("seed %d: %d lines, want %d", seed, m.Lines(), whole.Lines())
		}
		most := m.Lines()*20/100 + 2
		if shelf.Most > 2*most || shelf.Blocks() > most {
			t.Errorf("seed %d: the spill store has %d blocks, want at most %d; its maximum was %d blocks, want at most %d", seed, shelf.Blocks(), most, shelf.Most, 2*most)
		}

		got, depths, err := inSegments(stack.NewShelvedInBlocks(new(stacktest.Shelf), stack.AllSetNumbers, 100), stack.NewSets(stack.AllSetNumbers), lines, room, nil)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d: with sets, in segments of %d lines, distances differ from the distances in the whole trace (error %v)", seed, room, err)
		}
		if *depths != *whole.Depths() {
			t.Fatalf("seed %d: in segments of %d lines, depths differ from the depths in the whole trace", seed, room)
		}
	}
}

// TestShelvedState checks that a model that resumes from the last or the previous state computes
// the same results as a model that was not interrupted.
func TestShelvedState(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 1 + rng.IntN(6000)
		if seed%10 == 0 {
			n = 150_000
		}
		lines, room, sets := stacktest.Random(rng, n), 1+rng.IntN(1000), seed%2 == 0
		shelf := new(stacktest.Shelf)
		fresh := func() stack.Segment {
			if sets {
				return stack.NewSets(stack.AllSetNumbers)
			}
			return stack.NewExact()
		}
		whole, want := fresh(), make([]uint32, n)
		whole.Distances(lines, want)

		var states [2][]byte
		depths := new(stack.SetDepths)
		again := func(m **stack.Shelved) error {
			switch rng.IntN(4) {
			case 0:
				state, err := (*m).Keep()
				if err != nil {
					return err
				}
				states = [2][]byte{states[1], state}
			case 1:
				state, err := (*m).Keep()
				if err != nil {
					return err
				}
				states = [2][]byte{states[1], state}
				if sets {
					depths.Add((*m).Depths())
				}
				if *m, err = stack.RestoreShelved(shelf, all(sets), state); err != nil {
					return err
				}
				if older := states[0]; older != nil {
					if _, err := stack.RestoreShelved(shelf, all(sets), older); err != nil {
						t.Fatalf("seed %d: cannot continue from the state before the last state: %v", seed, err)
					}
				}
				for cut := range min(len(state), 300) {
					if _, err := stack.RestoreShelved(shelf, all(sets), state[:cut]); err == nil {
						t.Fatalf("seed %d: a state truncated at byte %d of %d is accepted", seed, cut, len(state))
					}
				}
			}
			return nil
		}
		m := stack.NewShelvedInBlocks(shelf, all(sets), 100)
		got, counted, err := inSegments(m, fresh(), lines, room, again)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d: distances differ from the distances in the whole trace (error %v)", seed, err)
		}
		if sets {
			depths.Add(counted)
			if *depths != *whole.(*stack.Sets).Depths() {
				t.Fatalf("seed %d: depths differ from the depths in the whole trace", seed)
			}
		}
	}
}

// forged returns a state that consists of the given numbers: the numbers of runs and blocks that
// the spill store retains, of lines, and of stamps. It contains no lists.
func forged(counts ...uint64) (state []byte) {
	for _, n := range counts {
		state = binary.AppendUvarint(state, n)
	}
	return state
}

// TestShelvedWithForgedState checks that a model with a forged state uses no more memory or time
// than the size of the spill store justifies.
func TestShelvedWithForgedState(t *testing.T) {
	shelf := new(stacktest.Shelf)
	m := stack.NewShelvedInBlocks(shelf, 0, 100)
	lines := stacktest.Random(rand.New(rand.NewPCG(1, 7)), 3000)
	if _, _, err := inSegments(m, stack.NewExact(), lines, 500, nil); err != nil {
		t.Fatal(err)
	}
	state, err := m.Keep()
	if err != nil {
		t.Fatal(err)
	}
	var is [6]uint64
	for i, rest := 0, state; i < len(is); i++ {
		v, n := binary.Uvarint(rest)
		is[i], rest = v, rest[n:]
	}
	const most = 1<<32 - 1<<18
	for _, c := range []struct {
		field int
		count uint64
	}{{1, most}, {3, most}, {3, is[3] + 1}, {4, most}, {4, is[4] + 1}, {5, most}, {5, is[5] - 1}} {
		counts := is
		counts[c.field] = c.count
		var err error
		if bytes := allocated(func() { _, err = stack.RestoreShelved(shelf, 0, forged(counts[:]...)) }); err == nil || bytes > 8<<20 {
			t.Errorf("count %d of the state was changed to %d from %d: %d bytes were allocated, and the error is %v; want an error", c.field, c.count, is[c.field], bytes, err)
		}
	}
}

func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzRestoreShelved checks that no state causes a panic, and that a model can resume from every
// state that it accepts.
func FuzzRestoreShelved(f *testing.F) {
	lines := stacktest.Random(rand.New(rand.NewPCG(1, 8)), 400)
	kept := func(sets bool) (*stacktest.Shelf, []byte) {
		shelf, segment := new(stacktest.Shelf), stack.Segment(stack.NewExact())
		if sets {
			segment = stack.NewSets(stack.AllSetNumbers)
		}
		m := stack.NewShelvedInBlocks(shelf, all(sets), 100)
		if _, _, err := inSegments(m, segment, lines, 100, nil); err != nil {
			f.Fatal(err)
		}
		state, err := m.Keep()
		if err != nil {
			f.Fatal(err)
		}
		return shelf, state
	}
	for _, sets := range []bool{false, true} {
		_, state := kept(sets)
		f.Add(sets, state)
	}
	f.Add(false, forged(0, 0, 0, 0, 0, 1<<31))
	f.Fuzz(func(t *testing.T, sets bool, state []byte) {
		shelf, _ := kept(sets)
		m, err := stack.RestoreShelved(shelf, all(sets), state)
		if err != nil {
			return
		}
		segment := stack.Segment(stack.NewExact())
		if sets {
			segment = stack.NewSets(stack.AllSetNumbers)
		}
		_, _, _ = inSegments(m, segment, lines, 50, nil)
		_, _ = m.Keep()
		_, _ = m.Keep()
	})
}

// TestShelvedReturnsStoreErrors checks that the model returns an error if any call to the spill
// store fails, or if any byte in the store is wrong. All later calls must return the same error.
func TestShelvedReturnsStoreErrors(t *testing.T) {
	lines := stacktest.Random(rand.New(rand.NewPCG(1, 1)), 3000)
	run := func(shelf *stacktest.Shelf) (*stack.Shelved, error) {
		m := stack.NewShelvedInBlocks(shelf, 0, 200)
		_, _, err := inSegments(m, stack.NewExact(), lines, 100, nil)
		return m, err
	}
	whole := new(stacktest.Shelf)
	if _, err := run(whole); err != nil || whole.Calls() < 100 {
		t.Fatalf("%d calls, error %v", whole.Calls(), err)
	}
	for n := range whole.Calls() {
		m, err := run(&stacktest.Shelf{Fails: n + 1})
		if !errors.Is(err, stacktest.ErrShelf) {
			t.Fatalf("call %d failed: error %v, want the spill store's error", n+1, err)
		}
		if again := m.Join(stack.NewExact(), slices.Values([]trace.Line(nil))); again != err {
			t.Fatalf("after the failure of call %d, the error is %v, want the same error", n+1, again)
		}
	}
	for n := range 40 {
		if _, err := run(&stacktest.Shelf{Flips: n + 1}); err == nil {
			t.Errorf("read %d returned a wrong byte, but no error", n+1)
		}
	}
}

// TestShelvedAdoptsLines checks that a model that adopts the lines of a model in memory computes
// the same results as that model.
func TestShelvedAdoptsLines(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 6))
		n := 1 + rng.IntN(6000)
		if seed%10 == 0 {
			n = 150_000
		}
		lines, room := stacktest.Random(rng, n), 1+rng.IntN(1000)
		at := rng.IntN(n + 1)
		whole, first, want := stack.NewSets(stack.AllSetNumbers), stack.NewSets(stack.AllSetNumbers), make([]uint32, n)
		whole.Distances(lines, want)
		first.Distances(lines[:at], make([]uint32, at))

		for _, sets := range []bool{false, true} {
			m, segment := stack.NewShelvedInBlocks(new(stacktest.Shelf), all(sets), 100), stack.Segment(stack.NewExact())
			if sets {
				segment = stack.NewSets(stack.AllSetNumbers)
			}
			if err := m.Adopt(first); err != nil || m.Lines() != first.Lines() {
				t.Fatalf("seed %d: %d lines, want %d (error %v)", seed, m.Lines(), first.Lines(), err)
			}
			got, depths, err := inSegments(m, segment, lines[at:], room, nil)
			if err != nil || !slices.Equal(got, want[at:]) {
				t.Fatalf("seed %d: distances after %d accesses differ from the distances of an uninterrupted run (error %v)", seed, at, err)
			}
			if depths.Add(first.Depths()); sets && *depths != *whole.Depths() {
				t.Fatalf("seed %d: depths after %d accesses differ from the depths of an uninterrupted run", seed, at)
			}
		}
	}
}

// The function "all" returns AllSetNumbers if its argument is true, and 0 otherwise.
func all(sets bool) stack.SetNumbers {
	if sets {
		return stack.AllSetNumbers
	}
	return 0
}
