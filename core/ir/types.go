package ir

import (
	"strconv"
	"strings"
)

type typeKind uint8

const (
	voidType typeKind = iota
	intType
	floatType
	pointerType
	vectorType
	arrayType
	structType
	functionType
	otherType // label, token, metadata and target types, whose values are never in memory
)

// datatype is an IR type, with the size that the module's data layout specifies.
type datatype struct {
	kind     typeKind
	text     string // the type's name, which is the same for all compiler versions: every pointer is "ptr"
	bits     uint64 // number of bits of an integer, float or pointer
	count    uint64 // number of elements of a vector or array
	scalable bool   // a vector whose number of elements is known only at run time
	elem     *datatype
	fields   []*datatype
	packed   bool
	space    uint32 // address space of a pointer

	bytes, align uint64 // number of bytes that a store writes, and the alignment in arrays and structs
	sized        bool   // whether the fields "bytes" and "align" are known
}

// allocBytes returns the distance between neighbouring elements of an array.
func (t *datatype) allocBytes() uint64 { return roundUp(t.bytes, t.align) }

func (t *datatype) fieldOffset(n int) (at uint64) {
	for i, f := range t.fields[:n+1] {
		if !t.packed {
			at = roundUp(at, f.align)
		}
		if i < n {
			at += f.allocBytes()
		}
	}
	return at
}

func roundUp(n, align uint64) uint64 { return (n + align - 1) / align * align }

// maxBytes limits the sizes of types, so that products of counts do not overflow in malicious text.
const maxBytes = 1 << 48

const maxNesting = 64

// types reads and caches the types of a module.
type types struct {
	layout layout
	named  map[string]string    // maps %name to its definition
	known  map[string]*datatype // keyed by their text in the module
	depth  int
	ptr    *datatype // the type of pointers in address space 0
}

func newTypes(l layout, named map[string]string) *types {
	t := &types{layout: l, named: named, known: map[string]*datatype{}}
	t.ptr = t.pointer(0)
	t.known["ptr"] = t.ptr
	return t
}

// readType reads a type at the cursor. If the text is not a type, it returns nil and makes the
// cursor fail.
func (t *types) readType(c *cursor) *datatype {
	c.skipSpace()
	from := c.at
	end := typeEnd(c.text, from)
	if end == from {
		c.fail("a type")
		return nil
	}
	typ := t.lookUp(c.text[from:end])
	if typ == nil {
		c.fail("a type")
		return nil
	}
	c.at = end
	return typ
}

// lookUp returns the type that the text represents, or nil if the text is not a type.
func (t *types) lookUp(text string) *datatype {
	if typ, ok := t.known[text]; ok || text == "" {
		return typ
	}
	if t.depth++; t.depth > maxNesting {
		t.depth--
		return nil
	}
	typ := t.parse(text)
	t.depth--
	if typ != nil {
		t.known[text] = typ
	}
	return typ
}

// typeEnd returns the end of the type that begins at the position "from". If no type begins there,
// typeEnd returns this position.
func typeEnd(text string, from int) int {
	i := typeBaseEnd(text, from)
	for i > from && i < len(text) {
		next := suffixEnd(text, i)
		if next == i {
			break
		}
		i = next
	}
	return i
}

// typeBaseEnd returns the end of the type, without suffixes, that begins at the position "from". If
// no type begins there, typeBaseEnd returns this position.
func typeBaseEnd(text string, from int) int {
	i := from
	if i >= len(text) {
		return from
	}
	switch b := text[i]; {
	case b == '%':
		c := cursor{text: text, at: i + 1}
		if c.readName(); c.failed() {
			return from
		}
		i = c.at
	case b == '[' || b == '{' || b == '<':
		i = groupEnd(text, i)
	case isLetter(b):
		for i < len(text) && (isLetter(text[i]) || isDigit(text[i]) || text[i] == '_') {
			i++
		}
		word := text[from:i]
		if word == "target" && i < len(text) && text[i] == '(' {
			i = groupEnd(text, i)
		} else if !isTypeWord(word) {
			return from
		}
	}
	return max(i, from)
}

// suffixEnd skips the suffixes of pointer types and function types: "*", " addrspace(1)*", " (i32,
// ...)". It also skips the address space after the opaque type "ptr".
func suffixEnd(text string, i int) int {
	if text[i] == '*' {
		return i + 1
	}
	rest := text[i:]
	if strings.HasPrefix(rest, " addrspace(") {
		if end := groupEnd(text, i+len(" addrspace")); end >= 0 {
			if end < len(text) && text[end] == '*' {
				end++
			}
			return end
		}
	}
	if strings.HasPrefix(rest, " (") {
		if end := groupEnd(text, i+1); end >= 0 {
			return end
		}
	}
	return i
}

func isTypeWord(word string) bool {
	switch word { // this is faster than a look-up in wordTypes
	case "void", "ptr", "half", "bfloat", "float", "double", "x86_fp80", "fp128", "ppc_fp128",
		"label", "token", "metadata", "x86_mmx", "x86_amx", "opaque":
		return true
	}
	return isIntWord(word)
}

func isIntWord(word string) bool {
	return len(word) >= 2 && word[0] == 'i' && digits(word[1:]) == len(word)-1
}

func (t *types) parse(text string) *datatype {
	last := text[len(text)-1]
	switch {
	case last == '*':
		return t.pointer(spaceOf(text[:len(text)-1]))
	case last == ')' && strings.HasPrefix(text, "ptr addrspace("):
		return t.pointer(spaceOf(text))
	case last == ')' && strings.HasPrefix(text, "target("):
		return &datatype{kind: otherType, text: text}
	case last == ')':
		return t.parseFunction(text)
	case text[0] == '%':
		return t.name(text)
	case text[0] == '[':
		return t.parseSequence(text, arrayType)
	case text[0] == '{':
		return t.fields(text, false)
	case strings.HasPrefix(text, "<{"):
		return t.fields(text[1:len(text)-1], true)
	case text[0] == '<':
		return t.parseSequence(text, vectorType)
	}
	return t.word(text)
}

// spaceOf returns the address space at the end of text, or 0 if there is none.
func spaceOf(text string) uint32 {
	i := strings.LastIndex(text, " addrspace(")
	if i < 0 || text[len(text)-1] != ')' {
		return 0
	}
	n, err := strconv.ParseUint(text[i+len(" addrspace("):len(text)-1], 10, 32)
	if err != nil {
		return 1 // a named address space, which is not the default address space
	}
	return uint32(n)
}

func (t *types) pointer(space uint32) *datatype {
	p := &datatype{kind: pointerType, text: "ptr", space: space, bits: t.layout.pointerBits(space)}
	if space != 0 {
		p.text = "ptr addrspace(" + strconv.Itoa(int(space)) + ")"
	}
	p.bytes, p.align, p.sized = p.bits/8, p.bits/8, true
	return p
}

// parseFunction parses a function type. The field "elem" of the returned type is the type of the
// function's result.
func (t *types) parseFunction(text string) *datatype {
	parameters := parametersOf(text)
	if parameters < 0 {
		return nil
	}
	returns := t.lookUp(text[:parameters])
	if returns == nil {
		return nil
	}
	return &datatype{kind: functionType, text: text, elem: returns}
}

// parametersOf returns the position in a function type at which the parameters begin, including the
// space before them, or -1.
func parametersOf(text string) int {
	for i := typeBaseEnd(text, 0); i > 0 && i < len(text); {
		end := suffixEnd(text, i)
		if end == len(text) && strings.HasPrefix(text[i:], " (") {
			return i
		}
		if end == i {
			return -1
		}
		i = end
	}
	return -1
}

func (t *types) name(text string) *datatype {
	definition, ok := t.named[text]
	if !ok || definition == "opaque" {
		return &datatype{kind: otherType, text: text}
	}
	of := t.lookUp(definition)
	if of == nil {
		return nil
	}
	named := *of
	named.text = text
	return &named
}

// parseSequence reads "[4 x T]", "<4 x T>" and "<vscale x 4 x T>".
func (t *types) parseSequence(text string, kind typeKind) *datatype {
	c := cursor{text: text, at: 1}
	s := &datatype{kind: kind}
	count := c.readWord()
	if count == "vscale" {
		s.scalable = true
		c.wantWord("x")
		count = c.readWord()
	}
	n, err := strconv.ParseUint(count, 10, 64)
	if err != nil {
		return nil
	}
	c.wantWord("x")
	s.count, s.elem = n, t.readType(&c)
	c.skipSpace()
	if c.failed() || c.at != len(text)-1 {
		return nil
	}
	s.text = text[:1] + strconv.FormatUint(n, 10) + " x " + s.elem.text + text[len(text)-1:]
	if s.scalable {
		s.text = "<vscale x " + s.text[1:]
	}
	t.sizeSequence(s)
	return s
}

func (t *types) sizeSequence(s *datatype) {
	if !s.elem.sized || s.scalable || s.count > maxBytes {
		return
	}
	if s.kind == arrayType {
		each := max(s.elem.allocBytes(), 1)
		if s.count > maxBytes/each {
			return
		}
		s.bytes, s.align, s.sized = s.count*s.elem.allocBytes(), s.elem.align, true
		return
	}
	if s.elem.bits == 0 || s.count > maxBytes/s.elem.bits {
		return
	}
	s.bits = s.count * s.elem.bits
	s.bytes = (s.bits + 7) / 8
	s.align, s.sized = exactAlign(t.layout.vectors, s.bits, s.bytes), true
}

func (t *types) fields(text string, packed bool) *datatype {
	s := &datatype{kind: structType, packed: packed}
	c := cursor{text: text, at: 1}
	words := []string{}
	for c.peek() != '}' && !c.failed() {
		f := t.readType(&c)
		if f == nil {
			return nil
		}
		s.fields, words = append(s.fields, f), append(words, f.text)
		if !c.skipByte(',') && c.peek() != '}' {
			return nil
		}
	}
	if c.failed() || c.at != len(text)-1 {
		return nil
	}
	s.text = "{ " + strings.Join(words, ", ") + " }"
	if len(words) == 0 {
		s.text = "{}"
	}
	if packed {
		s.text = "<" + s.text + ">"
	}
	t.sizeStruct(s)
	return s
}

func (t *types) sizeStruct(s *datatype) {
	s.align = 1
	if !s.packed {
		s.align = t.layout.aggregateAlign
	}
	for _, f := range s.fields {
		if !f.sized || s.bytes > maxBytes {
			return
		}
		align := f.align
		if s.packed {
			align = 1
		}
		s.align = max(s.align, align)
		s.bytes = roundUp(s.bytes, align) + f.allocBytes()
	}
	s.bytes, s.sized = roundUp(s.bytes, s.align), true
}

// wordTypes maps types that are single words, except integers, to their kinds and numbers of bits.
var wordTypes = map[string]datatype{
	"half": {kind: floatType, bits: 16}, "bfloat": {kind: floatType, bits: 16}, "float": {kind: floatType, bits: 32},
	"double": {kind: floatType, bits: 64}, "x86_fp80": {kind: floatType, bits: 80}, "fp128": {kind: floatType, bits: 128},
	"ppc_fp128": {kind: floatType, bits: 128}, "x86_mmx": {kind: vectorType, bits: 64}, "x86_amx": {kind: vectorType, bits: 8192},
	"void": {kind: voidType}, "label": {kind: otherType}, "token": {kind: otherType}, "metadata": {kind: otherType},
	"opaque": {kind: otherType},
}

func (t *types) word(text string) *datatype {
	w, ok := wordTypes[text]
	if !ok {
		return t.integer(text)
	}
	w.text = text
	if w.bits > 0 {
		w.bytes, w.align, w.sized = w.bits/8, exactAlign(t.layout.floats, w.bits, w.bits/8), true
	}
	return &w
}

func (t *types) integer(text string) *datatype {
	if !isIntWord(text) {
		return nil
	}
	bits, err := strconv.ParseUint(text[1:], 10, 32)
	if err != nil || bits == 0 || bits > 1<<23 {
		return nil
	}
	i := &datatype{kind: intType, text: text, bits: bits, bytes: (bits + 7) / 8, sized: true}
	i.align = t.layout.intAlign(bits)
	return i
}
