package simulate

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// drawShared chooses at random how many cores share each level of a hierarchy. A lower level is
// shared by at least as many cores as the level above.
func drawShared(t *rapid.T, h hierarchy.Hierarchy) {
	cores := uint32(1)
	for i := range h.Levels {
		switch cores *= rapid.SampledFrom([]uint32{1, 1, 2, 3}).Draw(t, "factor to the number of cores of the level above"); {
		case cores > 6 || rapid.IntRange(0, 4).Draw(t, "all") == 0:
			cores = hierarchy.AllCores
			h.Levels[i].SharedBy = cores
			for k := range h.Levels[i+1:] {
				h.Levels[i+1+k].SharedBy = cores
			}
			return
		default:
			h.Levels[i].SharedBy = cores
		}
	}
}

// withThreads assigns references to threads at random, a few consecutive references at a time.
// Threads are numbered in the order of their first references.
func withThreads(t *rapid.T, b *trace.Batch, most int) (threads int) {
	b.NeedThread()
	now := 0
	for i := range b.Thread {
		if i == 0 || rapid.IntRange(0, 2).Draw(t, "goes on") == 0 {
			now = rapid.IntRange(0, min(threads, most-1)).Draw(t, "thread")
		}
		b.Thread[i], threads = uint32(now), max(threads, now+1)
	}
	return threads
}

// The counts of several cores equal the counts of the reference implementation. In the reference
// implementation, every read sees the last store of any core.
func TestCoresEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b := drawHierarchy(t), drawBatch(t)
		drawShared(t, h)
		withThreads(t, b, 8)
		if rapid.Bool().Draw(t, "features") {
			drawFeatures(t, &h, false)
			drawStrides(t, b)
		}
		o := Options{Seed: rapid.Uint64().Draw(t, "seed"), Protocol: Protocol(rapid.IntRange(0, 2).Draw(t, "protocol"))}
		holdAgainstReference(t, h, b, o, 8)
	})
}

// The bus removes only lines that no cache contains. The bus's counts are therefore the same if the
// bus removes unused lines at every access.
func TestBusDropsUnusedLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b := drawHierarchy(t), drawBatch(t)
		drawShared(t, h)
		withThreads(t, b, 8)
		keeps, forgets := begin(t, h, Options{}), begin(t, h, Options{})
		for i := range b.Len() {
			row := b.View(new(trace.Batch), i, i+1)
			for _, s := range []*Simulator{keeps, forgets} {
				if err := s.Consume(row); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range forgets.cores {
				for _, l := range c.path {
					if l.bus != nil {
						l.bus.pruneAt = 0
					}
				}
			}
		}
		if got, want := forgets.Finish(), keeps.Finish(); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

// If the first references of a trace have no threads, they are simulated as if thread 0 had made
// them. Only the bus counts differ, because the bus does not process references without threads.
func TestReferencesWithoutThreads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b := drawHierarchy(t), drawBatch(t)
		drawShared(t, h)
		withThreads(t, b, 4)
		silent := rapid.IntRange(0, b.Len()).Draw(t, "without")
		clear(b.Thread[:silent])
		whole, parts := begin(t, h, Options{}), begin(t, h, Options{})
		before, after := b.View(new(trace.Batch), 0, silent), b.View(new(trace.Batch), silent, b.Len())
		before.Thread = nil
		for s, rows := range map[*Simulator][]*trace.Batch{whole: {b}, parts: {before, after}} {
			for _, r := range rows {
				if err := s.Consume(r); err != nil {
					t.Fatal(err)
				}
			}
		}
		want, got := whole.Finish(), parts.Finish()
		for i := range want.Levels {
			for _, r := range []*Result{&want, &got} {
				r.Levels[i].Run.Bus.Reads, r.Levels[i].Run.Bus.ReadsExclusive, r.Levels[i].Run.Bus.SilentUpgrades = 0, 0, 0
			}
			if want.Levels[i].Run != got.Levels[i].Run || want.Memory != got.Memory {
				t.Fatalf("%+v, want %+v", got.Levels[i].Run, want.Levels[i].Run)
			}
		}
	})
}

// MSI and MESI cause the same misses. If no other core has the line, a store causes an upgrade only
// with MSI.
func TestProtocols(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b := drawHierarchy(t), drawBatch(t)
		drawShared(t, h)
		withThreads(t, b, 8)
		mesi, msi := begin(t, h, Options{}), begin(t, h, Options{Protocol: MSI})
		for _, s := range []*Simulator{mesi, msi} {
			if err := s.Consume(b); err != nil {
				t.Fatal(err)
			}
		}
		x, y := mesi.Result(), msi.Result()
		for i := range x.Levels {
			a, b := x.Levels[i].Run, y.Levels[i].Run
			if a.Bus.Upgrades+a.Bus.SilentUpgrades != b.Bus.Upgrades || b.Bus.SilentUpgrades != 0 {
				t.Fatalf("upgrades of %s: %+v under MESI, %+v under MSI", x.Levels[i].Cache, a.Bus, b.Bus)
			}
			a.Bus.Upgrades, a.Bus.SilentUpgrades, b.Bus.Upgrades = 0, 0, 0
			if a != b {
				t.Fatalf("%s: %+v under MESI, %+v under MSI", x.Levels[i].Cache, a, b)
			}
		}
	})
}

// If threads are explicitly assigned to cores, cores are numbered in the order of their first
// threads. Otherwise, cores are numbered in the order in which their threads appear in the trace.
// Cores that share a cache have consecutive numbers.
func TestCoreNumbering(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{
		{Name: "L1", LineBytes: 8, SizeBytes: 64},
		{Name: "L2", LineBytes: 8, SizeBytes: 512, SharedBy: 2},
		{Name: "L3", LineBytes: 8, SizeBytes: 4096, SharedBy: hierarchy.AllCores},
	}}
	s := begin(t, h, Options{Cores: [][]uint32{{9}, {7, 2}}})
	b := trace.NewBatch(0)
	b.NeedThread()
	for _, thread := range []uint32{9, 7, 1 << 31, 4, 1 << 31, 2} {
		b.Append(trace.Load, 0, 8, 0, 0)
		b.Thread[b.Len()-1] = thread
	}
	if err := s.Consume(b); err != nil {
		t.Fatal(err)
	}
	r := s.Result()
	if got := fmt.Sprint(r.Cores); got != "[{[2 7]} {[9]} {[2147483648]} {[4]}]" {
		t.Errorf("cores %s", got)
	}
	for i, want := range [][3]int{{4, 6, 4}, {2, 4, 2}, {1, 2, 1}} {
		l := r.Levels[i]
		if got := [3]int{l.Caches, int(l.Run.Accesses()), int(l.Run.Misses())}; got != want {
			t.Errorf("%s: the numbers of caches, accesses and misses are %v, want %v", l.Cache, got, want)
		}
	}
}

// onePerThread returns one load by each thread.
func onePerThread(threads uint32) *trace.Batch {
	b := trace.NewBatch(int(threads))
	b.NeedThread()
	for i := range threads {
		b.Append(trace.Load, trace.Addr(i), 8, 0, 0)
		b.Thread[i] = i
	}
	return b
}

// Threads beyond the maximum number of cores are assigned to existing cores in turn.
func TestThreadsBeyondMaxCores(t *testing.T) {
	s := begin(t, hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", LineBytes: 8, SizeBytes: 64}}}, Options{})
	if err := s.Consume(onePerThread(MaxCores + 2)); err != nil {
		t.Fatal(err)
	}
	r := s.Result()
	if len(r.Cores) != MaxCores || r.Folded != 2 || !slices.Equal(r.Cores[1].Threads, []uint32{1, MaxCores + 1}) {
		t.Errorf("%d cores, %d threads that share a core, and threads %v on the second core; want %d, 2, and threads 1 and %d", len(r.Cores), r.Folded, r.Cores[1].Threads, MaxCores, MaxCores+1)
	}
}

// Hierarchies that are impossible for several cores are rejected. Hierarchies with too many cores
// are also rejected.
func TestInvalidNumbersOfCores(t *testing.T) {
	crowd := [][]uint32{}
	for i := range uint32(MaxCores + 1) {
		crowd = append(crowd, []uint32{i})
	}
	two := onePerThread(2)
	for name, c := range map[string]struct {
		levels []string
		o      Options
		b      *trace.Batch
	}{
		"too many cores":                                             {[]string{"L1=1KiB,4"}, Options{Cores: crowd}, two},
		"a private level below a shared level":                       {[]string{"L1=1KiB,4,shared=2", "L2=1KiB,4"}, Options{}, two},
		"a level shared by three cores, below a level shared by two": {[]string{"L1=1KiB,4,shared=2", "L2=1KiB,4,shared=3"}, Options{}, two},
		"a thread on two cores":                                      {[]string{"L1=1KiB,4"}, Options{Cores: [][]uint32{{1}, {1, 2}}}, two},
		"a core without threads":                                     {[]string{"L1=1KiB,4"}, Options{Cores: [][]uint32{{}}}, two},
		"caches that need more memory than the limit":                {[]string{"L1=1KiB,4"}, Options{MemoryBytes: 200}, two},
		"a level shared by two cores, below a level shared by all":   {[]string{"L1=1KiB,4,shared=all", "L2=1KiB,4,shared=2"}, Options{}, two},
	} {
		h := hierarchy.Hierarchy{}
		for _, text := range c.levels {
			if err := h.Add(text); err != nil {
				t.Fatal(err)
			}
		}
		s, err := New(h, c.o)
		if err == nil {
			err = s.Consume(c.b)
		}
		if err == nil {
			t.Errorf("%s: New and Consume returned no error", name)
		}
	}
}
