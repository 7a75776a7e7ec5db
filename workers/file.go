package workers

import (
	"io"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// BlockBytes is the length of the blocks of a file that have a checksum each: the first different block
// exposes another file.
const BlockBytes = 4 << 20

// Prefix describes the beginning of a file.
type Prefix struct {
	Bytes  uint64
	Blocks []uint64 // XXH64 of each whole block
	Tail   uint64   // XXH64 of the bytes behind them
}

// File counts the bytes read from a file, computes their sum, and compares them with a checkpoint's: it
// returns no byte after the first different block. Read is for one goroutine, the other methods for any.
type File struct {
	name string
	size uint64 // 0: unknown
	file io.Reader

	mu    sync.Mutex
	read  Prefix // Tail is not kept: see hash
	hash  *xxhash.Digest
	want  *Checkpoint // that the first bytes must match; nil: none, or it was checked
	wrong error       // final, once set
}

// NewFile returns a file of that name and size, 0 if that is unknown. want is the checkpoint from which the
// run is resumed, or nil. The error is an [*OtherFileError].
func NewFile(name string, file io.Reader, size uint64, want *Checkpoint) (*File, error) {
	f := &File{name: name, size: size, file: file, hash: xxhash.New(), want: want}
	if want != nil && want.Size != size {
		return f, &OtherFileError{Name: name, Size: size, Want: want}
	}
	if want != nil && want.Read.Bytes == 0 {
		f.want = nil
	}
	return f, nil
}

// Read implements io.Reader. If the file does not match the checkpoint, the error is an [*OtherFileError].
func (f *File) Read(p []byte) (int, error) {
	if err := f.Wrong(); err != nil {
		return 0, err
	}
	n, err := f.file.Read(p[:f.atMost(uint64(len(p)))])
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.take(p[:n]) || f.want != nil && err == io.EOF {
		f.wrong = &OtherFileError{Name: f.name, Size: f.size, From: uint64(len(f.read.Blocks)) * BlockBytes, Want: f.want}
		return 0, f.wrong
	}
	if err != nil && err != io.EOF {
		f.wrong = err
	}
	return n, err
}

// atMost limits a read of n bytes to those that are compared.
func (f *File) atMost(n uint64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.want == nil {
		return n
	}
	return min(n, f.want.Read.Bytes-f.read.Bytes)
}

// take sums up bytes that were read, and reports whether they match the checkpoint, as far as that is
// known.
func (f *File) take(p []byte) bool {
	for len(p) > 0 {
		n := min(uint64(len(p)), BlockBytes-f.read.Bytes%BlockBytes)
		_, _ = f.hash.Write(p[:n]) // never fails
		p = p[n:]
		f.read.Bytes += n
		if f.read.Bytes%BlockBytes != 0 {
			continue
		}
		if i := len(f.read.Blocks); f.want != nil && f.want.Read.Blocks[i] != f.hash.Sum64() {
			return false
		}
		f.read.Blocks = append(f.read.Blocks, f.hash.Sum64())
		f.hash.Reset()
	}
	if f.want != nil && f.read.Bytes == f.want.Read.Bytes {
		if f.hash.Sum64() != f.want.Read.Tail {
			return false
		}
		f.want = nil
	}
	return true
}

// Verify reads up to the checkpoint, if need be. Then Wrong reports whether this is another file.
func (f *File) Verify() {
	for skipped := make([]byte, 64<<10); f.Verifying() && f.Wrong() == nil; {
		_, _ = f.Read(skipped) // its error is in wrong, or occurs again in a later read
	}
}

// Verifying reports whether the file is still being compared with a checkpoint.
func (f *File) Verifying() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.want != nil
}

// Wrong returns the file's own, final error, or nil.
func (f *File) Wrong() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wrong
}

// Position returns the number of bytes that were read.
func (f *File) Position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read.Bytes
}

// Prefix describes the bytes that were read.
func (f *File) Prefix() Prefix {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Prefix{Bytes: f.read.Bytes, Blocks: slices.Clone(f.read.Blocks), Tail: f.hash.Sum64()}
}
