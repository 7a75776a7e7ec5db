package sgt

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/trace"
)

// TestPartsEqualWhole checks that a single-threaded trace that is read in parts equals the trace
// that is read as a whole. One reader reads every second part. Each of the other parts is read by a
// new reader, which starts at the end of the previous part.
func TestPartsEqualWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := someProgram(t)
		steps := someSteps(t, p, 8)
		for i := range steps {
			steps[i].thread = 1
		}
		file, kinds := write(t, p, steps, someChunks(t)), someKinds(t)
		want := naiveRows(p, steps, kinds)
		most := rapid.SampledFrom([]int{1, 2, 5, 64, 4096}).Draw(t, "rows")
		s := openSource(t, file)
		if s.Chunks() == nil && len(steps) > 0 {
			t.Fatal("the chunks of one thread cannot be divided among workers")
		}
		live := NewReader("t", bytes.NewReader(file), Options{})
		live.Select(kinds)
		stops := positions(t, s, kinds, most)
		var got []row
		for i, stop := range stops {
			part := trace.Mover(live)
			if i%2 == 1 {
				from := live.Position()
				if part = s.Open(from.Chunk, kinds); from.Rows > 0 {
					part.Until(from)
					if _, end := rowsOf(t, part, most); end != trace.ErrThere {
						t.Fatalf("Until(%+v): reading ended with %v, want ErrThere", from, end)
					}
				}
			}
			part.Until(stop)
			rows, end := rowsOf(t, part, most)
			if !errors.Is(end, trace.ErrThere) && !(end == io.EOF && stop.Chunk == trace.AtEnd) {
				t.Fatalf("Until(%+v) of the part: reading ended with %v, want ErrThere", stop, end)
			}
			if got = append(got, rows...); i%2 == 1 {
				err := error(nil)
				if stop.Chunk != live.Position().Chunk {
					err = live.Pass(stop.Chunk)
				}
				live.Until(stop)
				if _, end := rowsOf(t, live, most); err != nil || end != trace.ErrThere && end != io.EOF {
					t.Fatalf("Pass and Until(%+v): Pass returned %v, and reading ended with %v", stop, err, end)
				}
			}
		}
		compareRows(t, "in parts", got, want)
		if _, end := rowsOf(t, live, 1); end != io.EOF {
			t.Fatalf("error %v at the end, want io.EOF", end)
		}
	})
}

// positions returns random positions in a trace, in ascending order. The last position is the end
// of the trace.
func positions(t *rapid.T, s *Source, kinds trace.Kinds, most int) (some []trace.Position) {
	r := s.Open(0, kinds)
	b := trace.NewBatch(most)
	for before := uint64(0); r.Next(b) == nil; before = r.Position().Chunk {
		at := r.Position()
		if at.Chunk != before && rapid.IntRange(0, 2).Draw(t, "here") == 0 {
			some = append(some, trace.Position{Chunk: at.Chunk})
		}
		if rows := uint64(b.Len()); rapid.IntRange(0, 3).Draw(t, "there") == 0 {
			at.Rows -= rapid.Uint64Range(0, rows-1).Draw(t, "within")
			some = append(some, at)
		}
	}
	return append(some, trace.Position{Chunk: trace.AtEnd})
}

// TestChunksOfSeveralThreads checks that a trace with several threads is not divided into chunks.
func TestChunksOfSeveralThreads(t *testing.T) {
	p := blocksOf("l")
	steps := []step{{1, 0, 0, []uint64{1}}, {2, 1, 0, []uint64{2}}, {1, 2, 0, []uint64{3}}}
	if chunks := openSource(t, write(t, p, steps, chunkSize{bytes: 1 << 20, steps: 10})).Chunks(); chunks != nil {
		t.Fatalf("Chunks() = %v for two threads, want nil", chunks)
	}
}
