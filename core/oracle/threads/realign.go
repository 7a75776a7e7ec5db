// Package threads puts the references of a multi-threaded run into a defined order. The run can
// then be compared with predictions of package multicore.
//
// In a recorded trace with several threads, the references are in the order in which a machine
// executed them, possibly on fewer processors than there are threads. The order hardly affects
// which references each thread makes between two barriers, but it affects the contents of shared
// caches. [Realign] keeps the references of each thread, and changes how the threads are
// interleaved:
//
//  1. Records outside of parallel regions keep their order.
//  2. From a fork (ParallelBegin) up to the join (ParallelEnd), the records of each thread are kept
//     separately. The n-th Barrier of a thread in the region begins the thread's phase n.
//  3. At the join, the phases are returned one after the other. Within a phase, the records of all
//     threads are interleaved in the chosen order (package interleave). The threads are passed to
//     package interleave in ascending order of their new numbers.
//
// Threads are renumbered as cores, from 0 in order of appearance. Threads that first appear in the
// same region are numbered in the order of their OpenMP thread numbers if the positions of their
// stacks show this order (see stagger). Otherwise, these threads are numbered in the order of their
// numbers in the trace.
//
// If a thread begins a nested region, the records of the nested region belong to the current phase
// of this thread, and the barriers of the nested region begin no phase. By default, LLVM's runtime
// adds no threads to a nested region. Threads that are not in the team, but run at the same time,
// are treated as members of the team.
package threads

import (
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/trace"
)

// MostRows is the default maximum number of records in a region. A region with this many records
// occupies 1.5 GB.
const MostRows = 40 << 20

// needed contains the events that delimit regions and phases.
const needed = trace.Kinds(1<<trace.ParallelBegin | 1<<trace.ParallelEnd | 1<<trace.Barrier)

// Reader returns the records of a trace, with the records of different threads interleaved in a
// defined order. Reader implements [trace.Reader], [trace.Describer] and [trace.Selector].
type Reader struct {
	r        trace.Reader
	order    interleave.Order
	mostRows int
	kinds    trace.Kinds // the selected kinds of records
	merger   *interleave.Merger

	numbers map[uint32]uint32 // new number of each thread, by number in the trace
	thread  uint32            // the thread that was looked up last, and its new number
	number  uint32
	program trace.Program // the program that Header returns

	in    *trace.Batch // current batch of the trace
	at    int          // index of the next row in the batch
	err   error        // error to return after the rows of the batch and the collected rows
	ended bool         // whether the trace has ended with err

	open    bool   // whether a region is being collected
	master  uint32 // the thread that forked the region
	rows    int    // number of rows of the region so far
	members []*member
	fresh   []*member // members that do not have a number yet
	recent  *member   // the member that was looked up last

	phases  int // number of phases of the region that is being returned; 0: no region
	phase   int // number of the next phase
	merging bool
	cores   []uint32
	streams []interleave.Stream
	kept    []int32 // scratch space of selectKinds: the rows to keep
}

// member is a thread of the current region.
type member struct {
	thread uint32       // number of the thread in the trace
	number uint32       // new number of the thread, known when the region has ended
	rows   *trace.Batch // all rows of the thread in the region
	phases []int        // first row of each phase
	depth  int          // number of nested regions that are open
	// distance from the top of the stack to the highest stack address that is used in the region;
	// 0: unknown
	fromTop trace.Addr
	from    int // the rows [from, to) belong to the phase that is being returned
	to      int
}

// RegionError reports that a region has more records than the limit.
type RegionError struct{ MostRows int }

func (e *RegionError) Error() string {
	return "a parallel region has more than " + strconv.Itoa(e.MostRows) + " records; trace a smaller input, or allow more records"
}

// Realign returns a reader of the records of r in the order o, which must be valid. A region may
// have up to mostRows records, or up to [MostRows] if mostRows < 1; a larger region causes a
// *RegionError. After the call, only the returned reader may read from r.
func Realign(r trace.Reader, o interleave.Order, mostRows int) *Reader {
	if mostRows < 1 {
		mostRows = MostRows
	}
	a := &Reader{r: r, order: o, mostRows: mostRows, merger: interleave.New(o), in: trace.NewBatch(0), numbers: map[uint32]uint32{}}
	a.Select(trace.AllKinds)
	return a
}

// Select sets the kinds of records to read.
func (a *Reader) Select(kinds trace.Kinds) {
	a.kinds = kinds
	ask := kinds | needed
	if a.order.Policy >= interleave.ByBlock {
		ask |= 1 << trace.BlockEntry
	}
	if ask.Has(trace.BlockEntry) {
		ask &^= 1 << trace.BareBlock
	}
	if s, ok := a.r.(trace.Selector); ok {
		s.Select(ask)
	}
}

// Header returns the header of the trace. The header contains the new thread numbers.
func (a *Reader) Header() trace.Header {
	var h trace.Header
	if d, ok := a.r.(trace.Describer); ok {
		h = d.Header()
	}
	h.Threads, h.Sliced = true, false
	if h.Program == nil {
		return h
	}
	a.program = *h.Program
	a.program.Threads = make([]trace.Thread, 0, len(a.numbers))
	for _, t := range h.Program.Threads {
		if n, ok := a.numbers[t.Number]; ok {
			t.Number = n
			a.program.Threads = append(a.program.Threads, t)
		}
	}
	slices.SortFunc(a.program.Threads, func(x, y trace.Thread) int { return cmp.Compare(x.Number, y.Number) })
	h.Program = &a.program
	return h
}

// Next implements [trace.Reader].
func (a *Reader) Next(b *trace.Batch) error {
	b.Reset()
	for b.Len() == 0 {
		err := a.fill(b)
		a.selectKinds(b)
		if b.Len() > 0 {
			return nil // the error is returned by the next call
		}
		if err != nil {
			if !a.ended {
				a.err = nil
			}
			b.Reset()
			return err
		}
	}
	return nil
}

// fill appends rows to an empty batch until it is full.
func (a *Reader) fill(b *trace.Batch) error {
	for b.Len() < b.Cap() {
		if a.phases > 0 {
			if err := a.appendRegion(b); err != nil {
				return err
			}
			continue
		}
		if a.at == a.in.Len() {
			if a.err == nil {
				a.err = a.r.Next(a.in)
				a.at = 0
				a.ended = a.err != nil && !trace.IsSyntax(a.err)
			}
			if a.err != nil && a.open && a.ended {
				a.endRegion() // the program ended within a region
				continue
			}
			if a.err != nil {
				return a.err
			}
			continue
		}
		if err := a.moveRows(b); err != nil {
			a.err, a.ended, a.at = err, true, a.in.Len()
			a.open = false
			return err
		}
	}
	return nil
}

// moveRows moves rows from the current batch. Inside a region, it moves the next rows of one thread
// to a member of the region. Outside regions, it moves the next rows to b.
func (a *Reader) moveRows(b *trace.Batch) error {
	from := a.at
	thread, kind := a.threadOf(from), a.in.Kind[from]
	if !a.open {
		a.at++
		for kind != trace.ParallelBegin && a.at < a.in.Len() && a.at-from < b.Cap()-b.Len() {
			if kind = a.in.Kind[a.at]; kind == trace.ParallelBegin {
				thread = a.threadOf(a.at)
			}
			a.at++
		}
		n := b.Len()
		b.AppendRows(a.in, from, a.at)
		b.NeedThread()
		for i, t := range b.Thread[n:] {
			b.Thread[n+i] = a.numberOf(t)
		}
		if kind == trace.ParallelBegin {
			a.open, a.master, a.rows, a.members, a.recent = true, thread, 0, a.members[:0], nil
		}
		return nil
	}
	m := a.member(thread)
	switch kind {
	case trace.ParallelBegin:
		m.depth++
	case trace.ParallelEnd:
		if m.depth == 0 && thread == a.master {
			a.endRegion() // the ParallelEnd is returned after the region
			return nil
		}
		m.depth = max(m.depth-1, 0)
	case trace.Barrier:
		if m.depth == 0 {
			m.phases = append(m.phases, m.rows.Len())
		}
	}
	a.at++
	for a.at < a.in.Len() && a.threadOf(a.at) == thread && !needed.Has(a.in.Kind[a.at]) {
		a.at++
	}
	if a.rows += a.at - from; a.rows > a.mostRows {
		return &RegionError{MostRows: a.mostRows}
	}
	rows := *a.in
	rows.Thread = nil // the merger sets the thread numbers
	m.rows.AppendRows(&rows, from, a.at)
	return nil
}

func (a *Reader) threadOf(row int) uint32 {
	if a.in.Thread == nil {
		return 0
	}
	return a.in.Thread[row]
}

// member returns the member of the region for a thread, and adds the member if necessary.
func (a *Reader) member(thread uint32) *member {
	if a.recent != nil && a.recent.thread == thread {
		return a.recent
	}
	i, found := slices.BinarySearchFunc(a.members, thread, func(m *member, thread uint32) int {
		return cmp.Compare(m.thread, thread)
	})
	if !found {
		n := len(a.members)
		if n < cap(a.members) {
			a.members = a.members[:n+1] // reuse a member of an earlier region
		} else {
			a.members = append(a.members, nil)
		}
		m := a.members[n]
		if m == nil {
			m = &member{rows: trace.NewBatch(0)}
		}
		m.thread, m.depth, m.fromTop, m.phases = thread, 0, 0, append(m.phases[:0], 0)
		m.rows.Resize(0)
		copy(a.members[i+1:], a.members[i:n])
		a.members[i] = m
	}
	a.recent = a.members[i]
	return a.recent
}

// stagger is the difference, in bytes, between the positions of stack frames in consecutive OpenMP
// threads, relative to the tops of their stacks. A thread with a higher number has its frames at a
// higher position. LLVM's runtime offsets stacks so that threads use different cache sets
// (KMP_STKOFFSET, 64 by default). A trace numbers threads in the order in which they start.
// Therefore, only this offset shows the OpenMP number of a thread.
const stagger = 64

// numberNewMembers assigns new thread numbers to the members without a number. The members are
// numbered in OpenMP order if their stacks show this order.
func (a *Reader) numberNewMembers() {
	fresh := a.fresh[:0]
	for _, m := range a.members {
		if _, known := a.numbers[m.thread]; !known {
			fresh = append(fresh, m)
		}
	}
	a.fresh = fresh
	if len(fresh) == 0 {
		return
	}
	for _, t := range a.describedThreads() {
		for _, m := range fresh {
			if m.thread == t.Number {
				m.setFromTop(t)
			}
		}
	}
	slices.SortStableFunc(fresh, func(x, y *member) int { return -cmp.Compare(x.fromTop, y.fromTop) })
	for i, m := range fresh {
		if m.fromTop == 0 || i > 0 && fresh[i-1].fromTop-m.fromTop != stagger {
			slices.SortFunc(fresh, func(x, y *member) int { return cmp.Compare(x.thread, y.thread) })
			break
		}
	}
	for _, m := range fresh {
		a.numberOf(m.thread)
	}
}

// describedThreads returns the descriptions of threads that the trace has provided so far.
func (a *Reader) describedThreads() []trace.Thread {
	if d, ok := a.r.(trace.Describer); ok {
		if p := d.Header().Program; p != nil {
			return p.Threads
		}
	}
	return nil
}

// setFromTop computes fromTop from the bounds of the stack of thread t.
func (m *member) setFromTop(t trace.Thread) {
	m.fromTop = 0
	for i, addr := range m.rows.Addr {
		if addr >= t.StackLow && addr < t.StackHigh && m.rows.Kind[i].IsReference() {
			if d := t.StackHigh - addr; m.fromTop == 0 || d < m.fromTop {
				m.fromTop = d
			}
		}
	}
}

func (a *Reader) numberOf(thread uint32) uint32 {
	if thread == a.thread && len(a.numbers) > 0 {
		return a.number
	}
	n, ok := a.numbers[thread]
	if !ok {
		n = uint32(len(a.numbers))
		a.numbers[thread] = n
	}
	a.thread, a.number = thread, n
	return n
}

// endRegion ends the current region, and prepares its phases for output.
func (a *Reader) endRegion() {
	a.open, a.phases, a.phase, a.merging = false, 1, 0, false
	for _, m := range a.members {
		a.phases = max(a.phases, len(m.phases))
		m.phases = append(m.phases, m.rows.Len())
	}
	a.numberNewMembers()
	for _, m := range a.members {
		m.number = a.numberOf(m.thread)
	}
	slices.SortFunc(a.members, func(x, y *member) int { return cmp.Compare(x.number, y.number) })
}

// appendRegion appends records of the completed region to b until b is full or all phases have been
// returned.
func (a *Reader) appendRegion(b *trace.Batch) error {
	for b.Len() < b.Cap() {
		if !a.merging {
			if a.phase == a.phases {
				a.phases = 0
				return nil
			}
			a.cores, a.streams = a.cores[:0], a.streams[:0]
			for _, m := range a.members {
				if a.phase+1 < len(m.phases) {
					m.from, m.to = m.phases[a.phase], m.phases[a.phase+1]
					a.cores, a.streams = append(a.cores, m.number), append(a.streams, m)
				}
			}
			a.merger.Begin(a.cores, a.streams)
			a.phase++
			a.merging = true
		}
		if err := a.merger.Fill(b); err == io.EOF {
			a.merging = false
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Next implements interleave.Stream. The first call returns all records of the thread in the phase.
func (m *member) Next() (b *trace.Batch, from, to int, err error) {
	if m.from == m.to {
		return nil, 0, 0, io.EOF
	}
	from, m.from = m.from, m.to
	return m.rows, from, m.to, nil
}

// selectKinds removes the rows whose kinds were not selected.
func (a *Reader) selectKinds(b *trace.Batch) {
	a.kept = a.kept[:0]
	for i, k := range b.Kind {
		if a.kinds.Has(k) {
			a.kept = append(a.kept, int32(i))
		}
	}
	if len(a.kept) < b.Len() {
		b.Select(a.kept)
	}
}
