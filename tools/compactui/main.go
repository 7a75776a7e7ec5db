// Compactui rewrites the Go code that vugugen generates from components, so that it compiles to
// fewer bytes: calls of functions in ui/nodes.go replace the statements for each node, listener and
// property. The resulting nodes are the same, except for white space that a browser does not show
// (space.go).
//
//	compactui FILE
//
// In WebAssembly, the statements that build a text node take 200 bytes, and the call that replaces
// them takes 30. Components account for one sixth of the bytes of a first visit.
package main

import (
	"fmt"
	"go/format"
	"os"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: compactui FILE")
		os.Exit(2)
	}
	if err := rewrite(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "compactui: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func rewrite(path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	smaller, err := compact(string(source))
	if err != nil {
		return err
	}
	return os.WriteFile(path, smaller, 0o644)
}

const literal = `("(?:[^"\\]|\\.)*")` // a string literal, as printed by %q

var (
	text       = regexp.MustCompile(`vgn = &vugu\.VGNode\{Type: vugu\.VGNodeType\(1\), Data: ` + literal + `\}\s*vgparent\.AppendChild\(vgn\)\n`)
	element    = regexp.MustCompile(`vgn = &vugu\.VGNode\{Type: vugu\.VGNodeType\(3\), Namespace: "", Data: ` + literal + `, Attr: \[\]vugu\.VGAttribute(?:\(nil\)|\{(.*)\})\}\s*vgparent\.AppendChild\(vgn\)\n`)
	attribute  = regexp.MustCompile(`\{Namespace: "", Key: ` + literal + `, Val: ` + literal + `\}`)
	attributes = regexp.MustCompile(`^(?:(?:, )?(?:vugu\.VGAttribute)?` + attribute.String() + `)*$`)
	listener   = regexp.MustCompile(`vgn\.DOMEventHandlerSpecList = append\(vgn\.DOMEventHandlerSpecList, vugu\.DOMEventHandlerSpec\{\s*EventType:\s*` + literal + `,\s*Func:\s*(func\(event vugu\.DOMEvent\) \{(?s:.*?)\}),\s*// TODO: .*\s*\}\)\n`)
	component  = regexp.MustCompile(`vgin\.BuildEnv\.WireComponent\(vgcomp\)\s*vgout\.Components = append\(vgout\.Components, vgcomp\)\s*vgn = &vugu\.VGNode\{Component: vgcomp\}\s*vgparent\.AppendChild\(vgn\)\n`)
	unused     = regexp.MustCompile(`vgn = (addElement\(.*\)\n)(\s*(?:\}|add(?:Text|Element|Component)\(|(?:if|for|vgn =) ))`)
	property   = regexp.MustCompile(`\{\s*b, err := vjson\.Marshal\((.*)\)\s*if err != nil \{\s*panic\(err\)\s*\}\s*vgn\.Prop = append\(vgn\.Prop, vugu\.VGProperty\{Key: ` + literal + `, JSONVal: vjson\.RawMessage\(b\)\}\)\s*\}\n`)
)

// compact returns the source with shorter statements. It leaves unknown patterns unchanged.
func compact(source string) ([]byte, error) {
	source = text.ReplaceAllString(source, "addText(vgparent, $1)\n")
	source = element.ReplaceAllStringFunc(source, func(statements string) string {
		found := element.FindStringSubmatch(statements)
		if !attributes.MatchString(found[2]) {
			return statements
		}
		words := []string{unquoted(found[1])}
		for _, a := range attribute.FindAllStringSubmatch(found[2], -1) {
			words = append(words, unquoted(a[1]), unquoted(a[2]))
		}
		return "vgn = addElement(vgparent, " + strconv.Quote(strings.Join(words, "\x00")) + ")\n"
	})
	source = listener.ReplaceAllString(source, "addListener(vgn, $1, $2)\n")
	source = component.ReplaceAllString(source, "addComponent(vgin, vgout, vgparent, vgcomp)\n")
	source = property.ReplaceAllString(source, "addProperty(vgn, $2, $1)\n")
	source = unused.ReplaceAllString(source, "$1$2")
	formatted, err := format.Source([]byte(source))
	if err != nil {
		return nil, err
	}
	return []byte(withoutSpace(string(formatted))), nil
}

// unquoted returns the value of a string literal.
func unquoted(literal string) string {
	s, err := strconv.Unquote(literal)
	if err != nil {
		panic("not a string literal: " + literal) // cannot happen, because the patterns match only literals
	}
	return s
}
