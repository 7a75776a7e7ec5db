package config

import (
	"errors"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// readLines reads a cache a line; lines that begin with # are comments.
func readLines(text string) (h hierarchy.Hierarchy, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := h.Add(line); err != nil {
			return h, errorAt(number, err.Error())
		}
	}
	return h, nil
}

// wantOf is what an option error wants, for messages that say where by
// themselves.
func wantOf(err error) string {
	var option *trace.OptionError
	if errors.As(err, &option) {
		return option.Want
	}
	return err.Error()
}
