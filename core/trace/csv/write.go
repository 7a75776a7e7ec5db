package csv

import (
	"errors"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Writer writes references as a table with the columns addr and rw, and size, tid and pc if the
// trace has them. Ranges are written as loads and stores.
type Writer struct {
	w     io.Writer
	text  []byte
	has   trace.Header // the columns
	begun bool
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// ErrLateColumn reports that threads, PCs or sizes appeared in a trace after the header line was written.
var ErrLateColumn = errors.New("the trace has a column that it did not have at its beginning; convert it to a container (.sgt) first, and that to a table")

var letters = [trace.NumKinds]byte{
	trace.Load: 'r', trace.Store: 'w', trace.Modify: 'm', trace.Fetch: 'i', trace.RangeRead: 'r', trace.RangeWrite: 'w',
}

// Write writes the references of a batch of a trace with that header; a table has no events.
func (w *Writer) Write(b *trace.Batch, h trace.Header) error {
	w.text = w.text[:0]
	if !w.begun {
		w.begin(h)
	}
	if h.Threads && !w.has.Threads || h.PCs && !w.has.PCs || h.Sizes && !w.has.Sizes {
		return ErrLateColumn
	}
	for i, kind := range b.Kind {
		if kind.IsReference() {
			w.row(b, i)
		}
	}
	_, err := w.w.Write(w.text)
	return err
}

// begin writes the columns' names.
func (w *Writer) begin(h trace.Header) {
	w.has, w.begun = h, true
	w.text = append(w.text, "addr,rw"...)
	if h.Sizes {
		w.text = append(w.text, ",size"...)
	}
	if h.Threads {
		w.text = append(w.text, ",tid"...)
	}
	if h.PCs {
		w.text = append(w.text, ",pc"...)
	}
	w.text = append(w.text, '\n')
}

func (w *Writer) row(b *trace.Batch, i int) {
	text := strconv.AppendUint(append(w.text, "0x"...), b.Addr[i], 16)
	text = append(text, ',', letters[b.Kind[i]])
	if w.has.Sizes {
		text = strconv.AppendUint(append(text, ','), uint64(b.Bytes[i]), 10)
	}
	if w.has.Threads {
		text = strconv.AppendUint(append(text, ','), uint64(trace.At(b.Thread, i)), 10)
	}
	if w.has.PCs {
		text = strconv.AppendUint(append(text, ",0x"...), trace.At(b.PC, i), 16)
	}
	w.text = append(text, '\n')
}
