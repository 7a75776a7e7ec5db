package profile

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestWorkedExample checks that the bytes of the manual's example decode to a profile with the
// documented counts.
func TestWorkedExample(t *testing.T) {
	text, err := os.ReadFile("../../site/docs/sgp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## A worked example\n")
	if !found {
		t.Fatal("there is no worked example")
	}
	var file []byte
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, "    ") {
			continue
		}
		digits, _, _ := strings.Cut(line[4:], "|")
		b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(digits), " ", ""))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		file = append(file, b...)
	}
	p, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(p.Encode(), file) {
		t.Error("Encode returns different bytes")
	}
	curve := NewCurve(p.LocalityAt(64).Histogram(trace.AllKinds))
	if curve.Misses(1) != 1 || p.Totals.AllReferences() != 2 || p.LocalityAt(64).Windows.Distinct[0] != 1 {
		t.Errorf("it has %d misses of %d references", curve.Misses(1), p.Totals.AllReferences())
	}
}
