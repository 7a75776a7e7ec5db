package analysis_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// analyseInParallel analyses a trace with several goroutines.
func analyseInParallel(t *testing.T, spec analysis.Spec, r trace.Reader, workers, segment int) (*profile.Profile, error) {
	t.Helper()
	p, err := analysis.NewParallel(spec, r, analysis.ParallelOptions{Workers: workers, SegmentReferences: segment})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for err == nil {
		err = p.Step()
	}
	if err == io.EOF {
		err = nil
	}
	return checked(t, p.Finish(analysis.StateAfter(err, p.Progress().References))), err
}

// analyseSequentially analyses a trace with one goroutine.
func analyseSequentially(t *testing.T, spec analysis.Spec, r trace.Reader) (*profile.Profile, error) {
	t.Helper()
	runner, err := analysis.NewRunner(spec, r)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		err = runner.Step()
	}
	if err == io.EOF {
		err = nil
	}
	return checked(t, runner.Finish(analysis.StateAfter(err, runner.Progress().References))), err
}

func spoiledReader(whole *trace.Batch) trace.Reader {
	r := tracetest.NewReader(whole, 4096)
	return overwritingReader{tracetest.Spoil(r), r}
}

func TestParallelEqualsRunner(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		n := 1 + rng.IntN(20_000)
		whole := randomTrace(rng, n)
		spec := specs(rng, n)
		spec.Skip = 0
		if rng.IntN(2) == 0 {
			whole.Thread = nil
			spec.Threads = nil
		}
		// some instructions always access the same number of bytes, and some do not
		if rng.IntN(3) == 0 {
			for range n {
				whole.PC = append(whole.PC, 0x400000+rng.Uint64N(1000))
			}
			spec.Analyses, spec.Previous = analysis.Sites, rng.IntN(2) == 0
		}
		want, _ := analyseSequentially(t, spec, tracetest.NewReader(whole, 4096))
		for _, workers := range []int{2, 3, 8} {
			segment := 1 + rng.IntN(n)
			got, _ := analyseInParallel(t, spec, spoiledReader(whole), workers, segment)
			if !bytes.Equal(got.Encode(), want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers with segments of %d references differs from the result of one worker; spec: %+v", seed, workers, segment, spec)
			}
		}
	}
}

// The test uses programs with sites, allocations and threads.
func TestParallelRunOfBlocksEqualsRunner(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 10))
		p := allocatingProgram()
		steps := allocatingSteps(rng, p, 1+rng.IntN(12_000))
		lone := [...]int{0, len(steps) / 2, len(steps), len(steps)}[rng.IntN(4)]
		for i := range steps[:lone] {
			steps[i].Thread = 1
		}
		spec := analysis.Spec{}
		if rng.IntN(2) == 0 {
			spec = analysis.Spec{Analyses: analysis.Sites | analysis.Counters, Utilisation: []uint64{1 << 9, 1 << 11}, Previous: true}
		}
		if rng.IntN(3) == 0 {
			spec = analysis.Spec{Analyses: analysis.Sites | analysis.Sharing, LineBytes: []uint32{32, 64}}
			if rng.IntN(2) == 0 {
				spec.Domains = [][]uint32{{0, 2}}
			}
			if rng.IntN(2) == 0 { // line utilisation is measured in the private caches of several cores
				spec.Utilisation, spec.UtilisationWays = []uint64{1 << 9, 1 << 11}, []uint32{0, 4}
			}
		}
		if rng.IntN(3) == 0 {
			spec.Limit = 1 + rng.Uint64N(8000)
		}
		spec.Mergeable = rng.IntN(4) == 0
		want, _ := analyseSequentially(t, spec, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 4096))
		for _, workers := range []int{2, 3, 8} {
			segment := 1 + rng.IntN(4000)
			got, _ := analyseInParallel(t, spec, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 4096), workers, segment)
			if !bytes.Equal(got.Encode(), want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers with segments of %d references differs from the result of one worker; spec: %+v", seed, workers, segment, spec)
			}
		}
	}
}

// A saved run can be continued with one or several goroutines.
func TestParallelResumes(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 11))
		p := allocatingProgram()
		rows := tracetest.Rows(p, allocatingSteps(rng, p, 2000+rng.IntN(12_000))...)
		for i := range rows.Thread {
			rows.Thread[i] = 1
		}
		spec := analysis.Spec{Mergeable: seed%3 == 0}
		want, _ := analyseSequentially(t, spec, tracetest.NewProgramReader(p, rows, 4096))
		options := analysis.ParallelOptions{Workers: 2 + rng.IntN(3), SegmentReferences: 1 + rng.IntN(2000)}
		first, err := analysis.NewParallel(spec, tracetest.NewProgramReader(p, rows, 4096), options)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(6) {
			if err := first.Step(); err != nil {
				break
			}
		}
		var saved bytes.Buffer
		if err := first.State().EncodeTo(&saved); err != nil {
			t.Fatal(err)
		}
		first.Close()
		second, err := analysis.NewParallel(spec, tracetest.NewProgramReader(p, rows, 4096), options)
		if err != nil {
			t.Fatal(err)
		}
		third, err := analysis.NewRunner(spec, tracetest.NewProgramReader(p, rows, 4096))
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range []interface {
			Restore([]byte) error
			Step() error
			Finish(profile.State) *profile.Profile
		}{second, third} {
			if err := run.Restore(saved.Bytes()); err != nil {
				t.Fatal(err)
			}
			for err = nil; err == nil; {
				err = run.Step()
			}
			if got := run.Finish(profile.State{}); err != io.EOF || !bytes.Equal(got.Encode(), want.Encode()) {
				t.Fatalf("seed %d: the result of a resumed run differs from the result of an uninterrupted run (%v)", seed, err)
			}
		}
		second.Close()
	}
}

// Bad records, limits and damage end a parallel run at the same position as a sequential run.
func TestDamageEndsParallelRunAtSamePosition(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 12))
		whole := randomTrace(rng, 1+rng.IntN(20_000))
		bad := map[int]bool{}
		for range rng.IntN(8) {
			bad[rng.IntN(whole.Len())] = true
		}
		var end error = io.EOF
		if rng.IntN(2) == 0 {
			end = io.ErrUnexpectedEOF
		}
		broken := func() trace.Reader { return &badRecordReader{rows: whole, bad: bad, end: end} }
		spec := analysis.Spec{SkipBad: rng.Uint64N(6), Kinds: trace.AllKinds, Limit: rng.Uint64N(3) * 5000}
		want, wantErr := analyseSequentially(t, spec, broken())
		got, err := analyseInParallel(t, spec, broken(), 2+rng.IntN(3), 1+rng.IntN(3000))
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("seed %d: the run ended with %v, want %v", seed, err, wantErr)
		}
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the results before the error %v differ", seed, err)
		}
	}
}

// badRecordReader is a reader that reports bad records before some rows.
type badRecordReader struct {
	rows     *trace.Batch
	bad      map[int]bool
	end      error
	next     int
	reported bool // whether the bad record before the row with index next has been reported
}

func (f *badRecordReader) Next(b *trace.Batch) error {
	b.Reset()
	if f.bad[f.next] && !f.reported {
		f.reported = true
		return &trace.SyntaxError{File: "a", Line: f.next, What: "label", Got: "x", Want: "y"}
	}
	if f.next == f.rows.Len() {
		return f.end
	}
	b.NeedThread()
	for b.Len() < b.Cap() && f.next < f.rows.Len() && (b.Len() == 0 || !f.bad[f.next]) {
		r, i := f.rows, f.next
		b.Append(r.Kind[i], r.Addr[i], r.Bytes[i], r.Thread[i], 0)
		f.next++
	}
	f.reported = false
	return nil
}
