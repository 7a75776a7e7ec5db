// Compactui rewrites the Go code that vugugen generates from components, so that the code compiles
// to fewer bytes. Calls to functions in ui/nodes.go replace the statements for each node, listener
// and property. The resulting nodes are the same, except for white space that browsers do not show
// (space.go).
//
//	compactui FILE
//
// In WebAssembly, the statements that build a text node take 200 bytes, and the call that replaces
// these statements takes 30 bytes. Components account for one sixth of the bytes that a first visit
// to the page transfers.
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

const (
	literalText = `((?:[^"\\]|\\.)*)`   // the text of a string literal, as printed by %q
	literal     = `("(?:[^"\\]|\\.)*")` // a string literal
)

// createdElement matches the statement that creates an element. Its groups are the name and the
// attributes of the element.
const createdElement = `vgn = &vugu\.VGNode\{Type: vugu\.VGNodeType\(3\), Namespace: "", Data: ` + literal + `, Attr: \[\]vugu\.VGAttribute(?:\(nil\)|\{(.*)\})\}\s*`

var (
	text       = regexp.MustCompile(`vgn = &vugu\.VGNode\{Type: vugu\.VGNodeType\(1\), Data: ` + literal + `\}\s*vgparent\.AppendChild\(vgn\)\n`)
	element    = regexp.MustCompile(createdElement + `vg(parent)\.AppendChild\(vgn\)\n`)
	root       = regexp.MustCompile(createdElement + `vg(out)\.Out = append\(vgout\.Out, vgn\).*\n`)
	attribute  = regexp.MustCompile(`\{Namespace: "", Key: ` + literal + `, Val: ` + literal + `\}`)
	attributes = regexp.MustCompile(`^(?:(?:, )?(?:vugu\.VGAttribute)?` + attribute.String() + `)*$`)
	value      = regexp.MustCompile(`vgn\.AddAttrInterface\(` + literal + `, (.*)\)\n`)
	markup     = regexp.MustCompile(`vgn\.SetInnerHTML\(vugu\.HTML\(` + literal + `\)\)\n`)
	content    = regexp.MustCompile(`vgn\.SetInnerHTML\((.*)\)\n`)
	listener   = regexp.MustCompile(`vgn\.DOMEventHandlerSpecList = append\(vgn\.DOMEventHandlerSpecList, vugu\.DOMEventHandlerSpec\{\s*EventType:\s*` + literal + `,\s*Func:\s*(func\(event vugu\.DOMEvent\) \{(?s:.*?)\}),\s*// TODO: .*\s*\}\)\n`)
	component  = regexp.MustCompile(`\{\s*var vgcomp vugu\.Builder = (.*)\s*if vgcomp != nil \{\s*vgin\.BuildEnv\.WireComponent\(vgcomp\)\s*vgout\.Components = append\(vgout\.Components, vgcomp\)\s*vgn = &vugu\.VGNode\{Component: vgcomp\}\s*vgparent\.AppendChild\(vgn\)\s*\}\s*\}\n`)
	loopKey    = regexp.MustCompile(`var vgiterkey interface\{\} = \w+\s*_ = vgiterkey\n`)
	loopCopy   = regexp.MustCompile(`(\w+) := (\w+)\n\s*_ = \w+\n`)
	property   = regexp.MustCompile(`\{\s*b, err := vjson\.Marshal\((.*)\)\s*if err != nil \{\s*panic\(err\)\s*\}\s*vgn\.Prop = append\(vgn\.Prop, vugu\.VGProperty\{Key: ` + literal + `, JSONVal: vjson\.RawMessage\(b\)\}\)\s*\}\n`)
)

// These patterns match statements that the patterns above have already made compact. The pattern
// onlyText matches an element whose only child is a text. The statements between the element and
// the text add no nodes.
var (
	fixed      = regexp.MustCompile(`(vgn = addElement\(vgparent, "` + literalText + `)"\)\s*setAttribute\(vgn, "` + literalText + `", "` + literalText + `"\)\n`)
	onlyText   = regexp.MustCompile(`(add(?:Element|Root)\(\w+, "` + literalText + `)"\)\n((?:\s*(?:setAttribute|addProperty|addListener)\(vgn, .*\)\n)*)\s*\{\s*vgparent := vgn\s*_ = vgparent\s*addText\(vgparent, "` + literalText + `"\)\s*\}\n`)
	afterSpace = regexp.MustCompile(`addText\(vgparent, "(?:\\n|\\t| )+"\)\s*((?:vgn = )?addElement\(vgparent, ")`)
	unused     = regexp.MustCompile(`vgn = (addElement\(.*\)\n)(\s*(?:\}|add(?:Text|Element|Component)\(|(?:if|for|vgn =) ))`)
)

// compact returns the source with shorter statements. It does not change statements that match no
// pattern.
func compact(source string) ([]byte, error) {
	source = text.ReplaceAllString(source, "addText(vgparent, $1)\n")
	for add, made := range map[string]*regexp.Regexp{"addElement(": element, "addRoot(": root} {
		source = made.ReplaceAllStringFunc(source, func(statements string) string {
			found := made.FindStringSubmatch(statements)
			if !attributes.MatchString(found[2]) {
				return statements
			}
			words := []string{unquoted(found[1])}
			for _, a := range attribute.FindAllStringSubmatch(found[2], -1) {
				words = append(words, unquoted(a[1]), unquoted(a[2]))
			}
			return "vgn = " + add + "vg" + found[3] + ", " + strconv.Quote(strings.Join(words, "\x00")) + ")\n"
		})
	}
	source = value.ReplaceAllString(source, "setAttribute(vgn, $1, $2)\n")
	source = markup.ReplaceAllStringFunc(source, func(statement string) string {
		text := markup.FindStringSubmatch(statement)[1]
		if strings.ContainsAny(unquoted(text), "<&") {
			return statement // the text contains tags or entities, so it must remain HTML
		}
		return "{\nvgparent := vgn\n_ = vgparent\naddText(vgparent, " + text + ")\n}\n"
	})
	source = content.ReplaceAllString(source, "setText(vgn, $1)\n")
	source = listener.ReplaceAllString(source, "addListener(vgn, $1, $2)\n")
	source = component.ReplaceAllString(source, "addComponent(vgin, vgout, vgparent, $1)\n")
	source = property.ReplaceAllString(source, "addProperty(vgn, $2, $1)\n")
	source = strings.ReplaceAll(loopKey.ReplaceAllString(source, ""), "vgiterkeyt", "_")
	source = loopCopy.ReplaceAllStringFunc(source, func(statements string) string {
		if found := loopCopy.FindStringSubmatch(statements); found[1] == found[2] {
			return "_ = " + found[1] + "\n" // no copy is necessary, because each iteration has a new loop variable
		}
		return statements
	})
	formatted, err := format.Source([]byte(source))
	if err != nil {
		return nil, err
	}
	source = withoutSpace(string(formatted))
	source = replaceAllRepeatedly(source, fixed, `$1\x00$3\x00$4")`+"\n")
	source = onlyText.ReplaceAllString(source, `$1\x00$4")`+"\n$3")
	source = afterSpace.ReplaceAllString(source, "$1 ")
	source = replaceAllRepeatedly(source, unused, "$1$2")
	return format.Source([]byte(source))
}

// replaceAllRepeatedly replaces all matches of a pattern, again and again, until the source
// contains no match.
func replaceAllRepeatedly(source string, old *regexp.Regexp, with string) string {
	for before := ""; before != source; {
		before = source
		source = old.ReplaceAllString(source, with)
	}
	return source
}

// unquoted returns the value of a string literal.
func unquoted(literal string) string {
	s, err := strconv.Unquote(literal)
	if err != nil {
		// the patterns match only valid literals
		panic("not a string literal: " + literal)
	}
	return s
}
