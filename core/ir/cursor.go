package ir

import "strings"

// cursor reads tokens of IR text from left to right. Its first failure stays;
// what is read after it is meaningless but harmless, so that readers look at it
// once, at their end.
type cursor struct {
	text  string
	at    int
	wants string // what was expected at the failure; "" while all is well
}

func (c *cursor) fail(wants string) {
	if c.wants == "" {
		c.wants = wants
	}
	c.at = len(c.text)
}

func (c *cursor) failed() bool { return c.wants != "" }

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// isNameByte tells of the characters of names without quotes.
func isNameByte(b byte) bool {
	return isLetter(b) || isDigit(b) || b == '.' || b == '_' || b == '$' || b == '-'
}

func (c *cursor) space() {
	for c.at < len(c.text) && isSpace(c.text[c.at]) {
		c.at++
	}
}

// peek is the next character that is not a space, 0 at the end.
func (c *cursor) peek() byte {
	c.space()
	if c.at < len(c.text) {
		return c.text[c.at]
	}
	return 0
}

// take passes over b if it comes next.
func (c *cursor) take(b byte) bool {
	if c.peek() != b || b == 0 {
		return false
	}
	c.at++
	return true
}

func (c *cursor) want(b byte) {
	if !c.take(b) {
		c.fail(string(rune(b)))
	}
}

// word reads a keyword or number: letters, digits, dots and underscores. It is
// empty if something else comes.
func (c *cursor) word() string {
	c.space()
	from := c.at
	for c.at < len(c.text) {
		b := c.text[c.at]
		if !isLetter(b) && !isDigit(b) && b != '_' && b != '.' {
			break
		}
		c.at++
	}
	return c.text[from:c.at]
}

// wantWord reads that keyword.
func (c *cursor) wantWord(word string) {
	if c.word() != word {
		c.fail(word)
	}
}

// takeWord passes over that keyword if it comes next.
func (c *cursor) takeWord(word string) bool {
	before := *c
	if c.word() == word {
		return true
	}
	*c = before
	return false
}

// name reads what follows a sigil: plain characters, or a string whose quotes
// are part of the result.
func (c *cursor) name() string {
	if c.at < len(c.text) && c.text[c.at] == '"' {
		return c.quoted()
	}
	from := c.at
	for c.at < len(c.text) && isNameByte(c.text[c.at]) {
		c.at++
	}
	if from == c.at {
		c.fail("a name")
	}
	return c.text[from:c.at]
}

// quoted reads a string with its quotes. Quotes within are written \22.
func (c *cursor) quoted() string {
	from := c.at
	if c.at >= len(c.text) || c.text[c.at] != '"' {
		c.fail("a string")
		return ""
	}
	end := strings.IndexByte(c.text[c.at+1:], '"')
	if end < 0 {
		c.fail("the string's end")
		return ""
	}
	c.at += end + 2
	return c.text[from:c.at]
}

// group reads from an opening bracket to the one that closes it.
func (c *cursor) group() string {
	c.space()
	end := groupEnd(c.text, c.at)
	if end < 0 {
		c.fail("a closing bracket")
		return ""
	}
	from := c.at
	c.at = end
	return c.text[from:end]
}

// groupEnd is where the group of brackets that opens at from has ended, -1 if
// nowhere. Kinds of brackets are not told apart: IR text nests them properly.
func groupEnd(text string, from int) int {
	depth := 0
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			end := strings.IndexByte(text[i+1:], '"')
			if end < 0 {
				return -1
			}
			i += end + 1
		}
		if depth == 0 {
			return -1
		}
	}
	return -1
}

// unquote gives the characters that a name stands for: without quotes, and with
// \xx in hexadecimal replaced.
func unquote(name string) string {
	if len(name) < 2 || name[0] != '"' {
		return name
	}
	name = name[1 : len(name)-1]
	if strings.IndexByte(name, '\\') < 0 {
		return name
	}
	out := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] == '\\' && i+2 < len(name) && hexDigit(name[i+1]) >= 0 && hexDigit(name[i+2]) >= 0 {
			out = append(out, byte(hexDigit(name[i+1])<<4|hexDigit(name[i+2])))
			i += 2
		} else {
			out = append(out, name[i])
		}
	}
	return string(out)
}

func hexDigit(b byte) int {
	switch {
	case isDigit(b):
		return int(b - '0')
	case 'a' <= b|0x20 && b|0x20 <= 'f':
		return int(b|0x20-'a') + 10
	}
	return -1
}
