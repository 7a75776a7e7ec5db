package diagnose

import (
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestSourceIteration checks that cycles refer to an iteration of the source's loop if the unrolling
// is known, and otherwise to an iteration of the compiled loop.
func TestSourceIteration(t *testing.T) {
	load := func(line uint32) trace.Site {
		return trace.Site{Kind: trace.Load, Bytes: 8, Place: trace.Place{File: "a.c", Line: line}}
	}
	for name, c := range map[string]struct {
		sites      []trace.Site
		sources    map[uint32]source
		each       string
		iterations float64
	}{
		"not unrolled":              {[]trace.Site{load(1), load(2)}, nil, "each iteration", 1},
		"unrolled four times":       {[]trace.Site{load(1), load(1), load(1), load(1)}, map[uint32]source{0: {copies: 4}, 1: {copies: 4}, 2: {copies: 4}, 3: {copies: 4}}, "each iteration", 4},
		"unrolled, but not rolled":  {[]trace.Site{load(1), load(1)}, nil, "each iteration of the compiled loop", 1},
		"unrolled in a part":        {[]trace.Site{load(1), load(2)}, map[uint32]source{0: {copies: 4}}, "each iteration of the compiled loop", 1},
		"no references of the loop": {nil, nil, "each iteration", 1},
	} {
		r := &run{sources: c.sources, cost: &costs{program: &trace.Program{Sites: c.sites, Blocks: []trace.Block{{Sites: uint32(len(c.sites))}}}}}
		if each, iterations := r.sourceIteration(0); each != c.each || iterations != c.iterations {
			t.Errorf("%s: %q, %v; want %q, %v", name, each, iterations, c.each, c.iterations)
		}
	}
}
