package loops

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// TestVarint compares varint with [binary.Varint]. The test uses numbers of all lengths, with and
// without further bytes after them, and invalid encodings.
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
			t.Fatalf("varint(% x) = %d, %d, want %d, %d", b, int64(got), n, want, length)
		}
	})
}
