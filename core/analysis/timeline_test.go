package analysis_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// timelineProgram returns a program, its steps and a spec. The program either has several threads
// and data objects, or makes calls.
func timelineProgram(rng *rand.Rand, steps int) (*trace.Program, []tracetest.Step, analysis.Spec) {
	if rng.IntN(2) == 0 {
		p := allocatingProgram()
		spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Sites | analysis.Sharing}
		if rng.IntN(3) == 0 {
			spec.Utilisation = []uint64{1 << 9}
		}
		return p, allocatingSteps(rng, p, 1+rng.IntN(steps)), spec
	}
	p := callingProgram(rng)
	w, _ := randomRun(rng, p, 1+rng.IntN(steps))
	spec := callSpec
	if rng.IntN(2) == 0 {
		spec.Analyses |= analysis.Sharing
	}
	return p, w.steps, spec
}

// countsByPart returns all counts of a profile, or of a window of its timeline. Each key consists
// of three parts: the name of a site, data object or call path; the stack; and the bin.
func countsByPart(p *profile.Profile, counts []profile.TimeCount) map[string]uint64 {
	names := make([][]string, 3)
	for i := range p.Sites.Code {
		s := &p.Sites.Code[i]
		names[0] = append(names[0], fmt.Sprint("site ", s.Number, s.PC, s.Kind))
	}
	for i := range p.Sites.Data {
		o := &p.Sites.Data[i]
		names[1] = append(names[1], fmt.Sprint("object ", o.Kind, o.Number, o.Function, o.Name))
	}
	if p.Calls != nil {
		for i := range p.Calls.Paths {
			name := "path " + p.Calls.Paths[i].Function
			if i > 0 {
				name = names[2][p.Calls.Paths[i].Parent] + ";" + p.Calls.Paths[i].Function
			}
			names[2] = append(names[2], name)
		}
	}
	all := map[string]uint64{}
	for _, c := range counts {
		all[fmt.Sprint(names[c.Key.Part()][c.Key.Index()], " ", c.Key.Stack(), " ", c.Key.Bin())] += c.Count
	}
	return all
}

// wholeCounts returns the counts of the whole run in the form of a window.
func wholeCounts(p *profile.Profile) (counts []profile.TimeCount) {
	add := func(part profile.TimePart, index int, stack profile.TimeStack, cold uint64, bins []profile.BinCount) {
		for _, b := range bins {
			counts = append(counts, profile.TimeCount{Key: profile.NewTimeKey(part, uint32(index), stack, int(b.Bin)), Count: b.Count})
		}
		if cold > 0 {
			counts = append(counts, profile.TimeCount{Key: profile.NewTimeKey(part, uint32(index), stack, profile.ColdSiteBin), Count: cold})
		}
	}
	part := func(part profile.TimePart, i int, r *profile.Reuse, c *profile.CoherentReuse) {
		add(part, i, profile.TimeWhole, r.Cold, r.Bins)
		if c != nil {
			add(part, i, profile.TimeFound, c.Cold, c.Bins)
			add(part, i, profile.TimeLost, 0, c.Lost)
		}
	}
	onCores := func(list func(*profile.CoherentSites) []profile.CoherentReuse, i int, r *profile.Reuse) *profile.CoherentReuse {
		if p.Sites.Coherent == nil { // the run has one core
			return &profile.CoherentReuse{Cold: r.Cold, Bins: r.Bins}
		}
		return &list(p.Sites.Coherent)[i]
	}
	for i := range p.Sites.Code {
		r := &p.Sites.Code[i].Reuse
		part(profile.TimeSite, i, r, onCores(func(c *profile.CoherentSites) []profile.CoherentReuse { return c.Code }, i, r))
	}
	for i := range p.Sites.Data {
		r := &p.Sites.Data[i].Reuse
		part(profile.TimeObject, i, r, onCores(func(c *profile.CoherentSites) []profile.CoherentReuse { return c.Data }, i, r))
	}
	if p.Calls != nil {
		for i := range p.Calls.Paths {
			at := &p.Calls.Paths[i]
			c := &at.OnCores
			if !p.Calls.Coherent {
				c = &profile.CoherentReuse{Cold: at.Reuse.Cold, Bins: at.Reuse.Bins}
			}
			part(profile.TimePath, i, &at.Reuse, c)
		}
	}
	return counts
}

// The counts of a window are the differences between the counts of two runs: a run up to the end of
// the window, and a run up to the beginning of the window.
func TestTimelineMatchesDefinition(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 41))
		undo := func() {}
		if seed%3 == 0 {
			undo = analysis.LimitTimeline(1 + rng.IntN(200))
		}
		p, steps, spec := timelineProgram(rng, 6000)
		whole := tracetest.Rows(p, steps...)
		got := resultOf(t, spec, reading(p, whole, 1+rng.IntN(4096)))
		undo()
		if got.Sites == nil {
			continue
		}
		line, before := got.Timeline, map[string]uint64{}
		accesses := map[uint32]uint64{}
		for i := range line.Windows {
			part := spec
			part.Limit = uint64(i+1) * line.References
			end := resultOf(t, part, reading(p, whole, 4096))
			after, want := countsByPart(end, wholeCounts(end)), map[string]uint64{}
			for name, n := range after {
				if n != before[name] {
					want[name] = n - before[name]
				}
			}
			counts := countsByPart(got, line.Windows[i])
			if got.Sites.Coherent == nil { // the run has one core, so the timeline does not contain separate counts for it
				for name := range want {
					if _, is := counts[name]; !is && (bytes.Contains([]byte(name), []byte(" 1 "))) {
						delete(want, name)
					}
				}
			}
			if got.Sites.Data == nil {
				maps.DeleteFunc(want, func(name string, _ uint64) bool { return name[0] == 'o' })
			}
			if !maps.Equal(counts, want) {
				t.Fatalf("seed %d: the counts of window %d of %d are %v, want %v", seed, i, len(line.Windows), counts, want)
			}
			before = after
			compared++
		}
		line.Lanes = slices.Clone(line.Lanes)
		for i, lane := range line.Lanes {
			for _, n := range lane {
				accesses[got.Totals.Threads[i]] += n
			}
		}
		if len(line.Lanes) > 0 {
			want := map[uint32]uint64{}
			for _, thread := range got.Totals.Threads {
				only := spec
				only.Threads = []uint32{thread}
				want[thread] = resultOf(t, only, reading(p, whole, 4096)).Locality[0].Accesses()
			}
			if !maps.Equal(accesses, want) {
				t.Fatalf("seed %d: the accesses by thread are %v, want %v", seed, accesses, want)
			}
		}
	}
	if compared < 100 {
		t.Errorf("%d windows were compared, want at least 100", compared)
	}
}

// Even if the number of places is limited, the windows do not depend on whether the trace is
// divided among workers, into segments, or into interrupted runs.
func TestTimelineOfDividedRuns(t *testing.T) {
	joined, coarse := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 42))
		undo := analysis.LimitTimeline(1 + rng.IntN(150))
		p, steps, spec := timelineProgram(rng, 12_000)
		file := container(t, rng, p, steps)
		want, _ := analyseSequentially(t, spec, readerOf(file))
		if l := want.Timeline; l != nil && l.References > profile.TimelineWindow(want.Totals.AllReferences()) && len(l.Windows) > 1 {
			coarse++
		}
		for _, workers := range []int{2, 5} {
			if got := toItsEnd(t, divided(t, spec, file, workers, 1+rng.IntN(3000), countingHelpers(&joined))); !bytes.Equal(got, want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers differs from the result of one worker", seed, workers)
			}
		}
		whole := tracetest.Rows(p, steps...)
		again, _ := analyseSequentially(t, spec, reading(p, whole, 4096))
		got := interrupted(t, rng, spec, 12, func() trace.Reader { return reading(p, whole, 1+rng.IntN(500)) }, nil)
		if !bytes.Equal(got.Encode(), again.Encode()) {
			t.Fatalf("seed %d: interruptions change the result", seed)
		}
		undo()
	}
	if joined < 100 || coarse < 10 {
		t.Errorf("%d segments were joined, want at least 100; windows were joined in %d traces, want at least 10", joined, coarse)
	}
}

// If no window reaches the limit, the size of the windows depends only on the number of references.
// If every window exceeds the limit, there is a single window.
func TestTimelineIsBounded(t *testing.T) {
	p, steps := tracetest.Multiplication(16)
	whole := tracetest.Rows(p, slices.Repeat(steps, 60)...)
	for _, limit := range []int{1, 40, 1 << 17} {
		undo := analysis.LimitTimeline(limit)
		got := resultOf(t, analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Sites}, reading(p, whole, 1000))
		undo()
		line, size := got.Timeline, profile.TimelineWindow(got.Totals.AllReferences())
		places := 0
		for _, w := range line.Windows {
			seen := map[[2]uint64]bool{}
			for _, c := range w {
				seen[[2]uint64{uint64(c.Key.Part()), uint64(c.Key.Index())}] = true
			}
			places += len(seen)
		}
		if len(line.Windows) > 1 && places > limit || len(line.Windows) > profile.MaxTimelineWindows {
			t.Errorf("with a limit of %d entries, the timeline has %d entries in %d windows", limit, places, len(line.Windows))
		}
		if limit == 1 && len(line.Windows) != 1 || limit == 1<<17 && line.References != size {
			t.Errorf("with a limit of %d entries, the timeline has %d windows of %d references", limit, len(line.Windows), line.References)
		}
	}
}
