package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
)

// extractHelper takes the script that Vugu would eval out of its source.
func (b *build) extractHelper() error {
	dir, err := output("go", "list", "-m", "-f", "{{.Dir}}", "github.com/vugu/vugu")
	if err != nil {
		return err
	}
	script, err := stringConstant(filepath.Join(dir, "domrender", "renderer-js-script.go"), "jsHelperScript")
	if err != nil {
		return err
	}
	return b.write("vugu.js", []byte(script+";\n"))
}

// stringConstant gives the value of a string constant in a Go file.
func stringConstant(file, name string) (string, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	for _, decl := range tree.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			for i, ident := range value.Names {
				if ident.Name != name || i >= len(value.Values) {
					continue
				}
				if lit, ok := value.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					return strconv.Unquote(lit.Value)
				}
			}
		}
	}
	return "", fmt.Errorf("%s: no string constant %s: Vugu's renderer has changed, look where its script went", file, name)
}
