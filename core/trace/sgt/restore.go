package sgt

import (
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// Restorer rebuilds a container from the program's tables and all rows of a trace, including
// events. The trace may be loop-compressed, for example. Restorer combines the rows of each
// execution of a block into a step. If the trace has no program, or if the program's tables cannot
// be written, an [Importer] writes the rows.
type Restorer struct {
	out    io.Writer
	facts  []trace.Fact
	w      *Writer
	other  *Importer // the Importer that is used instead of w, or nil
	tables Tables
	ticket uint64 // ticket of the next step
	rows   uint64
	step   restored
	err    error
}

type restored struct {
	open   bool
	block  uint32
	thread uint32
	next   uint32 // index of the next expected site
	end    uint32
	values []uint64
	// the address at which a large reference continues after the previous row; 0 if no reference
	// continues
	more trace.Addr
}

// RestoreError reports that the rows do not form complete executions of blocks.
type RestoreError struct {
	Row  uint64
	Want string
}

func (e *RestoreError) Error() string {
	return "record " + decimal(e.Row) + " does not belong to the block that has begun, want " + e.Want +
		"; to write only the references of a part of a trace, add --kinds all"
}

// NewRestorer returns a Restorer that writes a new container to w. The parameter "facts" contains
// further facts, which are added to the facts of the trace.
func NewRestorer(w io.Writer, facts []trace.Fact) *Restorer { return &Restorer{out: w, facts: facts} }

// Write writes the rows of a batch. The parameter h is the header of the trace.
func (r *Restorer) Write(b *trace.Batch, h trace.Header) error {
	r.begin(h)
	if r.other != nil {
		return r.other.Write(b, h)
	}
	if r.err == nil {
		r.err = r.writeTables(h)
	}
	for i := 0; i < b.Len() && r.err == nil; i++ {
		r.err = r.row(b, i, h.Program)
		r.rows++
	}
	return r.err
}

func (r *Restorer) begin(h trace.Header) {
	if r.w != nil || r.other != nil {
		return
	}
	if p := h.Program; p == nil || len(p.Blocks) == 0 || !inOrder(p) {
		r.other = NewImporter(r.out, r.facts)
		return
	}
	r.w = NewWriter(r.out, 64, r.facts)
}

// writeTables writes the items of a header that have not been written yet.
func (r *Restorer) writeTables(h trace.Header) error {
	if t := &r.tables; len(h.Capture) > t.facts {
		r.w.Facts(h.Capture[t.facts:])
		t.facts = len(h.Capture)
	}
	return r.tables.writeFrames(h, true, func(tag string, body []byte) error {
		if tag == tagModule {
			return r.w.Module(body)
		}
		r.w.put(tag, body)
		return nil
	})
}

// row adds a row to the current step of its thread.
func (r *Restorer) row(b *trace.Batch, i int, p *trace.Program) error {
	kind, thread, number := b.Kind[i], trace.At(b.Thread, i), trace.At(b.Site, i)
	switch kind {
	case trace.BareBlock, trace.Call, trace.Return:
		return nil // the block's flags and sites imply this row
	case trace.BlockEntry:
		if err := r.finish(p); err != nil {
			return err
		}
		if int64(number) >= int64(len(p.Blocks)) {
			return r.wrong("a block of the tables")
		}
		return r.enter(p, number, thread)
	}
	s := &r.step
	if s.open && s.more != 0 && number == s.next-1 && thread == s.thread && b.Addr[i] == s.more {
		s.values[len(s.values)-1] += uint64(b.Bytes[i])
		s.noteContinuation(b.Addr[i], b.Bytes[i])
		return nil
	}
	if s.open && number != s.next {
		r.skipSites(p, number)
	}
	if s.open && s.next == s.end {
		if err := r.finish(p); err != nil {
			return err
		}
	}
	if !s.open {
		if int64(number) >= int64(len(p.Sites)) || p.Blocks[p.Sites[number].Block].Flags&trace.Synthetic == 0 {
			return r.wrong("the entry of a block")
		}
		if err := r.enter(p, p.Sites[number].Block, thread); err != nil {
			return err
		}
		r.skipSites(p, number)
	}
	if number != s.next || thread != s.thread || p.Sites[number].Kind != kind {
		return r.wrong("site " + decimal(uint64(s.next)) + " of thread " + decimal(uint64(s.thread)))
	}
	values := [2]uint64{b.Addr[i], trace.At(b.Arg, i)}
	if kind.IsReference() {
		values[1] = uint64(b.Bytes[i])
	}
	s.values = append(s.values, values[:p.Sites[number].Values()]...)
	s.more = 0
	if kind.IsReference() && p.Sites[number].Values() == 2 {
		s.noteContinuation(b.Addr[i], b.Bytes[i])
	}
	s.next++
	return nil
}

// noteContinuation records that the next row may continue a large reference.
func (s *restored) noteContinuation(addr trace.Addr, bytes uint32) {
	if s.more = 0; bytes == mostBytes {
		s.more = addr + mostBytes
	}
}

// enter starts the step of an execution of a block.
func (r *Restorer) enter(p *trace.Program, block, thread uint32) error {
	b := &p.Blocks[block]
	r.step = restored{open: true, block: block, thread: thread, next: b.FirstSite, end: b.FirstSite + b.Sites, values: r.step.values[:0]}
	if b.Sites == 0 {
		return r.finish(p)
	}
	return nil
}

// skipSites skips the sites before the given site. Only the ends of worksharing loops that continue
// produce no row, so skipSites stops at any other site.
func (r *Restorer) skipSites(p *trace.Program, to uint32) {
	const going = 1
	for s := &r.step; s.next != to && s.next < s.end && p.Sites[s.next].Kind == trace.LoopEnd; s.next++ {
		s.values = append(s.values, going)
	}
}

// finish writes the current step of a thread.
func (r *Restorer) finish(p *trace.Program) error {
	s := &r.step
	if !s.open {
		return nil
	}
	r.skipSites(p, s.end)
	if s.next != s.end {
		return r.wrong("all records of block " + decimal(uint64(s.block)))
	}
	s.open = false
	r.ticket++
	return r.w.Step(s.thread, r.ticket-1, s.block, s.values)
}

func (r *Restorer) wrong(want string) error { return &RestoreError{Row: r.rows, Want: want} }

// Close writes the end of the container. The parameter h is the header at the end of the trace.
func (r *Restorer) Close(h trace.Header, e End) error {
	r.begin(h)
	if r.other != nil {
		return r.other.Close(e)
	}
	if r.err == nil {
		r.err = r.writeTables(h)
	}
	if r.err == nil {
		r.err = r.finish(h.Program)
	}
	if r.err != nil {
		return r.err
	}
	return r.w.Close(e)
}
