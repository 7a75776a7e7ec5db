package sgt

// slots maps blocks to slots in the current chunk. Only a few blocks of a large program occur in a
// chunk. Each block that occurs gets the next free slot, so the cost of a reset depends only on the
// number of slots in use.
type slots struct {
	of    []slotAt // the slot of each block
	chunk uint32   // number of the current chunk; slots of earlier chunks are invalid
}

type slotAt struct{ chunk, slot uint32 }

// forget invalidates the slots of all blocks.
func (s *slots) forget() {
	if s.chunk++; s.chunk == 0 { // the chunk number has overflowed after 2^32 chunks
		clear(s.of)
		s.chunk = 1
	}
}

// at returns a pointer to the slot of a block. The parameter "blocks" is the total number of
// blocks.
func (s *slots) at(block uint32, blocks int) *slotAt {
	if int(block) >= len(s.of) {
		s.of = append(s.of, make([]slotAt, blocks-len(s.of))...)
	}
	return &s.of[block]
}

// encoder writes the steps of one thread into a chunk's three parts.
type encoder struct {
	slots
	blocks []encodedBlock
	values []encodedValue

	control, value, ticket []byte

	before   uint32 // slot of the last step's block
	previous uint64 // the last value, of any site
	run      uint64 // number of expected steps that have not been written yet

	steps, references       uint64
	firstTicket, lastTicket uint64
	ticketSteps             uint64 // number of steps of the last ticket
	ticketBefore            uint64 // the ticket before the last ticket
}

type encodedBlock struct {
	number      uint32
	next, other uint32 // slot of the block that most recently followed this block, and the value of the field "next" before its last change
	first       uint32 // index of the block's first value
}

type encodedValue struct {
	last, stride, link uint64
	pick, sure         bool
}

func (e *encoder) begin(layouts []layout) {
	e.forget()
	e.blocks, e.values = e.blocks[:0], e.values[:0]
	e.previous = 0
	e.before = e.slot(0, layouts)
}

// slot returns a block's slot in this chunk.
func (e *encoder) slot(block uint32, layouts []layout) uint32 {
	at := e.at(block, len(layouts))
	if at.chunk != e.chunk {
		*at = slotAt{e.chunk, uint32(len(e.blocks))}
		e.blocks = append(e.blocks, encodedBlock{number: block, next: at.slot, other: at.slot, first: uint32(len(e.values))})
		for range layouts[block].scales {
			e.values = append(e.values, encodedValue{})
		}
	}
	return at.slot
}

// step writes one execution of a block and returns the number of its references.
func (e *encoder) step(ticket uint64, block uint32, values []uint64, layouts []layout) (references uint64) {
	if e.steps == 0 {
		e.firstTicket, e.lastTicket, e.ticketBefore = ticket, ticket, ticket
	} else if ticket != e.lastTicket {
		e.endTicket()
		e.ticketBefore, e.lastTicket = e.lastTicket, ticket
	}
	e.ticketSteps++
	e.steps++
	references = layouts[block].referencesOf(values)
	e.references += references

	slot := e.slot(block, layouts)
	b := &e.blocks[slot]
	states := e.values[b.first : int(b.first)+len(values)]
	var misses uint64
	for i, v := range values {
		if !e.update(&states[i], v, layouts[block].scales[i]) {
			misses |= 1 << i
		}
	}
	before := &e.blocks[e.before]
	e.before = slot
	switch slot {
	case before.next:
		if misses == 0 {
			e.run++
		} else {
			e.token(misses, followsNext)
		}
		return references
	case before.other:
		e.token(misses, followsOther)
	default:
		e.token(misses, followsNew)
		e.control = appendPrefix(e.control, zigzag(uint64(block)-uint64(e.blocks[before.next].number)))
	}
	before.next, before.other = slot, before.next
	return references
}

// A token identifies the block of its step in one of three ways: as the block that most recently
// followed the previous block (next), as the value of "next" before its last change (other), or as
// a new block.
const (
	followsNext = iota
	followsOther
	followsNew
)

// A token with longRun represents a run of at least longRun steps. The length minus longRun follows
// the token.
const longRun = 3

// token writes the token for the expected steps that have not been written yet and for the step
// that follows them.
func (e *encoder) token(misses, follows uint64) {
	e.control = appendPrefix(e.control, misses<<4|min(e.run, longRun)<<2|follows)
	if e.run >= longRun {
		e.control = appendPrefix(e.control, e.run-longRun)
	}
	e.run = 0
}

// update encodes a value if it was mispredicted, and reports whether it was predicted correctly.
func (e *encoder) update(s *encodedValue, v uint64, scale uint8) (hit bool) {
	last := s.last
	if hit = s.learn(v, e.previous); !hit {
		e.difference(v-last, scale)
	}
	e.previous = v
	return hit
}

// expects reports whether a value equals its prediction.
func (s *encodedValue) expects(v, previous uint64) bool {
	if s.pick {
		return v == previous+s.link
	}
	return v == s.last+s.stride
}

// learn updates the predictors with a value, and reports whether the value was predicted correctly.
func (s *encodedValue) learn(v, previous uint64) (hit bool) {
	if s.expects(v, previous) {
		s.last, s.sure = v, true
		return true
	}
	d := v - s.last
	if s.pick {
		s.pick = d != s.stride
	} else {
		s.pick = v == previous+s.link
	}
	if s.sure {
		s.sure = false
	} else {
		s.stride = d
	}
	s.link, s.last = v-previous, v
	return false
}

// difference writes the difference between a value and the last value of its site.
func (e *encoder) difference(d uint64, scale uint8) {
	if scale == 0 {
		e.value = appendPrefix(e.value, zigzag(d))
		return
	}
	z := zigzag(uint64(int64(d) >> scale))
	if low := d & (1<<scale - 1); low != 0 {
		e.value = appendPrefix(e.value, z<<1|1)
		e.value = appendPrefix(e.value, low)
		return
	}
	e.value = appendPrefix(e.value, z<<1)
}

// endRun writes a token for the remaining expected steps.
func (e *encoder) endRun() {
	if e.run > 0 {
		e.run--
		e.token(0, followsNext)
	}
}

// endTicket writes the last ticket.
func (e *encoder) endTicket() {
	e.ticket = appendPrefix(e.ticket, e.ticketSteps)
	e.ticket = appendPrefix(e.ticket, e.lastTicket-e.ticketBefore)
	e.ticketSteps = 0
}

// end completes the three parts: it writes the remaining steps and the last ticket.
func (e *encoder) end() {
	e.endRun()
	e.endTicket()
}

// empty prepares the encoder for the next chunk.
func (e *encoder) empty() {
	e.control, e.value, e.ticket = e.control[:0], e.value[:0], e.ticket[:0]
	e.steps, e.references = 0, 0
}

// bytes returns the total length of the chunk's parts so far.
func (e *encoder) bytes() int { return len(e.control) + len(e.value) + len(e.ticket) }
