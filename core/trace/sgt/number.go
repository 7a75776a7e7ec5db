package sgt

import (
	"encoding/binary"
	"math/bits"
)

// appendStr appends a str: its length and its bytes.
func appendStr(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// zigzag turns a signed difference modulo 2^64 into a number that is small
// where the difference is.
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

// cursor takes numbers and texts from the front of bytes. Once something does
// not fit, everything else it gives is 0, and wrong says where that was.
type cursor struct {
	bytes []byte
	at    int
	last  int // where the last number began
	wrong *TableError
}

// fail remembers the first thing that is wrong.
func (c *cursor) fail(what string, got uint64, want string) {
	if c.wrong == nil {
		c.wrong = &TableError{Offset: c.last, What: what, Got: got, Want: want}
	}
	c.at = len(c.bytes)
}

// uv takes a number.
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

// below takes a number less than limit; what names it.
func (c *cursor) below(limit uint64, what string) uint64 {
	v := c.uv()
	if v >= limit {
		c.fail(what, v, "less than "+decimal(limit))
		return 0
	}
	return v
}

// u32 takes a number of 32 bits.
func (c *cursor) u32(what string) uint32 { return uint32(c.below(1<<32, what)) }

// count takes the length of a list whose entries take least bytes each or more,
// so that no length is believed that the bytes behind it cannot bear out.
func (c *cursor) count(least int, what string) int {
	n := c.uv()
	if most := uint64(len(c.bytes)-c.at) / uint64(least); n > most {
		c.fail(what, n, "at most "+decimal(most)+" in the bytes that are left")
		return 0
	}
	return int(n)
}

// str takes a text.
func (c *cursor) str() string {
	n := c.count(1, "length of a text")
	c.at += n
	return string(c.bytes[c.at-n : c.at])
}

// end wants nothing to be left.
func (c *cursor) end() error {
	if c.at < len(c.bytes) {
		c.fail("bytes behind the end", uint64(len(c.bytes)-c.at), "none")
	}
	if c.wrong != nil {
		return c.wrong
	}
	return nil
}
