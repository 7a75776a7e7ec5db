package diagnose

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// TestDisorder checks that a finding calls data too large for a cache only if the code returns to
// the data.
func TestDisorder(t *testing.T) {
	r := &run{Options: Options{Machine: hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1"}, {Name: "L2"}}}}}
	if got := r.disorder(&place{level: 1, wait: 100, never: 10}); !strings.Contains(got, "larger than L2") {
		t.Errorf("%q, want that the data is larger than L2", got)
	}
	if got := r.disorder(&place{level: 1, wait: 100, never: 95}); !strings.Contains(got, "for the first time") {
		t.Errorf("%q, want that the lines are accessed for the first time", got)
	}
}

// TestUntriedReason checks why a finding says that no change was tried: the references do not
// compress, or the profile was made without loops.
func TestUntriedReason(t *testing.T) {
	for want, loops := range map[string][]byte{"do not compress": {}, "does not contain": nil} {
		r := &run{p: &profile.Profile{Loops: loops}}
		if got := r.untriedHow(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
