package main

import (
	"regexp"
	"slices"
	"strings"
)

// White space between elements makes up 90 % of the text nodes that vugugen generates. withoutSpace
// removes white space that a browser does not show: at the start and end of blocks, and between
// blocks.

// blocks lists the elements that begin and end lines, and the elements that ignore white space.
var blocks = []string{
	"dd", "details", "div", "dl", "dt", "fieldset", "figcaption", "figure", "form", "h1", "h2", "h3", "legend", "li",
	"nav", "ol", "option", "p", "pre", "section", "select", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
}

// preformatted is the only element whose white space a browser shows.
const preformatted = "pre"

var (
	space      = regexp.MustCompile(`^addText\(vgparent, "(?:\\n|\\t| )+"\)$`)
	anyElement = regexp.MustCompile(`add(?:Element|Root)\(\w+, "([a-z0-9]+)`)
)

// child is a node that a statement of the generated code adds to its parent.
type child struct {
	line  int
	depth int    // number of enclosing statements, such as if and for
	name  string // name of the element; "" for white space
}

// These names identify children that are not elements.
const (
	aText      = "#text"
	aComponent = "#component" // displayed like a block element
)

func (c child) block() bool { return c.name == aComponent || slices.Contains(blocks, c.name) }

// withoutSpace returns formatted source without the statements that add invisible white space.
func withoutSpace(source string) string {
	s := &spaces{lines: strings.Split(source, "\n"), unseen: map[int]bool{}}
	for i := 0; i < len(s.lines); i++ {
		i, _ = s.readBlock(i, 0)
	}
	var left []string
	for i, line := range s.lines {
		if !s.unseen[i] {
			left = append(left, line)
		}
	}
	return strings.Join(left, "\n")
}

type spaces struct {
	lines  []string
	unseen map[int]bool // the numbers of the lines that add invisible white space
}

// readBlock reads the statements of a block of code. It returns the last line of the block, and the
// children that the statements add to the current node.
func (s *spaces) readBlock(i, depth int) (end int, found []child) {
	element := ""
	add := func(name string) { found = append(found, child{line: i, depth: depth, name: name}) }
	for ; i < len(s.lines); i++ {
		line := strings.TrimSpace(s.lines[i])
		opens := strings.HasSuffix(line, "{")
		if strings.HasPrefix(line, "}") && !opens { // a line with both braces is an else
			return i, found
		}
		switch names := anyElement.FindStringSubmatch(line); {
		case space.MatchString(line):
			add("")
		case strings.HasPrefix(line, "addText("):
			add(aText)
		case strings.HasPrefix(line, "addComponent("):
			add(aComponent)
		case names != nil:
			element = names[1]
			add(element)
		case opens:
			var inner []child
			ofElement := strings.TrimSpace(s.lines[i+1]) == "vgparent := vgn"
			i, inner = s.readBlock(i+1, depth+1)
			if ofElement {
				s.markUnseen(element, inner)
			} else {
				found = append(found, inner...)
			}
		}
	}
	return i, found
}

// markUnseen marks those white-space children of an element that a browser does not show.
func (s *spaces) markUnseen(parent string, all []child) {
	if parent == preformatted {
		return
	}
	onlyBlocks := !slices.ContainsFunc(all, func(c child) bool { return c.name != "" && !c.block() })
	border := func(i, other int) bool {
		if other < 0 || other == len(all) {
			return slices.Contains(blocks, parent)
		}
		return all[other].block() && all[other].depth == all[i].depth
	}
	for i, c := range all {
		if c.name == "" && (onlyBlocks || border(i, i-1) || border(i, i+1)) {
			s.unseen[c.line] = true
		}
	}
}
