package ui

import (
	"strings"

	"github.com/vugu/vjson"
	"github.com/vugu/vugu"
)

// The functions below build the nodes of components for the generated code; see tools/compactui.

// addText adds a text to the children of a node.
func addText(parent *vugu.VGNode, text string) {
	parent.AppendChild(&vugu.VGNode{Type: vugu.TextNode, Data: text})
}

// addElement adds an element to the children of a node. The parameter "words" contains the element's
// name, the name and value of each attribute, and the element's text, if any, separated by zero
// bytes. A leading space adds a space before the element.
func addElement(parent *vugu.VGNode, words string) *vugu.VGNode {
	if words[0] == ' ' {
		addText(parent, " ")
	}
	n := newElement(strings.TrimPrefix(words, " "))
	parent.AppendChild(n)
	return n
}

// addRoot adds an element to the output of a component.
func addRoot(out *vugu.BuildOut, words string) *vugu.VGNode {
	n := newElement(words)
	out.Out = append(out.Out, n)
	return n
}

func newElement(words string) *vugu.VGNode {
	list := strings.Split(words, "\x00")
	n := &vugu.VGNode{Type: vugu.ElementNode, Data: list[0]}
	for list = list[1:]; len(list) > 1; list = list[2:] {
		n.Attr = append(n.Attr, vugu.VGAttribute{Key: list[0], Val: list[1]})
	}
	if len(list) > 0 {
		addText(n, list[0])
	}
	return n
}

// setAttribute adds an attribute to an element. Calls compile to less code with a type parameter
// than with an interface.
func setAttribute[T any](n *vugu.VGNode, key string, value T) { n.AddAttrInterface(key, value) }

// setText makes a text or a number the content of an element.
func setText[T any](n *vugu.VGNode, text T) { n.SetInnerHTML(text) }

// addListener makes a node call a function on each event of the given type.
func addListener(n *vugu.VGNode, event string, call func(vugu.DOMEvent)) {
	n.DOMEventHandlerSpecList = append(n.DOMEventHandlerSpecList, vugu.DOMEventHandlerSpec{EventType: event, Func: call})
}

// addComponent adds a component, if it is not nil, to the children of a node.
func addComponent(in *vugu.BuildIn, out *vugu.BuildOut, parent *vugu.VGNode, c vugu.Builder) {
	if c == nil {
		return
	}
	in.BuildEnv.WireComponent(c)
	out.Components = append(out.Components, c)
	parent.AppendChild(&vugu.VGNode{Component: c})
}

// addProperty sets a property of a node's element, such as checked or value.
func addProperty(n *vugu.VGNode, key string, value any) {
	b, err := vjson.Marshal(value)
	if err != nil {
		panic(err) // a component has a bug: the type has no JSON form
	}
	n.Prop = append(n.Prop, vugu.VGProperty{Key: key, JSONVal: vjson.RawMessage(b)})
}
