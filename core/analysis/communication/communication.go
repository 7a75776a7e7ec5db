// Package communication reports which values one thread of a program writes and other threads use
// (MODELS §7; Kulkarni, Pai and Schuff, §3 and §4.3).
//
// A granule is a word of 8 bytes, a line, or a page of 4,096 bytes. The source of a reference to a
// granule is the last thread that wrote the granule. A reference by the thread that last wrote the
// granule has no source. The package counts
//
//   - events: every load or store that has a source;
//   - transfers: for each value, the first load by each thread that did not write the value. A
//     modify is one reference that consists of a load and a store. A store creates a new value, so
//     the overwritten value need not be transferred. The number of transfers is therefore a lower
//     bound for the amount of data that a message-passing version of the program must send.
//
// One pass covers all three sizes of granules. A reference that spans several words counts once for
// each word. Over the whole run, each granule is in one of these classes:
//
//   - private: only one thread accesses the granule;
//   - falsely shared: the granule is a line or a page, and more than half of its events are false.
//     An event is false if the accessed words themselves have no source (MODELS §7.2). A few true
//     events are allowed. For example, the main thread may clear a counter before the other threads
//     start, and print the counter after they end;
//   - read-shared: several threads access the granule, and no thread uses a value that another
//     thread wrote;
//   - producer-consumer: one thread writes the values that other threads use;
//   - migratory: several threads write values that other threads use.
//
// False sharing costs time because it causes false misses. A false miss is a false event that
// misses in a cache of any size, because another thread's store invalidated the line. If a falsely
// shared line has no false misses, the threads used the line one after another.
//
// # Method
//
// In the same pass, package sites assigns numbers to the site and the data object of each
// reference. While only one thread has accessed a line, the analysis stores only two values for
// each word: the number of references, and the site of the last store, in case a second thread uses
// the stored value. At the first reference by another thread, the analysis creates a cell for each
// word. A cell contains the last writer, a bit for each thread that used the value, and the class
// of the word. Private data therefore needs little memory, and most references need only one
// look-up in a table of lines.
//
// Threads are assigned to slots in the order of their first references. There are at most 64 slots,
// and all threads after the 63rd share the last slot. The analysis treats threads that share a slot
// as one thread, but each of these threads still uses the caches of its own core.
package communication

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Shifts that convert an address to the number of its 8-byte word or its page.
const (
	wordShift = 3
	pageShift = 12
)

const (
	words = iota
	lines
	pages
	granularities
)

// Analysis tracks the values that one thread writes and other threads use.
type Analysis struct {
	lineShift uint
	sites     *sites.Analysis // nil: see Share
	numbers   numbering
	// returns the program, which lists the threads; nil: the whole trace is analysed
	program func() *trace.Program
	off     bool // the analysis was stopped

	threads threads
	memory  memory
	flows   [granularities]flows
	pairs   pairs
	owners  owners
	windows windows
	sources sourceDepths

	done      uint64 // number of references so far
	selection rowSelection
	current   reference

	share   Share
	writers *lineWriters // nil: the analysis is not a share of depths
}

// reference is the reference that is being analysed.
type reference struct {
	thread        uint8  // the thread's slot
	number        uint32 // the thread's number
	beyond        bool   // the thread shares the last slot with a different thread
	bit           uint64 // the bit that represents the slot
	loads, stores bool
	site          uint32 // 1 + the slot of the site
	pair          uint32 // number of the pair of site and object in package sites
	object        uint32
	begin         trace.Addr // address of the memory block that contains the reference
	at            uint64     // number of the reference
	row           uint32     // index in the batch
}

// New returns an analysis that reads every batch after the analysis s has read it. If the parameter
// program is nil, the whole trace is analysed. Otherwise, the trace is analysed only if the program
// may have several threads (see [Expects]). A single-threaded trace has no communication, and
// searching it for communication would take half as long as the analysis of stack distances. If the
// number of threads is unknown, and no second thread appears in the first [Trial] references, the
// analysis stops.
func New(lineBytes uint32, s *sites.Analysis, program func() *trace.Program) *Analysis {
	a := newAnalysis(lineBytes)
	a.sites, a.numbers, a.program = s, s, program
	s.Locate(true)
	return a
}

// NewDepths returns an analysis that computes a share of the depths of lines. It needs no sites
// analysis.
func NewDepths(lineBytes uint32, share Share) *Analysis {
	a := newAnalysis(lineBytes)
	a.numbers = newProfileNumbers()
	a.Only(share)
	return a
}

func newAnalysis(lineBytes uint32) *Analysis {
	a := &Analysis{lineShift: uint(bits.TrailingZeros32(lineBytes))}
	a.memory.init(a.lineShift)
	a.windows.init()
	return a
}

var (
	_ contract.Analysis      = (*Analysis)(nil)
	_ contract.Joiner        = (*Analysis)(nil)
	_ contract.PieceConsumer = (*Analysis)(nil)
)

// Takes implements [contract.Analysis].
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) { return 0, true, true }

// Close implements [contract.Analysis]. Close does nothing, because results need all data.
func (a *Analysis) Close() {}

// Consume implements [contract.Analysis]. Consume must be called after the sites analysis has
// consumed the same batch.
func (a *Analysis) Consume(b *trace.Batch) error {
	if a.decide(b); a.off {
		return nil
	}
	a.sources.begin()
	if b.Thread == nil {
		for i := range b.Len() {
			a.countReference(i)
		}
		return nil
	}
	pairs, begins := a.rows()
	for i, addr := range b.Addr {
		a.setThread(b, i)
		bytes := uint64(max(b.Bytes[i], 1))
		if addr+bytes-1 < addr {
			bytes = 1 // the reference extends beyond the end of the address space
		}
		a.record(b, i, addr, addr+bytes-1, pairs, begins)
	}
	return nil
}

// ConsumePiece implements [contract.PieceConsumer].
func (a *Analysis) ConsumePiece(b *trace.Batch, from, end uint64) {
	if from == 0 {
		a.decide(b)
	}
	if a.off {
		return
	}
	a.sources.begin()
	if b.Thread == nil && from == 0 {
		a.countReference(0)
	}
	if b.Thread == nil {
		return
	}
	if from == 0 {
		a.setThread(b, 0)
	}
	pairs, begins := a.rows()
	a.record(b, 0, b.Addr[0]+from, b.Addr[0]+end-1, pairs, begins)
}

// rows returns the results of the sites analysis for the latest batch.
func (a *Analysis) rows() (pairs []uint32, begins []trace.Addr) {
	if a.sites == nil {
		return nil, nil
	}
	return a.sites.Rows()
}

// record records the bytes from first to last, inclusive, of the reference in row i, if they belong to
// the share. setThread must have been called for the row.
func (a *Analysis) record(b *trace.Batch, i int, first, last trace.Addr, pairs []uint32, begins []trace.Addr) {
	switch {
	case a.writers != nil:
		a.trackLines(first, last)
	case a.share.hasPage(first>>pageShift) || first>>pageShift != last>>pageShift:
		a.setSite(i, pairs, begins)
		a.recordReference(first, last)
	}
}

// Trial is the number of references after which the analysis stops if no second thread has
// appeared.
const Trial = profile.SecondThreadBy

// Expects reports whether the trace's tables list several threads, and whether they list any
// thread.
func Expects(p *trace.Program) (several, known bool) {
	switch {
	case p == nil:
		return false, false
	case p.ThreadCount > 0:
		return p.ThreadCount > 1, true
	}
	return len(p.Threads) > 1, len(p.Threads) > 1
}

// decide determines before each batch whether to continue the analysis.
func (a *Analysis) decide(b *trace.Batch) {
	if a.program == nil || b.Len() == 0 {
		return
	}
	switch several, known := Expects(a.program()); {
	case len(a.threads.numbers) > 1 || several:
		a.program = nil
	case b.Thread == nil || known || a.nextNumber(b.Len()-1) >= Trial && !a.hasSecondThread(b):
		a.turnOff()
	}
}

// nextNumber returns the reference number of row i of the next batch.
func (a *Analysis) nextNumber(i int) uint64 {
	if a.selection.rows != nil {
		return a.selection.first + uint64(a.selection.rows[i])
	}
	return a.done + uint64(i)
}

// hasSecondThread reports whether the batch contains a reference of a second thread before reference
// number Trial.
func (a *Analysis) hasSecondThread(b *trace.Batch) bool {
	first := b.Thread[0]
	if len(a.threads.numbers) > 0 {
		first = a.threads.numbers[0]
	}
	for i, t := range b.Thread {
		if a.nextNumber(i) >= Trial {
			break
		}
		if t != first {
			return true
		}
	}
	return false
}

// turnOff ends the analysis and frees its memory.
func (a *Analysis) turnOff() {
	*a = Analysis{lineShift: a.lineShift, sites: a.sites, numbers: a.numbers, off: true}
	a.sites.Locate(false)
}

const (
	loading = 1 << iota
	storing
)

// valueEffects contains, for each kind of reference, whether it loads or stores the values of
// words.
var valueEffects = [8]uint8{
	trace.Load: loading, trace.Store: storing, trace.Modify: loading | storing, trace.Fetch: loading,
	trace.RangeRead: loading, trace.RangeWrite: storing,
}

// setThread counts the reference in row i, and stores its thread and its kind in a.current.
func (a *Analysis) setThread(b *trace.Batch, i int) {
	r := &a.current
	if t := b.Thread[i]; t != a.threads.latest || !a.threads.known {
		r.thread, r.number = a.threads.slot(t), t
		r.beyond = a.threads.numbers[r.thread] != t
		r.bit = 1 << (r.thread & 63)
	}
	does := valueEffects[b.Kind[i]&7]
	r.loads, r.stores = does&loading != 0, does&storing != 0
	r.row, r.at = uint32(i), a.countReference(i)
}

// setSite stores the site and the data object of the reference in row i in a.current.
func (a *Analysis) setSite(i int, pairs []uint32, begins []trace.Addr) {
	r := &a.current
	r.site, r.object, r.begin = 1, 0, 0
	if pairs != nil {
		i = a.selection.originalRow(i)
		slot, object := a.sites.Pair(pairs[i])
		r.site, r.pair, r.object, r.begin = slot+1, a.sites.Plain(pairs[i]), object, begins[i]
	}
}

func (a *Analysis) count() {
	if a.windows.next == a.done {
		a.windows.beginWindow(a.done, &a.flows[words])
	}
	a.done++
}

// recordReference records a reference to the bytes from first to last, inclusive.
func (a *Analysis) recordReference(first, last trace.Addr) {
	if line := first >> a.lineShift; line == last>>a.lineShift {
		l := a.memory.lineOf(line, a.current.thread)
		events := a.recordLine(l, first>>wordShift, last>>wordShift)
		a.recordPage(l.page, events)
		return
	}
	a.recordLines(first, last)
}

// recordLines does the same as recordReference for a reference that spans several lines.
// recordLines counts one reference for each page that the reference touches.
func (a *Analysis) recordLines(first, last trace.Addr) {
	var events uint64
	for line := first >> a.lineShift; ; line++ {
		from, end := max(first, line<<a.lineShift), min(last, line<<a.lineShift|(1<<a.lineShift-1))
		if !a.share.hasPage(from >> pageShift) {
			if end == last {
				return
			}
			continue
		}
		l := a.memory.lineOf(line, a.current.thread)
		events += a.recordLine(l, from>>wordShift, end>>wordShift)
		if end == last || end>>pageShift != (end+1)>>pageShift {
			a.recordPage(l.page, events)
			events = 0
		}
		if end == last {
			return
		}
	}
}

// recordLine records a reference to the words first to last of a line, and returns the number of
// these words whose last writer is another thread.
func (a *Analysis) recordLine(l *line, first, last uint64) (events uint64) {
	r := &a.current
	place := a.owners.findParts(r, first, last)
	if !l.shared {
		if l.owner == r.thread && !r.beyond && a.memory.countUnshared(l, r, first, last) {
			return 0
		}
		a.memory.convertToShared(l)
		a.memory.shares.first(l.words).lastWriter = a.threads.numbers[l.owner]
	}
	events = a.recordWords(l, place, first, last)
	s := a.memory.shares.first(l.words)
	wrote := s.lastWriter
	from, miss := s.recordReference(r)
	if !from.event {
		return events
	}
	a.flows[lines].add(from, r.thread)
	place.recordLineEvent(events == 0)
	if events == 0 {
		s.falseEvents++
	}
	if events == 0 && miss {
		a.memory.tallyFor(s, l, from, r).misses++
	}
	if a.sources.stacks != nil {
		e := lineEvent{row: r.row, writer: wrote, line: l.number, from: from.thread, to: r.thread, transfer: from.transfer}
		a.sources.queue = append(a.sources.queue, e)
	}
	return events
}

// recordWords records a reference to words of a shared line.
func (a *Analysis) recordWords(l *line, place touchedParts, first, last uint64) (events uint64) {
	r := &a.current
	cells := a.memory.cells.run(l.words)
	for w := first; w <= last; w++ {
		from := cells[w&a.memory.wordMask].recordReference(r)
		if !from.event {
			continue
		}
		events++
		a.flows[words].add(from, r.thread)
		a.pairs.countsFor(from.site, r.pair, placeOf(from.thread, r.thread)).add(from)
		if from.transfer {
			place.recordTransfer(r, w, from)
		}
	}
	return events
}

// recordPage records a reference to a page. The parameter wordEvents is the number of referenced
// words whose last writer is another thread.
func (a *Analysis) recordPage(number uint32, wordEvents uint64) {
	p := a.memory.pages.first(number)
	from := p.recordReference(&a.current)
	if !from.event {
		return
	}
	a.flows[pages].add(from, a.current.thread)
	if wordEvents == 0 {
		p.falseEvents++
	}
}

// rowSelection maps the rows of a batch of sampled references to the rows of the complete batch.
type rowSelection struct {
	first uint64   // number of the first reference in the complete batch
	rows  []uint32 // the sampled rows of the complete batch, ascending; nil: all rows
}

// originalRow returns the index of row i in the complete batch.
func (m *rowSelection) originalRow(i int) int {
	if m.rows == nil {
		return i
	}
	return int(m.rows[i])
}

// Among is called after package sites has read a complete batch. Among announces that the next
// batch of this analysis contains only selected rows of the complete batch. The slice rows
// contains, for each selected row, its index in the complete batch. The parameter first is the
// number of the first reference in the complete batch. A reference that spans several lines may
// have several rows.
func (a *Analysis) Among(rows []uint32, first uint64) { a.selection = rowSelection{first, rows} }

// Reach advances the number of references to the given total, without analysing the skipped
// references.
func (a *Analysis) Reach(references uint64) {
	if a.off {
		return
	}
	for a.windows.next < references {
		a.windows.beginWindow(a.windows.next, &a.flows[words])
	}
	a.done = max(a.done, references)
}

// countReference counts the reference of a row, and returns its number.
func (a *Analysis) countReference(i int) uint64 {
	n := a.done
	if a.selection.rows != nil {
		if n = a.selection.first + uint64(a.selection.rows[i]); n < a.done {
			return n // the row belongs to the same reference as the previous row
		}
		a.Reach(n)
	}
	a.count()
	return n
}
