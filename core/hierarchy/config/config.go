// Package config reads files that describe memory hierarchies, and detects the format of a file
// from its contents:
//
//   - JSON that follows this project's schema, hierarchy.schema.json in this folder, or the
//     equivalent YAML. A YAML library is large, so the caller parses the YAML and passes its values
//     as a [Node].
//   - Hardware files for PPT-AMM and PPT-SASMM, from the ppt_lite/hardware folder of
//     github.com/lanl/PPT: Python assignments such as cache_sizes = [32 * kb].
//   - Configuration files of DynamoRIO's cache simulator (dynamorio.org, Cache
//     Simulator, Configuration File): L1D { size 32K assoc 8 parent L2 }.
//   - The command-line options of DineroIV: -l1-usize 8k -l1-ubsize 16.
//   - Text with one cache per line, in the syntax of --cache: L1=32KiB,8.
//
// Settings that a [hierarchy.Hierarchy] cannot express are reported as notes.
package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Form is a file format for hierarchies.
type Form string

// The file formats that Recognise distinguishes.
const (
	JSON       Form = "JSON"
	YAML       Form = "YAML"
	PPT        Form = "PPT hardware file"
	DrCacheSim Form = "drcachesim configuration"
	DineroIV   Form = "DineroIV options"
	Lines      Form = "one cache per line"
)

// Error is an error in a description, with its location.
type Error struct {
	Line int // line number, or 0 if the error does not belong to a line
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return "line " + strconv.Itoa(e.Line) + ": " + e.Text
}

func errorAt(line int, parts ...string) *Error { return &Error{line, strings.Join(parts, "")} }

const (
	// maximum size of a description, larger than any useful one
	mostBytes  = 1 << 20
	mostLevels = hierarchy.MostLevels
)

// Recognise detects the form of a description. If the text has none of the other forms, Recognise
// returns Lines.
func Recognise(text []byte) Form {
	if strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
		return JSON
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, " \t\r\n")
		word := strings.TrimLeft(line, " \t")
		switch {
		case strings.HasPrefix(word, "#"), strings.HasPrefix(word, "//"):
		case slices.ContainsFunc(strings.Fields(word), isDineroIV):
			return DineroIV
		case strings.HasPrefix(line, "levels:"), line == "---":
			return YAML
		case assigns(word, "cache_sizes"):
			return PPT
		case strings.HasSuffix(word, "{") || strings.Contains(word, " {") && !strings.Contains(word, "="):
			if _, _, dictionary := strings.Cut(word, "="); !dictionary {
				return DrCacheSim
			}
		}
	}
	return Lines
}

// assigns reports whether a line of Python assigns a value to name.
func assigns(line, name string) bool {
	line = strings.TrimPrefix(line, "self.")
	line = strings.Trim(line, `"'{ `)
	rest, found := strings.CutPrefix(line, name)
	rest = strings.TrimLeft(rest, ` "'`)
	return found && (strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, ":"))
}

// Read reads a description in any supported format except YAML. The notes are sentences about settings that a
// hierarchy cannot express. The error is an [*Error].
func Read(text []byte) (h hierarchy.Hierarchy, notes []string, err error) {
	if len(text) > mostBytes {
		return h, nil, errorAt(0, "the file is larger than 1 MiB, but a description of a hierarchy is much smaller")
	}
	switch Recognise(text) {
	case JSON:
		var node Node
		if node, err = parseJSON(string(text)); err == nil {
			h, err = FromNode(node)
		}
	case YAML:
		err = errorAt(0, "YAML is not supported here; use JSON with the same keys")
	case PPT:
		h, notes, err = readPPT(string(text))
	case DrCacheSim:
		h, notes, err = readDrCacheSim(string(text))
	case DineroIV:
		h, notes, err = readDineroIV(string(text))
	case Lines:
		h, err = readLines(string(text))
	}
	if err == nil {
		err = check(&h)
	}
	if err != nil {
		return hierarchy.Hierarchy{}, nil, err
	}
	return h, notes, nil
}

// check returns an error if the hierarchy violates a rule that applies to every form.
func check(h *hierarchy.Hierarchy) error {
	if len(h.Levels) == 0 {
		return errorAt(0, "the file describes no caches, want at least one level")
	}
	if len(h.Levels) > mostLevels {
		return errorAt(0, "the file describes ", strconv.Itoa(len(h.Levels)), " levels, want at most ", strconv.Itoa(mostLevels))
	}
	names := map[string]bool{}
	if err := h.CheckInstructions(); err != nil {
		return errorAt(0, err.Error())
	}
	for _, c := range slices.Concat(h.Levels, h.Instructions, h.TLBs, h.InstructionTLBs) {
		if !validName(c.Name) {
			return errorAt(0, "the cache name ", strconv.Quote(c.Name), " is not allowed, want a name without = and without leading or trailing blanks")
		}
		if names[c.Name] {
			return errorAt(0, "two caches named ", strconv.Quote(c.Name), ", want a different name for each level")
		}
		names[c.Name] = true
		if err := c.Check(); err != nil {
			return errorAt(0, err.Error())
		}
	}
	return nil
}

// validName reports whether the name can be written in every form.
func validName(name string) bool {
	return name != "" && strings.TrimSpace(name) == name && !strings.Contains(name, "=") && utf8.ValidString(name)
}

// readLines reads one cache per line. Lines that begin with # are comments.
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

// wantOf returns the Want text of an option error. The caller adds the location in the file.
func wantOf(err error) string {
	var option *trace.OptionError
	if errors.As(err, &option) {
		return option.Want
	}
	return err.Error()
}
