package diagnose

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// TestAgain: of two loops over the bytes of one array, which the compiler unrolled differently, each load of the second
// is of what the first loop refers to; of loops over other arrays, or other rows, none is.
func TestAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := uint64(1) << rapid.Uint64Range(0, 5).Draw(t, "bytes")
		unroll := []uint64{rapid.Uint64Range(1, 8).Draw(t, "first"), rapid.Uint64Range(1, 8).Draw(t, "second")}
		sign := rapid.SampledFrom([]int64{1, -1}).Draw(t, "sign")
		body := func(start uint64, row int64, unroll uint64) (list []loops.Item) {
			for i := range unroll {
				ref := loops.Reference{Kind: trace.Load, Bytes: uint32(bytes)}
				list = append(list, loops.Leaf(ref, start+uint64(sign)*i*bytes, row, sign*int64(unroll*bytes)))
			}
			return list
		}
		first := body(1<<20, 1<<12, unroll[0])
		for _, c := range []struct {
			name  string
			start uint64
			row   int64
			want  bool
		}{{"the same", 1 << 20, 1 << 12, true}, {"another array", 1 << 21, 1 << 12, false}, {"another row", 1 << 20, 1 << 13, false}} {
			for i, load := range body(c.start, c.row, unroll[1]) {
				found := false
				for _, before := range first {
					found = found || again(&before, &load, 1)
				}
				if found != c.want {
					t.Errorf("%s: load %d: %t, want %t", c.name, i, found, c.want)
				}
			}
		}
	})
}
