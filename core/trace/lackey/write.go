package lackey

import (
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Writer writes references as lackey prints them. Threads are told by lines as
// of --trace-sched=yes. An instruction is told by its fetch only: data
// references of a trace without fetches lose theirs. Ranges are loads and stores
// of so many bytes; a size that the trace does not tell is 0.
type Writer struct {
	w       io.Writer
	text    []byte
	thread  uint32
	threads bool // a thread was told
}

// NewWriter makes a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

var prefixes = [trace.NumKinds]string{
	trace.Load: " L ", trace.Store: " S ", trace.Modify: " M ", trace.Fetch: "I  ", trace.RangeRead: " L ", trace.RangeWrite: " S ",
}

// Write adds the references of a batch; events have no place in the format.
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

// turn tells that another thread goes on. The number of the process is not known
// and not looked at.
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
