package capture

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestTeamMatchesPrediction checks that package multicore predicts a run with several threads from
// a single-threaded run. Except for their order, the records of each thread must be exact. No
// record in the trace of the test program depends on chance.
func TestTeamMatchesPrediction(t *testing.T) {
	newestClang(t)
	for _, clang := range installedClangs() {
		if !hasOpenMP(t, clang) {
			t.Logf("skipped: %s, which has no OpenMP", clang)
			continue
		}
		for _, level := range []string{"-O0", "-O1", "-O2"} {
			if !shouldTest(clang, level == "-O1") {
				continue
			}
			program := filepath.Join(t.TempDir(), "team")
			traceCompile(t, clang, level, "-fopenmp", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-no-pie", "-fno-pie",
				sourceOf(t, "team.c"), "-o", program)
			one := runProgram(t, []string{"OMP_NUM_THREADS=1"}, program).readTrace(t, everything&^(1<<trace.BareBlock))
			for _, cores := range []int{1, 2, 3, 4, 8} {
				t.Run(fmt.Sprint(filepath.Base(clang), level, cores), func(t *testing.T) {
					t.Parallel()
					m, err := multicore.Mimic(&readerWithHeader{tracetest.NewReader(one.Batch, 1000), one.header}, multicore.Options{Cores: cores}, nil)
					if err != nil {
						t.Fatal(err)
					}
					m.Select(everything &^ (1 << trace.BareBlock))
					all, err := trace.ReadAll(m)
					if err != nil {
						t.Fatal(err)
					}
					got := perThread(&traceContent{Batch: all, header: m.Header()})
					team := runProgram(t, []string{fmt.Sprint("OMP_NUM_THREADS=", cores)}, program).readTrace(t, everything&^(1<<trace.BareBlock))
					want := perThread(team)
					for i := range max(len(got), len(want)) {
						if i >= len(got) || i >= len(want) {
							t.Fatalf("the prediction has records of %d cores, but the run has %d threads", len(got), len(want))
						}
						if text := listDifferences(got[i], want[i]); text != "" {
							t.Errorf("core %d:\n%s", i, text)
						}
					}
				})
			}
		}
	}
}

// readerWithHeader adds a header to a reader.
type readerWithHeader struct {
	*tracetest.Reader
	header trace.Header
}

func (d *readerWithHeader) Header() trace.Header { return d.header }

// An action is one record of a thread, without the data that varies between runs.
type action struct {
	Kind  trace.Kind
	Label string
	Site  uint32
	// the address; onFirst if the address is on the first thread's stack; onOwn if it is on the
	// thread's own stack
	Addr  trace.Addr
	Bytes uint32
}

const (
	onFirst = 1
	onOwn   = 2
)

// normaliseStack replaces each address on a stack with onFirst or onOwn, so that runs can be
// compared.
func normaliseStack(p *trace.Program, thread uint32, addr trace.Addr) trace.Addr {
	first := slices.MinFunc(p.Threads, func(a, b trace.Thread) int { return cmp.Compare(a.Number, b.Number) }).Number
	for _, t := range p.Threads {
		switch {
		case addr < t.StackLow || addr >= t.StackHigh:
		case t.Number == first:
			return onFirst
		case t.Number == thread:
			return onOwn
		}
	}
	return addr
}

// perThread counts the records of each thread. The order of the threads does not depend on their
// numbers.
func perThread(all *traceContent) []map[action]int {
	threads := map[uint32]map[action]int{}
	p := all.header.Program
	for i, k := range all.Kind {
		d := action{Kind: k, Site: all.Site[i], Addr: all.Addr[i], Bytes: all.Bytes[i]}
		switch {
		case k == trace.ThreadStart || k == trace.ThreadEnd:
			continue
		case k.IsReference():
			b := &p.Blocks[p.Sites[d.Site].Block]
			d.Label = p.Functions[b.Function].Name + " " + b.Label
			d.Addr = normaliseStack(p, all.Thread[i], d.Addr)
		case k == trace.Alloc || k == trace.Free:
			d.Addr = normaliseStack(p, all.Thread[i], d.Addr)
		case k == trace.ParallelBegin:
			d.Addr = 0
		}
		t := all.Thread[i]
		if threads[t] == nil {
			threads[t] = map[action]int{}
		}
		threads[t][d]++
	}
	list := slices.Collect(maps.Values(threads))
	key := func(m map[action]int) string {
		var words []string
		for d, n := range m {
			words = append(words, fmt.Sprintf("%2d %8d %16x %8d\n", d.Kind, d.Site, d.Addr, n))
		}
		slices.Sort(words)
		return strings.Join(words, "")
	}
	slices.SortFunc(list, func(a, b map[action]int) int { return strings.Compare(key(a), key(b)) })
	return list
}

// listDifferences lists the first few differences between two counts.
func listDifferences(got, want map[action]int) string {
	var list []string
	for d, n := range got {
		if want[d] != n {
			list = append(list, fmt.Sprintf("%+v occurs %d times, want %d", d, n, want[d]))
		}
	}
	for d, n := range want {
		if got[d] == 0 {
			list = append(list, fmt.Sprintf("%+v occurs 0 times, want %d", d, n))
		}
	}
	slices.Sort(list)
	return strings.Join(list[:min(len(list), 12)], "\n")
}
