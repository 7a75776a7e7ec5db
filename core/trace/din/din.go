// Package din reads the traces of the cache simulator Dinero (DineroIV's
// informat d): a label and an address in hexadecimal digits on each line.
//
//	0 1fff000708    load
//	1 1fff000700    store
//	2 04001ab0      instruction fetch
//
// 0x before the address is accepted. A third field that is the last one, of one to three
// hexadecimal digits and begins with a decimal one, is the size in bytes, as in DineroIV's extended format
// (informat D); anything else behind the address is ignored. Labels 3
// and 4 stand for an escape and a flush of the simulated cache; such lines are
// no references and skipped, as are blank lines. The format has neither
// threads nor the instruction of a data reference: a fetch is a row of its
// own, and nothing says that data lines behind it belong to it.
package din

import (
	"encoding/binary"
	"io"
	"math"

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

// Header tells that the trace has addresses and kinds only, or sizes too.
func (r *Reader) Header() trace.Header { return trace.Header{Format: "din", Sizes: r.parse.sized} }

type parser struct {
	name  string
	line  int  // lines read
	sized bool // one of them had a size
}

// Begin adds no column: the format has none. Rows have no size unless they say.
func (p *parser) Begin(b *trace.Batch) { clear(b.Bytes) }

// End has nothing to complete.
func (p *parser) End(b *trace.Batch, rows int) {}

// Parse alternates the fast path and single lines.
func (p *parser) Parse(window []byte, long bool, b *trace.Batch, row int) (taken, rows int, err error) {
	if long {
		p.line++
		return len(window), row, lines.TooLong(p.name, p.line, window)
	}
	for {
		n, next := plain(window[taken:], b, row)
		taken, p.line, row = taken+n, p.line+next-row, next
		if taken == len(window) || row == b.Len() {
			return taken, row, nil
		}
		line, _ := lines.First(window[taken:])
		taken, p.line = taken+len(line)+1, p.line+1
		if row, err = p.single(line, b, row); err != nil {
			return taken, row, err
		}
	}
}

// plain reads lines of a label 0 to 2, one blank, an address with or without 0x
// and nothing else, up to one that is different. It gives the bytes read and
// the rows that b holds then. Indices into s stay below its length, so that
// they cost no check.
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

// single reads any one line, the one that was counted last.
func (p *parser) single(line []byte, b *trace.Batch, row int) (rows int, err error) {
	text := lines.Trim(line)
	if len(text) == 0 {
		return row, nil
	}
	label, addr, size, wrong := record(text)
	if wrong != nil {
		wrong.File, wrong.Line = p.name, p.line
		return row, wrong
	}
	if label > 2 {
		return row, nil
	}
	b.Addr[row], b.Kind[row], b.Bytes[row] = addr, kindOf[label], size
	p.sized = p.sized || size > 0
	return row + 1, nil
}

// record reads a trimmed line that is not blank. A wrong one is told without
// its place. Escapes and flushes have no address that would matter.
func record(text []byte) (label int, addr trace.Addr, size uint32, wrong *trace.SyntaxError) {
	field, after := lines.Cut(text)
	if len(field) != 1 || field[0] < '0' || field[0] > '4' {
		return 0, 0, 0, &trace.SyntaxError{What: "label", Got: lines.Got(field), Want: "0 to 4"}
	}
	label = int(field[0] - '0')
	if label > 2 {
		return label, 0, 0, nil
	}
	digits, after := lines.Cut(after)
	if len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		digits = digits[2:]
	}
	addr, wide, ok := lines.Hex(digits)
	if wide {
		return 0, 0, 0, &trace.SyntaxError{What: "address", Got: lines.Got(digits), Want: "at most 16 hexadecimal digits: an address has 64 bits"}
	}
	if !ok {
		return 0, 0, 0, &trace.SyntaxError{What: "address", Got: lines.Got(digits), Want: "1 to 16 hexadecimal digits"}
	}
	if size = sizeIn(after); size > 0 && addr > math.MaxUint64-uint64(size-1) {
		return 0, 0, 0, &trace.SyntaxError{What: "size", Got: lines.Got(after), Want: "a reference that ends within the 64-bit address space"}
	}
	return label, addr, size, nil
}

// sizeIn reads what stands behind an address; 0: it is no size.
func sizeIn(text []byte) uint32 {
	const mostDigits = 3 // a longer number is something else, such as another address
	field, after := lines.Cut(text)
	size, _, ok := lines.Hex(field)
	if !ok || len(field) > mostDigits || field[0] > '9' || len(lines.Trim(after)) > 0 {
		return 0
	}
	return uint32(size)
}

// Recognise tells whether text, the beginning of a file, is din: whether its
// first line that is not blank is. The reason says why not.
func Recognise(text []byte) (reason string, ok bool) {
	for number := 1; len(text) > 0; number++ {
		line, after := lines.First(text)
		if line = lines.Trim(line); len(line) > 0 {
			_, _, _, wrong := record(line)
			if wrong == nil {
				return "", true
			}
			return lines.Reason(number, wrong), false
		}
		text = after
	}
	return "there is no reference", false
}
