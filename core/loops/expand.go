package loops

import (
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// errTree is returned for a malformed tree. A Folder never builds such a tree.
var errTree = errors.New("loops: an irregular reference has fewer addresses than records")

// MostUnfolded is the maximum number of records that an [Expander] returns. At one nanosecond per
// record, this expansion would take three days.
const MostUnfolded = 1 << 48

// Trees that consist mostly of iterations without records are not expanded. The maximum number of
// iterations is maxAllBarren, plus maxBarren for each record.
const maxBarren, maxAllBarren = 64, 1 << 26

// UnfoldError reports that a tree has too many records to expand, or too many loop iterations
// without records.
type UnfoldError struct {
	Rows, Iterations float64 // approximate numbers of records and iterations
}

func (e *UnfoldError) Error() string {
	many, of, most := e.Rows, "records", "2^48"
	if e.Rows <= MostUnfolded {
		many, of, most = e.Iterations, "loop iterations, most of them without records", "2^26 plus 64 for each record"
	}
	about := "more than 10^308 "
	if !math.IsInf(many, 1) {
		about = "about " + strconv.FormatFloat(many, 'g', 3, 64) + " "
	}
	return "the loop-compressed trace has " + about + of + ", too many to expand, want at most " + most + "; analyse the compressed trace instead"
}

// Expander is a [trace.Reader] that returns the compressed records in their original order, with
// all of their fields. If any original batch had a column, all returned batches have this column.
// Missing values are 0.
type Expander struct {
	tree    *Tree
	node    int // the next node
	at      int // index of the next node's first parameter
	walk    walk
	cursors []cursor // cursor of each reference's stream
	row     int      // next row of the batch that is being filled
	err     error    // the error that ended the expansion
}

// Expand returns an expander. A tree can have several expanders. If the tree has more than
// [MostUnfolded] records, the expander returns no records, but an [*UnfoldError].
func (t *Tree) Expand() *Expander {
	e := t.expander()
	if t.rows > MostUnfolded || t.bodies > maxAllBarren+maxBarren*float64(t.rows) {
		e.err = &UnfoldError{Rows: t.Approximately(), Iterations: t.bodies}
	}
	return e
}

func (t *Tree) expander() *Expander {
	return &Expander{tree: t, walk: walk{skips: true}, cursors: make([]cursor, len(t.refs))}
}

// Next implements [trace.Reader].
func (e *Expander) Next(b *trace.Batch) error {
	b.Reset()
	if e.err != nil {
		return e.err
	}
	has := e.tree.has
	if has.thread {
		b.NeedThread()
	}
	if has.pc {
		b.NeedPC()
	}
	if has.site {
		b.NeedSite()
	}
	if has.arg {
		b.NeedArg()
	}
	b.Resize(b.Cap())
	e.row = 0
	for e.row < b.Len() && e.err == nil {
		if e.walk.depth > 0 {
			e.advance(b)
		} else {
			e.begin(b)
		}
	}
	b.Resize(e.row)
	if e.row > 0 {
		return nil
	}
	return e.err
}

func (e *Expander) begin(b *trace.Batch) {
	t := e.tree
	if e.node == len(t.nodes) {
		e.err = io.EOF
		return
	}
	s := &t.shapes.all[t.nodes[e.node]]
	p := t.params[e.at : e.at+s.params]
	e.node++
	e.at += s.params
	if !s.loop {
		e.write(b, s.ref, s.wild, p[0])
		return
	}
	if int64(p[0]) < 1 {
		return
	}
	e.walk.enter(s, p[0], p[1:])
	e.walk.settle(t.shapes.all)
}

// advance writes rows of the current loop until the loop's body or the batch ends.
func (e *Expander) advance(b *trace.Batch) {
	w := &e.walk
	t := &w.frames[w.depth-1]
	if t.flat && t.pos == 0 && e.sweep(b, t) {
		return
	}
	for e.row < b.Len() && e.err == nil {
		it := &t.items[t.pos]
		e.write(b, it.ref, it.wild, t.cur[t.at])
		t.pos++
		if t.at++; t.pos == len(t.items) || t.items[t.pos].loop {
			w.settle(e.tree.shapes.all)
			return
		}
	}
}

// sweep writes the rows of a flat loop item by item, for all complete iterations that fit in the
// batch. It returns false if no iteration fits.
func (e *Expander) sweep(b *trace.Batch, t *frame) bool {
	period := len(t.items)
	times := min(t.trips-t.done, uint64((b.Len()-e.row)/period))
	if times == 0 {
		return false
	}
	lo, hi := e.row, e.row+int(times)*period
	addrs := b.Addr[:hi]
	for j := range t.items {
		it := &t.items[j]
		e.writeConstant(b, lo+j, it.ref)
		if it.wild {
			c, s := &e.cursors[it.ref], &e.tree.streams[it.ref]
			for i := lo + j; i < len(addrs); i += period {
				var ok bool
				if addrs[i], ok = c.next(s); !ok {
					e.err = errTree // stop before the rows of this iteration are written
					return true
				}
			}
			continue
		}
		addr, step := t.cur[j], t.steps[j]
		for i := lo + j; i < len(addrs); i += period {
			addrs[i] = addr
			addr += step
		}
		t.cur[j] = addr
	}
	repeatRows(b.Bytes[lo:hi], period)
	repeatRows(b.Kind[lo:hi], period)
	repeatRows(within(b.Thread, lo, hi), period)
	repeatRows(within(b.PC, lo, hi), period)
	repeatRows(within(b.Site, lo, hi), period)
	repeatRows(within(b.Arg, lo, hi), period)
	e.row = hi
	if t.done += times; t.done == t.trips {
		t.pos, t.done = period, t.trips-1 // move to the position after the last item of the last iteration
		e.walk.settle(e.tree.shapes.all)
	}
	return true
}

func within[T any](column []T, lo, hi int) []T {
	if column == nil {
		return nil
	}
	return column[lo:hi]
}

// repeatRows fills a column with copies of its first rows. The parameter "period" is the number of
// these rows.
func repeatRows[T any](column []T, period int) {
	for done := period; done < len(column); done *= 2 {
		copy(column[done:], column[:done])
	}
}

func (e *Expander) write(b *trace.Batch, ref uint32, wild bool, addr trace.Addr) {
	if wild {
		var ok bool
		if addr, ok = e.cursors[ref].next(&e.tree.streams[ref]); !ok {
			e.err = errTree
			return
		}
	}
	b.Addr[e.row] = addr
	e.writeConstant(b, e.row, ref)
	e.row++
}

// writeConstant writes all columns of a row except the address. These columns depend only on the
// reference.
func (e *Expander) writeConstant(b *trace.Batch, i int, ref uint32) {
	r := &e.tree.refs[ref]
	b.Bytes[i], b.Kind[i] = r.Bytes, r.Kind
	if b.Thread != nil {
		b.Thread[i] = r.Thread
	}
	if b.PC != nil {
		b.PC[i] = r.PC
	}
	if b.Site != nil {
		b.Site[i] = r.Site
	}
	if b.Arg != nil {
		b.Arg[i] = r.Arg
	}
}
