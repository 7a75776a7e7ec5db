// Package threads puts the references of a program's threads in an order that is known:
// the oracle that predictions of package multicore are held against.
//
// A trace of a run with several threads has them in the order in which a machine happened
// to run them, with a few processors for many threads, say. What each thread did between
// two barriers hardly hangs on that, but the order does, and shared caches tell orders
// apart. Realign keeps what each thread did and sets the order anew:
//
//  1. Rows outside of parallel regions go on as they come.
//  2. From where a thread forks (ParallelBegin) up to where it has joined (ParallelEnd),
//     the rows of each thread are kept apart. A thread's n-th Barrier in the region begins
//     its phase n.
//  3. At the join, the phases come one after the other, all threads' rows of one in the
//     order asked for (package interleave), threads ascending by their numbers.
//
// Threads are numbered anew, as cores are: from 0 in the order in which they appear, those
// that appear in the same region as OpenMP numbers them where their stacks tell (see
// stagger), or else by their numbers before.
//
// A region inside of a region on the same thread belongs to the phase around it, as do its
// barriers: LLVM's runtime gives it no further thread unless it is told to. Threads that
// are no part of the team, and do something while it runs, are taken for a part of it.
package threads

import (
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/trace"
)

// MostRows is the number of rows that a region may have unless the caller allows another:
// 1.5 GB.
const MostRows = 40 << 20

// needed are the events that tell regions and phases.
const needed = trace.Kinds(1<<trace.ParallelBegin | 1<<trace.ParallelEnd | 1<<trace.Barrier)

// Reader gives a trace with its threads in a known order. It is a [trace.Reader],
// [trace.Describer] and [trace.Selector].
type Reader struct {
	r        trace.Reader
	order    interleave.Order
	mostRows int
	kinds    trace.Kinds // that were asked for
	merger   *interleave.Merger

	numbers map[uint32]uint32 // of threads, new by old
	thread  uint32            // the last one that was looked up, and its new number
	number  uint32
	program trace.Program // for Header

	in    *trace.Batch // of r
	at    int          // the next row of it
	err   error        // what comes behind its rows and what is collected
	ended bool         // err is final

	open    bool   // a region is being collected
	master  uint32 // the thread that forked it
	rows    int    // of the region so far
	members []*member
	fresh   []*member // those of them that have no number yet
	recent  *member   // whose row was the last

	phases  int // of the region that is being given; 0: none
	phase   int // of them, the next to begin
	merging bool
	cores   []uint32
	streams []interleave.Stream
}

// member is a thread of the region at hand.
type member struct {
	thread uint32       // as in the trace
	number uint32       // the new one, known when the region is over
	rows   *trace.Batch // all its rows of the region; its columns grow
	phases []int        // where each phase of it begins
	depth  int          // regions inside of this one
	// Bytes from the highest place in its stack that it used in the region to the top; 0:
	// not known.
	fromTop trace.Addr
	from    int // the rows of the phase that is being given, as a stream
	to      int
}

// RegionError tells that a region has more rows than may be kept.
type RegionError struct{ MostRows int }

func (e *RegionError) Error() string {
	return "a parallel region has more than " + strconv.Itoa(e.MostRows) + " rows; trace a smaller input, or allow more"
}

// Realign makes a reader of the rows of r, in the order o, which passes its Check.
// Regions may have mostRows rows; < 1 means [MostRows]. The error of one with more is a
// *RegionError. r is not used otherwise from then on.
func Realign(r trace.Reader, o interleave.Order, mostRows int) *Reader {
	if mostRows < 1 {
		mostRows = MostRows
	}
	a := &Reader{r: r, order: o, mostRows: mostRows, merger: interleave.New(o), in: trace.NewBatch(0), numbers: map[uint32]uint32{}}
	a.Select(trace.AllKinds)
	return a
}

// Select names the kinds of rows that are given.
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

// Header is that of the trace, with the threads by their new numbers.
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

// Next gives the next rows.
func (a *Reader) Next(b *trace.Batch) error {
	b.Reset()
	for b.Len() == 0 {
		err := a.fill(b)
		a.selectKinds(b)
		if b.Len() > 0 {
			return nil // the error, if any, comes again
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

// fill appends rows to an empty batch, as many as there is room for or as come in one
// piece.
func (a *Reader) fill(b *trace.Batch) error {
	for b.Len() < b.Cap() {
		if a.phases > 0 {
			if err := a.give(b); err != nil {
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
				a.join() // the program ended in a region
				continue
			}
			if a.err != nil {
				return a.err
			}
			continue
		}
		if err := a.take(b); err != nil {
			a.err, a.ended, a.at = err, true, a.in.Len()
			a.open = false
			return err
		}
	}
	return nil
}

// take moves the next rows of a.in, of one thread, to b or to a member of the region.
func (a *Reader) take(b *trace.Batch) error {
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
		appendRows(b, a.in, from, a.at)
		b.NeedThread()
		a.renumber(b.Thread[n:])
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
			a.join() // and give the row behind the region
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
	m.keep(a.in, from, a.at)
	return nil
}

func (a *Reader) threadOf(row int) uint32 {
	if a.in.Thread == nil {
		return 0
	}
	return a.in.Thread[row]
}

// member is that of a thread, a new one if need be.
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
			a.members = a.members[:n+1] // one of a region before
		} else {
			a.members = append(a.members, nil)
		}
		m := a.members[n]
		if m == nil {
			m = &member{rows: &trace.Batch{}}
		}
		m.thread, m.depth, m.fromTop, m.phases = thread, 0, 0, append(m.phases[:0], 0)
		m.rows.Resize(0)
		copy(a.members[i+1:], a.members[i:n])
		a.members[i] = m
	}
	a.recent = a.members[i]
	return a.recent
}

// stagger is the number of bytes by which each thread's frames lie higher in its stack than
// those of OpenMP's thread before it: LLVM's runtime has every thread keep lines of another
// set (KMP_STKOFFSET, 64 unless it is set). A trace numbers threads as they happen to
// begin, so that this alone tells which is which.
const stagger = 64

// numberNew numbers the members that are new, in OpenMP's order if their stacks tell.
func (a *Reader) numberNew() {
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
	for _, t := range a.threadsOf() {
		for _, m := range fresh {
			if m.thread == t.Number {
				m.depthOf(t)
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

// threadsOf are what the trace tells of threads so far.
func (a *Reader) threadsOf() []trace.Thread {
	if d, ok := a.r.(trace.Describer); ok {
		if p := d.Header().Program; p != nil {
			return p.Threads
		}
	}
	return nil
}

// depthOf finds how far below the top of its stack, t, the thread's first frame lies.
func (m *member) depthOf(t trace.Thread) {
	m.fromTop = 0
	for i, addr := range m.rows.Addr {
		if addr >= t.StackLow && addr < t.StackHigh && m.rows.Kind[i].IsReference() {
			if d := t.StackHigh - addr; m.fromTop == 0 || d < m.fromTop {
				m.fromTop = d
			}
		}
	}
}

// renumber gives threads their new numbers, which are the next for new ones.
func (a *Reader) renumber(threads []uint32) {
	for i, t := range threads {
		threads[i] = a.numberOf(t)
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

// join ends the region: its phases are given from now on.
func (a *Reader) join() {
	a.open, a.phases, a.phase, a.merging = false, 1, 0, false
	for _, m := range a.members {
		a.phases = max(a.phases, len(m.phases))
		m.phases = append(m.phases, m.rows.Len())
	}
	a.numberNew()
	for _, m := range a.members {
		m.number = a.numberOf(m.thread)
	}
	slices.SortFunc(a.members, func(x, y *member) int { return cmp.Compare(x.number, y.number) })
}

// give appends rows of the region to b.
func (a *Reader) give(b *trace.Batch) error {
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

// Next gives the thread's rows of the phase.
func (m *member) Next() (b *trace.Batch, from, to int, err error) {
	if m.from == m.to {
		return nil, 0, 0, io.EOF
	}
	from, m.from = m.from, m.to
	return m.rows, from, m.to, nil
}

// selectKinds drops the rows of kinds that nobody asked for.
func (a *Reader) selectKinds(b *trace.Batch) {
	kept := 0
	for i, k := range b.Kind {
		if !a.kinds.Has(k) {
			continue
		}
		if kept < i {
			b.Addr[kept], b.Bytes[kept], b.Kind[kept] = b.Addr[i], b.Bytes[i], k
			move(b.Thread, kept, i)
			move(b.Site, kept, i)
			move(b.Arg, kept, i)
			move(b.PC, kept, i)
		}
		kept++
	}
	b.Resize(kept)
}

func move[T any](column []T, to, from int) {
	if column != nil {
		column[to] = column[from]
	}
}

// appendRows adds rows of another batch to one that has room for them.
func appendRows(b, of *trace.Batch, from, to int) {
	if of.Thread != nil {
		b.NeedThread()
	}
	if of.Site != nil {
		b.NeedSite()
	}
	if of.Arg != nil {
		b.NeedArg()
	}
	if of.PC != nil {
		b.NeedPC()
	}
	n := b.Len()
	b.Resize(n + to - from)
	copy(b.Addr[n:], of.Addr[from:to])
	copy(b.Bytes[n:], of.Bytes[from:to])
	copy(b.Kind[n:], of.Kind[from:to])
	put(b.Thread, of.Thread, n, from, to)
	put(b.Site, of.Site, n, from, to)
	put(b.Arg, of.Arg, n, from, to)
	put(b.PC, of.PC, n, from, to)
}

func put[T any](column, of []T, at, from, to int) {
	switch {
	case column == nil:
	case of == nil:
		clear(column[at:])
	default:
		copy(column[at:], of[from:to])
	}
}

// keep adds rows of a batch to those of the member, without their threads.
func (m *member) keep(of *trace.Batch, from, to int) {
	b := m.rows
	before := b.Len()
	b.Addr = append(b.Addr, of.Addr[from:to]...)
	b.Bytes = append(b.Bytes, of.Bytes[from:to]...)
	b.Kind = append(b.Kind, of.Kind[from:to]...)
	b.Site = extend(b.Site, of.Site, before, from, to)
	b.Arg = extend(b.Arg, of.Arg, before, from, to)
	b.PC = extend(b.PC, of.PC, before, from, to)
}

// extend adds a part of an optional column; zeros where it or what was before is missing.
func extend[T any](column, of []T, before, from, to int) []T {
	switch {
	case of != nil && column == nil:
		column = make([]T, before, 2*before+to-from)
		fallthrough
	case of != nil:
		return append(column, of[from:to]...)
	case column == nil:
		return nil
	}
	for range to - from {
		var none T
		column = append(column, none)
	}
	return column
}
