package state

import (
	"os"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// BenchmarkSnapshot measures how long each snapshot of a growing profile occupies the page's main
// thread.
func BenchmarkSnapshot(b *testing.B) {
	file, err := os.Open(tracetest.RealPath(b, "sort"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	r, err := open.Open("sort", file, open.Options{})
	if err != nil {
		b.Fatal(err)
	}
	runner, err := analysis.NewRunner(analysis.Spec{}, r)
	for err == nil {
		err = runner.Step()
	}
	p := runner.Profile(profile.State{})
	data := p.Encode()
	levels := hierarchy.Presets()[0].Levels
	var v *View
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"decode", func() { p, _ = profile.Decode(data) }},
		{"view", func() { v = NewView(p, 64) }},
		{"ask", func() { predictLevels(v, levels) }},
		{"curve", func() { v.MissCurve(nil) }},
		{"findings", func() { v.Findings(hierarchy.Presets()[0]) }},
		{"time", func() { v.OverTime(v.DefaultLog2Lines()) }},
	} {
		step.do()
		b.Run(step.name, func(b *testing.B) {
			for b.Loop() {
				step.do()
			}
		})
	}
}

// BenchmarkCode ranks a hundred thousand source locations, and then sorts them by a different
// column.
func BenchmarkCode(b *testing.B) {
	p := manySites(100_000)
	ranker, _ := attribution.New(p)
	levels, _, err := ranker.Attribute(hierarchy.Presets()[0])
	if err != nil {
		b.Fatal(err)
	}
	c := NewCode(ask.NewRun("", p), ranker, attribution.Site, levels)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"attribute", func() { levels, _, _ = ranker.Attribute(hierarchy.Presets()[0]) }},
		{"sum", func() { NewCode(ask.NewRun("", p), ranker, attribution.Site, levels) }},
		{"sort", func() { NewCodeView(c, "references", "") }},
		{"sort-words", func() { NewCodeView(c, "place", "") }},
		{"search", func() { NewCodeView(c, "", "function 7") }},
		{"rows", func() { NewCodeView(c, "", "7").Grid(-1).View(50, 20) }},
	} {
		b.Run(step.name, func(b *testing.B) {
			for b.Loop() {
				step.do()
			}
		})
	}
}

// manySites returns a profile with n sites, each of which has a few stack distances.
func manySites(n int) *profile.Profile {
	s := &profile.Sites{LineBytes: 64}
	hist := new(profile.Histogram)
	for i := range n {
		site := profile.Site{Number: uint32(i), Function: "function " + strconv.Itoa(i%997), File: "file" + strconv.Itoa(i%89) + ".c", Line: uint32(i)}
		for k := range 6 {
			d := uint32(i*7919+k*31337) % (1 << (4 + 2*k))
			d = uint32(profile.SiteBinFrom(profile.SiteBin(d)))
			at := profile.BinCount{Bin: uint8(profile.SiteBin(d)), Count: uint64(i%1000 + 1)}
			if n := len(site.Reuse.Bins); n == 0 || site.Reuse.Bins[n-1].Bin < at.Bin {
				site.Reuse.Bins = append(site.Reuse.Bins, at)
				hist.AddN(uint64(d), at.Count)
			}
		}
		site.Strides[profile.UnitStride] = site.Reuse.Accesses()
		s.Code = append(s.Code, site)
	}
	return &profile.Profile{Sites: s, Locality: []profile.Locality{{LineBytes: 64,
		Kinds: []profile.KindLocality{{Kind: trace.Load, Distances: *hist}}}}}
}
