package lines

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

const (
	everyByte = 0x0101010101010101
	everyTop  = 0x8080808080808080
)

// HexDigits returns the number of hexadecimal digits, 0 to 8, at the beginning of the eight bytes
// of x. The first byte is the least significant byte.
//
// All eight bytes are compared at once: adding 0x80-c to a byte below 0x80 sets the byte's top bit
// if and only if the byte is at least c. No sum carries into the next byte.
func HexDigits(x uint64) int {
	const ge0, gt9 = (0x80 - '0') * everyByte, (0x80 - '9' - 1) * everyByte
	const geA, gtF = (0x80 - 'a') * everyByte, (0x80 - 'f' - 1) * everyByte
	low := x &^ everyTop
	lower := low | 0x20*everyByte
	digit := (low + ge0) &^ (low + gt9)
	letter := (lower + geA) &^ (lower + gtF)
	others := (digit|letter)&^x&everyTop ^ everyTop
	return bits.TrailingZeros64(others) / 8
}

// HexValue returns the value of the first n bytes of x, which must be hexadecimal digits. The
// number n is at most 8.
func HexValue(x uint64, n int) uint64 {
	v := x&(0x0f*everyByte) + 9*(x>>6&everyByte)
	v <<= uint(64 - 8*n) // shift in zeros; if n is 0, the result is 0
	v = (v<<4 | v>>8) & 0x00ff00ff00ff00ff
	v = (v<<8 | v>>16) & 0x0000ffff0000ffff
	return (v<<16 | v>>32) & 0x00000000ffffffff
}

// HexAt reads up to 16 hexadecimal digits starting at s[at], and returns their value and the index
// of the byte after them. The starting index must not exceed 48.
func HexAt(s *[Slack]byte, at int) (v uint64, end int) {
	first := binary.LittleEndian.Uint64(s[at:])
	n := HexDigits(first)
	if n < 8 {
		return HexValue(first, n), at + n
	}
	second := binary.LittleEndian.Uint64(s[at+8:])
	n = HexDigits(second)
	return HexValue(first, 8)<<uint(4*n) | HexValue(second, n), at + 8 + n
}

// FitsBytes reports whether a reference to the given number of bytes at addr lies within the 64-bit
// address space.
func FitsBytes(addr trace.Addr, bytes uint32) bool {
	return bytes == 0 || addr <= math.MaxUint64-uint64(bytes-1)
}

// HexDigit maps a hexadecimal digit to its value, and any other byte to 255.
var HexDigit = func() (table [256]uint8) {
	for i := range table {
		table[i] = 255
	}
	for i := range 16 {
		table["0123456789abcdef"[i]], table["0123456789ABCDEF"[i]] = uint8(i), uint8(i)
	}
	return table
}()

// Trim removes spaces, tabs and carriage returns from both ends.
func Trim(s []byte) []byte {
	for len(s) > 0 && blank(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && blank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// TrimBlanks removes spaces and carriage returns from both ends. TrimBlanks keeps tabs, which may
// separate the fields of a table.
func TrimBlanks(s []byte) []byte { return bytes.Trim(s, " \r") }

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// Cut splits s at the first blank, and trims the part after it.
func Cut(s []byte) (field, after []byte) {
	for i, c := range s {
		if blank(c) {
			return s[:i], Trim(s[i:])
		}
	}
	return s, nil
}

// First returns the first line of text without its newline, and the text after it.
func First(text []byte) (line, after []byte) {
	line, after, _ = bytes.Cut(text, []byte("\n"))
	return line, after
}

// All yields the lines of text with their numbers, starting at 1.
func All(text []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for number := 1; len(text) > 0; number++ {
			var line []byte
			line, text = First(text)
			if !yield(number, line) {
				return
			}
		}
	}
}

// Recognise reports whether text, the beginning of a file, is in a format. Two functions define the
// format: the function "skip" reports whether to skip a line, and the function "check" returns the
// error in a line. The first line that is not skipped must be correct. Otherwise, the result
// "reason" describes the error. If all lines are skipped, the reason is the text in the parameter
// "none".
func Recognise(text []byte, none string, skip func(line []byte) bool, check func(line []byte) *trace.SyntaxError) (reason string, ok bool) {
	for number, line := range All(text) {
		if skip(line) {
			continue
		}
		if wrong := check(line); wrong != nil {
			return "line " + strconv.Itoa(number) + ": " + wrong.Clause(), false
		}
		return "", true
	}
	return none, false
}

// IsBlank reports whether a line contains only blanks.
func IsBlank(line []byte) bool { return len(Trim(line)) == 0 }

// Hex reads a number that consists only of hexadecimal digits. For any other text, the result ok is
// false. The result "wide" reports whether the number is longer than 64 bits.
func Hex(s []byte) (v uint64, wide, ok bool) {
	for _, c := range s {
		digit := HexDigit[c]
		if digit > 15 {
			return 0, false, false
		}
		wide = wide || v>>60 != 0
		v = v<<4 | uint64(digit)
	}
	return v, wide, len(s) > 0 && !wide
}

const tooWide = "at most 16 hexadecimal digits, because an address has 64 bits"

// Address reads hexadecimal digits after a required 0x. Errors identify the address by the given
// name.
func Address(what string, s []byte) (addr trace.Addr, wrong *trace.SyntaxError) {
	digits, found := bytes.CutPrefix(s, []byte("0x"))
	addr, wide, ok := Hex(digits)
	switch {
	case wide:
		return 0, Wrong(what, s, tooWide)
	case !found || !ok:
		return 0, Wrong(what, s, "0x and 1 to 16 hexadecimal digits")
	}
	return addr, nil
}

// HexAddress reads an address that consists only of hexadecimal digits.
func HexAddress(digits []byte) (addr trace.Addr, wrong *trace.SyntaxError) {
	addr, wide, ok := Hex(digits)
	switch {
	case wide:
		return 0, Wrong("address", digits, tooWide)
	case !ok:
		return 0, Wrong("address", digits, "1 to 16 hexadecimal digits")
	}
	return addr, nil
}

// Decimal reads a number of at most 64 bits that consists only of decimal digits.
func Decimal(s []byte) (v uint64, ok bool) {
	for _, c := range s {
		digit := uint64(c - '0')
		if c < '0' || c > '9' || v > (math.MaxUint64-digit)/10 {
			return 0, false
		}
		v = v*10 + digit
	}
	return v, len(s) > 0
}

// Decimal32 reads a decimal number of at most 32 bits. Errors identify the number by the given name.
func Decimal32(what string, s []byte) (uint32, *trace.SyntaxError) {
	v, ok := Decimal(s)
	if !ok || v > math.MaxUint32 {
		return 0, Wrong(what, s, "a decimal number, at most 4294967295")
	}
	return uint32(v), nil
}

// Wrong returns an error about a field. The error contains a copy of the first bytes of the field's
// text. [Reader] adds the position to the error.
func Wrong(what string, got []byte, want string) *trace.SyntaxError {
	return &trace.SyntaxError{What: what, Got: Got(got), Want: want}
}

// Got returns a copy of the first bytes of text, for use in the field Got of an error.
func Got(text []byte) string { return string(text[:min(len(text), 80)]) }
