package branches

import (
	"bytes"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// TestRestoreBeforeTables checks that a resumed run can be saved again before it has read the
// tables that describe all blocks entered by the first run.
func TestRestoreBeforeTables(t *testing.T) {
	whole, rows, _ := nested()
	whole.Modules = make([]trace.Module, 1)
	first := New(trace.DataKinds, false, func() *trace.Program { return whole })
	if err := first.Consume(rows); err != nil {
		t.Fatal(err)
	}
	want := &profile.Profile{Segment: &profile.Segment{}}
	first.Result(want, true)
	for _, known := range []*trace.Program{nil, {Modules: whole.Modules, Functions: whole.Functions[:1], Blocks: whole.Blocks[:4], Sites: whole.Sites}, whole} {
		resumed := New(trace.DataKinds, false, func() *trace.Program { return known })
		if err := resumed.Restore(want); err != nil {
			t.Fatal(err)
		}
		got := &profile.Profile{Segment: &profile.Segment{}}
		resumed.Result(got, true)
		if !bytes.Equal(got.Blocks, want.Blocks) || !bytes.Equal(got.Segment.Blocks, want.Segment.Blocks) {
			t.Errorf("with known = %v, the profile that is saved again differs from the first", known)
		}
	}
}
