package ir

import (
	"math"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// global is a global variable that the module defines.
type global struct {
	name     string // name with its quotes, without @
	typeText string
	debug    int  // node of the variable's DIGlobalVariableExpression, or -1
	address  bool // whether tables may contain the variable's address
}

// linkages lists the words that may occur between the name of a global and its kind. The value is
// false if the variable is defined in another module.
var linkages = map[string]bool{
	"private": true, "internal": true, "linkonce": true, "weak": true, "common": true,
	"linkonce_odr": true, "weak_odr": true, "external": false, "extern_weak": false,
	"available_externally": false, "appending": false,
}

// globalLine reads a line that begins with @. It records the variables that the module defines, the
// line of llvm.used, and the resolvers of ifuncs.
func (m *module) globalLine(e extent) {
	c := cursor{text: m.in(e), at: 1}
	g := global{name: c.readName(), debug: -1, address: true}
	c.want('=')
	local, here := false, true
	for !c.failed() {
		switch word := c.readWord(); word {
		case "global", "constant":
			if here && !strings.HasPrefix(g.name, "llvm.") {
				m.variable(&c, g, local)
			} else if g.name == "llvm.used" {
				m.used, m.lines = true, append(m.lines, e)
			}
			return
		case "ifunc":
			m.entries[lastName(c.text[c.at:])] = true
			return
		case "alias", "":
			return
		case "thread_local", "addrspace":
			g.address = false
			if c.peek() == '(' {
				c.readGroup()
			}
		case "private", "internal":
			local = true
		default:
			defined, isLinkage := linkages[word]
			here = here && (defined || !isLinkage)
		}
	}
}

// variable reads the rest of a definition: type, value, properties.
func (m *module) variable(c *cursor, g global, local bool) {
	c.skipSpace()
	end := typeEnd(c.text, c.at)
	g.typeText = c.text[c.at:end]
	rest := c.text[end:]
	// A local symbol in a comdat group can be used only within this group, because the linker may
	// drop the group.
	if local && strings.Contains(rest, ", comdat") {
		g.address = false
	}
	if g.typeText == "" || strings.Contains(rest, `section "llvm.metadata"`) {
		return
	}
	if i := strings.LastIndex(rest, ", !dbg "); i >= 0 {
		g.debug = reference(rest[i+len(", !dbg "):])
	}
	m.globals = append(m.globals, g)
}

// lastName returns the last name after an @ in text, with its quotes.
func lastName(text string) string {
	i := strings.LastIndexByte(text, '@')
	if i < 0 {
		return ""
	}
	c := cursor{text: text, at: i + 1}
	return c.readName()
}

// object returns the variable's entry in the tables.
func (m *module) object(g *global) trace.Object {
	name, place := m.metadata.globalVariable(g.debug)
	if name == "" {
		name = linkerName(g.name)
	}
	o := trace.Object{Name: name, Place: place, Type: g.typeText}
	if t := m.types.lookUp(g.typeText); t != nil {
		o.Type = t.text
		if t.sized && t.bytes < math.MaxInt64 {
			o.Bytes = t.allocBytes()
		}
	}
	return o
}

func linkerName(name string) string { return strings.TrimPrefix(unquote(name), "\x01") }
