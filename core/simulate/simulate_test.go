package simulate

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// drawHierarchy returns a random hierarchy of one to three small levels that can be combined.
func drawHierarchy(t *rapid.T) (h hierarchy.Hierarchy) {
	largest := uint32(0)
	for i := range rapid.IntRange(1, 3).Draw(t, "levels") {
		c := hierarchy.Cache{
			Name:        "L" + strconv.Itoa(i+1),
			LineBytes:   rapid.SampledFrom([]uint32{16, 16, 16, 8, 32}).Draw(t, "line"),
			Hashed:      rapid.IntRange(0, 3).Draw(t, "hashed") == 0,
			Replacement: hierarchy.Replacement(rapid.IntRange(0, 2).Draw(t, "replacement")),
			Inclusion:   hierarchy.Inclusion(rapid.IntRange(0, 2).Draw(t, "inclusion")),
			Write:       hierarchy.Write(rapid.IntRange(0, 3).Draw(t, "write")),
		}
		switch {
		case i > 0 && c.Inclusion == hierarchy.Exclusive:
			c.LineBytes = h.Levels[i-1].LineBytes
		case i > 0 && c.Inclusion == hierarchy.Inclusive:
			c.LineBytes = max(c.LineBytes, largest)
		}
		largest = max(largest, c.LineBytes)
		ways := rapid.SampledFrom([]uint32{1, 2, 4, 8, 64}).Draw(t, "ways")
		if c.Replacement != hierarchy.TreePLRU {
			ways -= rapid.Uint32Range(0, ways/3).Draw(t, "fewer ways")
		}
		sets := uint32(rapid.IntRange(1, 6).Draw(t, "sets"))
		if c.Ways = ways; sets == 1 {
			c.Ways = 0
		}
		c.SizeBytes = uint64(sets * ways * c.LineBytes)
		h.Levels = append(h.Levels, c)
	}
	return h
}

// drawBatch returns random references to a few hundred bytes. Some references cross line
// boundaries.
func drawBatch(t *rapid.T) *trace.Batch {
	reach := rapid.SampledFrom([]uint64{64, 400, 4000}).Draw(t, "reach")
	b := trace.NewBatch(0)
	for range rapid.IntRange(1, 300).Draw(t, "references") {
		kind := trace.Kind(rapid.IntRange(0, trace.NumKinds-1).Draw(t, "kind"))
		bytes := rapid.SampledFrom([]uint32{8, 8, 8, 4, 0, 24, 100}).Draw(t, "bytes")
		b.Append(kind, rapid.Uint64Range(0, reach).Draw(t, "address"), bytes, 0, 0)
	}
	return b
}

func begin(t interface{ Fatal(...any) }, h hierarchy.Hierarchy, o Options) *Simulator {
	s, err := New(h, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The counts of the simulator equal the counts of the reference implementation. The data of the
// reference implementation is checked, too: every read sees the last store, wherever the line has
// been since then, and at the end memory contains all stores.
func TestEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b, o := drawHierarchy(t), drawBatch(t), Options{Seed: rapid.Uint64().Draw(t, "seed")}
		holdAgainstTwin(t, h, b, o, 1)
	})
}

// holdAgainstTwin compares the simulator with the reference implementation. The threads of the
// trace must be numbered from 0 to cores-1 in the order in which they first appear.
func holdAgainstTwin(t *rapid.T, h hierarchy.Hierarchy, b *trace.Batch, o Options, cores int) {
	s, twin := begin(t, h, o), newNaive(h, cores, o)
	if err := s.Consume(b); err != nil {
		t.Fatal(err)
	}
	latest := data{}
	for i, kind := range b.Kind {
		core := 0
		if b.Thread != nil {
			core = int(b.Thread[i])
		}
		twin.run(core)
		bytes := uint64(b.Bytes[i])
		if bytes == 0 { // the reference extends to the end of its word
			bytes = (b.Addr[i] | 3) - b.Addr[i] + 1
		}
		twin.reference(t, i+1, b.Thread != nil, kind, b.Addr[i], bytes, latest)
	}
	got := s.Finish()
	for i, caches := range twin.caches {
		want, _ := twin.sum(i)
		if got.Levels[i].Run != want {
			t.Fatalf("%s: %+v, want %+v", got.Levels[i].Cache, got.Levels[i].Run, want)
		}
		for _, l := range caches {
			for core, want := range l.by {
				if core < len(got.Cores) && got.Levels[i].Cores[core] != *want {
					t.Fatalf("%s of core %d: %+v, want %+v", l.Cache, core, got.Levels[i].Cores[core], *want)
				}
				*want = Counts{}
			}
		}
	}
	if got.Memory != twin.memory {
		t.Fatalf("memory: %+v, want %+v", got.Memory, twin.memory)
	}
	twin.memory = Traffic{}
	twin.flush()
	for i := range twin.caches {
		if want, lines := twin.sum(i); got.Levels[i].Flush != want || got.Levels[i].Resident != uint64(lines) {
			t.Fatalf("%s at the end: %+v, want %+v and %d lines", got.Levels[i].Cache, got.Levels[i], want, lines)
		}
	}
	if got.Flush != twin.memory {
		t.Fatalf("memory at the end: %+v, want %+v", got.Flush, twin.memory)
	}
	if !maps.Equal(twin.words, latest) {
		t.Fatalf("memory has %v, want %v", twin.words, latest)
	}
}

// reference simulates one reference of the trace. version is the number that identifies its store.
func (n *naive) reference(t *rapid.T, version int, threaded bool, kind trace.Kind, addr, bytes uint64, latest data) {
	first := n.levels[0].lineSize()
	for _, piece := range cut(addr, bytes, first) {
		start := piece[0] / first * first
		switch kind {
		case trace.Store, trace.Modify, trace.RangeWrite:
			if threaded {
				n.cohere(start, true)
			}
			words := data{}
			for word := piece[0] / 8; word <= (piece[0]+piece[1]-1)/8; word++ {
				words[word] = version
			}
			maps.Copy(latest, words)
			n.store(0, piece[0], piece[1], words)
		default:
			if threaded {
				n.cohere(start, false)
			}
			words, _ := n.read(0, piece[0]/first)
			if got, want := words.part(piece[0], piece[1]), latest.part(piece[0], piece[1]); !maps.Equal(got, want) {
				t.Fatalf("reference %d reads %v, want %v", version, got, want)
			}
		}
	}
}

// held returns the lines that a cache contains.
func held(l *level) (lines []trace.Line) {
	var frames []frame
	switch tags := l.tags.(type) {
	case *recency:
		frames = tags.frames
	case *list:
		return slices.Collect(maps.Keys(tags.at))
	case *tree:
		frames = tags.frames
	case *random:
		frames = tags.frames
	}
	for _, f := range frames {
		if f != emptyFrame {
			lines = append(lines, f.line())
		}
	}
	return lines
}

// An inclusive level always contains the lines of the levels above it, and an exclusive level
// contains no line of the level above. No line gets lost: every line that was inserted is still
// present or has been removed, and each miss in one level is an access to the next.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b := drawHierarchy(t), drawBatch(t)
		s := begin(t, h, Options{Seed: 1})
		for i := range b.Len() {
			if err := s.Consume(b.View(new(trace.Batch), i, i+1)); err != nil {
				t.Fatal(err)
			}
			for _, caches := range s.caches {
				checkInclusion(t, caches[0])
			}
		}
		checkFlow(t, s.Result())
	})
}

func checkInclusion(t *rapid.T, l *level) {
	lines := held(l)
	for n := above(l); n != nil; n = above(n) {
		for _, line := range held(n) {
			found := slices.Contains(lines, line<<n.shift>>l.shift)
			if l.inclusive && !found || l.exclusive && n == above(l) && found {
				t.Fatalf("%s has line %d of %s: %t", l.cache, line, n.cache, found)
			}
		}
	}
}

// above returns the cache above, for a single core.
func above(l *level) *level {
	if len(l.above) == 0 {
		return nil
	}
	return l.above[0]
}

func checkFlow(t *rapid.T, r Result) {
	for i, l := range r.Levels {
		if left := l.Run.Evictions + l.Run.Taken + l.Run.Given + l.Run.Invalidated + l.Resident; l.Run.Fills != left {
			t.Fatalf("%s: %d lines inserted, but %d removed or resident", l.Cache, l.Run.Fills, left)
		}
		if l.Resident > l.Cache.Lines() {
			t.Fatalf("%s: %d resident lines", l.Cache, l.Resident)
		}
		if i == 0 {
			continue
		}
		above := r.Levels[i-1]
		if above.Cache.LineBytes <= l.Cache.LineBytes && l.Run.Accesses() != above.Run.Misses() {
			t.Fatalf("%s: %d accesses, but %d misses above", l.Cache, l.Run.Accesses(), above.Run.Misses())
		}
		if above.Cache.LineBytes <= l.Cache.LineBytes && l.Run.WriteBacksReceived != above.Run.WriteBacksSent {
			t.Fatalf("%s: %d write-backs received, %d sent", l.Cache, l.Run.WriteBacksReceived, above.Run.WriteBacksSent)
		}
	}
	last := r.Levels[len(r.Levels)-1]
	if last.Run.ReadMisses > r.Memory.Reads || r.Memory.Reads > last.Run.Misses() {
		t.Fatalf("%d lines read from memory, for %d read misses among %d misses", r.Memory.Reads, last.Run.ReadMisses, last.Run.Misses())
	}
}

// LRU has the inclusion property: if two caches have the same number of sets, the cache with more
// ways contains every line of the other, so it never misses more often.
func TestMoreWaysHoldMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBatch(t)
		sets := rapid.Uint32Range(1, 5).Draw(t, "sets")
		var before *level
		for _, ways := range []uint32{1, 2, 3, 8, 31, 32, 33, 40} {
			c := hierarchy.Cache{Name: "L1", LineBytes: 8, Ways: ways, SizeBytes: uint64(8 * ways * sets)}
			s := begin(t, hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}}, Options{})
			if err := s.Consume(b); err != nil {
				t.Fatal(err)
			}
			now := s.caches[0][0]
			if before != nil {
				for _, line := range held(before) {
					if !slices.Contains(held(now), line) {
						t.Fatalf("line %d is in %s, not in %s", line, before.cache, now.cache)
					}
				}
				if before.counts.Misses() < now.counts.Misses() {
					t.Fatalf("%s misses %d times, %s %d times", before.cache, before.counts.Misses(), now.cache, now.counts.Misses())
				}
			}
			before = now
		}
	})
}

func TestRefuses(t *testing.T) {
	for name, levels := range map[string][]string{
		"no level":                         {},
		"a cache that cannot exist":        {"L1=1000,8"},
		"more lines than memory":           {"L1=64GiB,8"},
		"a tree over three ways":           {"L1=192,3,plru"},
		"inclusive with smaller lines":     {"L1=1KiB,4,64", "L2=4KiB,4,32,inclusive"},
		"inclusive of a level further up":  {"L1=1KiB,4,64", "L2=4KiB,4,32", "L3=8KiB,4,32,inclusive"},
		"exclusive with lines of one size": {"L1=1KiB,4,64", "L2=4KiB,4,128,exclusive"},
	} {
		var h hierarchy.Hierarchy
		for _, text := range levels {
			c, err := hierarchy.ParseCache(text)
			if err != nil && text != "L1=1000,8" {
				t.Fatal(err)
			}
			h.Levels = append(h.Levels, c)
		}
		if _, err := New(h, Options{}); err == nil {
			t.Errorf("%s: simulated, want an error", name)
		}
	}
}

// The highest bytes of the address space are simulated like any other bytes. A reference that
// extends beyond the end of the address space is one access, as in the stack model.
func TestTopOfMemory(t *testing.T) {
	for _, bytes := range []uint32{8, 9, 1 << 31} {
		c := hierarchy.Cache{Name: "L1", LineBytes: 8, SizeBytes: 64, Write: hierarchy.WriteThrough}
		s := begin(t, hierarchy.Hierarchy{Levels: []hierarchy.Cache{c, c}}, Options{})
		b := trace.NewBatch(1)
		b.Append(trace.Store, ^uint64(7), bytes, 0, 0)
		if err := s.Consume(b); err != nil {
			t.Fatal(err)
		}
		r := s.Finish()
		if got := r.Levels[0].Run; got.Writes != 1 || r.Memory.BytesWritten != 8 {
			t.Errorf("%d bytes: %+v, %+v, want one access that writes 8 bytes", bytes, got, r.Memory)
		}
	}
}

// References that hit, or whose misses evict a line under LRU, allocate no memory.
func TestAllocatesNothing(t *testing.T) {
	levels := []hierarchy.Cache{
		{Name: "L1", LineBytes: 8, SizeBytes: 64, Ways: 2},
		{Name: "L2", LineBytes: 8, SizeBytes: 512, Ways: 4, Inclusion: hierarchy.Exclusive},
		{Name: "L3", LineBytes: 8, SizeBytes: 1024, Ways: 4},
	}
	s := begin(t, hierarchy.Hierarchy{Levels: levels}, Options{})
	b := trace.NewBatch(0)
	for i := range uint64(4000) {
		b.Append(trace.Kind(i%3), i*i%4096, 16, 0, 0)
	}
	if n := testing.AllocsPerRun(10, func() { _ = s.Consume(b) }); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
}

// Every preset hierarchy can be simulated.
func TestPresets(t *testing.T) {
	for _, h := range hierarchy.Presets() {
		if _, err := New(h, Options{}); err != nil {
			t.Errorf("%s: %v", h.Name, err)
		}
	}
}

// TestMemoryBytes checks that the memory of a simulator is known in advance.
func TestMemoryBytes(t *testing.T) {
	for _, text := range []string{"16MiB,8", "16MiB,8,plru", "16MiB,1,random", "16MiB,64", "16MiB,64,plru", "16MiB,full"} {
		c, err := hierarchy.ParseCache("L1=" + text)
		if err != nil {
			t.Fatal(err)
		}
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}}
		want, err := MemoryBytes(h)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := New(h, Options{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if off := int64(after.TotalAlloc-before.TotalAlloc) - int64(want); off < 0 || off > 64<<10 {
			t.Errorf("%s: takes %d bytes more than the predicted %d", text, off, want)
		}
	}
}

// TestMissingSizes checks that a reference without a size accesses the rest of its four-byte word,
// as in DineroIV: it touches one line, and the rest of the word is written through.
func TestMissingSizes(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 1 << 10, Ways: 2, LineBytes: 8, Write: hierarchy.WriteThrough}}}
	s, err := New(h, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := trace.NewBatch(6)
	b.Resize(6)
	for i, addr := range []uint64{0x1000, 0x1004, 0x1007, 0x100e, 0x2000, 0x2000} {
		b.Addr[i], b.Kind[i], b.Bytes[i] = addr, trace.Store, 0
	}
	b.Bytes[5] = 16 // this reference has a size
	if err := s.Consume(b); err != nil {
		t.Fatal(err)
	}
	r := s.Finish()
	if want := uint64(4 + 4 + 1 + 2 + 4 + 16); r.Memory.BytesWritten != want || r.Levels[0].Run.Accesses() != 7 || r.Split != 1 {
		t.Errorf("%d bytes written, want %d; %d accesses, %d references that cross lines", r.Memory.BytesWritten, want, r.Levels[0].Run.Accesses(), r.Split)
	}
}
