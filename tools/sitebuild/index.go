package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/site/policy"
	"github.com/stackglass/stackglass/ui/state"
)

// writeIndex renders the first screen, with a card for every demo. The first screen works before
// any wasm is loaded.
func (b *build) writeIndex() error {
	list, err := site.Demos()
	if err != nil {
		return err
	}
	page, err := template.New("index.tmpl").Funcs(template.FuncMap{
		"count": formatCount, "spaced": state.Spaced, "address": b.urlOf, "worker": b.workerURL,
	}).ParseFiles("site/index.tmpl")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = page.Execute(&out, struct {
		Policy  string
		Demos   []site.Demo
		Formats []open.Format
	}{policy.Meta, list, open.Formats()})
	if err != nil {
		return err
	}
	return b.write("index.html", out.Bytes())
}

// formatCount formats a number with thousands separators.
func formatCount(n uint64) string { return state.Spaced(report.Count(n).Human()) }

// extractHelper extracts, from Vugu's source, the script that Vugu would eval.
func (b *build) extractHelper() error {
	dir, err := commandOutput("go", "list", "-m", "-f", "{{.Dir}}", "github.com/vugu/vugu")
	if err != nil {
		return err
	}
	script, err := stringConstant(filepath.Join(dir, "domrender", "renderer-js-script.go"), "jsHelperScript")
	if err != nil {
		return err
	}
	if script, err = editScript(script); err != nil {
		return err
	}
	return b.write("vugu.js", []byte(script+";\n"))
}

// editScript makes two changes to Vugu's script. First, the decoder adds an incomplete character at
// the end of a chunk to the next chunk. This is necessary because Vugu splits text that is longer
// than its buffer of 16 KiB at any byte, even within a character. Second, the renderer skips
// attributes and texts that have not changed. Without this change, Vugu would set all attributes
// and texts in every render, and the browser would recompute the whole layout.
func editScript(script string) (string, error) {
	for _, change := range [...]struct{ from, to string }{
		{"readString(){", "readString(more){"},
		{"this.offset+4,e))", "this.offset+4,e),{stream:more})"},
		{"case y:{let e=C.readString()", "case y:{let e=C.readString(true)"}, // opcodeBufferInnerHTML
		{"e.setAttribute(t,n),x", "e.getAttribute(t)!==n&&e.setAttribute(t,n),x"},
		{"let t=document.createTextNode(e);x.el.parentNode.replaceChild(t,x.el),x.el=t}else x.el.textContent=e",
			"let t=document.createTextNode(e);x.el.parentNode.replaceChild(t,x.el),x.el=t}else x.el.data!==e&&(x.el.data=e)"},
		{`x.el.innerHTML=(x.bufferedInnerHTML||"")+e,x`, `e=(x.bufferedInnerHTML||"")+e,x.el.innerHTML!==e&&(x.el.innerHTML=e),x`},
	} {
		if n := strings.Count(script, change.from); n != 1 {
			return "", fmt.Errorf("the script that Vugu generates contains %q %d times, want once: the renderer has changed, so adapt the edits", change.from, n)
		}
		script = strings.Replace(script, change.from, change.to, 1)
	}
	return script, nil
}

// stringConstant returns the value of a string constant in a Go file.
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
	return "", fmt.Errorf("%s contains no string constant %s: Vugu's renderer has changed; find the new location of its script", file, name)
}
