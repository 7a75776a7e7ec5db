// Package din reads the traces of the cache simulator Dinero (DineroIV's informat d). Each line has
// a label and an address in hexadecimal digits.
//
//	0 1fff000708    load
//	1 1fff000700    store
//	2 04001ab0      instruction fetch
//
// 0x may precede the address. A third and last field is the size in bytes, as in DineroIV's
// extended format (informat D), if it consists of one to three hexadecimal digits and the first
// digit is 0 to 9. Any other text after the address is ignored. Label 3 marks an escape, and label
// 4 marks a flush of the simulated cache. Escapes, flushes and blank lines are skipped. The format
// records neither threads nor the instruction that makes a data reference. An instruction fetch
// becomes a separate row. The data references after a fetch need not belong to the fetched
// instruction.
package din

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// NewReader returns a reader for the trace in r. Errors refer to the trace by the given name.
func NewReader(name string, r io.Reader) *lines.Reader { return lines.NewReader(name, r, &parser{}) }

type parser struct {
	sized bool // whether any line so far contained a size
}

// Header implements [lines.Parser].
func (p *parser) Header() trace.Header { return trace.Header{Format: "din", Sizes: p.sized} }

// Begin adds no column. Rows have no size unless their line contains a size.
func (p *parser) Begin(b *trace.Batch) { clear(b.Bytes) }

// Parse reads plain lines on a fast path, and all other lines one at a time.
func (p *parser) Parse(window []byte, b *trace.Batch, row int) (taken, count, rows int, err error) {
	for {
		n, next := plain(window[taken:], b, row)
		taken, count, row = taken+n, count+next-row, next
		if taken == len(window) || row == b.Len() {
			return taken, count, row, nil
		}
		line, _ := lines.First(window[taken:])
		taken, count = taken+len(line)+1, count+1
		var wrong *trace.SyntaxError
		if row, wrong = p.single(line, b, row); wrong != nil {
			return taken, count, row, wrong
		}
	}
}

// plain reads lines that consist of a label 0 to 2, one blank, and an address with or without 0x.
// At the first line of a different form, it stops, and returns the number of bytes read and the
// number of rows in b. The form of the code allows the compiler to prove that indices into s are in
// range, and to omit bounds checks.
func plain(window []byte, b *trace.Batch, row int) (taken, rows int) {
	addrs := b.Addr
	kinds := b.Kind[:len(addrs)]
	padded := window[:len(window)+lines.Slack]
	at := 0
	for at < len(window) && uint(row) < uint(len(addrs)) {
		s := (*[lines.Slack]byte)(padded[at:])
		label := s[0] - '0'
		if label > 2 || s[1] != ' ' {
			break
		}
		begin := 2
		if s[2] == '0' && s[3] == 'x' {
			begin = 4
		}
		first := binary.LittleEndian.Uint64(s[begin:])
		n := lines.HexDigits(first)
		addr := lines.HexValue(first, n)
		end := begin + n
		if n == 8 {
			second := binary.LittleEndian.Uint64(s[end:])
			n = lines.HexDigits(second)
			addr = addr<<uint(4*n) | lines.HexValue(second, n)
			end += n
		}
		if end == begin {
			break
		}
		if s[end] == '\r' {
			end++
		}
		if s[end] != '\n' {
			break
		}
		addrs[row], kinds[row] = addr, kindOf[label]
		row++
		at += end + 1
	}
	return at, row
}

var kindOf = [3]trace.Kind{trace.Load, trace.Store, trace.Fetch}

// single reads one line of any form.
func (p *parser) single(line []byte, b *trace.Batch, row int) (rows int, wrong *trace.SyntaxError) {
	if lines.IsBlank(line) {
		return row, nil
	}
	label, addr, size, wrong := record(line)
	if wrong != nil || label > 2 {
		return row, wrong
	}
	b.Addr[row], b.Kind[row], b.Bytes[row] = addr, kindOf[label], size
	p.sized = p.sized || size > 0
	return row + 1, nil
}

// record reads a nonblank line. The address of an escape or a flush is ignored.
func record(text []byte) (label int, addr trace.Addr, size uint32, wrong *trace.SyntaxError) {
	field, after := lines.Cut(lines.Trim(text))
	if len(field) != 1 || field[0] < '0' || field[0] > '4' {
		return 0, 0, 0, lines.Wrong("label", field, "0 to 4")
	}
	label = int(field[0] - '0')
	if label > 2 {
		return label, 0, 0, nil
	}
	digits, after := lines.Cut(after)
	if len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		digits = digits[2:]
	}
	if addr, wrong = lines.HexAddress(digits); wrong != nil {
		return 0, 0, 0, wrong
	}
	if size = sizeIn(after); !lines.FitsBytes(addr, size) {
		return 0, 0, 0, lines.Wrong("size", after, "a reference that ends within the 64-bit address space")
	}
	return label, addr, size, nil
}

// sizeIn returns the size in the text after an address, or 0 if the text is not a size.
func sizeIn(text []byte) uint32 {
	const mostDigits = 3 // a longer number is not a size; it may be a second address
	field, after := lines.Cut(text)
	size, _, ok := lines.Hex(field)
	if !ok || len(field) > mostDigits || field[0] > '9' || len(lines.Trim(after)) > 0 {
		return 0
	}
	return uint32(size)
}

// Recognise reports whether text, the beginning of a file, is a din trace; if not, it returns the
// reason.
func Recognise(text []byte) (reason string, ok bool) {
	return lines.Recognise(text, "the file contains no reference", lines.IsBlank, func(line []byte) *trace.SyntaxError {
		_, _, _, wrong := record(line)
		return wrong
	})
}

// Writer writes references in the din format.
type Writer struct {
	w    io.Writer
	text []byte
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// labels contains the labels of the lines for each kind of reference. A modify is written as a load
// and a store. The length of a range is not written.
var labels = [trace.NumKinds]string{
	trace.Load: "0", trace.Store: "1", trace.Modify: "01", trace.Fetch: "2", trace.RangeRead: "0", trace.RangeWrite: "1",
}

// Write writes the references of a batch. The format cannot represent events.
func (w *Writer) Write(b *trace.Batch) error {
	w.text = w.text[:0]
	for i, kind := range b.Kind {
		if !kind.IsReference() {
			continue
		}
		for _, label := range []byte(labels[kind]) {
			w.text = strconv.AppendUint(append(w.text, label, ' '), b.Addr[i], 16)
			w.text = append(w.text, '\n')
		}
	}
	_, err := w.w.Write(w.text)
	return err
}
