package answers

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ShortNames returns, for each name, a text of at most the given number of characters. Names of C++
// and Rust can have hundreds of characters. A name that is too long loses its parameter lists, then
// its template arguments, and then its middle. Different names have different texts. Texts that
// would be equal are shortened less, and may exceed the limit.
func ShortNames(names []string, most int) map[string]string {
	short, step := map[string]string{}, map[string]int{}
	for _, name := range names {
		if step[name] > 0 {
			continue
		}
		steps := shortened(name, most)
		for step[name] = 1; step[name] < len(steps) && utf8.RuneCountInString(steps[step[name]-1]) > most; step[name]++ {
		}
		short[name] = steps[step[name]-1]
	}
	for {
		of := map[string]int{}
		for _, text := range short {
			of[text]++
		}
		again := false
		for name, text := range short {
			if of[text] > 1 && step[name] > 1 {
				step[name]--
				short[name], again = shortened(name, most)[step[name]-1], true
			}
		}
		if !again {
			return short
		}
	}
}

// shortened returns a name, followed by shorter and shorter versions of it.
func shortened(name string, most int) []string {
	parameters, arguments := collapse(name, '(', ')'), collapse(name, '<', '>')
	both := collapse(parameters, '<', '>')
	runes := []rune(both)
	middle := both
	if len(runes) > most {
		middle = string(runes[:most/2]) + "…" + string(runes[len(runes)-(most-most/2-1):])
	}
	return []string{name, parameters, arguments, both, middle}
}

// shortPath returns a call path with about mostPath characters or fewer: the first function, the
// number of omitted functions, and the last functions.
func shortPath(path string) string {
	functions := strings.Split(path, ";")
	for i, name := range functions {
		functions[i] = ShortNames([]string{name}, mostPath/2)[name]
	}
	last := len(functions)
	for length := utf8.RuneCountInString(functions[0]); last > 1; last-- {
		if length += 1 + utf8.RuneCountInString(functions[last-1]); length > mostPath && last < len(functions) {
			return functions[0] + ";… " + strconv.Itoa(last-1) + " more …;" + strings.Join(functions[last:], ";")
		}
	}
	return strings.Join(functions, ";")
}

const mostPath = 64

// collapse replaces the text between the outermost brackets by "…". collapse keeps brackets of
// operators, such as operator<, and of anonymous namespaces.
func collapse(name string, open, end byte) string {
	var b strings.Builder
	depth, from := 0, 0 // name[from:] has not been written yet
	for i := 0; i < len(name); i++ {
		if n := kept(name[i:]); n > 0 {
			i += n - 1
			continue
		}
		switch name[i] {
		case open:
			if depth++; depth == 1 {
				b.WriteString(name[from : i+1])
				from = i + 1
			}
		case end:
			if depth--; depth < 0 {
				return name
			}
			if depth == 0 {
				if i > from {
					b.WriteString("…")
				}
				from = i
			}
		}
	}
	if depth > 0 {
		return name
	}
	b.WriteString(name[from:])
	return b.String()
}

// kept returns the length of the operator name or anonymous namespace with which text begins, or 0.
func kept(text string) int {
	const operator = "operator"
	if after, is := strings.CutPrefix(text, operator); is {
		for _, of := range []string{"()", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"} {
			if strings.HasPrefix(after, of) {
				return len(operator) + len(of)
			}
		}
	}
	for _, of := range []string{"(anonymous namespace)", "->"} {
		if strings.HasPrefix(text, of) {
			return len(of)
		}
	}
	return 0
}
