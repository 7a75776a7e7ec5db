package threads

import (
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// row contains the columns of a row that these tests check.
type row struct {
	thread uint32
	kind   trace.Kind
	addr   trace.Addr
}

// parseScript converts a text to a trace, with one row for each letter: a, b and c are references of
// threads 1, 2 and 3; A, B and C are their barriers; F is a fork and J a join by thread 1; ( and ) are
// the fork and join of a nested region of thread 2. The addresses of a thread's references are
// successive numbers.
func parseScript(text string) (rows []row) {
	var next [4]trace.Addr
	for _, letter := range []byte(text) {
		switch letter {
		case 'F':
			rows = append(rows, row{1, trace.ParallelBegin, 0})
		case 'J':
			rows = append(rows, row{1, trace.ParallelEnd, 0})
		case '(':
			rows = append(rows, row{2, trace.ParallelBegin, 0})
		case ')':
			rows = append(rows, row{2, trace.ParallelEnd, 0})
		case 'A', 'B', 'C':
			rows = append(rows, row{uint32(letter - 'A' + 1), trace.Barrier, 0})
		default:
			thread := uint32(letter - 'a' + 1)
			rows = append(rows, row{thread, trace.Load, next[thread]})
			next[thread]++
		}
	}
	return rows
}

// formatScript is the inverse of parseScript.
func formatScript(rows []row) string {
	var text []byte
	for _, r := range rows {
		switch {
		case r.kind == trace.ParallelBegin && r.thread == 1:
			text = append(text, 'F')
		case r.kind == trace.ParallelEnd && r.thread == 1:
			text = append(text, 'J')
		case r.kind == trace.ParallelBegin:
			text = append(text, '(')
		case r.kind == trace.ParallelEnd:
			text = append(text, ')')
		case r.kind == trace.Barrier:
			text = append(text, 'A'+byte(r.thread-1))
		default:
			text = append(text, 'a'+byte(r.thread-1))
		}
	}
	return string(text)
}

// limitedReader is a reader that returns rows of the selected kinds, in batches of limited length.
type limitedReader struct {
	rows  []row
	most  int
	kinds trace.Kinds
	end   error
}

func (g *limitedReader) Select(kinds trace.Kinds) { g.kinds = kinds }

func (g *limitedReader) Next(b *trace.Batch) error {
	b.Reset()
	b.NeedThread()
	b.NeedSite()
	for len(g.rows) > 0 && b.Len() < min(g.most, b.Cap()) {
		r := g.rows[0]
		g.rows = g.rows[1:]
		if g.kinds.Has(r.kind) {
			b.Append(r.kind, r.addr, 8, r.thread, 0)
			b.Site[b.Len()-1] = r.thread
		}
	}
	if b.Len() > 0 {
		return nil
	}
	return g.end
}

// readRealigned reads all rows of r, which numbers the threads from 0. The site of each row must be
// the thread number in the original trace.
func readRealigned(t tracetest.Failer, r *Reader, capacity int) (rows []row, err error) {
	b, numbers := trace.NewBatch(capacity), map[uint32]uint32{}
	for {
		b.Resize(b.Cap())
		b.Spoil()
		err := r.Next(b)
		if err != nil {
			if b.Len() > 0 {
				t.Fatalf("Next returned %d rows together with the error %v, want none", b.Len(), err)
			}
			return rows, err
		}
		if b.Len() == 0 {
			t.Fatalf("Next returned neither rows nor an error")
		}
		for i, k := range b.Kind {
			was := b.Site[i]
			if n, ok := numbers[was]; ok && n != b.Thread[i] || !ok && slices.Contains(slices.Collect(maps.Values(numbers)), b.Thread[i]) || b.Thread[i] > 3 {
				t.Fatalf("thread %d has the new number %d, which contradicts the earlier numbers %v", was, b.Thread[i], numbers)
			}
			numbers[was] = b.Thread[i]
			if b.Bytes[i] != 8 {
				t.Fatalf("a row with %d bytes, want 8", b.Bytes[i])
			}
			rows = append(rows, row{was, k, b.Addr[i]})
		}
	}
}

func TestRealign(t *testing.T) {
	for _, c := range []struct{ trace, want string }{
		{"aaa", "aaa"},
		{"aFaaabbbJa", "aFabababJa"},
		{"FaaabbbcJ", "FabcababJ"},
		{"FaaAaaAbBbbbBJ", "FabaAaBbabbABJ"}, // each barrier still precedes the same row
		{"FaAaAJFbbaaJ", "FaAaAJFababJ"},     // the rows of each region are ordered separately
		{"FaabbJbbaFbaJ", "FababJbbaFabJ"},   // rows outside of regions keep their order
		{"FaaAabbBb", "FababAaBb"},           // the program ends within a region
		{"FJFJ", "FJFJ"},
		{"FccbbaaCcBbAaJ", "FabcabcAaBbCcJ"}, // threads in ascending order
		{"bbFaJ", "bbFaJ"},
		{"FbbbbAAaaJ", "FbbbbAAaaJ"},     // thread 1 is in phase 2, and thread 2 is in phase 0
		{"Fab(bBb)BbaJ", "Faba(bBb)BbJ"}, // a barrier in a nested region is not a barrier of the team
		{"aFFaAaJbaBbAaJa", "aFFabAaJaAaBbJa"},
	} {
		for most := 1; most < 6; most++ {
			r := Realign(&limitedReader{rows: parseScript(c.trace), most: most, end: io.EOF}, interleave.Order{}, 0)
			r.Select(trace.DataKinds | trace.EventKinds)
			got, err := readRealigned(t, r, most)
			if err != io.EOF || formatScript(got) != c.want {
				t.Errorf("%s in batches of %d: %s, %v, want %s", c.trace, most, formatScript(got), err, c.want)
			}
		}
	}
}

// randomTeam generates random rows for each thread and phase of a region.
func randomTeam(t *rapid.T) (threads [][][]row) {
	phases := rapid.IntRange(1, 4).Draw(t, "phases")
	for n := range rapid.IntRange(1, 4).Draw(t, "threads") {
		thread := uint32(n + 1)
		var list [][]row
		for p := range phases {
			var rows []row
			if p > 0 {
				rows = append(rows, row{thread, trace.Barrier, 0})
			}
			n := rapid.SampledFrom([]int{0, 1, 3, 50}).Draw(t, "rows")
			if p == 0 {
				n++ // each thread makes a reference in the first phase, so the threads appear in the order of their numbers
			}
			for i := range n {
				rows = append(rows, row{thread, trace.Store, trace.Addr(100*p + i)})
			}
			list = append(list, rows)
		}
		threads = append(threads, list)
	}
	return threads
}

// shuffledRows returns the rows of a region in a random order in which a machine could have executed
// them.
func shuffledRows(threads [][][]row, rng *rand.Rand) (rows []row) {
	rows = append(rows, row{1, trace.ParallelBegin, 0})
	for phase := range threads[0] {
		left := make([][]row, len(threads))
		n := 0
		for i := range threads {
			left[i] = threads[i][phase]
			n += len(left[i])
		}
		for n > 0 {
			i := rng.IntN(len(left))
			some := min(1+rng.IntN(20), len(left[i]))
			rows = append(rows, left[i][:some]...)
			left[i], n = left[i][some:], n-some
		}
	}
	return append(rows, row{1, trace.ParallelEnd, 0})
}

// TestOrderIsIndependentOfRun checks that the result does not depend on the order in which the
// machine executed the threads. The expected order is computed from rows that are already grouped
// by phase.
func TestOrderIsIndependentOfRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := interleave.Order{Policy: interleave.Policy(rapid.IntRange(0, int(interleave.Uniform)).Draw(t, "policy")), Seed: 3}
		rng := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		var trace1, trace2, want []row
		m := interleave.New(o)
		for range rapid.IntRange(1, 3).Draw(t, "regions") {
			threads := randomTeam(t)
			trace1, trace2 = append(trace1, shuffledRows(threads, rng)...), append(trace2, shuffledRows(threads, rng)...)
			want = append(want, row{1, trace.ParallelBegin, 0})
			for phase := range threads[0] {
				var cores []uint32
				var streams []interleave.Stream
				for i := range threads {
					b := trace.NewBatch(len(threads[i][phase]))
					for _, r := range threads[i][phase] {
						b.Append(r.kind, r.addr, 8, 0, 0)
					}
					cores, streams = append(cores, uint32(i+1)), append(streams, &singleBatch{b})
				}
				m.Begin(cores, streams)
				b := trace.NewBatch(1000)
				for m.Fill(b) == nil {
				}
				for i, k := range b.Kind {
					want = append(want, row{b.Thread[i], k, b.Addr[i]})
				}
			}
			want = append(want, row{1, trace.ParallelEnd, 0})
		}
		for _, rows := range [][]row{trace1, trace2} {
			most := rapid.SampledFrom([]int{1, 7, 4096}).Draw(t, "most")
			capacity := rapid.SampledFrom([]int{1, 7, 4096}).Draw(t, "capacity")
			r := Realign(&limitedReader{rows: rows, most: most, end: io.EOF}, o, 0)
			r.Select(trace.DataKinds | trace.EventKinds)
			got, err := readRealigned(t, r, capacity)
			if err != io.EOF || !slices.Equal(got, want) {
				t.Fatalf("error %v, want io.EOF; rows %s, want %s", err, formatScript(got), formatScript(want))
			}
			r = Realign(&limitedReader{rows: rows, most: most, end: io.EOF}, o, 0)
			r.Select(trace.DataKinds)
			got, _ = readRealigned(t, r, capacity)
			references := slices.DeleteFunc(slices.Clone(want), func(r row) bool { return !r.kind.IsReference() })
			if !slices.Equal(got, references) {
				t.Fatalf("with only references selected: %s, want %s", formatScript(got), formatScript(references))
			}
		}
	})
}

// singleBatch is a stream that returns a single batch.
type singleBatch struct{ b *trace.Batch }

func (o *singleBatch) Next() (b *trace.Batch, from, to int, err error) {
	if b = o.b; b == nil || b.Len() == 0 {
		return nil, 0, 0, io.EOF
	}
	o.b = nil
	return b, 0, b.Len(), nil
}

func TestRealignReturnsReadErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	r := Realign(&limitedReader{rows: parseScript("aFaabb"), most: 9, end: broken}, interleave.Order{}, 0)
	got, err := readRealigned(t, r, 100)
	if err != broken || formatScript(got) != "aabab" {
		t.Errorf("%s and %v", formatScript(got), err)
	}
	b := trace.NewBatch(0)
	if again := r.Next(b); again != broken {
		t.Errorf("later: %v", again)
	}

	r = Realign(&limitedReader{rows: parseScript("aFaabbaaJ"), most: 2, end: io.EOF}, interleave.Order{}, 5)
	got, err = readRealigned(t, r, 100)
	var tooLarge *RegionError
	if !errors.As(err, &tooLarge) || tooLarge.MostRows != 5 || formatScript(got) != "a" {
		t.Errorf("%s and %v", formatScript(got), err)
	}
	if again := r.Next(b); !errors.As(again, &tooLarge) {
		t.Errorf("later: %v", again)
	}
}

// endlessReader is a reader that repeats a script forever.
type endlessReader struct{ once, now limitedReader }

func (e *endlessReader) Select(kinds trace.Kinds) { e.once.kinds = kinds }

func (e *endlessReader) Next(b *trace.Batch) error {
	if len(e.now.rows) == 0 {
		e.now = e.once
	}
	return e.now.Next(b)
}

func TestRealignAllocatesNothing(t *testing.T) {
	r := Realign(&endlessReader{once: limitedReader{rows: parseScript("FaaAaaAbBbbbBJaaFaabbJ"), most: 7}}, interleave.Order{}, 0)
	b := trace.NewBatch(16)
	pass := func() {
		for range 100 {
			if err := r.Next(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	pass()
	if n := testing.AllocsPerRun(10, pass); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// describedReader is a reader whose header contains the stack bounds of the threads.
type describedReader struct {
	limitedReader
	program trace.Program
}

func (t *describedReader) Header() trace.Header { return trace.Header{Program: &t.program} }

// TestOpenMPThreadNumbers uses threads 2, 3 and 4, which start in a different order than their
// OpenMP numbers. The test checks that the OpenMP numbers are derived from the positions of the
// stack frames if these positions are typical of LLVM's runtime.
func TestOpenMPThreadNumbers(t *testing.T) {
	for _, c := range []struct {
		offsets [3]trace.Addr // distances from the tops of the three threads' stacks
		want    [3]uint32
	}{
		{[3]trace.Addr{0x1000, 0x1000 - 128, 0x1000 - 64}, [3]uint32{1, 3, 2}},
		{[3]trace.Addr{0x1000 - 128, 0x1000 - 64, 0x1000}, [3]uint32{3, 2, 1}},
		// LLVM's runtime does not produce these distances
		{[3]trace.Addr{0x1000 - 128, 0x1000 - 32, 0x1000}, [3]uint32{1, 2, 3}},
		{[3]trace.Addr{0x1000, 0x1000, 0x1000}, [3]uint32{1, 2, 3}},
	} {
		trace1 := &describedReader{}
		trace1.most, trace1.end = 100, io.EOF
		trace1.rows = []row{{1, trace.Load, 8}, {1, trace.ParallelBegin, 0}}
		for i, offset := range c.offsets {
			thread := uint32(i + 2)
			high := trace.Addr(thread) << 32
			trace1.program.Threads = append(trace1.program.Threads, trace.Thread{Number: thread, StackLow: high - 1<<20, StackHigh: high})
			trace1.rows = append(trace1.rows, row{thread, trace.Store, high - offset - 512}, row{thread, trace.Store, high - offset}, row{thread, trace.Load, 8})
		}
		trace1.rows = append(trace1.rows, row{1, trace.ParallelEnd, 0}, row{4, trace.Load, 16})
		r := Realign(trace1, interleave.Order{}, 0)
		b := trace.NewBatch(0)
		var got [3]uint32
		for r.Next(b) == nil {
			for i, was := range b.Site {
				if was > 1 {
					got[was-2] = b.Thread[i]
				}
			}
		}
		if got != c.want {
			t.Errorf("stack offsets %#x: thread numbers %d, want %d", c.offsets, got, c.want)
		}
		for i, thread := range r.Header().Program.Threads {
			if thread.Number != uint32(i+1) || got[thread.StackHigh>>32-2] != thread.Number {
				t.Errorf("thread %d of the header has the stack of a different thread, which ends at %#x", thread.Number, thread.StackHigh)
			}
		}
	}
}
