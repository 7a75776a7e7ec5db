package config

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stackglass/stackglass/core/hierarchy"
)

// deepest is how deep lists and objects may lie in each other.
const deepest = 32

// parseJSON reads one value, and keeps the lines that errors name. A library
// that does this weighs more than all else that the page carries for it.
func parseJSON(text string) (Node, error) {
	p := &jsonParser{text: text, line: 1}
	node := p.value(0)
	p.blank()
	if p.err == nil && p.at < len(p.text) {
		p.fail("the end, behind the value")
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

// next takes the next byte if it is c, blanks before it left out.
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
	case depth > deepest:
		p.fail("fewer lists in lists")
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

// bare is a number, true, false or null.
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

// isNumber follows the grammar of JSON.
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

// quoted is the text between quotation marks; the first one is at hand.
func (p *jsonParser) quoted() string {
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return strings.ToValidUTF8(b.String(), "\uFFFD")
		case c < ' ':
			p.fail("the end of the text in this line")
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

// escape writes what the letter behind a backslash stands for, and stops on the
// last byte of it.
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
		p.fail("an escape that JSON knows")
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

// hex reads uXXXX and stops on its last digit.
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

// Format writes a hierarchy as JSON of the schema, which [Read] reads. What is
// the default is left out.
func Format(h hierarchy.Hierarchy) []byte {
	w := &jsonWriter{}
	w.object(func() {
		w.text("name", h.Name)
		w.text("title", h.Title)
		w.text("about", h.About)
		w.number("clock_ghz", h.ClockGHz)
		w.key("levels")
		w.list(len(h.Levels), func(i int) { w.cache(h.Levels[i]) })
		if h.Memory != (hierarchy.Memory{}) {
			w.key("memory")
			w.object(func() {
				w.number("latency_cycles", h.Memory.LatencyCycles)
				w.number("bytes_per_cycle", h.Memory.BytesPerCycle)
			})
		}
		if len(h.Sources) > 0 {
			w.key("sources")
			w.list(len(h.Sources), func(i int) { w.out = appendQuoted(w.out, h.Sources[i]) })
		}
	})
	return append(w.out, '\n')
}

func (w *jsonWriter) cache(c hierarchy.Cache) {
	w.object(func() {
		w.text("name", c.Name)
		w.text("size", hierarchy.FormatSize(c.SizeBytes))
		if c.Ways == 0 {
			w.text("ways", "full")
		} else {
			w.number("ways", float64(c.Ways))
		}
		if c.LineBytes != hierarchy.DefaultLineBytes {
			w.number("line", float64(c.LineBytes))
		}
		w.number("latency_cycles", c.LatencyCycles)
		w.number("bytes_per_cycle", c.BytesPerCycle)
		if c.SharedBy == hierarchy.AllCores {
			w.text("shared_by", "all")
		} else {
			w.number("shared_by", float64(c.SharedBy))
		}
		if c.Hashed {
			w.key("hashed")
			w.out = append(w.out, "true"...)
		}
		w.word("replacement", replacements, int(c.Replacement))
		w.word("inclusion", inclusions, int(c.Inclusion))
		if c.Write.Through() {
			w.text("write", "through")
		}
		if c.Write.Around() {
			w.key("allocate")
			w.out = append(w.out, "false"...)
		}
	})
}

// jsonWriter writes indented JSON.
type jsonWriter struct {
	out   []byte
	depth int
	begun bool // the object or list in hand has a member
}

func (w *jsonWriter) enclose(open, close byte, content func()) {
	outer := w.begun
	w.out = append(w.out, open)
	w.depth++
	w.begun = false
	content()
	w.depth--
	if w.begun {
		w.newLine()
	}
	w.out = append(w.out, close)
	w.begun = outer
}

func (w *jsonWriter) object(content func()) { w.enclose('{', '}', content) }

func (w *jsonWriter) list(n int, item func(i int)) {
	w.enclose('[', ']', func() {
		for i := range n {
			w.member()
			item(i)
		}
	})
}

func (w *jsonWriter) newLine() {
	w.out = append(w.out, '\n')
	for range w.depth {
		w.out = append(w.out, "  "...)
	}
}

func (w *jsonWriter) member() {
	if w.begun {
		w.out = append(w.out, ',')
	}
	w.begun = true
	w.newLine()
}

func (w *jsonWriter) key(name string) {
	w.member()
	w.out = append(appendQuoted(w.out, name), ": "...)
}

// text, number and word leave out what is the default.
func (w *jsonWriter) text(name, value string) {
	if value != "" {
		w.key(name)
		w.out = appendQuoted(w.out, value)
	}
}

func (w *jsonWriter) number(name string, x float64) {
	if x != 0 {
		w.key(name)
		w.out = append(w.out, hierarchy.FormatNumber(x)...)
	}
}

func (w *jsonWriter) word(name string, words []string, i int) {
	if i > 0 && i < len(words) {
		w.text(name, words[i])
	}
}

func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
