package stack

import (
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/stackglass/stackglass/core/trace"
)

// Shelf is a spill store: it stores blocks of bytes outside memory, in a folder or a database.
// Blocks are numbered within a run, and written in order from 0.
type Shelf interface {
	// Write stores a block. Write does not retain data.
	Write(run, block uint32, data []byte) error
	// Read returns the data of a block. The slice is valid until the next call to Read.
	Read(run, block uint32) ([]byte, error)
	// Drop deletes a block that will never be read again.
	Drop(run, block uint32) error
}

// shelfBlock is the minimum size of a block, except the last block of a run. Disks and browser
// databases are fastest with blocks of one to four million bytes.
const shelfBlock = 2 << 20

var errShelfBlock = errors.New("data that did not fit in memory was stored on disk and has changed since; check the disk, and analyse the trace again")

// shelfWriter writes lines in ascending order with their stamps. Each line and stamp is stored as
// the difference from the previous line and stamp. A line takes two bytes if the line with the
// preceding number was accessed immediately before it.
//
//	block   number of its lines, a uvarint, after a checksum of 8 bytes
//	line    difference from the previous line, or from 0 for the first of a block: uvarint
//	stamp   difference from the previous stamp plus 1, or from 0: varint
type shelfWriter struct {
	shelf      Shelf
	size       int // minimum size of a block
	run, block uint32
	lines      uint64 // number of lines in the block
	line       trace.Line
	next       uint32 // the last stamp plus 1
	data       []byte
	head       [binary.MaxVarintLen64]byte
}

const shelfHead = 8 + binary.MaxVarintLen64 // space reserved before the lines of a block

func (w *shelfWriter) begin(shelf Shelf, run uint32) {
	if w.data == nil {
		w.data = make([]byte, shelfHead, w.size+2*binary.MaxVarintLen64)
	}
	w.shelf, w.run, w.block = shelf, run, 0
}

func (w *shelfWriter) write(line trace.Line, stamp uint32) error {
	w.data = binary.AppendUvarint(w.data, line-w.line)
	w.data = binary.AppendVarint(w.data, int64(stamp)-int64(w.next))
	w.line, w.next = line, stamp+1
	w.lines++
	if len(w.data) >= w.size {
		return w.flush()
	}
	return nil
}

func (w *shelfWriter) flush() error {
	if w.lines == 0 {
		return nil
	}
	n := binary.PutUvarint(w.head[:], w.lines)
	data := w.data[shelfHead-8-n:]
	copy(data[8:], w.head[:n])
	binary.LittleEndian.PutUint64(data, xxhash.Sum64(data[8:]))
	if err := w.shelf.Write(w.run, w.block, data); err != nil {
		return err
	}
	w.block++
	w.lines, w.line, w.next, w.data = 0, 0, 0, w.data[:shelfHead]
	return nil
}

// shelfReader reads the lines of a run in order, and deletes each block after reading it.
type shelfReader struct {
	shelf  Shelf
	run    uint32
	block  uint32 // number of the next block
	blocks uint32 // number of blocks in the run
	keep   bool   // whether blocks are kept after they have been read
	left   uint64 // number of lines of the block that have not been read
	data   []byte // the remaining bytes of the block
	line   trace.Line
	next   uint32
}

// read returns the next line and its stamp. After the last line, the result "more" is false.
func (r *shelfReader) read() (line trace.Line, stamp uint32, more bool, err error) {
	if r.left == 0 {
		if more, err := r.open(); !more {
			return 0, 0, false, err
		}
	}
	gap, n := binary.Uvarint(r.data)
	if n <= 0 {
		return 0, 0, false, errShelfBlock
	}
	step, m := binary.Varint(r.data[n:])
	if m <= 0 {
		return 0, 0, false, errShelfBlock
	}
	r.data = r.data[n+m:]
	r.left--
	r.line += gap
	stamp = uint32(int64(r.next) + step)
	r.next = stamp + 1
	return r.line, stamp, true, nil
}

// open deletes the previous block unless the field "keep" is set, and reads the next block.
func (r *shelfReader) open() (more bool, err error) {
	if !r.keep && r.block > 0 {
		if err := r.shelf.Drop(r.run, r.block-1); err != nil {
			return false, err
		}
	}
	if r.block == r.blocks {
		return false, nil
	}
	data, err := r.shelf.Read(r.run, r.block)
	if err != nil {
		return false, err
	}
	if len(data) < 8 || binary.LittleEndian.Uint64(data) != xxhash.Sum64(data[8:]) {
		return false, errShelfBlock
	}
	n := 0
	if r.left, n = binary.Uvarint(data[8:]); n <= 0 || r.left == 0 {
		return false, errShelfBlock
	}
	r.block++
	r.data, r.line, r.next = data[8+n:], 0, 0
	return true, nil
}
