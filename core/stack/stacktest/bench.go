package stacktest

import (
	"bufio"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Workload is a sequence of line accesses to time models on.
type Workload struct {
	Name  string
	Lines func() []trace.Line
}

func Workloads(b *testing.B) (w []Workload) {
	dir := os.Getenv("STACKGLASS_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	for _, name := range []string{"gemm", "jacobi2d", "sort"} {
		w = append(w, Workload{name, func() []trace.Line {
			f, err := os.Open(filepath.Join(dir, "traces", name+".lackey.lz4"))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			var lines []trace.Line
			sc := bufio.NewScanner(lz4.NewReader(f))
			for sc.Scan() {
				t := sc.Text()
				if t[0] == '=' {
					continue
				}
				c := strings.IndexByte(t, ',')
				a, _ := strconv.ParseUint(t[3:c], 16, 64)
				n, _ := strconv.ParseUint(t[c+1:], 10, 64)
				for l := a / 64; l <= (a+n-1)/64; l++ {
					lines = append(lines, l)
				}
			}
			return lines
		}})
	}
	w = append(w, Workload{"chase", func() []trace.Line { return Chase(10_000_000, 30_000_000) }})
	return w
}

// Chase is a random walk over n lines: n accesses.
func Chase(lines uint64, n int) []trace.Line {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]trace.Line, n)
	for i := range out {
		out[i] = rng.Uint64N(lines)
	}
	return out
}

func Bench(b *testing.B, fresh func() stack.Model, lines []trace.Line) {
	const batch = 4096
	out := make([]uint32, batch)
	var n int
	for b.Loop() {
		m := fresh()
		for at := 0; at < len(lines); at += batch {
			part := lines[at:min(at+batch, len(lines))]
			m.Distances(part, out)
			n += len(part)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
	b.ReportMetric(0, "ns/op")
}
