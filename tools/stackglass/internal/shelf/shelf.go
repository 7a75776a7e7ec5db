// Package shelf implements the command's spill store: if data exceeds the memory limit, it is
// written to files in a folder.
package shelf

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Folder implements stack.Shelf with files in a separate folder.
type Folder struct {
	path string
	read []byte
}

// New creates an empty spill store in a parent folder. New creates the parent folder if necessary.
func New(parent string) (*Folder, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(parent, prefix)
	return &Folder{path: path}, err
}

const prefix = "stackglass-"

// Open opens the spill store for a key, or creates it if it does not exist.
func Open(parent, key string) (*Folder, error) {
	f := &Folder{path: filepath.Join(parent, prefix+key)}
	return f, os.MkdirAll(f.path, 0o700)
}

// Close removes the spill store if it is empty.
func (f *Folder) Close() { _ = os.Remove(f.path) }

// Remove removes the spill store.
func (f *Folder) Remove() error { return os.RemoveAll(f.path) }

func (f *Folder) name(run, block uint32) string {
	return filepath.Join(f.path, strconv.FormatUint(uint64(run), 10)+"-"+strconv.FormatUint(uint64(block), 10))
}

// Write implements stack.Shelf.
func (f *Folder) Write(run, block uint32, data []byte) error {
	return os.WriteFile(f.name(run, block), data, 0o600)
}

// Read implements stack.Shelf.
func (f *Folder) Read(run, block uint32) ([]byte, error) {
	file, err := os.Open(f.name(run, block))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := int(info.Size())
	if cap(f.read) < size {
		f.read = make([]byte, size)
	}
	f.read = f.read[:size]
	_, err = io.ReadFull(file, f.read)
	return f.read, err
}

// Drop implements stack.Shelf.
func (f *Folder) Drop(run, block uint32) error {
	if err := os.Remove(f.name(run, block)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
