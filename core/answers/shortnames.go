package answers

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ShortNames shortens names to at most the given number of characters, because C++ and Rust names
// can have hundreds of characters. A long name first loses its parameter lists, then its template
// arguments, and then its middle. Different names have different short names: names whose short
// names would be equal are shortened less, and may exceed the limit.
func ShortNames(names []string, most int) map[string]string {
	short, step := map[string]string{}, map[string]int{}
	for _, name := range names {
		if step[name] > 0 {
			continue
		}
		steps := shorterForms(name, most)
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
				short[name], again = shorterForms(name, most)[step[name]-1], true
			}
		}
		if !again {
			return short
		}
	}
}

// shorterForms returns a name, followed by its successively shorter forms.
func shorterForms(name string, most int) []string {
	parameters, arguments := collapse(name, '(', ')'), collapse(name, '<', '>')
	both := collapse(parameters, '<', '>')
	runes := []rune(both)
	middle := both
	if len(runes) > most {
		middle = string(runes[:most/2]) + "…" + string(runes[len(runes)-(most-most/2-1):])
	}
	return []string{name, parameters, arguments, both, middle}
}

// shortPath shortens a call path to about mostPath characters: the first function, the number of
// omitted functions, and the last functions.
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

// collapse replaces the text between the outermost brackets by "…". It keeps brackets that belong
// to operators, such as operator<, or to anonymous namespaces.
func collapse(name string, open, end byte) string {
	var b strings.Builder
	depth, from := 0, 0 // name[from:] has not been written yet
	for i := 0; i < len(name); i++ {
		if n := keptPrefix(name[i:]); n > 0 {
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

// keptPrefix returns the length of a prefix that must be kept, such as an operator name or
// "(anonymous namespace)", or 0.
func keptPrefix(text string) int {
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
