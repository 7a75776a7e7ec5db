// Package csv reads traces as tables of text with a header line that names the columns.
//
//	addr,rw,size,tid,pc
//	0x1fff000708,r,8,1,0x4001ab0
//	137438953472,store,4,2,0x4001ab3
//
// Columns stand in any order and only the address is required. Names that common tools use are
// known (see [Columns]); other columns are ignored. Fields are separated by commas, semicolons or
// tabs, whichever comes first in the header, and may be quoted ("" is a quote). Numbers are
// decimal, or hexadecimal with 0x. A size or PC may be empty.
//
// Kinds are letters or words in any case: r, l, load, read; w, s, store, write; m, modify, update;
// i, f, fetch, ifetch, or din's 0, 1 and 2. Without such a column every reference is a load.
package csv

import (
	"io"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// NewReader returns a reader of the table in r; name is the trace's name in errors. A header
// without an address is a [*HeaderError].
func NewReader(name string, r io.Reader) *lines.Reader { return lines.NewReader(name, r, &parser{}) }

type parser struct {
	columns  layout
	fields   [most][]byte
	unquoted []byte // room for quoted fields without their quotes
}

// Header implements [lines.Parser].
func (p *parser) Header() trace.Header {
	c := p.columns
	return trace.Header{Format: "csv", Threads: c.has(thread), PCs: c.has(pc), Sizes: c.has(size)}
}

// Begin adds the columns that the table has.
func (p *parser) Begin(b *trace.Batch) {
	if p.columns.has(pc) {
		b.NeedPC()
	}
	if p.columns.has(thread) {
		b.NeedThread()
	}
}

// Parse reads line by line, by a fast path if the line is plain.
func (p *parser) Parse(window []byte, b *trace.Batch, row int) (taken, count, rows int, err error) {
	for taken < len(window) && row < b.Len() {
		count++
		if n, ok := p.plain(window[taken:], b, row); ok {
			taken, row = taken+n, row+1
			continue
		}
		line, _ := lines.First(window[taken:])
		taken += len(line) + 1
		if lines.IsBlank(line) {
			continue
		}
		if p.columns.count == 0 {
			var wrong *HeaderError
			if p.columns, wrong = parseHeader(line); wrong != nil {
				return taken, count, row, wrong
			}
			p.Begin(b)
			continue
		}
		if wrong := p.row(line, b, row); wrong != nil {
			return taken, count, row, wrong
		}
		row++
	}
	return taken, count, row, nil
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
			return lines.Wrong("reference", line, "one that ends within the 64-bit address space")
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
