package sources

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
)

// TestSources checks that every preset has sources, and that all sources belong to presets.
func TestSources(t *testing.T) {
	listed := 0
	for _, h := range hierarchy.Presets() {
		list := ForPreset(h.Name)
		for _, source := range list {
			if strings.TrimSpace(source) != source || len(source) < 10 {
				t.Errorf("%s: source %q", h.Name, source)
			}
		}
		if len(list) == 0 {
			t.Errorf("the preset %s has no sources", h.Name)
		}
		listed += 2 + len(list) // the name and the blank line
	}
	if lines := strings.Count(text, "\n"); lines != listed-1 {
		t.Errorf("the file has %d lines, want %d: a paragraph for each preset", lines, listed-1)
	}
	if list := ForPreset("none"); list != nil {
		t.Errorf("the sources of an unknown preset = %q, want none", list)
	}
}
