package ui

import (
	"strings"

	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
)

// Fit shortens, in what is about to be rendered, texts that the renderer has no room
// for: it gives up where one has more than 16 KiB. Names of functions can be as long
// as whoever wrote the trace likes.
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
	for i := range n.Attr {
		n.Attr[i].Val = state.Fit(n.Attr[i].Val)
	}
	// Markup of our own has tags; others' text has none left.
	if n.InnerHTML != nil && len(*n.InnerHTML) > state.MostText && !strings.Contains(*n.InnerHTML, "<") {
		text := state.Fit(*n.InnerHTML)
		n.InnerHTML = &text
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		fitNode(r, child)
	}
}
