package sgt

// chunk is what the body of a CHNK frame says.
type chunk struct {
	thread                                uint32
	steps, references                     uint64
	firstTicket, lastTicket, floor        uint64
	controlBytes, valueBytes, ticketBytes uint64
	frameBytes                            uint64

	at     uint64 // offset of the CHNK frame
	packed []byte // the LZ4 frame
	early  *early // nil: it is not being decoded yet
	known  *known // of the program before it
}

// Limits that a chunk keeps.
const (
	mostSteps   = 1 << 26 // in a chunk
	mostContent = 1 << 26 // bytes in a chunk
	mostPacked  = mostContent + 1<<20
)

// parseChunk reads the body of a CHNK frame.
func parseChunk(body []byte) (c chunk, err error) {
	r := cursor{bytes: body}
	c.thread = r.u32("thread")
	c.steps = r.below(mostSteps+1, "steps")
	c.references, c.firstTicket, c.lastTicket, c.floor = r.uv(), r.uv(), r.uv(), r.uv()
	c.controlBytes = r.below(mostContent+1, "control bytes")
	c.valueBytes = r.below(mostContent+1, "value bytes")
	c.ticketBytes = r.below(mostContent+1, "ticket bytes")
	c.frameBytes = r.below(mostPacked+1, "frame bytes")
	if content := c.contentBytes(); content > mostContent {
		r.fail("content bytes", content, "at most "+decimal(mostContent))
	}
	if c.lastTicket < c.firstTicket {
		r.fail("last ticket", c.lastTicket, "at least the first, "+decimal(c.firstTicket))
	}
	return c, r.end()
}

// contentBytes is the length of the three parts.
func (c *chunk) contentBytes() uint64 { return c.controlBytes + c.valueBytes + c.ticketBytes }
