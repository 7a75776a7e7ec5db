// Package ppt reads the block-labelled memory traces of PPT-SASMM and PPT-AMMP,
// which their modified Byfl writes, and the files beside them.
//
// A line is a reference, or the begin or end of a basic block's execution:
//
//	BB START: b2f3727763ed2e86
//	STORE: 0x7ffd96666320
//	LOAD: 0x7ffd96666320
//	BB DONE: b2f3727763ed2e86
//
// LD: and ST: stand for LOAD: and STORE:, and a bare 0x address is one of which
// the trace does not say what it was; it counts as a load. A block is named by
// Byfl's hash of it, or, after preprocessing, as (function, block). Sources:
// traceSplitterV2.c and the example files of
// github.com/AtanuBarai/PPT-SASMM-Journal_tracePreparators, calc_probs.py of
// github.com/AtanuBarai/PPT-SASMM_Scripts, and the slides on PPT. Byfl writes a
// line for each byte of a reference, one after the other; they are given as they
// stand, without a size. There are no threads and no PCs.
//
// # Blocks
//
// Each block is one of [trace.Program.Blocks], each of its executions a
// BlockEntry row for a reader that was asked for them. A call within a block
// shows as executions inside of its own: where it goes on with references, that
// is the entry of a further part of the block (Part n after the n-th call), as
// [trace.Block] has it. Hence an execution of a part makes no references of any
// other block; but how many it makes differs, and so blocks list no sites. Each
// reference has one of its block nevertheless: the block's loads share one site,
// its stores another. References outside of all blocks have sites of block 0,
// which is synthetic.
//
// # Files beside a trace
//
// [ParseBlocks], [ParseCounts], [ParseShared] and [ParseBounds] read them.
package ppt

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
	return &Reader{feed: lines.NewFeed(r), parse: parser{name: name, kinds: trace.DataKinds}}
}

// Next fills b as [trace.Reader] says.
func (r *Reader) Next(b *trace.Batch) error { return r.feed.Next(b, &r.parse) }

// Select names the kinds of rows to give: of these, a trace has loads, stores
// and block entries.
func (r *Reader) Select(kinds trace.Kinds) { r.parse.kinds = kinds }

// Lines is the number of lines read.
func (r *Reader) Lines() int { return r.parse.line }

// Header tells what the trace had so far.
func (r *Reader) Header() trace.Header {
	h := trace.Header{Format: "ppt", Sites: r.parse.blocks != nil}
	if h.Sites {
		h.Program = &r.parse.blocks.program
	}
	return h
}

type parser struct {
	name   string
	line   int // lines read
	kinds  trace.Kinds
	blocks *blocks // nil until the first label
}

// Begin makes the column of sites present once there was a label.
func (p *parser) Begin(b *trace.Batch) {
	if p.blocks != nil {
		b.NeedSite()
	}
}

// End says that no row has a size.
func (p *parser) End(b *trace.Batch, rows int) { clear(b.Bytes[:rows]) }

// Parse reads line by line. Before a reference there may have to be the entry of
// its block, which then comes in the batch before.
func (p *parser) Parse(window []byte, long bool, b *trace.Batch, row int) (taken, rows int, err error) {
	if long {
		p.line++
		return len(window), row, lines.TooLong(p.name, p.line, window)
	}
	padded := window[:len(window)+lines.Slack]
	for taken < len(window) && row < b.Len() {
		if what, addr, n := plain((*[lines.Slack]byte)(padded[taken:])); n > 0 && !p.resumes(what) {
			taken, p.line, row = taken+n, p.line+1, p.reference(b, row, what, addr)
			continue
		}
		line, _ := lines.First(window[taken:])
		what, addr, label, wrong := record(lines.Trim(line))
		if p.resumes(what) {
			row = p.entry(b, row, p.blocks.resume())
			continue
		}
		if what == blockStart && p.blocks == nil {
			if row > 0 {
				return taken, row, lines.ErrEndBatch // rows without a site stay in a batch without that column
			}
			p.blocks = newBlocks()
			b.NeedSite()
		}
		taken, p.line = taken+len(line)+1, p.line+1
		if wrong == nil {
			row, wrong = p.row(b, row, what, addr, label)
		}
		if wrong != nil {
			wrong.File, wrong.Line = p.name, p.line
			return taken, row, wrong
		}
	}
	return taken, row, nil
}

// plain reads a line of a reference with nothing but what Byfl writes, and gives its
// bytes; 0 if it is different.
func plain(s *[lines.Slack]byte) (what lineKind, addr trace.Addr, taken int) {
	begin := 0
	switch {
	case string(s[:2]) == "0x":
		what, begin = load, len("0x")
	case string(s[:8]) == "LOAD: 0x":
		what, begin = load, len("LOAD: 0x")
	case string(s[:9]) == "STORE: 0x":
		what, begin = store, len("STORE: 0x")
	default:
		return blank, 0, 0
	}
	addr, at := lines.HexAt(s, begin)
	if at == begin || s[at] != '\n' {
		return blank, 0, 0
	}
	return what, addr, at + 1
}

// resumes tells whether what is a reference of a block that goes on after a call.
func (p *parser) resumes(what lineKind) bool {
	return p.blocks != nil && p.blocks.called && (what == load || what == store)
}

// row does what a line says.
func (p *parser) row(b *trace.Batch, row int, what lineKind, addr trace.Addr, label []byte) (int, *trace.SyntaxError) {
	switch what {
	case load, store:
		return p.reference(b, row, what, addr), nil
	case blockStart:
		block, wrong := p.blocks.begin(label)
		if wrong != nil {
			return row, wrong
		}
		return p.entry(b, row, block), nil
	case blockDone:
		if p.blocks == nil || !p.blocks.end(label) {
			return row, &trace.SyntaxError{What: "BB DONE", Got: lines.Got(label), Want: "a block that has begun and not ended"}
		}
	}
	return row, nil
}

// entry writes the row of a block's entry, if it was asked for. References do not show
// that a block was entered, for blocks list no sites.
func (p *parser) entry(b *trace.Batch, row int, block uint32) int {
	kind := trace.BlockEntry
	if !p.kinds.Has(kind) {
		if kind = trace.BareBlock; !p.kinds.Has(kind) {
			return row
		}
	}
	b.Addr[row], b.Kind[row], b.Site[row] = 0, kind, block
	return row + 1
}

// reference writes the row of a load or store, if it was asked for.
func (p *parser) reference(b *trace.Batch, row int, what lineKind, addr trace.Addr) int {
	kind := trace.Load
	if what == store {
		kind = trace.Store
	}
	if !p.kinds.Has(kind) {
		return row
	}
	b.Addr[row], b.Kind[row] = addr, kind
	if b.Site != nil {
		b.Site[row] = p.blocks.site(kind)
	}
	return row + 1
}

// lineKind is what a line is.
type lineKind uint8

const (
	blank lineKind = iota
	load
	store
	blockStart
	blockDone
)

// prefixes of lines, the most frequent first.
var prefixes = []struct {
	text []byte
	what lineKind
}{
	{[]byte("0x"), load},
	{[]byte("LOAD: "), load},
	{[]byte("STORE: "), store},
	{[]byte("LD: "), load},
	{[]byte("ST: "), store},
	{[]byte("BB START: "), blockStart},
	{[]byte("BB DONE: "), blockDone},
}

// record reads a trimmed line. A wrong one is told without its place.
func record(line []byte) (what lineKind, addr trace.Addr, label []byte, wrong *trace.SyntaxError) {
	if len(line) == 0 {
		return blank, 0, nil, nil
	}
	for i := range prefixes {
		p := &prefixes[i]
		if !bytes.HasPrefix(line, p.text) {
			continue
		}
		switch p.what {
		case blockStart, blockDone:
			return p.what, 0, lines.Trim(line[len(p.text):]), nil
		}
		if i > 0 {
			line = lines.Trim(line[len(p.text):])
		}
		if addr, wrong = lines.Address("address", line); wrong != nil {
			return blank, 0, nil, wrong
		}
		return p.what, addr, nil, nil
	}
	return blank, 0, nil, &trace.SyntaxError{What: "line", Got: lines.Got(line), Want: "LOAD:, STORE:, LD:, ST: or nothing before 0x and an address, or BB START: or BB DONE: before a block"}
}

// Recognise tells whether text, the beginning of a file, is a trace of this
// kind: whether its first line that is not blank is. The reason says why not.
func Recognise(text []byte) (reason string, ok bool) {
	for number := 1; len(text) > 0; number++ {
		line, after := lines.First(text)
		if line = lines.Trim(line); len(line) > 0 {
			if _, _, _, wrong := record(line); wrong != nil {
				return lines.Reason(number, wrong), false
			}
			return "", true
		}
		text = after
	}
	return "there is no reference", false
}
