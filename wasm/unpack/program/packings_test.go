package main

import (
	"testing"

	"github.com/stackglass/stackglass/wasm/unpack"
)

func TestPackingsMatchNames(t *testing.T) {
	names := unpack.Names()
	if len(packings) != len(names) {
		t.Fatalf("packings = %d, want one for each format in %q", len(packings), names)
	}
	for i, p := range packings {
		if p.Name != names[i] {
			t.Errorf("name of packing %d = %s, want %s", i, p.Name, names[i])
		}
	}
}
