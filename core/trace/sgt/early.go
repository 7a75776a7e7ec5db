package sgt

import (
	"errors"
	"io"
	"runtime"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
)

// early contains the first rows of a chunk that a goroutine decodes in advance. Chunks are
// independent, so on several processors, a reader can decode the next chunks while it returns the
// rows of the current chunk.
//
// A chunk of a regular loop has far more rows than bytes. The goroutine therefore stops when the
// columns are full, and the reader resumes the decoder later.
type early struct {
	columns columns
	c       *chunk
	d       *decoder
	plans   []plan
	rows    int           // number of rows decoded so far
	at      int           // number of rows returned so far
	tickets []earlyTicket // the tickets of the decoded rows
	ticket  int           // index of the current ticket
	ended   bool          // whether all rows of the chunk have been decoded
	err     error         // the error that ended decoding, or nil
	done    chan struct{} // the goroutine sends a value when it ends
	decode  func()        // the function that the goroutine executes, stored so that starting a goroutine allocates nothing
}

func newEarly() *early {
	e := &early{done: make(chan struct{}, 1)}
	e.decode = func() {
		if e.err = e.fill(); e.err != nil {
			e.ended = true
		}
		e.done <- struct{}{}
	}
	return e
}

type earlyTicket struct {
	ticket uint64
	from   int
}

// earlyLimit limits how much a reader decodes in advance.
type earlyLimit struct {
	chunks int // maximum number of chunks that are decoded in advance
	rows   int // maximum number of rows of each chunk
}

// earlyHere returns the best limit for this machine: one chunk per processor, plus the current
// chunk. Analyses are too slow to benefit from more than five chunks.
func earlyHere() earlyLimit {
	n := runtime.GOMAXPROCS(0)
	if n == 1 || runtime.GOARCH == "wasm" {
		return earlyLimit{}
	}
	return earlyLimit{chunks: min(n+1, 5), rows: 1 << 17}
}

// startEarly starts to decode a chunk in advance.
func (r *Reader) startEarly(c *chunk) {
	if r.earlies >= r.early.chunks {
		return
	}
	r.earlies++
	e := r.reused.early()
	e.c, e.d, e.plans = c, r.reused.decoder(), r.plans[:c.known.blocks]
	e.rows, e.at, e.tickets, e.ticket, e.ended = 0, 0, e.tickets[:0], 0, false
	// Regular code has more rows per byte, but the reader decodes the remaining rows quickly.
	rows := min(c.references, 8*c.contentBytes())
	if r.kinds&trace.EventKinds != 0 {
		// additional rows for the entry of the block, and for the call or return of the function
		rows += 3 * c.steps
	}
	e.resize(int(min(rows, uint64(r.early.rows))), c.known.hasArg)
	c.early = e
	go e.decode()
}

func (e *early) resize(rows int, arg bool) {
	c := &e.columns
	rows = max(rows, 1)
	c.addr, c.bytes, c.kind, c.site = sized(c.addr, rows), sized(c.bytes, rows), sized(c.kind, rows), sized(c.site, rows)
	if !arg {
		c.arg = nil
		return
	}
	c.arg = sized(c.arg, rows)
	clear(c.arg)
}

// sized returns a column of n rows. If the given column has enough memory, the result uses this
// memory.
func sized[T any](column []T, n int) []T {
	if cap(column) < n {
		return make([]T, n)
	}
	return column[:n]
}

// fill decodes the chunk until the columns are full.
func (e *early) fill() error {
	d := e.d
	e.tickets = append(e.tickets, earlyTicket{e.c.firstTicket, 0})
	if err := d.start(e.c, e.plans); err != nil {
		return err
	}
	for e.rows < len(e.columns.addr) {
		switch {
		case len(d.pending.rows) > 0:
			e.rows = d.drain(&e.columns, e.rows)
		case d.ticketDone() && d.steps == 0:
			e.ended = true
			return d.end()
		case d.ticketDone():
			if err := d.nextTicket(); err != nil {
				return err
			}
			e.tickets = append(e.tickets, earlyTicket{d.ticketNow, e.rows})
		default:
			var err error
			if e.rows, d.ticketSteps, err = d.fill(&e.columns, e.rows, d.ticketSteps); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyRows copies rows of the current ticket to c. The parameter "row" is the index in c of the
// first copied row. The result is the index after the last copied row.
func (e *early) copyRows(c *columns, row int) int {
	end := e.rows
	if e.ticket+1 < len(e.tickets) {
		end = e.tickets[e.ticket+1].from
	}
	from := &e.columns
	n := copy(c.addr[row:], from.addr[e.at:end])
	copy(c.bytes[row:], from.bytes[e.at:end])
	copy(c.kind[row:], from.kind[e.at:end])
	copy(c.site[row:], from.site[e.at:end])
	if c.arg != nil && from.arg != nil {
		copy(c.arg[row:], from.arg[e.at:end])
	}
	e.at += n
	return row + n
}

// runEarly copies rows that were decoded in advance from a lane to c. It stops when a different
// lane has the next row or c is full. The result mayContinue reports whether the lane may return
// further rows.
func (r *Reader) runEarly(l *lane, c *columns, row int, limit place) (next int, mayContinue bool) {
	e := l.early
	for row < len(c.addr) {
		from := row
		row = e.copyRows(c, row)
		l.rows += uint64(row - from)
		switch more := e.ticket+1 < len(e.tickets); {
		case more && e.at == e.tickets[e.ticket+1].from:
			e.ticket++
			if l.ticket = e.tickets[e.ticket].ticket; limit.before(l.place()) {
				r.siftDown(0)
				return row, false
			}
		case !more && e.at == e.rows && e.ended:
			return r.endChunk(l, e.err, row), false
		case !more && e.at == e.rows:
			r.endEarly(l)
			return row, true
		}
	}
	return row, true
}

// endEarly releases the memory of a lane's rows that were decoded in advance.
func (r *Reader) endEarly(l *lane) {
	if l.early != nil {
		r.earlies--
		r.reused.earlies = append(r.reused.earlies, l.early)
		l.early = nil
	}
}

// reused contains objects of finished chunks that later chunks can reuse.
type reused struct {
	chunks   []*chunk
	decoders []*decoder
	earlies  []*early
	split    bool // the value of decoder.split in new decoders
}

// reuse removes the last entry from a pool and returns it, or returns a new entry if the pool is
// empty.
func reuse[T any](pool *[]*T, create func() *T) *T {
	last := len(*pool) - 1
	if last < 0 {
		return create()
	}
	entry := (*pool)[last]
	*pool = (*pool)[:last]
	return entry
}

func (m *reused) chunk() *chunk { return reuse(&m.chunks, func() *chunk { return &chunk{} }) }

func (m *reused) decoder() *decoder {
	return reuse(&m.decoders, func() *decoder { return &decoder{split: m.split} })
}

func (m *reused) early() *early { return reuse(&m.earlies, newEarly) }

// takeBack stores a finished chunk and its decoder for reuse. The decoder may be nil.
func (m *reused) takeBack(c *chunk, d *decoder) {
	m.chunks = append(m.chunks, c)
	if d != nil {
		m.decoders = append(m.decoders, d)
	}
}

var errContent = errors.New("the length of the content differs from the length in the frame header")

// start decompresses a chunk and prepares to decode its steps.
func (d *decoder) start(c *chunk, plans []plan) error {
	if err := d.unpack(c); err != nil {
		return err
	}
	return d.begin(c, plans)
}

// unpack decompresses the content of a chunk. LZ4 expands a byte to at most 255 bytes, so unpack
// allocates a limited amount of memory even if the length in the header is wrong.
func (d *decoder) unpack(c *chunk) error {
	n := c.contentBytes()
	if n > 255*uint64(len(c.packed)) {
		return errContent
	}
	if uint64(cap(d.content)) < n+slack {
		d.content = make([]byte, n+slack)
	}
	d.content = d.content[:n+slack]
	d.packed.Reset(c.packed)
	if d.unpacker == nil {
		d.unpacker = lz4.NewReader(nil)
	}
	d.unpacker.Reset(&d.packed)
	if _, err := io.ReadFull(d.unpacker, d.content[:n]); err != nil {
		return err
	}
	// The library verifies the checksum only during a read after the last byte.
	if extra, err := d.unpacker.Read(d.content[n : n+1]); extra > 0 || err == nil {
		return errContent
	} else if err != io.EOF {
		return err
	}
	clear(d.content[n:])
	return nil
}
