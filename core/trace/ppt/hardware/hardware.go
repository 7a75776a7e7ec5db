// Package hardware evaluates the hardware files of PPT (github.com/lanl/PPT, folder
// ppt_lite/hardware). Hardware files are Python files that assign numbers, lists and dictionaries
// to names, for example cache_sizes = [32 * kb]. Values are arithmetic expressions that consist of
// numbers and names assigned earlier. Everything else (strings, calls, code) is skipped.
package hardware

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Value is the value of a variable or of a member of a dictionary.
type Value struct {
	Kind    Kind
	Line    int       // line number of the assignment or the member
	Before  int       // line number of an earlier assignment to the same name; 0 if there is none
	Numbers []float64 // the value of a Number, or the values of a List
	Members []Member  // members of a Dictionary
}

// Kind is the type of a value.
type Kind uint8

// The kinds of values.
const (
	Unknown Kind = iota // the value cannot be evaluated
	Number
	List
	Dictionary
)

// Member is a member of a dictionary.
type Member struct {
	Key   string
	Value Value
}

const (
	mostItems = 64 // maximum number of items in a list or dictionary
	deepest   = 64 // maximum nesting depth of expressions
)

// Read returns the values of all names that a file assigns, including the keys of dictionaries.
func Read(text string) map[string]Value {
	values := map[string]Value{}
	set := func(name string, v Value) {
		v.Before = values[name].Line
		values[name] = v
	}
	for _, s := range statements(text) {
		e := &evaluator{text: s.text, line: s.line, values: values}
		name := e.name()
		if !e.next('=') || name == "" {
			continue
		}
		v := e.value()
		if e.blank(); e.failed || e.at < len(e.text) && v.Kind != Dictionary {
			v = Value{}
		}
		v.Line = s.line
		set(name, v)
		for _, m := range v.Members {
			if m.Value.Kind != Unknown {
				set(m.Key, m.Value)
			}
		}
	}
	return values
}

// statement is a logical line, which may extend over several lines within brackets.
type statement struct {
	text string
	line int // number of the statement's first line
}

// statements splits a Python file into logical lines, and removes comments and triple-quoted
// strings.
func statements(text string) (list []statement) {
	var (
		current []byte
		open    int
		line    = 1
		first   = 1
	)
	end := func() {
		if whole := strings.TrimLeft(string(current), " \t\r"); whole != "" {
			list = append(list, statement{whole, first})
		}
		current, first = current[:0], line+1
	}
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch c := text[i]; {
		case strings.HasPrefix(rest, `'''`), strings.HasPrefix(rest, `"""`):
			length := strings.Index(rest[3:], rest[:3])
			if length < 0 {
				return list
			}
			line += strings.Count(rest[:length+3], "\n")
			i += length + 5
		case c == '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case c == '\n' && open == 0:
			end()
			line++
		default:
			switch {
			case c == '\n':
				line++
			case strings.IndexByte("([{", c) >= 0:
				open++
			case strings.IndexByte(")]}", c) >= 0:
				open = max(0, open-1)
			}
			current = append(current, c)
		}
	}
	end()
	return list
}

// evaluator parses and evaluates a statement. Each method parses one rule of Python's grammar.
type evaluator struct {
	text   string
	at     int
	line   int
	depth  int
	values map[string]Value
	failed bool
}

func (e *evaluator) blank() {
	for e.at < len(e.text) && strings.IndexByte(" \t\r\n\\", e.text[e.at]) >= 0 {
		if e.text[e.at] == '\n' {
			e.line++
		}
		e.at++
	}
}

func (e *evaluator) ends(text string) bool {
	e.blank()
	return strings.HasPrefix(e.text[e.at:], text)
}

// next reports whether the next character is c. If so, it skips the character.
func (e *evaluator) next(c byte) bool {
	is := e.ends(string(rune(c)))
	if is {
		e.at++
	}
	return is
}

// name reads a name, and omits the prefix "self.". It returns "" if there is no name.
func (e *evaluator) name() string {
	e.blank()
	from := e.at
	for e.at < len(e.text) {
		c := e.text[e.at]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (e.at == from || c < '0' || c > '9') {
			break
		}
		e.at++
	}
	name := e.text[from:e.at]
	if name == "self" && e.next('.') {
		return e.name()
	}
	return name
}

// key reads a name, or a string in single or double quotes.
func (e *evaluator) key() string {
	for _, mark := range []byte(`"'`) {
		if e.next(mark) {
			text, _, closed := strings.Cut(e.text[e.at:], string(rune(mark)))
			e.at += len(text)
			e.failed = !closed || !e.next(mark)
			return text
		}
	}
	name := e.name()
	e.failed = e.failed || name == ""
	return name
}

// value reads a dictionary, a list or a number.
func (e *evaluator) value() Value {
	switch {
	case e.next('{'):
		return e.nested((*evaluator).dictionary)
	case e.next('['):
		return e.list()
	}
	return e.sum()
}

// dictionary reads the members of a dictionary. Members that cannot be evaluated have the kind
// Unknown.
func (e *evaluator) dictionary() Value {
	v := Value{Kind: Dictionary}
	for !e.failed && !e.next('}') {
		m := Member{Key: e.key()}
		line := e.line
		if e.failed = e.failed || !e.next(':') || len(v.Members) == mostItems; e.failed {
			break
		}
		before := *e
		if m.Value = e.value(); e.failed || !e.next(',') && !e.ends("}") {
			*e = before
			e.skip()
			m.Value = Value{}
		}
		m.Value.Line = line
		v.Members = append(v.Members, m)
	}
	return v
}

// skip skips a member of a dictionary and the comma after it.
func (e *evaluator) skip() {
	for open := 0; e.at < len(e.text); e.at++ {
		switch c := e.text[e.at]; {
		case c == '\n':
			e.line++
		case strings.IndexByte("([{", c) >= 0:
			open++
		case open > 0 && strings.IndexByte(")]}", c) >= 0:
			open--
		case open == 0 && (c == ',' || c == '}'):
			e.next(',')
			return
		}
	}
	e.failed = true
}

func (e *evaluator) list() Value {
	v := Value{Kind: List}
	for !e.failed && !e.next(']') {
		item := e.sum()
		if e.failed = e.failed || item.Kind != Number || len(v.Numbers) > mostItems; e.failed {
			return v
		}
		v.Numbers = append(v.Numbers, item.Numbers[0])
		e.failed = !e.next(',') && !e.ends("]")
	}
	return v
}

func number(x float64) Value { return Value{Kind: Number, Numbers: []float64{x}} }

// operator is a binary operator.
type operator struct {
	text  string
	apply func(x, y float64) float64
}

// operators contains the left-associative binary operators by precedence, lowest first. The
// operator ** is right-associative.
var operators = [...][]operator{
	{{"+", func(x, y float64) float64 { return x + y }}, {"-", minus}},
	{{"*", func(x, y float64) float64 { return x * y }}, {"//", func(x, y float64) float64 { return math.Floor(x / y) }}, {"/", func(x, y float64) float64 { return x / y }}},
}

func minus(x, y float64) float64 { return x - y }

// apply returns the result of a binary operator.
func (e *evaluator) apply(a, b Value, f func(x, y float64) float64) Value {
	if e.failed = e.failed || a.Kind != Number || b.Kind != Number; e.failed {
		return number(0)
	}
	return number(f(a.Numbers[0], b.Numbers[0]))
}

func (e *evaluator) sum() Value {
	return e.nested(func(e *evaluator) Value { return e.operation(0) })
}

// operation reads operands separated by operators of at least the given precedence.
func (e *evaluator) operation(level int) Value {
	if level == len(operators) {
		return e.power()
	}
	v := e.operation(level + 1)
	for !e.failed {
		i := slices.IndexFunc(operators[level], func(o operator) bool { return e.ends(o.text) })
		if i < 0 {
			break
		}
		e.at += len(operators[level][i].text)
		v = e.apply(v, e.operation(level+1), operators[level][i].apply)
	}
	return v
}

func (e *evaluator) power() Value {
	if e.next('-') {
		return e.apply(number(0), e.nested((*evaluator).power), minus)
	}
	v := e.atom()
	if e.ends("**") {
		e.at += 2
		v = e.apply(v, e.nested((*evaluator).power), math.Pow)
	}
	return v
}

// nested parses a recursive rule, and limits the depth of the recursion.
func (e *evaluator) nested(rule func(*evaluator) Value) Value {
	e.depth++
	defer func() { e.depth-- }()
	if e.failed = e.failed || e.depth > deepest; e.failed {
		return number(0)
	}
	return rule(e)
}

// atom reads a number, a name with or without an index, or an expression in parentheses.
func (e *evaluator) atom() Value {
	if e.next('(') {
		v := e.sum()
		e.failed = e.failed || !e.next(')')
		return v
	}
	if name := e.name(); name != "" {
		v := e.values[name]
		if e.failed = e.failed || v.Kind != Number && v.Kind != List; e.failed {
			return number(0)
		}
		if v.Kind == List && e.next('[') {
			return e.index(v)
		}
		return v
	}
	from := e.at
	for e.at < len(e.text) {
		c := e.text[e.at]
		sign := (c == '+' || c == '-') && e.at > from && (e.text[e.at-1] == 'e' || e.text[e.at-1] == 'E')
		if c != '.' && (c < '0' || c > '9') && c != 'e' && c != 'E' && !sign {
			break
		}
		e.at++
	}
	x, err := strconv.ParseFloat(e.text[from:e.at], 64)
	e.failed = e.failed || err != nil
	return number(x)
}

// index reads an index in brackets, and returns the item of the list v at this index.
func (e *evaluator) index(v Value) Value {
	at := e.sum()
	if e.failed = e.failed || !e.next(']') || at.Kind != Number; e.failed {
		return number(0)
	}
	i := at.Numbers[0]
	if e.failed = i < 0 || i >= float64(len(v.Numbers)) || i != math.Trunc(i); e.failed {
		return number(0)
	}
	return number(v.Numbers[int(i)])
}
