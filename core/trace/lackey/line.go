package lackey

import (
	"bytes"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// record reads a line of a reference, with any number of blanks.
func record(line []byte) (kind trace.Kind, addr trace.Addr, size uint32, wrong *trace.SyntaxError) {
	letter, after := lines.Cut(lines.Trim(line))
	if len(letter) != 1 || kinds[letter[0]^' '] == other {
		return 0, 0, 0, lines.Wrong("line", line, "I, L, S or M, then address,bytes")
	}
	kind = trace.Kind(kinds[letter[0]^' '])
	digits, sizeText, found := bytes.Cut(after, []byte(","))
	if !found {
		return 0, 0, 0, lines.Wrong("reference", after, "address,bytes")
	}
	if addr, wrong = lines.HexAddress(digits); wrong != nil {
		return 0, 0, 0, wrong
	}
	if size, wrong = lines.Decimal32("bytes", sizeText); wrong != nil {
		return 0, 0, 0, wrong
	}
	if !lines.FitsBytes(addr, size) {
		return 0, 0, 0, lines.Wrong("reference", after, "one that ends within the 64-bit address space")
	}
	return kind, addr, size, nil
}

// skipped reports whether line is one of Valgrind's without a reference.
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
	return lines.IsBlank(line)
}

// acquired returns the thread that a SCHED line says is resumed.
func acquired(line []byte) (thread uint32, ok bool) {
	_, after, found := bytes.Cut(line, []byte("--   SCHED["))
	if !found {
		return 0, false
	}
	number, event, found := bytes.Cut(after, []byte("]:"))
	if !found || !bytes.HasPrefix(lines.Trim(event), []byte("acquired lock")) {
		return 0, false
	}
	thread, wrong := lines.Decimal32("thread", number)
	return thread, wrong == nil
}

// Recognise reports whether text, the beginning of a file, is lackey's, and else the reason. Text
// of Valgrind without a reference is taken for the beginning of such a trace.
func Recognise(text []byte) (reason string, ok bool) {
	const none = "there is no reference"
	reason, ok = lines.Recognise(text, none, skipped, func(line []byte) *trace.SyntaxError {
		_, _, _, wrong := record(line)
		return wrong
	})
	if reason == none && (bytes.HasPrefix(text, []byte("==")) || bytes.Contains(text, []byte("\n=="))) {
		return "", true
	}
	return reason, ok
}
