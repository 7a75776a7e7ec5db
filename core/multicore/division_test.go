package multicore

import (
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestVectorisedLoop uses 25 units of four iterations and three single iterations. It checks that
// each core's part begins as close as possible to the iteration at which it would begin in a loop
// of 103 separate iterations.
func TestVectorisedLoop(t *testing.T) {
	l := &loop{units: 28, unitRuns: []unitRun{{head: 1}, {head: 2, unit: 25, bytes: 25*64 + 5}}}
	l.setUnitWidths(25*64 + 5 + 3*16)
	if n := l.iterations(); n != 103 {
		t.Fatalf("%d iterations, want 103", n)
	}
	// The ideal parts begin with iterations 0, 26, 52 and 78, but units begin only at multiples
	// of four up to 100.
	for core, want := range [][2]uint64{{0, 7}, {7, 13}, {13, 20}, {20, 28}} {
		if from, to, more := l.staticRun(core, 4, 0); from != want[0] || to != want[1] || !more {
			t.Errorf("core %d executes units %d to %d, want %d to %d", core, from, to, want[0], want[1])
		}
	}
	// If chunks consist of six iterations, each chunk has one or two units, and no unit is lost.
	l.chunk = 6
	done := uint64(0)
	for n := uint64(0); ; n++ {
		any := false
		for core := range 4 {
			from, to, more := l.staticRun(core, 4, n)
			if any = any || more; !more {
				continue
			}
			if from != done || to < from {
				t.Fatalf("chunk %[2]d of core %[1]d has units %[3]d to %[4]d, want units from %[5]d on", core, n, from, to, done)
			}
			done = to
		}
		if !any {
			break
		}
	}
	if done != 28 {
		t.Errorf("%d units were assigned, want 28", done)
	}
}

// TestVectorsLongerThanChunks checks that, if a unit contains more iterations than a chunk, the
// units are assigned to the cores in turn.
func TestVectorsLongerThanChunks(t *testing.T) {
	l := &loop{units: 28, chunk: 1, unitRuns: []unitRun{{head: 1}, {head: 2, unit: 25, bytes: 25 * 64}}}
	l.setUnitWidths(25*64 + 3*16)
	for core := range uint64(4) {
		if from, to, _ := l.staticRun(int(core), 4, 2); from != 8+core || to != 9+core {
			t.Errorf("core %d executes units %d to %d, want only unit %d", core, from, to, 8+core)
		}
	}
	if l.total != 103 {
		t.Errorf("%d iterations, want 103", l.total)
	}
}

// TestStaticScheduleAssignsAllUnits checks that each unit is assigned to exactly one core, for any
// chunk size.
func TestStaticScheduleAssignsAllUnits(t *testing.T) {
	for _, units := range []uint64{0, 1, 2, 5, 64, 100, 101} {
		for _, chunk := range []uint64{0, 1, 3, 64, 1000, 1<<63 - 1} {
			for _, cores := range []int{1, 2, 3, 64} {
				l := &loop{units: units, chunk: chunk}
				done := make([]int, units)
				for core := range cores {
					for n := uint64(0); ; n++ {
						from, to, more := l.staticRun(core, cores, n)
						if !more {
							break
						}
						for u := from; u < to; u++ {
							done[u]++
						}
					}
				}
				for u, n := range done {
					if n != 1 {
						t.Errorf("%d units in chunks of %d, %d cores: unit %d is executed %d times", units, chunk, cores, u, n)
					}
				}
			}
		}
	}
}

// TestPrefixSumsOfManyUnits uses more units than stored prefix sums, and checks that the costs are
// nearly exact and add up to the total.
func TestPrefixSumsOfManyUnits(t *testing.T) {
	var s prefixSums
	const n = 5*mostSums + 3
	for range n {
		s.add(2)
	}
	for _, at := range []uint64{0, 1, 77, mostSums, 3*mostSums + 5, n, n + 7} {
		want := float64(2 * min(at, n))
		if got := s.costOfFirst(at); got > want || got < want-2*8 {
			t.Errorf("the first %d units cost %v, want %v", at, got, want)
		}
	}
	if len(s.list) > mostSums {
		t.Errorf("%d partial sums are stored, which is more than the limit", len(s.list))
	}
}

// TestEachChunkIsExecutedOnce checks that each chunk is executed exactly once, in whatever order
// the cores request chunks.
func TestEachChunkIsExecutedOnce(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11))
		cores, chunks := 2+rng.IntN(16), rng.IntN(200)
		next := newThieves(uint64(chunks), cores).next
		done := make([]int, chunks)
		working := rng.Perm(cores)
		for len(working) > 0 {
			i := min(rng.IntN(len(working)), rng.IntN(len(working))) // cores with higher numbers request chunks less often
			if n, ok := next(working[i]); ok {
				done[n]++
			} else {
				working = append(working[:i], working[i+1:]...)
			}
		}
		for n, times := range done {
			if times != 1 {
				t.Fatalf("seed %d: %d chunks, %d cores: chunk %d is executed %d times", seed, chunks, cores, n, times)
			}
		}
	}
}

// TestIdleCoresSteal checks that each core executes its own part as long as all cores are equally
// fast, and that the first core to finish steals the last quarter of the next core's part.
func TestIdleCoresSteal(t *testing.T) {
	next := newThieves(30, 3).next
	for i := range uint64(2) {
		for core := range uint64(3) {
			if n, ok := next(int(core)); !ok || n != 10*core+i {
				t.Fatalf("core %d takes chunk %d (%v), want chunk %d", core, n, ok, 10*core+i)
			}
		}
	}
	for range 8 {
		next(2)
	}
	for _, want := range []uint64{8, 9, 7, 6} { // core 2 first steals two of the last eight chunks of core 0, and then one chunk at a time
		if n, ok := next(2); !ok || n != want {
			t.Errorf("the idle core takes chunk %d (%v), want chunk %d", n, ok, want)
		}
	}
}

// TestVectorisedLoopIsRecognised checks that a vectorised loop is distinguished from a loop without
// vectors, even if the scalar loop after it did not run.
func TestVectorisedLoopIsRecognised(t *testing.T) {
	const vector, rest = trace.HeaderBlock | trace.LatchBlock, trace.HeaderBlock | trace.LatchBlock
	p := &trace.Program{Functions: []trace.Function{{Name: "loop", Blocks: 6}}}
	for i, b := range []struct {
		depth uint32
		flags trace.BlockFlags
		to    []uint32
		bytes []uint32
	}{
		{0, 0, []uint32{1, 2}, nil},
		{1, vector, []uint32{1, 2, 3}, []uint32{16, 16, 16, 16}},
		{1, rest, []uint32{2, 3}, []uint32{8}},
		{0, 0, []uint32{4}, nil}, // this block ends the parallel loop; the blocks below do not belong to it
		{1, vector, []uint32{4, 5}, []uint32{2}},
		{0, 0, nil, nil},
	} {
		p.Blocks = append(p.Blocks, trace.Block{Depth: b.depth, Flags: b.flags, Loop: uint32(i) + 1, Successors: b.to, FirstSite: uint32(len(p.Sites)), Sites: uint32(len(b.bytes))})
		for _, n := range b.bytes {
			p.Sites = append(p.Sites, trace.Site{Kind: trace.Load, Bytes: n, Block: uint32(i)})
		}
	}
	p.Sites = append(p.Sites, trace.Site{Kind: trace.LoopEnd, Block: 3})
	p.Blocks[3].FirstSite, p.Blocks[3].Sites = uint32(len(p.Sites)-1), 1
	var c code
	c.know(p)
	s := c.makeShape(0, schedule{kind: staticWhole})
	if len(s.widths) != 1 || s.widths[1] != 8 {
		t.Fatalf("widths = %v, want width 8 for block 1", s.widths)
	}
	for _, c := range []struct {
		used  Schedule
		head  uint32
		units uint64
		cores uint64
		want  bool
	}{
		{Schedule{Static, 0}, 2, 40, 16, false}, // each core executes 20 elements
		{Schedule{Static, 0}, 2, 10, 16, true},  // each core executes 5 elements
		{Schedule{Static, 0}, 3, 10, 16, false}, // the cores process elements one by one
		{Schedule{Static, 1}, 2, 1000, 2, true},
		{Schedule{Static, 1}, 3, 1000, 2, false},
		{Schedule{Static, 8}, 2, 1000, 2, false},
		{Schedule{Dynamic, 4}, 2, 1000, 2, true},
	} {
		l := &loop{shape: s, used: c.used, units: c.units, unitRuns: []unitRun{{head: c.head}}}
		l.setMaxWidth()
		l.setUnitWidths(0)
		if got := l.tooWide(c.cores); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
