package ir

import (
	"encoding/hex"
	"strings"
)

// cursor reads tokens of IR text from left to right. The cursor records its first failure. After a
// failure, its methods return meaningless but harmless values, so callers check for a failure only
// once, at the end.
type cursor struct {
	text  string
	at    int
	wants string // what was expected at the first failure; "" if there was no failure
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

// isNameByte reports whether an unquoted name may contain a character.
func isNameByte(b byte) bool {
	return isLetter(b) || isDigit(b) || b == '.' || b == '_' || b == '$' || b == '-'
}

func (c *cursor) skipSpace() {
	for c.at < len(c.text) && isSpace(c.text[c.at]) {
		c.at++
	}
}

// peek returns the next character that is not a space, or 0 at the end.
func (c *cursor) peek() byte {
	c.skipSpace()
	if c.at < len(c.text) {
		return c.text[c.at]
	}
	return 0
}

// skipByte skips b if b is the next character, and reports whether it did.
func (c *cursor) skipByte(b byte) bool {
	if c.peek() != b || b == 0 {
		return false
	}
	c.at++
	return true
}

func (c *cursor) want(b byte) {
	if !c.skipByte(b) {
		c.fail(string(rune(b)))
	}
}

// readWord reads a keyword or number: letters, digits, dots and underscores. If the next character
// is none of these, readWord returns "".
func (c *cursor) readWord() string {
	c.skipSpace()
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

func (c *cursor) wantWord(word string) {
	if c.readWord() != word {
		c.fail(word)
	}
}

// skipWord skips the given keyword if it comes next, and reports whether it did.
func (c *cursor) skipWord(word string) bool {
	before := *c
	if c.readWord() == word {
		return true
	}
	*c = before
	return false
}

// readName reads a name, without the sigil before it. A quoted name is returned with its quotes.
func (c *cursor) readName() string {
	if c.at < len(c.text) && c.text[c.at] == '"' {
		return c.readQuoted()
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

// readQuoted reads a string, which it returns with its quotes. Quotes within a string are written
// \22.
func (c *cursor) readQuoted() string {
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

// readGroup reads bracketed text, from the opening bracket to the matching closing bracket.
func (c *cursor) readGroup() string {
	c.skipSpace()
	end := groupEnd(c.text, c.at)
	if end < 0 {
		c.fail("a closing bracket")
		return ""
	}
	from := c.at
	c.at = end
	return c.text[from:end]
}

// groupHere reads a group that begins exactly at the cursor, without a space before it.
func (c *cursor) groupHere() {
	if c.at < len(c.text) && c.text[c.at] == '(' {
		c.readGroup()
	}
}

// readNode reads a metadata node after its exclamation mark: 12, {...} or DIExpression(...).
func (c *cursor) readNode() {
	if c.peek() == '{' {
		c.readGroup()
		return
	}
	c.readName()
	c.groupHere()
}

// readAttribute reads "key" or "key"="value".
func (c *cursor) readAttribute() {
	c.readQuoted()
	if c.skipByte('=') {
		c.readQuoted()
	}
}

// readList reads items separated by commas, up to the closing bracket.
func (c *cursor) readList(end byte, item func()) {
	for !c.failed() && !c.skipByte(end) {
		item()
		if !c.skipByte(',') && c.peek() != end {
			c.fail(string(rune(end)))
		}
	}
}

// groupEnd returns the end of the bracketed text that begins at the position "from", or -1.
// groupEnd treats all kinds of brackets alike, because brackets are properly nested in IR text.
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

// unquote removes the quotes of a name, and replaces hexadecimal escapes (\xx) by the characters
// that they represent.
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
		if name[i] == '\\' && i+2 < len(name) {
			if code, err := hex.DecodeString(name[i+1 : i+3]); err == nil {
				out = append(out, code[0])
				i += 2
				continue
			}
		}
		out = append(out, name[i])
	}
	return string(out)
}
