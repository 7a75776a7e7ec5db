// Package execlog reads the log that QEMU's plugin execlog writes (contrib/plugins/execlog.c in
// QEMU's sources), for example with `qemu-x86_64 -plugin libexeclog.so -d plugin -D log prog`.
//
// Each line describes one executed instruction. The fields of a line are the virtual processor, the
// instruction's address, the first 32 bits of the instruction, its disassembly, and any number of
// references.
//
//	0, 0x401745, 0xc0315741, "xorl %eax, %eax"
//	0, 0x40174a, 0xfffab1e8, "callq 0x401200", store, 0x40007ffdf8
//	1, 0x40174f, 0x243c8b48, "movq (%rsp), %rdi", load, 0x00002000, RAM
//
// If QEMU emulates a whole system, the address of a reference is a physical address, and is
// followed by the name of the memory or device. This name is ignored. Newer versions of the plugin
// can also log registers, in fields such as `, rax -> 0x10`; these fields are skipped. Each line
// becomes one row for the fetch and one row for each reference. The PC of a row is the
// instruction's address, and the thread is the number of the virtual processor. In user mode, QEMU
// reuses the numbers of threads that have ended. The format does not contain sizes.
//
// The plugin prints an instruction when the virtual processor begins the next instruction, so lines
// of different threads are only roughly in execution order.
package execlog

import (
	"bytes"
	"io"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// NewReader returns a reader for the trace in r. Errors refer to the trace by the given name.
func NewReader(name string, r io.Reader) *lines.Reader { return lines.NewReader(name, r, &parser{}) }

type parser struct {
	thread uint32
	pc     trace.Addr
	rest   int // number of unread bytes of the current line, which contain references; 0 at the beginning of a line
}

// Header implements [lines.Parser].
func (p *parser) Header() trace.Header {
	return trace.Header{Format: "execlog", Threads: true, PCs: true}
}

// Begin adds the PC and thread columns. No row has a size.
func (p *parser) Begin(b *trace.Batch) {
	b.NeedPC()
	b.NeedThread()
	clear(b.Bytes)
}

// Parse reads line by line. Parse checks a whole line before it writes the first row of the line,
// so that an invalid line produces no rows.
func (p *parser) Parse(window []byte, b *trace.Batch, row int) (taken, count, rows int, err error) {
	for taken < len(window) && row < b.Len() {
		whole, _ := lines.First(window[taken:])
		line := bytes.TrimRight(whole, " \t\r")
		if p.rest == 0 {
			count++
			if wrong := p.instruction(line); wrong != nil {
				return taken + len(whole) + 1, count, row, wrong
			}
			if len(line) > 0 {
				p.row(b, row, trace.Fetch, p.pc)
				row++
			}
		}
		if p.rest, row = p.references(line[len(line)-p.rest:], b, row); p.rest > 0 {
			return taken + len(line) - p.rest, count, row, nil
		}
		taken += len(whole) + 1
	}
	return taken, count, row, nil
}

func (p *parser) row(b *trace.Batch, row int, kind trace.Kind, addr trace.Addr) {
	b.Addr[row], b.Kind[row], b.PC[row], b.Thread[row] = addr, kind, p.pc, p.thread
}

// instruction reads the fields that precede the references in a line, and checks the references.
// The line must not end with blanks.
func (p *parser) instruction(line []byte) *trace.SyntaxError {
	if len(line) == 0 {
		return nil
	}
	thread, pc, after, wrong := record(line)
	if wrong != nil {
		return wrong
	}
	for rest := after; len(rest) > 0; {
		_, _, next, wrong := reference(rest)
		if wrong != nil {
			return wrong
		}
		rest = next
	}
	p.thread, p.pc, p.rest = thread, pc, len(after)
	return nil
}

// references writes the rows of references until the batch is full, and returns the number of
// unread bytes.
func (p *parser) references(text []byte, b *trace.Batch, row int) (left, rows int) {
	for len(text) > 0 {
		kind, addr, after, _ := reference(text)
		if kind.IsReference() {
			if row == b.Len() {
				return len(text), row
			}
			p.row(b, row, kind, addr)
			row++
		}
		text = after
	}
	return 0, row
}

// record reads the fields up to the disassembly of the instruction.
func record(line []byte) (thread uint32, pc trace.Addr, after []byte, wrong *trace.SyntaxError) {
	processor, rest := cut(line)
	if thread, wrong = lines.Decimal32("processor", processor); wrong != nil {
		return 0, 0, nil, wrong
	}
	field, rest := cut(rest)
	if pc, wrong = lines.Address("instruction", field); wrong != nil {
		return 0, 0, nil, wrong
	}
	field, rest = cut(rest)
	if _, wrong = lines.Address("opcode", field); wrong != nil {
		return 0, 0, nil, wrong
	}
	// The disassembly may contain commas, but not quotes.
	before, text, open := bytes.Cut(rest, []byte(`"`))
	_, after, closed := bytes.Cut(text, []byte(`"`))
	after = lines.Trim(after)
	if open && closed && len(lines.Trim(before)) == 0 && (len(after) == 0 || after[0] == ',') {
		return thread, pc, bytes.TrimPrefix(after, []byte(",")), nil
	}
	return 0, 0, nil, lines.Wrong("disassembly", rest, "text in quotes, and a comma if references follow")
}

// noReference represents a field that is not a reference.
const noReference = trace.Kind(0xff)

// reference reads one field and, for a load or store, the address that follows.
func reference(text []byte) (kind trace.Kind, addr trace.Addr, after []byte, wrong *trace.SyntaxError) {
	field, after := cut(text)
	switch string(field) {
	case "load":
		kind = trace.Load
	case "store":
		kind = trace.Store
	default:
		return noReference, 0, after, nil // the field names a device or a register
	}
	field, after = cut(after)
	addr, wrong = lines.Address("address", field)
	return kind, addr, after, wrong
}

// cut splits text at its first comma, and trims the first part.
func cut(text []byte) (field, after []byte) {
	field, after, _ = bytes.Cut(text, []byte(","))
	return lines.Trim(field), after
}

// Recognise reports whether text, the beginning of a file, is an execlog trace; if not, it returns
// the reason.
func Recognise(text []byte) (reason string, ok bool) {
	return lines.Recognise(text, "the file contains no instruction", lines.IsBlank, func(line []byte) *trace.SyntaxError {
		return new(parser).instruction(lines.Trim(line))
	})
}
