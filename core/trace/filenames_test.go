package trace

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFileNames(t *testing.T) {
	for path, want := range namesAndWanted(
		"/home/me/x/a/util.c", "a/util.c",
		"/home/me/x/b/util.c", "b/util.c",
		"/home/me/x/main.c", "main.c",
		"../include/list.h", "list.h", // the same header, with its path written in three ways
		"/home/me/x/include/list.h", "list.h",
		"./include/list.h", "list.h",
		`C:\x\one\tab.c`, "one/tab.c",
		`C:\x\two\sub\..\tab.c`, "two/tab.c",
		"p/q/deep.c", "p/q/deep.c",
		"r/q/deep.c", "r/q/deep.c",
		"", "",
	) {
		if want[0] != want[1] {
			t.Errorf("%q is named %q, want %q", path, want[0], want[1])
		}
	}
}

// namesAndWanted returns the actual and the expected name for each path.
func namesAndWanted(pairs ...string) map[string][2]string {
	var paths []string
	for i := 0; i < len(pairs); i += 2 {
		paths = append(paths, pairs[i])
	}
	names, list := FileNames(paths), map[string][2]string{}
	for i := 0; i < len(pairs); i += 2 {
		list[pairs[i]] = [2]string{names[pairs[i]], pairs[i+1]}
	}
	return list
}

// TestFileNamesAreDistinct checks that each name is a suffix of its path, that different files have
// different names, and that no name is longer than necessary. TestFileNamesAreDistinct also checks
// that the names depend neither on the order of the paths nor on their common prefix.
func TestFileNamesAreDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var paths, moved, turned []string
		for _, p := range rapid.SliceOfN(rapid.StringMatching(`[ab](/[ab]){0,4}`), 1, 8).Draw(t, "paths") {
			paths, moved, turned = append(paths, "/u/v/"+p), append(moved, "/elsewhere/"+p), append([]string{"/u/v/" + p}, turned...)
		}
		names, there, back := FileNames(paths), FileNames(moved), FileNames(turned)
		for i, p := range paths {
			n := names[p]
			common := !strings.HasPrefix(n, "v/") // a name that begins with v/ includes part of the common prefix
			if !strings.HasSuffix(p, "/"+n) || n != back[p] || common && n != there[moved[i]] {
				t.Fatalf("%s is named %q, but %q if the paths are in reverse order, and %q in a different folder", p, n, back[p], there[moved[i]])
			}
			shorter := names[p]
			if _, after, ok := strings.Cut(shorter, "/"); ok {
				shorter = after
			} else {
				shorter = ""
			}
			needed := shorter == ""
			for _, other := range paths {
				if other != p && names[other] == names[p] {
					t.Fatalf("%s and %s are both named %q", p, other, names[p])
				}
				needed = needed || other != p && strings.HasSuffix(other, "/"+shorter)
			}
			if !needed {
				t.Fatalf("%s is named %q, but %q would be enough", p, names[p], shorter)
			}
		}
	})
}

func TestCommonEndOfPaths(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		parts int
		whole bool
	}{
		{"util.c", "/x/a/util.c", 1, true}, {"a/util.c", "/x/a/util.c", 2, true}, {"b/util.c", "/x/a/util.c", 1, false},
		{"a/./util.c", `a\util.c`, 2, true}, {"xutil.c", "util.c", 0, false}, {"", "", 0, false},
	} {
		if parts, whole := CommonTail(c.a, c.b); parts != c.parts || whole != c.whole {
			t.Errorf("CommonTail(%s, %s) = %d, %v, want %d, %v", c.a, c.b, parts, whole, c.parts, c.whole)
		}
	}
}
