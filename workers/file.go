package workers

import (
	"io"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// BlockBytes is the length of the blocks of a file that have a checksum each, so
// that another file is found out by the first block in which it differs.
const BlockBytes = 4 << 20

// Prefix is what is known of the beginning of a file.
type Prefix struct {
	Bytes  uint64
	Blocks []uint64 // XXH64 of each whole block
	Tail   uint64   // XXH64 of the bytes behind them
}

// File counts what is read of a file and sums it up, and compares it to what a
// checkpoint has seen: no byte behind the first block that differs is given away.
// It is read in one goroutine; the other methods may be called from any.
type File struct {
	name string
	size uint64 // 0: not known
	file io.Reader

	mu    sync.Mutex
	read  Prefix // Tail is not kept: see hash
	hash  *xxhash.Digest
	want  *Checkpoint // what the first bytes have to be; nil: anything, or checked
	wrong error       // final, once set
}

// NewFile gives a file of that name and size, 0: not known. want is the checkpoint
// from which its run goes on, nil: from the start. The error is an
// [*OtherFileError].
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

// Read implements io.Reader. Where the file is another one than it should be, the
// error is an [*OtherFileError].
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

// atMost is how many of n bytes to read at once: none behind what is compared.
func (f *File) atMost(n uint64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.want == nil {
		return n
	}
	return min(n, f.want.Read.Bytes-f.read.Bytes)
}

// take sums up what was read, and tells whether it is what it should be, as far as
// that is known.
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

// Verify reads on to where the checkpoint was, if need be: Wrong tells whether
// this is another file.
func (f *File) Verify() {
	for skipped := make([]byte, 64<<10); f.Verifying() && f.Wrong() == nil; {
		_, _ = f.Read(skipped) // its error is in wrong, or that of a later read
	}
}

// Verifying tells whether the file is still to be compared to a checkpoint's.
func (f *File) Verifying() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.want != nil
}

// Wrong is the file's own error, which is final; nil: there was none.
func (f *File) Wrong() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wrong
}

// Position is the number of bytes that were read.
func (f *File) Position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read.Bytes
}

// Prefix is what was read.
func (f *File) Prefix() Prefix {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Prefix{Bytes: f.read.Bytes, Blocks: slices.Clone(f.read.Blocks), Tail: f.hash.Sum64()}
}
