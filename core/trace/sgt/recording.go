package sgt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
)

// ChunkHead is the content of the CHNK frame that describes a chunk.
type ChunkHead struct {
	Thread                                uint32
	Steps, References                     uint64
	FirstTicket, LastTicket, Floor        uint64
	ControlBytes, ValueBytes, TicketBytes uint64
	FrameBytes                            uint64 // length of the chunk's LZ4 frame
}

// RecordedChunk is a chunk of a recording, with the offset of its LZ4 frame.
type RecordedChunk struct {
	ChunkHead
	Offset int64
}

// Recording describes a container up to its last complete frame. The file may end after this frame
// because the recorder was killed.
type Recording struct {
	Header trace.Header
	Ending Ending
	Chunks []RecordedChunk
}

// ReadRecording reads a container, but skips the content of its chunks. ReadRecording returns an
// error if tables are wrong, or if the file is not a container.
func ReadRecording(file io.ReaderAt, size int64) (*Recording, error) {
	in := &stream{feed: feed{r: sectionFrom(file, 0, size)}, headersOnly: true}
	r := newReader("the recording", Options{}, in, &metadata{})
	recording := &Recording{}
	for {
		c, err := in.next(r)
		if errors.As(err, new(*TableError)) || errors.As(err, new(*VersionError)) {
			return nil, err
		}
		if err != nil {
			break
		}
		recording.Chunks = append(recording.Chunks, RecordedChunk{ChunkHead{
			c.thread, c.steps, c.references, c.firstTicket, c.lastTicket, c.floor,
			c.controlBytes, c.valueBytes, c.ticketBytes, c.frameBytes,
		}, int64(in.feed.at - c.frameBytes)})
	}
	if !r.begun {
		return nil, errors.New("the file does not contain the beginning of a trace")
	}
	recording.Header, recording.Ending = r.Header(), r.ending
	return recording, nil
}

// CopyChunk writes a chunk, given its head and its LZ4 frame. CopyChunk and [Writer.Step] must not
// both be called on one Writer.
func (w *Writer) CopyChunk(h *ChunkHead, frame []byte) {
	w.begin()
	w.body = w.body[:0]
	fields := [...]uint64{
		uint64(h.Thread), h.Steps, h.References, h.FirstTicket, h.LastTicket, h.Floor,
		h.ControlBytes, h.ValueBytes, h.TicketBytes, h.FrameBytes,
	}
	for _, v := range fields {
		w.body = binary.AppendUvarint(w.body, v)
	}
	w.index.chunk(w.at, fields[:5])
	w.references += h.References
	w.frame = AppendFrame(w.frame[:0], tagChunk, w.body)
	w.write(w.frame)
	w.write(frame)
}

// Renumberer changes the numbers of blocks in the chunks of a recording. Block numbers occur only
// in the control part of a chunk, as differences from the expected block. A block number occurs
// only if the block is neither of the two expected blocks, next and other (FORMAT.md, "Chunks").
// Values and tickets therefore do not change, and the Renumberer tracks only these two blocks of
// the coder's state. Block 0 keeps its number, because a chunk begins as if block 0 had been
// executed.
type Renumberer struct {
	number  []uint32 // new number of each block, by old number
	follow  []follow // the blocks that followed each block, by old number
	changed []uint32 // blocks whose entries in the field "follow" have changed in the current chunk

	decoder        // used only to decompress chunks
	old     []byte // the compressed content of the old chunk
	made    []byte // the new control part, to which the other parts are then added
	frame   bytes.Buffer
	packer  *lz4.Writer
}

// follow contains the block that most recently followed a given block (next), and the value of
// "next" before its last change (other).
type follow struct{ next, other uint32 }

// NewRenumberer returns a Renumberer that replaces block n by number[n].
func NewRenumberer(number []uint32) *Renumberer {
	r := &Renumberer{number: number, follow: make([]follow, len(number)), packer: lz4.NewWriter(nil)}
	for i := range r.follow {
		r.follow[i] = follow{uint32(i), uint32(i)}
	}
	return r
}

// Chunk updates the head of a chunk, and returns the new LZ4 frame of the chunk, which is valid
// until the next call.
func (r *Renumberer) Chunk(file io.ReaderAt, c *RecordedChunk) ([]byte, error) {
	old := chunk{controlBytes: c.ControlBytes, valueBytes: c.ValueBytes, ticketBytes: c.TicketBytes}
	old.packed = slices.Grow(r.old[:0], int(c.FrameBytes))[:c.FrameBytes]
	r.old = old.packed
	if _, err := file.ReadAt(old.packed, c.Offset); err != nil {
		return nil, err
	}
	if err := r.unpack(&old); err != nil {
		return nil, err
	}
	if err := r.translate(r.content, int(c.ControlBytes), c.Steps); err != nil {
		return nil, err
	}
	r.made = append(r.made, r.content[c.ControlBytes:old.contentBytes()]...)
	packLZ4(&r.frame, r.packer, r.made)
	c.ControlBytes = uint64(len(r.made)) - c.ValueBytes - c.TicketBytes
	c.FrameBytes = uint64(r.frame.Len())
	return r.frame.Bytes(), nil
}

// translate sets r.made to the new control part for the given number of steps. The old control part
// consists of old[:end], and slack bytes follow.
func (r *Renumberer) translate(old []byte, end int, steps uint64) error {
	for _, b := range r.changed {
		r.follow[b] = follow{b, b}
	}
	r.changed, r.made = r.changed[:0], r.made[:0]
	block := uint32(0)
	if len(r.follow) == 0 {
		return errControl // a recording without blocks has no steps
	}
	for at := 0; at < end; {
		token, next := prefix(old, at)
		run, follows := token>>2&longRun, token&followsMask
		if run == longRun {
			var rest uint64
			if rest, next = prefix(old, next); run+rest < run {
				return errControl
			}
			run += rest
		}
		if next > end || follows > followsNew || run >= steps {
			return errControl
		}
		r.made = append(r.made, old[at:next]...)
		at = next
		steps -= run + 1
		for range run {
			block = r.follow[block].next
		}
		expected := r.follow[block]
		switch follows {
		case followsNext:
			block = expected.next
			continue
		case followsNew:
			var distance uint64
			distance, at = prefix(old, at)
			told := expected.next + uint32(unzigzag(distance))
			if at > end || int(told) >= len(r.follow) {
				return errControl
			}
			r.made = appendPrefix(r.made, zigzag(uint64(r.number[told])-uint64(r.number[expected.next])))
			expected.other = told
		}
		if expected.other != expected.next {
			r.changed = append(r.changed, block)
			r.follow[block] = follow{expected.other, expected.next}
		}
		block = expected.other
	}
	return nil
}
