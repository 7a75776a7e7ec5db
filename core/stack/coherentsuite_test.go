package stack_test

import (
	"bytes"
	"container/list"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
)

// Answers contains the results of a [stack.Coherent].
type Answers struct {
	Out, Lost []uint32
	Depths    *stack.SetDepths
}

// Coherent computes the answers from lists with holes. For each number of sets, there is one list
// per set.
func Coherent(events []stacktest.Event) Answers {
	a := Answers{make([]uint32, len(events)), make([]uint32, len(events)), new(stack.SetDepths)}
	for k := range stack.SetCounts {
		sets := map[trace.Line]*stacktest.Holes{}
		lostAt := map[trace.Line]uint32{}
		seen := map[trace.Line]bool{}
		for i, e := range events {
			number := e.Line % (1 << k)
			if sets[number] == nil {
				sets[number] = new(stacktest.Holes)
			}
			depth := sets[number].Do(e)
			if e.Op == stack.AccessOp && depth >= 0 && depth < stack.MaxWays {
				a.Depths[k][depth]++
			}
			if k > 0 {
				continue
			}
			at, wasLost := lostAt[e.Line]
			switch {
			case depth >= 0:
				a.Out[i] = uint32(depth)
			case e.Op == stack.AccessOp && wasLost:
				a.Out[i], a.Lost[i] = stack.Lost, at
			default:
				a.Out[i] = stack.Cold
			}
			switch {
			case e.Op == stack.AccessOp:
				seen[e.Line] = true
				delete(lostAt, e.Line)
			case e.Op == stack.LoseOp && depth >= 0:
				lostAt[e.Line] = uint32(depth)
			}
		}
	}
	return a
}

// forSetNumbers returns a copy of the answers that contains only the depths for one set and for the
// given numbers of sets.
func (a Answers) forSetNumbers(numbers stack.SetNumbers) Answers {
	for k := range a.Depths {
		if (numbers|1)>>k&1 == 0 {
			a.Depths[k] = [stack.MaxWays]uint64{}
		}
	}
	return a
}

// chosen contains a mask for each test run: the numbers of sets for which the models count depths.
var chosen = []stack.SetNumbers{stack.AllSetNumbers, stack.MostSetNumbers, 1<<6 | 1<<10, 1<<1 | 1<<16, 1 << 2, 1}

// Run returns the answers of a model that processes the events in batches of the given lengths.
func (a *Answers) Run(m *stack.Coherent, events []stacktest.Event, batches []int) {
	ops, lines := make([]stack.Op, len(events)), make([]trace.Line, len(events))
	for i, e := range events {
		ops[i], lines[i] = e.Op, e.Line
	}
	a.Out, a.Lost = make([]uint32, len(events)), make([]uint32, len(events))
	at := 0
	for _, n := range batches {
		Do(m, ops[at:at+n], lines[at:at+n], a.Out[at:at+n], a.Lost[at:at+n])
		check(m)
		at += n
	}
	a.Depths = m.Depths()
}

// EqualCoherent compares the answers of a model with the answers of the lists with holes.
func EqualCoherent(t TB, numbers stack.SetNumbers, events []stacktest.Event, batches []int) {
	t.Helper()
	want := Coherent(events).forSetNumbers(numbers)
	var got Answers
	got.Run(stack.NewCoherent(numbers), events, batches)
	got.same(t, events, &want)
}

// EqualRestored saves a model's state after some events, and restores another model from this
// state. EqualRestored compares the answers and the final states of both models.
func EqualRestored(t TB, numbers stack.SetNumbers, events []stacktest.Event, cut int) {
	t.Helper()
	whole, again := stack.NewCoherent(numbers), stack.NewCoherent(numbers)
	var before, want, got Answers
	before.Run(whole, events[:cut], []int{cut})
	state := whole.State()
	if err := again.Restore(state); err != nil {
		t.Fatalf("%v", err)
	}
	check(again)
	if !bytes.Equal(again.State(), state) {
		t.Fatalf("the state of a restored model differs from the state that it was restored from")
	}
	want.Run(whole, events[cut:], []int{len(events) - cut})
	got.Run(again, events[cut:], []int{len(events) - cut})
	got.Depths.Add(before.Depths)
	got.same(t, events[cut:], &want)
	if whole.Lines() != again.Lines() || !bytes.Equal(whole.State(), again.State()) {
		t.Fatalf("a restored model ends in a different state")
	}
}

// TB contains the methods that testing.TB and rapid.T have in common.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (a *Answers) same(t TB, events []stacktest.Event, want *Answers) {
	t.Helper()
	for i, e := range events {
		if a.Out[i] != want.Out[i] {
			t.Fatalf("event %d of %d, operation %d on line %d: depth %d, want %d", i, len(events), e.Op, e.Line, a.Out[i], want.Out[i])
		}
		if e.Op == stack.AccessOp && want.Out[i] == stack.Lost && a.Lost[i] != want.Lost[i] {
			t.Fatalf("event %d of %d: the line was invalidated at depth %d, want %d", i, len(events), a.Lost[i], want.Lost[i])
		}
	}
	for k := range want.Depths {
		for d := range want.Depths[k] {
			if a.Depths[k][d] != want.Depths[k][d] {
				t.Fatalf("%d accesses at depth %d of 2^%d sets, want %d", a.Depths[k][d], d, k, want.Depths[k][d])
			}
		}
	}
}

// EqualCaches compares a model's answers with simulated caches: fully associative caches of every
// capacity, access by access, and caches with all numbers of sets and ways.
func EqualCaches(t TB, events []stacktest.Event) {
	t.Helper()
	var got Answers
	m := stack.NewCoherent(stack.AllSetNumbers)
	got.Run(m, events, []int{len(events)})
	for capacity := 1; capacity <= m.Lines()+1; capacity++ {
		cache := stacktest.Private{Sets: 1, Ways: capacity}
		for i, e := range events {
			if had := cache.Do(e); had != (got.Out[i] < uint32(capacity)) {
				t.Fatalf("event %d, operation %d on line %d: the depth is %d, but presence in a cache of %d lines = %t", i, e.Op, e.Line, got.Out[i], capacity, had)
			}
		}
	}
	for a := range got.Depths {
		hits := uint64(0)
		for w := range got.Depths[a] {
			hits += got.Depths[a][w]
			if want := hitsOf(&stacktest.Private{Sets: 1 << a, Ways: w + 1}, events); hits != want {
				t.Fatalf("2^%d sets of %d ways: %d hits, want %d", a, w+1, hits, want)
			}
		}
	}
}

// EqualLarge compares a model's answers with a few simulated caches. EqualLarge can process more
// events than the other comparisons.
func EqualLarge(t TB, events []stacktest.Event, batches []int) {
	t.Helper()
	var got Answers
	m := stack.NewCoherent(stack.AllSetNumbers)
	got.Run(m, events, batches)
	for capacity := 1; capacity <= 4*m.Lines(); capacity *= 9 {
		cache := large{capacity: capacity, at: map[trace.Line]*list.Element{}}
		for i, e := range events {
			if had := cache.do(e); had != (got.Out[i] < uint32(capacity)) {
				t.Fatalf("event %d, operation %d on line %d: the depth is %d, but presence in a cache of %d lines = %t", i, e.Op, e.Line, got.Out[i], capacity, had)
			}
		}
	}
	for a := 1; a < stack.SetCounts; a += 5 {
		hits := uint64(0)
		for w := range got.Depths[a] {
			hits += got.Depths[a][w]
			if w%15 != 0 {
				continue
			}
			if want := hitsOf(&stacktest.Private{Sets: 1 << a, Ways: w + 1}, events); hits != want {
				t.Fatalf("2^%d sets of %d ways: %d hits, want %d", a, w+1, hits, want)
			}
		}
	}
}

// The type "large" is a cache like [Private], but it has one set and is fast enough for many lines.
type large struct {
	capacity int
	order    list.List // lines, most recently used first
	at       map[trace.Line]*list.Element
}

func (m *large) do(e stacktest.Event) (had bool) {
	element, had := m.at[e.Line]
	switch {
	case e.Op == stack.AccessOp && had:
		m.order.MoveToFront(element)
	case e.Op == stack.AccessOp:
		if m.order.Len() == m.capacity {
			delete(m.at, m.order.Remove(m.order.Back()).(trace.Line))
		}
		m.at[e.Line] = m.order.PushFront(e.Line)
	case e.Op == stack.LoseOp && had:
		delete(m.at, m.order.Remove(element).(trace.Line))
	}
	return had
}

func hitsOf(cache *stacktest.Private, events []stacktest.Event) (hits uint64) {
	for _, e := range events {
		if cache.Do(e) && e.Op == stack.AccessOp {
			hits++
		}
	}
	return hits
}

// RandomEvents generates accesses like [Random], and invalidates lines between them. The lines are
// lost in bursts. The parameter gap is the approximate number of accesses between two bursts. Half
// of the lost lines are among the most recently accessed lines.
func RandomEvents(rng *rand.Rand, n, gap int) (events []stacktest.Event) {
	lines := stacktest.Random(rng, n)
	crowd(rng, lines)
	for i, line := range lines {
		events = append(events, stacktest.Event{Op: stack.AccessOp, Line: line})
		if rng.IntN(gap) > 0 {
			continue
		}
		for range 1 + rng.IntN(4) {
			from := 0
			if rng.IntN(2) == 0 {
				from = max(0, i-20)
			}
			op := stack.LoseOp
			if rng.IntN(4) == 0 {
				op = stack.AskOp
			}
			events = append(events, stacktest.Event{Op: op, Line: lines[from+rng.IntN(i+1-from)]})
		}
	}
	return events
}

// chaseEvents generates n accesses to random lines. After some accesses, a different line is lost.
// The parameter gap is the average number of accesses between two lost lines.
func chaseEvents(lines, gap, n int) (events []stacktest.Event) {
	rng := rand.New(rand.NewPCG(1, uint64(gap)))
	for _, line := range Chase(uint64(lines), n) {
		events = append(events, stacktest.Event{Op: stack.AccessOp, Line: line})
		if rng.IntN(gap) == 0 {
			events = append(events, stacktest.Event{Op: stack.LoseOp, Line: trace.Line(rng.IntN(lines))})
		}
	}
	return events
}

// RunCoherent checks [stack.Coherent] in four ways. RunCoherent checks the example of MODELS §6.4.
// RunCoherent checks that, if no lines are lost, the results equal the results of [stack.Sets].
// RunCoherent compares the results for random events, in batches of any length, with the lists with
// holes. RunCoherent compares the results with simulated caches. The number of events is so large
// that the stamps run out.
func RunCoherent(t *testing.T) {
	t.Run("vector", func(t *testing.T) {
		var got Answers
		events := []stacktest.Event{{Line: 'a'}, {Line: 'b'}, {Op: stack.LoseOp, Line: 'a'}, {Line: 'c'}, {Line: 'b'}, {Line: 'a'}}
		got.Run(stack.NewCoherent(stack.AllSetNumbers), events, []int{len(events)})
		if want := []uint32{inf, inf, 1, inf, 1, stack.Lost}; !slices.Equal(got.Out, want) || got.Lost[5] != 1 {
			t.Errorf("the depths are %v, and the last line was invalidated at depth %d; want %v and depth 1", got.Out, got.Lost[5], want)
		}
	})
	t.Run("without losses", func(t *testing.T) {
		for seed := range uint64(8) {
			rng := rand.New(rand.NewPCG(seed, 5))
			lines := stacktest.Random(rng, 1+rng.IntN(6000))
			crowd(rng, lines)
			sets, m := stack.NewSets(stack.AllSetNumbers), stack.NewCoherent(stack.AllSetNumbers)
			want, out, lost := make([]uint32, len(lines)), make([]uint32, len(lines)), make([]uint32, len(lines))
			sets.Distances(lines, want)
			Do(m, make([]stack.Op, len(lines)), lines, out, lost)
			if !slices.Equal(out, want) || *m.Depths() != *sets.Depths() {
				t.Fatalf("seed %d: the answers differ from the answers of a stack without holes", seed)
			}
		}
	})
	t.Run("random", func(t *testing.T) {
		for seed := range uint64(60) {
			rng := rand.New(rand.NewPCG(seed, 6))
			events := RandomEvents(rng, 1+rng.IntN(3000), 1+rng.IntN(1+rng.IntN(200)))
			numbers := chosen[seed%uint64(len(chosen))]
			EqualCoherent(t, numbers, events, cuts(rng, len(events)))
			EqualRestored(t, numbers, events, rng.IntN(len(events)+1))
		}
	})
	t.Run("chase", func(t *testing.T) {
		for _, gap := range []int{2, 200} {
			events := chaseEvents(60_000, gap, 250_000)
			EqualLarge(t, events, []int{len(events)})
		}
		EqualLarge(t, chaseEvents(50, 10, 300_000)[:300_000], []int{300_000})
	})
}

// Do performs operations in order. All slices have the same length. For an access, Do writes the
// results of [stack.Coherent.Access] to out and lost. For any other operation, Do writes the
// previous depth of the line to out, or Cold if the stack does not contain the line.
func Do(m *stack.Coherent, ops []stack.Op, lines []trace.Line, out, lost []uint32) {
	lines, out, lost = lines[:len(ops)], out[:len(ops)], lost[:len(ops)]
	for len(ops) > 0 {
		n := 0
		for n < len(ops) && ops[n] == stack.AccessOp {
			n++
		}
		switch {
		case n > 0:
			m.Access(lines[:n], out, lost)
		case ops[0] == stack.LoseOp:
			n, out[0] = 1, m.Lose(lines[0])
		default:
			n, out[0] = 1, m.Depth(lines[0])
		}
		ops, lines, out, lost = ops[n:], lines[n:], out[n:], lost[n:]
	}
}
