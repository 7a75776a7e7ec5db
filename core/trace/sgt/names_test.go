package sgt

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lackey"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestNamesAreThoseOfAContainer: rows get the sites that they have in a container.
func TestNamesAreThoseOfAContainer(t *testing.T) {
	r := lackey.NewReader("t", bytes.NewReader(tracetest.Small("data.lackey")))
	var out bytes.Buffer
	m, n, b := NewImporter(&out, nil), NewNamer(), trace.NewBatch(100)
	var got []uint32
	sites := make([]uint32, 100)
	for r.Next(b) == nil {
		if err := m.Write(b, r.Header()); err != nil {
			t.Fatal(err)
		}
		n.Name(b, r.Header(), sites)
		got = append(got, sites[:b.Len()]...)
	}
	if err := m.Close(End{}); err != nil {
		t.Fatal(err)
	}
	c := NewReader("t", &out, Options{})
	whole, err := trace.ReadAll(c)
	if err != nil || !slices.Equal(got, whole.Site) {
		t.Errorf("%d sites, want those of %d rows; %v", len(got), whole.Len(), err)
	}
	if a, b := n.Program(), c.Header().Program; !slices.Equal(a.Sites, b.Sites) || len(a.Blocks) != len(b.Blocks) {
		t.Errorf("%d sites in %d blocks, want %d in %d", len(a.Sites), len(a.Blocks), len(b.Sites), len(b.Blocks))
	}
}
