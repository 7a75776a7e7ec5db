package ir

import (
	"strconv"
	"strings"
)

// template is IR text with holes, {0} to {9}, cut at them once so that it is
// quickly filled in: most of what the rewriter writes is the same few lines.
type template []segment

// segment is text and the hole behind it, -1 for none.
type segment struct {
	text string
	hole int
}

// arg fills a hole: a text, or else a number.
type arg struct {
	text   string
	number uint64
}

func count[T ~int | ~int32 | ~uint32 | ~uint64](n T) arg { return arg{number: uint64(n)} }

func words(s string) arg { return arg{text: s} }

func makeTemplate(text string) template {
	var t template
	for {
		at := strings.IndexByte(text, '{')
		for at >= 0 && !(at+2 < len(text) && isDigit(text[at+1]) && text[at+2] == '}') {
			next := strings.IndexByte(text[at+1:], '{')
			if next < 0 {
				at = -1
			} else {
				at += 1 + next
			}
		}
		if at < 0 {
			return append(t, segment{text, -1})
		}
		t = append(t, segment{text[:at], int(text[at+1] - '0')})
		text = text[at+3:]
	}
}

// fill appends the template's text with its holes filled.
func (t template) fill(dst []byte, args ...arg) []byte {
	for i := range t {
		dst = append(dst, t[i].text...)
		if h := t[i].hole; h >= 0 {
			if args[h].text != "" {
				dst = append(dst, args[h].text...)
			} else {
				dst = strconv.AppendUint(dst, args[h].number, 10)
			}
		}
	}
	return dst
}
