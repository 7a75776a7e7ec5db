package profile

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestEverySectionIsDescribed checks that the manual describes every section of a profile.
func TestEverySectionIsDescribed(t *testing.T) {
	text, err := os.ReadFile("../../site/docs/sgp.md")
	if err != nil {
		t.Fatal(err)
	}
	tags := []string{endTag}
	for _, f := range forms {
		tags = append(tags, f.tags...)
	}
	for _, s := range states {
		tags = append(tags, s.tag)
	}
	for _, tag := range tags {
		if !strings.Contains(string(text), "`"+tag+"`") {
			t.Errorf("site/docs/sgp.md does not describe the section %s", tag)
		}
	}
}

// TestWorkedExample checks that the bytes of the example in the manual decode to a profile with the
// documented counts.
func TestWorkedExample(t *testing.T) {
	text, err := os.ReadFile("../../site/docs/sgp.md")
	if err != nil {
		t.Fatal(err)
	}
	file := tracetest.WorkedExample(t, string(text))
	p, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(p.Encode(), file) {
		t.Error("Encode returns different bytes")
	}
	curve := NewCurve(p.LocalityAt(64).Histogram(trace.AllKinds))
	if curve.Misses(1) != 1 || p.Totals.AllReferences() != 2 || p.LocalityAt(64).Windows.Distinct[0] != 1 {
		t.Errorf("the example has %d misses in %d references", curve.Misses(1), p.Totals.AllReferences())
	}
}
