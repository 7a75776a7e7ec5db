package lackey

import (
	"bytes"
	"math"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// record reads a line of a reference, blanks more or less. A wrong one is told
// without its place.
func record(line []byte) (kind trace.Kind, addr trace.Addr, size uint32, wrong *trace.SyntaxError) {
	letter, after := lines.Cut(lines.Trim(line))
	if len(letter) != 1 || kinds[letter[0]^' '] == other {
		return 0, 0, 0, &trace.SyntaxError{What: "line", Got: lines.Got(line), Want: "I, L, S or M, then address,bytes"}
	}
	kind = trace.Kind(kinds[letter[0]^' '])
	digits, sizeText, found := bytes.Cut(after, []byte(","))
	if !found {
		return 0, 0, 0, &trace.SyntaxError{What: "reference", Got: lines.Got(after), Want: "address,bytes"}
	}
	addr, wide, ok := lines.Hex(digits)
	if wide {
		return 0, 0, 0, &trace.SyntaxError{What: "address", Got: lines.Got(digits), Want: "at most 16 hexadecimal digits: an address has 64 bits"}
	}
	if !ok {
		return 0, 0, 0, &trace.SyntaxError{What: "address", Got: lines.Got(digits), Want: "1 to 16 hexadecimal digits"}
	}
	wideSize, ok := lines.Decimal(sizeText)
	if !ok || wideSize > math.MaxUint32 {
		return 0, 0, 0, &trace.SyntaxError{What: "bytes", Got: lines.Got(sizeText), Want: "a decimal number, at most 4294967295"}
	}
	if !lines.FitsBytes(addr, uint32(wideSize)) {
		return 0, 0, 0, &trace.SyntaxError{What: "reference", Got: lines.Got(after), Want: "one that ends within the 64-bit address space"}
	}
	return kind, addr, uint32(wideSize), nil
}

// skipped tells whether line is one of Valgrind's that say nothing of memory.
func skipped(line []byte) bool {
	if len(line) >= 3 {
		switch string(line[:2]) {
		case "==", "--", "**":
			return true
		}
		switch string(line[:3]) {
		case "###", "SB ":
			return true
		}
	}
	return len(lines.Trim(line)) == 0
}

// acquired finds the thread that a SCHED line says goes on.
func acquired(line []byte) (thread uint32, ok bool) {
	_, after, found := bytes.Cut(line, []byte("--   SCHED["))
	if !found {
		return 0, false
	}
	number, event, found := bytes.Cut(after, []byte("]:"))
	if !found || !bytes.HasPrefix(lines.Trim(event), []byte("acquired lock")) {
		return 0, false
	}
	wide, ok := lines.Decimal(number)
	if !ok || wide > math.MaxUint32 {
		return 0, false
	}
	return uint32(wide), true
}

// Recognise tells whether text, the beginning of a file, is lackey's: whether
// its first line that is not skipped is a reference. The reason says why not.
func Recognise(text []byte) (reason string, ok bool) {
	valgrind := false
	for number := 1; len(text) > 0; number++ {
		line, after := lines.First(text)
		if !skipped(line) {
			_, _, _, wrong := record(line)
			if wrong == nil {
				return "", true
			}
			return lines.Reason(number, wrong), false
		}
		valgrind = valgrind || bytes.HasPrefix(line, []byte("=="))
		text = after
	}
	if valgrind {
		return "", true
	}
	return "there is no reference", false
}
