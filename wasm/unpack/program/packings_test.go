package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/wasm/unpack"
)

func TestPackingsAreTheNames(t *testing.T) {
	names := append(unpack.Names(), unpack.Description, unpack.Export)
	if len(packings) != len(names) {
		t.Fatalf("%d packings for %q", len(packings), names)
	}
	for i, p := range packings {
		if p.Name != names[i] {
			t.Errorf("packing %d is %s, want %s", i, p.Name, names[i])
		}
	}
}

func TestDescribe(t *testing.T) {
	r, err := describe(strings.NewReader("clockspeed = 2 * 10**9\ncache_sizes = [32768, 2**20]\ncache_cycles = [4, 12]\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var h hierarchy.Hierarchy
	notes := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "# ") {
			notes++
		} else if err := h.Add(strings.TrimSpace(line)); err != nil {
			t.Error(err)
		}
	}
	if len(h.Levels) != 2 || h.Levels[1].LatencyCycles != 12 || h.ClockGHz != 2 || notes != 1 {
		t.Errorf("%s", text)
	}
	if _, err := describe(strings.NewReader("{\n\"levels\": 3}")); err == nil || !strings.Contains(err.Error(), "read as JSON: line 2") {
		t.Errorf("%v, want what it was read as, and where", err)
	}
}
