package csv

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// split cuts line into p.fields, without blanks around them and quotes. A line has as many fields
// as the header.
func (p *parser) split(line []byte) *trace.SyntaxError {
	p.unquoted = p.unquoted[:0]
	rest, more, count := line, true, 0
	for ; more; count++ {
		var field []byte
		var wrong *trace.SyntaxError
		if field, rest, more, wrong = p.next(rest); wrong != nil {
			return wrong
		}
		if count < len(p.fields) {
			p.fields[count] = field
		}
	}
	if count != p.columns.count {
		return lines.Wrong("line", line, strconv.Itoa(p.columns.count)+" fields as in the header, not "+strconv.Itoa(count))
	}
	return nil
}

// next cuts the first field off text; more reports a separator behind it.
func (p *parser) next(text []byte) (field, rest []byte, more bool, wrong *trace.SyntaxError) {
	text = bytes.TrimLeft(text, " ")
	if len(text) > 0 && text[0] == '"' {
		return p.quoted(text)
	}
	if i := bytes.IndexByte(text, p.columns.separator); i >= 0 {
		return lines.Trim(text[:i]), text[i+1:], true, nil
	}
	return lines.Trim(text), nil, false, nil
}

// quoted is next for a text that begins with a quote.
func (p *parser) quoted(text []byte) (field, rest []byte, more bool, wrong *trace.SyntaxError) {
	begin := len(p.unquoted)
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] != '"':
			p.unquoted = append(p.unquoted, text[i])
		case i+1 < len(text) && text[i+1] == '"':
			p.unquoted = append(p.unquoted, '"')
			i++
		default:
			field, rest = lines.Trim(p.unquoted[begin:]), lines.TrimBlanks(text[i+1:])
			if len(rest) == 0 {
				return field, nil, false, nil
			}
			if rest[0] == p.columns.separator {
				return field, rest[1:], true, nil
			}
			return nil, nil, false, lines.Wrong("text behind a quoted field", rest, "a separator or the end of the line")
		}
	}
	return nil, nil, false, lines.Wrong("quoted field", text, "a closing quote on the same line")
}

// number reads a decimal number, or a hexadecimal one behind 0x, of at most bits bits. An empty
// field is 0 if empty allows it.
func number(what string, field []byte, bits int, empty bool) (v uint64, wrong *trace.SyntaxError) {
	if len(field) == 0 && empty {
		return 0, nil
	}
	var ok bool
	if len(field) > 2 && field[0] == '0' && field[1]|0x20 == 'x' {
		v, _, ok = lines.Hex(field[2:])
	} else {
		v, ok = lines.Decimal(field)
	}
	if !ok || v>>(bits-1)>>1 != 0 {
		return 0, lines.Wrong(what, field, "a number of at most "+strconv.Itoa(bits)+" bits, decimal or hexadecimal with 0x")
	}
	return v, nil
}

var kindWords = [...]struct {
	word string
	kind trace.Kind
}{
	{"r", trace.Load}, {"l", trace.Load}, {"load", trace.Load}, {"read", trace.Load}, {"0", trace.Load},
	{"w", trace.Store}, {"s", trace.Store}, {"store", trace.Store}, {"write", trace.Store}, {"1", trace.Store},
	{"m", trace.Modify}, {"modify", trace.Modify}, {"update", trace.Modify}, {"rw", trace.Modify},
	{"i", trace.Fetch}, {"f", trace.Fetch}, {"fetch", trace.Fetch}, {"ifetch", trace.Fetch}, {"x", trace.Fetch}, {"2", trace.Fetch},
}

// kindOf reads a kind.
func kindOf(field []byte) (trace.Kind, *trace.SyntaxError) {
	if len(field) == 1 {
		if k := kindLetters[field[0]]; k != noKind {
			return k, nil
		}
	}
	for _, k := range kindWords {
		if equalFold(field, k.word) {
			return k.kind, nil
		}
	}
	return 0, lines.Wrong("kind", field, "r, w, m, i, load, store, modify or fetch")
}

const noKind trace.Kind = 0xff

// kindLetters are the words of one letter, by that letter in either case.
var kindLetters = func() (table [256]trace.Kind) {
	for i := range table {
		table[i] = noKind
	}
	for _, k := range kindWords {
		if len(k.word) == 1 {
			table[k.word[0]] = k.kind
			table[strings.ToUpper(k.word)[0]] = k.kind
		}
	}
	return table
}()

// equalFold reports whether field is word, in lower case, in any case.
func equalFold(field []byte, word string) bool {
	return len(field) == len(word) && strings.EqualFold(string(field), word)
}
