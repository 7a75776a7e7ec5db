package sgt

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// someProgram returns a random program with blocks of every form.
func someProgram(t *rapid.T) *trace.Program {
	p := &trace.Program{Modules: make([]trace.Module, 1)}
	kinds := rapid.SampledFrom([]trace.Kind{trace.Load, trace.Load, trace.Store, trace.Modify, trace.Fetch, trace.RangeRead, trace.Alloc, trace.Free, trace.LoopBegin, trace.LoopEnd, trace.Barrier})
	if rapid.Bool().Draw(t, "references only") {
		kinds = rapid.SampledFrom([]trace.Kind{trace.Load, trace.Store})
	}
	hasPC := rapid.Bool().Draw(t, "has PCs")
	for number := range rapid.Uint32Range(1, 6).Draw(t, "blocks") {
		b := trace.Block{Function: trace.NoFunction, FirstSite: uint32(len(p.Sites)), Sites: rapid.Uint32Range(0, 4).Draw(t, "sites")}
		b.Flags = rapid.SampledFrom([]trace.BlockFlags{0, 0, trace.EntryBlock, trace.ReturnBlock, trace.Synthetic}).Draw(t, "flags")
		for range b.Sites {
			s := trace.Site{Kind: kinds.Draw(t, "kind"), Bytes: rapid.SampledFrom([]uint32{8, 4, 2, 1, 0, 32}).Draw(t, "bytes"), Block: number}
			if s.Bytes == 0 && rapid.Bool().Draw(t, "no size") {
				s.Flags = trace.NoSize
			}
			if hasPC {
				s.PC = 0x400000 + uint64(len(p.Sites))
			}
			p.Sites = append(p.Sites, s)
		}
		p.Blocks = append(p.Blocks, b)
	}
	return p
}

// someSteps returns random steps of several threads. The steps are loops whose values have constant
// strides, depend on each other, or are random.
func someSteps(t *rapid.T, p *trace.Program, most int) (all []step) {
	threads := rapid.Uint32Range(1, 3).Draw(t, "threads")
	ticket := uint64(rapid.SampledFrom([]int{0, 1, 1 << 40}).Draw(t, "first ticket"))
	last := map[uint32]uint64{}
	for range rapid.IntRange(0, most).Draw(t, "loops") {
		ring := rapid.SliceOfN(rapid.Uint32Range(0, uint32(len(p.Blocks)-1)), 1, 3).Draw(t, "ring")
		thread := rapid.Uint32Range(1, threads).Draw(t, "thread")
		if more := rapid.Uint64Range(0, 2).Draw(t, "ticket"); more > 0 || len(all) > 0 && thread < all[len(all)-1].thread {
			ticket += max(more, 1)
		}
		stride := rapid.SampledFrom([]uint64{8, 8, 0, ^uint64(7), 4096, 3}).Draw(t, "stride")
		chained, wild := rapid.IntRange(0, 3).Draw(t, "chained"), rapid.IntRange(0, 20).Draw(t, "wild")
		turns := rapid.SampledFrom([]int{1, 1, 2, 3, 7, 40, 300}).Draw(t, "turns")
		for turn := range turns {
			for _, block := range ring {
				all = append(all, step{thread, ticket, block, nil})
				s := &all[len(all)-1]
				b := p.Blocks[block]
				for n := range b.Sites {
					site := b.FirstSite + n
					for v := range p.Sites[site].Values() {
						value := last[site] + stride
						switch {
						case turn == wild:
							value = rapid.Uint64().Draw(t, "value")
						case v == 1:
							value = 16
						case int(n) > 0 && chained == 0:
							value = last[site-1] + 24
						}
						if p.Sites[site].Kind.IsReference() && v == 1 {
							value &= 1<<34 - 1
						}
						if v == 0 {
							last[site] = value
						}
						s.values = append(s.values, value)
					}
				}
			}
		}
	}
	return all
}

// The function "write" encodes the steps of a program, and returns the container.
func write(t failer, p *trace.Program, steps []step, full chunkSize) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, 64, []trace.Fact{{Name: "tool", Value: "test"}})
	w.full = full
	if err := w.Module(AppendModule(nil, p)); err != nil {
		t.Fatalf("%v", err)
	}
	for _, s := range steps {
		if err := w.Step(s.thread, s.ticket, s.block, s.values); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if err := w.Close(End{How: "exit", Status: 3, Lost: 7}); err != nil {
		t.Fatalf("%v", err)
	}
	return out.Bytes()
}

// rowsOf reads all rows in batches of the given size, and returns the rows and the last error.
func rowsOf(t failer, r trace.Reader, most int) (all []row, end error) {
	t.Helper()
	b := trace.NewBatch(most)
	for {
		b.Resize(b.Cap())
		b.Spoil()
		err := r.Next(b)
		if err != nil && b.Len() > 0 || err == nil && b.Len() == 0 {
			t.Fatalf("Next returned %d rows and the error %v, want rows or an error", b.Len(), err)
		}
		if err != nil {
			if again := r.Next(b); again != err {
				t.Fatalf("Next returned %v, and then %v, want the same error", err, again)
			}
			return all, err
		}
		for i := range b.Addr {
			all = append(all, row{kind: b.Kind[i], addr: b.Addr[i], bytes: b.Bytes[i], site: b.Site[i]})
			got := &all[len(all)-1]
			if b.Arg != nil {
				got.arg = b.Arg[i]
			}
			if b.PC != nil {
				got.pc = b.PC[i]
			}
			if b.Thread != nil {
				got.thread = b.Thread[i]
			}
		}
	}
}

func someChunks(t *rapid.T) chunkSize {
	return chunkSize{bytes: 1 << 20, steps: rapid.SampledFrom([]uint64{1, 3, 50, 1000}).Draw(t, "chunk")}
}

func someKinds(t *rapid.T) trace.Kinds {
	return rapid.SampledFrom([]trace.Kinds{trace.AllKinds, trace.AllKinds | trace.EventKinds, trace.AllKinds | 1<<trace.BareBlock, 1 << trace.Load, trace.EventKinds}).Draw(t, "kinds")
}

// someEarly returns a random limit for decoding in advance. The limit does not depend on the
// machine.
func someEarly(t *rapid.T) earlyLimit {
	return earlyLimit{rapid.IntRange(0, 4).Draw(t, "early chunks"), rapid.SampledFrom([]int{1, 3, 100, 1 << 20}).Draw(t, "early rows")}
}

// TestStepsRoundTrip checks that the naive decoder returns the steps that were passed to the
// encoder.
func TestStepsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := someProgram(t)
		want := someSteps(t, p, 8)
		_, got := naiveFile(t, write(t, p, want, someChunks(t)))
		if !slices.EqualFunc(got, want, func(a, b step) bool {
			return a.thread == b.thread && a.ticket == b.ticket && a.block == b.block && slices.Equal(a.values, b.values)
		}) {
			t.Fatalf("got\n%v\nwant\n%v", got, want)
		}
	})
}

// TestRowsEqualReference checks that a reader returns the same rows as the reference
// implementation, for batches of any size.
func TestRowsEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := someProgram(t)
		steps := someSteps(t, p, 8)
		file, kinds := write(t, p, steps, someChunks(t)), someKinds(t)
		want := naiveRows(p, steps, kinds)
		most := rapid.SampledFrom([]int{1, 2, 5, 64, 4096}).Draw(t, "rows")
		r := NewReader("t", bytes.NewReader(file), Options{})
		r.early, r.reused.split = someEarly(t), rapid.Bool().Draw(t, "split")
		sameRows(t, "whole", r, kinds, most, want)
		if h := r.Header(); !reflect.DeepEqual(*h.Program, *p) || !h.Sites || !h.Threads {
			t.Fatalf("header %+v, want the program\n%+v", h, p)
		}
		references := uint64(len(naiveRows(p, steps, trace.AllKinds)))
		if e := r.Ending(); e != (Ending{true, references, End{"exit", 3, 7}}) {
			t.Fatalf("Ending() = %+v, want %d references", e, references)
		}
		o, err := ReadOutline(bytes.NewReader(file), int64(len(file)))
		if threads := threadsOf(naiveRows(p, steps, trace.DataKinds|1<<trace.Fetch)); err != nil || o.References != references || o.Threads != threads {
			t.Fatalf("outline %+v, error %v, want %d references by %d threads", o, err, references, threads)
		}
		again := NewReader("t", bytes.NewReader(file), Options{})
		again.early, again.reused.split = someEarly(t), !r.reused.split
		sameRows(t, "with the alternative conversion of values to rows", again, kinds, most, want)
	})
}

func threadsOf(rows []row) int {
	threads := map[uint32]bool{}
	for _, r := range rows {
		threads[r.thread] = true
	}
	return len(threads)
}

func openSource(t failer, file []byte) *Source {
	t.Helper()
	s, err := NewSource("t", bytes.NewReader(file), int64(len(file)), nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

func sameRows(t failer, how string, r *Reader, kinds trace.Kinds, most int, want []row) {
	t.Helper()
	r.Select(kinds)
	got, end := rowsOf(t, r, most)
	if end != io.EOF {
		t.Fatalf("%s: reading ended with %v, want io.EOF", how, end)
	}
	compareRows(t, how, got, want)
}

func compareRows(t failer, how string, got, want []row) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%s: the first difference is row %d (%d rows, want %d):\n%+v, want\n%+v", how, i, len(got), len(want), got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
		}
	}
}

// TestTruncationAtAnyByte checks that, if a file is cut off anywhere, a reader returns all complete chunks,
// and then reports that the file is truncated.
func TestTruncationAtAnyByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := someProgram(t)
		steps := someSteps(t, p, 5)
		file := write(t, p, steps, chunkSize{bytes: 1 << 20, steps: 20})
		whole := naiveRows(p, steps, trace.AllKinds)
		cut := rapid.IntRange(0, len(file)-1).Draw(t, "cut")
		r := NewReader("t", bytes.NewReader(file[:cut]), Options{})
		r.early = someEarly(t)
		got, end := rowsOf(t, r, 64)
		var damage *trace.DamageError
		if !errors.As(end, &damage) || !damage.Cut {
			t.Fatalf("file cut off at byte %d of %d: error %v, want a DamageError that reports truncation", cut, len(file), end)
		}
		if len(got) > len(whole) || !isSubsequence(got, whole) {
			t.Fatalf("file cut off at byte %d: the reader returned %d rows that are not a part of the trace", cut, len(got))
		}
		if chunks := wholeChunks(t, file[:cut]); uint64(len(got)) != chunks {
			t.Fatalf("file cut off at byte %d: %d rows, want the %d rows of complete chunks", cut, len(got), chunks)
		}
	})
}

// isSubsequence reports whether all rows of the first trace are in the second trace, in the same
// order.
func isSubsequence(part, whole []row) bool {
	for _, r := range whole {
		if len(part) > 0 && part[0] == r {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// wholeChunks returns the number of references that the complete chunks contain.
func wholeChunks(t failer, file []byte) (references uint64) {
	s := &stream{feed: feed{r: bytes.NewReader(file)}}
	r := newReader("t", Options{}, s, &metadata{})
	for {
		c, err := s.next(r)
		if err != nil {
			return references
		}
		references += c.references
	}
}

// TestWrongBytes checks what a reader returns if any one byte of a file is wrong. All returned rows
// must be rows of the trace. An error must report the damage, unless the byte is never read.
func TestWrongBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := someProgram(t)
		steps := someSteps(t, p, 5)
		file := write(t, p, steps, chunkSize{bytes: 1 << 20, steps: 20})
		whole := naiveRows(p, steps, trace.AllKinds)
		at := rapid.IntRange(0, len(file)-1).Draw(t, "at")
		file[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		got, end := rowsOf(t, NewReader("t", bytes.NewReader(file), Options{}), 64)
		if end == io.EOF && len(got) != len(whole) || !isSubsequence(got, whole) {
			t.Fatalf("byte %d is wrong: the reader returned %d of %d rows and the error %v", at, len(got), len(whole), end)
		}
		strict, err := rowsOf(t, NewReader("t", bytes.NewReader(file), Options{Strict: true}), 64)
		if (err == io.EOF) != (end == io.EOF) || len(strict) > len(got) {
			t.Fatalf("byte %d is wrong: %d rows and error %v in strict mode, but %d rows and error %v without it", at, len(strict), err, len(got), end)
		}
	})
}

// FuzzReader checks that no input makes the reader panic, allocate too much memory for the size of
// the file, or loop forever without returning a row. FuzzReader also checks that a source returns
// the same rows.
func FuzzReader(f *testing.F) {
	for seed := range 6 {
		f.Add(rapid.Custom(func(t *rapid.T) []byte {
			p := someProgram(t)
			return write(t, p, someSteps(t, p, 4), chunkSize{bytes: 1 << 20, steps: 50})
		}).Example(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, other := NewReader("t", bytes.NewReader(file), Options{}), NewReader("t", bytes.NewReader(file), Options{})
		r.Select(trace.AllKinds | trace.EventKinds)
		other.Select(trace.AllKinds | trace.EventKinds)
		drain(t, r, other)
		if s, err := NewSource("t", bytes.NewReader(file), int64(len(file)), nil); err == nil && s.Chunks() != nil {
			all := trace.AllKinds | trace.EventKinds
			drain(t, s.Open(0, all).(*Reader), s.Open(0, all).(*Reader))
		}
		_, _ = Check(NewReader("t", bytes.NewReader(file), Options{}), func(Fault) {})
		_, _ = Look(NewReader("t", bytes.NewReader(file), Options{}))
	})
}

// drain reads a limited number of rows with two readers, which convert values to rows by different
// methods, and checks that both return the same rows.
func drain(t *testing.T, r, other *Reader) {
	r.reused.split, other.reused.split = false, true
	b, same := trace.NewBatch(0), trace.NewBatch(0)
	for range 200 {
		err := r.Next(b)
		if otherErr := other.Next(same); (err == nil) != (otherErr == nil) || err != nil && err.Error() != otherErr.Error() {
			t.Fatalf("error %v, but error %v with the alternative conversion", err, otherErr)
		}
		if !slices.Equal(b.Addr, same.Addr) || !slices.Equal(b.Kind, same.Kind) || !slices.Equal(b.Bytes, same.Bytes) || !slices.Equal(b.Site, same.Site) {
			t.Fatalf("%d rows, but %d different rows with the alternative conversion", b.Len(), same.Len())
		}
		if err != nil && b.Len() > 0 || err == nil && b.Len() == 0 {
			t.Fatalf("Next returned %d rows and the error %v, want rows or an error", b.Len(), err)
		}
		if err != nil {
			if again := r.Next(b); again != err {
				t.Fatalf("Next returned %v, and then %v, want the same error", err, again)
			}
			return
		}
	}
}

// FuzzChunk reads a chunk that has correct checksums, but an arbitrary header and arbitrary bytes
// in its parts.
func FuzzChunk(f *testing.F) {
	p := blocksOf("ls", "", "L", "lsls")
	p.Sites[1].Kind, p.Sites[1].Bytes = trace.RangeRead, 0
	f.Add([]byte{3, 5, 7}, []byte{1, 2, 3, 4}, []byte{7, 1}, uint64(3), uint64(3), uint64(1), uint64(1), uint64(2))
	f.Add([]byte{0x19, 0x21, 9, 0x81}, []byte{0, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []byte{3, 1, 5, 3}, uint64(1<<26), uint64(4), uint64(0), uint64(1<<63), uint64(9))
	f.Fuzz(func(t *testing.T, control, value, ticket []byte, steps, references, first, last, floor uint64) {
		var out bytes.Buffer
		w := NewWriter(&out, 64, nil)
		if err := w.Module(AppendModule(nil, p)); err != nil {
			t.Fatal(err)
		}
		good := func(ticket uint64) { // writes a correct chunk before or after the fuzzed chunk
			if err := w.Step(2, ticket, 2, []uint64{8}); err != nil {
				t.Fatal(err)
			}
			w.Flush()
		}
		good(1)
		c := &openChunk{thread: 1}
		c.control, c.value, c.ticket = control, value, ticket
		c.steps, c.references, c.firstTicket, c.lastTicket = steps, references, first, last
		w.chunk(c, floor)
		good(2)
		if err := w.Close(End{}); err != nil {
			t.Fatal(err)
		}
		for _, strict := range []bool{false, true} {
			o := Options{Strict: strict}
			drain(t, NewReader("t", bytes.NewReader(out.Bytes()), o), NewReader("t", bytes.NewReader(out.Bytes()), o))
		}
		s := openSource(t, out.Bytes())
		for _, c := range s.Chunks() {
			_, _ = rowsOf(t, s.Open(c.At, trace.AllKinds|trace.EventKinds), 0)
		}
		if _, err := Check(NewReader("t", bytes.NewReader(out.Bytes()), Options{}), func(Fault) {}); err != nil {
			t.Fatal(err)
		}
		x := NewRewriter(io.Discard, NewReader("t", bytes.NewReader(out.Bytes()), Options{}), Part{Kinds: trace.DataKinds, Limit: 100})
		for range 100 {
			if x.Copy(1000) != nil {
				break
			}
		}
	})
}
