package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/stackglass/stackglass/"

// A source is a parsed Go file of the repository.
type source struct {
	name    string // slash-separated path relative to the repository's root
	dir     string
	isTest  bool // whether the file's name ends in _test.go
	syntax  *ast.File
	imports map[string]token.Position
}

// rootFolder returns the repository's root folder.
func rootFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// isSkipped reports whether these tests ignore the files in a folder.
func isSkipped(name string) bool {
	base := path.Base(name)
	return base == "node_modules" || base == "testdata" || name == "site/dist" ||
		name == "bin" || name == "build" || strings.HasPrefix(base, ".") && name != "."
}

// walkFiles calls "visit" for every file that these tests check.
func walkFiles(t *testing.T, visit func(name string)) {
	t.Helper()
	walkExcept(t, isSkipped, visit)
}

// walkExcept calls "visit" for every file, except in folders for which "skip" returns true.
func walkExcept(t *testing.T, skip func(name string) bool, visit func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(rootFolder(t)), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skip(name) {
				return fs.SkipDir
			}
			return nil
		}
		visit(name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goSources parses every Go file.
func goSources(t *testing.T) []source {
	t.Helper()
	dir := rootFolder(t)
	files := token.NewFileSet()
	var list []source
	walkFiles(t, func(name string) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		syntax, err := parser.ParseFile(files, filepath.Join(dir, filepath.FromSlash(name)), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		s := source{name: name, dir: path.Dir(name), isTest: strings.HasSuffix(name, "_test.go"), syntax: syntax, imports: map[string]token.Position{}}
		for _, spec := range syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			s.imports[imported] = files.Position(spec.Pos())
		}
		list = append(list, s)
	})
	if len(list) < 20 {
		t.Fatalf("only %d Go files found below %s", len(list), dir)
	}
	return list
}

// isBelow reports whether a directory is the given folder or lies below it.
func isBelow(dir, folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }
