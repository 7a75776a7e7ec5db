package lines

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

const (
	everyByte = 0x0101010101010101
	everyTop  = 0x8080808080808080
)

// HexDigits counts the hexadecimal digits, 0 to 8, that the eight bytes of x
// begin with; the first byte is the lowest.
//
// All eight are compared at once: adding 0x80-c to a byte below 0x80 sets its
// top bit exactly if the byte is at least c, and no sum carries into the next.
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

// HexValue is the number that the first n bytes of x write, all of them
// hexadecimal digits; n is 0 to 8.
func HexValue(x uint64, n int) uint64 {
	v := x&(0x0f*everyByte) + 9*(x>>6&everyByte)
	v <<= uint(64 - 8*n) // in front come zeros; n = 0 leaves nothing
	v = (v<<4 | v>>8) & 0x00ff00ff00ff00ff
	v = (v<<8 | v>>16) & 0x0000ffff0000ffff
	return (v<<16 | v>>32) & 0x00000000ffffffff
}

// HexAt reads the hexadecimal digits, at most 16, that stand in s from at on; at is
// at most 48. end is where they end.
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

// FitsBytes tells whether a reference of bytes bytes at addr ends within the
// 64-bit address space.
func FitsBytes(addr trace.Addr, bytes uint32) bool {
	return bytes == 0 || addr <= math.MaxUint64-uint64(bytes-1)
}

// HexDigit gives the value of a hexadecimal digit, and 255 for any other byte.
var HexDigit = func() (table [256]uint8) {
	for i := range table {
		table[i] = 255
	}
	for i, digit := range []byte("0123456789abcdef") {
		table[digit] = uint8(i)
	}
	for i, digit := range []byte("ABCDEF") {
		table[digit] = uint8(10 + i)
	}
	return table
}()

// Trim cuts blanks and carriage returns off both ends.
func Trim(s []byte) []byte {
	for len(s) > 0 && blank(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && blank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// TrimBlanks cuts spaces and carriage returns, but no tabs, off both ends: for
// tables that tabs may separate.
func TrimBlanks(s []byte) []byte { return bytes.Trim(s, " \r") }

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// Cut splits s at its first blanks; after is trimmed.
func Cut(s []byte) (field, after []byte) {
	for i, c := range s {
		if blank(c) {
			return s[:i], Trim(s[i:])
		}
	}
	return s, nil
}

// First gives the first line of text without its end, and what follows it.
func First(text []byte) (line, after []byte) {
	newline := bytes.IndexByte(text, '\n')
	if newline < 0 {
		return text, nil
	}
	return text[:newline], text[newline+1:]
}

// Hex reads a number of hexadecimal digits only. ok is false for anything else;
// wide tells that these are digits, but of more than 64 bits.
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

// Address reads hexadecimal digits behind 0x, which must be there. A wrong one is
// told as what, without its place.
func Address(what string, s []byte) (addr trace.Addr, wrong *trace.SyntaxError) {
	digits, found := bytes.CutPrefix(s, []byte("0x"))
	addr, wide, ok := Hex(digits)
	switch {
	case wide:
		return 0, &trace.SyntaxError{What: what, Got: Got(s), Want: "at most 16 hexadecimal digits: an address has 64 bits"}
	case !found || !ok:
		return 0, &trace.SyntaxError{What: what, Got: Got(s), Want: "0x and 1 to 16 hexadecimal digits"}
	}
	return addr, nil
}

// Decimal reads a number of decimal digits only, up to 64 bits.
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

// Got makes text fit for the Got of an error that may be kept.
func Got(text []byte) string {
	const most = 80
	if len(text) > most {
		text = text[:most]
	}
	return string(text)
}

// Reason makes a clause of the error of a line that a format does not recognise.
func Reason(number int, wrong *trace.SyntaxError) string {
	return "line " + strconv.Itoa(number) + ": " + wrong.What + " " + strconv.Quote(wrong.Got) + ", want " + wrong.Want
}

// TooLong is the error of a line of more than [Longest] bytes.
func TooLong(file string, line int, start []byte) error {
	return &trace.SyntaxError{File: file, Line: line, What: "line", Got: Got(start),
		Want: "at most " + strconv.Itoa(Longest) + " bytes"}
}
