// Package wholefile writes files so that a file has its final name only when it is complete. Until
// its content is flushed to the disk, a file has a temporary name in the same folder.
package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// File is a file that is being written.
type File struct {
	f    *os.File
	path string // the final path of the file
	temp string // the temporary path, or "" if the target is not a regular file
}

// Create opens a file for writing, and checks that the path can be written. Devices and pipes are
// written directly, because renaming would replace them.
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

// Write implements [io.Writer].
func (w *File) Write(p []byte) (int, error) { return w.f.Write(p) }

// Commit flushes the content to the disk and renames the file. After an error, no new file remains.
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

// Discard removes the unfinished file. Discard has no effect after Commit.
func (w *File) Discard() {
	w.f.Close()
	if w.temp != "" {
		os.Remove(w.temp)
	}
}

// Save creates a file, writes its content and commits it.
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
