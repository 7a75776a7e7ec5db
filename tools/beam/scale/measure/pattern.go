// Package measure measures the constants of package scale's model on the machine on which it runs.
// It analyses, joins and encodes segments as package pass does, each in a separate process with one
// processor, and measures the processor time.
package measure

import (
	"fmt"
	"io"
	"math/bits"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Pattern is an order in which to access a power-of-two number of 64-byte lines, in rounds that
// each touch all of them.
type Pattern string

// The two patterns bound the behaviour of programs. A sweep reads the eight words of each line,
// line by line, so every reference is near the previous one. A chase reads one word of each line,
// in a new random order in every round.
const (
	Sweep Pattern = "sweep"
	Chase Pattern = "chase"

	stride Pattern = "stride" // a sweep that reads one word of each line; its states are the same
)

// Patterns lists the patterns that bound programs.
var Patterns = []Pattern{Sweep, Chase}

// References returns the number of references to each line in a round.
func (p Pattern) References() uint64 {
	if p == Sweep {
		return 8
	}
	return 1
}

// address returns the address of reference number i, for 1 << lineBits lines.
func (p Pattern) address(i uint64, lineBits int) trace.Addr {
	switch p {
	case Sweep:
		return i * 8 % (64 << lineBits)
	case stride:
		return i * 64 % (64 << lineBits)
	}
	return shuffle(i%(1<<lineBits), i>>lineBits, lineBits) * 64
}

// shuffle permutes the numbers with a given number of bits, differently in every round. Each step
// is invertible: an XOR, a product with an odd number, and an XOR with the upper bits.
func shuffle(x, round uint64, numberBits int) uint64 {
	mask := uint64(1)<<numberBits - 1
	half := (numberBits + 1) / 2
	key := (round + 1) * 0x9e3779b97f4a7c15
	for range 3 {
		x = (x ^ key) & mask
		x = x * (key>>7 | 1) & mask
		x ^= x >> half
		key = bits.RotateLeft64(key, 23) * 0xd6e8feb86659fd93
	}
	return x
}

// Write writes a trace with a given number of references as a container.
func (p Pattern) Write(to io.Writer, lineBits int, references uint64) error {
	if lineBits < 1 || lineBits > 40 {
		return fmt.Errorf("2^%d lines: want 2^1 to 2^40", lineBits)
	}
	w := sgt.NewImporter(to, []trace.Fact{{Name: "tool", Value: fmt.Sprintf("%s of 2^%d lines", p, lineBits)}})
	b := trace.NewBatch(0)
	header := trace.Header{Format: "csv", Sizes: true}
	for i := uint64(0); i < references; {
		b.Reset()
		for ; i < references && b.Len() < b.Cap(); i++ {
			b.Append(trace.Load, p.address(i, lineBits), 8, 0, 0)
		}
		if err := w.Write(b, header); err != nil {
			return err
		}
	}
	return w.Close(sgt.End{How: "converted"})
}
