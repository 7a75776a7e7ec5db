package change_test

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/trace"
)

// records returns a nest that makes several passes over n structures of the given size, and reads
// fields of 8 bytes at the given offsets.
func records(n, bytes uint64, offsets ...uint64) *loops.Nest {
	var body []loops.Item
	for i, offset := range offsets {
		body = append(body, loops.Leaf(loops.Reference{Site: uint32(i), Kind: trace.Load, Bytes: 8}, 0x10000+offset, 0, int64(bytes)))
	}
	return &loops.Nest{Items: []loops.Item{loops.Loop(3, loops.Loop(n, body...))}}
}

// TestSplit checks that a split array of structures has the same number of misses as separate
// arrays in a nest that was written by hand.
func TestSplit(t *testing.T) {
	cache := misses.Cache{LineBytes: 64, Sets: 16, Ways: 4}
	for _, fields := range [][]uint64{{0}, {8}, {0, 40}, {16, 24, 88}} {
		o, err := change.Try(records(1000, 96, fields...), cache, nil, change.Split{Array: 0x10000 + fields[0]})
		if err != nil {
			t.Fatal(fields, err)
		}
		by := records(1000, 8)
		inner := &by.Items[0].Body[0]
		for i := range fields {
			inner.Body = append(inner.Body, loops.Leaf(loops.Reference{Site: uint32(i), Kind: trace.Load, Bytes: 8}, 0x100000*uint64(i+1), 0, 8))
		}
		tree, err := by.Build()
		if err != nil {
			t.Fatal(err)
		}
		r, err := misses.Run(tree, cache)
		if err != nil {
			t.Fatal(err)
		}
		if o.After != r.Total.Misses || o.After >= o.Before {
			t.Errorf("fields at %v: %d misses before and %d after splitting, want the %d misses of separate arrays", fields, o.Before, o.After, r.Total.Misses)
		}
	}
}

// TestSplitRejectsUnsuitableNests checks that Split rejects a nest that uses all parts of its
// structures, or has no structures.
func TestSplitRejectsUnsuitableNests(t *testing.T) {
	for name, n := range map[string]*loops.Nest{
		"all fields used": records(100, 24, 0, 8, 16),
		"elements":        records(100, 8, 0),
	} {
		if err := (change.Split{Array: 0x10000}).Apply(n); err == nil {
			t.Errorf("%s: Split accepted the array", name)
		}
	}
	if err := (change.Split{Array: 5}).Apply(records(100, 96, 0)); err == nil {
		t.Error("Split accepted an address that belongs to no array")
	}
}
