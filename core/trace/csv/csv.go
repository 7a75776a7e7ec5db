// Package csv reads traces as tables of text with a header line that names the
// columns.
//
//	addr,rw,size,tid,pc
//	0x1fff000708,r,8,1,0x4001ab0
//	137438953472,store,4,2,0x4001ab3
//
// Columns stand in any order and only the address is needed; the names
// that tools give them are known (see [Columns]), other columns are left out. Fields are separated by commas, semicolons or tabs, whichever
// stands in the header, and may be quoted ("" stands for one quote). Numbers
// are decimal, or hexadecimal with 0x. A column without which the trace would
// do may be empty in a row: no size, no PC.
//
// Kinds are told by a letter or a word in any case: r, l, load, read; w, s,
// store, write; m, modify, update; i, f, fetch, ifetch, or din's 0, 1 and 2.
// Without such a column every reference is a load.
package csv

import (
	"io"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// Reader reads a trace.
type Reader struct {
	feed  lines.Feed
	parse parser
}

// NewReader makes a reader of the table that r gives; name is for messages.
func NewReader(name string, r io.Reader) *Reader {
	return &Reader{feed: lines.NewFeed(r), parse: parser{name: name}}
}

// Next fills b as [trace.Reader] says. A header without an address is a
// [*HeaderError].
func (r *Reader) Next(b *trace.Batch) error {
	if err := r.parse.header; err != nil {
		b.Reset()
		return err
	}
	return r.feed.Next(b, &r.parse)
}

// Lines is the number of lines read.
func (r *Reader) Lines() int { return r.parse.line }

// Header tells what columns the table has.
func (r *Reader) Header() trace.Header {
	c := r.parse.columns
	return trace.Header{Format: "csv", Threads: c.has(thread), PCs: c.has(pc), Sizes: c.has(size)}
}

type parser struct {
	name     string
	line     int // lines read
	columns  layout
	header   error // why the table cannot be read at all
	fields   [most][]byte
	unquoted []byte // room for quoted fields without their quotes
}

// Begin makes the columns present that the table has.
func (p *parser) Begin(b *trace.Batch) {
	if p.columns.has(pc) {
		b.NeedPC()
	}
	if p.columns.has(thread) {
		b.NeedThread()
	}
}

// End has nothing to complete: rows are written whole.
func (p *parser) End(b *trace.Batch, rows int) {}

// Parse reads line by line, the slow way only what is not plain.
func (p *parser) Parse(window []byte, long bool, b *trace.Batch, row int) (taken, rows int, err error) {
	if long {
		p.line++
		return len(window), row, lines.TooLong(p.name, p.line, window)
	}
	for taken < len(window) && row < b.Len() {
		if n, ok := p.plain(window[taken:], b, row); ok {
			taken, p.line, row = taken+n, p.line+1, row+1
			continue
		}
		line, _ := lines.First(window[taken:])
		taken, p.line = taken+len(line)+1, p.line+1
		if len(lines.Trim(line)) == 0 {
			continue
		}
		if p.columns.count == 0 {
			var wrong *HeaderError
			if p.columns, wrong = parseHeader(p.name, p.line, line); wrong != nil {
				p.header = wrong
				return taken, row, wrong
			}
			p.Begin(b)
			continue
		}
		if wrong := p.row(line, b, row); wrong != nil {
			wrong.File, wrong.Line = p.name, p.line
			return taken, row, wrong
		}
		row++
	}
	return taken, row, nil
}

// row reads one line into row row of b.
func (p *parser) row(line []byte, b *trace.Batch, row int) *trace.SyntaxError {
	if wrong := p.split(line); wrong != nil {
		return wrong
	}
	c := &p.columns
	addr, wrong := number("address", p.fields[c.at[address]], 64, false)
	if wrong != nil {
		return wrong
	}
	var bytes uint64
	if c.has(size) {
		if bytes, wrong = number("bytes", p.fields[c.at[size]], 32, true); wrong != nil {
			return wrong
		}
		if !lines.FitsBytes(addr, uint32(bytes)) {
			return &trace.SyntaxError{What: "reference", Got: lines.Got(line), Want: "one that ends within the 64-bit address space"}
		}
	}
	k := trace.Load
	if c.has(kind) {
		if k, wrong = kindOf(p.fields[c.at[kind]]); wrong != nil {
			return wrong
		}
	}
	if c.has(pc) {
		if b.PC[row], wrong = number("PC", p.fields[c.at[pc]], 64, true); wrong != nil {
			return wrong
		}
	}
	if c.has(thread) {
		id, wrong := number("thread", p.fields[c.at[thread]], 32, false)
		if wrong != nil {
			return wrong
		}
		b.Thread[row] = uint32(id)
	}
	b.Addr[row], b.Bytes[row], b.Kind[row] = addr, uint32(bytes), k
	return nil
}
