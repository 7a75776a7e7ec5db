package trace

import (
	"slices"
	"strings"
)

// BaseName returns a path without its folder. Profiles contain base names, because folders depend
// on the user's machine, and would make the profiles of identical programs differ.
func BaseName(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// FileNames returns the displayed name of each source file: the shortest tail of its path that is
// unique. Two files called util.c become a/util.c and b/util.c, but a single main.c is displayed as
// main.c. Results therefore do not depend on the folder of the program. If one path is a tail of a
// longer path, both are assumed to denote the same file, because compilers write the path of a
// header in several ways.
func FileNames(paths []string) map[string]string {
	names := make(map[string]string, len(paths))
	var files []sourceFile
	for _, path := range paths {
		if _, known := names[path]; !known {
			names[path] = ""
			files = append(files, sourceFile{path, pathParts(path)})
		}
	}
	nameFiles(files, 1, names)
	return names
}

type sourceFile struct {
	path  string
	parts []string
}

// nameFiles names the files of a group. The last depth - 1 elements of all paths of the group are
// equal.
func nameFiles(files []sourceFile, depth int, names map[string]string) {
	groups := map[string][]sourceFile{}
	for _, f := range files {
		tail := strings.Join(f.parts[max(0, len(f.parts)-depth):], "/")
		groups[tail] = append(groups[tail], f)
	}
	for tail, group := range groups {
		if oneFile(group) {
			for _, f := range group {
				names[f.path] = tail
			}
			continue
		}
		var longer []sourceFile
		for _, f := range group {
			if len(f.parts) > depth {
				longer = append(longer, f)
			} else {
				names[f.path] = tail // the path is a tail of several longer paths
			}
		}
		nameFiles(longer, depth+1, names)
	}
}

// oneFile reports whether every path is a tail of the longest path.
func oneFile(group []sourceFile) bool {
	longest := slices.MaxFunc(group, func(a, b sourceFile) int { return len(a.parts) - len(b.parts) }).parts
	return !slices.ContainsFunc(group, func(f sourceFile) bool { return commonParts(f.parts, longest) < len(f.parts) })
}

// CommonTail returns the number of trailing path elements that two paths have in common. The result
// "whole" reports whether one path is a tail of the other path, so that both may denote the same
// file.
func CommonTail(a, b string) (parts int, whole bool) {
	x, y := pathParts(a), pathParts(b)
	parts = commonParts(x, y)
	return parts, parts > 0 && parts == min(len(x), len(y))
}

// SameFile returns the indices of the paths that may denote the file with the given name. The
// result contains the paths that share the longest tail with this name.
func SameFile(name string, paths []string) (list []int) {
	most := 0
	for i, path := range paths {
		parts, whole := CommonTail(name, path)
		if !whole || parts < most {
			continue
		}
		if parts > most {
			most, list = parts, nil
		}
		list = append(list, i)
	}
	return list
}

func commonParts(a, b []string) (n int) {
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// pathParts returns the folders and the file name of a cleaned path of any operating system.
func pathParts(path string) (parts []string) {
	for _, part := range strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		switch part {
		case "..":
			parts = parts[:max(0, len(parts)-1)]
		case ".":
		default:
			parts = append(parts, part)
		}
	}
	return parts
}
