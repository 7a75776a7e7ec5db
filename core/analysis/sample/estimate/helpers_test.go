package estimate

import (
	"io"
	"os"
	"testing"

	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// linesOf reads the trace of a real program and returns its accesses to 64-byte lines.
func linesOf(t testing.TB, name string) (lines []trace.Line) {
	file, err := os.Open(tracetest.RealPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := open.Open(name, file, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := trace.NewBatch(0)
	for {
		if err := r.Next(b); err == io.EOF {
			return lines
		} else if err != nil {
			t.Fatal(err)
		}
		for i, addr := range b.Addr {
			if !trace.DataKinds.Has(b.Kind[i]) {
				continue
			}
			for line := addr / 64; line <= (addr+uint64(max(b.Bytes[i], 1))-1)/64; line++ {
				lines = append(lines, line)
			}
		}
	}
}

// generated returns n line accesses that follow a pattern.
func generated(n int, p tracetest.Pattern) []trace.Line {
	lines := make([]trace.Line, n)
	p.Fill(lines)
	for i := range lines {
		lines[i] /= 64
	}
	return lines
}

// sampled returns the estimate from a sample of accesses to lines.
func sampled(o sample.Options, lines []trace.Line) (*profile.Locality, *profile.SampledSize) {
	a := o.Locality([]uint32{64}).(*Analysis)
	s := a.sizes[0]
	var loads [maxLines]trace.Kind
	s.appendRow(0, profile.MinWindow)
	for len(lines) > 0 {
		n := copy(s.Lines[:], lines)
		s.settle(n, loads[:n])
		lines = lines[n:]
	}
	l, size := s.result()
	return &l, &size
}

// exact returns the exact result of an analysis of all line accesses.
func exact(lines []trace.Line) *profile.Locality {
	out := make([]uint32, len(lines))
	stack.NewExact().Distances(lines, out)
	k := profile.KindLocality{Kind: trace.Load}
	for _, d := range out {
		if d == stack.Cold {
			k.Cold++
		} else {
			k.Distances.Add(uint64(d))
		}
	}
	return &profile.Locality{LineBytes: 64, Kinds: []profile.KindLocality{k}}
}

func curve(l *profile.Locality) *profile.Curve {
	return profile.NewCurve(l.Histogram(trace.AllKinds))
}

// distances returns the distance of each access, as reported by a sampler.
func distances(s sampler, lines []trace.Line) []uint32 {
	out := make([]uint32, len(lines))
	for i := range lines {
		var c counts
		s.sample(lines[i:i+1], []trace.Kind{trace.Load}, &c)
		out[i] = passed
		for d := range frontLines {
			if c.nearAt(int(trace.Load), d) > 0 {
				out[i] = uint32(d)
			}
		}
		if len(c.taken) > 0 {
			out[i] = c.taken[0].distance
		}
	}
	return out
}
