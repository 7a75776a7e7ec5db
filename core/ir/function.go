package ir

import (
	"slices"
	"strconv"
	"strings"
)

// function contains the basic blocks and the instructions of a function, in the order of the text.
// A single variable of this type is reused for all functions.
type function struct {
	m *module
	extent

	name      string // name, including quotes
	words     []string
	groups    []string // attribute groups, such as "#0"
	section   string
	collected bool // whether the function uses a garbage collector, which must know every call
	debug     int  // node of the function's DISubprogram, or -1
	profile   int  // node of the function's !prof, or -1
	refusal   string
	refused   *problem // the first construct that can be parsed but not rewritten
	returns   *datatype
	params    []operand

	blocks []basicBlock
	insts  []inst
	uses   []int32    // values used by instructions
	args   []operand  // arguments of calls
	refs   []labelRef // labels in instructions

	values map[string]int32 // value numbers by name
	// by value: the instruction that computes the value, -1-p for parameter p, or undefined
	defs       []int32
	labels     map[string]int32 // label numbers by name
	blockOf    []int32          // by label: the basic block, or -1
	debugNames []int32          // by value: 1 + the number of the DILocalVariable that describes it
	scratch    []string
}

const undefined = -1 << 30

// basicBlock extends from a label, or from the function's beginning, to the terminator.
type basicBlock struct {
	label       string // the block's label, as written after %
	from        int    // position at which the block's text begins, after the line of the label
	first, last int32  // range [first, last) of the block's instructions
	header      int32  // end of the phis and landing pads, which must remain at the beginning of the block
}

type labelRef struct {
	from, to    int32 // range of the label's text in the module, without %
	open, close int32 // in a phi: range of the bracketed pair that contains the label
	label       int32
}

type operand struct {
	typ      *datatype
	typeText string
	text     string
	id       int32 // number of a local value, or -1 for constants and globals
}

// problem explains why code is not instrumented.
type problem struct {
	line int
	why  string
}

func (f *function) reset(m *module, e extent) {
	*f = function{
		m: m, extent: e, debug: -1, profile: -1,
		words: f.words[:0], groups: f.groups[:0], params: f.params[:0], blocks: f.blocks[:0], insts: f.insts[:0],
		uses: f.uses[:0], args: f.args[:0], refs: f.refs[:0], defs: f.defs[:0], blockOf: f.blockOf[:0],
		debugNames: f.debugNames[:0], scratch: f.scratch[:0], values: f.values, labels: f.labels,
	}
	if f.values == nil {
		f.values, f.labels = map[string]int32{}, map[string]int32{}
	}
	clear(f.values)
	clear(f.labels)
}

// value returns the number of a local value.
func (f *function) value(name string) int32 {
	if id, ok := f.values[name]; ok {
		return id
	}
	id := int32(len(f.defs))
	f.values[name] = id
	f.defs = append(f.defs, undefined)
	f.debugNames = append(f.debugNames, 0)
	return id
}

func (f *function) label(name string) int32 {
	if id, ok := f.labels[name]; ok {
		return id
	}
	id := int32(len(f.blockOf))
	f.labels[name] = id
	f.blockOf = append(f.blockOf, -1)
	return id
}

// readHeader reads a function's first line, which begins with define.
func (f *function) readHeader() *problem {
	text := f.m.text[f.from:lineEnd(f.m.text, f.from)]
	c := cursor{text: text, at: len("define")}
	f.words = f.readAttributes(&c, f.words)
	f.returns = f.m.types.readType(&c)
	c.want('@')
	f.name = c.readName()
	implicit := f.readParams(&c)
	f.readProperties(&c)
	if c.failed() {
		return &problem{f.line, "cannot parse the first line of the function, want " + c.wants}
	}
	f.startBlock(strconv.Itoa(implicit), lineEnd(f.m.text, f.from)+1)
	return nil
}

// readParams reads the parameters, and returns the number of the next unnamed value.
func (f *function) readParams(c *cursor) int {
	unnamed := 0
	c.want('(')
	c.readList(')', func() {
		if strings.HasPrefix(c.text[c.at:], "...") {
			c.at += len("...")
			return
		}
		var o operand
		o.typ, o.typeText, o.id = f.readType(c)
		f.scratch = f.readAttributes(c, f.scratch[:0])
		if slices.Contains(f.scratch, "swifterror") {
			f.words = append(f.words, "swifterror")
		}
		if c.skipByte('%') {
			o.text = c.readName()
		} else {
			o.text = strconv.Itoa(unnamed)
		}
		if !c.failed() {
			if isDigit(o.text[0]) {
				unnamed++
			}
			o.id = f.value(o.text)
			f.defs[o.id] = int32(-1 - len(f.params))
			f.params = append(f.params, o)
		}
	})
	return unnamed
}

// readProperties reads the text between the parameters and the opening brace.
func (f *function) readProperties(c *cursor) {
	for !c.failed() {
		switch b := c.peek(); {
		case b == '{' && isLast(c.text[c.at+1:]):
			return
		case b == '#':
			from := c.at
			c.at++
			c.readWord()
			f.groups = append(f.groups, c.text[from:c.at])
		case b == '"':
			c.readQuoted()
		case b == '!':
			c.at++
			if kind := c.readName(); c.peek() == '!' {
				switch kind {
				case "dbg":
					f.debug = reference(c.text[c.at:])
				case "prof":
					f.profile = reference(c.text[c.at:])
				}
			}
		case b == '(' || b == '{' || b == '[' || b == '<':
			c.readGroup()
		case isLetter(b):
			f.property(c)
		case b == 0:
			c.fail("{")
		default:
			c.at++
		}
	}
}

// isLast reports whether text contains nothing except white space and a comment.
func isLast(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || text[0] == ';'
}

func (f *function) property(c *cursor) {
	switch word := c.readWord(); word {
	case "section":
		c.skipSpace()
		f.section = unquote(c.readQuoted())
	case "gc":
		f.collected = true
	default:
		f.words = append(f.words, word)
	}
}

// readType reads a type. It returns the type, the text of the type, and -1 as the number of the
// value.
func (f *function) readType(c *cursor) (t *datatype, text string, id int32) {
	c.skipSpace()
	from := c.at
	t = f.m.types.readType(c)
	return t, c.text[from:c.at], -1
}

// readAttributes reads the keywords before a type or value, including arguments in parentheses, and
// appends them to the slice "words".
func (f *function) readAttributes(c *cursor, words []string) []string {
	for {
		b := c.peek()
		if b == '"' {
			c.readAttribute()
			continue
		}
		if !isLetter(b) || b == 'c' && strings.HasPrefix(c.text[c.at:], `c"`) {
			return words
		}
		before := c.at
		word := c.readWord()
		if isTypeWord(word) || word == "target" || isValueWord(word) {
			c.at = before
			return words
		}
		words = append(words, word)
		c.groupHere()
		if (word == "align" || word == "cc") && isDigit(c.peek()) {
			c.readWord()
		}
	}
}

func (f *function) readBody() *problem {
	text := f.m.text
	line := f.line
	for at := lineEnd(text, f.from) + 1; at < f.to; {
		line++
		end := lineEnd(text, at)
		l := text[at:end]
		from := at
		at = end + 1
		switch trimmed := strings.TrimLeft(l, " \t"); {
		case trimmed == "" || trimmed == "\r" || trimmed[0] == ';' || l[0] == '}':
		case trimmed[0] == '#':
			f.readDebugRecord(trimmed)
		case len(trimmed) == len(l):
			if p := f.readLabelLine(l, from, line); p != nil {
				return p
			}
		default:
			e := f.joinLines(extent{from, end, line})
			if strings.HasPrefix(trimmed, "uselistorder") {
				f.refuse("the instruction is unknown: uselistorder")
				f.noteRefusal(line)
				continue
			}
			if why := f.readInstruction(e); why != "" {
				return &problem{line, why}
			}
			f.noteRefusal(line)
			line += strings.Count(text[end:e.to], "\n")
			at = e.to + 1
		}
	}
	return f.checkEnd(line)
}

// refuse records why the function cannot be rewritten, although it can be parsed.
func (f *function) refuse(why string) {
	if f.refusal == "" {
		f.refusal = why
	}
}

func (f *function) noteRefusal(line int) {
	if f.refusal != "" && f.refused == nil {
		f.refused = &problem{line, f.refusal}
	}
}

// readLabelLine reads a line such as `for.body:     ; preds = %entry`.
func (f *function) readLabelLine(l string, from, line int) *problem {
	c := cursor{text: l}
	name := c.readName()
	if c.failed() || c.at >= len(l) || l[c.at] != ':' {
		return &problem{line, "cannot parse a label"}
	}
	b := &f.blocks[len(f.blocks)-1]
	if len(f.blocks) == 1 && len(f.insts) == 0 {
		*b = basicBlock{} // the first block has an explicit label
		delete(f.labels, b.label)
		f.blocks, f.blockOf = f.blocks[:0], f.blockOf[:0]
		clear(f.labels)
	}
	if id, ok := f.labels[name]; ok && f.blockOf[id] >= 0 {
		return &problem{line, "the label " + name + " is defined twice"}
	}
	f.startBlock(name, from+len(l)+1)
	return nil
}

func (f *function) startBlock(label string, from int) {
	if n := len(f.blocks); n > 0 {
		f.blocks[n-1].last = int32(len(f.insts))
	}
	f.blockOf[f.label(label)] = int32(len(f.blocks))
	n := int32(len(f.insts))
	f.blocks = append(f.blocks, basicBlock{label: label, from: from, first: n, last: n, header: n})
}

// joinLines extends the extent of the first line of an instruction to the end of its continuation
// lines.
func (f *function) joinLines(e extent) extent {
	text := f.m.text
	first := f.m.in(e)
	c := cursor{text: first}
	if c.skipByte('%') {
		c.readName()
		c.want('=')
	}
	var starts []string // beginnings of continuation lines
	switch c.readWord() {
	case "switch":
		if strings.HasSuffix(strings.TrimRight(first, " \r"), "[") {
			starts = []string{""}
		}
	case "landingpad":
		starts = []string{"cleanup", "catch ", "filter "}
	case "invoke", "callbr":
		starts = []string{"to label"}
	}
	for last := false; e.to+1 < f.to && !last; {
		end := lineEnd(text, e.to+1)
		next := strings.TrimLeft(text[e.to+1:end], " \t")
		if !slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(next, s) }) {
			break
		}
		e.to, last = end, strings.HasPrefix(next, "]")
	}
	return e
}

// checkEnd checks the conditions that can be checked only at the end of the function.
func (f *function) checkEnd(line int) *problem {
	f.blocks[len(f.blocks)-1].last = int32(len(f.insts))
	for _, r := range f.refs {
		if f.blockOf[r.label] < 0 {
			return &problem{line, "a label is used but not defined: " + f.m.text[r.from:r.to]}
		}
	}
	for i := range f.blocks {
		b := &f.blocks[i]
		if b.first == b.last || !f.insts[b.last-1].op.isTerminator() {
			return &problem{line, "the basic block " + b.label + " does not end in a terminator"}
		}
		for b.header = b.first; b.header < b.last && f.insts[b.header].op.mustLead(); b.header++ {
		}
		for i := b.first; i < b.last-1; i++ {
			if f.insts[i].op.isTerminator() || i > b.header && f.insts[i].op.mustLead() {
				return &problem{line, "the basic block " + b.label + " has a misplaced phi, landing pad or terminator"}
			}
		}
	}
	return nil
}

// readDebugRecord reads a debug record: `#dbg_value(ptr %a, !12, !DIExpression(), !13)`.
func (f *function) readDebugRecord(text string) {
	c := cursor{text: text}
	c.at++
	kind := c.readWord()
	if kind != "dbg_declare" && kind != "dbg_value" && kind != "dbg_assign" || !c.skipByte('(') {
		return
	}
	described := f.debugValue(&c)
	c.want(',')
	c.skipSpace()
	variable := reference(c.text[c.at:])
	if c.skipByte('!') {
		c.readName()
	}
	whole := strings.HasPrefix(c.text[c.at:], ", !DIExpression()")
	if kind == "dbg_assign" {
		if _, rest, ok := strings.Cut(c.text[c.at:], "), "); ok {
			_, rest, _ = strings.Cut(rest, ", ")
			described = f.debugValue(&cursor{text: rest})
		}
	}
	if !c.failed() && (whole || kind != "dbg_value") {
		f.describe(described, variable)
	}
}

// debugValue reads the value in a debug record. It returns the number of the value, or -1 if the
// value is not local.
func (f *function) debugValue(c *cursor) int32 {
	if c.peek() == '!' {
		c.at++
		c.readNode()
		return -1
	}
	end := typeEnd(c.text, c.at)
	if end == c.at {
		return -1
	}
	c.at = end
	if c.skipByte('%') {
		if name := c.readName(); !c.failed() {
			return f.value(name)
		}
	}
	c.readFieldValue()
	return -1
}

// describe records the source variable of a value. If a value has several descriptions, the first
// description is kept, because it belongs to the outermost inlined function.
func (f *function) describe(value int32, variable int) {
	if value >= 0 && variable >= 0 && f.debugNames[value] == 0 {
		f.debugNames[value] = int32(variable) + 1
	}
}

// debugCall reads a call of llvm.dbg.declare or a similar intrinsic, which LLVM used up to version
// 18.
func (f *function) debugCall(callee string, a []operand) {
	at := 0
	switch {
	case len(a) < 3:
		return
	case callee == "llvm.dbg.assign" && len(a) > 4:
		at = 4
	case callee == "llvm.dbg.value" && a[2].text != "!DIExpression()":
		return // the variable does not equal the value, but is computed from it
	}
	f.describe(a[at].id, reference(a[1].text))
}
