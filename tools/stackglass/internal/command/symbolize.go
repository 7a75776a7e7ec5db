package command

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/internal/symbols"
)

func addSymbols(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVar(files, "symbols", nil, "read function names and source lines from this `PROGRAM` or library; PROGRAM@ADDRESS also specifies the load address")
}

// symbolize adds functions, files and lines to instructions. It reads this information from the
// files of the program, and returns warnings.
func symbolize(p *profile.Profile, files []string) (notes []string, err error) {
	if len(files) > 0 && p.Sites == nil {
		return nil, usagef("--symbols: the profile contains no source locations that could be named")
	}
	paths := map[*profile.Site]string{}
	for _, file := range files {
		n, err := symbolizeBy(p.Sites, file, paths)
		if err != nil {
			return nil, err
		}
		notes = append(notes, n...)
	}
	if len(paths) > 0 {
		nameFiles(p.Sites, paths)
	}
	return notes, nil
}

// symbolizeBy adds names from one file to sites, and adds the paths of the source files to the map
// "paths".
func symbolizeBy(s *profile.Sites, file string, paths map[*profile.Site]string) (notes []string, err error) {
	path, text, moved := strings.Cut(file, "@")
	known, err := symbols.Open(path)
	if err != nil {
		return nil, usagef("--symbols ", path, ": ", errorText(err), "; give the ELF file of the program or library that was traced")
	}
	base := known.Low
	if moved {
		if base, err = strconv.ParseUint(text, 0, 64); err != nil {
			return nil, usagef("--symbols ", file, ": ", strconv.Quote(text), ", want the address at which the file was loaded, for example 0x555555554000")
		}
	}
	n := symbolizer{file: known, name: filepath.Base(path), base: base, moved: moved, paths: paths}
	n.unaddressed = !slices.ContainsFunc(s.Code, func(c profile.Site) bool { return c.PC != 0 })
	for i := range s.Code {
		n.addNames(&s.Code[i])
	}
	return n.matchWarnings(), nil
}

// symbolizer adds the names in one executable or library to instructions.
type symbolizer struct {
	file  *symbols.File
	name  string
	base  uint64 // load address of the file, for sites without a module
	moved bool   // whether the user specified the load address

	paths            map[*profile.Site]string // paths of the source files of sites
	addresses, named int
	lines            int      // number of named sites that have a source line
	unaddressed      bool     // whether no site has an address
	others           []string // the modules in the trace, except the module of this file
}

// addNames adds names to a site. If the trace contains a name for the site, addNames keeps that
// name.
func (n *symbolizer) addNames(s *profile.Site) {
	addr := s.PC - n.base + n.file.Low
	switch {
	case s.PC == 0 || s.Function != "" && s.Line != 0:
		return
	case s.Module == n.name:
		addr = s.Offset + n.file.Low
	case s.Module != "":
		if !slices.Contains(n.others, s.Module) {
			n.others = append(n.others, s.Module)
		}
		return
	}
	n.addresses++
	f, ok := n.file.Function(addr)
	if !ok || addr < n.file.Low || addr >= n.file.High {
		return
	}
	n.named++
	s.Function = cmp.Or(s.Function, f.Name)
	if at, ok := n.file.Line(addr); ok {
		if n.lines++; s.Line == 0 {
			n.paths[s], s.Line, s.Column = at.File, uint32(at.Line), uint32(at.Column)
		}
	}
}

// nameFiles shortens the file names of sites as an analysis does. It uses the full paths of the
// files, if they are known.
func nameFiles(s *profile.Sites, paths map[*profile.Site]string) {
	path := func(site *profile.Site) string { return cmp.Or(paths[site], site.File) }
	var all []string
	for i := range s.Code {
		all = append(all, path(&s.Code[i]))
	}
	names := trace.FileNames(all)
	for i := range s.Code {
		s.Code[i].File = names[path(&s.Code[i])]
	}
}

// matchWarnings returns a warning if the file does not seem to be part of the traced program.
func (n *symbolizer) matchWarnings() (list []string) {
	switch {
	case n.unaddressed:
		list = append(list, "the trace contains no instruction addresses, so "+n.name+" has no effect")
	case n.addresses == 0 && len(n.others) > 0:
		list = append(list, n.name+" is not among the modules of the trace ("+strings.Join(slices.Sorted(slices.Values(n.others)), ", ")+"), so it has no effect")
	case n.addresses > 0 && n.named == 0 && n.file.Dynamic && !n.moved:
		list = append(list, "no instruction of the trace is in "+n.name+", which can be loaded at any address: state its load address, for example --symbols "+n.name+"@0x555555554000 (see the first line for the file in /proc/PID/maps; under Valgrind, the address is 0x108000)")
	case n.addresses > 0 && n.named == 0:
		list = append(list, "no instruction of the trace is in a function of "+n.name+": this is not the program that was traced, or the file has no symbols")
	case 2*n.named < n.addresses:
		list = append(list, n.name+" contains the functions of "+strconv.Itoa(n.named)+" of "+strconv.Itoa(n.addresses)+" instructions: the other instructions are in other files, or the file is from a different build")
	case n.lines == 0 && n.file.HasLines():
		list = append(list, n.name+" contains source lines, but no source lines of the traced instructions: the file may be a different program, or it was loaded at a different address")
	}
	return list
}

// sources finds the text of source lines in source files, although a profile contains only the last
// part of a file's path.
type sources struct {
	paths map[string][]string // for each base name: the absolute paths
	lines map[string][]string // contents of the files read so far
	asked map[string]bool     // files in which a line was looked up
}

// mostSourceFiles is the maximum number of files that are searched in a folder.
const mostSourceFiles = 200_000

// findSources lists the files in the given folders.
func findSources(places []string) (*sources, error) {
	s := &sources{paths: map[string][]string{}, lines: map[string][]string{}, asked: map[string]bool{}}
	files := 0
	for _, place := range places {
		if _, err := os.Stat(place); err != nil {
			return nil, usagef("--source ", place, ": ", errorText(err), "; give a folder or a file of the program's source")
		}
		err := filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // skip unreadable folders
			case d.IsDir() && path != place && strings.HasPrefix(d.Name(), "."):
				return filepath.SkipDir
			case d.IsDir():
				return nil
			}
			if files++; files > mostSourceFiles {
				return fs.SkipAll
			}
			if whole, err := filepath.Abs(path); err == nil && !slices.Contains(s.paths[d.Name()], whole) {
				s.paths[d.Name()] = append(s.paths[d.Name()], whole)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if files > mostSourceFiles {
		return nil, usagef("--source: the folder contains more than 200,000 files; give a smaller folder, or the source files themselves")
	}
	return s, nil
}

// lineText returns the text of a source line, with each sequence of spaces replaced by one space.
// It returns "" if the line is not found.
func (s *sources) lineText(file string, line uint32) string {
	if file == "" || line == 0 {
		return ""
	}
	s.asked[file] = true
	paths := s.findPaths(file)
	if len(paths) == 0 {
		return ""
	}
	lines, read := s.lines[file]
	if !read {
		lines = readLines(paths[0])
		s.lines[file] = lines
	}
	if int64(line) > int64(len(lines)) {
		return ""
	}
	return strings.Join(strings.Fields(lines[line-1]), " ")
}

// findPaths returns the paths to which a file name in a profile may refer: the paths that share the
// longest suffix with it.
func (s *sources) findPaths(file string) (paths []string) {
	all := s.paths[filepath.Base(file)]
	for _, i := range trace.SameFile(file, all) {
		paths = append(paths, all[i])
	}
	return paths
}

// readLines returns the lines of a text file, or nil for any other file.
func readLines(path string) []string {
	const mostBytes = 64 << 20
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > mostBytes {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil || bytes.IndexByte(content, 0) >= 0 {
		return nil
	}
	return strings.Split(string(content), "\n")
}

// sourceWarnings returns warnings about source files that were not found, or that were found in
// several folders.
func (s *sources) sourceWarnings() (list []string) {
	var missing []string
	for file := range s.asked {
		switch paths := s.findPaths(file); {
		case len(s.paths) == 0:
		case len(paths) == 0:
			missing = append(missing, file)
		case len(paths) > 1:
			list = append(list, file+" was found several times; the text shown is from "+paths[0]+"; select the right file with --source")
		}
	}
	if len(missing) > 0 {
		list = append(list, "not found in --source: "+strings.Join(slices.Sorted(slices.Values(missing)), ", "))
	}
	return slices.Sorted(slices.Values(list))
}
