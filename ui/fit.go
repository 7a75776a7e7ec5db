package ui

import (
	"strings"

	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
)

// Fit adapts a component to the renderer. Fit shortens long texts, because the renderer fails if a
// text has more than 16 KiB, and function names can have any length. Fit also adds text to empty
// containers, because the renderer keeps the old content of an element that becomes empty. Elements
// that scripts draw into stay unchanged, because they must keep their content.
func Fit(r *vugu.BuildResults) { fitAll(r, r.Out) }

func fitAll(r *vugu.BuildResults, out *vugu.BuildOut) {
	if out == nil {
		return
	}
	for _, n := range out.Out {
		fitNode(r, n)
	}
}

func fitNode(r *vugu.BuildResults, n *vugu.VGNode) {
	if n.Component != nil {
		fitAll(r, r.ResultFor(n.Component))
		return
	}
	n.Data = state.Fit(n.Data)
	if n.Type == vugu.ElementNode && n.FirstChild == nil && n.InnerHTML == nil && strings.Contains(containers, " "+n.Data+" ") {
		n.AppendChild(&vugu.VGNode{Type: vugu.TextNode, Data: "\n"})
	}
	for i := range n.Attr {
		n.Attr[i].Val = state.Fit(n.Attr[i].Val)
	}
	// Only the page's own markup contains tags. All other text is escaped.
	if n.InnerHTML != nil && len(*n.InnerHTML) > state.MostText && !strings.Contains(*n.InnerHTML, "<") {
		text := state.Fit(*n.InnerHTML)
		n.InnerHTML = &text
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		fitNode(r, child)
	}
}

// containers lists the elements that can be empty.
const containers = " dd details div dl fieldset label li nav ol p section select span tbody td tr ul "
