package diagnose

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// TestLineCrossingsOfVectors checks that, if the machine loads a vector in parts, the vector
// crosses a line boundary only if one of the parts crosses it.
func TestLineCrossingsOfVectors(t *testing.T) {
	for _, c := range []struct {
		addr          trace.Addr
		bytes, native uint64
		want          uint64
	}{
		{60, 8, 16, 1}, {56, 8, 16, 0}, {48, 32, 16, 0}, {56, 32, 16, 1}, {48, 32, 32, 1}, {4, 128, 16, 2}, {0, 4096, 16, 0},
	} {
		if got := splits(c.addr, c.bytes, c.native, 6); got != c.want {
			t.Errorf("%+v: splits = %d", c, got)
		}
	}
}

// TestUnpackStructure checks that the fields of a packed structure move to multiples of their
// sizes.
func TestUnpackStructure(t *testing.T) {
	fields := []field{{at: 0, bytes: 1}, {at: 1, bytes: 8}, {at: 9, bytes: 2}}
	if got := unpacked(record{pitch: 11}, fields); got != 24 || fields[1].to != 8 || fields[2].to != 16 {
		t.Errorf("packed structure: unpacked = %d, fields %+v; want 24 bytes and offsets 0, 8, 16", got, fields)
	}
	fields = []field{{at: 0, bytes: 1}, {at: 1, bytes: 16}, {at: 9, bytes: 8}, {at: 13, bytes: 12}, {at: 25, bytes: 2}}
	if got := unpacked(record{pitch: 27}, fields); got != 40 || fields[2].to != 16 || fields[3].to != 20 || fields[4].to != 32 {
		t.Errorf("overlapping fields: %d bytes, %+v", got, fields)
	}
	if got := unpacked(record{pitch: 16}, []field{{at: 0, bytes: 8}, {at: 8, bytes: 4}}); got != 0 {
		t.Errorf("aligned structure: unpacked = %d, want 0", got)
	}
}

// TestSchedule uses threads that ran one after the other when they were recorded. The test checks
// that, between a fork and a join, the threads run alternately, each as often as its clock allows.
func TestSchedule(t *testing.T) {
	f := loops.NewFolder(0)
	b := trace.NewBatch(64)
	b.NeedThread()
	add := func(thread uint32, kind trace.Kind, addr trace.Addr) {
		n := b.Len()
		b.Resize(n + 1)
		b.Addr[n], b.Bytes[n], b.Kind[n], b.Thread[n] = addr, 8, kind, thread
	}
	add(7, trace.Load, 1)
	add(7, trace.ParallelBegin, 0)
	for thread := uint32(7); thread < 9; thread++ {
		for i := range 3 {
			add(thread, trace.BlockEntry, 0)
			add(thread, trace.Load, trace.Addr(10*thread)+trace.Addr(i))
		}
	}
	add(7, trace.ParallelEnd, 0)
	add(7, trace.Load, 2)
	if err := f.Consume(b); err != nil {
		t.Fatal(err)
	}
	var got []trace.Addr
	joined := 0
	s := schedule{tree: f.Finish(), threads: 2, goOn: func() bool { return true }, joined: func() { joined++ }}
	s.take = func(r *row) {
		s.clock[r.thread]++
		if r.kind == trace.Load {
			got = append(got, r.addr)
		}
	}
	if !s.run() || joined != 1 {
		t.Fatalf("the schedule was stopped, or its threads joined %v times, want once", joined)
	}
	want := []trace.Addr{1, 70, 80, 71, 81, 72, 82, 2}
	if len(got) != len(want) {
		t.Fatal(got)
	}
	turns := 0
	for i := 1; i < len(got); i++ {
		if got[i]/10 != got[i-1]/10 {
			turns++
		}
	}
	if turns < 5 || got[0] != 1 || got[len(got)-1] != 2 {
		t.Errorf("the order of rows is %v, want about %v", got, want)
	}
}

// TestScheduleOfAnyTrace checks that each row is passed on exactly once, and that the rows of each
// thread stay in order, even if threads are recorded in any order and pass any number of barriers.
// Threads may be far ahead of others, because each thread writes its records when its own buffer is
// full.
func TestScheduleOfAnyTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := loops.NewFolder(0)
		b := trace.NewBatch(1 << 13)
		b.NeedThread()
		want := map[uint8][]trace.Addr{}
		all := 0
		add := func(thread uint32, kind trace.Kind) {
			n := b.Len()
			b.Resize(n + 1)
			b.Addr[n], b.Bytes[n], b.Kind[n], b.Thread[n] = trace.Addr(n*n), 8, kind, thread
			if kind == trace.Load {
				want[uint8(thread)] = append(want[uint8(thread)], b.Addr[n])
				all++
			}
		}
		threads := rapid.Uint32Range(2, 4).Draw(t, "threads")
		add(0, trace.Load)
		openMP := rapid.Bool().Draw(t, "openMP")
		for range rapid.IntRange(1, 3).Draw(t, "regions") {
			if openMP {
				add(0, trace.ParallelBegin)
			}
			var started []uint32
			for _, turn := range rapid.SliceOfN(rapid.Uint32Range(0, 40*threads-1), 1, 60).Draw(t, "turns") {
				thread, rows := turn%threads, turn/threads
				if !openMP && thread > 0 && !slices.Contains(started, thread) {
					started = append(started, thread)
					add(thread, trace.ThreadStart)
				}
				for range rows {
					add(thread, trace.Load)
				}
				if openMP && rows%4 == 0 {
					add(thread, trace.Barrier)
				}
			}
			for _, thread := range started {
				add(thread, trace.ThreadEnd)
			}
			if openMP {
				add(0, trace.ParallelEnd)
			}
		}
		if err := f.Consume(b); err != nil {
			t.Fatal(err)
		}
		least := rapid.IntRange(1, 50).Draw(t, "least")
		got := map[uint8][]trace.Addr{}
		s := schedule{tree: f.Finish(), threads: int(threads), goOn: func() bool { return true }, limits: buffers{least, least + rapid.IntRange(0, 200).Draw(t, "more")}}
		s.take = func(r *row) {
			s.clock[r.thread] += float64(r.addr * 7 % 13)
			if r.kind == trace.Load {
				got[r.thread] = append(got[r.thread], r.addr)
				all--
			}
		}
		if !s.run() {
			t.Fatal("the schedule was stopped")
		}
		byFirst := func(m map[uint8][]trace.Addr) (lists [][]trace.Addr) { // threads are numbered in the order of their first rows
			for _, thread := range slices.Sorted(maps.Keys(m)) {
				lists = append(lists, m[thread])
			}
			slices.SortFunc(lists, func(a, b []trace.Addr) int { return cmp.Compare(a[0], b[0]) })
			return lists
		}
		if all != 0 || !reflect.DeepEqual(byFirst(got), byFirst(want)) {
			t.Errorf("the threads get rows %v, want %v", byFirst(got), byFirst(want))
		}
	})
}

// TestIdleThreads checks that a thread without references also has a core.
func TestIdleThreads(t *testing.T) {
	f := loops.NewFolder(0)
	b := trace.NewBatch(4)
	b.NeedThread()
	b.Resize(4)
	copy(b.Kind, []trace.Kind{trace.Load, trace.ThreadStart, trace.ThreadEnd, trace.Load})
	copy(b.Thread, []uint32{1, 2, 2, 3})
	copy(b.Bytes, []uint32{8, 0, 0, 8})
	if err := f.Consume(b); err != nil {
		t.Fatal(err)
	}
	if got := coresOf(f.Finish()); got != 3 {
		t.Errorf("%d cores, want 3", got)
	}
}

// TestLRU checks that the cache evicts the least recently used line, and removes a line that
// another core has invalidated.
func TestLRU(t *testing.T) {
	c := newLRU[uint64](4, 2)
	for i, line := range []uint64{0, 2, 0, 4, 0, 2} {
		if got, want := c.use(line, line+1), i == 2 || i == 4; got != want {
			t.Errorf("access %d: hit %t", i, got)
		}
	}
	c.drop(0, 1)
	if c.use(0, 1) {
		t.Error("a removed line is still present")
	}
}

// TestBlockFinder checks that a block finder returns the same blocks as a linear search.
func TestBlockFinder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var blocks []block
		base := rapid.SampledFrom([]trace.Addr{0, 1 << 30, math.MaxUint64 - 1<<16 + 1}).Draw(t, "base")
		for range rapid.IntRange(0, 50).Draw(t, "blocks") {
			blocks = append(blocks, block{addr: base + rapid.Uint64Range(0, 1<<15).Draw(t, "addr"), bytes: rapid.Uint64Range(1, 1<<13).Draw(t, "bytes")})
		}
		blocks = sortBlocks(blocks)
		low := base + rapid.Uint64Range(0, 1<<14).Draw(t, "low")
		find := blockFinder(blocks, low, low+rapid.Uint64Range(0, 1<<14).Draw(t, "length"))
		for range 100 {
			addr := base + rapid.Uint64Range(0, 1<<16-1).Draw(t, "address")
			want, in := blockAt(blocks, addr)
			if got, ok := find(addr); got != want || ok != in {
				t.Fatalf("find(%#x) = %v, %t; want %v, %t", addr, got, ok, want, in)
			}
		}
	})
}

// TestElementTable checks that the table's cells, which make look-ups faster, do not change the
// results.
func TestElementTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var blocks []block
		const low, high = 1 << 30, 1<<30 + 1<<15
		addr := func(name string) trace.Addr { return rapid.Uint64Range(low, high).Draw(t, name) }
		for range rapid.IntRange(0, 50).Draw(t, "blocks") {
			bytes := rapid.SampledFrom([]uint64{8, 24, 100, 1 << 10, 1<<10 + 1, 1 << 13}).Draw(t, "bytes")
			blocks = append(blocks, block{addr: addr("block") &^ 3, bytes: bytes})
		}
		blocks = sortBlocks(blocks)
		grain := rapid.SampledFrom([]uint64{8, 12, 24, 1 << 11, 1 << 12, 1 << 13}).Draw(t, "grain")
		plain, fast := newElementTable(blocks, low, high, grain), newElementTable(blocks, low, high, grain)
		plain.most = 0
		for adds := rapid.IntRange(0, 200).Draw(t, "adds"); adds > -200; adds-- {
			a := addr("address")
			want, got := plain.find(a, adds > 0), fast.find(a, adds > 0)
			if got != want || fast.latest != plain.latest {
				t.Fatalf("find(%#x) = %v, element %d; want %v, element %d", a, got, fast.latest, want, plain.latest)
			}
			if fast.placed > fast.possible || fast.placed != plain.placed {
				t.Fatalf("placed = %d, want %d, and at most possible = %d", fast.placed, plain.placed, fast.possible)
			}
		}
	})
}
