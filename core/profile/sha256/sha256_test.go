package sha256

import (
	"bytes"
	standard "crypto/sha256"
	"testing"

	"pgregory.net/rapid"
)

// The standard library is the reference implementation.
func TestSumEqualsStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hash, twin := New(), standard.New()
		for range rapid.IntRange(0, 6).Draw(t, "writes") {
			part := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "part")
			if n, err := hash.Write(part); n != len(part) || err != nil {
				t.Fatalf("Write of %[2]d bytes = %[1]d, %[3]v", n, len(part), err)
			}
			twin.Write(part)
			if got, want := hash.Sum([]byte("x")), twin.Sum([]byte("x")); !bytes.Equal(got, want) {
				t.Fatalf("the sum is %x, want %x", got, want)
			}
		}
	})
}

// TestLengths checks data of all lengths, so that the data ends at every position within a block.
func TestLengths(t *testing.T) {
	text := bytes.Repeat([]byte("stack distance "), 20)
	for n := range text {
		hash := New()
		hash.Write(text[:n])
		if got, want := hash.Sum(nil), standard.Sum256(text[:n]); !bytes.Equal(got, want[:]) {
			t.Errorf("the sum of %d bytes is %x, want %x", n, got, want)
		}
	}
}
