package profile

import (
	"errors"
	"io"
)

// ErrNotFound is what a [Store] gives for a key that it does not hold.
var ErrNotFound = errors.New("no such entry in the store")

// ErrFull is what a [Store] gives, wrapped, when there is no room; what was
// stored before is untouched.
var ErrFull = errors.New("the storage is full")

// ErrFinished is what a [Store] gives, wrapped, for a checkpoint that would
// replace a finished analysis, as when two tabs run the same one.
var ErrFinished = errors.New("a finished analysis stands in its place")

// Entry describes one kept analysis; the profile's name lives here, beside the
// profile, never in it.
type Entry struct {
	Key        string // unique, chosen by whoever puts it
	Name       string // what the user sees and may change
	Created    int64  // milliseconds since 1970
	Bytes      uint64 // size of the encoded profile, or of the checkpoint
	References uint64
	Digest     string // hexadecimal; "" while interrupted
	State      EntryState
	Reason     string  // why it is partial
	Done       float64 // share of the file that was read, 0 to 1, while interrupted
	Outside    uint64  // bytes of stacks outside of memory that the checkpoint needs, about
}

// EntryState says what a kept analysis is.
type EntryState string

// The states of an [Entry].
const (
	EntryComplete    EntryState = "complete"
	EntryPartial     EntryState = "partial"     // a profile of a part of the trace
	EntryInterrupted EntryState = "interrupted" // a checkpoint: the run can go on
)

// ErrDamaged is what a [Store] gives, wrapped, when what it holds is not what was
// put.
var ErrDamaged = errors.New("the stored bytes are damaged or incomplete; delete the entry and analyse the trace again")

// Checkpoints keeps the states of runs that can go on, two generations of each: one
// that turns out to be damaged is never the only one. Implementations: every
// [Store], and a folder of files (tools/stackglass).
type Checkpoints interface {
	// Save stores a checkpoint under e.Key in one step, as write gives it; after
	// an error or a crash the store holds what it held before. It becomes the
	// newest generation, and the one before stays, unless there is no room for
	// both. ErrFull: there is none for it. ErrFinished: no checkpoint comes in the
	// place of a finished analysis. The store fills in e.State and e.Bytes. write
	// may be called a second time, and has to write the same.
	Save(e Entry, write func(io.Writer) error) error
	// Get gives the data last put, or the newest generation that is whole;
	// ErrNotFound, or ErrDamaged.
	Get(key string) ([]byte, error)
	// Delete removes all of a key. Deleting what is not there is no error.
	Delete(key string) error
}

// Store keeps encoded profiles and checkpoints. Implementations: the browser's
// IndexedDB (wasm/idb), memory (for tests).
type Store interface {
	Checkpoints
	// Put stores a finished analysis under e.Key in one step, in the place of what
	// is there; after an error or a crash the store holds what it held before.
	Put(e Entry, data []byte) error
	// List gives all entries, newest first.
	List() ([]Entry, error)
	// Rename changes an entry's name.
	Rename(key, name string) error
	// Usage is the number of bytes in use and, where known, the quota; 0: not known.
	Usage() (used, quota uint64, err error)
}
