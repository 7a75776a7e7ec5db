package stack_test

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// Workload is a sequence of line accesses that is used to time models.
type Workload struct {
	Name  string
	Lines func(b *testing.B) []trace.Line
}

// Workloads returns random pointer chases over 10^6 and 10^7 lines and, if the real traces are
// available, their accesses to 64-byte lines. In a random pointer chase, the cost of a model
// depends mainly on the cache misses of the machine that runs it. The variable STACKGLASS_LINES is
// a colon-separated list of files that contain further workloads as 8-byte little-endian line
// numbers.
func Workloads() (w []Workload) {
	if files := os.Getenv("STACKGLASS_LINES"); files != "" {
		for _, file := range strings.Split(files, ":") {
			name := strings.TrimSuffix(filepath.Base(file), ".lines")
			w = append(w, Workload{name, func(b *testing.B) []trace.Line { return fileLines(b, file) }})
		}
		return w
	}
	for _, name := range tracetest.RealTraces {
		w = append(w, Workload{name, func(b *testing.B) []trace.Line { return realLines(b, name) }})
	}
	return append(w,
		Workload{"chase1M", func(*testing.B) []trace.Line { return Chase(1_000_000, 6_000_000) }},
		Workload{"chase", func(*testing.B) []trace.Line { return Chase(10_000_000, 30_000_000) }})
}

// realLines reads the lines of a whole trace into memory.
func realLines(b *testing.B, name string) (lines []trace.Line) {
	file := openReal(b, name)
	defer file.Close()
	r, err := open.Open(name, file, open.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for batch := trace.NewBatch(0); ; {
		if err := r.Next(batch); err == io.EOF {
			return lines
		} else if err != nil {
			b.Fatal(err)
		}
		for i, addr := range batch.Addr {
			last := (addr + uint64(max(batch.Bytes[i], 1)) - 1) / 64
			for line := addr / 64; line <= last; line++ {
				lines = append(lines, line)
			}
		}
	}
}

func fileLines(b *testing.B, file string) []trace.Line {
	content, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	lines := make([]trace.Line, len(content)/8)
	for i := range lines {
		lines[i] = binary.LittleEndian.Uint64(content[8*i:])
	}
	return lines
}

// Chase returns n accesses to lines chosen at random from the given number of lines.
func Chase(lines uint64, n int) []trace.Line {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]trace.Line, n)
	for i := range out {
		out[i] = rng.Uint64N(lines)
	}
	return out
}

// A Taker is a type that processes accesses: a model, or something simpler.
type Taker interface {
	Distances(lines []trace.Line, out []uint32)
}

// A counter is a Taker that counts distinct lines.
type counter interface{ Lines() int }

// Losing is a core that regularly loses one of its 1,024 most recently accessed lines. The field
// "every" is the number of accesses between two lost lines. If it is 0, the core never loses a
// line.
type Losing struct {
	*stack.Coherent
	every, next int
	rng         *rand.Rand
	ops         []stack.Op
	lines       []trace.Line
	lost        []uint32
	out         []uint32
}

// NewLosing returns a core with an empty stack.
func NewLosing(every int) *Losing {
	return &Losing{Coherent: stack.NewCoherent(stack.AllSetNumbers), every: every, next: every, rng: rand.New(rand.NewPCG(1, 3))}
}

// Distances processes accesses to the lines, but ignores its second argument, to which other models
// write the distances.
func (m *Losing) Distances(lines []trace.Line, _ []uint32) {
	m.ops, m.lines = m.ops[:0], m.lines[:0]
	for i := 0; i < len(lines); {
		n := len(lines) - i
		if m.every > 0 {
			n = min(n, m.next)
		}
		m.lines = append(m.lines, lines[i:i+n]...)
		m.ops = append(m.ops, make([]stack.Op, n)...)
		i += n
		if m.next -= n; m.every > 0 && m.next == 0 {
			m.lines = append(m.lines, lines[max(0, i-1-m.rng.IntN(1024))])
			m.ops = append(m.ops, stack.LoseOp)
			m.next = m.every
		}
	}
	for len(m.lost) < len(m.ops) {
		m.lost, m.out = append(m.lost, 0), append(m.out, 0)
	}
	Do(m.Coherent, m.ops, m.lines, m.out[:len(m.ops)], m.lost[:len(m.ops)])
}

// Bench measures how long a new Taker needs to process the lines in batches. Bench reports the
// accesses per second. If the Taker is a counter, it also reports the heap bytes per distinct line
// after one pass.
func Bench(b *testing.B, fresh func() Taker, lines []trace.Line) {
	out := make([]uint32, trace.DefaultRows)
	accesses := 0
	for b.Loop() {
		m := fresh()
		for at := 0; at < len(lines); at += len(out) {
			batch := lines[at:min(at+len(out), len(lines))]
			m.Distances(batch, out)
			accesses += len(batch)
		}
	}
	b.StopTimer()
	if _, ok := fresh().(counter); ok {
		b.ReportMetric(bytesPerLine(fresh, lines), "B/line")
	}
	b.ReportMetric(float64(accesses)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
	b.ReportMetric(0, "ns/op")
}

func bytesPerLine(fresh func() Taker, lines []trace.Line) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m, out := fresh(), make([]uint32, trace.DefaultRows)
	for batch := range slices.Chunk(lines, len(out)) {
		m.Distances(batch, out)
	}
	out = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	n := float64(max(m.(counter).Lines(), 1))
	runtime.KeepAlive(lines)
	return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n
}
