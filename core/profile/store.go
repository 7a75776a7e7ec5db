package profile

import (
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"
)

// Errors that a [Store] returns, possibly wrapped.
var (
	ErrNotFound = errors.New("the store does not contain the entry")
	// ErrFull means that there is not enough space. The store is unchanged.
	ErrFull = errors.New("the storage is full")
	// ErrFinished means that a checkpoint would replace a finished analysis, for example because
	// two tabs run the same analysis.
	ErrFinished = errors.New("a finished analysis has replaced this checkpoint")
	// ErrDamaged means that the stored bytes differ from the bytes that were written.
	ErrDamaged = errors.New("the stored bytes are damaged or incomplete; delete the entry and analyse the trace again")
)

// Entry describes one stored analysis. The name of an analysis is stored only in the entry, never
// in the profile.
type Entry struct {
	Key        string // unique key
	Name       string // name shown to the user, who may change it
	Created    int64  // time of creation, in milliseconds since 1970
	Bytes      uint64 // size of the encoded profile, or of the checkpoint
	References uint64
	Digest     string // digest of the profile in hexadecimal; "" for a checkpoint
	State      EntryState
	Reason     string  // why the profile is partial
	Done       float64 // for a checkpoint: fraction of the file that has been read, from 0 to 1
	Outside    uint64  // approximate number of bytes that the checkpoint uses in the spill store
}

// EntryState describes whether a stored analysis is complete.
type EntryState string

// The states of an [Entry].
const (
	EntryComplete    EntryState = "complete"
	EntryPartial     EntryState = "partial"     // a profile of a part of the trace
	EntryInterrupted EntryState = "interrupted" // a checkpoint, from which the run can resume
)

// Checkpoints stores the states of runs, from which the runs can be resumed. Checkpoints keeps two
// generations of each state, in case the newest generation is damaged. Every [Store] implements
// Checkpoints, and so does a folder of files (tools/stackglass).
type Checkpoints interface {
	// Save calls the function "write", which writes the checkpoint, and atomically stores the
	// checkpoint under e.Key. After an error or a crash, the store is unchanged. The checkpoint
	// becomes the newest generation, and the previous generation is kept if there is room for both.
	// Save fails with ErrFull, or with ErrFinished if a finished analysis has the same key. Save
	// sets e.State and e.Bytes. Save may call the function "write" twice, and both calls must write
	// the same bytes.
	Save(e Entry, write func(io.Writer) error) error
	// Get returns the data of the last Put, or the newest undamaged generation of a checkpoint. Get
	// fails with ErrNotFound or ErrDamaged.
	Get(key string) ([]byte, error)
	// Delete removes all data that is stored under a key. The key need not exist.
	Delete(key string) error
}

// Store stores encoded profiles and checkpoints. One implementation uses the browser's IndexedDB
// (wasm/idb), and another implementation, for tests, keeps the data in memory.
type Store interface {
	Checkpoints
	// Put atomically stores a finished analysis under e.Key, and replaces any data that was stored
	// under this key. After an error or a crash, the store is unchanged.
	Put(e Entry, data []byte) error
	// List returns all entries, newest first.
	List() ([]Entry, error)
	// Rename changes an entry's name.
	Rename(key, name string) error
	// Usage returns the number of bytes in use and the quota, which is 0 if it is unknown.
	Usage() (used, quota uint64, err error)
}

// PieceBytes is the maximum number of bytes that a store writes as one value or in one call.
// IndexedDB is fastest with values of a few megabytes, and one such value easily fits in memory.
const PieceBytes = 4 << 20

// Sum is a checksum of stored data that can be computed and checked piece by piece.
type Sum struct {
	// number of pieces; every piece except the last has PieceBytes bytes
	Pieces int
	Bytes  uint64 // total number of bytes in all pieces
	XXH64  uint64 // hash of all bytes, in order
}

// SumOf returns the checksum of data.
func SumOf(data []byte) Sum {
	return Sum{Pieces: (len(data) + PieceBytes - 1) / PieceBytes, Bytes: uint64(len(data)), XXH64: xxhash.Sum64(data)}
}

// Pieces is a writer that divides data into pieces and computes the checksum of the data. Every
// implementation of [Store] divides checkpoints into pieces.
type Pieces struct {
	put  func(i int, piece []byte) error
	part []byte // data of the next piece
	sum  Sum
	hash *xxhash.Digest
}

// NewPieces returns a writer that calls the function "put" with each piece, in order. The function
// must not retain the piece.
func NewPieces(put func(i int, piece []byte) error) *Pieces {
	return &Pieces{put: put, part: make([]byte, 0, PieceBytes), hash: xxhash.New()}
}

// Write adds data. If the function "put" fails, Write returns its error.
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
	_, _ = p.hash.Write(p.part) // writing to a hash never fails
	err := p.put(p.sum.Pieces, p.part)
	p.sum.Pieces++
	p.sum.Bytes += uint64(len(p.part))
	p.part = p.part[:0]
	return err
}

// Close writes the remaining bytes and returns the checksum of all bytes.
func (p *Pieces) Close() (Sum, error) {
	err := p.flush()
	p.sum.XXH64 = p.hash.Sum64()
	return p.sum, err
}
