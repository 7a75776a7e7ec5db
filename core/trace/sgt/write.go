package sgt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"slices"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
)

// chunkSize contains two limits: a number of content bytes and a number of steps. A chunk is full
// when it reaches one of these limits.
type chunkSize struct {
	bytes int
	steps uint64
}

// usualChunks is the default size of chunks. Chunks are small enough that several workers can share
// a trace of one minute, and large enough that the cost of relearning every site's stride is
// negligible.
var usualChunks = chunkSize{bytes: 1 << 20, steps: 1 << 22}

// Writer writes a container. Writer stops at the first error, which [Writer.Close] returns.
type Writer struct {
	out     io.Writer
	at      uint64 // number of bytes written
	err     error
	layouts []layout // layouts of all blocks

	threads map[uint32]*openChunk
	open    []*openChunk // chunks that contain steps but have not been written
	current *openChunk   // chunk of the last step
	ticket  uint64       // ticket of the last step
	bytes   int          // number of bytes of content in the open chunks except the current chunk
	fill    uint64       // number of steps in the open chunks except the current chunk

	pointerBits uint64
	facts       []trace.Fact
	full        chunkSize // limit on the total size of all open chunks
	beforeFlush func()    // function that writes the tables of new blocks; may be nil

	frame, body []byte // buffers for the frame that is being written
	content     []byte
	packed      bytes.Buffer
	packer      *lz4.Writer
	index       indexWriter
	references  uint64 // number of references in all chunks that have been written
	total       uint64 // number of references in all steps so far
}

// openChunk is the chunk to which a thread's steps are written.
type openChunk struct {
	thread uint32
	encoder
}

// NewWriter returns a Writer of a container with the given facts about the capture. The parameter
// pointerBits is the width of the program's addresses, or 0 if it is unknown.
func NewWriter(w io.Writer, pointerBits uint64, facts []trace.Fact) *Writer {
	return &Writer{out: w, pointerBits: pointerBits, facts: facts, full: usualChunks, threads: map[uint32]*openChunk{}, packer: lz4.NewWriter(nil)}
}

// begin writes the first frame unless it has already been written.
func (w *Writer) begin() {
	if w.at > 0 {
		return
	}
	body := binary.AppendUvarint(nil, Version)
	body = binary.AppendUvarint(body, Version) // the oldest reader version that can read the file
	body = binary.AppendUvarint(body, w.pointerBits)
	w.index.table(0)
	w.write(AppendFrame(nil, tagFile, appendFacts(body, w.facts)))
}

func appendFacts(dst []byte, facts []trace.Fact) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(facts)))
	for _, f := range facts {
		dst = appendStr(appendStr(dst, f.Name), f.Value)
	}
	return dst
}

// put writes a frame that does not belong to a chunk.
func (w *Writer) put(tag string, body []byte) {
	w.begin()
	w.index.table(w.at)
	w.write(AppendFrame(nil, tag, body))
}

func (w *Writer) write(p []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(p)
	}
	w.at += uint64(len(p))
}

// Facts adds facts about the capture.
func (w *Writer) Facts(facts []trace.Fact) {
	if w.at == 0 {
		w.facts = append(w.facts, facts...)
		return
	}
	w.put(tagCapture, appendFacts(nil, facts))
}

// Module writes the tables of a module, given as the body of a MODL frame. The module's block
// numbers continue the numbers of earlier modules.
func (w *Writer) Module(body []byte) error {
	var p trace.Program
	if err := ParseModule(body, &p); err != nil {
		return err
	}
	w.layouts = appendLayouts(w.layouts, &p)
	w.put(tagModule, body)
	return w.err
}

// Objects writes the addresses of the objects of a module.
func (w *Writer) Objects(module uint32, addrs []trace.Addr) {
	w.put(tagObjects, appendObjects(nil, module, addrs))
}

func appendObjects(dst []byte, module uint32, addrs []trace.Addr) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(module)), uint64(len(addrs)))
	for _, a := range addrs {
		dst = binary.AppendUvarint(dst, a)
	}
	return dst
}

// Thread writes the description of a thread.
func (w *Writer) Thread(t trace.Thread) {
	w.put(tagThread, appendThread(nil, t))
}

func appendThread(dst []byte, t trace.Thread) []byte {
	dst = binary.AppendUvarint(dst, uint64(t.Number))
	dst = appendStr(binary.AppendUvarint(dst, t.ID), t.Name)
	return binary.AppendUvarint(binary.AppendUvarint(dst, t.StackLow), t.StackHigh)
}

// Tags writes caliper tags. The parameter "first" is the number of the first tag.
func (w *Writer) Tags(first int, tags []string) {
	w.put(tagTags, appendTags(nil, first, tags))
}

func appendTags(dst []byte, first int, tags []string) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(first)), uint64(len(tags)))
	for _, t := range tags {
		dst = appendStr(dst, t)
	}
	return dst
}

// Step writes one execution of a block by a thread. Steps must be written in the order of tickets.
// The slice "values" contains the values of the block's sites, in order.
func (w *Writer) Step(thread uint32, ticket uint64, block uint32, values []uint64) error {
	if w.current == nil || w.current.thread != thread {
		w.turnTo(thread)
	}
	c := w.current
	if c.steps == 0 {
		c.begin(w.layouts)
		w.open = append(w.open, c)
	}
	w.ticket = ticket
	w.total += c.step(ticket, block, values, w.layouts)
	if w.fill+c.steps >= w.full.steps || w.bytes+c.bytes() >= w.full.bytes {
		w.Flush()
	}
	return w.err
}

// turnTo makes the chunk of a thread the current chunk.
func (w *Writer) turnTo(thread uint32) {
	if w.current != nil {
		w.fill += w.current.steps
		w.bytes += w.current.bytes()
	}
	c := w.threads[thread]
	if c == nil {
		c = &openChunk{thread: thread}
		w.threads[thread] = c
	}
	w.fill -= c.steps
	w.bytes -= c.bytes()
	w.current = c
}

// Flush writes the open chunks of all threads, so that a reader can read all steps written so far.
func (w *Writer) Flush() {
	if w.beforeFlush != nil {
		w.beforeFlush()
	}
	w.begin()
	for _, c := range w.open {
		c.end()
	}
	slices.SortFunc(w.open, func(a, b *openChunk) int {
		return cmp.Or(cmp.Compare(a.firstTicket, b.firstTicket), cmp.Compare(a.thread, b.thread))
	})
	for i, c := range w.open {
		floor := w.ticket
		if i+1 < len(w.open) {
			floor = w.open[i+1].firstTicket
		}
		w.chunk(c, floor)
		c.empty()
	}
	w.open, w.fill, w.bytes = w.open[:0], 0, 0
}

func (w *Writer) chunk(c *openChunk, floor uint64) {
	w.content = append(append(append(w.content[:0], c.control...), c.value...), c.ticket...)
	packLZ4(&w.packed, w.packer, w.content)
	w.CopyChunk(&ChunkHead{
		c.thread, c.steps, c.references, c.firstTicket, c.lastTicket, floor,
		uint64(len(c.control)), uint64(len(c.value)), uint64(len(c.ticket)), uint64(w.packed.Len()),
	}, w.packed.Bytes())
}

// End describes how a run ended.
type End struct {
	How    string // "exit", "abort", "signal 11", "limit", "fork", "converted"
	Status uint64 // exit status of the process
	Lost   uint64 // number of steps that the capture lost
}

// Close writes the remaining chunks, the end of the run, and the index.
func (w *Writer) Close(e End) error {
	w.Flush()
	w.begin()
	w.index.table(w.at)
	w.write(AppendDone(nil, e, w.references))
	w.write(AppendFrame(nil, tagIndex, w.index.body(w.at)))
	return w.err
}

// indexWriter collects the entries of the index.
type indexWriter struct {
	chunks, tables         []byte
	chunkCount, tableCount uint64
	lastChunk, lastTable   uint64 // offset of the last chunk, and offset of the last table
}

func (x *indexWriter) table(at uint64) {
	x.tables = binary.AppendUvarint(x.tables, at-x.lastTable)
	x.lastTable = at
	x.tableCount++
}

func (x *indexWriter) chunk(at uint64, fields []uint64) {
	x.chunks = binary.AppendUvarint(x.chunks, at-x.lastChunk)
	for _, v := range fields {
		x.chunks = binary.AppendUvarint(x.chunks, v)
	}
	x.lastChunk = at
	x.chunkCount++
}

// body returns the body of the INDX frame, which will be at the given offset.
func (x *indexWriter) body(at uint64) []byte {
	b := append(binary.AppendUvarint(nil, x.chunkCount), x.chunks...)
	b = append(binary.AppendUvarint(b, x.tableCount), x.tables...)
	return append(binary.LittleEndian.AppendUint64(b, at), indexEnd...)
}
