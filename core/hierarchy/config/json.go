package config

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is the maximum nesting depth of lists and objects.
const maxDepth = 32

// parseJSON reads one value and records its line numbers, for error messages. A JSON library would
// add more code than the rest of this package contains.
func parseJSON(text string) (Node, error) {
	p := &jsonParser{text: text, line: 1}
	node := p.value(0)
	p.blank()
	if p.err == nil && p.at < len(p.text) {
		p.fail("the end of the text after the value")
	}
	if p.err != nil {
		return Node{}, p.err
	}
	return node, nil
}

type jsonParser struct {
	text string
	at   int
	line int
	err  *Error
}

func (p *jsonParser) fail(want string) {
	if p.err != nil {
		return
	}
	got := "the end"
	if p.at < len(p.text) {
		c, _ := utf8.DecodeRuneInString(p.text[p.at:])
		got = strconv.QuoteRune(c)
	}
	p.err = errorAt(p.line, got, ", want ", want)
	p.at = len(p.text)
}

func (p *jsonParser) blank() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		if p.text[p.at] == '\n' {
			p.line++
		}
		p.at++
	}
}

// next skips white space, and reads the next byte if it equals c.
func (p *jsonParser) next(c byte) bool {
	p.blank()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *jsonParser) value(depth int) Node {
	p.blank()
	n := Node{Line: p.line}
	switch {
	case depth > maxDepth:
		p.fail("lists and objects that are nested less deeply")
	case p.next('{'):
		n.Kind = Object
		for p.err == nil && !p.next('}') {
			if len(n.Fields) > 0 && !p.next(',') {
				p.fail("a comma or }")
			}
			n.Fields = append(n.Fields, p.member(depth))
		}
	case p.next('['):
		n.Kind = List
		for p.err == nil && !p.next(']') {
			if len(n.Items) > 0 && !p.next(',') {
				p.fail("a comma or ]")
			}
			n.Items = append(n.Items, p.value(depth+1))
		}
	case p.at < len(p.text) && p.text[p.at] == '"':
		n.Kind, n.Text = String, p.quoted()
	default:
		n.Text = p.bare()
	}
	return n
}

func (p *jsonParser) member(depth int) Member {
	p.blank()
	m := Member{Line: p.line}
	if p.at >= len(p.text) || p.text[p.at] != '"' {
		p.fail("a key in quotation marks")
		return m
	}
	m.Key = p.quoted()
	if !p.next(':') {
		p.fail("a colon")
	}
	m.Value = p.value(depth + 1)
	return m
}

// bare reads a number, true, false or null.
func (p *jsonParser) bare() string {
	from := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n,:]}[{\"", p.text[p.at]) < 0 {
		p.at++
	}
	word := p.text[from:p.at]
	if word != "true" && word != "false" && word != "null" && !isNumber(word) {
		p.at = from
		p.fail("a value")
	}
	return word
}

// isNumber reports whether a text is a number in JSON's grammar.
func isNumber(s string) bool {
	digits := func() (n int) {
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n
	}
	s = strings.TrimPrefix(s, "-")
	zero := strings.HasPrefix(s, "0")
	if n := digits(); n == 0 || zero && n > 1 {
		return false
	}
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		if digits() == 0 {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if digits() == 0 {
			return false
		}
	}
	return s == ""
}

// quoted reads a text in quotation marks. The reader must be at the first quotation mark.
func (p *jsonParser) quoted() string {
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return strings.ToValidUTF8(b.String(), "\uFFFD")
		case c < ' ':
			p.fail("a quotation mark before the end of the line")
			return ""
		case c == '\\':
			p.at++
			if p.escape(&b); p.err != nil {
				return ""
			}
		default:
			b.WriteByte(c)
		}
	}
	p.fail("a quotation mark")
	return ""
}

// escape writes the character of an escape sequence, and stops at the last byte of the sequence.
func (p *jsonParser) escape(b *strings.Builder) {
	if p.at >= len(p.text) {
		p.fail("a quotation mark")
		return
	}
	if i := strings.IndexByte(`"\/bfnrt`, p.text[p.at]); i >= 0 {
		b.WriteByte("\"\\/\b\f\n\r\t"[i])
		return
	}
	r, ok := p.hex()
	if !ok {
		p.fail("a valid JSON escape sequence")
		return
	}
	if utf16.IsSurrogate(r) {
		before := p.at
		p.at++
		low, ok := rune(0), strings.HasPrefix(p.text[min(p.at, len(p.text)):], `\`)
		if ok {
			p.at++
			low, ok = p.hex()
		}
		if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
			p.at, r = before, utf8.RuneError
		}
	}
	b.WriteRune(r)
}

// hex reads uXXXX and stops at its last digit.
func (p *jsonParser) hex() (rune, bool) {
	if p.at+5 > len(p.text) || p.text[p.at] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(p.text[p.at+1:p.at+5], 16, 16)
	if err != nil {
		return 0, false
	}
	p.at += 4
	return rune(n), true
}
