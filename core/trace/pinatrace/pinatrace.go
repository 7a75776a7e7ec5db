// Package pinatrace reads the text that Intel Pin's example tool pinatrace writes
// (source/tools/ManualExamples/pinatrace.cpp in Pin's kit, which its User Guide calls the Memory
// Reference Trace).
//
// Each line describes one reference: the address of the instruction, R for a load or W for a store,
// and the referenced address. Both addresses are in the format of printf's %p.
//
//	0x7f3acd1ead50: R 0x7f3acd0bde84
//	0x7f3acd1ead53: W 0x7ffc5d8ea1b8
//	#eof
//
// An instruction that loads and stores the same bytes produces two lines. The last line is #eof.
// Lines that begin with # and blank lines are skipped. The format records neither sizes nor
// threads. The format also omits instructions without references, so the trace contains no fetches.
package pinatrace

import (
	"bytes"
	"io"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// NewReader returns a reader for the trace in r. Errors refer to the trace by the given name.
func NewReader(name string, r io.Reader) *lines.Reader { return lines.NewReader(name, r, parser{}) }

type parser struct{}

// Header implements [lines.Parser].
func (parser) Header() trace.Header { return trace.Header{Format: "pinatrace", PCs: true} }

// Begin adds the PC column. No row has a size.
func (parser) Begin(b *trace.Batch) {
	b.NeedPC()
	clear(b.Bytes)
}

// Parse uses a fast path for lines in exactly the format that the tool writes, and reads all other
// lines field by field.
func (parser) Parse(window []byte, b *trace.Batch, row int) (taken, count, rows int, err error) {
	padded := window[:len(window)+lines.Slack]
	for ; taken < len(window) && row < b.Len(); count++ {
		if n := plain((*[lines.Slack]byte)(padded[taken:]), b, row); n > 0 {
			taken, row = taken+n, row+1
			continue
		}
		line, _ := lines.First(window[taken:])
		taken += len(line) + 1
		if skipped(line) {
			continue
		}
		pc, kind, addr, wrong := record(line)
		if wrong != nil {
			return taken, count + 1, row, wrong
		}
		b.Addr[row], b.Kind[row], b.PC[row] = addr, kind, pc
		row++
	}
	return taken, count, row, nil
}

// plain reads a line in exactly the tool's format, such as "0x401000: R 0x7ffe10". It writes a row,
// and returns the length of the line, or 0 if the line has a different form.
func plain(s *[lines.Slack]byte, b *trace.Batch, row int) (taken int) {
	pc, at := lines.HexAt(s, len("0x"))
	if s[0] != '0' || s[1] != 'x' || at == len("0x") || at > len("0x")+16 {
		return 0
	}
	kind := trace.Load
	switch string(s[at : at+len(": R 0x")]) {
	case ": R 0x":
	case ": W 0x":
		kind = trace.Store
	default:
		return 0
	}
	begin := at + len(": R 0x")
	addr, at := lines.HexAt(s, begin)
	if at == begin || s[at] != '\n' {
		return 0
	}
	b.Addr[row], b.Kind[row], b.PC[row] = addr, kind, pc
	return at + 1
}

// skipped reports whether a line contains no reference.
func skipped(line []byte) bool {
	line = lines.Trim(line)
	return len(line) == 0 || line[0] == '#'
}

// record reads a line that contains a reference.
func record(line []byte) (pc trace.Addr, kind trace.Kind, addr trace.Addr, wrong *trace.SyntaxError) {
	line = lines.Trim(line)
	first, rest, found := bytes.Cut(line, []byte(":"))
	if !found {
		return 0, 0, 0, lines.Wrong("line", line, "instruction: R or W address")
	}
	if pc, wrong = lines.Address("instruction", first); wrong != nil {
		return 0, 0, 0, wrong
	}
	letter, second := lines.Cut(lines.Trim(rest))
	switch string(letter) {
	case "R":
		kind = trace.Load
	case "W":
		kind = trace.Store
	default:
		return 0, 0, 0, lines.Wrong("kind", letter, "R or W")
	}
	addr, wrong = lines.Address("address", second)
	return pc, kind, addr, wrong
}

// Recognise reports whether text, the beginning of a file, is a pinatrace trace; if not, it returns
// the reason.
func Recognise(text []byte) (reason string, ok bool) {
	return lines.Recognise(text, "the file contains no reference", skipped, func(line []byte) *trace.SyntaxError {
		_, _, _, wrong := record(line)
		return wrong
	})
}
