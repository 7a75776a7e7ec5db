package sgt

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Options configures reading. With the zero value, a reader reads everything that can be read.
type Options struct {
	// Strict makes the reader stop at the first chunk that cannot be read. Without Strict, such chunks
	// are omitted, and the error replaces io.EOF at the end.
	Strict bool
}

// Reader reads a container from its beginning, and returns rows in the order of tickets. Chunks
// remain compressed until their rows are needed.
type Reader struct {
	name    string
	options Options
	source  source
	ended   error  // the error at which reading ended; io.EOF if the file is complete; nil before the end
	floor   uint64 // lower bound of the tickets in unread chunks

	*metadata
	planner
	lanes   map[uint32]*lane
	turn    []*lane // heap of lanes, ordered by their next step
	reused  reused
	each    func(frame) error // called for all frames except CHNK frames; may be nil
	latest  *chunkTables      // the tables that precede the last chunk that was read
	now     *chunkTables      // the tables that precede the last returned rows; nil if no rows have been returned
	shown   metadata          // copy of the tables in the field "now"; at the end of the file, all tables
	ahead   *chunk            // the chunk that was read in advance, or nil
	early   earlyLimit
	earlies int // number of chunks that are decoded in advance and have remaining rows
	lost    Lost
	err     error // the error that ended the trace
	apart   movablePosition
}

// source returns chunks in file order, and passes other frames to the reader.
type source interface {
	next(r *Reader) (*chunk, error)
	at() uint64 // number of bytes read
}

// Lost describes the unreadable parts of a file.
type Lost struct {
	Chunks     uint64
	References uint64 // number of references in the lost chunks, if it is known
	Frames     uint64 // number of lost frames other than chunks
	First      error  // the error in the first lost part; nil if no part is lost
	Offset     uint64 // offset of the first lost frame
}

// lane contains the chunks of one thread that have not been read completely.
type lane struct {
	thread uint32
	ticket uint64 // ticket of the next step
	queue  []*chunk
	d      *decoder // decoder of the first chunk; nil if decoding has not started
	// rows that were decoded in advance, or nil; the decoder continues after these rows
	early *early
	rows  uint64 // number of rows of the first chunk that have been returned
}

// NewReader returns a reader of the container in r. Errors refer to the trace by the given name.
func NewReader(name string, r io.Reader, o Options) *Reader {
	return newReader(name, o, &stream{feed: feed{r: r}}, &metadata{})
}

func newReader(name string, o Options, s source, t *metadata) *Reader {
	r := &Reader{
		name: name, options: o, source: s, metadata: t,
		planner: planner{kinds: trace.AllKinds},
		lanes:   map[uint32]*lane{},
		reused:  reused{split: runtime.GOARCH == "wasm"},
	}
	if !o.Strict { // a strict reader stops at the first damaged part
		r.early = earlyHere()
	}
	return r
}

// Select selects kinds of rows. Call Select before the first call to Next.
func (r *Reader) Select(kinds trace.Kinds) { r.kinds = kinds }

// Expect sets [trace.Program.ThreadCount] from the outline of the whole trace. Call Expect before
// the first call to Next.
func (r *Reader) Expect(o trace.Outline) { r.program.ThreadCount = o.Threads }

// Header describes the trace. The header contains only the content of frames that precede the last
// returned rows, so it does not depend on how far the reader has read ahead.
func (r *Reader) Header() trace.Header {
	t, hasPC := r.metadata, r.hasPC
	if r.now != nil {
		t, hasPC = &r.shown, r.now.hasPC
	}
	return trace.Header{
		Format: "sgt", Sites: true, PCs: hasPC,
		Threads: !t.noThreads, Sizes: !t.noSizes,
		Program: &t.program, Capture: t.facts,
		Sliced: slices.Contains(t.facts, trace.Fact{Name: "order", Value: "sliced"}),
		Extent: trace.ExtentOf(t.facts),
	}
}

// Ending describes how the run ended. Call Ending after all rows have been read.
func (r *Reader) Ending() Ending { return r.ending }

// Lost describes the unreadable parts that have been found so far.
func (r *Reader) Lost() Lost { return r.lost }

// Next implements [trace.Reader]. If a file is truncated or damaged, Next returns everything that
// can be read, and then a [*trace.DamageError].
func (r *Reader) Next(b *trace.Batch) error {
	b.Reset()
	if r.err != nil {
		return r.err
	}
	b.Resize(b.Cap())
	row, c := 0, columns{}
	for row < b.Len() {
		l := r.top()
		if l == nil {
			r.err = r.end()
			r.shown = *r.metadata
			break
		}
		chunk := r.apart.chunk(l.queue[0].at)
		if k := l.queue[0].known; r.hasNewItems(k) {
			if row > 0 {
				break
			}
			r.now, r.shown = k, k.metadata
		}
		if r.apart.is {
			if row > 0 && chunk != r.apart.here.Chunk {
				break
			}
			if row == 0 && !r.apart.limitBatch(b, chunk) {
				b.Resize(0)
				return trace.ErrThere
			}
		}
		if row == 0 {
			c = r.addColumns(b)
		}
		next := r.run(l, &c, row)
		if b.Thread != nil {
			fillThread(b.Thread[row:next], l.thread)
		}
		if next > row {
			r.apart.advance(chunk, next-row)
		}
		row = next
	}
	b.Resize(row)
	if b.PC != nil {
		r.writePCs(b.PC, b.Kind, b.Site)
	}
	if row == 0 {
		return r.err
	}
	return nil
}

// addColumns adds to b the optional columns for which the file contains values.
func (r *Reader) addColumns(b *trace.Batch) columns {
	b.NeedSite()
	if !r.now.noThreads {
		b.NeedThread()
	}
	if r.now.hasPC {
		b.NeedPC()
	}
	if r.now.hasArg {
		b.NeedArg()
	}
	return columns{addr: b.Addr, bytes: b.Bytes, kind: b.Kind, site: b.Site, arg: b.Arg}
}

func fillThread(column []uint32, thread uint32) {
	if len(column) > 0 {
		column[0] = thread
		repeatColumn(column, 0, 1, len(column))
	}
}

// top returns the lane that contains the next step, or nil at the end. It reads further chunks as
// long as they may contain an earlier step.
func (r *Reader) top() *lane {
	for {
		if len(r.turn) > 0 && r.ready() {
			return r.turn[0]
		}
		if r.ended != nil {
			return nil
		}
		c, err := r.read()
		if err != nil {
			r.ended = err
			continue
		}
		r.floor = max(r.floor, c.floor)
		r.enqueue(c)
	}
}

// ready reports whether rows can be returned without reading further chunks: either the file has
// been read completely, or the first lane is known to contain the next step, and enough chunks are
// being decoded in advance.
func (r *Reader) ready() bool {
	return r.ended != nil || r.turn[0].ticket < r.floor && r.earlies >= r.early.chunks
}

func (r *Reader) enqueue(c *chunk) {
	r.extend(&r.program)
	r.recordTables()
	c.known = r.latest
	l := r.lanes[c.thread]
	if l == nil {
		l = &lane{thread: c.thread}
		r.lanes[c.thread] = l
	}
	if len(r.turn) > 0 {
		r.startEarly(c)
	}
	if l.queue = append(l.queue, c); len(l.queue) == 1 {
		l.ticket = c.firstTicket
		r.turn = append(r.turn, l)
		r.siftUp(len(r.turn) - 1)
	}
}

// run writes the rows of a lane until a different lane has the next step or c is full.
func (r *Reader) run(l *lane, c *columns, row int) int {
	limit := r.limit()
	for row < len(c.addr) {
		if l.d == nil {
			if err := r.begin(l); err != nil {
				return r.endChunk(l, err, row)
			}
		}
		if l.early != nil {
			var goes bool
			if row, goes = r.runEarly(l, c, row, limit); !goes {
				return row
			}
			continue
		}
		d := l.d
		switch {
		case len(d.pending.rows) > 0:
			row = d.drain(c, row)
			continue
		case d.ticketDone() && d.steps == 0:
			return r.endChunk(l, d.end(), row)
		case d.ticketDone():
			if err := d.nextTicket(); err != nil {
				return r.endChunk(l, err, row)
			}
			if l.ticket = d.ticketNow; limit.before(l.place()) {
				r.siftDown(0)
				return row
			}
		}
		from := row
		var err error
		row, d.ticketSteps, err = d.fill(c, row, d.ticketSteps)
		l.rows += uint64(row - from)
		if err != nil {
			return r.endChunk(l, err, row)
		}
	}
	return row
}

// step decodes the next step. The values are valid until the next call.
func (r *Reader) step() (l *lane, block uint32, values []uint64, err error) {
	r.early = earlyLimit{} // do not decode in advance, because that would convert the steps to rows
	for {
		if l = r.top(); l == nil {
			return nil, 0, nil, r.end()
		}
		if l.d == nil {
			if err := r.begin(l); err != nil {
				r.endChunk(l, err, 0)
				continue
			}
		}
		d := l.d
		if d.ticketSteps == 0 {
			if d.steps == 0 {
				r.endChunk(l, d.end(), 0)
				continue
			}
			if err := d.nextTicket(); err != nil {
				r.endChunk(l, err, 0)
				continue
			}
			if l.ticket = d.ticketNow; r.limit().before(l.place()) {
				r.siftDown(0)
				continue
			}
		}
		if block, values, err = d.one(); err == nil {
			return l, block, values, nil
		}
		r.endChunk(l, err, 0)
	}
}

// begin decompresses the first chunk of a lane, or waits for its rows.
func (r *Reader) begin(l *lane) error {
	c := l.queue[0]
	l.rows = 0
	if l.early = c.early; l.early != nil {
		<-l.early.done
		l.d, c.early = l.early.d, nil
		return nil
	}
	l.d = r.reused.decoder()
	return l.d.start(c, r.plans[:c.known.blocks])
}

// endChunk finishes the first chunk of a lane, and returns the parameter "row" unchanged. If the
// parameter err is not nil, the rest of the chunk counts as lost.
func (r *Reader) endChunk(l *lane, err error, row int) int {
	if c := l.queue[0]; err != nil {
		r.recordLoss(Lost{Chunks: 1, References: c.references - min(c.references, l.rows), First: err, Offset: c.at})
	}
	r.drop(l)
	return row
}

// recordLoss records that a part of the file cannot be read.
func (r *Reader) recordLoss(l Lost) {
	if r.lost.First == nil {
		r.lost.First, r.lost.Offset = l.First, l.Offset
	}
	r.lost.Chunks += l.Chunks
	r.lost.References += l.References
	r.lost.Frames += l.Frames
	if r.options.Strict {
		r.turn, r.ended = r.turn[:0], io.EOF
	}
}

// drop removes the first chunk of a lane, and moves the lane to its new position in the heap.
func (r *Reader) drop(l *lane) {
	r.endEarly(l)
	r.reused.takeBack(l.queue[0], l.d)
	l.d = nil
	l.queue = slices.Delete(l.queue, 0, 1)
	if len(r.turn) == 0 {
		return // an earlier error has already stopped reading
	}
	if len(l.queue) > 0 {
		l.ticket = l.queue[0].firstTicket
	} else {
		last := len(r.turn) - 1
		r.turn[0] = r.turn[last]
		r.turn = r.turn[:last]
	}
	r.siftDown(0)
}

// end returns the error that Next returns after the last row.
func (r *Reader) end() error {
	switch {
	case r.lost.First != nil && (r.ended == io.EOF || r.ended == io.ErrUnexpectedEOF):
		return r.damage(r.lost.Offset, errors.New(r.lost.String()))
	case r.ended == io.ErrUnexpectedEOF:
		cut := &trace.DamageError{File: r.name, Layer: "sgt", Offset: int64(r.source.at()), Cut: true, Err: io.ErrUnexpectedEOF}
		if r.begun && !r.ending.Known {
			cut.Err = trace.ErrCutShort
		}
		return cut
	case r.ended == errMagic || r.ended == errLength:
		return r.damage(r.source.at(), r.ended)
	}
	return r.ended
}

func (r *Reader) damage(at uint64, err error) error {
	return &trace.DamageError{File: r.name, Layer: "sgt", Offset: int64(at), Err: err}
}

// addPosition adds the file's name and the frame's position to an error in a frame.
func (r *Reader) addPosition(at uint64, err error) error {
	var version *VersionError
	if errors.As(err, &version) {
		version.File = r.name
		return version
	}
	return r.damage(at, err)
}

// String describes the lost parts in words.
func (l Lost) String() string {
	var words []string
	if l.Chunks > 0 {
		words = append(words, several(l.Chunks, "chunk")+" with "+several(l.References, "reference"))
	}
	if l.Frames > 0 {
		words = append(words, several(l.Frames, "table"))
	}
	return strings.Join(words, " and ") + " cannot be read; the first error: " + l.First.Error()
}

func several(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return decimal(n) + " " + noun + "s"
}

// Recognise reports whether head, the beginning of a file, is a container; if not, it returns the
// reason.
func Recognise(head []byte) (reason string, ok bool) {
	if BeginsWith(head, tagFile) {
		return "", true
	}
	return "bytes 8 to 11 are not SGT.", false
}

// The lanes of a reader form a binary heap, ordered by (ticket, thread).

type place struct {
	ticket uint64
	thread uint32
}

func (p place) before(other place) bool {
	return p.ticket < other.ticket || p.ticket == other.ticket && p.thread < other.thread
}

func (l *lane) place() place { return place{l.ticket, l.thread} }

// limit returns the position, as ticket and thread, up to which the first lane may continue. This
// is the position of the second lane or, if unread chunks may contain earlier steps, the floor.
func (r *Reader) limit() place {
	limit := place{^uint64(0), ^uint32(0)}
	for _, l := range r.turn[min(1, len(r.turn)):min(3, len(r.turn))] {
		if p := l.place(); p.before(limit) {
			limit = p
		}
	}
	if r.ended == nil && r.floor <= limit.ticket {
		limit = place{r.floor - 1, ^uint32(0)}
	}
	return limit
}

// siftUp moves the lane at index i up to its position in the heap.
func (r *Reader) siftUp(i int) {
	for i > 0 {
		above := (i - 1) / 2
		if !r.turn[i].place().before(r.turn[above].place()) {
			return
		}
		r.turn[i], r.turn[above] = r.turn[above], r.turn[i]
		i = above
	}
}

// siftDown moves the lane at index i down to its position in the heap.
func (r *Reader) siftDown(i int) {
	for {
		first := i
		for below := 2*i + 1; below <= 2*i+2 && below < len(r.turn); below++ {
			if r.turn[below].place().before(r.turn[first].place()) {
				first = below
			}
		}
		if first == i {
			return
		}
		r.turn[i], r.turn[first] = r.turn[first], r.turn[i]
		i = first
	}
}
