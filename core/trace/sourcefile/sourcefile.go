// Package sourcefile reads the source files that a trace contains. Results can therefore show each
// source line beside its misses, even on a machine without the program's source.
package sourcefile

import (
	"bytes"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// MostBytes is the maximum length of a source file that can be stored.
const MostBytes = 16 << 20

// Pack compresses a source file. The result ok is false if the file is empty, too long, or not a
// text file.
func Pack(name string, text []byte) (f trace.SourceFile, ok bool) {
	if len(text) == 0 || len(text) > MostBytes || bytes.IndexByte(text, 0) >= 0 {
		return f, false
	}
	return trace.SourceFile{Name: name, Packed: string(sgt.AppendPacked(nil, text))}, true
}

// Text returns the decompressed text of a file, or "" if the data is damaged.
func Text(f trace.SourceFile) string {
	text, err := sgt.Unpack([]byte(f.Packed))
	if err != nil || len(text) > MostBytes {
		return ""
	}
	return string(text)
}

// Files finds lines in source files. Each file is decompressed on first use.
type Files struct {
	all   []trace.SourceFile
	paths []string
	lines map[string][]string // lines of each file, by requested name

	with    *Files // the files of the other version to which the cached matches refer
	matches map[[2]string][]Match
}

// New returns the files of a profile or a program.
func New(all []trace.SourceFile) *Files {
	f := &Files{all: all, paths: make([]string, len(all)), lines: map[string][]string{}}
	for i := range all {
		f.paths[i] = all[i].Name
	}
	return f
}

// Lines returns the lines of the file with the given name, or nil if the name is unknown or
// ambiguous.
func (f *Files) Lines(name string) []string {
	lines, known := f.lines[name]
	if known {
		return lines
	}
	if found := trace.SameFile(name, f.paths); len(found) == 1 {
		lines = Split(Text(f.all[found[0]]))
	}
	f.lines[name] = lines
	return lines
}

// Match returns the result of [MatchLines] for the file "name" in f and the file "other" in others.
// Match caches its results until the parameter "others" changes.
func (f *Files) Match(name string, others *Files, other string) []Match {
	if f.with != others {
		f.with, f.matches = others, map[[2]string][]Match{}
	}
	names := [2]string{name, other}
	if _, known := f.matches[names]; !known {
		f.matches[names] = MatchLines(f.Lines(name), others.Lines(other))
	}
	return f.matches[names]
}

// Line returns a line without blanks at both ends, and with single spaces between words; "" if
// there is no such line.
func (f *Files) Line(name string, line uint32) string {
	lines := f.Lines(name)
	if line == 0 || int64(line) > int64(len(lines)) {
		return ""
	}
	return strings.Join(strings.Fields(lines[line-1]), " ")
}

// Split splits a text into lines, without their line endings. Split recognises the line endings of
// all operating systems.
func Split(text string) []string {
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
}
