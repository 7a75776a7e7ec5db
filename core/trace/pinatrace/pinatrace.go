// Package pinatrace reads the text that Intel Pin's example tool pinatrace
// writes (source/tools/ManualExamples/pinatrace.cpp in Pin's kit, described in
// its User Guide as the Memory Reference Trace).
//
// A line is one reference: the instruction's address, R for a load or W for a
// store, and the address referenced, both as printf's %p writes them.
//
//	0x7f3acd1ead50: R 0x7f3acd0bde84
//	0x7f3acd1ead53: W 0x7ffc5d8ea1b8
//	#eof
//
// An instruction that loads and stores the same bytes has both lines. The last
// line is #eof; lines that begin with # and blank lines are skipped. The format
// has neither sizes nor threads; instructions without references are not in it,
// so that there are no fetches.
package pinatrace

import (
	"bytes"
	"io"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// Reader reads a trace.
type Reader struct {
	feed  lines.Feed
	parse parser
}

// NewReader makes a reader of the text that r gives; name is for messages.
func NewReader(name string, r io.Reader) *Reader {
	return &Reader{feed: lines.NewFeed(r), parse: parser{name: name}}
}

// Next fills b as [trace.Reader] says.
func (r *Reader) Next(b *trace.Batch) error { return r.feed.Next(b, &r.parse) }

// Lines is the number of lines read.
func (r *Reader) Lines() int { return r.parse.line }

// Header tells that the trace has addresses, kinds and PCs.
func (r *Reader) Header() trace.Header { return trace.Header{Format: "pinatrace", PCs: true} }

type parser struct {
	name string
	line int // lines read
}

// Begin makes the column of PCs present.
func (p *parser) Begin(b *trace.Batch) { b.NeedPC() }

// End says that no row has a size.
func (p *parser) End(b *trace.Batch, rows int) { clear(b.Bytes[:rows]) }

// Parse reads lines just as the tool writes them in one go, all others field by
// field.
func (p *parser) Parse(window []byte, long bool, b *trace.Batch, row int) (taken, rows int, err error) {
	if long {
		p.line++
		return len(window), row, lines.TooLong(p.name, p.line, window)
	}
	padded := window[:len(window)+lines.Slack]
	for taken < len(window) && row < b.Len() {
		if n := plain((*[lines.Slack]byte)(padded[taken:]), b, row); n > 0 {
			taken, p.line, row = taken+n, p.line+1, row+1
			continue
		}
		line, _ := lines.First(window[taken:])
		taken, p.line = taken+len(line)+1, p.line+1
		if line = lines.Trim(line); skipped(line) {
			continue
		}
		pc, kind, addr, wrong := record(line)
		if wrong != nil {
			wrong.File, wrong.Line = p.name, p.line
			return taken, row, wrong
		}
		b.Addr[row], b.Kind[row], b.PC[row] = addr, kind, pc
		row++
	}
	return taken, row, nil
}

// plain reads a line of "0x", digits, ": R 0x" or ": W 0x", digits and nothing else
// into a row, and gives its bytes; 0 if it is different.
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

// skipped tells of trimmed lines without a reference.
func skipped(line []byte) bool { return len(line) == 0 || line[0] == '#' }

// record reads a trimmed line. A wrong one is told without its place.
func record(line []byte) (pc trace.Addr, kind trace.Kind, addr trace.Addr, wrong *trace.SyntaxError) {
	first, rest, found := bytes.Cut(line, []byte(":"))
	if !found {
		return 0, 0, 0, &trace.SyntaxError{What: "line", Got: lines.Got(line), Want: "instruction: R or W address"}
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
		return 0, 0, 0, &trace.SyntaxError{What: "kind", Got: lines.Got(letter), Want: "R or W"}
	}
	addr, wrong = lines.Address("address", second)
	return pc, kind, addr, wrong
}

// Recognise tells whether text, the beginning of a file, is pinatrace's: whether
// its first line that is not skipped is. The reason says why not.
func Recognise(text []byte) (reason string, ok bool) {
	for number := 1; len(text) > 0; number++ {
		line, after := lines.First(text)
		if line = lines.Trim(line); !skipped(line) {
			if _, _, _, wrong := record(line); wrong != nil {
				return lines.Reason(number, wrong), false
			}
			return "", true
		}
		text = after
	}
	return "there is no reference", false
}
