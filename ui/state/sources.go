package state

import (
	"bytes"
	"cmp"
	"path"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sourcefile"
)

// Sources are the files of source code that the reader gave, to be shown beside
// the places in them. They are held in memory, are kept nowhere, and are matched
// by name, and by as many folders as both the profile and the browser tell.
type Sources struct{ files map[string][]*Source }

// Source is one of them.
type Source struct {
	Name  string // without folder
	Path  string // as the browser tells it, for telling files of one name apart
	Lines []string
}

// sourceEndings are those of source code, which no trace has.
const sourceEndings = " .c .h .cc .cpp .cxx .c++ .hh .hpp .hxx .inc .ipp .tcc .cu .cuh .f .for .ftn .f77 .f90 .f95 .f03 .f08 .f18 .go .rs .m .mm .d .zig .java .s .asm .py .jl .nim .pas .ada .adb .ads "

// IsSource tells by its name whether a file is source code.
func IsSource(name string) bool {
	ending := strings.ToLower(path.Ext(name))
	return ending != "" && strings.Contains(sourceEndings, " "+ending+" ")
}

// NewSource reads a file; problem says in a sentence why it is none.
func NewSource(name, where string, content []byte) (f *Source, problem string) {
	switch {
	case len(content) > sourcefile.MostBytes:
		return nil, name + " has " + Bytes(uint64(len(content))) + ": too much for a file of source code."
	case bytes.IndexByte(content, 0) >= 0:
		return nil, name + " is no text: it holds a zero byte. Give the source that the program was compiled from."
	}
	return &Source{Name: name, Path: where, Lines: sourcefile.Split(string(content))}, ""
}

// Add takes a file. One that is there already, to the letter, is not taken again.
func (s *Sources) Add(f *Source) {
	if s.files == nil {
		s.files = map[string][]*Source{}
	}
	for _, have := range s.files[f.Name] {
		if strings.Join(have.Lines, "\n") == strings.Join(f.Lines, "\n") {
			return
		}
	}
	s.files[f.Name] = append(s.files[f.Name], f)
}

// Of lists the files that may be the one that a profile names, those alone that have most folders
// in common with it: more than one where it is not known which it is.
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

// Label tells files of one name apart: by the folder where it is known, else by the length.
func (f *Source) Label(number int) string {
	if f.Path != "" && f.Path != f.Name {
		return f.Path
	}
	return strconv.Itoa(number) + ": " + f.Name + ", " + Plural(uint64(len(f.Lines)), "line", "lines")
}
