package arrange

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

const (
	magic       = 0x184d2a53
	frameHead   = 8 // magic and length
	tagBytes    = 4
	checkBytes  = 4
	largestBody = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recording is what a container has besides the chunks' content.
type recording struct {
	file    io.ReaderAt
	facts   []trace.Fact
	program trace.Program
	threads [][]byte // bodies of THRD
	chunks  []chunk
	end     *sgt.End // nil: it was cut off
}

// chunk is where a chunk stands and what its descriptor says.
type chunk struct {
	offset, length int64 // of its LZ4 frame
	descriptor
}

type descriptor struct {
	Thread, Steps, References, First, Last, Floor, Control, Values, Tickets, Frame uint64
}

func (d *descriptor) fields() []*uint64 {
	return []*uint64{&d.Thread, &d.Steps, &d.References, &d.First, &d.Last, &d.Floor, &d.Control, &d.Values, &d.Tickets, &d.Frame}
}

func (d *descriptor) append(dst []byte) []byte {
	for _, field := range d.fields() {
		dst = binary.AppendUvarint(dst, *field)
	}
	return dst
}

// read reads a container up to its end, or up to its last whole frame: whoever
// wrote it may have been killed.
func read(file io.ReaderAt, size int64) (*recording, error) {
	r := &recording{file: file}
	for at := int64(0); at < size; {
		tag, body, length, whole := readFrame(file, at, size)
		if !whole {
			break
		}
		at += length
		more, err := r.frame(tag, body, at, size)
		if err != nil {
			return nil, err
		}
		if more < 0 {
			break
		}
		at += more
	}
	if len(r.facts) == 0 {
		return nil, errors.New("the trace was not even begun")
	}
	return r, nil
}

// countThreads counts those that have steps.
func (r *recording) countThreads() int {
	threads := map[uint64]bool{}
	for i := range r.chunks {
		threads[r.chunks[i].Thread] = true
	}
	return len(threads)
}

// readFrame reads the skippable frame at that place.
func readFrame(file io.ReaderAt, at, size int64) (tag string, body []byte, length int64, whole bool) {
	var head [frameHead]byte
	if _, err := file.ReadAt(head[:], at); err != nil || binary.LittleEndian.Uint32(head[:]) != magic {
		return "", nil, 0, false
	}
	n := int64(binary.LittleEndian.Uint32(head[4:]))
	if n < tagBytes+checkBytes || n > largestBody || at+frameHead+n > size {
		return "", nil, 0, false
	}
	text := make([]byte, n)
	if _, err := file.ReadAt(text, at+frameHead); err != nil {
		return "", nil, 0, false
	}
	checked, check := text[:n-checkBytes], binary.LittleEndian.Uint32(text[n-checkBytes:])
	if crc32.Checksum(checked, castagnoli) != check {
		return "", nil, 0, false
	}
	return string(checked[:tagBytes]), checked[tagBytes:], frameHead + n, true
}

// frame takes over what a frame says. It gives the bytes that belong to it behind
// it, -1 if they are not there.
func (r *recording) frame(tag string, body []byte, at, size int64) (more int64, err error) {
	p := numbers{left: body}
	switch tag {
	case "SGT.":
		p.uv() // version
		p.uv() // the oldest one
		p.uv() // pointer bits
		r.facts = p.facts()
	case "MODL":
		return 0, sgt.ParseModule(body, &r.program)
	case "THRD":
		r.threads = append(r.threads, body)
	case "DONE":
		e := sgt.End{How: p.str(), Status: p.uv()}
		p.uv() // references
		e.Lost = p.uv()
		r.end = &e
	case "CHNK":
		c := chunk{offset: at}
		for _, field := range c.fields() {
			*field = p.uv()
		}
		if c.length = int64(c.Frame); c.length < 0 || c.length > size-at {
			return -1, nil
		}
		r.chunks = append(r.chunks, c)
		return c.length, p.wrong
	}
	return 0, p.wrong
}

// numbers takes numbers and texts from the front of a frame's body.
type numbers struct {
	left  []byte
	wrong error
}

func (p *numbers) uv() uint64 {
	v, n := binary.Uvarint(p.left)
	if n <= 0 {
		p.wrong = errors.New("a frame's body ends too early")
		return 0
	}
	p.left = p.left[n:]
	return v
}

func (p *numbers) str() string {
	n := p.uv()
	if n > uint64(len(p.left)) {
		p.wrong = errors.New("a text is longer than its frame")
		return ""
	}
	s := string(p.left[:n])
	p.left = p.left[n:]
	return s
}

func (p *numbers) facts() (all []trace.Fact) {
	for n := p.uv(); n > 0 && p.wrong == nil; n-- {
		all = append(all, trace.Fact{Name: p.str(), Value: p.str()})
	}
	return all
}

// writer writes a container and its index.
type writer struct {
	out            io.Writer
	at             uint64
	err            error
	chunks, tables []byte // the index's lists
	chunkCount     uint64
	tableCount     uint64
	lastChunk      uint64
	lastTable      uint64
	references     uint64
}

func (w *writer) write(p []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(p)
	}
	w.at += uint64(len(p))
}

// table writes a frame that is not a chunk's.
func (w *writer) table(tag string, body []byte) {
	w.tables = binary.AppendUvarint(w.tables, w.at-w.lastTable)
	w.lastTable = w.at
	w.tableCount++
	w.write(sgt.AppendFrame(nil, tag, body))
}

// chunk writes a descriptor and the LZ4 frame that it is about.
func (w *writer) chunk(d descriptor, frame []byte) {
	for _, v := range [...]uint64{w.at - w.lastChunk, d.Thread, d.Steps, d.References, d.First, d.Last} {
		w.chunks = binary.AppendUvarint(w.chunks, v)
	}
	w.lastChunk = w.at
	w.chunkCount++
	w.references += d.References
	w.write(sgt.AppendFrame(nil, "CHNK", d.append(nil)))
	w.write(frame)
}

// close writes how the run ended, and the index.
func (w *writer) close(e sgt.End) error {
	done := appendText(nil, e.How)
	for _, v := range [...]uint64{e.Status, w.references, e.Lost} {
		done = binary.AppendUvarint(done, v)
	}
	w.table("DONE", done)
	index := append(binary.AppendUvarint(nil, w.chunkCount), w.chunks...)
	index = append(binary.AppendUvarint(index, w.tableCount), w.tables...)
	index = append(binary.LittleEndian.AppendUint64(index, w.at), "SGTX"...)
	w.write(sgt.AppendFrame(nil, "INDX", index))
	return w.err
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
