package analysis_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// container returns a container that stores the steps of one thread in chunks of random lengths. A
// second module is loaded later; some references access its variables even before it is loaded.
func container(t *testing.T, rng *rand.Rand, p *trace.Program, steps []tracetest.Step) []byte {
	t.Helper()
	return threadedContainer(t, rng, p, steps, func(uint32) uint32 { return 1 })
}

// threadedContainer is like container, but for several threads. The function thread returns the
// thread number of a step.
func threadedContainer(t *testing.T, rng *rand.Rand, p *trace.Program, steps []tracetest.Step, thread func(uint32) uint32) []byte {
	t.Helper()
	var out bytes.Buffer
	w := sgt.NewWriter(&out, 64, nil)
	module := func(number uint32) {
		p := *p
		if number > 0 {
			p.Objects = slices.Clone(p.Objects)
			for i := range p.Objects {
				o := &p.Objects[i]
				o.Name += " of a second module"
				o.Addr += min(o.Addr, 200)
			}
		}
		if err := w.Module(sgt.AppendModule(nil, &p)); err != nil {
			t.Fatal(err)
		}
		addrs := make([]trace.Addr, len(p.Objects))
		for i := range addrs {
			addrs[i] = p.Objects[i].Addr
		}
		w.Objects(number, addrs)
	}
	module(0)
	if len(p.Tags) > 0 {
		w.Tags(0, p.Tags)
	}
	second, blocks := len(steps)*rng.IntN(5)/4, uint32(0)
	for i, s := range steps {
		if i == second {
			module(1)
			blocks = uint32(len(p.Blocks))
		}
		if rng.IntN(2) == 0 {
			s.Block += blocks
		}
		if err := w.Step(thread(s.Thread), uint64(i), s.Block, s.Values); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(1+len(steps)/10) == 0 {
			w.Flush()
		}
	}
	if err := w.Close(sgt.End{How: "exit"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func sourceOf(t *testing.T, file []byte) *sgt.Source {
	t.Helper()
	s, err := sgt.NewSource("t", bytes.NewReader(file), int64(len(file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readerOf(file []byte) *sgt.Reader {
	return sgt.NewReader("t", bytes.NewReader(file), sgt.Options{})
}

// divided returns a run with helpers.
func divided(t *testing.T, spec analysis.Spec, file []byte, workers, segment int, helpers func(int, analysis.Spec, trace.Source) func(func()) []analysis.Helper) *analysis.Divided {
	t.Helper()
	source, r := sourceOf(t, file), readerOf(file)
	d, err := analysis.NewDivided(spec, r, r, source, analysis.DividedOptions{
		Helpers: helpers(workers-1, spec, source), SegmentReferences: segment,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func toItsEnd(t *testing.T, r analysis.Run) []byte {
	t.Helper()
	var err error
	for err == nil {
		err = r.Step()
	}
	if err == io.EOF {
		err = nil
	}
	return checked(t, r.Finish(analysis.StateAfter(err, r.Progress().References))).Encode()
}

// dividedSpecs returns a random spec for which helpers can read the trace independently.
func dividedSpecs(rng *rand.Rand) analysis.Spec {
	spec := analysis.Spec{Kinds: trace.AllKinds, Mergeable: rng.IntN(4) == 0}
	switch rng.IntN(4) {
	case 0:
		spec.Analyses, spec.Utilisation, spec.Previous = analysis.Sites|analysis.Counters, []uint64{1 << 9, 1 << 11}, true
	case 1:
		spec.Analyses, spec.LineBytes = analysis.Sites|analysis.Sharing, []uint32{32, 64}
	case 2:
		spec.Analyses = analysis.Locality | analysis.Sets
	}
	return spec
}

func TestDividedEqualsRunner(t *testing.T) {
	joined := 0
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 21))
		p := allocatingProgram()
		file := container(t, rng, p, allocatingSteps(rng, p, 1+rng.IntN(12_000)))
		spec := dividedSpecs(rng)
		want, _ := analyseSequentially(t, spec, readerOf(file))
		for _, workers := range []int{2, 3, 8} {
			d := divided(t, spec, file, workers, 1+rng.IntN(4000), countingHelpers(&joined))
			if got := toItsEnd(t, d); !bytes.Equal(got, want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers differs from the result of one worker; spec: %+v", seed, workers, spec)
			}
		}
	}
	if joined < 200 {
		t.Errorf("%d segments were joined, want at least 200", joined)
	}
}

// countingHelpers returns helpers that count the segments that they analyse.
func countingHelpers(segments *int) func(int, analysis.Spec, trace.Source) func(func()) []analysis.Helper {
	return func(n int, spec analysis.Spec, source trace.Source) func(func()) []analysis.Helper {
		return func(wake func()) (list []analysis.Helper) {
			for _, h := range analysis.Goroutines(n, spec, source)(wake) {
				list = append(list, &counted{h, segments})
			}
			return list
		}
	}
}

type counted struct {
	analysis.Helper
	segments *int
}

func (c *counted) Segment() analysis.Segment {
	s := c.Helper.Segment()
	if s.Profile != nil {
		*c.segments++
	}
	return s
}

// TestDividedWithFailingHelpers checks that the result does not change if helpers return nothing,
// or stop early at random positions.
func TestDividedWithFailingHelpers(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 22))
		p := allocatingProgram()
		file := container(t, rng, p, allocatingSteps(rng, p, 1+rng.IntN(12_000)))
		spec := dividedSpecs(rng)
		want, _ := analyseSequentially(t, spec, readerOf(file))
		bad := func(n int, spec analysis.Spec, source trace.Source) func(func()) []analysis.Helper {
			return func(wake func()) (list []analysis.Helper) {
				for range n {
					list = append(list, &unreliableHelper{spec: spec, source: source, rng: rng})
				}
				return list
			}
		}
		for _, segment := range []int{0, 1 + rng.IntN(4000)} {
			if got := toItsEnd(t, divided(t, spec, file, 2+rng.IntN(3), segment, bad)); !bytes.Equal(got, want.Encode()) {
				t.Fatalf("seed %d: unreliable helpers change the result; spec: %+v", seed, spec)
			}
		}
	}
}

// unreliableHelper is a helper that runs in the goroutine of its caller and sometimes fails.
type unreliableHelper struct {
	spec    analysis.Spec
	source  trace.Source
	rng     *rand.Rand
	run     *analysis.Stretcher
	err     error
	segment analysis.Segment
}

func (m *unreliableHelper) Begin(s analysis.Stretch) {
	if m.run == nil {
		m.run = analysis.NewStretcher(m.spec, m.source)
	}
	m.run.Begin(s)
	m.segment, m.err = analysis.Segment{}, nil
}

func (m *unreliableHelper) Cut() {
	if m.err == nil {
		m.segment, m.err = m.run.Segment(false), io.EOF
	}
}

func (m *unreliableHelper) Analysed() (uint64, bool) {
	if m.err != nil {
		return 0, true
	}
	switch m.err = m.run.Step(); {
	case m.rng.IntN(12) == 0:
		m.err = io.ErrUnexpectedEOF
	case m.err == io.EOF:
		m.segment = m.run.Segment(true)
	case m.rng.IntN(12) == 0:
		m.Cut()
	}
	references, _ := m.run.Progress()
	return references, m.err != nil
}

func (m *unreliableHelper) Segment() analysis.Segment { return m.segment }

func (m *unreliableHelper) Gone() bool { return false }

func (m *unreliableHelper) Close() {}

// TestDividedResumes checks that a saved run can be continued with or without helpers.
func TestDividedResumes(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 23))
		p := allocatingProgram()
		file := container(t, rng, p, allocatingSteps(rng, p, 2000+rng.IntN(12_000)))
		spec := dividedSpecs(rng)
		want, _ := analyseSequentially(t, spec, readerOf(file))
		workers, segment := 2+rng.IntN(3), 1+rng.IntN(2000)
		first := divided(t, spec, file, workers, segment, analysis.Goroutines)
		for range 1 + rng.IntN(20) {
			if err := first.Step(); err != nil {
				break
			}
		}
		var saved bytes.Buffer
		if err := first.State().EncodeTo(&saved); err != nil {
			t.Fatal(err)
		}
		first.Close()
		third, err := analysis.NewRunner(spec, readerOf(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range []analysis.Run{divided(t, spec, file, workers, segment, analysis.Goroutines), third} {
			if err := run.Restore(saved.Bytes()); err != nil {
				t.Fatal(err)
			}
			if got := toItsEnd(t, run); !bytes.Equal(got, want.Encode()) {
				t.Fatalf("seed %d: the result of a resumed run differs from the result of an uninterrupted run", seed)
			}
		}
	}
}

// TestDamageEndsDividedRunAtSamePosition checks that damage to the trace ends a divided run and an
// undivided run at the same position, and that the results up to that position are equal.
func TestDamageEndsDividedRunAtSamePosition(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 24))
		p := allocatingProgram()
		file := container(t, rng, p, allocatingSteps(rng, p, 1+rng.IntN(12_000)))
		whole := sourceOf(t, file)
		file[rng.IntN(len(file))] ^= 1 << rng.IntN(8)
		spec := dividedSpecs(rng)
		want, wantErr := analyseSequentially(t, spec, readerOf(file))
		source, err := sgt.NewSource("t", bytes.NewReader(file), int64(len(file)), nil)
		if err != nil || source.Chunks() == nil {
			source = whole // use the unchanged file
		}
		r := readerOf(file)
		helpers := analysis.Goroutines(2, spec, changedSource{source, file})
		d, err := analysis.NewDivided(spec, r, r, source, analysis.DividedOptions{Helpers: helpers, SegmentReferences: 1 + rng.IntN(3000)})
		if err != nil {
			t.Fatal(err)
		}
		checkEnd(t, seed, d, want, wantErr)
	}
}

// checkEnd runs all steps of a run, and checks that the run ends with the given profile and error.
func checkEnd(t *testing.T, seed uint64, d *analysis.Divided, want *profile.Profile, wantErr error) {
	t.Helper()
	var err error
	for err == nil {
		err = d.Step()
	}
	if err == io.EOF {
		err = nil
	}
	got := checked(t, d.Finish(analysis.StateAfter(err, d.Progress().References)))
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Fatalf("seed %d: the run ended with %v, want %v", seed, err, wantErr)
	}
	if !bytes.Equal(got.Encode(), want.Encode()) {
		t.Fatalf("seed %d: the results before the error %v differ", seed, err)
	}
}

// changedSource is a trace source whose file was changed after the source had been created.
type changedSource struct {
	*sgt.Source
	file []byte
}

func (c changedSource) Open(chunk uint64, kinds trace.Kinds) trace.Mover {
	s, err := sgt.NewSource("t", bytes.NewReader(c.file), int64(len(c.file)), nil)
	if err != nil {
		return readerOf(nil)
	}
	return s.Open(chunk, kinds)
}

var _ analysis.Helper = (*unreliableHelper)(nil)
