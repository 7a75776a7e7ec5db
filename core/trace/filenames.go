package trace

import "strings"

// BaseName returns a path without its folder, which says where somebody keeps a file and would
// give equal programs different profiles.
func BaseName(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// FileNames names files of source by their paths: by the least tail that tells one
// from all others, as in a/util.c and b/util.c beside main.c. What lies above that
// says where somebody keeps the files, and would give equal programs different
// results. A path that is the tail of another one is taken for the same file, as
// compilers write one header in several ways.
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

// nameFiles names files whose tails of depth-1 parts are equal.
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
				names[f.path] = tail // of which of the others it is a tail is not known
			}
		}
		nameFiles(longer, depth+1, names)
	}
}

// oneFile tells whether each path is a tail of the longest.
func oneFile(group []sourceFile) bool {
	longest := group[0].parts
	for _, f := range group {
		if len(f.parts) > len(longest) {
			longest = f.parts
		}
	}
	for _, f := range group {
		if commonParts(f.parts, longest) < len(f.parts) {
			return false
		}
	}
	return true
}

// CommonTail is the number of parts in which two paths end alike: 0 for files of
// other names. whole: that is all of one of them, so both may be one file.
func CommonTail(a, b string) (parts int, whole bool) {
	x, y := pathParts(a), pathParts(b)
	parts = commonParts(x, y)
	return parts, parts > 0 && parts == min(len(x), len(y))
}

func commonParts(a, b []string) (n int) {
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// pathParts are the folders and the name of a path, of whatever system, without
// those that say nothing.
func pathParts(path string) (parts []string) {
	for path != "" {
		end := strings.IndexAny(path, `/\`)
		if end < 0 {
			end = len(path)
		}
		switch part := path[:end]; {
		case part == "..":
			parts = parts[:max(0, len(parts)-1)]
		case part != "." && part != "":
			parts = append(parts, part)
		}
		path = path[min(end+1, len(path)):]
	}
	return parts
}
