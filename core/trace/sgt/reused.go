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
	split    bool // of new decoders
}

// reuse removes the last entry of a pool and returns it, or a new one.
func reuse[T any](pool *[]*T, create func() *T) *T {
	last := len(*pool) - 1
	if last < 0 {
		return create()
	}
	entry := (*pool)[last]
	*pool = (*pool)[:last]
	return entry
}

func (m *reused) chunk() *chunk { return reuse(&m.chunks, func() *chunk { return &chunk{} }) }

func (m *reused) decoder() *decoder {
	return reuse(&m.decoders, func() *decoder { return &decoder{split: m.split} })
}

func (m *reused) early() *early { return reuse(&m.earlies, newEarly) }

// takeBack takes a chunk that is done and its decoder, which may be nil.
func (m *reused) takeBack(c *chunk, d *decoder) {
	m.chunks = append(m.chunks, c)
	if d != nil {
		m.decoders = append(m.decoders, d)
	}
}

var errContent = errors.New("its content has another length than its frame says")

// start decompresses a chunk and begins to decode it.
func (d *decoder) start(c *chunk, plans []plan) error {
	if err := d.unpack(c); err != nil {
		return err
	}
	return d.begin(c, plans)
}

// unpack decompresses the content of a chunk. LZ4 expands a byte to at most 255, which limits a
// wrong length.
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
	// Reading on makes the library check the checksum.
	if extra, err := d.unpacker.Read(d.content[n : n+1]); extra > 0 || err == nil {
		return errContent
	} else if err != io.EOF {
		return err
	}
	clear(d.content[n:])
	return nil
}
