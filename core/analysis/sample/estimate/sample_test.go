package estimate_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

var modes = []string{"space=1", "space=0.1", "lines=64", "time=1", "time=50", "time=1e5"}

func options(t testing.TB, text string) sample.Options {
	o, err := sample.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// rows returns random references of several kinds, some of which span several lines.
func rows(seed uint64, n int) *trace.Batch {
	b := tracetest.Generate(n, tracetest.Mixed(seed, tracetest.Strided(24, 1<<14), tracetest.Zipf(1<<9, 1, seed)))
	kinds := []trace.Kind{trace.Load, trace.Store, trace.Modify, trace.RangeRead}
	for i := range b.Addr {
		b.Kind[i] = kinds[(b.Addr[i]>>3^uint64(i)>>5)%4]
		b.Bytes[i] = uint32(b.Addr[i]>>2%5) * 40
	}
	return b
}

// reader is a reader that returns a batch in small pieces.
type reader struct {
	all  *trace.Batch
	at   int
	step int
}

func (r *reader) Next(b *trace.Batch) error {
	b.Reset()
	if r.at == r.all.Len() {
		return io.EOF
	}
	for end := min(r.at+r.step, r.all.Len()); r.at < end; r.at++ {
		b.Append(r.all.Kind[r.at], r.all.Addr[r.at], r.all.Bytes[r.at], 0, 0)
	}
	return nil
}

func run(t testing.TB, spec analysis.Spec, r trace.Reader) *profile.Profile {
	runner, err := analysis.NewRunner(spec, r)
	for err == nil {
		err = runner.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return runner.Finish(profile.State{})
}

// TestCountsAreConsistent checks that, for any sample, the number of accesses of each kind is
// exact, the profile is consistent, and the profile can be encoded and decoded without a change.
func TestCountsAreConsistent(t *testing.T) {
	for _, mode := range modes {
		for seed := range uint64(4) {
			all := rows(seed, 30_000)
			spec := analysis.Spec{LineBytes: []uint32{16, 64}, Analyses: analysis.Locality}
			want := run(t, spec, &reader{all: all, step: 1000})
			spec.Sample = options(t, mode)
			p := run(t, spec, &reader{all: all, step: 700})
			for i := range p.Locality {
				if got := len(p.Locality[i].Kinds); got != 4 {
					t.Fatalf("%s: the profile has %d kinds of references, want 4", mode, got)
				}
				for k := range p.Locality[i].Kinds {
					if got, want := p.Locality[i].Kinds[k].Accesses(), want.Locality[i].Kinds[k].Accesses(); got != want {
						t.Errorf("%s: %d accesses of kind %d, want %d", mode, got, k, want)
					}
				}
			}
			back, err := profile.Decode(p.Encode())
			if err != nil {
				t.Fatalf("%s: %v", mode, err)
			}
			if back.Digest() != p.Digest() || back.Sampled == nil || back.Sampled.Read != 30_000 {
				t.Errorf("%s: encoding and decoding changes the profile", mode)
			}
		}
	}
}

// TestRestore checks that the profile of a run that is saved and restored at any position is
// byte-identical to the profile of an uninterrupted run.
func TestRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom(modes).Draw(t, "mode")
		o, err := sample.Parse(mode)
		if err != nil {
			t.Fatal(err)
		}
		o.Seed = rapid.Uint64().Draw(t, "seed")
		all := rows(rapid.Uint64Range(0, 5).Draw(t, "trace"), 20_000)
		spec := analysis.Spec{Sample: o, LineBytes: []uint32{32, 64}, Analyses: analysis.Locality}
		finish := func(r *analysis.Runner) []byte {
			for {
				if err := r.Step(); err == io.EOF {
					return r.Finish(profile.State{}).Encode()
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
		fresh := func() *analysis.Runner {
			r, err := analysis.NewRunner(spec, &reader{all: all, step: 999})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		want := finish(fresh())
		half := fresh()
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			if err := half.Step(); err != nil {
				t.Fatal(err)
			}
		}
		again := fresh()
		if err := again.Restore(half.Save()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(finish(again), want) {
			t.Fatalf("%s: the profile of the resumed run differs", mode)
		}
		if !bytes.Equal(finish(half), want) {
			t.Fatalf("%s: saving the run changes its profile", mode)
		}
	})
}

func TestRestoreRejectsOtherSamples(t *testing.T) {
	spec := analysis.Spec{Sample: options(t, "space=0.1"), Analyses: analysis.Locality}
	r, err := analysis.NewRunner(spec, &reader{all: rows(1, 100), step: 100})
	if err != nil {
		t.Fatal(err)
	}
	saved := r.Save()
	for _, other := range []analysis.Sampling{options(t, "space=0.2"), options(t, "time=10"), nil} {
		spec.Sample = other
		if r, err = analysis.NewRunner(spec, &reader{all: rows(1, 100), step: 100}); err != nil {
			t.Fatal(err)
		}
		if r.Restore(saved) == nil {
			t.Errorf("a run with the sample %v continues from a state with a different sample, want an error", other)
		}
	}
}

// TestIntervalSample checks that exactly the references in the sampled intervals of the run are
// analysed.
func TestIntervalSample(t *testing.T) {
	all := rows(2, 5000)
	o := options(t, "onoff=30/70")
	kinds := trace.Kinds(1<<trace.Load | 1<<trace.Store)
	r := sample.NewOnOff(&reader{all: all, step: 333}, o, kinds, nil)
	want, seen := trace.NewBatch(5000), 0
	for i := range all.Addr {
		if seen%70 < 30 {
			want.Append(all.Kind[i], all.Addr[i], all.Bytes[i], 0, 0)
		}
		if kinds.Has(all.Kind[i]) {
			seen++
		}
	}
	got, b := trace.NewBatch(5000), trace.NewBatch(333)
	for {
		err := r.Next(b)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Addr {
			got.Append(b.Kind[i], b.Addr[i], b.Bytes[i], 0, 0)
		}
	}
	if got.Len() != want.Len() || r.Sampled().Read != uint64(seen) {
		t.Fatalf("the reader returned %d rows and read %d references, want %d and %d", got.Len(), r.Sampled().Read, want.Len(), seen)
	}
	for i := range got.Addr {
		if got.Addr[i] != want.Addr[i] || got.Kind[i] != want.Kind[i] {
			t.Fatalf("row %d differs", i)
		}
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{"", "space", "space=0", "space=1.1", "space=-1", "space=nan", "time=0", "time=-3", "time=1.5", "lines=63", "lines=1e9",
		"onoff=5", "onoff=0/5", "onoff=6/5", "onoff=5/", "thrice=3"} {
		_, err := sample.Parse(text)
		var option *trace.OptionError
		if !errors.As(err, &option) || option.Got != text {
			t.Errorf("Parse(%q) = %v, want an error that states the valid values", text, err)
		}
	}
	if o := options(t, "space=1"); o.Threshold != ^uint64(0) {
		t.Errorf("the threshold for a rate of 1 is %#x, which excludes lines", o.Threshold)
	}
	if o := options(t, "onoff=1e3/2e3"); o.On != 1000 || o.Period != 2000 {
		t.Errorf("Parse of an onoff sample = %+v", o)
	}
}

// TestSteadyStateAllocatesNothing checks that no memory is allocated when all lines are known.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	b := tracetest.Generate(4096, tracetest.Uniform(1<<10, 3))
	for _, mode := range []string{"space=0.1", "lines=64"} {
		a := options(t, mode).Locality([]uint32{64})
		consume := func() {
			if err := a.Consume(b); err != nil {
				t.Fatal(err)
			}
		}
		for range 3000 {
			consume()
		}
		if n := testing.AllocsPerRun(20, consume); n > 1 {
			t.Errorf("%s: a batch causes %v allocations, want 0", mode, n)
		}
	}
}

// FuzzRestore checks that no damaged state of a sampler causes a panic.
func FuzzRestore(f *testing.F) {
	for _, mode := range modes {
		p := &profile.Profile{Segment: new(profile.Segment)}
		a := options(f, mode).Locality([]uint32{64})
		if err := a.Consume(rows(1, 3000)); err != nil {
			f.Fatal(err)
		}
		p.Totals.References[0] = 3000
		a.Result(p, true)
		f.Add(mode, p.Segment.Sample)
	}
	more := rows(2, 5000)
	f.Fuzz(func(t *testing.T, mode string, state []byte) {
		o, err := sample.Parse(mode)
		if err != nil || o.Mode == profile.OnOffSample {
			return
		}
		p := &profile.Profile{Segment: &profile.Segment{Sample: state}}
		p.Totals.References[0] = 3000
		a := o.Locality([]uint32{64})
		b := o.Locality([]uint32{64})
		b.Result(p, false)
		p.Locality = nil
		if a.Restore(p) != nil {
			return
		}
		if err := a.Consume(more); err != nil {
			t.Fatal(err)
		}
		p.Sampled, p.Segment = nil, new(profile.Segment)
		a.Result(p, true)
	})
}

// TestRestoreSampledIntervals checks that a run over sampled intervals can be saved and restored at
// any position without changing the profile, and that the restored run reports the correct number
// of references that it has read.
func TestRestoreSampledIntervals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := rows(rapid.Uint64Range(0, 5).Draw(rt, "trace"), 5000)
		spec := analysis.Spec{Sample: options(t, "onoff=300/700"), Kinds: trace.AllKinds &^ trace.EventKinds}
		want := run(t, spec, &reader{all: all, step: 333})
		if s := want.Sampled; s == nil || s.Read != 5000 || want.Totals.AllReferences() != 2200 {
			rt.Fatalf("the description of the sample in the profile is %+v", s)
		}
		half, err := analysis.NewRunner(spec, &reader{all: all, step: 333})
		for range rapid.IntRange(0, 15).Draw(rt, "steps") {
			if err == nil {
				err = half.Step()
			}
		}
		if err != nil {
			rt.Fatal(err)
		}
		again, err := analysis.NewRunner(spec, &reader{all: all, step: 500})
		if err == nil {
			err = again.Restore(half.Save())
		}
		for err == nil {
			err = again.Step()
		}
		if err != io.EOF {
			rt.Fatal(err)
		}
		if !bytes.Equal(again.Finish(profile.State{}).Encode(), want.Encode()) {
			rt.Error("the interruption changes the result")
		}
	})
}
