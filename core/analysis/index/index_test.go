package index_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis/index"
)

func TestTableEqualsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table index.Table
		twin := map[uint64]uint32{}
		key := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 50))
		for range rapid.IntRange(0, 300).Draw(t, "keys") {
			k := key.Draw(t, "key")
			got, known := table.Find(k)
			if want, there := twin[k]; got != want || known != there {
				t.Fatalf("Find(%d) = %d, %v, want %d, %v", k, got, known, want, there)
			}
			if !known {
				table.Add(k, uint32(len(twin)))
				twin[k] = uint32(len(twin))
			}
		}
	})
}
