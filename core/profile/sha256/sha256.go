// Package sha256 computes SHA-256 (FIPS 180-4, section 6.2) in the browser. Outside the browser,
// programs use the standard library. For FIPS certification, the standard library's package also
// links ciphers and random number generators, which would account for 2.5 % of the bytes that a
// first visit to the page transfers.
//
// The constants are computed as the standard defines them: the first 32 bits of the fractional
// parts of the square and cube roots of the first primes.
package sha256

import (
	"encoding/binary"
	"math/bits"
)

// Size is the length of a sum in bytes.
const Size = 32

const (
	blockBytes = 64
	rounds     = 64
	lengthAt   = blockBytes - 8 // offset of the message's length, in bits, within the last block
)

// Hash computes the hash of the bytes that are written to it. The zero value is invalid; use [New].
type Hash struct {
	state [8]uint32
	part  [blockBytes]byte // begins with the incomplete block, whose length is bytes % blockBytes
	bytes uint64           // number of bytes written
}

// New returns a hash to which no bytes have been written.
func New() *Hash { return &Hash{state: initial} }

// Write adds p to the hash. Write never fails.
func (h *Hash) Write(p []byte) (int, error) {
	written := len(p)
	if filled := int(h.bytes % blockBytes); filled > 0 {
		n := copy(h.part[filled:], p)
		p = p[n:]
		if filled+n == blockBytes {
			h.block(h.part[:])
		}
	}
	h.bytes += uint64(written)
	for ; len(p) >= blockBytes; p = p[blockBytes:] {
		h.block(p)
	}
	if len(p) > 0 {
		copy(h.part[:], p)
	}
	return written, nil
}

// Sum appends the sum of the bytes so far to out.
func (h *Hash) Sum(out []byte) []byte {
	end := *h
	padding := [2 * blockBytes]byte{0x80}
	n := blockBytes - int(h.bytes%blockBytes)
	if n <= blockBytes-lengthAt {
		n += blockBytes
	}
	binary.BigEndian.PutUint64(padding[n-8:], 8*h.bytes)
	end.Write(padding[:n])
	for _, word := range end.state {
		out = binary.BigEndian.AppendUint32(out, word)
	}
	return out
}

// block adds the first block of p to the hash.
func (h *Hash) block(p []byte) {
	var w [rounds]uint32
	for i := range 16 {
		w[i] = binary.BigEndian.Uint32(p[4*i:])
	}
	for i := 16; i < rounds; i++ {
		x, y := w[i-15], w[i-2]
		s0 := bits.RotateLeft32(x, -7) ^ bits.RotateLeft32(x, -18) ^ x>>3
		s1 := bits.RotateLeft32(y, -17) ^ bits.RotateLeft32(y, -19) ^ y>>10
		w[i] = w[i-16] + s0 + w[i-7] + s1
	}
	a, b, c, d, e, f, g, k := h.state[0], h.state[1], h.state[2], h.state[3], h.state[4], h.state[5], h.state[6], h.state[7]
	for i, word := range w {
		s1 := bits.RotateLeft32(e, -6) ^ bits.RotateLeft32(e, -11) ^ bits.RotateLeft32(e, -25)
		t1 := k + s1 + (e&f ^ ^e&g) + constants[i] + word
		s0 := bits.RotateLeft32(a, -2) ^ bits.RotateLeft32(a, -13) ^ bits.RotateLeft32(a, -22)
		t2 := s0 + (a&b ^ a&c ^ b&c)
		a, b, c, d, e, f, g, k = t1+t2, a, b, c, d+t1, e, f, g
	}
	for i, word := range [8]uint32{a, b, c, d, e, f, g, k} {
		h.state[i] += word
	}
}

var initial, constants = words()

// words computes the initial state from square roots of primes, and the constants of the rounds
// from cube roots.
func words() (state [8]uint32, constants [rounds]uint32) {
	n := 0
	for p := uint64(2); n < rounds; p++ {
		if !isPrime(p) {
			continue
		}
		if n < len(state) {
			state[n] = fraction(p, 2)
		}
		constants[n] = fraction(p, 3)
		n++
	}
	return state, constants
}

func isPrime(n uint64) bool {
	for d := uint64(2); d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
}

// fraction returns the first 32 bits of the fractional part of a prime's root. It tries the bits of
// the root from the highest to the lowest, and sets each bit that keeps the power of the root below
// the prime.
func fraction(prime uint64, degree int) uint32 {
	root := uint64(0) // in units of 2^-32
	for bit := uint64(1) << 36; bit > 0; bit >>= 1 {
		if powerIsBelow(root|bit, degree, prime) {
			root |= bit
		}
	}
	return uint32(root)
}

// powerIsBelow reports whether root to the power of degree, which is 2 or 3, is less than n.
// powerIsBelow computes the power exactly, in three words. The root has at most 37 bits.
func powerIsBelow(root uint64, degree int, n uint64) bool {
	high, low := bits.Mul64(root, root) // in units of 2^-64
	if degree == 2 {
		return high < n
	}
	top, mid := bits.Mul64(high, root)
	carry, _ := bits.Mul64(low, root)
	_, over := bits.Add64(mid, carry, 0)
	return (top+over)<<32|(mid+carry)>>32 < n // in units of 2^-96
}
