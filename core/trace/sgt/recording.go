package sgt

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// ChunkHead describes a chunk: it is the content of its CHNK frame.
type ChunkHead struct {
	Thread                                uint32
	Steps, References                     uint64
	FirstTicket, LastTicket, Floor        uint64
	ControlBytes, ValueBytes, TicketBytes uint64
	FrameBytes                            uint64 // of its LZ4 frame
}

// RecordedChunk is a chunk of a recording, with the offset of its LZ4 frame.
type RecordedChunk struct {
	ChunkHead
	Offset int64
}

// Recording is a container up to its last whole frame: the recorder may have been killed.
type Recording struct {
	Header trace.Header
	Ending Ending
	Chunks []RecordedChunk
}

// ReadRecording reads everything but the content of chunks. The error reports wrong tables, or that there
// is no container.
func ReadRecording(file io.ReaderAt, size int64) (*Recording, error) {
	in := &stream{feed: feed{r: sectionFrom(file, 0, size)}, headersOnly: true}
	r := newReader("the recording", Options{}, in, &told{})
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
		return nil, errors.New("the trace was not even begun")
	}
	recording.Header, recording.Ending = r.Header(), r.ending
	return recording, nil
}

// CopyChunk writes a chunk, given its LZ4 frame. It is for writers without steps of their own.
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
