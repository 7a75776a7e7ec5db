package loopcount

import (
	"reflect"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// TestChangesRoundTrip checks that Read parses the options that Option returns.
func TestChangesRoundTrip(t *testing.T) {
	load := func(at trace.Addr, by ...int64) loops.Item {
		return loops.Leaf(loops.Reference{Kind: trace.Load, Bytes: 8}, at, by...)
	}
	n := loops.Nest{Items: []loops.Item{loops.Loop(50, loops.Loop(60, load(1<<20, 8, 4096), load(1<<30, 4096, 8)), loops.Loop(60, load(1<<20, 8, 4096)), loops.Loop(60, load(1<<20, 8, 4096)))}}
	tree, err := n.Build()
	if err != nil {
		t.Fatal(err)
	}
	l, err := answers.NewLoops(&profile.Profile{Loops: tree.Append(nil)}, answers.AllNests)
	if err != nil {
		t.Fatal(err)
	}
	trial, err := NewTrial(l, 0)
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]change.Change{
		"pad 0x100000=+64":                     change.Pad{Array: 1 << 20, Bytes: 64},
		"interchange 1,1.1":                    change.Interchange{Outer: change.Path{0}, Below: 1},
		"tile 1=all,1.1=32":                    change.Tile{Outer: change.Path{0}, Trips: []uint64{0, 32}},
		"align 64":                             change.Align{Bytes: 64},
		"align 0x40000000=128":                 change.Align{Bytes: 128, Array: 1 << 30},
		"fuse 1.1":                             change.Fuse{First: change.Path{0, 0}},
		"fuse 1.1,1.2,1.3":                     change.Fuse{First: change.Path{0, 0}, More: 1},
		"array-of-structs 0x100000,0x40000000": change.Records{Arrays: []trace.Addr{1 << 20, 1 << 30}},
	} {
		kind, text, ok := trial.Option(c)
		if got := kind + " " + text; !ok || got != want {
			t.Errorf("%q, want %q", got, want)
			continue
		}
		if got, err := trial.Read(kind, text); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s: Read = %+v, error %v, want %+v", want, got, err, c)
		}
	}
	if kind, text, ok := trial.Option(change.Split{Array: 1 << 20}); ok {
		t.Errorf("Option returned %s %s for a change without an option", kind, text)
	}
}

// TestOnlyLoopsOfOneFunctionAreFused checks that loops are fused only if they are in the same
// function, and not across the border of a parallel region.
func TestOnlyLoopsOfOneFunctionAreFused(t *testing.T) {
	sites := []profile.Site{{Function: "main.omp_outlined"}, {Function: "main"}, {Function: "main"}, {}}
	l := &answers.Loops{Place: func(ref loops.Reference) *profile.Site { return &sites[ref.Site] }}
	load := func(site uint32) loops.Item {
		return loops.Leaf(loops.Reference{Site: site, Kind: trace.Load, Bytes: 8}, 1<<20, 8)
	}
	fork := loops.Leaf(loops.Reference{Site: 1, Kind: trace.ParallelBegin}, 0)
	for name, c := range map[string]struct {
		first, second []loops.Item
		want          bool
	}{
		"a parallel loop and a serial loop":     {[]loops.Item{load(0)}, []loops.Item{load(1)}, true},
		"two loops of one function":             {[]loops.Item{load(1)}, []loops.Item{load(2)}, false},
		"a loop that also calls a function":     {[]loops.Item{load(0), load(1)}, []loops.Item{load(2)}, false},
		"a loop that starts a parallel region":  {[]loops.Item{load(1), fork}, []loops.Item{load(2)}, true},
		"a loop whose function is not recorded": {[]loops.Item{load(3)}, []loops.Item{load(1)}, false},
	} {
		n := &loops.Nest{Items: []loops.Item{loops.Loop(40, c.first...), loops.Loop(40, c.second...)}}
		if got := Separate(l, n, change.Fuse{First: change.Path{0}}); got != c.want {
			t.Errorf("%s: Separate = %t, want %t", name, got, c.want)
		}
	}
}
