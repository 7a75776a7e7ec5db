package hierarchy

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// MostLevels is the most levels of a hierarchy that is described in words.
const MostLevels = 16

// Add adds what one line says: a cache as [ParseCache] takes it, memory= with what [ParseMemory]
// takes, clock=GHZ, or threads=one-core. The error is a [*trace.OptionError].
func (h *Hierarchy) Add(line string) (err error) {
	bad := func(want string) error { return &trace.OptionError{Option: "cache", Got: line, Want: want} }
	name, value, _ := strings.Cut(line, "=")
	switch strings.TrimSpace(name) {
	case "memory":
		if h.Memory != (Memory{}) {
			return bad("what memory can do once")
		}
		h.Memory, err = ParseMemory(value)
		return err
	case "clock":
		ghz, ok := ParsePositive(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "GHz")))
		if !ok || h.ClockGHz != 0 {
			return bad("one clock in GHz, as in clock=3.5")
		}
		h.ClockGHz = ghz
		return nil
	case "threads":
		if value = strings.TrimSpace(value); value != "one-core" && value != "own-cores" {
			return bad("threads=one-core (all threads on one core) or threads=own-cores")
		}
		if h.Threads = OnOwnCores; value == "one-core" {
			h.Threads = OnOneCore
		}
		return nil
	}
	cache, err := ParseCache(line)
	if err != nil {
		return err
	}
	for _, other := range h.Levels {
		if other.Name == cache.Name {
			return bad("a name of its own for each level; there is a " + cache.Name + " already")
		}
	}
	if len(h.Levels) == MostLevels {
		return bad("at most " + strconv.Itoa(MostLevels) + " levels")
	}
	h.Levels = append(h.Levels, cache)
	return nil
}

// Lines writes the levels, the memory, the clock and the placement of threads the way
// Add reads them.
func (h *Hierarchy) Lines() (lines []string) {
	for _, c := range h.Levels {
		lines = append(lines, c.String())
	}
	if m := h.Memory.String(); m != "" {
		lines = append(lines, "memory="+m)
	}
	if h.ClockGHz > 0 {
		lines = append(lines, "clock="+FormatNumber(h.ClockGHz))
	}
	if h.Threads == OnOneCore {
		lines = append(lines, "threads=one-core")
	}
	return lines
}
