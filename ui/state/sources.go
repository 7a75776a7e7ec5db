package state

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sourcefile"
)

// Sources contains the source files that the user opened. The page shows these files together with
// the misses of each line. Files are matched by name, and by the folders that both the profile and
// the browser know.
type Sources struct{ files map[string][]*Source }

// Source is a source file.
type Source struct {
	Name  string // the name without folders
	Path  string // the path, as far as the browser knows it, to distinguish files with the same name
	Lines []string

	inComment []bool // for each line: whether the line begins within a comment; computed on first use
}

// InComment reports whether a line (counted from 0) begins within a multi-line comment as in C.
func (f *Source) InComment(line int) bool {
	if f.inComment == nil {
		f.inComment = make([]bool, len(f.Lines))
		if Language(f.Name) == "c" {
			within := false
			for i, text := range f.Lines {
				f.inComment[i], within = within, endsInComment(text, within)
			}
		}
	}
	return f.inComment[line]
}

// endsInComment reports whether a multi-line comment is open at the end of a line.
func endsInComment(text string, within bool) bool {
	for {
		if within {
			_, rest, closed := strings.Cut(text, "*/")
			if !closed {
				return true
			}
			text = rest
		}
		at := strings.IndexAny(text, `/"'`)
		if at < 0 {
			return false
		}
		within = strings.HasPrefix(text[at:], "/*")
		switch {
		case within:
			text = text[at+2:]
		case strings.HasPrefix(text[at:], "//"):
			return false
		case text[at] == '/':
			text = text[at+1:]
		default: // skip the string literal
			quote := text[at]
			for at++; at < len(text) && text[at] != quote; at++ {
				if text[at] == '\\' {
					at++
				}
			}
			text = text[min(at+1, len(text)):]
		}
	}
}

// Language returns the name of the syntax highlighting that tables.js uses for a file: "fortran"
// for Fortran, "hash" for languages with comments that begin with #, and "c" for all other
// languages.
func Language(name string) string {
	switch ending := strings.ToLower(path.Ext(name)); {
	case ending == "":
	case strings.Contains(" .f .for .ftn .f77 .f90 .f95 .f03 .f08 .f18 ", " "+ending+" "):
		return "fortran"
	case strings.Contains(" .py .jl .nim ", " "+ending+" "):
		return "hash"
	}
	return "c"
}

// sourceEndings lists the extensions of source files. No trace file has one of these extensions.
const sourceEndings = " .c .h .cc .cpp .cxx .c++ .hh .hpp .hxx .inc .ipp .tcc .cu .cuh .f .for .ftn .f77 .f90 .f95 .f03 .f08 .f18 .go .rs .m .mm .d .zig .java .s .asm .py .jl .nim .pas .ada .adb .ads "

// IsSource reports whether a file is source code, judging by its name.
func IsSource(name string) bool {
	ending := strings.ToLower(path.Ext(name))
	return ending != "" && strings.Contains(sourceEndings, " "+ending+" ")
}

// NewSource returns a source file with the given content. The result "problem" explains why the
// file is not source code.
func NewSource(name, where string, content []byte) (f *Source, problem string) {
	switch {
	case len(content) > sourcefile.MostBytes:
		return nil, name + " contains " + Bytes(uint64(len(content))) + ", which is too much for a source file."
	case bytes.IndexByte(content, 0) >= 0:
		return nil, name + " is not a text file: it contains a zero byte. Choose the source from which the program was compiled."
	}
	return &Source{Name: name, Path: where, Lines: sourcefile.Split(string(content))}, ""
}

// Remove removes a file.
func (s *Sources) Remove(f *Source) {
	s.files[f.Name] = slices.DeleteFunc(s.files[f.Name], func(x *Source) bool { return x == f })
}

// Add adds a file and returns it, or returns an identical file that exists already.
func (s *Sources) Add(f *Source) *Source {
	if s.files == nil {
		s.files = map[string][]*Source{}
	}
	for _, have := range s.files[f.Name] {
		if strings.Join(have.Lines, "\n") == strings.Join(f.Lines, "\n") {
			return have
		}
	}
	s.files[f.Name] = append(s.files[f.Name], f)
	return f
}

// The method Of returns the files to which a name in a profile may refer: the files with the same
// base name that share the most trailing folders with the name. If several files share equally many
// folders with the name, the name is ambiguous.
func (s *Sources) Of(name string) (list []*Source) {
	all := s.files[path.Base(name)]
	paths := make([]string, len(all))
	for i, f := range all {
		paths[i] = cmp.Or(f.Path, f.Name)
	}
	for _, i := range trace.SameFile(name, paths) {
		list = append(list, all[i])
	}
	return list
}

// Label returns a text that distinguishes files with the same name: the folder if it is known, and
// otherwise the length.
func (f *Source) Label(number int) string {
	if f.Path != "" && f.Path != f.Name {
		return f.Path
	}
	return strconv.Itoa(number) + ": " + f.Name + ", " + Plural(uint64(len(f.Lines)), "line", "lines")
}
