package config

import (
	"errors"
	"strconv"
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
		if err := Add(&h, line); err != nil {
			return h, errorAt(number, err.Error())
		}
	}
	return h, nil
}

// Add adds what one line says: a cache as [hierarchy.ParseCache] takes it,
// memory= with what [hierarchy.ParseMemory] takes, or clock=GHZ. The error is a
// [*trace.OptionError].
func Add(h *hierarchy.Hierarchy, line string) (err error) {
	name, value, _ := strings.Cut(line, "=")
	switch strings.TrimSpace(name) {
	case "memory":
		if h.Memory != (hierarchy.Memory{}) {
			return &trace.OptionError{Option: "cache", Got: line, Want: "what memory can do once"}
		}
		h.Memory, err = hierarchy.ParseMemory(value)
		return err
	case "clock":
		ghz, ok := hierarchy.ParsePositive(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "GHz")))
		if !ok || h.ClockGHz != 0 {
			return &trace.OptionError{Option: "cache", Got: line, Want: "one clock in GHz, as in clock=3.5"}
		}
		h.ClockGHz = ghz
		return nil
	}
	cache, err := hierarchy.ParseCache(line)
	if err != nil {
		return err
	}
	for _, other := range h.Levels {
		if other.Name == cache.Name {
			return &trace.OptionError{Option: "cache", Got: line, Want: "a name of its own for each level; there is a " + cache.Name + " already"}
		}
	}
	if len(h.Levels) == mostLevels {
		return &trace.OptionError{Option: "cache", Got: line, Want: "at most " + strconv.Itoa(mostLevels) + " levels"}
	}
	h.Levels = append(h.Levels, cache)
	return nil
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
