package ir

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// metadata reads the debug information: source locations (DILocation, and the chain of scopes to
// its DIFile) and names of variables. The nodes are read on demand, and cached.
type metadata struct {
	text      string
	at        []int32      // by node number: 1 + the position of the node's text; 0 if the node is undefined
	identNode int          // the node of !llvm.ident
	locations []location   // the location in each node, by node number
	bodies    map[int]body // bodies of inlined functions, by number of the DISubprogram; nil if not read yet
	scopes    map[int]scope
	names     map[int]string
	types     map[int]sourceType
	files     map[int]string
}

type location struct {
	line, column uint32
	function     int // the enclosing DISubprogram, or -1
	inlinedAt    int // the DILocation of the call that this code replaced, or -1
	// first line of the enclosing block, such as a loop; 0 if there is no enclosing block
	block uint32
	file  string
	known bool
}

// body records the source lines on which a function has code, except for the line of its signature.
type body struct {
	line    uint32
	several bool
}

// scope is a function, a block within a function, or a file.
type scope struct {
	file     string
	function int // number of the scope's DISubprogram, or -1
	name     string
	line     uint32
}

// define records the position of the text of node n.
func (m *metadata) define(n, at int) {
	// LLVM numbers nodes consecutively. Nodes with very large numbers are ignored, to save memory.
	if n < 0 || n > len(m.text)/4+16 {
		return
	}
	for len(m.at) <= n {
		m.at = append(m.at, 0)
	}
	m.at[n] = int32(at) + 1
}

// node returns the text of node n: `distinct !DILocation(...)`.
func (m *metadata) node(n int) string {
	if n < 0 || n >= len(m.at) || m.at[n] == 0 {
		return ""
	}
	at := int(m.at[n]) - 1
	return m.text[at:lineEnd(m.text, at)]
}

// ident returns the compiler's name and version.
func (m *metadata) ident() string {
	_, text, _ := strings.Cut(m.node(m.identNode), `"`)
	text, _, _ = strings.Cut(text, `"`)
	return text
}

// visitFields calls the function "visit" for each field of a node such as `!DIFile(filename:
// "a.c", directory: "/")`, and reports whether the node is of the given kind.
func visitFields(node, kind string, visit func(key, value string)) bool {
	node = strings.TrimPrefix(node, "distinct ")
	rest, ok := strings.CutPrefix(node, kind)
	if !ok || !strings.HasPrefix(rest, "(") {
		return false
	}
	c := cursor{text: rest, at: 1}
	for c.peek() != ')' && !c.failed() {
		key := c.readWord()
		c.want(':')
		c.skipSpace()
		value := c.readFieldValue()
		if c.failed() {
			break
		}
		visit(key, value)
		if !c.skipByte(',') {
			break
		}
	}
	return true
}

// readFieldValue reads the value of a field, up to the comma or parenthesis that ends the field.
func (c *cursor) readFieldValue() string {
	from := c.at
	for c.at < len(c.text) {
		switch c.text[c.at] {
		case ',', ')':
			return c.text[from:c.at]
		case '(', '{':
			c.readGroup()
		case '"':
			c.readQuoted()
		default:
			c.at++
		}
	}
	return c.text[from:]
}

// reference returns the number in a node reference such as "!12", or -1.
func reference(text string) int {
	if len(text) < 2 || text[0] != '!' {
		return -1
	}
	return number(text[1:])
}

func remembered[T any](memory *map[int]T, n int, find func() T) T {
	if known, ok := (*memory)[n]; ok {
		return known
	}
	if *memory == nil {
		*memory = map[int]T{}
	}
	found := find()
	(*memory)[n] = found
	return found
}

// location returns the location in node n. If the node is not a DILocation, the result contains no
// location.
func (m *metadata) location(n int) *location {
	if m.locations == nil {
		m.locations = make([]location, len(m.at)+1)
	}
	if n < 0 || n >= len(m.at) {
		n = len(m.at)
	}
	l := &m.locations[n]
	if !l.known {
		m.readLocation(n, l)
	}
	return l
}

func (m *metadata) readLocation(n int, l *location) {
	in := -1
	l.inlinedAt = -1
	visitFields(m.node(n), "!DILocation", func(key, value string) {
		switch key {
		case "line":
			l.line = parseLine(value)
		case "column":
			l.column = parseLine(value)
		case "scope":
			in = reference(value)
		case "inlinedAt":
			l.inlinedAt = reference(value)
		}
	})
	s := m.scope(in)
	if in != s.function {
		l.block = s.line
	}
	l.file, l.function, l.known = s.file, s.function, true
}

func parseLine(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// maxScopes limits the length of chains of scopes, which can be cyclic in malicious text.
const maxScopes = 256

func (m *metadata) scope(n int) scope { return m.scopeWithin(n, maxScopes) }

func (m *metadata) scopeWithin(n, most int) scope {
	return remembered(&m.scopes, n, func() scope {
		s := scope{function: -1}
		if n < 0 || most == 0 {
			return s
		}
		node := m.node(n)
		above := -1
		read := func(key, value string) {
			switch key {
			case "file":
				s.file = m.fileName(reference(value))
			case "line":
				s.line = parseLine(value)
			case "name":
				s.name = unquote(value)
			case "scope":
				above = reference(value)
			}
		}
		switch {
		case visitFields(node, "!DISubprogram", read):
			s.function = n
			return s
		case visitFields(node, "!DILexicalBlock", read), visitFields(node, "!DILexicalBlockFile", read),
			visitFields(node, "!DICommonBlock", read):
			outer := m.scopeWithin(above, most-1)
			if s.file == "" {
				s.file = outer.file
			}
			s.function = outer.function
		}
		return s
	})
}

func (m *metadata) fileName(n int) string {
	return remembered(&m.files, n, func() string { return field(m.node(n), "!DIFile", "filename") })
}

// paths returns the path of each file whose name was read. Names may be relative to folders other
// than the working directory of the compiler.
func (m *metadata) paths() map[string]string {
	all := make(map[string]string, len(m.files))
	for _, n := range slices.Sorted(maps.Keys(m.files)) {
		name := m.files[n]
		if all[name] != "" {
			continue
		}
		if all[name] = name; !path.IsAbs(name) {
			all[name] = path.Join(field(m.node(n), "!DIFile", "directory"), name)
		}
	}
	return all
}

// maxInlined limits the length of chains of inlined calls, which can be cyclic in malicious text.
const maxInlined = 256

// sourceLocation returns the source location in node n. For code that was inlined from a system
// header or an accessor, it returns the location of the call, because the calling line uses the
// data. An accessor is a function with code on only one line and without a loop. If such a function
// is in the same file as the call, it counts as an accessor only if it makes at most two loads and
// stores, because a larger function does more than access data. The function "classify" returns,
// for the inlined function at a location, whether the loop around the code belongs to this
// function, and the number of loads and stores in this function.
func (m *metadata) sourceLocation(n int, classify func(l *location) (loop bool, references int)) trace.Place {
	l := m.location(n)
	for range maxInlined {
		if l.inlinedAt < 0 {
			break
		}
		call := m.location(l.inlinedAt)
		accessor := false
		if m.isAccessor(l.function) {
			loop, references := classify(l)
			accessor = !loop && (call.file != l.file || references <= 2)
		}
		if call.line == 0 || !accessor && !isSystemHeader(l.file) {
			break
		}
		l = call
	}
	if l.line == 0 && l.column == 0 {
		return trace.Place{}
	}
	return trace.Place{File: l.file, Line: l.line, Column: l.column}
}

// isSystemHeader reports whether a file belongs to the compiler or the system.
func isSystemHeader(file string) bool {
	return strings.Contains(file, "/include/c++/") || strings.HasPrefix(file, "/usr/include/") || strings.HasPrefix(file, "/usr/lib/")
}

// isAccessor reports whether a function has code on only one line, apart from its signature.
func (m *metadata) isAccessor(function int) bool {
	if m.bodies == nil {
		m.bodies = map[int]body{}
		for n := range m.at {
			if strings.HasPrefix(strings.TrimPrefix(m.node(n), "distinct "), "!DILocation(") {
				m.extend(m.location(n))
			}
		}
	}
	b, ok := m.bodies[function]
	return ok && !b.several
}

// extend adds the line of a location to the body of its function. It also adds the first line of
// the surrounding source block, because an unrolled loop leaves only the code of its body.
func (m *metadata) extend(l *location) {
	if l.function < 0 {
		return
	}
	b, head := m.bodies[l.function], m.scope(l.function).line
	for _, line := range []uint32{l.line, l.block} {
		switch {
		case line == 0:
		case b.line == 0:
			b.line = line
		case b.line == line || line == head:
		case b.line == head:
			b.line = line
		default:
			b.several = true
		}
	}
	m.bodies[l.function] = b
}

func (m *metadata) variable(n int) string {
	return remembered(&m.names, n, func() string { return field(m.node(n), "!DILocalVariable", "name") })
}

// field returns the string in a field of a node, or "" if the node is not of the given kind or
// lacks the field.
func field(node, kind, name string) (text string) {
	visitFields(node, kind, func(key, value string) {
		if key == name {
			text = unquote(value)
		}
	})
	return text
}

// globalVariable returns the name and the source location of a global variable from its !dbg node.
func (m *metadata) globalVariable(n int) (name string, place trace.Place) {
	node := m.node(n)
	if inner := field(node, "!DIGlobalVariableExpression", "var"); inner != "" {
		node = m.node(reference(inner))
	}
	visitFields(node, "!DIGlobalVariable", func(key, value string) {
		switch key {
		case "name":
			name = unquote(value)
		case "file":
			place.File = m.fileName(reference(value))
		case "line":
			place.Line = parseLine(value)
		}
	})
	return name, place
}
