package sgt

import (
	"encoding/binary"
	"math/bits"
)

// appendStr appends a str: its length and its bytes.
func appendStr(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// zigzag maps a signed difference modulo 2^64 to a number that is small if the difference is.
func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

// unzigzag is the inverse of [zigzag].
func unzigzag(z uint64) uint64 { return z>>1 ^ -(z & 1) }

// appendPrefix appends a prefix varint.
func appendPrefix(dst []byte, v uint64) []byte {
	more := (bits.Len64(v|1) - 1) / 7 // bytes after the first
	if more >= 8 {
		return binary.LittleEndian.AppendUint64(append(dst, 0), v)
	}
	word := v<<(more+1) | 1<<more
	for ; more >= 0; more-- {
		dst = append(dst, byte(word))
		word >>= 8
	}
	return dst
}

// cursor reads numbers and texts. After an error, which wrong describes, it reads zeros.
type cursor struct {
	bytes []byte
	at    int
	last  int // where the last number began
	wrong *TableError
}

// fail records the first error.
func (c *cursor) fail(what string, got uint64, want string) {
	if c.wrong == nil {
		c.wrong = &TableError{Offset: c.last, What: what, Got: got, Want: want}
	}
	c.at = len(c.bytes)
}

// uv reads a number.
func (c *cursor) uv() uint64 {
	v, n := binary.Uvarint(c.bytes[c.at:])
	c.last = c.at
	if n <= 0 {
		c.fail("number", uint64(len(c.bytes)-c.at), "LEB128 in the bytes that are left")
		return 0
	}
	c.at += n
	return v
}

// below reads a number less than limit; what names it.
func (c *cursor) below(limit uint64, what string) uint64 {
	v := c.uv()
	if v >= limit {
		c.fail(what, v, "less than "+decimal(limit))
		return 0
	}
	return v
}

// u32 reads a number of 32 bits.
func (c *cursor) u32(what string) uint32 { return uint32(c.below(1<<32, what)) }

// count reads the length of a list whose entries have at least least bytes each, and checks that they fit.
func (c *cursor) count(least int, what string) int {
	n := c.uv()
	if most := uint64(len(c.bytes)-c.at) / uint64(least); n > most {
		c.fail(what, n, "at most "+decimal(most)+" in the bytes that are left")
		return 0
	}
	return int(n)
}

// str reads a text.
func (c *cursor) str() string {
	n := c.count(1, "length of a text")
	c.at += n
	return string(c.bytes[c.at-n : c.at])
}

// end checks that all bytes were read.
func (c *cursor) end() error {
	if c.at < len(c.bytes) {
		c.fail("bytes behind the end", uint64(len(c.bytes)-c.at), "none")
	}
	if c.wrong != nil {
		return c.wrong
	}
	return nil
}
