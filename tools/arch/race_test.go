package arch

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// TestRaceListIsComplete checks that `make race` tests every package that starts or synchronises
// goroutines. `make race` does not run packages that only the browser uses (wasm and ui), because
// goroutines share one thread there. The command runs the tests of all packages in the module
// tools/beam.
func TestRaceListIsComplete(t *testing.T) {
	list := regexp.MustCompile(`(?s)\nCONCURRENT := (.*?[^\\])\n`).FindStringSubmatch(readFile(t, "Makefile"))
	if list == nil {
		t.Fatal("the Makefile has no list CONCURRENT")
	}
	listed := func(dir string) bool {
		for _, pattern := range strings.Fields(strings.ReplaceAll(list[1], "\\\n", " ")) {
			if base, all := strings.CutSuffix(pattern[len("./"):], "/..."); dir == base || all && isBelow(dir, base) {
				return true
			}
		}
		return false
	}
	found := map[string]string{}
	for _, s := range goSources(t) {
		if s.isTest || isBelow(s.dir, "wasm") || isBelow(s.dir, "ui") || isBelow(s.dir, "tools/beam") || strings.Contains(readFile(t, s.name), "//go:build js") {
			continue
		}
		for _, name := range []string{"sync", "sync/atomic", module + "core/parallel"} {
			if _, uses := s.imports[name]; uses {
				found[s.dir] = "imports " + name
			}
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if _, starts := n.(*ast.GoStmt); starts {
				found[s.dir] = "starts a goroutine"
			}
			return true
		})
	}
	if len(found) < 10 {
		t.Fatalf("only %d packages use goroutines: %v", len(found), found)
	}
	for dir, why := range found {
		if !listed(dir) {
			t.Errorf("%s %s, but CONCURRENT in the Makefile does not contain it", dir, why)
		}
	}
}
