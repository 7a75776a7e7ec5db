package shelf

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// traceSize is the size of the traces. The traces are large in `make soak`. Otherwise, they are
// small enough that the tests take only a few seconds.
var traceSize = func() (s struct {
	references, lines int
	memory            uint64
}) {
	s.references, s.lines, s.memory = 3_000_000, 300_000, 96<<20
	if os.Getenv("STACKGLASS_SOAK") != "" {
		s.references, s.lines, s.memory = 1_010_000_000, 101_000_000, 1000<<20
	}
	return s
}()

// analyzeWithin analyses a trace with a limit on the memory of the models. 0 means no limit.
func analyzeWithin(t *testing.T, r trace.Reader, memory uint64) *profile.Profile {
	t.Helper()
	spec := analysis.Spec{Analyses: analysis.Locality}
	if memory > 0 {
		folder, err := New(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Remove()
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(memory / 100 * 92)))
		spec.Budget = &locality.Budget{Bytes: memory / 100 * 65, Shelf: folder}
	}
	runner, err := analysis.NewRunner(spec, r)
	if err != nil {
		t.Fatal(err)
	}
	begin, told := time.Now(), time.Now()
	for err == nil {
		err = runner.Step()
		if time.Since(told) > 30*time.Second {
			told = time.Now()
			t.Logf("%v: %+v, peak memory %d MB", time.Since(begin).Round(time.Second), runner.Progress(), peakMemory()>>20)
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	p := runner.Finish(profile.State{})
	t.Logf("%d references in %v, peak memory %d MB", p.Totals.AllReferences(), time.Since(begin).Round(time.Millisecond), peakMemory()>>20)
	return p
}

// peakMemory returns the peak resident set size of the process in bytes, or 0 if it is unknown.
func peakMemory() uint64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, _ := strconv.ParseUint(strings.TrimSpace(rest[:max(strings.Index(rest, "kB"), 0)]), 10, 64)
	return kib << 10
}

// TestSpilledCyclicAccesses checks the profile of a loop over more lines than fit in memory.
// Between two accesses to a line, the loop accesses all other lines.
func TestSpilledCyclicAccesses(t *testing.T) {
	p := analyzeWithin(t, tracetest.Stream(traceSize.references, tracetest.Strided(64, traceSize.lines*64)), traceSize.memory)
	if most := peakMemory(); most > traceSize.memory && os.Getenv("STACKGLASS_SOAK") != "" {
		t.Errorf("peak memory %d bytes, want at most %d", most, traceSize.memory)
	}
	var cold, far, other uint64
	for _, k := range p.Locality[0].Kinds {
		cold += k.Cold
		for d, n := range k.Distances.All() {
			if d == uint64(traceSize.lines)-1 {
				far += n
			} else {
				other += n
			}
		}
	}
	if cold != uint64(traceSize.lines) || far != uint64(traceSize.references-traceSize.lines) || other != 0 {
		t.Errorf("%d first accesses, %d accesses after all other lines, %d others", cold, far, other)
	}
}

// TestSpilledRandomAccesses checks that a memory limit does not change the profile of accesses to
// random lines.
func TestSpilledRandomAccesses(t *testing.T) {
	pattern := func() trace.Reader {
		return tracetest.Stream(traceSize.references, tracetest.Uniform(traceSize.lines, 1))
	}
	p := analyzeWithin(t, pattern(), traceSize.memory)
	got := p.Digest()
	if most := peakMemory(); most > traceSize.memory && os.Getenv("STACKGLASS_SOAK") != "" {
		t.Errorf("peak memory %d bytes, want at most %d", most, traceSize.memory)
	}
	var deep uint64
	for _, k := range p.Locality[0].Kinds {
		for d, n := range k.Distances.All() {
			if d >= uint64(traceSize.lines)/2 {
				deep += n
			}
		}
	}
	if deep < uint64(traceSize.references)/5 {
		t.Errorf("%d accesses hit the lower half of the stack, want at least a fifth", deep)
	}
	p = nil
	runtime.GC()
	if want := analyzeWithin(t, pattern(), 0).Digest(); !bytes.Equal(got[:], want[:]) {
		t.Error("the profile differs from the profile of a run with unlimited memory")
	}
}
