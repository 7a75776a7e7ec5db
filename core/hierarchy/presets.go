package hierarchy

import (
	_ "embed" // required by go:embed
	"slices"
	"sort"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// presetsText describes the presets, separated by blank lines. A preset consists of the keywords
// "name", "title" and "about", each followed by a text, and lines in the syntax of [Hierarchy.Add].
// Package sources states the origin of the numbers.
//
//go:embed presets.txt
var presetsText string

// Presets returns common hierarchies, starting with the default. A hierarchy consists of the data
// caches that one core of a processor uses. A level is non-inclusive unless its sources state
// otherwise. Every level has a latency, and so does memory. Latencies are in cycles at ClockGHz.
// A bandwidth of zero means that the bandwidth is unknown. All levels use LRU replacement, which real
// caches approximate.
func Presets() []Hierarchy {
	list, _ := parsePresets(presetsText) // a test checks that this never fails
	return list
}

// PresetName returns the name of the preset with the same caches, memory and clock, or "". The
// placement of threads is not compared. If h has no TLBs, TLBs are not compared either.
func (h Hierarchy) PresetName() string {
	h.Threads = OnOwnCores
	lines := h.Lines()
	for _, preset := range Presets() {
		if len(h.TLBs) == 0 {
			preset.TLBs, preset.InstructionTLBs = nil, nil
		}
		if slices.Equal(preset.Lines(), lines) {
			return preset.Name
		}
	}
	return ""
}

func parsePresets(text string) ([]Hierarchy, error) {
	var list []Hierarchy
	for preset := range strings.SplitSeq(text, "\n\n") {
		var h Hierarchy
		for line := range strings.Lines(preset) {
			line = strings.TrimSuffix(line, "\n")
			switch word, rest, _ := strings.Cut(line, " "); word {
			case "name":
				h.Name = rest
			case "title":
				h.Title = rest
			case "about":
				h.About = rest
			default:
				if err := h.Add(line); err != nil {
					return nil, err
				}
			}
		}
		list = append(list, h)
	}
	return list, nil
}

// Preset returns the preset with the given name, ignoring case. The error is a [*trace.OptionError]
// that suggests similar names.
func Preset(name string) (Hierarchy, error) {
	presets, lower := Presets(), strings.ToLower(name)
	for _, h := range presets {
		if strings.ToLower(h.Name) == lower {
			return h, nil
		}
	}
	near := nearest(name, presets)
	return Hierarchy{}, &trace.OptionError{Option: "hierarchy", Got: name, Want: "a preset such as " + strings.Join(near, " or ")}
}

// nearest returns the names of up to three presets with the smallest edit distances, nearest first.
func nearest(name string, presets []Hierarchy) (names []string) {
	name = strings.ToLower(name)
	distance := map[string]int{}
	for _, h := range presets {
		lower := strings.ToLower(h.Name)
		distance[h.Name] = edits(name, lower)
		if len(name) >= 3 && (strings.Contains(lower, name) || strings.Contains(strings.ToLower(h.Title), name)) {
			distance[h.Name] = 0
		}
		names = append(names, h.Name)
	}
	sort.SliceStable(names, func(i, j int) bool { return distance[names[i]] < distance[names[j]] })
	last := 1
	for last < min(3, len(names)) && distance[names[last]] <= distance[names[0]]+1 {
		last++
	}
	return names[:last]
}

// edits returns the Levenshtein distance of two strings, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
