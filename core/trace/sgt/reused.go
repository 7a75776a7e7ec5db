package sgt

import (
	"errors"
	"io"

	"github.com/pierrec/lz4/v4"
)

// reused keeps memory from chunk to chunk.
type reused struct {
	chunks   []*chunk
	decoders []*decoder
	earlies  []*early
	split    bool // what decoders have
}

// chunk gives an empty one, with the memory of one that is done.
func (m *reused) chunk() *chunk {
	last := len(m.chunks) - 1
	if last < 0 {
		return &chunk{}
	}
	c := m.chunks[last]
	m.chunks = m.chunks[:last]
	return c
}

func (m *reused) decoder() *decoder {
	last := len(m.decoders) - 1
	if last < 0 {
		return &decoder{split: m.split}
	}
	d := m.decoders[last]
	m.decoders = m.decoders[:last]
	return d
}

func (m *reused) early() *early {
	last := len(m.earlies) - 1
	if last < 0 {
		return newEarly()
	}
	e := m.earlies[last]
	m.earlies = m.earlies[:last]
	return e
}

// takeBack takes a chunk that is done and its decoder, which may be nil.
func (m *reused) takeBack(c *chunk, d *decoder) {
	m.chunks = append(m.chunks, c)
	if d != nil {
		m.decoders = append(m.decoders, d)
	}
}

var errContent = errors.New("its content has another length than its frame says")

// start unpacks a chunk and begins with it.
func (d *decoder) start(c *chunk, plans []plan) error {
	if err := d.unpack(c); err != nil {
		return err
	}
	return d.begin(c, plans)
}

// unpack takes the content of a chunk. LZ4 makes at most 255 bytes of one, so
// that a length beyond that is not believed.
func (d *decoder) unpack(c *chunk) error {
	n := c.contentBytes()
	if n > 255*uint64(len(c.packed)) {
		return errContent
	}
	if uint64(cap(d.content)) < n+slack {
		d.content = make([]byte, n+slack)
	}
	d.content = d.content[:n+slack]
	d.packed.Reset(c.packed)
	if d.unpacker == nil {
		d.unpacker = lz4.NewReader(nil)
	}
	d.unpacker.Reset(&d.packed)
	if _, err := io.ReadFull(d.unpacker, d.content[:n]); err != nil {
		return err
	}
	// Reading on makes the library look at the checksum.
	if extra, err := d.unpacker.Read(d.content[n : n+1]); extra > 0 || err == nil {
		return errContent
	} else if err != io.EOF {
		return err
	}
	clear(d.content[n:])
	return nil
}
