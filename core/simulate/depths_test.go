package simulate_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// For each core, the depths add up to the misses of each level. The counts equal the counts that
// Consume produces.
func TestDepthsAddUpToMisses(t *testing.T) {
	inclusions := []hierarchy.Inclusion{hierarchy.Inclusive, hierarchy.NonInclusive, hierarchy.Exclusive}
	rapid.Check(t, func(t *rapid.T) {
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{
			{Name: "L1", SizeBytes: 128, Ways: 2, LineBytes: 16},
			{Name: "L2", SizeBytes: 256, Ways: 4, LineBytes: 16, Inclusion: rapid.SampledFrom(inclusions).Draw(t, "inclusion")},
			{Name: "L3", SizeBytes: 1024, Ways: 4, LineBytes: 16, SharedBy: 2, Inclusion: hierarchy.NonInclusive},
		}}
		b := trace.NewBatch(400)
		b.NeedThread()
		for range rapid.IntRange(1, 400).Draw(t, "rows") {
			kind := rapid.SampledFrom([]trace.Kind{trace.Load, trace.Store, trace.Modify, trace.BlockEntry}).Draw(t, "kind")
			b.Append(kind, 4*rapid.Uint64Range(0, 600).Draw(t, "address"), 4, rapid.Uint32Range(0, 2).Draw(t, "thread"), 0)
		}
		told, err := simulate.New(h, simulate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := simulate.New(h, simulate.Options{})
		depths := make([]uint8, b.Len())
		var view trace.Batch
		for lo := 0; lo < b.Len(); lo += 64 {
			part := b.View(&view, lo, min(lo+64, b.Len()))
			if err := told.ConsumeDepths(part, depths[lo:]); err != nil {
				t.Fatal(err)
			}
			if err := plain.Consume(part); err != nil {
				t.Fatal(err)
			}
		}
		got, want := told.Result(), plain.Result()
		if told.FetchedBytes() != want.Memory.BytesRead {
			t.Errorf("%d bytes fetched, want %d", told.FetchedBytes(), want.Memory.BytesRead)
		}
		for i := range want.Levels {
			for core := range want.Cores {
				var missed uint64
				for row, depth := range depths {
					if b.Kind[row].IsReference() && b.Thread[row] == want.Cores[core].Threads[0] && int(depth) > i {
						missed++
					}
				}
				if n := want.Levels[i].Cores[core].Misses(); missed != n || got.Levels[i].Cores[core] != want.Levels[i].Cores[core] {
					t.Errorf("level %d, core %d: the depths contain %d misses, want %d; counts are %+v, want %+v", i, core, missed, n, got.Levels[i].Cores[core], want.Levels[i].Cores[core])
				}
			}
		}
	})
}
