package ir

import (
	"strconv"
	"strings"
)

// module contains the top-level items of a module: its functions, and the data that is needed to
// interpret them.
//
// The reader relies only on two properties of LLVM's output: each item is on a separate line, and a
// function ends with a line that consists of a single brace.
type module struct {
	text          string
	name          string // name of the source file
	triple        string
	layout        string // the data layout
	types         *types
	typed         bool // pointers are typed, as in LLVM up to version 14
	functions     []extent
	globals       []global
	defined       map[string]bool   // names of defined functions, with quotes
	declared      map[string]bool   // names of declared functions
	entries       map[string]bool   // resolvers of ifuncs, which run before relocation is complete
	groups        map[string]string // lines of attribute groups, keyed by name such as "#0"
	metadata      metadata
	ofDefinitions map[string]bool   // attribute groups that function definitions use
	assembly      int               // number of lines of assembly outside functions
	used          bool              // the module has an llvm.used line
	lines         []extent          // lines that must be changed: llvm.used and attribute groups
	lastMeta      int               // highest number of a metadata node
	compiler      string            // the compiler's name and version, from !llvm.ident
	globalNames   map[string]string // source names, keyed by linker name

	skipping bool      // whether to skip lines that cannot be parsed
	endAt    int       // if the field "skipping" is true: position at which the next function ends, or -1
	skipped  []problem // the skipped lines, up to a limit
	more     uint32    // number of skipped lines beyond the limit
}

type extent struct {
	from, to int
	line     int // number of the extent's first line in the module
}

func (m *module) in(e extent) string { return m.text[e.from:e.to] }

// syntaxError reports a module that cannot be parsed at all.
type syntaxError struct {
	file      string
	line      int
	got, want string
}

func (e *syntaxError) Error() string {
	return e.file + ":" + strconv.Itoa(e.line) + ": " + e.short() + ", want " + e.want +
		"; the text is not in the form that LLVM 14 to 19 write"
}

// short returns the line, or only its beginning if the line is long.
func (e *syntaxError) short() string {
	if len(e.got) > 60 {
		return strconv.Quote(e.got[:60] + "…")
	}
	return strconv.Quote(e.got)
}

// readModule finds the top-level items. If it cannot parse a line, it returns an error. If the
// argument "skipping" is true, it records and skips the line instead.
func readModule(text string, skipping bool) (*module, error) {
	m := &module{
		text: text, defined: map[string]bool{}, declared: map[string]bool{}, entries: map[string]bool{},
		groups: map[string]string{}, ofDefinitions: map[string]bool{}, lastMeta: -1,
		skipping: skipping,
	}
	m.metadata.text = text
	named := map[string]string{}
	line := 0
	for at := 0; at < len(text); {
		line++
		e, err := m.topLevel(extent{at, lineEnd(text, at), line}, named)
		if err != nil && !skipping {
			return nil, err
		} else if err != nil {
			e = m.skipLine(e, err)
		}
		line += strings.Count(m.in(e), "\n")
		at = e.to + 1
	}
	if m.compiler = m.metadata.ident(); len(m.functions) > 0 {
		m.typed = m.hasTypedPointers()
	}
	m.types = newTypes(parseLayout(m.layout), named)
	return m, nil
}

// topLevel reads a top-level line or a whole function, and returns its extent.
func (m *module) topLevel(e extent, named map[string]string) (extent, *syntaxError) {
	switch l := m.in(e); {
	case strings.HasPrefix(l, "define "):
		end := m.functionEnd(e)
		if end < 0 {
			return e, &syntaxError{m.file(), e.line, l, "a line \"}\" at the end of this function"}
		}
		e.to = end
		m.function(e)
	case strings.HasPrefix(l, "!"):
		m.metadataLine(e)
	case strings.HasPrefix(l, "@"):
		m.globalLine(e)
	case strings.HasPrefix(l, "declare "):
		m.declared[calledName(l)] = true
	case strings.HasPrefix(l, "%"):
		if name, definition, ok := strings.Cut(l, " = type "); ok {
			named[name] = strings.TrimRight(definition, " \r")
		}
	case strings.HasPrefix(l, "attributes #"):
		m.groupLine(e)
	case strings.HasPrefix(l, "module asm "):
		m.assembly++
	case !isTopLevel(l) && !m.header(l):
		return e, &syntaxError{m.file(), e.line, l, "a definition, a declaration or metadata"}
	}
	return e, nil
}

// header reads the lines that name the source file and the target machine.
func (m *module) header(line string) bool {
	for _, h := range [...]struct {
		prefix string
		to     *string
	}{{"target datalayout = ", &m.layout}, {"target triple = ", &m.triple}, {"source_filename = ", &m.name}} {
		if rest, ok := strings.CutPrefix(line, h.prefix); ok {
			*h.to = unquote(strings.TrimSpace(rest))
			return true
		}
	}
	return false
}

const maxSkipped = 100

// skipLine records and skips a line that cannot be parsed. If the line begins a function that has
// no end, it skips all lines up to the next function.
func (m *module) skipLine(e extent, err *syntaxError) extent {
	if strings.HasPrefix(err.got, "define ") {
		e.to = len(m.text)
		if n := strings.Index(m.text[e.from:], "\ndefine "); n >= 0 {
			e.to = e.from + n
		}
	}
	if len(m.skipped) == maxSkipped {
		m.more++
		return e
	}
	m.skipped = append(m.skipped, problem{err.line, err.short() + ", want " + err.want})
	return e
}

func (m *module) file() string {
	if m.name == "" {
		return "the module"
	}
	return m.name
}

// isTopLevel reports whether a top-level line can be ignored.
func isTopLevel(line string) bool {
	trimmed := strings.TrimSpace(line)
	return trimmed == "" || strings.IndexByte(";$^", trimmed[0]) >= 0 || strings.HasPrefix(line, "uselistorder")
}

func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

// functionEnd returns the end of the function that begins at e, or -1 if the function has no end.
// If m.skipping is true, functionEnd also returns -1 if another function begins before the end
// that it has found.
func (m *module) functionEnd(e extent) int {
	if !m.skipping {
		return functionEnd(m.text, e.from)
	}
	if m.endAt >= 0 && m.endAt <= e.from { // otherwise, endAt is still valid: it is the first function end after e.from
		m.endAt = functionEnd(m.text, e.from)
	}
	if m.endAt < 0 || strings.Contains(m.text[e.from:m.endAt], "\ndefine ") {
		return -1
	}
	return m.endAt
}

// functionEnd returns the end of the line "}" that closes the function, or -1.
func functionEnd(text string, at int) int {
	for {
		n := strings.Index(text[at:], "\n}")
		if n < 0 {
			return -1
		}
		at += n + 2
		if at == len(text) || text[at] == '\n' || text[at] == '\r' {
			return lineEnd(text, at)
		}
	}
}

func (m *module) function(e extent) {
	m.functions = append(m.functions, e)
	line := m.text[e.from:lineEnd(m.text, e.from)]
	m.defined[calledName(line)] = true
	for at := strings.LastIndexByte(line, '#'); at >= 0; at = strings.LastIndexByte(line, '#') {
		m.ofDefinitions[line[at:at+1+digits(line[at+1:])]] = true
		line = line[:at]
	}
}

// calledName returns the name after the first @ in a line, including its quotes. It returns "" if
// there is no @.
func calledName(line string) string {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '@':
			c := cursor{text: line, at: i + 1}
			return c.readName()
		case '"': // skip quoted names of types or sections
			n := strings.IndexByte(line[i+1:], '"')
			if n < 0 {
				return ""
			}
			i += n + 1
		}
	}
	return ""
}

func (m *module) groupLine(e extent) {
	m.groups[groupName(m.in(e))] = m.in(e)
	m.lines = append(m.lines, e)
}

// groupName returns the name #0 from a line such as `attributes #0 = { ... }`, or "".
func groupName(line string) string {
	rest, ok := strings.CutPrefix(line, "attributes ")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, " ")
	return name
}

func (m *module) metadataLine(e extent) {
	line := m.in(e)
	end := 1 + digits(line[1:])
	if end == 1 {
		if list, ok := strings.CutPrefix(line, "!llvm.ident = !{"); ok {
			m.metadata.identNode = number(list[min(1, len(list)):])
		}
		return
	}
	n := number(line[1:end])
	m.lastMeta = max(m.lastMeta, n)
	if rest, ok := strings.CutPrefix(line[end:], " = "); ok {
		m.metadata.define(n, len(line)-len(rest)+e.from)
	}
}

// digits returns the number of digits at the start of text.
func digits(text string) (n int) {
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

// number returns the number at the start of text. It returns -1 if text does not begin with a
// digit, or if there are too many digits.
func number(text string) int {
	end := digits(text)
	if end == 0 || end > 9 {
		return -1
	}
	n, _ := strconv.Atoi(text[:end])
	return n
}

// hasTypedPointers reports whether the module's pointers are typed. It examines the first pointer
// in a function or, if there is no pointer, the version of the compiler.
func (m *module) hasTypedPointers() bool {
	for _, f := range m.functions {
		text := m.in(f)
		for i := 0; i < len(text); i++ {
			switch {
			case text[i] == '"':
				n := strings.IndexByte(text[i+1:], '"')
				if n < 0 {
					return false
				}
				i += n + 1
			case text[i] == ';':
				i = lineEnd(text, i)
			case text[i] == '*':
				return true
			case text[i] == 'p' && strings.HasPrefix(text[i:], "ptr") && i > 0 && strings.IndexByte(" (,{[", text[i-1]) >= 0 &&
				i+3 < len(text) && !isNameByte(text[i+3]):
				return false
			}
		}
	}
	_, version, ok := strings.Cut(m.compiler, "version ")
	return ok && number(version) > 0 && number(version) < 15
}
