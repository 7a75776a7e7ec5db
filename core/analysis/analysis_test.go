package analysis_test

import (
	"bytes"
	"cmp"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// randomTrace returns a trace of n references of all kinds and sizes, some of which span several
// lines.
func randomTrace(rng *rand.Rand, n int) *trace.Batch {
	b := &trace.Batch{Thread: []uint32{}}
	for _, line := range stacktest.Random(rng, n) {
		size := uint32(1) << rng.UintN(4)
		switch rng.IntN(20) {
		case 0:
			size = 0
		case 1:
			size = rng.Uint32N(400)
		}
		b.Append(trace.Kind(rng.IntN(trace.NumKinds)), line%1e15*24, size, rng.Uint32N(3), 0)
	}
	return b
}

func run(t *testing.T, spec analysis.Spec, r trace.Reader) *profile.Profile {
	t.Helper()
	runner, err := analysis.NewRunner(spec, overwritingReader{tracetest.Spoil(r), r})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, runner)
	growing := checked(t, runner.Profile(profile.State{}))
	p := checked(t, runner.Finish(profile.State{}))
	if !bytes.Equal(growing.Encode(), p.Encode()) {
		t.Fatal("the final result differs from the result before Finish")
	}
	return p
}

// overwritingReader returns the batches of another reader, and overwrites each batch after use.
type overwritingReader struct {
	trace.Reader
	from trace.Reader
}

func (s overwritingReader) Header() trace.Header {
	if d, ok := s.from.(trace.Describer); ok {
		return d.Header()
	}
	return trace.Header{}
}

func finish(t *testing.T, runner *analysis.Runner) {
	t.Helper()
	for {
		if err := runner.Step(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// interrupted returns the result of a run that is saved and resumed up to ten times, each time
// after at most the given number of steps. The function open returns a reader of the trace. The
// function observe, which may be nil, receives some intermediate results.
func interrupted(t *testing.T, rng *rand.Rand, spec analysis.Spec, steps int, open func() trace.Reader, observe func(*profile.Profile)) *profile.Profile {
	t.Helper()
	var saved []byte
	for lives := 0; ; lives++ {
		r, err := analysis.NewRunner(spec, open())
		if err == nil && saved != nil {
			err = r.Restore(saved)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range rng.IntN(steps + 1) {
			if err = r.Step(); err != nil {
				break
			}
			if observe != nil && rng.IntN(5) == 0 {
				observe(checked(t, r.Profile(profile.State{})))
			}
		}
		if err == nil && lives < 10 {
			saved = r.Save()
			continue
		}
		for err == nil {
			err = r.Step()
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		return checked(t, r.Finish(profile.State{}))
	}
}

// resumed returns the result of a run that is saved after the given number of steps, and then
// resumed.
func resumed(t *testing.T, spec analysis.Spec, steps int, open func() trace.Reader) *profile.Profile {
	t.Helper()
	first, again := newRunner(t, spec, open()), newRunner(t, spec, open())
	for range steps {
		if err := first.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := again.Restore(first.Save()); err != nil {
		t.Fatal(err)
	}
	finish(t, again)
	return checked(t, again.Finish(profile.State{}))
}

// canContinue reports whether a run can be resumed from a saved state.
func canContinue(t *testing.T, spec analysis.Spec, r trace.Reader, state []byte) bool {
	t.Helper()
	runner := newRunner(t, spec, r)
	if runner.Restore(state) != nil {
		return false
	}
	finish(t, runner)
	runner.Finish(profile.State{}).Encode()
	return true
}

// appended joins random pairs of neighbouring segments until only one segment is left.
func appended(t *testing.T, rng *rand.Rand, spec analysis.Spec, parts []*profile.Profile) (*profile.Profile, error) {
	t.Helper()
	for len(parts) > 1 {
		i := rng.IntN(len(parts) - 1)
		joined, err := analysis.Append(spec, parts[i], parts[i+1])
		if err != nil {
			return nil, err
		}
		parts = slices.Replace(parts, i, i+2, checked(t, joined))
	}
	return parts[0], nil
}

// allocatesNothing checks that a run allocates no memory after the given number of steps.
func allocatesNothing(t *testing.T, r *analysis.Runner, steps int) {
	t.Helper()
	for range steps {
		if err := r.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _ = r.Step() }); n > 0 {
		t.Errorf("a batch causes %v allocations, want 0", n)
	}
}

// stateAfterStep saves a run after its first step. stateAfterStep returns the saved state, the
// profile in that state, and the number of bytes before the profile.
func stateAfterStep(t *testing.T, spec analysis.Spec, reader trace.Reader) (state []byte, p *profile.Profile, head int) {
	t.Helper()
	r, err := analysis.NewRunner(spec, reader)
	if err == nil {
		err = r.Step()
	}
	if err == nil {
		state = r.Save()
		head = savedHead(state)
		p, err = profile.Decode(state[head:])
	}
	if err != nil {
		t.Fatal(err)
	}
	return state, p, head
}

func checked(t *testing.T, p *profile.Profile) *profile.Profile {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// naiveLocality is a direct implementation of the definition of the locality analysis, row by row.
func naiveLocality(whole *trace.Batch, spec analysis.Spec, lineBytes uint64) (l profile.Locality, references [trace.NumKinds]uint64) {
	var model stacktest.Naive
	var selected []int
	for i, k := range whole.Kind {
		if spec.Kinds.Has(k) && (spec.Threads == nil || slices.Contains(spec.Threads, whole.Thread[i])) {
			selected = append(selected, i)
		}
	}
	selected = selected[min(int(spec.Skip), len(selected)):]
	if spec.Limit > 0 {
		selected = selected[:min(int(spec.Limit), len(selected))]
	}
	var kinds [trace.NumKinds]profile.KindLocality
	var accessed []trace.Line
	working := map[trace.Line]bool{}
	w := profile.WindowSize(spec.Start + uint64(len(selected)))
	l.LineBytes, l.Windows.References, l.Windows.First = uint32(lineBytes), w, spec.Start/w
	for n, i := range selected {
		references[whole.Kind[i]]++
		if n == 0 || (int(spec.Start)+n)%int(w) == 0 {
			l.Windows.Rows = append(l.Windows.Rows, profile.WindowRow{})
			l.Windows.Distinct = append(l.Windows.Distinct, 0)
			clear(working)
		}
		row, k := &l.Windows.Rows[len(l.Windows.Rows)-1], &kinds[whole.Kind[i]]
		last := (whole.Addr[i] + uint64(max(whole.Bytes[i], 1)) - 1) / lineBytes
		for line := whole.Addr[i] / lineBytes; line <= last; line++ {
			accessed = append(accessed, line)
			working[line] = true
			l.Windows.Distinct[len(l.Windows.Distinct)-1] = uint64(len(working))
			var d [1]uint32
			model.Distances([]trace.Line{line}, d[:])
			if d[0] == stack.Cold {
				k.Cold++
				row[profile.ColdBin]++
			} else {
				k.Distances.Add(uint64(d[0]))
				row[profile.DistanceBin(uint64(d[0]))]++
			}
		}
	}
	for k := range kinds {
		if kinds[k].Kind = trace.Kind(k); kinds[k].Accesses() > 0 {
			l.Kinds = append(l.Kinds, kinds[k])
		}
	}
	l.Sets = &profile.SetTable{Depths: *stacktest.DepthsInLists(accessed)}
	l.Sets.Omit(uint32(stack.AllSetNumbers &^ (cmp.Or(spec.SetNumbers, stack.AllSetNumbers) | 1)))
	return l, references
}

func specs(rng *rand.Rand, n int) analysis.Spec {
	spec := analysis.Spec{LineBytes: []uint32{64}, Kinds: trace.DataKinds, Mergeable: rng.IntN(2) == 0}
	if rng.IntN(2) == 0 {
		spec.LineBytes = []uint32{8, 128, 4096}
	}
	if rng.IntN(3) == 0 {
		spec.Kinds = trace.Kinds(1 + rng.UintN(uint(trace.AllKinds)))
	}
	if rng.IntN(3) == 0 {
		spec.Threads = []uint32{0, 2}
	}
	if rng.IntN(3) == 0 {
		spec.Skip = rng.Uint64N(uint64(n))
	}
	if rng.IntN(3) == 0 {
		spec.Limit = 1 + rng.Uint64N(uint64(n))
	}
	if rng.IntN(2) == 0 {
		spec.SetNumbers = stack.SetNumbers(1 + rng.UintN(uint(stack.AllSetNumbers)))
	}
	return spec
}

func TestRunnerEqualsNaive(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		whole := randomTrace(rng, 1+rng.IntN(12_000))
		spec := specs(rng, whole.Len())
		if spec.Skip == 0 && spec.Limit == 0 { // long enough for windows to double in a segment after the first
			spec.Mergeable, spec.Start = true, 1<<20-rng.Uint64N(12_000)
		}
		p := run(t, spec, tracetest.NewReader(whole, 1+rng.IntN(5000)))
		for i, lineBytes := range spec.LineBytes {
			want, references := naiveLocality(whole, spec, uint64(lineBytes))
			if p.Totals.References != references {
				t.Fatalf("seed %d: %v references, want %v", seed, p.Totals.References, references)
			}
			got := profile.Profile{Input: p.Input, Totals: p.Totals, Locality: p.Locality[i : i+1]}
			twin := profile.Profile{Input: p.Input, Totals: p.Totals, Locality: []profile.Locality{want}}
			if got.Digest() != twin.Digest() {
				t.Fatalf("seed %d: at %d-byte lines the profile differs from the reference implementation's", seed, lineBytes)
			}
		}
	}
}

// In a long trace, the size of the windows doubles several times. Tests with short traces compare
// the result with a naive implementation. In this test, the misses of all windows must add up to
// the misses of the whole run.
func TestWindowSizeDoubles(t *testing.T) {
	const references = 5_000_000
	whole := func() trace.Reader {
		return tracetest.Stream(references, tracetest.Mixed(5, tracetest.Sequential(1<<20), tracetest.Uniform(3000, 6)))
	}
	p := run(t, analysis.Spec{}, whole())
	if got, want := p.Locality[0].Windows.Distinct, distinctLines(t, whole(), p.Locality[0].Windows.References); !slices.Equal(got, want) {
		t.Errorf("the working sets are %v, want %v", got, want)
	}
	w := &p.Locality[0].Windows
	if w.References != 8192 || len(w.Rows) != (references+8191)/8192 {
		t.Fatalf("%d windows of %d references, want 611 of 8192", len(w.Rows), w.References)
	}
	h, cold := p.Locality[0].Histogram(trace.AllKinds)
	curve := profile.NewCurve(h, cold)
	for log2Lines := range 20 {
		var sum uint64
		for i := range w.Rows {
			sum += w.Rows[i].Misses(log2Lines)
		}
		if want := curve.Misses(1 << log2Lines); sum != want {
			t.Errorf("the windows' misses at 2^%d lines sum to %d, want %d", log2Lines, sum, want)
		}
	}
}

// distinctLines returns the number of distinct 64-byte lines that each window accesses.
func distinctLines(t *testing.T, r trace.Reader, window uint64) (distinct []uint64) {
	t.Helper()
	var references uint64
	lines := map[trace.Line]bool{}
	for b := trace.NewBatch(0); ; {
		if err := r.Next(b); err == io.EOF {
			return distinct
		} else if err != nil {
			t.Fatal(err)
		}
		for i, addr := range b.Addr {
			if references%window == 0 {
				clear(lines)
				distinct = append(distinct, 0)
			}
			references++
			for line := addr / 64; line <= (addr+uint64(max(b.Bytes[i], 1))-1)/64; line++ {
				lines[line] = true
			}
			distinct[len(distinct)-1] = uint64(len(lines))
		}
	}
}

// For any division of a trace into segments, the joined results of the segments equal the result of
// the whole trace, and joining is associative.
func TestAppend(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 4))
		n := 1 + rng.IntN(9000)
		if seed%20 == 0 {
			n = 1_100_000 // long enough for the window size to double, both within a segment and when segments are joined
		}
		whole := randomTrace(rng, n)
		spec := specs(rng, n)
		spec.Kinds, spec.Threads, spec.Skip, spec.Limit, spec.Mergeable = trace.AllKinds, nil, 0, 0, true
		want := analysis.AsSegment(run(t, spec, tracetest.NewReader(whole, 4096)))

		var parts []*profile.Profile
		for lo := 0; lo < n; {
			hi := min(n, lo+rng.IntN(1+n/2))
			part := spec
			part.Start = uint64(lo)
			parts = append(parts, run(t, part, tracetest.NewReader(tracetest.Part(whole, lo, hi), 1+rng.IntN(4096))))
			lo = hi
		}
		got, err := appended(t, rng, spec, parts)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(analysis.AsSegment(got).Encode(), want.Encode()) {
			t.Fatalf("seed %d: the joined profile differs from the profile of the whole trace", seed)
		}
	}
}

func TestAppendErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	whole := randomTrace(rng, 100)
	spec := analysis.Spec{Mergeable: true}
	a := run(t, spec, tracetest.NewReader(whole, 10))
	for name, next := range map[string]analysis.Spec{
		"a gap":                           {Mergeable: true, Start: 5000},
		"a profile that is not mergeable": {},
	} {
		b := run(t, next, tracetest.NewReader(whole, 10))
		if _, err := analysis.JoinSegments(spec, a, b); err == nil {
			t.Errorf("%s: the segments were joined, want an error", name)
		}
	}
}

// A run that was saved without set tables cannot be continued with set tables.
func TestRestoreWithoutSets(t *testing.T) {
	whole := randomTrace(rand.New(rand.NewPCG(2, 1)), 9000)
	saver, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Locality}, tracetest.NewReader(whole, 100))
	if err != nil {
		t.Fatal(err)
	}
	saved := saver.Save()
	const chosen = 4 // in the saved state of a new run, the offset of the byte that selects the analyses
	saved[chosen] = byte(analysis.Default)
	r, err := analysis.NewRunner(analysis.Spec{}, tracetest.NewReader(whole, 100))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Restore(saved); err == nil || !strings.Contains(err.Error(), "analyse the trace again from its start") {
		t.Errorf("Restore of a run without set tables = %v, want an error with the advice to analyse the trace again", err)
	}
}

// If a run is saved and restored at random positions, its profile is byte-identical to the profile
// of an uninterrupted run.
func TestSaveRestore(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		whole := randomTrace(rng, 1+rng.IntN(20_000))
		spec := specs(rng, whole.Len())
		want := run(t, spec, tracetest.NewReader(whole, 4096))
		got := interrupted(t, rng, spec, 30, func() trace.Reader { return tracetest.NewReader(whole, 1+rng.IntN(4096)) }, nil)
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the profile of the resumed run differs from the profile of the uninterrupted run", seed)
		}
	}
}

func TestRestoreErrors(t *testing.T) {
	whole := randomTrace(rand.New(rand.NewPCG(1, 1)), 60)
	fresh := func(spec analysis.Spec) *analysis.Runner {
		r, err := analysis.NewRunner(spec, tracetest.NewReader(whole, 30))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := fresh(analysis.Spec{})
	if err := r.Step(); err != nil {
		t.Fatal(err)
	}
	saved := r.Save()
	for _, other := range []analysis.Spec{{Skip: 1}, {LineBytes: []uint32{32}}, {Mergeable: true}, {Kinds: trace.AllKinds}, {Threads: []uint32{1}}, {Analyses: analysis.Locality}} {
		if err := fresh(other).Restore(saved); err == nil {
			t.Errorf("%+v: the run was restored, want an error", other)
		}
	}
	for i := range saved {
		damaged := slices.Clone(saved)
		damaged[i] ^= 4
		if i > 6 && fresh(analysis.Spec{}).Restore(damaged) == nil {
			t.Fatalf("byte %d changed: the run was restored, want an error", i)
		}
		if fresh(analysis.Spec{}).Restore(saved[:i]) == nil {
			t.Fatalf("cut at byte %d: the run was restored, want an error", i)
		}
	}
}

// The correct references are selected even if the sum of Limit and Skip overflows 64 bits.
func TestSumOfLimitAndSkipOverflows(t *testing.T) {
	whole := randomTrace(rand.New(rand.NewPCG(3, 3)), 100)
	spec := analysis.Spec{Kinds: trace.AllKinds, Skip: 10, Limit: 1<<64 - 1}
	p := run(t, spec, tracetest.NewReader(whole, 7))
	if n := p.Totals.AllReferences(); n != 90 {
		t.Errorf("a run that skips 10 of 100 references analysed %d references, want 90", n)
	}
}

// If references that span megabytes are analysed in pieces, the results do not change.
func TestLargeReferences(t *testing.T) {
	whole := &trace.Batch{}
	for i := range uint64(300) {
		whole.Append(trace.Load, i%7<<32, uint32(i%3)<<20, 0, 0)
	}
	spec := analysis.Spec{LineBytes: []uint32{4096}}
	want, references := naiveLocality(whole, spec.WithDefaults(), 4096)
	r, err := analysis.NewRunner(spec, tracetest.NewReader(whole, 300))
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	var saved []byte
	for err == nil {
		if err = r.Step(); steps == 2 {
			if n := r.Progress().References; n == 0 || n >= 300 {
				t.Errorf("three steps analysed %d references, want more than 0 and fewer than 300", n)
			}
			saved = r.Save()
		}
		steps++
	}
	p := checked(t, r.Profile(profile.State{}))
	twin := profile.Profile{Input: p.Input, Totals: p.Totals, Locality: []profile.Locality{want}}
	if err != io.EOF || p.Totals.References != references || p.Digest() != twin.Digest() {
		t.Errorf("the run ended with %v, or its profile differs from the reference implementation's", err)
	}
	again, err := analysis.NewRunner(spec, tracetest.NewReader(whole, 7))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Restore(saved); err != nil {
		t.Fatal(err)
	}
	finish(t, again)
	if again.Profile(profile.State{}).Digest() != p.Digest() {
		t.Errorf("saving the run within a batch changes the result")
	}
}

func TestSkipBadRecords(t *testing.T) {
	whole := randomTrace(rand.New(rand.NewPCG(1, 1)), 5000)
	for _, c := range []struct {
		tolerate uint64
		fails    bool
	}{{0, true}, {1, false}} {
		bad := &trace.SyntaxError{File: "t", Line: 1000}
		r, err := analysis.NewRunner(analysis.Spec{SkipBad: c.tolerate}, tracetest.Broken(whole, 1000, bad))
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			err = r.Step()
		}
		if (err == bad) != c.fails {
			t.Errorf("with one bad record and SkipBad = %d, the run ended with %v", c.tolerate, err)
		}
		if p := checked(t, r.Profile(profile.State{Partial: true})); p.Totals.BadRecords != c.tolerate {
			t.Errorf("BadRecords = %d, want %d", p.Totals.BadRecords, c.tolerate)
		}
	}
}

func TestSpecCheck(t *testing.T) {
	for _, bad := range []analysis.Spec{
		{LineBytes: []uint32{48}}, {LineBytes: []uint32{4}}, {LineBytes: []uint32{8192}}, {LineBytes: []uint32{0}},
		{LineBytes: []uint32{64, 64}}, {LineBytes: []uint32{64, 32}}, {Threads: []uint32{2, 1}}, {Kinds: 0x80},
	} {
		if _, err := analysis.NewRunner(bad, nil); err == nil {
			t.Errorf("%+v.Check() = nil, want an error", bad)
		}
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	p := tracetest.Mixed(5, tracetest.Sequential(1<<16), tracetest.Uniform(3000, 6))
	r, err := analysis.NewRunner(analysis.Spec{LineBytes: []uint32{32, 64}}, tracetest.Stream(10_000_000, p))
	if err != nil {
		t.Fatal(err)
	}
	allocatesNothing(t, r, 300)
}

// Each thread is listed once, in ascending order, regardless of interruptions and of which thread
// makes the first reference.
func TestThreadsInAnyOrder(t *testing.T) {
	whole := &trace.Batch{Thread: []uint32{}}
	for _, n := range rand.New(rand.NewPCG(1, 2)).Perm(3000) {
		whole.Append(trace.Load, 64, 8, 1<<32-1-uint32(n)%2000, 0)
	}
	spec := analysis.Spec{Analyses: analysis.Locality}
	first, err := analysis.NewRunner(spec, tracetest.NewReader(whole, 1000))
	if err == nil {
		err = first.Step()
	}
	if err != nil {
		t.Fatal(err)
	}
	again, err := analysis.NewRunner(spec, tracetest.NewReader(whole, 1000))
	if err == nil {
		err = again.Restore(first.Save())
	}
	if err != nil {
		t.Fatal(err)
	}
	finish(t, again)
	got := checked(t, again.Finish(profile.State{})).Totals.Threads
	if len(got) != 2000 || got[0] != 1<<32-2000 || !slices.IsSorted(got) || len(slices.Compact(got)) != 2000 {
		t.Errorf("the list has %d threads, starting with %d, ascending: %v; want 2000 threads, starting with %d", len(got), got[0], slices.IsSorted(got), uint32(1<<32-2000))
	}
}
