package multicore

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/multicore/tape"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func batchOf(rows []row, thread uint32) *trace.Batch {
	b := trace.NewBatch(len(rows))
	b.NeedThread()
	b.NeedSite()
	b.NeedArg()
	for _, r := range rows {
		add(b, r, thread)
	}
	return b
}

func add(b *trace.Batch, r row, thread uint32) {
	b.Append(r.kind, r.addr, r.bytes, thread, 0)
	b.Site[b.Len()-1], b.Arg[b.Len()-1] = r.site, r.arg
}

// runReader is a reader of the rows of a run. The reader's header contains the program.
type runReader struct {
	trace.Reader
	header trace.Header
	kinds  trace.Kinds
}

func (s *runReader) Header() trace.Header     { return s.header }
func (s *runReader) Select(kinds trace.Kinds) { s.kinds = kinds }

func (s *runReader) Next(b *trace.Batch) error {
	for {
		if err := s.Reader.Next(b); err != nil {
			return err
		}
		var keep []int32
		for i, k := range b.Kind {
			if s.kinds.Has(k) {
				keep = append(keep, int32(i))
			}
		}
		if b.Select(keep); b.Len() > 0 {
			return nil
		}
	}
}

func sourceOf(p *trace.Program, whole *trace.Batch, rows int) *runReader {
	return &runReader{Reader: tracetest.NewReader(whole, rows), header: trace.Header{Format: "test", Sites: true, Program: p}}
}

// rowStream is a stream that returns one batch.
type rowStream struct{ b *trace.Batch }

func (l *rowStream) Next() (*trace.Batch, int, int, error) {
	b := l.b
	if l.b = nil; b == nil || b.Len() == 0 {
		return nil, 0, 0, io.EOF
	}
	return b, 0, b.Len(), nil
}

// expectedRows returns the rows that the cores of the model execute, in the order that the options
// specify, and the thread of each row.
func (m *model) expectedRows(o Options, wanted trace.Kinds, private func(row) bool) (rows []row, threads []uint32) {
	kept := wanted &^ (1 << trace.BareBlock)
	bare := wanted.Has(trace.BareBlock) && !wanted.Has(trace.BlockEntry)
	if bare || o.Order.Policy >= interleave.ByBlock {
		kept |= 1 << trace.BlockEntry
	}
	give := func(r row, thread uint32) {
		if r.kind == trace.BlockEntry && !wanted.Has(r.kind) {
			if !bare {
				return
			}
			b := &m.program.Blocks[r.site]
			for _, s := range m.program.Sites[b.FirstSite : b.FirstSite+b.Sites] {
				if s.Kind <= trace.Modify {
					return
				}
			}
			r.kind = trace.BareBlock
		}
		rows, threads = append(rows, r), append(threads, thread)
	}
	merger := interleave.New(o.Order)
	for _, a := range m.out {
		if a.cores == nil {
			if kept.Has(a.row.kind) {
				give(a.row, 0)
			}
			continue
		}
		var streams []interleave.Stream
		var numbers []uint32
		for c, all := range a.cores {
			var some []row
			for _, r := range m.mergeReductions(all, private) {
				if kept.Has(r.kind) {
					if private(r) {
						r.addr += trace.Addr(c) << 48
						if len(o.Private.Ranges) == 0 {
							r.addr += trace.Addr(64 * c) // each core's stack is shifted by a different number of lines
						}
					}
					some = append(some, r)
				}
			}
			streams, numbers = append(streams, &rowStream{batchOf(some, 0)}), append(numbers, uint32(c))
		}
		merger.Begin(numbers, streams)
		b := trace.NewBatch(100)
		b.NeedSite()
		b.NeedArg()
		for merger.Fill(b) == nil {
			for i := range b.Kind {
				give(row{b.Kind[i], b.Site[i], b.Addr[i], b.Bytes[i], b.Arg[i]}, b.Thread[i])
			}
			b.Reset()
			b.NeedSite()
			b.NeedArg()
		}
	}
	return rows, threads
}

// mergeReductions replaces a load and a store with one Modify row, in each block that adds to a
// shared reduction variable. Rows of nested regions remain unchanged.
func (m *model) mergeReductions(rows []row, private func(row) bool) (list []row) {
	first, depth := 0, 0 // if the current block adds to a reduction variable, first is the index of the block's first reference; otherwise, first is 0
	for _, r := range rows {
		switch r.kind {
		case trace.ParallelBegin:
			depth++
		case trace.ParallelEnd:
			depth--
		}
		if !r.kind.IsReference() {
			first = 0
		}
		last := -1
		if first > 0 && r.kind == trace.Store && !private(r) {
			for i := first; i < len(list); i++ {
				if list[i].kind == trace.Load && list[i].addr == r.addr && list[i].bytes == r.bytes {
					last = i
				}
			}
		}
		if last >= 0 {
			list[last].kind, list[last].site = trace.Modify, r.site
			continue
		}
		list = append(list, r)
		if r.kind == trace.BlockEntry && r.site == reduceAdds && depth == 0 && m.cores > 1 {
			first = len(list)
		}
	}
	return list
}

// TestSynthesisedThreadsEqualModel compares Mimic with the model row by row, for all orders,
// schedules, kinds of rows, and numbers of cores.
func TestSynthesisedThreadsEqualModel(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 7))
		o := Options{Cores: 1 + rng.IntN(6), Order: interleave.Order{Policy: interleave.Policy(seed % 4), Seed: seed}}
		if rng.IntN(8) == 0 {
			o.Cores = MostCores
		}
		m := newModel(rng, o.Cores)
		if rng.IntN(20) == 0 {
			m.scale = 60 // with this factor, the rows fill several pages of the region buffer
		}
		if rng.IntN(3) == 0 {
			o.Schedule = &Schedule{ScheduleKind(rng.IntN(3)), rng.Uint64N(5)}
			m.used = o.Schedule
		}
		if o.Order.Policy == interleave.ByTime {
			for range rng.IntN(modelBlocks + 1) {
				o.Order.Cycles = append(o.Order.Cycles, float64(rng.IntN(20))/2)
			}
			m.cycles = o.Order.Cycles
		}
		private := func(r row) bool {
			return addressKinds.Has(r.kind) && r.addr >= modelLow && r.addr < modelFrame
		}
		if rng.IntN(4) == 0 {
			o.Private.Ranges = []Range{{Low: 0x10000, High: 0x10040}, {Low: 0x10100, High: 0x10108}}
			private = func(r row) bool {
				return addressKinds.Has(r.kind) && (r.addr >= 0x10000 && r.addr < 0x10040 || r.addr >= 0x10100 && r.addr < 0x10108)
			}
		}
		m.generateRun()
		wanted := []trace.Kinds{
			trace.AllKinds, trace.AllKinds | trace.EventKinds&^(1<<trace.BareBlock), trace.DataKinds | 1<<trace.BareBlock, 1<<trace.Load | 1<<trace.BlockEntry,
			trace.DataKinds | 1<<trace.Barrier | 1<<trace.LoopBegin,
		}[rng.IntN(5)]
		r, err := Mimic(sourceOf(&m.program, batchOf(m.sequence, 1), 1+rng.IntN(300)), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Select(wanted)
		if rng.IntN(2) == 0 {
			r.tape = tape.New(tape.Options{MemoryBytes: 1, Store: &memoryStore{}, Readers: o.Cores, Args: true, Mark: r.private.markPrivate})
		}
		want, threads := m.expectedRows(o, wanted, private)
		compare(t, seed, r, want, threads, 1+rng.IntN(200))
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, o)
		}
	}
}

// memoryStore is a [Store] in memory.
type memoryStore struct{ data []byte }

func (f *memoryStore) WriteAt(p []byte, off int64) (int, error) {
	if need := int(off) + len(p); need > len(f.data) {
		f.data = append(f.data, make([]byte, need-len(f.data))...)
	}
	return copy(f.data[off:], p), nil
}

func (f *memoryStore) ReadAt(p []byte, off int64) (int, error) { return copy(p, f.data[off:]), nil }

func compare(t *testing.T, seed uint64, r trace.Reader, want []row, threads []uint32, rows int) {
	t.Helper()
	r = tracetest.Spoil(r)
	b := trace.NewBatch(rows)
	n := 0
	for {
		err := r.Next(b)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Kind {
			if n == len(want) {
				t.Fatalf("seed %d: Mimic returned more than the expected %d rows", seed, n)
			}
			arg := uint64(0)
			if b.Arg != nil {
				arg = b.Arg[i]
			}
			if got := (row{b.Kind[i], b.Site[i], b.Addr[i], b.Bytes[i], arg}); got != want[n] || b.Thread[i] != threads[n] {
				t.Errorf("seed %d, row %d: core %d executes %v %+v, want core %d to execute %v %+v", seed, n, b.Thread[i], got.kind, got, threads[n], want[n].kind, want[n])
				return
			}
			n++
		}
	}
	if n != len(want) {
		t.Errorf("seed %d: %d rows, want %d", seed, n, len(want))
	}
}

// TestOneCoreExecutesAllRecords checks that, with one core, thread 0 executes all records of the
// trace.
func TestOneCoreExecutesAllRecords(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 8))
		m := newModel(rng, 1)
		m.generateRun()
		whole := batchOf(m.sequence, 1)
		r, err := Mimic(sourceOf(&m.program, whole, 0), Options{Cores: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Select(trace.AllKinds | trace.EventKinds&^(1<<trace.BareBlock))
		compare(t, seed, r, m.sequence, make([]uint32, len(m.sequence)), 77)
	}
}

func TestUnsupportedTraces(t *testing.T) {
	m := newModel(rand.New(rand.NewPCG(1, 1)), 2)
	m.generateRun()
	whole := batchOf(m.sequence, 1)
	whole.Thread[whole.Len()-2] = 2
	for _, c := range []struct {
		from trace.Reader
		want error
	}{
		{tracetest.NewReader(tracetest.Lines(64, "a b c"), 0), ErrNoBlocks},
		{sourceOf(&trace.Program{}, batchOf(m.sequence, 1), 0), ErrNoBlocks},
		{sourceOf(&m.program, whole, 0), ErrThreads},
	} {
		r, err := Mimic(c.from, Options{Cores: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := trace.NewBatch(0)
		for err == nil {
			err = r.Next(b)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
		if again := r.Next(b); again != err {
			t.Errorf("the next error is %v, want the same error again", again)
		}
	}
	for _, o := range []Options{{Cores: 0}, {Cores: 2, Division: AsPrinted, Order: interleave.Order{Policy: interleave.ByTime}}, {Cores: 2, Division: AsPrinted + 1}} {
		if _, err := Mimic(nil, o, nil); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// FuzzMimic checks that events in any order yield either rows or an error.
func FuzzMimic(f *testing.F) {
	m := newModel(rand.New(rand.NewPCG(1, 1)), 3)
	m.generateRun()
	var seed []byte
	for _, r := range m.sequence {
		seed = append(seed, byte(r.kind), byte(r.site))
	}
	f.Add(seed, 3)
	f.Add([]byte{14, 1, 15, 0, 15, 0, 16, 200}, 5)
	f.Fuzz(func(t *testing.T, data []byte, cores int) {
		var rows []row
		for i := 0; i+1 < len(data); i += 2 {
			k := trace.Kind(data[i])
			if !k.Valid() {
				continue
			}
			rows = append(rows, row{kind: k, site: uint32(data[i+1]) * uint32(data[i+1]) / 100, addr: trace.Addr(data[i+1]) << (data[i] % 40), arg: uint64(data[i])})
			if k == trace.LoopBegin {
				rows[len(rows)-1].addr = uint64(data[i+1])
			}
		}
		if len(rows) == 0 {
			return
		}
		for policy := interleave.RoundRobin; policy <= interleave.ByTime; policy++ {
			r, err := Mimic(sourceOf(&m.program, batchOf(rows, 1), 5), Options{Cores: cores, Order: interleave.Order{Policy: policy}}, nil)
			if err != nil {
				return
			}
			r.Select(trace.AllKinds | trace.EventKinds)
			b := trace.NewBatch(50)
			for err == nil {
				err = r.Next(b)
			}
			if err != io.EOF {
				t.Fatal(err)
			}
			r.Report()
		}
	})
}
