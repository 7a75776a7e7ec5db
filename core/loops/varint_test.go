package loops

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// TestVarint checks that varint returns the same as [binary.Varint] for numbers of all lengths, at
// the end of a slice and before other bytes, and for bytes that are not a number.
func TestVarint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b []byte
		if rapid.Bool().Draw(t, "a number") {
			shift := rapid.IntRange(0, 63).Draw(t, "shift")
			b = binary.AppendVarint(nil, rapid.Int64().Draw(t, "number")>>shift)
		}
		b = append(b, rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "other bytes")...)
		got, n := varint(b)
		want, length := binary.Varint(b)
		if n != length || n > 0 && got != uint64(want) {
			t.Fatalf("% x: %d in %d bytes, want %d in %d", b, int64(got), n, want, length)
		}
	})
}
