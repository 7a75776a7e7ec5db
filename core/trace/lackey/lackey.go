// Package lackey reads the text that Valgrind's lackey tool prints with --trace-mem=yes.
//
// A line describes one reference: its kind, its address in hexadecimal, and its size in bytes in
// decimal.
//
//	I  04001ab0,3     the instruction at 0x4001ab0, 3 bytes long, is fetched
//	 L 1fff000708,8   it loads,
//	 S 1fff000700,8   stores,
//	 M 0421c7f0,4     or loads and then stores the same bytes
//
// The PC of a data line is the address of the last I line before it. The PC column exists from the
// first I line on. A trace without I lines has no PCs.
//
// With --trace-sched=yes, Valgrind, which runs one thread at a time, also reports which thread is
// running:
//
//	--13213--   SCHED[2]:  acquired lock (thread_wrapper(starting new thread))
//
// From the first SCHED line on, rows contain the number of the running thread (1 for the main
// thread). A PC applies only to later data lines of the same thread. Lines that begin with ==, --,
// ** or ###, the SB lines of --trace-superblocks=yes and blank lines are skipped. Process numbers
// are ignored, so each file should contain the trace of one process.
//
// Lines in exactly the format that lackey prints are parsed on a fast path without branches that
// depend on digits. Any other line is read field by field.
package lackey

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// NewReader returns a reader for the trace in r. Errors refer to the trace by the given name.
// Threads have the same numbers as in Valgrind.
func NewReader(name string, r io.Reader) *lines.Reader { return lines.NewReader(name, r, &parser{}) }

type parser struct {
	pc      trace.Addr // address of the last I line of the running thread; 0 if there is none yet
	pcs     bool       // whether any instruction line (I) has been read
	thread  uint32     // number of the running thread
	threads bool       // whether any SCHED line has been read
	from    int        // index of the first row of the batch without a thread number
}

// Header implements [lines.Parser].
func (p *parser) Header() trace.Header {
	return trace.Header{Format: "lackey", Threads: p.threads, PCs: p.pcs, Sizes: true}
}

// other marks the bytes in the table "kinds" that are not the letter of a kind.
const other = 0xff

// kinds maps the letter of a kind, XORed with a blank, to the kind. In lackey's output, the letter
// of the kind is next to a blank.
var kinds = func() (table [256]uint8) {
	for i := range table {
		table[i] = other
	}
	for letter, kind := range map[byte]trace.Kind{'L': trace.Load, 'S': trace.Store, 'M': trace.Modify, 'I': trace.Fetch} {
		table[letter^' '] = uint8(kind)
	}
	return table
}()

// Begin adds the columns that have occurred in the trace so far.
func (p *parser) Begin(b *trace.Batch) {
	p.from = 0
	if p.pcs {
		b.NeedPC()
	}
	if p.threads {
		b.NeedThread()
	}
}

// fillThread writes the number of the running thread into the rows [p.from, end).
func (p *parser) fillThread(b *trace.Batch, end int) {
	if b.Thread == nil {
		return
	}
	running := b.Thread[p.from:end]
	for i := range running {
		running[i] = p.thread
	}
	p.from = end
}

// Skips reports whether a line is output of Valgrind that contains no reference.
func (p *parser) Skips(line []byte) bool { return skipped(line) }

// Parse implements [lines.Parser].
func (p *parser) Parse(window []byte, b *trace.Batch, row int) (taken, count, rows int, err error) {
	taken, count, rows, err = p.parse(window, b, row)
	p.fillThread(b, rows)
	return taken, count, rows, err
}

// parse implements lines.Parser. parse alternates between the fast path and single lines.
func (p *parser) parse(window []byte, b *trace.Batch, row int) (taken, count, rows int, err error) {
	for {
		n, next := p.plain(window[taken:], b, row)
		taken, count, row = taken+n, count+next-row, next
		if taken == len(window) || row == b.Len() {
			return taken, count, row, nil
		}
		line, _ := lines.First(window[taken:])
		if row, err = p.single(line, b, row); err == lines.ErrEndBatch {
			return taken, count, row, err
		}
		taken, count = taken+len(line)+1, count+1
		if err != nil {
			return taken, count, row, err
		}
	}
}

// plain reads lines in exactly the format that lackey prints. At the first line of a different
// form, it stops, and returns the number of bytes read and the number of rows in b. The fast path
// is one long function, because calls would double its run time. The compiler omits bounds checks,
// because s is an array of 64 bytes and no index exceeds 63.
func (p *parser) plain(window []byte, b *trace.Batch, row int) (taken, rows int) {
	addrs := b.Addr
	kinds8, sizes := b.Kind[:len(addrs)], b.Bytes[:len(addrs)]
	pcs, pc := b.PC, p.pc
	padded := window[:len(window)+lines.Slack]
	at := 0
	for at < len(window) && uint(row) < uint(len(addrs)) {
		s := (*[lines.Slack]byte)(padded[at:])
		kind := kinds[s[0]^s[1]]
		if kind == other || min(s[0], s[1]) != ' ' || s[2] != ' ' {
			break
		}
		first := binary.LittleEndian.Uint64(s[3:])
		n := lines.HexDigits(first)
		end := 3 + n
		var addr trace.Addr
		if n < 8 {
			addr = lines.HexValue(first, n)
		} else if addr = lines.HexValue(first, 8); s[11] == ',' {
			// lackey pads addresses to at least eight digits
		} else if s[13] == ',' { // stack addresses have ten digits
			ninth, tenth := lines.HexDigit[s[11]], lines.HexDigit[s[12]]
			if ninth|tenth > 15 {
				break
			}
			addr, end = addr<<8|uint64(ninth)<<4|uint64(tenth), 13
		} else {
			second := binary.LittleEndian.Uint64(s[11:])
			n = lines.HexDigits(second)
			addr, end = addr<<uint(4*n)|lines.HexValue(second, n), 11+n
		}
		size := uint32(s[end+1]) - '0'
		if s[end] != ',' || size > 9 || end == 3 {
			break
		}
		c := s[end+2]
		end += 3
		if c != '\n' {
			if digit := uint32(c) - '0'; digit <= 9 {
				size, c, end = size*10+digit, s[end], end+1
			}
			if digit := uint32(c) - '0'; digit <= 9 {
				size, c, end = size*10+digit, s[end], end+1
			}
			if c == '\r' {
				c, end = s[end], end+1
			}
			if c != '\n' {
				break
			}
		}
		if addr > math.MaxUint64-1000 { // the size has at most three digits
			break
		}
		addrs[row], sizes[row], kinds8[row] = addr, size, trace.Kind(kind)
		if kind == uint8(trace.Fetch) {
			pc = addr
		}
		if row < len(pcs) {
			pcs[row] = pc
		} else if kind == uint8(trace.Fetch) {
			pc = 0 // single reads the first I line and adds the PC column
			break
		}
		row++
		at += end
	}
	p.pc = pc
	return at, row
}

// single reads one line of any form.
func (p *parser) single(line []byte, b *trace.Batch, row int) (rows int, err error) {
	if bytes.HasPrefix(line, []byte("--")) {
		if thread, ok := acquired(line); ok {
			return row, p.turn(thread, b, row)
		}
	}
	if skipped(line) {
		return row, nil
	}
	kind, addr, size, wrong := record(line)
	if wrong != nil {
		return row, wrong
	}
	if kind == trace.Fetch {
		p.pcs, p.pc = true, addr
		b.NeedPC()
	}
	b.Addr[row], b.Bytes[row], b.Kind[row] = addr, size, kind
	if b.PC != nil {
		b.PC[row] = p.pc
	}
	return row + 1, nil
}

// turn makes the given thread the running thread. If earlier rows of the batch have no thread, turn
// ends the batch, so that the next batch has a thread column.
func (p *parser) turn(thread uint32, b *trace.Batch, row int) error {
	if p.threads = true; b.Thread == nil && row > 0 {
		return lines.ErrEndBatch
	}
	b.NeedThread()
	p.fillThread(b, row)
	if thread != p.thread {
		p.thread, p.pc = thread, 0
	}
	return nil
}

// record reads a line that contains a reference and any number of blanks.
func record(line []byte) (kind trace.Kind, addr trace.Addr, size uint32, wrong *trace.SyntaxError) {
	letter, after := lines.Cut(lines.Trim(line))
	if len(letter) != 1 || kinds[letter[0]^' '] == other {
		return 0, 0, 0, lines.Wrong("line", line, "I, L, S or M, then address,bytes")
	}
	kind = trace.Kind(kinds[letter[0]^' '])
	digits, sizeText, found := bytes.Cut(after, []byte(","))
	if !found {
		return 0, 0, 0, lines.Wrong("reference", after, "address,bytes")
	}
	if addr, wrong = lines.HexAddress(digits); wrong != nil {
		return 0, 0, 0, wrong
	}
	if size, wrong = lines.Decimal32("bytes", sizeText); wrong != nil {
		return 0, 0, 0, wrong
	}
	if !lines.FitsBytes(addr, size) {
		return 0, 0, 0, lines.Wrong("reference", after, "a reference that ends within the 64-bit address space")
	}
	return kind, addr, size, nil
}

// skipped reports whether line is a line of Valgrind's output that contains no reference.
func skipped(line []byte) bool {
	if len(line) >= 3 {
		switch string(line[:2]) {
		case "==", "--", "**":
			return true
		}
		switch string(line[:3]) {
		case "###", "SB ":
			return true
		}
	}
	return lines.IsBlank(line)
}

// acquired returns the thread that a SCHED line reports as running.
func acquired(line []byte) (thread uint32, ok bool) {
	_, after, found := bytes.Cut(line, []byte("--   SCHED["))
	if !found {
		return 0, false
	}
	number, event, found := bytes.Cut(after, []byte("]:"))
	if !found || !bytes.HasPrefix(lines.Trim(event), []byte("acquired lock")) {
		return 0, false
	}
	thread, wrong := lines.Decimal32("thread", number)
	return thread, wrong == nil
}

// Recognise reports whether text, the beginning of a file, is a lackey trace; if not, it returns
// the reason. Recognise also accepts output of Valgrind that does not contain references yet.
func Recognise(text []byte) (reason string, ok bool) {
	const none = "the file contains no reference"
	reason, ok = lines.Recognise(text, none, skipped, func(line []byte) *trace.SyntaxError {
		_, _, _, wrong := record(line)
		return wrong
	})
	if reason == none && (bytes.HasPrefix(text, []byte("==")) || bytes.Contains(text, []byte("\n=="))) {
		return "", true
	}
	return reason, ok
}

// Writer writes references in the format of lackey, and threads in the format of --trace-sched=yes.
// The format does not contain the PCs of data references. A reader uses the address of the last
// fetch instead. Ranges are written as loads and stores, and an unknown size as 0.
type Writer struct {
	w       io.Writer
	text    []byte
	thread  uint32
	threads bool // whether a thread has been written
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

var prefixes = [trace.NumKinds]string{
	trace.Load: " L ", trace.Store: " S ", trace.Modify: " M ", trace.Fetch: "I  ", trace.RangeRead: " L ", trace.RangeWrite: " S ",
}

// Write writes the references of a batch. The format cannot represent events.
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

// turn writes a SCHED line, which states that the given thread runs. The process number is unknown,
// and readers ignore it.
func (w *Writer) turn(thread uint32) {
	w.thread, w.threads = thread, true
	w.text = strconv.AppendUint(append(w.text, "--1--   SCHED["...), uint64(thread), 10)
	w.text = append(w.text, "]:  acquired lock (stackglass)\n"...)
}

// appendAddr appends an address with at least eight digits, in lackey's format.
func appendAddr(text []byte, addr trace.Addr) []byte {
	for digits := uint(7); digits > 0 && addr>>(4*digits) == 0; digits-- {
		text = append(text, '0')
	}
	return strconv.AppendUint(text, addr, 16)
}
