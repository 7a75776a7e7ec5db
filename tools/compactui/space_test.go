package main

import (
	"go/format"
	"regexp"
	"strings"
	"testing"
)

// TestRemoveWhiteSpace checks that white space is removed only if a browser does not display it.
func TestRemoveWhiteSpace(t *testing.T) {
	const source = `package some

func (c *C) Build() {
	vgn = addRoot(vgout, "div")
	{
		vgparent := vgn
		addText(vgparent, "\n\t") // first in a block
		vgn = addElement(vgparent, "p\x00class\x00a")
		{
			vgparent := vgn
			addText(vgparent, "\n\t\t")
			vgn = addElement(vgparent, "b")
			addText(vgparent, " ") // kept: between words
			if c.X {
				addElement(vgparent, "i")
			}
			addText(vgparent, "\n") // kept: perhaps between words
			if c.Y {
				addElement(vgparent, "div")
			}
			addText(vgparent, "\n\t")
		}
		addText(vgparent, "\n\t")
		if c.Z {
			addElement(vgparent, "section")
		} else {
			addElement(vgparent, "dl")
		}
		addText(vgparent, "\n\t")
		vgn = addElement(vgparent, "pre")
		{
			vgparent := vgn
			addText(vgparent, "\n\t") // kept: shown
		}
		vgn = addElement(vgparent, "p")
		{
			vgparent := vgn
			vgn = addElement(vgparent, "span")
			{
				vgparent := vgn
				addText(vgparent, " ") // kept: a word may be before it
				addText(vgparent, "word")
			}
		}
		addText(vgparent, "\n")
	}
}
`
	formatted, err := format.Source([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	comment := regexp.MustCompile(` *// (.*)`)
	var want []string
	for _, line := range strings.Split(string(formatted), "\n") {
		if text := comment.ReplaceAllString(line, ""); !space.MatchString(strings.TrimSpace(text)) || strings.Contains(line, "kept") {
			want = append(want, text)
		}
	}
	if got := withoutSpace(comment.ReplaceAllString(string(formatted), "")); got != strings.Join(want, "\n") {
		t.Errorf("left\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
