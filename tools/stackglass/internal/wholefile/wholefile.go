// Package wholefile writes files that are there whole or not at all: into a
// temporary name in the same folder, renamed when everything is on the disk.
package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// File is a file in the making.
type File struct {
	f    *os.File
	path string // the name it will have
	temp string // the name it has meanwhile; "" where the target is no regular file
}

// Create makes sure that path can be written, and begins. A device or a pipe is
// written directly, because renaming would replace it.
func Create(path string) (*File, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		if st.IsDir() {
			return nil, &os.PathError{Op: "write", Path: path, Err: errors.New("is a folder")}
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &File{f: f, path: path}, err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	dir, base := filepath.Split(path)
	temp := filepath.Join(dir, "."+base+"."+strconv.Itoa(os.Getpid())+".part")
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &File{f: f, path: path, temp: temp}, nil
}

// Write appends to the file.
func (w *File) Write(p []byte) (int, error) { return w.f.Write(p) }

// Commit gives the file its name, once its content is on the disk. After an
// error nothing is left under either name that was not there before.
func (w *File) Commit() error {
	if w.temp == "" {
		return w.f.Close()
	}
	err := w.f.Sync()
	if closed := w.f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(w.temp, w.path)
	}
	if err != nil {
		os.Remove(w.temp)
	}
	return err
}

// Discard gives up; after Commit it does nothing of effect.
func (w *File) Discard() {
	w.f.Close()
	if w.temp != "" {
		os.Remove(w.temp)
	}
}

// Save writes a file in one call.
func Save(path string, write func(io.Writer) error) error {
	w, err := Create(path)
	if err != nil {
		return err
	}
	if err := write(w); err != nil {
		w.Discard()
		return err
	}
	return w.Commit()
}
