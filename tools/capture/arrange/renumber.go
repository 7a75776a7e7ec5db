package arrange

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"slices"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

var errControl = errors.New("the control part of a chunk makes no sense")

// renumberer changes the numbers of blocks in chunks. Only the control part of a chunk names blocks, and
// only a block that differs from the two that followed last, by its distance from the expected one
// (core/trace/sgt/FORMAT.md, "Chunks"). So values and tickets stay, and those two blocks are all the
// coder's state that is needed. Block 0 keeps its number, because chunks begin as if it had run.
type renumberer struct {
	number  []uint32 // new numbers by the old ones
	follow  []follow // by old number
	changed []uint32 // blocks whose entry in follow has changed

	content, control []byte
	unpacker         *lz4.Reader
	packed           bytes.Buffer
	packer           *lz4.Writer
}

// follow are the blocks that followed a block: last, and before that.
type follow struct{ next, other uint32 }

func newRenumberer(number []uint32) *renumberer {
	r := &renumberer{number: number, follow: make([]follow, len(number)), unpacker: lz4.NewReader(nil), packer: lz4.NewWriter(nil)}
	for i := range r.follow {
		r.follow[i] = follow{uint32(i), uint32(i)}
	}
	return r
}

// chunk changes a chunk's head and returns its new LZ4 frame, which is valid until the next call.
func (r *renumberer) chunk(file io.ReaderAt, c *sgt.RecordedChunk) ([]byte, error) {
	total := int(c.ControlBytes + c.ValueBytes + c.TicketBytes)
	r.content = slices.Grow(r.content[:0], total)[:total]
	r.unpacker.Reset(io.NewSectionReader(file, c.Offset, int64(c.FrameBytes)))
	if _, err := io.ReadFull(r.unpacker, r.content); err != nil {
		return nil, err
	}
	if err := r.translate(r.content[:c.ControlBytes], c.Steps); err != nil {
		return nil, err
	}
	frame, err := r.pack(r.content[c.ControlBytes:])
	c.ControlBytes, c.FrameBytes = uint64(len(r.control)), uint64(len(frame))
	return frame, err
}

// Parts of a token's first number (core/trace/sgt/FORMAT.md, "The control part").
const (
	tokenBlock   = 3 // mask: how its block is named
	blockNext    = 0
	blockOther   = 1
	blockTold    = 2 // by its distance from the expected one
	runShift     = 2
	longRun      = 3 // mask; the rest of a run as long as this follows
	blockInvalid = 3
)

// translate sets r.control to the new control part of that many steps.
func (r *renumberer) translate(old []byte, steps uint64) error {
	for _, b := range r.changed {
		r.follow[b] = follow{b, b}
	}
	r.changed, r.control = r.changed[:0], r.control[:0]
	block := uint32(0)
	if len(r.follow) == 0 {
		return errControl // there are no blocks
	}
	for len(old) > 0 {
		token, n := prefix(old)
		run := token >> runShift & longRun
		how := token & tokenBlock
		if n > 0 && run == longRun {
			rest, more := prefix(old[n:])
			if run += rest; more == 0 || run < rest {
				return errControl
			}
			n += more
		}
		if n == 0 || how == blockInvalid || run >= steps {
			return errControl
		}
		r.control, old = append(r.control, old[:n]...), old[n:]
		steps -= run + 1
		for range run {
			block = r.follow[block].next
		}
		expected := r.follow[block]
		switch how {
		case blockNext:
			block = expected.next
			continue
		case blockOther:
		case blockTold:
			distance, n := prefix(old)
			told := expected.next + uint32(unzigzag(distance))
			if n == 0 || int(told) >= len(r.follow) {
				return errControl
			}
			old = old[n:]
			r.control = appendPrefix(r.control, zigzag(uint64(r.number[told])-uint64(r.number[expected.next])))
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

// pack returns an LZ4 frame of the control part and the two others.
func (r *renumberer) pack(others []byte) ([]byte, error) {
	r.packed.Reset()
	r.packer.Reset(&r.packed)
	if err := r.packer.Apply(lz4.SizeOption(uint64(len(r.control) + len(others)))); err != nil {
		return nil, err
	}
	for _, part := range [][]byte{r.control, others} {
		if _, err := r.packer.Write(part); err != nil {
			return nil, err
		}
	}
	err := r.packer.Close()
	return r.packed.Bytes(), err
}

// prefix reads a prefix varint (core/trace/sgt/FORMAT.md, "Integers"); n is its number of bytes, 0 if the
// text ends within it.
func prefix(text []byte) (v uint64, n int) {
	if len(text) == 0 {
		return 0, 0
	}
	more := min(bits.TrailingZeros8(text[0]), 8)
	if len(text) <= more {
		return 0, 0
	}
	var word [8]byte
	if more == 8 {
		return binary.LittleEndian.Uint64(text[1:]), 9
	}
	copy(word[:], text[:more+1])
	return binary.LittleEndian.Uint64(word[:]) >> (more + 1), more + 1
}

// appendPrefix appends a prefix varint.
func appendPrefix(dst []byte, v uint64) []byte {
	more := (bits.Len64(v|1) - 1) / 7
	if more >= 8 {
		return binary.LittleEndian.AppendUint64(append(dst, 0), v)
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], v<<(more+1)|1<<more)
	return append(dst, word[:more+1]...)
}

func zigzag(d uint64) uint64   { return d<<1 ^ uint64(int64(d)>>63) }
func unzigzag(z uint64) uint64 { return z>>1 ^ -(z & 1) }
