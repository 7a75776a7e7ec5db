package estimate_test

import (
	"io"
	"math"
	"reflect"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/analysis/sharing"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// threadRows returns references by four threads and several sites. Some of the references span two
// lines.
func threadRows(seed uint64, n int) *trace.Batch {
	from := tracetest.Generate(n, tracetest.Mixed(seed, tracetest.Strided(24, 1<<16), tracetest.Zipf(1<<12, 1, seed)))
	b := trace.NewBatch(n)
	b.NeedThread()
	b.NeedPC()
	kinds := []trace.Kind{trace.Load, trace.Load, trace.Store, trace.Modify, trace.RangeRead}
	for i, addr := range from.Addr {
		r := addr*0x9e3779b97f4a7c15 + uint64(i)*0xbf58476d1ce4e5b9
		r ^= r >> 29
		b.Append(kinds[r%5], addr, uint32(r>>8%6)*16, uint32(r>>16%4), trace.Addr(0x400000+r>>24%8*16))
	}
	return b
}

// threadReader is a reader that returns a batch in small pieces, with all columns.
type threadReader struct {
	all      *trace.Batch
	at, step int
}

func (r *threadReader) Next(b *trace.Batch) error {
	if r.at == r.all.Len() {
		return io.EOF
	}
	b.Reset()
	b.NeedThread()
	b.NeedPC()
	for end := min(r.at+r.step, r.all.Len()); r.at < end; r.at++ {
		b.Append(r.all.Kind[r.at], r.all.Addr[r.at], r.all.Bytes[r.at], r.all.Thread[r.at], r.all.PC[r.at])
	}
	return nil
}

const everything = analysis.Sites | analysis.Sharing | analysis.Communication

// everythingOf returns a spec with all analyses. If the parameter sampled is not empty, the
// analyses use this sample.
func everythingOf(t testing.TB, sampled string, seed uint64) analysis.Spec {
	spec := analysis.Spec{Analyses: everything, Kinds: trace.AllKinds &^ trace.EventKinds}
	if sampled != "" {
		o := options(t, sampled)
		o.Seed = seed
		if spec.Sample = o; !o.KeepsLines() {
			spec.Analyses &^= analysis.Communication
		}
	}
	return spec
}

// TestFullSampleEqualsAllAccesses checks that a sample of all lines yields the same results for
// sites, threads and communication as a run without a sample, except for results that samples never
// contain.
func TestFullSampleEqualsAllAccesses(t *testing.T) {
	for seed := range uint64(4) {
		b := threadRows(seed, 30000)
		want := run(t, everythingOf(t, "", 0), &threadReader{all: b, step: 1000})
		got := run(t, everythingOf(t, "space=1", seed), &threadReader{all: b, step: 777})
		if len(want.Sharing) == 0 || want.Communication == nil || want.Sites == nil || want.Sites.Coherent == nil {
			t.Fatal("the profile has no counts by thread")
		}
		for i := range want.Sharing {
			withoutSets(&want.Sharing[i])
		}
		want.Communication.Granules = want.Communication.Granules[:2]
		want.Locality, want.Sampled = got.Locality, got.Sampled // other tests check these fields
		want.Timeline, want.Sites.Covered = nil, nil            // samples contain neither
		if string(want.Encode()) != string(got.Encode()) {
			t.Errorf("seed %d: the results differ from the results of a run without a sample", seed)
			reportDifferences(t, want, got)
		}
	}
}

func withoutSets(s *profile.Sharing) {
	for i := range s.Cores {
		c := &s.Cores[i]
		c.Private.Sets, c.Foreign.Sets, c.Coherent.Sets = profile.SetTable{}, profile.SetTable{}, profile.SetTable{}
	}
	for i := range s.Domains {
		s.Domains[i].Sets, s.Domains[i].Foreign.Sets = profile.SetTable{}, profile.SetTable{}
		for k := range s.Domains[i].Members {
			s.Domains[i].Members[k].Change = profile.Change{}
		}
	}
}

// TestSampleIsConsistent checks that the counts are consistent at any sampling rate, and that
// encoding and decoding preserves the counts.
func TestSampleIsConsistent(t *testing.T) {
	for seed := range uint64(3) {
		for _, mode := range []string{"space=0.9", "space=0.3", "space=0.07", "space=0.01", "space=0.0001", "lines=64", "lines=1000", "time=1", "time=10", "time=3000", "time=1e6"} {
			spec := everythingOf(t, mode, seed)
			spec.LineBytes = []uint32{16, 64, 4096}[:1+seed%3]
			p := run(t, spec, &threadReader{all: threadRows(seed, 8000), step: 900})
			if err := p.Check(); err != nil {
				t.Fatalf("%s, seed %d: %v", mode, seed, err)
			}
			if p.Sites.Coherent == nil || p.SharingAt(p.Sites.LineBytes) == nil {
				t.Fatalf("%s, seed %d: the profile has no counts of sites on cores", mode, seed)
			}
			again, err := profile.Decode(p.Encode())
			if err != nil {
				t.Fatalf("%s, seed %d: %v", mode, seed, err)
			}
			if string(again.Encode()) != string(p.Encode()) {
				t.Errorf("%s, seed %d: encoding and decoding changes the profile", mode, seed)
			}
		}
	}
}

// TestSampleRestore checks that the profile of a run that is saved and restored at any position is
// byte-identical to the profile of an uninterrupted run.
func TestSampleRestore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		all := threadRows(seed, 3000)
		spec := everythingOf(t, rapid.SampledFrom([]string{"space=1", "space=0.2", "space=0.02", "lines=100", "time=20", "time=500"}).Draw(rt, "mode"), seed)
		spec.LineBytes = rapid.SampledFrom([][]uint32{nil, {16, 64}, {128}}).Draw(rt, "line sizes")
		if rapid.Bool().Draw(rt, "by default") {
			spec.Analyses = analysis.Default
		}
		want := run(t, spec, &threadReader{all: all, step: 250})
		half, err := analysis.NewRunner(spec, &threadReader{all: all, step: 250})
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(0, 12).Draw(rt, "steps") {
			if err := half.Step(); err != nil {
				rt.Fatal(err)
			}
		}
		again, err := analysis.NewRunner(spec, &threadReader{all: all, step: 150})
		if err == nil {
			err = again.Restore(half.Save())
		}
		for err == nil {
			err = again.Step()
		}
		if err != io.EOF {
			rt.Fatal(err)
		}
		if string(again.Finish(profile.State{}).Encode()) != string(want.Encode()) {
			rt.Error("the interruption changes the result")
		}
	})
}

// estimatedTotals returns the totals that are estimated from a sample.
func estimatedTotals(p *profile.Profile) map[string]float64 {
	list := map[string]float64{}
	for i := range p.Sites.Code {
		s := &p.Sites.Code[i]
		name := s.Kind.String() + strconv.FormatUint(s.PC, 16)
		list["references "+name] = float64(s.References())
		list["cold "+name] = float64(s.Reuse.Cold)
		for _, b := range s.Reuse.Bins {
			if profile.SiteBinFrom(int(b.Bin)) >= 256 {
				list["far "+name] += float64(b.Count)
			}
		}
		c := &p.Sites.Coherent.Code[i]
		list["lost "+name] = float64(c.Coherence())
		list["on cores "+name] = float64(coherentMissesAt(c, 512))
	}
	s := &p.Sharing[0]
	for i := range s.Cores {
		c, name := &s.Cores[i], strconv.Itoa(i)
		list["private "+name] = float64(profile.NewCurve(&c.Private.Distances, c.Private.Cold).Misses(512))
		list["coherent "+name] = float64(profile.NewCurve(&c.Coherent.Distances, c.Coherent.Cold+c.Coherent.Lost.Total()).Misses(512))
		list["lost "+name] = float64(c.Coherent.Lost.Total())
		list["concurrent "+name] = float64(profile.NewCurve(&s.Domains[0].Members[i].Distances, s.Domains[0].Members[i].Cold).Misses(512))
	}
	if p.Communication == nil {
		return list
	}
	for _, g := range p.Communication.Granules {
		for _, f := range g.Flows {
			name := strconv.Itoa(int(g.Bytes)) + " " + strconv.Itoa(int(f.From)) + strconv.Itoa(int(f.To))
			list["events "+name], list["transfers "+name] = float64(f.Events), float64(f.Transfers)
		}
	}
	return list
}

// TestSampleIsUnbiased checks that the means of many samples equal the true values, within four
// standard errors plus 1 %. The additional 1 % allows for a small bias in distances that occur for
// only a few lines, and in distances that are estimated from reuse times.
func TestSampleIsUnbiased(t *testing.T) {
	const samples = 40
	all := threadRows(7, 20000)
	want := estimatedTotals(run(t, everythingOf(t, "", 0), &threadReader{all: all, step: 4000}))
	for _, mode := range []string{"space=0.2", "lines=700", "time=20"} {
		t.Run(mode, func(t *testing.T) {
			sums, squares := map[string]float64{}, map[string]float64{}
			for seed := range uint64(samples) {
				for name, x := range estimatedTotals(run(t, everythingOf(t, mode, seed), &threadReader{all: all, step: 4000})) {
					sums[name] += x
					squares[name] += x * x
				}
			}
			for name, w := range want {
				if _, is := sums[name]; !is {
					continue // samples have no pages, and samples of single accesses have no communication
				}
				mean := sums[name] / samples
				deviation := math.Sqrt(max(0, squares[name]/samples-mean*mean) / (samples - 1))
				if off := math.Abs(mean - w); off > 4*deviation+w/100 {
					t.Errorf("%s: the mean is %.0f, want %.0f; the standard error is %.1f", name, mean, w, deviation)
				}
			}
		})
	}
}

// TestSiteMissesAddUp checks that, even in a sample, the misses of all sites and the unattributed
// misses add up to the predicted misses of the cache, and that no site has more misses than
// accesses.
func TestSiteMissesAddUp(t *testing.T) {
	for seed := range uint64(5) {
		p := run(t, everythingOf(t, "space=0.1", seed), &threadReader{all: threadRows(seed, 20000), step: 900})
		r, ok := attribution.New(p)
		if !ok {
			t.Fatal("the profile has no sites")
		}
		for lines := uint64(8); lines <= 1<<14; lines *= 2 {
			for _, ways := range []uint32{0, 4} {
				list, _, err := r.Attribute(hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: lines * 64, Ways: ways, LineBytes: 64}}})
				if err != nil {
					t.Fatal(err)
				}
				sum := list[0].Rest
				for i, n := range list[0].Sites {
					sum += n
					if most := float64(p.Sites.Code[i].Reuse.Accesses()); n < 0 || n > most*(1+1e-9) {
						t.Errorf("seed %d, %d lines: a site has %.1f misses, but only %.0f accesses", seed, lines, n, most)
					}
				}
				if want := list[0].Level.Misses; math.Abs(sum-want) > 1e-6*want || list[0].Exact {
					t.Errorf("seed %d, %d lines, %d ways: the misses of the sites add up to %.1f, want the %.1f misses of the cache; exact: %v", seed, lines, ways, sum, want, list[0].Exact)
				}
			}
		}
	}
}

// reportDifferences reports which results differ between two profiles.
func reportDifferences(t *testing.T, want, got *profile.Profile) {
	t.Helper()
	parts := func(p *profile.Profile) map[string]any {
		list := map[string]any{"sites": p.Sites, "totals": p.Totals}
		if c := p.Communication; c != nil {
			list["granules"], list["pairs"], list["windows"] = c.Granules, c.Pairs, c.Windows
			list["owners"], list["false sharing"] = c.Owners, c.False
		}
		return list
	}
	others := parts(got)
	for name, w := range parts(want) {
		if !reflect.DeepEqual(w, others[name]) {
			t.Errorf("%s: got\n%.300v\nwant\n%.300v", name, others[name], w)
		}
	}
}

// FuzzKeptRestore checks that no damaged state of a sample of lines causes a panic.
func FuzzKeptRestore(f *testing.F) {
	all := threadRows(3, 1500)
	after := func(spec analysis.Spec) *profile.Profile {
		runner, err := analysis.NewRunner(spec, &threadReader{all: all, step: 500})
		for range 2 {
			if err == nil {
				err = runner.Step()
			}
		}
		if err != nil {
			f.Fatal(err)
		}
		d := codec.NewDecoder(runner.Save())
		for range 5 {
			d.Uint() // skip the beginning of the state, which belongs to the runner
		}
		p, err := profile.Decode(d.Rest())
		if err != nil {
			f.Fatal(err)
		}
		return p
	}
	specs := []analysis.Spec{everythingOf(f, "space=0.5", 1), everythingOf(f, "space=0.1", 2), everythingOf(f, "lines=100", 3), everythingOf(f, "time=20", 4)}
	specs[1].Analyses = analysis.Sharing
	var saved []*profile.Profile
	for i := range specs {
		saved = append(saved, after(specs[i]))
		f.Add(uint8(i), saved[i].Segment.Kept)
	}
	f.Fuzz(func(t *testing.T, which uint8, state []byte) {
		spec := specs[which%4]
		before := saved[which%4]
		p := &profile.Profile{Input: before.Input, Totals: before.Totals, Locality: before.Locality, Sampled: before.Sampled,
			Segment: &profile.Segment{Kept: state}}
		for _, a := range followersOf(spec) {
			if a.Restore(p) != nil {
				return
			}
			if err := a.Consume(all); err != nil {
				return
			}
			a.Result(p, true)
		}
	})
}

// followersOf returns the analyses of the sample, except the locality analysis.
func followersOf(spec analysis.Spec) []analysis.Analysis {
	spec = spec.WithDefaults()
	none := func() *trace.Program { return nil }
	w := analysis.Wanted{LineBytes: 64, Sharing: &sharing.Options{LineBytes: spec.LineBytes}, Program: none}
	if spec.Analyses&analysis.Sites != 0 {
		w.Sites, w.Communication = &sites.Options{LineBytes: 64}, true
	}
	return spec.Sample.Followers(w)
}

// TestEncodingPreservesIntervals checks that encoding and decoding preserves all intervals.
func TestEncodingPreservesIntervals(t *testing.T) {
	for _, mode := range []string{"space=0.1", "lines=300", "time=40"} {
		spec := everythingOf(t, mode, 3)
		p := run(t, spec, &threadReader{all: threadRows(3, 20000), step: 900})
		if p.Sharing[0].Cores[0].Off == nil || p.Sharing[0].Domains[0].Members[0].Bounds == nil || len(p.Sites.Code[0].Reuse.Off) == 0 ||
			spec.Sample.KeepsLines() && p.Communication.Off == nil {
			t.Fatalf("%s: an estimate has no interval", mode)
		}
		again, err := profile.Decode(p.Encode())
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if !reflect.DeepEqual(p.Sharing[0].Cores[1].Off, again.Sharing[0].Cores[1].Off) || !reflect.DeepEqual(p.Sites.Code[1].Reuse.Off, again.Sites.Code[1].Reuse.Off) ||
			len(p.Sites.Coherent.Code[1].Off) == 0 || !reflect.DeepEqual(p.Sites.Coherent.Code[1].Off, again.Sites.Coherent.Code[1].Off) ||
			p.Communication != nil && !reflect.DeepEqual(p.Communication.Off, again.Communication.Off) {
			t.Errorf("%s: encoding and decoding changes the intervals", mode)
		}
	}
}

// TestIntervalsCoverTrueValues checks, separately for cores, sites, flows and classes, that 90 % of
// the intervals of many samples contain the true value.
func TestIntervalsCoverTrueValues(t *testing.T) {
	const samples, capacity = 20, 512
	all := threadRows(7, 40000)
	want := run(t, everythingOf(t, "", 0), &threadReader{all: all, step: 4000})
	for _, mode := range []string{"space=0.1", "lines=500", "time=20"} {
		held, of := map[string]int{}, map[string]int{}
		note := func(sort string, low, truth, high float64) {
			if of[sort]++; low <= truth && truth <= high {
				held[sort]++
			}
		}
		about := func(sort string, got, off, truth uint64) {
			note(sort, float64(got)-float64(off), float64(truth), float64(got)+float64(off))
		}
		bounded := func(sort string, bounds []profile.Bound, truth uint64) {
			b := profile.BoundAt(bounds, capacity)
			note(sort, float64(b.Low), float64(truth), float64(b.High))
		}
		for seed := range uint64(samples) {
			got := run(t, everythingOf(t, mode, seed), &threadReader{all: all, step: 4000})
			for i := range got.Sharing[0].Cores {
				g, w := &got.Sharing[0].Cores[i], &want.Sharing[0].Cores[i]
				bounded("private", g.Off.Private, profile.NewCurve(&w.Private.Distances, w.Private.Cold).Misses(capacity))
				bounded("coherent", g.Off.Coherent, profile.NewCurve(&w.Coherent.Distances, w.Coherent.Cold+w.Coherent.Lost.Total()).Misses(capacity))
				about("cold", g.Private.Cold, g.Off.Cold, w.Private.Cold)
				about("lost", g.Coherent.Lost.Total(), g.Off.Lost, w.Coherent.Lost.Total())
				about("invalidations", g.Coherent.Invalidations, g.Off.Invalidations, w.Coherent.Invalidations)
				m, n := &got.Sharing[0].Domains[0].Members[i], &want.Sharing[0].Domains[0].Members[i]
				bounded("members", m.Bounds, profile.NewCurve(&n.Distances, n.Cold).Misses(capacity))
			}
			for i := range got.Sites.Code {
				g, w := &got.Sites.Coherent.Code[i], &want.Sites.Coherent.Code[i]
				about("sites on cores", coherentMissesAt(g, capacity), g.OffAt(capacity), coherentMissesAt(w, capacity))
				about("sites", missesAt(&got.Sites.Code[i].Reuse, capacity), got.Sites.Code[i].Reuse.OffAt(capacity), missesAt(&want.Sites.Code[i].Reuse, capacity))
			}
			if got.Communication == nil {
				continue
			}
			for i, g := range got.Communication.Granules {
				w := want.Communication.Granules[i]
				for k := range g.Flows {
					about("flows", g.Flows[k].Events, got.Communication.Off.Granules[i].Flows[k].Events, w.Flows[k].Events)
				}
				for k := range g.Classes {
					about("classes", g.Classes[k].Granules, got.Communication.Off.Granules[i].Classes[k].Granules, w.Classes[k].Granules)
				}
			}
		}
		for sort, n := range of {
			t.Logf("%s, %s: %d of %d intervals contain the true value", mode, sort, held[sort], n)
			if held[sort]*10 < n*9 {
				t.Errorf("%s: the intervals of %s contain the true value in %d of %d runs", mode, sort, held[sort], n)
			}
		}
	}
}

// coherentMissesAt returns the number of misses of a private cache with the given number of lines.
func coherentMissesAt(r *profile.CoherentReuse, lines uint64) uint64 {
	return missesAt(&profile.Reuse{Cold: r.Cold + r.Coherence(), Bins: r.Bins}, lines)
}

// missesAt returns the number of misses of a cache with the given number of lines, which must be
// the edge of a bin.
func missesAt(r *profile.Reuse, lines uint64) uint64 {
	n := r.Cold
	for _, b := range r.Bins {
		if profile.SiteBinFrom(int(b.Bin)) >= lines {
			n += b.Count
		}
	}
	return n
}

// TestCommunicationWithLineLimit checks that a sample with a limited number of lines yields the
// same communication as a sample that uses the final rate from the start.
func TestCommunicationWithLineLimit(t *testing.T) {
	for seed := range uint64(4) {
		got := run(t, everythingOf(t, "lines=300", seed), &threadReader{all: threadRows(seed, 20000), step: 900})
		spec := everythingOf(t, "space=1", seed)
		o := spec.Sample.(sample.Options)
		o.Threshold = got.Sampled.Sizes[0].Threshold
		spec.Sample = o
		want := run(t, spec, &threadReader{all: threadRows(seed, 20000), step: 333})
		if o.Threshold == ^uint64(0) || len(got.Communication.Pairs) == 0 {
			t.Fatal("the rate was not halved")
		}
		g, w := got.Communication, want.Communication
		if !reflect.DeepEqual(g.Granules, w.Granules) || !reflect.DeepEqual(g.Pairs, w.Pairs) || !reflect.DeepEqual(g.Windows, w.Windows) || !reflect.DeepEqual(g.Off, w.Off) {
			t.Errorf("seed %d: the communication differs from the communication at the final rate", seed)
		}
		if len(g.Owners) != len(w.Owners) {
			t.Errorf("seed %d: %d objects have owners, want %d", seed, len(g.Owners), len(w.Owners))
		}
	}
}

// TestThreadsWithEveryAccessSampled checks that the misses of cores and sites and the number of
// invalidated lines are exact if the mean gap is one.
func TestThreadsWithEveryAccessSampled(t *testing.T) {
	for seed := range uint64(4) {
		all := threadRows(seed, 9000)
		want := run(t, everythingOf(t, "", 0), &threadReader{all: all, step: 1000})
		got := run(t, everythingOf(t, "time=1", seed), &threadReader{all: all, step: 777})
		g, w := &got.Sharing[0], &want.Sharing[0]
		same := func(what string, a, b *profile.Histogram, coldA, coldB uint64) {
			x, y := profile.NewCurve(a, coldA), profile.NewCurve(b, coldB)
			for lines := uint64(1); lines < 5000; lines += 7 {
				if x.Misses(lines) != y.Misses(lines) {
					t.Fatalf("seed %d, %s, %d lines: %d misses, want %d", seed, what, lines, x.Misses(lines), y.Misses(lines))
				}
			}
		}
		for i := range w.Cores {
			a, b := &g.Cores[i], &w.Cores[i]
			same("private", &a.Private.Distances, &b.Private.Distances, a.Private.Cold, b.Private.Cold)
			same("foreign", &a.Foreign.Distances, &b.Foreign.Distances, a.Foreign.Cold, b.Foreign.Cold)
			m, n := &g.Domains[0].Members[i], &w.Domains[0].Members[i]
			same("concurrent", &m.Distances, &n.Distances, m.Cold, n.Cold)
			if a.Coherent.Lost.Total() != b.Coherent.Lost.Total() || a.Coherent.Invalidations != b.Coherent.Invalidations {
				t.Errorf("seed %d: core %d has %d coherence misses and %d invalidations, want %d and %d", seed, i, a.Coherent.Lost.Total(), a.Coherent.Invalidations, b.Coherent.Lost.Total(), b.Coherent.Invalidations)
			}
		}
		for i := range want.Sites.Code {
			if a, b := &got.Sites.Code[i].Reuse, &want.Sites.Code[i].Reuse; a.Cold != b.Cold || !reflect.DeepEqual(a.Bins, b.Bins) {
				t.Errorf("seed %d: the counts of site %d are %v, want %v", seed, i, a, b)
			}
		}
	}
}

// TestMissesOfSmallCachesAreExact checks that, at any sampling rate, the misses of each core and of
// each site are exact for caches of up to 16 lines.
func TestMissesOfSmallCachesAreExact(t *testing.T) {
	all := threadRows(5, 20000)
	want := run(t, everythingOf(t, "", 0), &threadReader{all: all, step: 1000})
	for _, mode := range []string{"space=0.001", "lines=64"} {
		got := run(t, everythingOf(t, mode, 1), &threadReader{all: all, step: 777})
		for lines := uint64(1); lines <= 16; lines++ {
			hits := func(h *profile.Histogram) uint64 { return profile.NewCurve(h, 0).Hits(lines) }
			for i := range want.Sharing[0].Cores {
				a, b := &got.Sharing[0].Cores[i], &want.Sharing[0].Cores[i]
				m, n := &got.Sharing[0].Domains[0].Members[i], &want.Sharing[0].Domains[0].Members[i]
				if hits(&a.Private.Distances) != hits(&b.Private.Distances) || hits(&a.Coherent.Distances) != hits(&b.Coherent.Distances) || hits(&m.Distances) != hits(&n.Distances) {
					t.Fatalf("%s: core %d, %d lines: the number of hits is wrong", mode, i, lines)
				}
			}
		}
		for i := range want.Sites.Code {
			if a, b := missesAt(&got.Sites.Code[i].Reuse, 16), missesAt(&want.Sites.Code[i].Reuse, 16); a != b {
				t.Errorf("%s: site %d has %d misses in a cache of 16 lines, want %d", mode, i, a, b)
			}
		}
	}
}
