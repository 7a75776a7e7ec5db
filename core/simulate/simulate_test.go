package simulate

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// drawHierarchy returns a random hierarchy of one to three small levels that are compatible with each other.
func drawHierarchy(t *rapid.T) (h hierarchy.Hierarchy) {
	largest := uint32(0)
	for i := range rapid.IntRange(1, 3).Draw(t, "levels") {
		c := hierarchy.Cache{
			Name:        "L" + strconv.Itoa(i+1),
			LineBytes:   rapid.SampledFrom([]uint32{16, 16, 16, 8, 32}).Draw(t, "line"),
			Hashed:      rapid.IntRange(0, 3).Draw(t, "hashed") == 0,
			Replacement: hierarchy.Replacement(rapid.IntRange(0, len(hierarchy.Replacements())-1).Draw(t, "replacement")),
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

// drawFeatures adds random prefetchers, sub-blocks and instruction caches to a hierarchy.
// Sub-blocks are supported only with a single core.
func drawFeatures(t *rapid.T, h *hierarchy.Hierarchy, subBlocks bool) {
	parted := subBlocks && rapid.IntRange(0, 2).Draw(t, "sub-blocks") == 0
	for i := range h.Levels {
		c := &h.Levels[i]
		if parted {
			c.Inclusion = hierarchy.NonInclusive
			c.SubBlockBytes = rapid.SampledFrom([]uint32{0, 8, c.LineBytes}).Draw(t, "sub-block")
			if c.SubBlockBytes > 0 && rapid.IntRange(0, 3).Draw(t, "whole") == 0 {
				c.Write = hierarchy.WriteBackWhole
			}
		}
		if i == 0 || c.Inclusion != hierarchy.Exclusive {
			c.Prefetch = drawPrefetch(t, c.SubBlockBytes > 0)
		}
	}
	for i := range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "instruction caches") {
		if i == len(h.Levels) {
			return
		}
		c := h.Levels[i]
		c.Name += "I"
		c.Replacement = hierarchy.Replacement(rapid.IntRange(0, len(hierarchy.Replacements())-1).Draw(t, "replacement"))
		if ways := c.Lines() / c.Sets(); c.Replacement == hierarchy.TreePLRU && ways&(ways-1) != 0 {
			c.Replacement = hierarchy.LRU
		}
		c.Prefetch = hierarchy.Prefetch{}
		if i == 0 || c.Inclusion != hierarchy.Exclusive {
			c.Prefetch = drawPrefetch(t, c.SubBlockBytes > 0)
		}
		h.Instructions = append(h.Instructions, c)
	}
}

func drawPrefetch(t *rapid.T, parted bool) (p hierarchy.Prefetch) {
	if rapid.IntRange(0, 1).Draw(t, "prefetch") == 0 {
		return p
	}
	last := hierarchy.Stream
	if parted {
		last = hierarchy.SubBlock
	}
	p.Kind = hierarchy.PrefetchKind(rapid.IntRange(1, int(last)).Draw(t, "prefetcher"))
	p.Degree = rapid.SampledFrom([]uint32{0, 0, 2, 5}).Draw(t, "degree")
	p.Distance = rapid.SampledFrom([]uint32{0, 0, 3}).Draw(t, "distance")
	p.Drop = rapid.SampledFrom([]uint8{0, 0, 30, 100}).Draw(t, "drop")
	p.Reads = rapid.Bool().Draw(t, "reads")
	p.Chained = rapid.Bool().Draw(t, "chained")
	return p
}

// drawBatch returns random references to a few hundred bytes. Some references cross line
// boundaries.
func drawBatch(t *rapid.T) *trace.Batch {
	reach := rapid.SampledFrom([]uint64{64, 400, 4000}).Draw(t, "reach")
	b := trace.NewBatch(0)
	b.NeedPC()
	for range rapid.IntRange(1, 300).Draw(t, "references") {
		kind := trace.Kind(rapid.IntRange(0, trace.NumKinds-1).Draw(t, "kind"))
		bytes := rapid.SampledFrom([]uint32{8, 8, 8, 4, 0, 24, 100}).Draw(t, "bytes")
		b.Append(kind, rapid.Uint64Range(0, reach).Draw(t, "address"), bytes, 0, rapid.Uint64Range(0, 9).Draw(t, "instruction"))
	}
	return b
}

// drawStrides replaces some references with references by one instruction, which have a constant
// stride.
func drawStrides(t *rapid.T, b *trace.Batch) {
	for range rapid.IntRange(0, 4).Draw(t, "runs") {
		from := rapid.IntRange(0, b.Len()-1).Draw(t, "from")
		stride := rapid.SampledFrom([]int64{8, -8, 16, 40, -100}).Draw(t, "stride")
		addr := int64(b.Addr[from]) + 10000
		for i := from; i < min(b.Len(), from+12); i++ {
			b.Addr[i], b.PC[i] = uint64(addr), uint64(100+from)
			addr += stride
		}
	}
}

func begin(t interface{ Fatal(...any) }, h hierarchy.Hierarchy, o Options) *Simulator {
	s, err := New(h, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The counts of the simulator equal the counts of the reference implementation. The data in the
// reference implementation is also checked. Every read returns the value of the last store,
// regardless of the caches that have contained the line since the store. At the end, memory
// contains all stores.
func TestEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b, o := drawHierarchy(t), drawBatch(t), Options{Seed: rapid.Uint64().Draw(t, "seed")}
		holdAgainstReference(t, h, b, o, 1)
	})
}

// TestFeaturesEqualReference repeats TestEqualsReference with prefetchers, sub-blocks and
// instruction caches.
func TestFeaturesEqualReference(t *testing.T) { rapid.Check(t, featuresEqualReference) }

// FuzzFeatures repeats TestFeaturesEqualReference with the fuzzer's inputs.
func FuzzFeatures(f *testing.F) { f.Fuzz(rapid.MakeFuzz(featuresEqualReference)) }

func featuresEqualReference(t *rapid.T) {
	h, b := drawHierarchy(t), drawBatch(t)
	drawFeatures(t, &h, true)
	drawStrides(t, b)
	o := Options{Seed: rapid.Uint64().Draw(t, "seed"), Causes: rapid.Bool().Draw(t, "causes"), Bound: true}
	holdAgainstReference(t, h, b, o, 1)
}

// holdAgainstReference compares the results of the simulator and of the reference implementation.
// The threads of the trace must be numbered from 0 to cores-1 in the order in which they first
// appear.
func holdAgainstReference(t *rapid.T, h hierarchy.Hierarchy, b *trace.Batch, o Options, cores int) {
	s, model := begin(t, h, o), newNaive(h, cores, o)
	if err := s.Consume(b); err != nil {
		t.Fatal(err)
	}
	latest := data{}
	for i, kind := range b.Kind {
		core := 0
		if b.Thread != nil {
			core = int(b.Thread[i])
		}
		model.threaded = b.Thread != nil
		model.setCore(core, kind == trace.Fetch)
		model.pc = b.PC[i]
		bytes := uint64(b.Bytes[i])
		if bytes == 0 { // a reference without a size extends to the end of its word
			bytes = (b.Addr[i] | 3) - b.Addr[i] + 1
		}
		model.reference(t, i+1, kind, b.Addr[i], bytes, latest)
	}
	got := s.Finish()
	levels, caches := slices.Concat(got.Levels, got.Instructions), slices.Concat(model.caches, model.icaches)
	for i, caches := range caches {
		want, _ := sum(caches)
		if levels[i].Run != want {
			t.Fatalf("%s: counts %+v, want %+v", levels[i].Cache, levels[i].Run, want)
		}
		best := uint64(0)
		for _, l := range caches {
			best += l.bestMisses()
			for core, want := range l.by {
				if core < len(got.Cores) && levels[i].Cores[core] != *want {
					t.Fatalf("%s of core %d: %+v, want %+v", l.Cache, core, levels[i].Cores[core], *want)
				}
				*want = Counts{}
			}
		}
		if levels[i].Bounded && levels[i].BestMisses != best {
			t.Fatalf("%s: %d misses with OPT, want %d", levels[i].Cache, levels[i].BestMisses, best)
		}
	}
	if got.Memory != model.memory {
		t.Fatalf("memory traffic is %+v, want %+v", got.Memory, model.memory)
	}
	model.memory = Traffic{}
	model.flush()
	for i := range caches {
		if want, lines := sum(caches[i]); levels[i].Flush != want || levels[i].Resident != uint64(lines) {
			t.Fatalf("%s: the counts after the flush are %+v, want %+v and %d resident lines", levels[i].Cache, levels[i], want, lines)
		}
	}
	if got.Flush != model.memory {
		t.Fatalf("memory traffic of the flush is %+v, want %+v", got.Flush, model.memory)
	}
	if model.coherent() && !maps.Equal(model.words, latest) {
		t.Fatalf("memory contains %v at the end, want %v", model.words, latest)
	}
}

// coherent reports whether every read returns the value of the last store. Stores do not invalidate
// lines of instruction caches.
func (n *naive) coherent() bool { return len(n.icaches) == 0 && !(n.off && n.threaded) }

// bestMisses returns the number of demand misses in a level with optimal replacement (Belady, IBM
// Systems Journal 5(2), 1966), which evicts the line whose next access is furthest in the future.
func (l *naiveLevel) bestMisses() (misses uint64) {
	next := func(line uint64, after int) int {
		for i := after + 1; i < len(l.demands); i++ {
			if l.demands[i] == line {
				return i
			}
		}
		return len(l.demands)
	}
	sets := map[uint64][]uint64{}
	for i, line := range l.demands {
		set := sets[l.set(line)]
		if slices.Contains(set, line) {
			continue
		}
		misses++
		if uint64(len(set)) == l.ways {
			latest := slices.MaxFunc(set, func(a, b uint64) int { return cmp.Compare(next(a, i), next(b, i)) })
			set = slices.DeleteFunc(set, func(line uint64) bool { return line == latest })
		}
		sets[l.set(line)] = append(set, line)
	}
	return misses
}

// reference simulates one reference of the trace. A store writes the parameter version,
// which is different for every reference.
func (n *naive) reference(t *rapid.T, version int, kind trace.Kind, addr, bytes uint64, latest data) {
	first := n.levels[0].lineSize()
	for _, piece := range splitAtLines(addr, bytes, first) {
		start := piece[0] / first * first
		n.addr = piece[0]
		switch kind {
		case trace.Store, trace.Modify, trace.RangeWrite:
			n.notifyOtherCores(0, start, true)
			words := data{}
			for word := piece[0] / 8; word <= (piece[0]+piece[1]-1)/8; word++ {
				words[word] = version
			}
			maps.Copy(latest, words)
			n.store(0, piece[0], piece[1], words)
		default:
			n.notifyOtherCores(0, start, false)
			words, _ := n.demand(0, piece[0], piece[1])
			if got, want := words.part(piece[0], piece[1]), latest.part(piece[0], piece[1]); n.coherent() && !maps.Equal(got, want) {
				t.Fatalf("reference %d reads %v, want %v", version, got, want)
			}
		}
		for len(n.waiting) > 0 {
			next := n.waiting[0]
			n.waiting = n.waiting[1:]
			next()
		}
	}
}

func held(l *level) (lines []trace.Line) {
	l.tags.each(func(line trace.Line) { lines = append(lines, line) })
	return lines
}

// An inclusive level always contains the lines of the levels above it, and an exclusive level
// contains no line of the level above. No line is lost: every inserted line is still in the cache,
// or its removal has been counted. Each miss in one level is an access to the next level.
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
				t.Fatalf("%s contains line %d of %s: %t, want %t", l.cache, line, n.cache, found, !found)
			}
		}
	}
}

// above returns the cache above the given level. Hierarchies with several cores are not supported.
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
		t.Fatalf("%d lines were read from memory, but the last level has %d read misses and %d misses", r.Memory.Reads, last.Run.ReadMisses, last.Run.Misses())
	}
}

// LRU has the inclusion property: if two caches have the same number of sets, the cache with more
// ways contains every line of the cache with fewer ways, and never misses more often.
func TestInclusionProperty(t *testing.T) {
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
						t.Fatalf("line %d is in %s, but not in %s with more ways", line, before.cache, now.cache)
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

func TestInvalidHierarchies(t *testing.T) {
	for name, levels := range map[string][]string{
		"no level": {},
		"a size that is not a multiple of the line size": {"L1=1000,8"},
		"more lines than the maximum":                    {"L1=64GiB,8"},
		"tree-PLRU with three ways":                      {"L1=192,3,plru"},
		"an inclusive level with smaller lines":          {"L1=1KiB,4,64", "L2=4KiB,4,32,inclusive"},
		"an inclusive level with smaller lines than L1":  {"L1=1KiB,4,64", "L2=4KiB,4,32", "L3=8KiB,4,32,inclusive"},
		"an exclusive level with larger lines":           {"L1=1KiB,4,64", "L2=4KiB,4,128,exclusive"},
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
			t.Errorf("%s: New returned no error", name)
		}
	}
}

// The highest bytes of the address space are simulated like any other bytes. A reference that
// extends beyond the end of the address space is one access, as in the stack model.
func TestEndOfAddressSpace(t *testing.T) {
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

// References that hit, and misses that evict a line under LRU, allocate no memory.
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
		t.Errorf("Consume made %v allocations per batch, want 0", n)
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

// TestMemoryBytes checks that MemoryBytes predicts the memory that a simulator allocates.
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
			t.Errorf("%s: the simulator needs %d bytes more than the predicted %d bytes", text, off, want)
		}
	}
}

// TestMissingSizes checks that a reference without a size extends to the end of its four-byte word,
// as in DineroIV. Such a reference accesses one line, and the rest of the word is written through.
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
	b.Bytes[5] = 16 // only this reference has a size
	if err := s.Consume(b); err != nil {
		t.Fatal(err)
	}
	r := s.Finish()
	if want := uint64(4 + 4 + 1 + 2 + 4 + 16); r.Memory.BytesWritten != want || r.Levels[0].Run.Accesses() != 7 || r.Split != 1 {
		t.Errorf("%d bytes written, want %d; %d accesses, %d references that cross lines", r.Memory.BytesWritten, want, r.Levels[0].Run.Accesses(), r.Split)
	}
}
