//go:build unix

package sharing_test

import (
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// BenchmarkViews measures the additional cost of the four views, compared with the single stack
// with set tables. Four threads take turns. Either each thread executes its own quarter of a real
// trace, or all threads execute the same trace, so that lines are shared and invalidated. The
// metric cpu-ns/ref measures CPU time, because other programs on the machine hardly affect it. Only
// the results of the same run are comparable.
func BenchmarkViews(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		for _, split := range []struct {
			name  string
			apart bool
		}{{"quarters", true}, {"together", false}} {
			b.Run(name+"/"+split.name, func(b *testing.B) {
				whole := interleaved(b, name, 4, split.apart)
				for _, a := range []analysis.Analyses{analysis.Sets, analysis.Sharing} {
					b.Run(a.String(), func(b *testing.B) { benchmark(b, whole, a) })
				}
			})
		}
	}
}

func benchmark(b *testing.B, whole *trace.Batch, a analysis.Analyses) {
	before := cpuTime(b)
	for b.Loop() {
		runner, err := analysis.NewRunner(analysis.Spec{Analyses: a}, &reader{whole: whole})
		for err == nil {
			err = runner.Step()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/float64(whole.Len()), "cpu-ns/ref")
}

// cpuTime returns the CPU time of this process in ns.
func cpuTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// The segments of real traces, in which threads share lines, are joined. The result equals the
// result of the whole trace.
func TestAppendRealTraces(t *testing.T) {
	for _, name := range tracetest.RealTraces {
		whole := interleaved(t, name, 4, false)
		whole = whole.View(new(trace.Batch), 0, whole.Len()/8)
		spec := analysis.Spec{Analyses: analysis.Sharing | analysis.Sites, Mergeable: true}
		want := asSegment(analyse(t, spec, tracetest.NewReader(whole, 0)))
		var sum *profile.Profile
		for i := range 3 {
			lo, hi := whole.Len()*i/3, whole.Len()*(i+1)/3
			spec.Start = uint64(lo)
			next := analyse(t, spec, tracetest.NewReader(whole.View(new(trace.Batch), lo, hi), 0))
			if sum == nil {
				sum = next
				continue
			}
			sum = join(t, spec, sum, next)
		}
		same(t, sum, want)
	}
}

// reader returns a trace without copying it.
type reader struct {
	whole *trace.Batch
	next  int
}

func (r *reader) Next(b *trace.Batch) error {
	if r.next == r.whole.Len() {
		return io.EOF
	}
	end := min(r.next+trace.DefaultRows, r.whole.Len())
	r.whole.View(b, r.next, end)
	r.next = end
	return nil
}

const (
	benchRefs = 4_000_000
	run       = 50 // number of references that a thread makes in each turn
)

// interleaved distributes the beginning of a real trace among threads that take turns. If the
// parameter apart is true, each thread has its own share of the references. Otherwise, all threads
// execute the same references.
func interleaved(b testing.TB, name string, threads int, apart bool) *trace.Batch {
	all := beginningOf(b, name)
	whole := &trace.Batch{Thread: []uint32{}}
	each := all.Len() / threads
	for at := 0; at+run <= each; at += run {
		for t := range threads {
			from := at
			if apart {
				from += t * each
			}
			for i := from; i < from+run; i++ {
				whole.Append(all.Kind[i], all.Addr[i], all.Bytes[i], uint32(t), 0)
			}
		}
	}
	return whole
}

// beginningOf returns the beginning of a real trace.
func beginningOf(b testing.TB, name string) *trace.Batch {
	file, err := os.Open(tracetest.RealPath(b, name))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	r, err := open.Open(name, file, open.Options{})
	if err != nil {
		b.Fatal(err)
	}
	all := &trace.Batch{}
	for batch := trace.NewBatch(0); all.Len() < benchRefs; {
		if err := r.Next(batch); err == io.EOF {
			return all
		} else if err != nil {
			b.Fatal(err)
		}
		for i, k := range batch.Kind {
			if trace.DataKinds.Has(k) {
				all.Append(k, batch.Addr[i], batch.Bytes[i], 0, 0)
			}
		}
	}
	return all
}
