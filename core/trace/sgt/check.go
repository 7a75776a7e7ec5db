package sgt

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Fault is an error in a file.
type Fault struct {
	Offset uint64 // offset of the frame
	What   string
}

// Verdict is the result of checking a whole file.
type Verdict struct {
	Survey
	Decoded uint64 // number of references in the steps that could be decoded
	Faults  uint64
}

// Check reads a whole container and calls the function "tell" for every fault. Faults are wrong
// checksums, tables and steps that violate the format, chunks that contradict their frames,
// decreasing tickets, a wrong index, and a wrong or missing end. The reader r must not have read
// anything yet. Check returns an error only if r does not read a container.
func Check(r *Reader, tell func(Fault)) (*Verdict, error) {
	in, ok := r.source.(*stream)
	if !ok {
		return nil, errNotStream
	}
	k := &checker{in: in, r: r, last: map[uint32]uint64{}, threads: map[uint32]*ThreadSurvey{}}
	k.tell = func(at uint64, what string) {
		k.verdict.Faults++
		tell(Fault{at, what})
	}
	r.Select(trace.AllKinds) // count the rows of all kinds
	k.all()
	if !r.begun {
		return nil, r.end()
	}
	return &k.verdict, nil
}

type checker struct {
	in      *stream
	r       *Reader
	d       decoder
	rows    *trace.Batch // memory of withRows; nil until its first call
	layouts []layout
	last    map[uint32]uint64 // last ticket of each thread
	floor   uint64
	chunks  []chunkEntry // the entries that the index should contain
	threads map[uint32]*ThreadSurvey
	verdict Verdict
	tell    func(at uint64, what string)
}

// all checks every chunk, and then the end of the file.
func (k *checker) all() {
	for {
		faults := k.r.lost
		c, err := k.in.next(k.r)
		if lost := k.r.lost; lost.Chunks+lost.Frames > faults.Chunks+faults.Frames {
			k.tell(lost.Offset, lost.First.Error())
			k.r.lost.First = nil // reset the first error, so that the next error is also reported
		}
		if err != nil {
			k.end(err)
			return
		}
		k.verdict.add(c, k.threads)
		k.chunks = append(k.chunks, c.chunkEntry)
		k.order(c)
		k.content(c)
		k.r.reused.takeBack(c, nil)
	}
}

// order compares the tickets of a chunk with the tickets of earlier chunks.
func (k *checker) order(c *chunk) {
	if last, ok := k.last[c.thread]; ok && c.firstTicket < last {
		k.tell(c.at, "thread "+decimal(uint64(c.thread))+" continues with ticket "+decimal(c.firstTicket)+" after "+decimal(last)+", but tickets must not decrease")
	}
	if c.firstTicket < k.floor {
		k.tell(c.at, "the chunk begins with ticket "+decimal(c.firstTicket)+", but earlier chunks state that all later tickets are at least "+decimal(k.floor))
	}
	k.last[c.thread], k.floor = c.lastTicket, max(k.floor, c.floor)
}

// content decodes a chunk and compares it with its CHNK frame.
func (k *checker) content(c *chunk) {
	k.r.extend(&k.r.program)
	for n := len(k.layouts); n < len(k.r.program.Blocks); n++ {
		b := &k.r.program.Blocks[n]
		k.layouts = append(k.layouts, layoutOf(k.r.program.Sites[b.FirstSite:b.FirstSite+b.Sites]))
	}
	references, err := k.decode(c)
	k.verdict.Decoded += references
	switch {
	case err != nil:
		k.tell(c.at, "the chunk cannot be read completely: "+err.Error())
	case references != c.references:
		k.tell(c.at, "the chunk has "+decimal(references)+" references, but the frame header states "+decimal(c.references))
	case k.d.ticketNow != c.lastTicket:
		k.tell(c.at, "the chunk ends with ticket "+decimal(k.d.ticketNow)+", but the frame header states "+decimal(c.lastTicket))
	}
}

// decode returns the number of references in the steps of a chunk up to the first error.
func (k *checker) decode(c *chunk) (references uint64, err error) {
	if err := k.d.unpack(c); err != nil {
		return 0, err
	}
	if c.steps == 0 {
		return 0, nil
	}
	return k.unpacked(c)
}

// unpacked implements decode for a chunk that contains steps and has already been decompressed.
func (k *checker) unpacked(c *chunk) (references uint64, err error) {
	references, err = k.steps(c, k.d.count)
	if err == errNeedsValues {
		if references, err = k.steps(c, k.withRows); err != nil { // withRows may have counted some of the rows of the invalid step
			references, err = k.steps(c, k.withValues)
		}
	}
	return references, err
}

// steps decodes the steps of a chunk ticket by ticket, and returns the number of their references.
// The function "count" decodes up to the given number of steps, and returns the number of their
// references and the number of remaining steps.
func (k *checker) steps(c *chunk, count func(most uint64) (references, left uint64, err error)) (references uint64, err error) {
	d := &k.d
	if err := d.begin(c, k.r.plans); err != nil {
		return 0, err
	}
	for d.steps > 0 {
		if d.ticketSteps == 0 {
			if err := d.nextTicket(); err != nil {
				return references, err
			}
		}
		var of uint64
		of, d.ticketSteps, err = count(d.ticketSteps)
		if references += of; err != nil {
			return references, err
		}
	}
	return references, d.end()
}

// withRows counts references like [decoder.count], but creates the rows. [decoder.count] is not
// sufficient if the number of references depends on values.
func (k *checker) withRows(most uint64) (references, left uint64, err error) {
	if k.rows == nil {
		k.rows = trace.NewBatch(0)
		k.rows.Resize(k.rows.Cap())
		k.rows.NeedSite()
	}
	d, b := &k.d, k.rows
	c := columns{addr: b.Addr, bytes: b.Bytes, kind: b.Kind, site: b.Site}
	for most > 0 || d.queue.someValues() || len(d.pending.rows) > 0 {
		row := d.drain(&c, 0)
		row, most, err = d.fill(&c, row, most)
		references += uint64(row)
		if err == nil && d.pending.bytes > 0 { // a single range can have up to 2^32 rows
			err = errNeedsValues
		}
		if err != nil {
			return references, most, err
		}
	}
	return references, 0, nil
}

// withValues counts the same references as withRows, but decodes values instead of creating rows.
// If a chunk is damaged, it counts only complete steps.
func (k *checker) withValues(most uint64) (references, left uint64, err error) {
	for ; most > 0; most-- {
		block, values, err := k.d.one()
		if err != nil {
			return references, most, err
		}
		references += k.layouts[block].referencesOf(values)
	}
	return references, 0, nil
}

// end checks the part of the file that follows the chunks.
func (k *checker) end(err error) {
	r, v := k.r, &k.verdict
	v.finish(r, k.in, k.threads)
	if err == io.EOF {
		k.index()
	} else {
		r.ended = err
		v.Stopped = r.end()
		k.tell(k.in.feed.at, reasonOf(v.Stopped))
	}
	switch e := &r.ending; {
	case !e.Known && err == io.EOF:
		k.tell(k.in.feed.at, "the file does not record how the run ended")
	case e.Known && e.References != v.References:
		k.tell(k.in.feed.at, "the last frame states "+decimal(e.References)+" references, but the chunks contain "+decimal(v.References))
	}
}

// reasonOf returns the text of an error without the name of the file.
func reasonOf(err error) string {
	var damage *trace.DamageError
	if errors.As(err, &damage) {
		return damage.Nameless()
	}
	return err.Error()
}

// index compares the index of the file with the frames that have been read.
func (k *checker) index() {
	x, err := parseIndex(k.r.indexBody)
	at := k.r.indexAt
	switch {
	case err != nil:
		k.tell(at, err.Error())
	case x.at != at:
		k.tell(at, "the index states a wrong position, byte "+decimal(x.at))
	case len(x.chunks) != len(k.chunks):
		k.tell(at, "the index has "+decimal(uint64(len(x.chunks)))+" chunks, but the file contains "+decimal(uint64(len(k.chunks))))
	case len(x.tables) != len(k.r.tables):
		k.tell(at, "the index has "+decimal(uint64(len(x.tables)))+" tables, but the file contains "+decimal(uint64(len(k.r.tables))))
	default:
		for i, c := range x.chunks {
			if c != k.chunks[i] {
				k.tell(at, "the index does not match the chunk at byte "+decimal(k.chunks[i].at))
			}
		}
		for i, table := range x.tables {
			if table != k.r.tables[i] {
				k.tell(at, "the index does not match the table at byte "+decimal(k.r.tables[i]))
			}
		}
	}
}

// Survey describes a file whose steps were not decoded.
type Survey struct {
	Version      uint64
	PointerBits  uint64
	Header       trace.Header
	Ending       Ending
	Indexed      bool
	Bytes        uint64 // number of bytes read
	ContentBytes uint64 // total decompressed size of the chunks
	Chunks       uint64
	Steps        uint64
	References   uint64
	FirstTicket  uint64
	LastTicket   uint64
	Threads      []ThreadSurvey // the threads, sorted by number
	Lost         Lost
	Stopped      error // the error that prevented reading the file to its end, or nil
}

// ThreadSurvey describes the chunks of one thread.
type ThreadSurvey struct {
	Number                    uint32
	Chunks, Steps, References uint64
}

// Look reads the frames of a container, but does not decode steps. The reader r must not have read
// anything yet. Look returns an error if r does not read a container. Look and [Check] are
// functions, not methods, so that the linker can omit them from programs that do not call them.
func Look(r *Reader) (*Survey, error) {
	in, ok := r.source.(*stream)
	if !ok {
		return nil, errNotStream
	}
	in.headersOnly = true
	s := &Survey{}
	threads := map[uint32]*ThreadSurvey{}
	for r.ended == nil {
		c, err := in.next(r)
		if err != nil {
			r.ended = err
			break
		}
		s.add(c, threads)
		r.reused.takeBack(c, nil)
	}
	if !r.begun {
		return nil, r.end()
	}
	s.finish(r, in, threads)
	if s.Stopped = r.end(); s.Stopped == io.EOF {
		s.Stopped = nil
	}
	var version *VersionError
	if errors.As(s.Stopped, &version) {
		return nil, version
	}
	return s, nil
}

// errNotStream reports that the caller passed a reader that does not read a whole file.
var errNotStream = errors.New("sgt: cannot check or pre-scan a part of a trace; use a reader of the whole file")

// finish completes the survey with the data that the reader has collected from all frames.
func (s *Survey) finish(r *Reader, in *stream, threads map[uint32]*ThreadSurvey) {
	for _, t := range threads {
		s.Threads = append(s.Threads, *t)
	}
	slices.SortFunc(s.Threads, func(a, b ThreadSurvey) int { return cmp.Compare(a.Number, b.Number) })
	r.extend(&r.program)
	s.Version, s.PointerBits, s.Header, s.Ending = r.version, r.pointerBits, r.Header(), r.ending
	s.Bytes, s.Indexed, s.Lost = in.feed.at, r.indexed, r.lost
}

func (s *Survey) add(c *chunk, threads map[uint32]*ThreadSurvey) {
	t := threads[c.thread]
	if t == nil {
		t = &ThreadSurvey{Number: c.thread}
		threads[c.thread] = t
	}
	t.Chunks, t.Steps, t.References = t.Chunks+1, t.Steps+c.steps, t.References+c.references
	s.Chunks, s.Steps, s.References = s.Chunks+1, s.Steps+c.steps, s.References+c.references
	if s.Chunks == 1 {
		s.FirstTicket = c.firstTicket
	}
	s.FirstTicket, s.LastTicket = min(s.FirstTicket, c.firstTicket), max(s.LastTicket, c.lastTicket)
	s.ContentBytes += c.contentBytes()
}

// errNeedsValues reports that the number of rows of a step depends on the step's values.
var errNeedsValues = errors.New("the number of records depends on values that were not read")

// count counts the rows of up to the given number of steps, and also returns the number of
// remaining steps. It reads only the lengths of encoded values, and does not compute values. After
// a call of count, [decoder.begin] must be called before the decoder can create rows.
func (d *decoder) count(most uint64) (rows, left uint64, err error) {
	for most > 0 && err == nil {
		var steps, of uint64
		switch {
		case d.queue.someSteps():
			steps, of, err = d.countQueued(most)
		case d.waiting && d.run > 0:
			steps = min(d.run, most)
			of, err = d.countRun(steps)
			d.run -= steps
		case d.waiting:
			d.waiting = false
			if err = d.enterBlock(d.last); err == nil {
				steps = 1
				of, err = d.countStep(&d.blocks.all[d.before], d.last.misses)
			}
		default:
			if d.expand(); !d.queue.someSteps() {
				err = d.token()
			}
		}
		rows += of
		most -= steps
		d.steps -= steps
	}
	return rows, most, err
}

// countQueued removes up to the given number of steps from the queue. countQueued returns the
// number of removed steps, and the number of rows that they produce.
func (d *decoder) countQueued(most uint64) (steps, rows uint64, err error) {
	q := &d.queue
	if q.steps[q.stepAt] >= opNew {
		if err := d.linkNew(); err != nil {
			return 0, 0, err
		}
	}
	blocks, before, at := d.blocks.all, d.before, q.stepAt
	if len(blocks) == 0 {
		return 0, 0, errBlock
	}
	end := min(q.stepEnd, at+int(min(most, stepRoom)))
	was := &blocks[int(before)&(len(blocks)-1)]
	for ; at < end && err == nil; at++ {
		op := q.steps[at&(stepRoom-1)]
		if op >= opNew {
			break
		}
		links := bits.RotateLeft64(was.links, int(op))
		was.links = links
		before = uint32(links)
		was = &blocks[int(before)&(len(blocks)-1)]
		if misses := op >> opMisses; misses == 0 && was.form != varying {
			rows += uint64(was.count)
			continue
		}
		var of uint64
		of, err = d.countStep(was, op>>opMisses)
		rows += of
	}
	steps = uint64(at - q.stepAt)
	d.before, q.stepAt = before, at
	return steps, rows, err
}

// countStep skips the values of a step, and returns the number of the step's rows.
func (d *decoder) countStep(b *decodedBlock, misses uint64) (rows uint64, err error) {
	if b.form == varying {
		return 0, errNeedsValues
	}
	if misses == 0 {
		return uint64(b.count), nil
	}
	if misses>>b.width != 0 {
		return 0, errControl
	}
	if misses>>32 != 0 {
		for cells := d.cellsOf(b); misses != 0; misses &= misses - 1 {
			_, d.value = difference(d.content, d.value, cells[bits.TrailingZeros64(misses)].scale)
		}
	}
	content, at := d.content, d.value
	for ; misses != 0; misses &= misses - 1 {
		word := binary.LittleEndian.Uint64(content[at:])
		more := bits.TrailingZeros64(word | 1<<8)
		scaled := uint64(b.scaled>>(bits.TrailingZeros32(uint32(misses))&31)) & 1
		if uint64(more>>3)|word>>(uint(more+1)&63)&scaled != 0 {
			_, at = difference(content, at, uint8(scaled))
			continue
		}
		at += 1 + more
	}
	d.value = at
	if d.value > d.valueEnd {
		return 0, errControl
	}
	return uint64(b.count), nil
}

// countRun returns the number of rows of n expected steps. Expected steps do not change the
// predictions, so the sequence of steps repeats as soon as it reaches its first block again.
func (d *decoder) countRun(n uint64) (rows uint64, err error) {
	blocks := d.blocks.all
	first := blocks[d.before].next()
	for done := uint64(0); done < n; {
		d.before = blocks[d.before].next()
		b := &blocks[d.before]
		of, err := d.countStep(b, 0)
		if err != nil {
			return rows, err
		}
		rows += of
		if done++; b.next() == first {
			rounds := n / done
			rows += (rounds - 1) * rows
			for range n % done {
				d.before = blocks[d.before].next()
				rows += uint64(blocks[d.before].count)
			}
			return rows, nil
		}
	}
	return rows, nil
}
