package diagnose_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/diagnose"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// withoutCode returns the profile of a trace that repeatedly loads from these addresses and
// contains no code.
func withoutCode(t *testing.T, repeat, n int, addr func(i int) uint64) *profile.Profile {
	t.Helper()
	b := &trace.Batch{}
	for range repeat {
		for i := range n {
			b.Addr, b.Bytes, b.Kind = append(b.Addr, addr(i)), append(b.Bytes, 8), append(b.Kind, trace.Load)
		}
	}
	return profileOf(t, b)
}

// profileOf returns the profile of a trace that contains these references.
func profileOf(t *testing.T, b *trace.Batch) *profile.Profile {
	t.Helper()
	r, err := analysis.NewRunner(analysis.Spec{}, tracetest.NewReader(b, 1000))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return r.Profile(profile.State{})
}

// TestTraceWithoutCode checks that a diagnosis distinguishes the conflict, capacity and cold misses
// of a whole run.
func TestTraceWithoutCode(t *testing.T) {
	h := hierarchy.Hierarchy{Memory: hierarchy.Memory{LatencyCycles: 300}, Levels: []hierarchy.Cache{
		{Name: "L1", SizeBytes: 48 << 10, Ways: 12, LineBytes: 64, LatencyCycles: 4},
		{Name: "L2", SizeBytes: 1 << 20, Ways: 16, LineBytes: 64, LatencyCycles: 14},
	}}
	processor, err := pipeline.Named(costmodel.DefaultProcessor)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		p         *profile.Profile
		want      diagnose.Kind // "" if no cause is expected
		says, fix string
	}{
		{"16 lines of one set", withoutCode(t, 2000, 16, func(i int) uint64 { return uint64(i) << 16 }), diagnose.Conflict, "map to only a few sets", "pad"},
		{"4 MiB again and again", withoutCode(t, 4, 4<<20/64, func(i int) uint64 { return uint64(i) * 64 }), diagnose.Capacity, "cache of 4 MiB would contain all of these lines", "parts of the data"},
		{"4 MiB once", withoutCode(t, 1, 4<<20/64, func(i int) uint64 { return uint64(i) * 64 }), "", "", ""},
		{"16 KiB again and again", withoutCode(t, 200, 16<<10/64, func(i int) uint64 { return uint64(i) * 64 }), "", "", ""},
	} {
		d, err := diagnose.Run(c.p, diagnose.Options{Machine: h, Processor: processor})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.want == "" && len(d.Findings) > 0:
			t.Errorf("%s: found %s, want no finding", c.name, d.Findings[0].Kind)
		case c.want == "":
		case len(d.Findings) != 1 || d.Findings[0].Kind != c.want:
			t.Errorf("%s: findings are %+v, want a single finding of kind %s", c.name, d.Findings, c.want)
		default:
			f := &d.Findings[0]
			if !strings.Contains(f.Why, c.says) || !strings.Contains(f.Fix, c.fix) || f.Tried || f.Least != 0 || f.Most <= 0 || f.Most > d.Cycles || f.File != "" {
				t.Errorf("%s: wrong finding %+v", c.name, f)
			}
		}
		if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "stackglass cc") {
			t.Errorf("%s: the notes do not mention stackglass cc: %s", c.name, notes)
		}
	}
}

// TestProfileWithoutStackOfSharedCache diagnoses a profile that has no common stack for the cores that
// share a cache. The diagnosis must then assume one cache for all cores.
func TestProfileWithoutStackOfSharedCache(t *testing.T) {
	b := &trace.Batch{}
	for i := range 1000 {
		b.Addr, b.Bytes, b.Kind, b.Thread = append(b.Addr, uint64(i)*64), append(b.Bytes, 8), append(b.Kind, trace.Load), append(b.Thread, uint32(i%10+1))
	}
	h := hierarchy.Hierarchy{Memory: hierarchy.Memory{LatencyCycles: 300}, Levels: []hierarchy.Cache{
		{Name: "L1", SizeBytes: 48 << 10, Ways: 12, LineBytes: 64, LatencyCycles: 4},
		{Name: "L2", SizeBytes: 1 << 20, Ways: 16, LineBytes: 64, LatencyCycles: 14, SharedBy: 8},
	}}
	processor, err := pipeline.Named(costmodel.DefaultProcessor)
	if err != nil {
		t.Fatal(err)
	}
	d, err := diagnose.Run(profileOf(t, b), diagnose.Options{Machine: h, Processor: processor})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "L2 is assumed to be one cache for all cores") || !strings.Contains(notes, "--domains 1,2,3,4,5,6,7,8/9,10") {
		t.Errorf("the notes do not name the groups that the profile lacks:\n%s", notes)
	}
	if h.Levels[1].SharedBy != 8 {
		t.Errorf("the diagnosis changed the caller's hierarchy: L2 is shared by %d cores", h.Levels[1].SharedBy)
	}
}
