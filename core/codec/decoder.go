package codec

import (
	"encoding/binary"
	"strconv"
)

// Error explains why bytes cannot be read.
type Error struct {
	Offset int    // index of the next byte in the input
	What   string // the error, the expected value, and how to correct the error
}

func (e *Error) Error() string { return "byte " + strconv.Itoa(e.Offset) + ": " + e.What }

// Decoder reads a sequence of numbers and texts. After the first error, which Err returns, all
// values that are read are zero.
type Decoder struct {
	in   []byte
	at   int // number of bytes of Decoder.in that have been read
	base int // offset of Decoder.in in the file
	err  *Error
}

// NewDecoder returns a decoder for data.
func NewDecoder(data []byte) *Decoder { return &Decoder{in: data} }

// Err returns the first error, an [*Error], or nil.
func (d *Decoder) Err() error {
	if d.err == nil {
		return nil
	}
	return d.err
}

// Fail records an error at the current position, unless an error has already been recorded.
func (d *Decoder) Fail(what string) { d.FailAt(d.at, what) }

// FailAt is like Fail, but records the error at the given offset from the beginning of the data.
func (d *Decoder) FailAt(offset int, what string) {
	if d.err == nil {
		d.err = &Error{d.base + offset, what}
	}
}

// Join copies the error of another decoder, the parameter part, to d, unless d already has an
// error.
func (d *Decoder) Join(part *Decoder) {
	if d.err == nil {
		d.err = part.err
	}
}

// Offset returns the number of bytes read so far.
func (d *Decoder) Offset() int { return d.at }

// Rest returns the bytes that have not been read yet.
func (d *Decoder) Rest() []byte { return d.in[d.at:] }

// Take reads all remaining bytes. The result aliases the decoder's data.
func (d *Decoder) Take() []byte { return d.bytes(uint64(len(d.in) - d.at)) }

// Part reads n bytes, and returns a decoder for these bytes. Part does not copy the bytes.
func (d *Decoder) Part(n uint64) *Decoder {
	part := &Decoder{base: d.base + d.at, err: d.err}
	if part.in = d.bytes(n); d.err != nil {
		part.err = d.err
	}
	return part
}

// bytes reads the next n bytes. bytes returns nil after an error.
func (d *Decoder) bytes(n uint64) []byte {
	if d.err == nil && n > uint64(len(d.in)-d.at) {
		d.Fail(cutOff)
	}
	if d.err != nil {
		return nil
	}
	d.at += int(n)
	return d.in[d.at-int(n) : d.at]
}

const cutOff = "the file ends too early; copy the file again"

// Uint reads an unsigned LEB128 varint.
func (d *Decoder) Uint() uint64 {
	if d.err != nil {
		return 0
	}
	if d.at < len(d.in) && d.in[d.at] < 0x80 {
		d.at++
		return uint64(d.in[d.at-1])
	}
	v, n := binary.Uvarint(d.in[d.at:])
	if n <= 0 {
		if n == 0 {
			d.Fail(cutOff)
		} else {
			d.Fail("a number does not fit in 64 bits")
		}
		return 0
	}
	d.at += n
	return v
}

// UintBelow reads a varint that must be below limit.
func (d *Decoder) UintBelow(limit uint64) uint64 {
	at := d.at
	v := d.Uint()
	if v >= limit {
		d.at = at
		d.Fail("a number is " + strconv.FormatUint(v, 10) + ", want less than " + strconv.FormatUint(limit, 10))
		return 0
	}
	return v
}

// Int reads a zigzag varint.
func (d *Decoder) Int() int64 {
	v := d.Uint()
	return int64(v>>1) ^ -int64(v&1)
}

// Word reads eight bytes, little-endian.
func (d *Decoder) Word() uint64 {
	b := d.bytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// Length reads the length of a list. The parameter least is the minimum encoded size of a member in
// bytes. Length rejects lists that are longer than the remaining data. Even if a length is damaged,
// a caller therefore never allocates much more memory than the size of the file.
func (d *Decoder) Length(least int) int {
	return int(d.UintBelow(uint64(len(d.in)-d.at)/uint64(least) + 1))
}

// Bytes reads a length and then the given number of bytes. The result aliases the decoder's data.
func (d *Decoder) Bytes() []byte { return d.bytes(d.Uint()) }

// String reads a length and then a string of this length.
func (d *Decoder) String() string { return string(d.Bytes()) }
