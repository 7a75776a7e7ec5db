package arch

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// topLevel lists everything that the top-level folder may contain, except for dot-files.
var topLevel = map[string]bool{
	"core": true, "workers": true, "wasm": true, "ui": true, "site": true, "tools": true,
	"go.mod": true, "go.sum": true, "Makefile": true, "LICENSE": true, "README.md": true, "CHANGELOG.md": true,
	"bin": true, "build": true, // folders that the build writes and git ignores
}

func TestTopLevelFiles(t *testing.T) {
	entries, err := os.ReadDir(rootFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !topLevel[e.Name()] && !strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s does not belong in the top folder", e.Name())
		}
	}
}

func TestEveryFolderHasReadme(t *testing.T) {
	for folder := range mayImport {
		text, err := os.ReadFile(filepath.Join(rootFolder(t), folder, "README.md"))
		if err != nil {
			t.Errorf("%s has no README.md: describe the folder's content and where to start, in three to ten lines", folder)
			continue
		}
		if len(bytes.TrimSpace(text)) < 100 {
			t.Errorf("%s/README.md is nearly empty", folder)
		}
	}
}

func TestCommandMainIsSmall(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(rootFolder(t), "tools", "stackglass", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n >= 40 {
		t.Errorf("tools/stackglass/main.go has %d lines, want under 40: its code belongs in internal", n)
	}
}

// TestPackagesAreDocumented checks that every package has a doc comment.
func TestPackagesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range goSources(t) {
		if !s.isTest {
			documented[s.dir] = documented[s.dir] || s.syntax.Doc != nil
		}
	}
	for dir, yes := range documented {
		if !yes {
			t.Errorf("%s has no package documentation", dir)
		}
	}
}

// TestChangelogIsShort checks that the list of changes for each version fits on one screen.
func TestChangelogIsShort(t *testing.T) {
	versions := strings.Split(readFile(t, "CHANGELOG.md"), "\n## ")
	if len(versions) < 2 {
		t.Fatal("CHANGELOG.md has no section")
	}
	for _, v := range versions[1:] {
		name, _, _ := strings.Cut(v, "\n")
		if n := strings.Count(v, "\n- "); n < 1 || n > 20 {
			t.Errorf("CHANGELOG.md: %s has %d entries, want 1 to 20: change an entry rather than add one", name, n)
		}
	}
}

func TestGeneratedFilesAreMarked(t *testing.T) {
	for _, s := range goSources(t) {
		if strings.HasSuffix(s.name, "_gen.go") && !ast.IsGenerated(s.syntax) {
			t.Errorf("%s: the first lines lack: Code generated … DO NOT EDIT.", s.name)
		}
	}
}

// TestTestsDoNotMeasureTime checks that the core's tests do not depend on the clock. Speed is
// measured with benchmarks, which are compared with benchstat.
func TestTestsDoNotMeasureTime(t *testing.T) {
	for _, s := range goSources(t) {
		if !s.isTest || !isBelow(s.dir, "core") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "time" && (call.Sel.Name == "Now" || call.Sel.Name == "Since") {
				t.Errorf("%s: a test of the core reads the clock", s.name)
			}
			return true
		})
	}
}

// TestPackageNamesAreMeaningful rejects package names that do not describe the package's content.
func TestPackageNamesAreMeaningful(t *testing.T) {
	empty := map[string]bool{"util": true, "utils": true, "helper": true, "helpers": true, "common": true, "misc": true, "base": true, "manager": true}
	for _, s := range goSources(t) {
		if empty[s.syntax.Name.Name] {
			t.Errorf("%s: the package name %s does not describe the content; name the package after the result that it computes", s.name, s.syntax.Name.Name)
		}
	}
}

// TestTestsOfListedFaultsExist checks that every test that is named in the table of possible faults
// exists.
func TestTestsOfListedFaultsExist(t *testing.T) {
	table := readFile(t, "wasm/FAULTS.md")
	tests := map[string]bool{}
	for _, s := range goSources(t) {
		for _, d := range s.syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && (s.isTest || isHelper(s.dir)) {
				tests[f.Name.Name] = true
			}
		}
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`").FindAllStringSubmatch(table, -1)
	if len(names) < 20 {
		t.Errorf("wasm/FAULTS.md names %d tests", len(names))
	}
	for _, name := range names {
		if !tests[name[1]] {
			t.Errorf("wasm/FAULTS.md: there is no test %s", name[1])
		}
	}
}
