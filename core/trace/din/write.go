package din

import (
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Writer writes references as din text.
type Writer struct {
	w    io.Writer
	text []byte
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// labels are those of the lines of a reference. A modify is a load and a store; the length of a
// range is lost.
var labels = [trace.NumKinds]string{
	trace.Load: "0", trace.Store: "1", trace.Modify: "01", trace.Fetch: "2", trace.RangeRead: "0", trace.RangeWrite: "1",
}

// Write writes the references of a batch; the format has no events.
func (w *Writer) Write(b *trace.Batch) error {
	w.text = w.text[:0]
	for i, kind := range b.Kind {
		if !kind.IsReference() {
			continue
		}
		for _, label := range []byte(labels[kind]) {
			w.text = strconv.AppendUint(append(w.text, label, ' '), b.Addr[i], 16)
			w.text = append(w.text, '\n')
		}
	}
	_, err := w.w.Write(w.text)
	return err
}
