package command

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// sources are files of source code. A profile names a file by the end of its path.
type sources struct {
	paths map[string][]string // absolute, by base name
	lines map[string][]string // of files that were read
	asked map[string]bool     // files that rows name
}

// mostSourceFiles is the most files that a folder may contain.
const mostSourceFiles = 200_000

// findSources lists the files in folders.
func findSources(places []string) (*sources, error) {
	s := &sources{paths: map[string][]string{}, lines: map[string][]string{}, asked: map[string]bool{}}
	files := 0
	for _, place := range places {
		if _, err := os.Stat(place); err != nil {
			return nil, usagef("--source ", place, ": ", reason(err), "; give a folder or a file of the program's source")
		}
		err := filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // what may not be read is left out
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
		return nil, usagef("--source: more than 200,000 files; give the folder that has the source, or the files")
	}
	return s, nil
}

// text returns a line with single spaces, or "" if it is not found.
func (s *sources) text(file string, line uint32) string {
	if file == "" || line == 0 {
		return ""
	}
	s.asked[file] = true
	paths := s.find(file)
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

// find returns the files that a profile may mean: those whose paths have the longest common
// end with its name.
func (s *sources) find(file string) (paths []string) {
	most := 0
	for _, path := range s.paths[filepath.Base(file)] {
		parts, whole := trace.CommonTail(file, path)
		if !whole || parts < most {
			continue
		}
		if parts > most {
			most, paths = parts, nil
		}
		paths = append(paths, path)
	}
	return paths
}

// readLines reads a text file. It returns nil for any other file.
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

// doubts warns about files that were not found, or found twice.
func (s *sources) doubts() (list []string) {
	var missing []string
	for file := range s.asked {
		switch paths := s.find(file); {
		case len(s.paths) == 0:
		case len(paths) == 0:
			missing = append(missing, file)
		case len(paths) > 1:
			list = append(list, file+" is there several times; shown is "+paths[0]+": give the right one by --source")
		}
	}
	if len(missing) > 0 {
		list = append(list, "not among the source: "+strings.Join(sorted(missing), ", "))
	}
	return sorted(list)
}
