package lackey

import (
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Writer writes references as lackey prints them, and threads as with --trace-sched=yes. A data reference
// has no PC but that of the fetch before it. Ranges become loads and stores; an unknown size is 0.
type Writer struct {
	w       io.Writer
	text    []byte
	thread  uint32
	threads bool // a thread was written
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

var prefixes = [trace.NumKinds]string{
	trace.Load: " L ", trace.Store: " S ", trace.Modify: " M ", trace.Fetch: "I  ", trace.RangeRead: " L ", trace.RangeWrite: " S ",
}

// Write writes the references of a batch; the format has no events.
func (w *Writer) Write(b *trace.Batch) error {
	w.text = w.text[:0]
	for i, kind := range b.Kind {
		if !kind.IsReference() {
			continue
		}
		if b.Thread != nil && (!w.threads || b.Thread[i] != w.thread) {
			w.turn(b.Thread[i])
		}
		w.text = appendAddr(append(w.text, prefixes[kind]...), b.Addr[i])
		w.text = strconv.AppendUint(append(w.text, ','), uint64(b.Bytes[i]), 10)
		w.text = append(w.text, '\n')
	}
	_, err := w.w.Write(w.text)
	return err
}

// turn writes that another thread is resumed. The number of the process is unknown; readers ignore it.
func (w *Writer) turn(thread uint32) {
	w.thread, w.threads = thread, true
	w.text = strconv.AppendUint(append(w.text, "--1--   SCHED["...), uint64(thread), 10)
	w.text = append(w.text, "]:  acquired lock (stackglass)\n"...)
}

// appendAddr writes at least eight digits, as lackey does.
func appendAddr(text []byte, addr trace.Addr) []byte {
	for digits := uint(7); digits > 0 && addr>>(4*digits) == 0; digits-- {
		text = append(text, '0')
	}
	return strconv.AppendUint(text, addr, 16)
}
