package ui

import (
	"strings"

	"github.com/vugu/vjson"
	"github.com/vugu/vugu"
)

// The functions below build the nodes of components. The generated code calls them; see
// tools/compactui.

// addText adds a text to the children of a node.
func addText(parent *vugu.VGNode, text string) {
	parent.AppendChild(&vugu.VGNode{Type: vugu.TextNode, Data: text})
}

// addElement adds an element to the children of a node. words contains the element's name, then the
// name and the value of each attribute, separated by zero bytes.
func addElement(parent *vugu.VGNode, words string) *vugu.VGNode {
	name, rest, more := strings.Cut(words, "\x00")
	n := &vugu.VGNode{Type: vugu.ElementNode, Data: name}
	if more {
		n.Attr = make([]vugu.VGAttribute, 0, (strings.Count(rest, "\x00")+1)/2)
	}
	for more {
		var a vugu.VGAttribute
		a.Key, rest, _ = strings.Cut(rest, "\x00")
		a.Val, rest, more = strings.Cut(rest, "\x00")
		n.Attr = append(n.Attr, a)
	}
	parent.AppendChild(n)
	return n
}

// addListener makes a node call a function on each event of a type.
func addListener(n *vugu.VGNode, event string, call func(vugu.DOMEvent)) {
	n.DOMEventHandlerSpecList = append(n.DOMEventHandlerSpecList, vugu.DOMEventHandlerSpec{EventType: event, Func: call})
}

// addComponent adds a component to the children of a node.
func addComponent(in *vugu.BuildIn, out *vugu.BuildOut, parent *vugu.VGNode, c vugu.Builder) {
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
