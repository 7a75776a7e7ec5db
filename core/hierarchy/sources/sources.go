// Package sources states the origin of the numbers of the presets in package hierarchy. The texts are
// in a package of their own, so that a first visit of the page does not transfer them.
package sources

import (
	_ "embed" // required by go:embed
	"strings"
)

// text contains a paragraph for each preset. The first line of a paragraph is the preset's name, and
// each of the other lines is a source.
//
//go:embed sources.txt
var text string

// ForPreset returns the sources of the numbers of a preset, including which numbers are estimates. The
// result is nil if there is no preset with this name.
func ForPreset(preset string) []string {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if name, rest, _ := strings.Cut(paragraph, "\n"); name == preset {
			return strings.Split(rest, "\n")
		}
	}
	return nil
}
