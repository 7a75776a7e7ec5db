package sgt

import (
	"bytes"
	"io"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestSlicedHeader checks that Header.Sliced is set if the capture did not record in which order
// the threads ran.
func TestSlicedHeader(t *testing.T) {
	for order, want := range map[string]bool{"sliced": true, "exact": false, "": false} {
		var file bytes.Buffer
		w := NewWriter(&file, 64, []trace.Fact{{Name: "program", Value: "sliced"}, {Name: "order", Value: order}})
		if err := w.Close(End{}); err != nil {
			t.Fatal(err)
		}
		r := NewReader("t", &file, Options{})
		if err := r.Next(trace.NewBatch(0)); err != io.EOF {
			t.Fatal(err)
		}
		if got := r.Header().Sliced; got != want {
			t.Errorf("order %q: Sliced = %v, want %v", order, got, want)
		}
	}
}
