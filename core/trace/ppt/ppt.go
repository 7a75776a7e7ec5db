// Package ppt reads the block-labelled memory traces of PPT-SASMM and PPT-AMMP, and the files that
// accompany such traces. PPT-SASMM and PPT-AMMP use a modified version of Byfl to write traces.
//
// Each line is a reference, or marks the beginning or end of an execution of a basic block:
//
//	BB START: b2f3727763ed2e86
//	STORE: 0x7ffd96666320
//	LOAD: 0x7ffd96666320
//	BB DONE: b2f3727763ed2e86
//
// LD: and ST: are short for LOAD: and STORE:, and an address 0x… alone counts as a load. A block is
// identified by Byfl's hash or, after preprocessing, by (function, block). Sources:
// traceSplitterV2.c and the example files of
// github.com/AtanuBarai/PPT-SASMM-Journal_tracePreparators, calc_probs.py of
// github.com/AtanuBarai/PPT-SASMM_Scripts, and the slides on PPT. Byfl writes a line for each byte
// of a reference, and each line becomes a row without a size. The format contains neither threads
// nor PCs.
//
// # Blocks
//
// Each block is added to [trace.Program.Blocks]. Each execution of a block becomes a BlockEntry
// row, if block entries are selected. A call within a block appears as nested executions of other
// blocks. The first reference after a call starts a new part of the calling block (Part n after the
// n-th call), as in [trace.Block], so that no other block makes references during the execution of
// a part. The number of references varies between executions of a block, so blocks list no sites.
// Nevertheless, each reference has a site: one site represents all loads of a block, and one site
// represents all stores of a block. References outside all blocks have sites of block 0, which is
// synthetic.
//
// # Other files
//
// [ParseBlocks], [ParseCounts], [ParseShared] and [ParseBounds] read the files that accompany a
// trace.
package ppt

import (
	"bytes"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// Reader reads a trace.
type Reader struct {
	*lines.Reader
	parse *parser
}

// NewReader returns a reader for the trace in r. Errors refer to the trace by the given name.
func NewReader(name string, r io.Reader) *Reader {
	p := &parser{kinds: trace.DataKinds}
	return &Reader{lines.NewReader(name, r, p), p}
}

// Select chooses the kinds of rows. A trace contains loads, stores and block entries.
func (r *Reader) Select(kinds trace.Kinds) { r.parse.kinds = kinds }

type parser struct {
	kinds  trace.Kinds
	blocks *blocks // nil until the first label has been read
}

// Header implements [lines.Parser].
func (p *parser) Header() trace.Header {
	h := trace.Header{Format: "ppt", Sites: p.blocks != nil}
	if h.Sites {
		h.Program = &p.blocks.program
	}
	return h
}

// Begin adds the site column once a label has been read. No row has a size.
func (p *parser) Begin(b *trace.Batch) {
	if p.blocks != nil {
		b.NeedSite()
	}
	clear(b.Bytes)
}

// Parse reads line by line. Before the row of a reference, Parse may have to write a block-entry
// row. If the batch has room for only one row, the block-entry row becomes the last row of the
// batch.
func (p *parser) Parse(window []byte, b *trace.Batch, row int) (taken, count, rows int, err error) {
	padded := window[:len(window)+lines.Slack]
	for taken < len(window) && row < b.Len() {
		if what, addr, n := plain((*[lines.Slack]byte)(padded[taken:])); n > 0 && !p.resumes(what) {
			taken, count, row = taken+n, count+1, p.reference(b, row, what, addr)
			continue
		}
		line, _ := lines.First(window[taken:])
		what, addr, label, wrong := record(line)
		if p.resumes(what) {
			row = p.entry(b, row, p.blocks.resume())
			continue
		}
		if what == blockStart && p.blocks == nil {
			if row > 0 {
				return taken, count, row, lines.ErrEndBatch // end the batch, because its rows have no site column
			}
			p.blocks = newBlocks()
			b.NeedSite()
		}
		taken, count = taken+len(line)+1, count+1
		if wrong == nil {
			row, wrong = p.row(b, row, what, addr, label)
		}
		if wrong != nil {
			return taken, count, row, wrong
		}
	}
	return taken, count, row, nil
}

// plain reads a reference in exactly the form that Byfl writes, and returns the length of the line,
// or 0 if the line has a different form.
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

// resumes reports whether a line is the first reference of the current block after a call.
func (p *parser) resumes(what lineKind) bool {
	return p.blocks != nil && p.blocks.called && (what == load || what == store)
}

// row writes the row that represents a line, if there is one.
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
			return row, lines.Wrong("BB DONE", label, "a block that has begun but not ended")
		}
	}
	return row, nil
}

// entry writes the row for the entry of a block, if block entries are selected. In other formats, a
// reader can infer the entry from the sites that the block lists. Here, blocks list no sites, so
// the row is always necessary.
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

// reference writes the row of a load or store, if rows of this kind are selected.
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

type lineKind uint8

const (
	blank lineKind = iota
	load
	store
	blockStart
	blockDone
)

// prefixes contains the prefixes of lines, most frequent first.
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

func record(line []byte) (what lineKind, addr trace.Addr, label []byte, wrong *trace.SyntaxError) {
	if line = lines.Trim(line); len(line) == 0 {
		return blank, 0, nil, nil
	}
	for i := range prefixes {
		p := &prefixes[i]
		if !bytes.HasPrefix(line, p.text) {
			continue
		}
		if p.what == blockStart || p.what == blockDone {
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
	return blank, 0, nil, lines.Wrong("line", line,
		"an address with 0x, alone or after LOAD:, STORE:, LD: or ST:, or a block after BB START: or BB DONE:")
}

// Recognise reports whether text, the beginning of a file, is a trace in this format; if not, it
// returns the reason.
func Recognise(text []byte) (reason string, ok bool) {
	return lines.Recognise(text, "the file contains no reference", lines.IsBlank, func(line []byte) *trace.SyntaxError {
		_, _, _, wrong := record(line)
		return wrong
	})
}

const (
	// mostBlocks limits the number of blocks, and thus the memory that the reader needs for a file
	// that is not a trace but contains many different labels.
	mostBlocks = 1 << 20
	// deepest is the maximum number of nested calls that the reader tracks. If more calls are nested,
	// for example because a trace lacks the ends of blocks, the reader forgets the outermost calls.
	deepest = 1 << 16

	outside = 0 // the block for references outside all blocks
)

// blocks contains the blocks of a trace and their current executions.
type blocks struct {
	program   trace.Program
	functions map[string]uint32
	labels    map[string]uint32 // the first part of each block, by label
	parts     []part            // the parts of all blocks
	open      []uint32          // the parts in execution, outermost first
	// whether a nested block has ended since the last reference of the innermost open block
	called bool
}

// part contains the data about a part of a block that the tables of the program do not contain.
type part struct {
	first uint32    // number of the block's first part
	next  uint32    // number of the block's next part; 0 if it does not exist yet
	sites [2]uint32 // 1 + the site of the part's loads, and 1 + the site of the part's stores; 0 if there is no site yet
}

func newBlocks() *blocks {
	t := &blocks{functions: map[string]uint32{}, labels: map[string]uint32{}}
	t.add(trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic}, outside)
	t.open = append(t.open, outside)
	return t
}

func (t *blocks) add(b trace.Block, first uint32) uint32 {
	t.program.Blocks = append(t.program.Blocks, b)
	t.parts = append(t.parts, part{first: first})
	return uint32(len(t.program.Blocks) - 1)
}

// function returns the number of a function, and adds the function to the table if necessary.
// Blocks that are identified by a hash have no function.
func (t *blocks) function(name []byte) uint32 {
	if name == nil {
		return trace.NoFunction
	}
	n, ok := t.functions[string(name)]
	if !ok {
		n = uint32(len(t.program.Functions))
		t.program.Functions = append(t.program.Functions, trace.Function{Name: string(name)})
		t.functions[string(name)] = n
	}
	return n
}

// begin starts an execution of the block with the given label.
func (t *blocks) begin(label []byte) (block uint32, wrong *trace.SyntaxError) {
	block, ok := t.labels[string(label)]
	if !ok {
		if len(label) == 0 {
			return 0, lines.Wrong("BB START", nil, "a block")
		}
		if len(t.program.Blocks) >= mostBlocks {
			return 0, lines.Wrong("BB START", label, "at most "+strconv.Itoa(mostBlocks)+" different blocks")
		}
		function, name := splitLabel(label)
		block = uint32(len(t.parts))
		t.labels[string(label)] = t.add(trace.Block{Function: t.function(function), Label: string(name)}, block)
	}
	if len(t.open) == deepest {
		t.open = t.open[:copy(t.open[1:], t.open[deepest/2:])+1]
	}
	t.open, t.called = append(t.open, block), false
	return block, nil
}

// end ends the innermost execution of the block with the given label, and all executions nested in
// it. The trace does not contain the ends of these nested executions, for example because a jump
// has left several blocks at once.
func (t *blocks) end(label []byte) bool {
	first, ok := t.labels[string(label)]
	if !ok {
		return false
	}
	for i := len(t.open) - 1; i > 0; i-- {
		if t.parts[t.open[i]].first == first {
			t.open, t.called = t.open[:i], i > 1
			return true
		}
	}
	return false
}

// resume starts the next part of the innermost block after a call. It returns the number of this
// part.
func (t *blocks) resume() uint32 {
	running := &t.open[len(t.open)-1]
	t.called = false
	if now := *running; t.parts[now].next != 0 {
		*running = t.parts[now].next
	} else if len(t.program.Blocks) < mostBlocks {
		b := t.program.Blocks[now]
		b.Part++
		*running = t.add(b, t.parts[now].first)
		t.parts[now].next = *running
	}
	return *running
}

// site returns the site of all loads, or of all stores, of the running block.
func (t *blocks) site(kind trace.Kind) uint32 {
	block := t.open[len(t.open)-1]
	known := &t.parts[block].sites[kind]
	if *known == 0 {
		t.program.Sites = append(t.program.Sites, trace.Site{Kind: kind, Block: block, Flags: trace.NoSize})
		*known = uint32(len(t.program.Sites))
	}
	return *known - 1
}

// splitLabel splits "(function, block)". Any other label is the name of a block without a function.
func splitLabel(label []byte) (function, block []byte) {
	inner, open := bytes.CutPrefix(label, []byte("("))
	inner, closed := bytes.CutSuffix(inner, []byte(")"))
	comma := bytes.LastIndexByte(inner, ',') // names of C++ functions may contain commas
	if !open || !closed || comma < 0 {
		return nil, label
	}
	return lines.Trim(inner[:comma]), lines.Trim(inner[comma+1:])
}
