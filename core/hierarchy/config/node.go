package config

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
)

// Node is a value of a JSON or YAML document.
type Node struct {
	Line   int
	Kind   Kind
	Text   string   // text of the node if it is a scalar
	Items  []Node   // elements of the node if it is a list
	Fields []Member // members of the node if it is an object, in order
}

// Kind is the kind of a node.
type Kind uint8

// The kinds of nodes.
const (
	Scalar Kind = iota // a string, a number, true, false or null; Text contains it as written
	String
	List
	Object
)

// Member is a key of an object and its value.
type Member struct {
	Key   string
	Line  int
	Value Node
}

func (n *Node) describe() string {
	switch n.Kind {
	case List:
		return "a list"
	case Object:
		return "an object"
	case String:
		return strconv.Quote(n.Text)
	}
	return n.Text
}

// FromNode converts a document that follows this project's schema to a hierarchy. The error is an
// [*Error].
func FromNode(n Node) (h hierarchy.Hierarchy, err error) {
	r := reader{}
	levels := func(to *[]hierarchy.Cache) func(Node) {
		return func(n Node) {
			for _, item := range r.list(n) {
				*to = append(*to, r.cache(item))
			}
		}
	}
	r.object(n, "the document", map[string]func(Node){
		"$schema":      func(Node) {},
		"name":         func(n Node) { h.Name = r.text(n) },
		"title":        func(n Node) { h.Title = r.text(n) },
		"about":        func(n Node) { h.About = r.text(n) },
		"clock_ghz":    func(n Node) { h.ClockGHz = r.positive(n) },
		"levels":       levels(&h.Levels),
		"instructions": levels(&h.Instructions),
		"tlbs":         func(n Node) { r.tlbs(n, &h) },
		"page_size": func(n Node) {
			if err := h.SetPages(strconv.FormatUint(r.size(n), 10)); err != nil {
				r.fail(n, wantOf(err))
			}
		},
		"memory":  func(n Node) { h.Memory = r.memory(n) },
		"sources": func(n Node) { h.Sources = r.texts(n) },
	}, "levels")
	if r.err == nil {
		err = check(&h)
	} else {
		err = r.err
	}
	return h, err
}

// reader reads a document, and records the first error.
type reader struct{ err *Error }

func (r *reader) fail(n Node, want string) {
	if r.err == nil {
		r.err = errorAt(n.Line, n.describe(), ", want ", want)
	}
}

// object passes each field of an object to the function that reads it. The parameter "required"
// lists the fields that the object must contain.
func (r *reader) object(n Node, what string, fields map[string]func(Node), required ...string) {
	if n.Kind != Object {
		r.fail(n, "an object: "+what)
		return
	}
	seen := map[string]bool{}
	for _, f := range n.Fields {
		read := fields[f.Key]
		switch {
		case r.err != nil:
			return
		case read == nil:
			r.err = errorAt(f.Line, "unknown key ", strconv.Quote(f.Key), " in ", what)
		case seen[f.Key]:
			r.err = errorAt(f.Line, "duplicate key ", strconv.Quote(f.Key))
		default:
			seen[f.Key] = true
			read(f.Value)
		}
	}
	for _, key := range required {
		if !seen[key] && r.err == nil {
			r.err = errorAt(n.Line, what, " lacks ", strconv.Quote(key))
		}
	}
}

func (r *reader) list(n Node) []Node {
	if n.Kind != List {
		r.fail(n, "a list")
	}
	return n.Items
}

func (r *reader) text(n Node) string {
	if n.Kind != String {
		r.fail(n, "a text")
	}
	return n.Text
}

func (r *reader) texts(n Node) (list []string) {
	for _, item := range r.list(n) {
		list = append(list, r.text(item))
	}
	return list
}

func (r *reader) positive(n Node) float64 {
	x, ok := hierarchy.ParsePositive(n.Text)
	if n.Kind != Scalar || !ok {
		r.fail(n, "a number above 0")
	}
	return x
}

func (r *reader) whole(n Node, most uint64, want string) uint64 {
	x, err := strconv.ParseUint(n.Text, 10, 64)
	if n.Kind != Scalar || err != nil || x == 0 || x > most {
		r.fail(n, want)
	}
	return x
}

func (r *reader) yes(n Node) bool {
	if n.Kind != Scalar || n.Text != "true" && n.Text != "false" {
		r.fail(n, "true or false")
	}
	return n.Text == "true"
}

// oneOf returns the index of a node's text in a list of words.
func (r *reader) oneOf(n Node, words ...string) int {
	for i, word := range words {
		if n.Kind == String && n.Text == word {
			return i
		}
	}
	r.fail(n, strings.Join(words, ", "))
	return 0
}

func (r *reader) size(n Node) uint64 {
	if n.Kind == Scalar {
		return r.whole(n, 1<<50, "a number of bytes, or a text such as \"32KiB\"")
	}
	bytes, err := hierarchy.ParseSize(r.text(n))
	if err != nil || bytes == 0 {
		r.fail(n, "a size such as \"32KiB\"")
	}
	return bytes
}

func (r *reader) cores(n Node) uint32 {
	if n.Text == "all" {
		return hierarchy.AllCores
	}
	return uint32(r.whole(n, 1<<32-1, "a number of cores, or \"all\""))
}

func (r *reader) ways(n Node) uint32 {
	if n.Kind == String && n.Text == "full" {
		return 0
	}
	return uint32(r.whole(n, 1<<32-1, "a number of ways, or \"full\""))
}

func (r *reader) cache(n Node) hierarchy.Cache {
	c := hierarchy.Cache{LineBytes: hierarchy.DefaultLineBytes}
	through, around, wholeOnly := false, false, false
	r.object(n, "a level", map[string]func(Node){
		"name": func(n Node) {
			if c.Name = r.text(n); !validName(c.Name) {
				r.fail(n, "a name without = and without leading or trailing blanks")
			}
		},
		"size":            func(n Node) { c.SizeBytes = r.size(n) },
		"ways":            func(n Node) { c.Ways = r.ways(n) },
		"line":            func(n Node) { c.LineBytes = uint32(r.whole(n, 1<<32-1, "a line size in bytes")) },
		"latency_cycles":  func(n Node) { c.LatencyCycles = r.positive(n) },
		"bytes_per_cycle": func(n Node) { c.BytesPerCycle = r.positive(n) },
		"shared_by":       func(n Node) { c.SharedBy = r.cores(n) },
		"hashed":          func(n Node) { c.Hashed = r.yes(n) },
		"replacement":     func(n Node) { c.Replacement = hierarchy.Replacement(r.oneOf(n, replacements...)) },
		"inclusion":       func(n Node) { c.Inclusion = hierarchy.Inclusion(r.oneOf(n, inclusions...)) },
		"write":           func(n Node) { through = r.oneOf(n, writes...) == 1 },
		"allocate": func(n Node) {
			if wholeOnly = n.Kind == String && n.Text == "whole"; !wholeOnly {
				around = !r.yes(n)
			}
		},
		"sub_block": func(n Node) { c.SubBlockBytes = uint32(r.whole(n, 4096, "a size in bytes, at most 4096")) },
		"prefetch": func(n Node) {
			p, ok := hierarchy.ParsePrefetch(r.text(n))
			if c.Prefetch = p; !ok {
				r.fail(n, "a prefetcher: one of "+strings.Join(hierarchy.PrefetchKinds(), ", ")+", optionally followed by :degree=N, :distance=N, :drop=PERCENT, :reads and :chained, each at most once")
			}
		},
	}, "name", "size", "ways")
	c.Write = hierarchy.WriteOf(through, around)
	if wholeOnly {
		c.Write = hierarchy.WriteBackWhole
		if through {
			r.fail(n, "the value \"back\" for the key \"write\" if the value of \"allocate\" is \"whole\"")
		}
	}
	if r.err == nil {
		if err := c.Check(); err != nil {
			r.err = errorAt(n.Line, c.String(), ", want ", wantOf(err))
		}
	}
	return c
}

func (r *reader) tlbs(n Node, h *hierarchy.Hierarchy) {
	for _, item := range r.list(n) {
		name, entries, ways, more := "", "", "", ""
		r.object(item, "a TLB", map[string]func(Node){
			"name":        func(n Node) { name = r.text(n) },
			"entries":     func(n Node) { entries = strconv.FormatUint(r.whole(n, 1<<24-1, "a number of entries"), 10) },
			"ways":        func(n Node) { r.ways(n); ways = n.Text },
			"shared_by":   func(n Node) { r.cores(n); more += ",shared=" + n.Text },
			"replacement": func(n Node) { more += "," + replacements[r.oneOf(n, replacements...)] },
			"pages":       func(n Node) { more += ",pages=" + r.text(n) },
			"instructions": func(n Node) {
				if r.yes(n) {
					more += ",instructions"
				}
			},
		}, "name", "entries", "ways")
		if r.err != nil {
			return
		}
		if !validName(name) || strings.Contains(name, ",") {
			r.fail(item, "a TLB name without =, commas, or leading or trailing blanks")
		} else if err := h.Add(name + "=" + entries + "," + ways + more + ",tlb"); err != nil {
			r.fail(item, wantOf(err))
		}
	}
}

// The schema's words for policies, in the order of the corresponding constants.
var (
	replacements = hierarchy.Replacements()
	inclusions   = []string{"non-inclusive", "inclusive", "exclusive"}
	writes       = []string{"back", "through"}
)

func (r *reader) memory(n Node) (m hierarchy.Memory) {
	r.object(n, "memory", map[string]func(Node){
		"latency_cycles":  func(n Node) { m.LatencyCycles = r.positive(n) },
		"bytes_per_cycle": func(n Node) { m.BytesPerCycle = r.positive(n) },
	})
	return m
}
