// Package pinatrace reads the text that Intel Pin's example tools named pinatrace write. Pin's kit
// contains two such tools.
//
// Each line describes one reference: the address of the instruction, R for a load or W for a store,
// and the referenced address. The tool in source/tools/ManualExamples, which Pin's User Guide calls
// the Memory Reference Trace, writes no more than that.
//
//	0x7f3acd1ead50: R 0x7f3acd0bde84
//	0x7f3acd1ead53: W 0x7ffc5d8ea1b8
//	#eof
//
// The tool in source/tools/SimpleExamples adds the number of bytes, which is decimal, and the value
// of these bytes, which is ignored.
//
//	0x7f3acd1ead50: R     0x7f3acd0bde84  8     0x7f3acd0bde00
//	0x7f3acd1ead53: W     0x7ffc5d8ea1b8  4                  0
//
// An instruction that loads and stores the same bytes produces two lines. Lines that begin with #
// and blank lines are skipped. The format does not record threads, and omits instructions without
// references, so the trace contains no fetches.
package pinatrace

import (
	"bytes"
	"io"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// NewReader returns a reader for the trace in r. Errors refer to the trace by the given name.
func NewReader(name string, r io.Reader) *lines.Reader { return lines.NewReader(name, r, &parser{}) }

type parser struct {
	sized bool // whether any line so far contained a size
}

// Header implements [lines.Parser].
func (p *parser) Header() trace.Header {
	return trace.Header{Format: "pinatrace", PCs: true, Sizes: p.sized}
}

// Begin adds the PC column. Rows have no size unless their line contains a size.
func (p *parser) Begin(b *trace.Batch) {
	b.NeedPC()
	clear(b.Bytes)
}

// Parse uses a fast path for lines in exactly the format of the first tool, and reads all other lines
// field by field.
func (p *parser) Parse(window []byte, b *trace.Batch, row int) (taken, count, rows int, err error) {
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
		r, wrong := parseRecord(line)
		if wrong != nil {
			return taken, count + 1, row, wrong
		}
		b.Addr[row], b.Kind[row], b.PC[row], b.Bytes[row] = r.addr, r.kind, r.pc, r.bytes
		p.sized = p.sized || r.bytes > 0
		row++
	}
	return taken, count, row, nil
}

// plain reads a line in exactly the format of the first tool, such as "0x401000: R 0x7ffe10". It writes a row,
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

// record is the content of a line that describes a reference.
type record struct {
	pc, addr trace.Addr
	kind     trace.Kind
	bytes    uint32 // 0 if the line contains no size
}

func parseRecord(line []byte) (r record, wrong *trace.SyntaxError) {
	line = lines.Trim(line)
	first, rest, found := bytes.Cut(line, []byte(":"))
	if !found {
		return r, lines.Wrong("line", line, "instruction: R or W address")
	}
	if r.pc, wrong = lines.Address("instruction", first); wrong != nil {
		return r, wrong
	}
	letter, rest := lines.Cut(lines.Trim(rest))
	switch string(letter) {
	case "R":
	case "W":
		r.kind = trace.Store
	default:
		return r, lines.Wrong("kind", letter, "R or W")
	}
	second, rest := lines.Cut(lines.Trim(rest))
	if r.addr, wrong = lines.Address("address", second); wrong != nil {
		return r, wrong
	}
	size, value := lines.Cut(lines.Trim(rest))
	if len(size) == 0 {
		return r, nil
	}
	if r.bytes, wrong = lines.Decimal32("size", size); wrong != nil {
		return r, wrong
	}
	if !lines.FitsBytes(r.addr, r.bytes) {
		return r, lines.Wrong("size", size, "a range of bytes that ends at or before 2^64")
	}
	if _, more := lines.Cut(lines.Trim(value)); len(lines.Trim(more)) > 0 {
		return r, lines.Wrong("text after the value", lines.Trim(more), "the end of the line")
	}
	return r, nil
}

// Recognise reports whether text, the beginning of a file, is a pinatrace trace; if not, it returns
// the reason.
func Recognise(text []byte) (reason string, ok bool) {
	return lines.Recognise(text, "the file contains no reference", skipped, func(line []byte) *trace.SyntaxError {
		_, wrong := parseRecord(line)
		return wrong
	})
}
