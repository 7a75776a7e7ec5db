package workers

import (
	"io"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// BlockBytes is the length of the blocks of a file. Each block has its own checksum, so the first
// block that differs shows that the file is a different file.
const BlockBytes = 4 << 20

// Prefix describes the first bytes of a file.
type Prefix struct {
	Bytes  uint64
	Blocks []uint64 // the XXH64 of each complete block
	Tail   uint64   // the XXH64 of the bytes after the blocks
}

// File counts the bytes read from a file, computes the checksums of the blocks, and compares the
// checksums with a checkpoint. If a block differs from the checkpoint, File returns no bytes of
// this block or of later blocks. Only one goroutine may call Read. Any goroutine may call the other
// methods.
type File struct {
	name string
	size uint64 // size of the file; 0: unknown
	file io.Reader

	mu   sync.Mutex
	read Prefix // the prefix read so far; its Tail is not set (see hash)
	hash *xxhash.Digest
	// checkpoint that the first bytes must match; nil: none, or already checked
	want  *Checkpoint
	wrong error // the error that ended reading; never changed once set
}

// NewFile returns a file with the given name and size. The size is 0 if it is unknown. The
// parameter "want" is the checkpoint from which the run is resumed, or nil. The error is an
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

// Read implements io.Reader. If the file does not match the checkpoint, the error is an [*OtherFileError].
func (f *File) Read(p []byte) (int, error) {
	if err := f.Wrong(); err != nil {
		return 0, err
	}
	n, err := f.file.Read(p[:f.atMost(uint64(len(p)))])
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.addBytes(p[:n]) || f.want != nil && err == io.EOF {
		f.wrong = &OtherFileError{Name: f.name, Size: f.size, From: uint64(len(f.read.Blocks)) * BlockBytes, Want: f.want}
		return 0, f.wrong
	}
	if err != nil && err != io.EOF {
		f.wrong = err
	}
	return n, err
}

// atMost limits the length of a read, so that the read ends at or before the position of the next
// comparison.
func (f *File) atMost(n uint64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.want == nil {
		return n
	}
	return min(n, f.want.Read.Bytes-f.read.Bytes)
}

// addBytes adds the bytes that were read to the checksums, and reports whether they match the
// checkpoint so far.
func (f *File) addBytes(p []byte) bool {
	for len(p) > 0 {
		n := min(uint64(len(p)), BlockBytes-f.read.Bytes%BlockBytes)
		_, _ = f.hash.Write(p[:n]) // a hash never returns an error
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

// Verify reads up to the checkpoint if necessary. Wrong then reports whether this file differs from
// the checkpoint's file.
func (f *File) Verify() {
	for skipped := make([]byte, 64<<10); f.Verifying() && f.Wrong() == nil; {
		_, _ = f.Read(skipped) // no error is lost: it stays in the field "wrong", or the next read returns it again
	}
}

// Verifying reports whether the file is still being compared with a checkpoint.
func (f *File) Verifying() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.want != nil
}

// Wrong returns the error that ended reading, or nil. At the regular end of the file, Wrong returns
// nil.
func (f *File) Wrong() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wrong
}

// Position returns the number of bytes that have been read from the file.
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
