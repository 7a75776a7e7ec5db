package profile

import "github.com/cespare/xxhash/v2"

// PieceBytes is the most that a store writes as one value or with one call. IndexedDB is
// fastest with values of some megabytes, and a program can hold one beside its state.
const PieceBytes = 4 << 20

// Sum identifies stored data, also against a part of it.
type Sum struct {
	Pieces int    // each of PieceBytes except for the last, which is not empty
	Bytes  uint64 // of all pieces
	XXH64  uint64 // of all bytes, in order
}

// SumOf returns the sum of data.
func SumOf(data []byte) Sum {
	return Sum{Pieces: (len(data) + PieceBytes - 1) / PieceBytes, Bytes: uint64(len(data)), XXH64: xxhash.Sum64(data)}
}

// Pieces is a writer that divides data into pieces and computes their sum. Every store keeps
// checkpoints in this form.
type Pieces struct {
	put  func(i int, piece []byte) error
	part []byte // of the next piece
	sum  Sum
	hash *xxhash.Digest
}

// NewPieces returns a writer that calls put with each piece, in order. put must not keep the
// piece.
func NewPieces(put func(i int, piece []byte) error) *Pieces {
	return &Pieces{put: put, part: make([]byte, 0, PieceBytes), hash: xxhash.New()}
}

// Write adds data; its error is that of put.
func (p *Pieces) Write(data []byte) (int, error) {
	written := 0
	for len(data) > 0 {
		n := min(len(data), PieceBytes-len(p.part))
		p.part = append(p.part, data[:n]...)
		data, written = data[n:], written+n
		if len(p.part) == PieceBytes {
			if err := p.flush(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

func (p *Pieces) flush() error {
	if len(p.part) == 0 {
		return nil
	}
	_, _ = p.hash.Write(p.part) // never fails
	err := p.put(p.sum.Pieces, p.part)
	p.sum.Pieces++
	p.sum.Bytes += uint64(len(p.part))
	p.part = p.part[:0]
	return err
}

// Close writes the remaining bytes and returns the sum of all.
func (p *Pieces) Close() (Sum, error) {
	err := p.flush()
	p.sum.XXH64 = p.hash.Sum64()
	return p.sum, err
}
