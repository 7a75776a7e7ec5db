package scale

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/tools/beam/pass"
)

// some are costs that grow with the number of lines.
func some(r *rand.Rand) (*Costs, *Fixed) {
	curve := func(least float64) Curve {
		c := Curve{}
		for lines := 1e3; lines <= 1e7; lines *= 10 {
			least *= 1 + r.Float64()
			c = append(c, Point{lines, least})
		}
		return c
	}
	return &Costs{
			PerReference: math.Pow(2, -float64(r.IntN(8))), TraceBytes: 1,
			Analyse: curve(1e-8), Plain: curve(1e-8), Encode: curve(1e-8), Decode: curve(1e-8), Join: curve(1e-8),
			Bytes: Curve{{1e3, 4}, {1e6, 9}}, SegmentBytes: curve(10), JoinBytes: curve(10),
		}, &Fixed{
			Job: r.Float64(), Segment: 1e-3, Join: 1e-3, Chunk: 1e-7, Read: 1e-9, Block: 1e-8, BlockBytes: 4, Network: 1e9,
		}
}

// naive enumerates every segment and every node, and assigns each in turn to the worker that is
// free first. Each step waits for the previous step.
func naive(j Job, c *Costs, f *Fixed) (total, sent float64) {
	stretches := int(math.Ceil(j.References / j.Stretch))
	type node struct{ references, lines float64 }
	var level []node
	var tasks []float64
	step := func() {
		workers := make([]float64, min(int(j.Workers), len(tasks)))
		for _, t := range tasks {
			first := 0
			for i, at := range workers {
				if at < workers[first] {
					first = i
				}
			}
			workers[first] += t
		}
		most := 0.0
		for _, at := range workers {
			most = max(most, at)
		}
		total += most
		tasks = nil
	}
	total = f.Job + f.Chunk*j.References/(1<<20)
	for i := range stretches {
		references := min(j.Stretch, j.References-float64(i)*j.Stretch)
		lines := min(j.Footprint, c.PerReference*references)
		level = append(level, node{references, lines})
		tasks = append(tasks, references*c.Analyse.At(lines)+f.Segment+lines*c.Encode.At(lines)+lines*c.Bytes.At(lines)/f.Network)
	}
	step()
	for len(level) > 1 {
		var up []node
		for at := 0; at < len(level); at += int(j.FanIn) {
			parts := level[at:min(at+int(j.FanIn), len(level))]
			whole, time := node{}, 0.0
			for _, p := range parts {
				whole.references += p.references
				time += f.Join + p.lines*c.Decode.At(p.lines) + p.lines*c.Bytes.At(p.lines)/f.Network
				sent += p.lines * c.Bytes.At(p.lines)
			}
			whole.lines = min(j.Footprint, c.PerReference*whole.references)
			for _, p := range parts {
				time += p.lines * c.Join.At(whole.lines)
			}
			time += whole.lines*c.Encode.At(whole.lines) + whole.lines*c.Bytes.At(whole.lines)/f.Network
			up, tasks = append(up, whole), append(tasks, time)
		}
		level = up
		step()
	}
	root := level[0].lines
	first := min(j.Footprint, c.PerReference*j.Stretch)
	return total + headReferences*c.Plain.At(first) + root*(c.Decode.At(root)+c.Join.At(root)), sent
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// TestNaive checks that the model equals the enumeration if all nodes of a level are alike, and is
// at least as large otherwise.
func TestNaive(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(1, seed))
		c, f := some(r)
		j := Job{Stretch: float64(1000 * (1 + r.IntN(1000))), Workers: float64(1 + r.IntN(40)), FanIn: float64(2 + r.IntN(7)), Footprint: math.Pow(10, 2+5*r.Float64())}
		even := r.IntN(2) == 0
		if even {
			j.References = j.Stretch * math.Pow(j.FanIn, float64(1+r.IntN(3)))
		} else {
			j.References = j.Stretch * (1 + 200*r.Float64())
		}
		e := Predict(j, c, f)
		total, sent := naive(j, c, f)
		if even && (!near(e.Total, total) || !near(e.Sent, sent)) {
			t.Errorf("%+v: %g s and %g bytes; laid out it is %g s and %g bytes", j, e.Total, e.Sent, total, sent)
		}
		if e.Total < total*(1-1e-9) || e.Sent < sent*(1-1e-9) {
			t.Errorf("%+v: %g s and %g bytes are less than %g s and %g bytes", j, e.Total, e.Sent, total, sent)
		}
	}
}

// TestMore: more workers are no slower, more references no faster; the steps are the
// total, and nobody works longer than all do.
func TestMore(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(2, seed))
		c, f := some(r)
		j := Of(math.Pow(10, 9+4*r.Float64()), math.Pow(10, 6+4*r.Float64()), float64(1+r.IntN(1000)))
		if r.IntN(2) == 0 {
			j.Blocks = 1e5
		}
		e := Predict(j, c, f)
		more, longer := j, j
		more.Workers *= 2
		longer.References *= 8
		if got := Predict(more, c, f); got.Total > e.Total {
			t.Errorf("%+v: %g s, and with twice the workers %g s", j, e.Total, got.Total)
		}
		if got := Predict(longer, c, f); got.Total < e.Total {
			t.Errorf("%+v: %g s, and with eight times the references %g s", j, e.Total, got.Total)
		}
		if !near(e.Begin+e.Analyse+e.Join+e.Finish, e.Total) {
			t.Errorf("%+v: %+v: the steps are not the total", j, e)
		}
		if e.Work > e.Total*j.Workers*(1+1e-9) {
			t.Errorf("%+v: workers work for %g s of %g", j, e.Work, e.Total*j.Workers)
		}
		if s := Serial(j, c, f); s.Total > e.Total || s.Total <= 0 {
			t.Errorf("%+v: %g s, and with any number of workers %g s", j, e.Total, s.Total)
		}
		if half := Half(j, c, f); half < 1 || half > mostWorkers {
			t.Errorf("%+v: it scales to %g workers", j, half)
		}
	}
}

// TestMostLines: a stretch of very many lines is several segments, none larger than asked.
func TestMostLines(t *testing.T) {
	c, f := some(rand.New(rand.NewPCG(3, 3)))
	c.PerReference = 1
	j := Of(1<<36, 1e9, 8)
	e := Predict(j, c, f)
	if e.Stretches != 1<<10 || e.Segments != 4<<10 || e.Lines != 1<<24 || e.Levels[0].Parts != 32 {
		t.Errorf("%+v", e)
	}
	j.Footprint = 1e6
	if e := Predict(j, c, f); e.Segments != e.Stretches || e.Lines != 1e6 {
		t.Errorf("%+v", e)
	}
}

// TestLimits checks that too many lines for a stack are reported.
func TestLimits(t *testing.T) {
	c, f := some(rand.New(rand.NewPCG(4, 4)))
	c.PerReference = 1
	for footprint, want := range map[float64]bool{1e8: true, 4e9: true, 5e9: false, 1e10: false} {
		if e := Predict(Of(1e12, footprint, 8), c, f); e.Fits != want {
			t.Errorf("%g lines: %v, want %v", footprint, e.Fits, want)
		}
	}
}

func TestCurve(t *testing.T) {
	c := Curve{{1e4, 10}, {1e6, 30}}
	for lines, want := range map[float64]float64{1: 10, 1e4: 10, 1e5: 20, 1e6: 30, 1e9: 30} {
		if got := c.At(lines); !near(got, want) {
			t.Errorf("at %g lines: %g, want %g", lines, got, want)
		}
	}
}

// TestSampled: a sample of everything, read for nothing, is no sample; one of less has
// less state.
func TestSampled(t *testing.T) {
	c, f := some(rand.New(rand.NewPCG(5, 5)))
	j := Of(1e11, 1e8, 64)
	j, all := Sampled(j, c, 1, 0)
	if a, b := Predict(j, c, f), Predict(j, all, f); !near(a.Total, b.Total) {
		t.Errorf("%g s, and sampled in full %g s", a.Total, b.Total)
	}
	less, few := Sampled(j, c, 0.01, 1e-9)
	if a, b := Predict(j, c, f), Predict(less, few, f); b.Sent > a.Sent/20 || b.Total > a.Total {
		t.Errorf("%+v and sampled %+v", a, b)
	}
}

// TestStretches: a long trace has no more stretches than the pipeline allows.
func TestStretches(t *testing.T) {
	c, f := some(rand.New(rand.NewPCG(6, 6)))
	if e := Predict(Of(1e13, 1e6, 8), c, f); e.Stretches > pass.MostStretches {
		t.Errorf("%g stretches", e.Stretches)
	}
}
