package sgt

import (
	"io"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Restorer writes a container of rows that came from one: all of them, with all events
// and the tables of the program, as a folded trace gives them. The rows of a block come
// together; they become a step again. Rows of a trace that tells of no program, or whose
// tables cannot be written, are imported, see [Importer].
type Restorer struct {
	out    io.Writer
	facts  []trace.Fact
	w      *Writer
	other  *Importer // instead of w
	tables Tables
	ticket uint64 // of the next step
	rows   uint64
	step   restored
	err    error
}

// restored is the step that the rows are of.
type restored struct {
	open   bool
	block  uint32
	thread uint32
	next   uint32 // site that comes
	end    uint32
	values []uint64
	more   trace.Addr // where the row before goes on if it is one part of a large reference; 0: it is not
}

// RestoreError tells that rows are not those of whole blocks.
type RestoreError struct {
	Row  uint64
	Want string
}

func (e *RestoreError) Error() string {
	return "row " + strconv.FormatUint(e.Row, 10) + " is not one of the block that began before it, want " + e.Want +
		"; of a part of a trace, references are written by: stackglass convert"
}

// NewRestorer begins a container; facts are told besides those of the trace.
func NewRestorer(w io.Writer, facts []trace.Fact) *Restorer { return &Restorer{out: w, facts: facts} }

// Write adds the rows of a batch of a trace that has that header.
func (r *Restorer) Write(b *trace.Batch, h trace.Header) error {
	r.begin(h)
	if r.other != nil {
		return r.other.Write(b, h)
	}
	if r.err == nil {
		r.err = r.tell(h)
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

// tell writes what is new in the tables.
func (r *Restorer) tell(h trace.Header) error {
	p, t := h.Program, &r.tables
	if len(h.Capture) > t.facts {
		r.w.Facts(h.Capture[t.facts:])
		t.facts = len(h.Capture)
	}
	for t.modules < len(p.Modules) || t.blocks < len(p.Blocks) || t.functions < len(p.Functions) {
		if err := r.w.Module(AppendModule(nil, t.part(p))); err != nil {
			return err
		}
	}
	for module, first := range t.moduleOf {
		end := t.objects
		if module+1 < len(t.moduleOf) {
			end = t.moduleOf[module+1]
		}
		var addrs []trace.Addr
		for _, o := range p.Objects[first:end] {
			addrs = append(addrs, o.Addr)
		}
		for len(t.addrs) < end {
			t.addrs = append(t.addrs, 0)
		}
		if !slices.Equal(addrs, t.addrs[first:end]) {
			copy(t.addrs[first:end], addrs)
			r.w.Objects(uint32(module), addrs)
		}
	}
	for _, th := range p.Threads {
		i := slices.IndexFunc(t.threads, func(old trace.Thread) bool { return old.Number == th.Number })
		switch {
		case i < 0:
			t.threads = append(t.threads, th)
		case t.threads[i] == th:
			continue
		default:
			t.threads[i] = th
		}
		r.w.Thread(th)
	}
	if len(p.Tags) > t.tags {
		r.w.Tags(t.tags, p.Tags[t.tags:])
		t.tags = len(p.Tags)
	}
	return nil
}

// row takes a row.
func (r *Restorer) row(b *trace.Batch, i int, p *trace.Program) error {
	kind, thread, number := b.Kind[i], uint32(0), uint32(0)
	if b.Thread != nil {
		thread = b.Thread[i]
	}
	if b.Site != nil {
		number = b.Site[i]
	}
	switch kind {
	case trace.BareBlock, trace.Call, trace.Return:
		return nil // the block's flags and sites say so
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
		s.goesOn(b.Addr[i], b.Bytes[i])
		return nil
	}
	if s.open && number != s.next {
		r.pass(p, number)
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
		r.pass(p, number)
	}
	if number != s.next || thread != s.thread || p.Sites[number].Kind != kind {
		return r.wrong("site " + strconv.FormatUint(uint64(s.next), 10) + " of thread " + strconv.FormatUint(uint64(s.thread), 10))
	}
	values := [2]uint64{b.Addr[i]}
	switch {
	case !kind.IsReference() && b.Arg != nil:
		values[1] = b.Arg[i]
	case kind.IsReference():
		values[1] = uint64(b.Bytes[i])
	}
	s.values = append(s.values, values[:p.Sites[number].Values()]...)
	s.more = 0
	if kind.IsReference() && p.Sites[number].Values() == 2 {
		s.goesOn(b.Addr[i], b.Bytes[i])
	}
	s.next++
	return nil
}

// goesOn notes that a reference may be given in parts.
func (s *restored) goesOn(addr trace.Addr, bytes uint32) {
	if s.more = 0; bytes == mostBytes {
		s.more = addr + mostBytes
	}
}

// enter begins a step.
func (r *Restorer) enter(p *trace.Program, block, thread uint32) error {
	b := &p.Blocks[block]
	r.step = restored{open: true, block: block, thread: thread, next: b.FirstSite, end: b.FirstSite + b.Sites, values: r.step.values[:0]}
	if b.Sites == 0 {
		return r.finish(p)
	}
	return nil
}

// pass goes on to a site behind sites that make no row: of a worksharing loop that goes
// on.
func (r *Restorer) pass(p *trace.Program, to uint32) {
	const going = 1
	for s := &r.step; s.next != to && s.next < s.end && p.Sites[s.next].Kind == trace.LoopEnd; s.next++ {
		s.values = append(s.values, going)
	}
}

// finish writes the step.
func (r *Restorer) finish(p *trace.Program) error {
	s := &r.step
	if !s.open {
		return nil
	}
	r.pass(p, s.end)
	if s.next != s.end {
		return r.wrong("all rows of block " + strconv.FormatUint(uint64(s.block), 10))
	}
	s.open = false
	r.ticket++
	return r.w.Step(s.thread, r.ticket-1, s.block, s.values)
}

func (r *Restorer) wrong(want string) error { return &RestoreError{Row: r.rows, Want: want} }

// Close ends the container with what is known of the trace in the end.
func (r *Restorer) Close(h trace.Header, e End) error {
	r.begin(h)
	if r.other != nil {
		return r.other.Close(e)
	}
	if r.err == nil {
		r.err = r.tell(h)
	}
	if r.err == nil {
		r.err = r.finish(h.Program)
	}
	if r.err != nil {
		return r.err
	}
	return r.w.Close(e)
}
