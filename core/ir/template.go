package ir

import "strconv"

// template is IR text with holes, {0} to {9}, split at them once so that filling is quick: most of the
// output is the same few lines.
type template []segment

// segment is text and the hole behind it, or -1.
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
	from := 0
	for at := 0; at+2 < len(text); at++ {
		if text[at] == '{' && isDigit(text[at+1]) && text[at+2] == '}' {
			t = append(t, segment{text[from:at], int(text[at+1] - '0')})
			from = at + 3
		}
	}
	return append(t, segment{text[from:], -1})
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
