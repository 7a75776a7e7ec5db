// Package files reads and writes files of every file system that Beam supports. The scheme of a name
// selects the file system: no scheme for files of this machine, gs:// and s3:// for object stores, and
// memfs:// for tests.
//
// Beam's file systems offer only streams, but a trace is read at many positions. A file of this
// machine is therefore opened directly, and an object of gs:// or s3:// is read in ranges with the
// client of the store. A file of another system is first copied to a folder for temporary files, once
// for each process.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace/drmemtrace"

	// The supported file systems.
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/gcs"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/memfs"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/s3"
)

// Expand returns the files that patterns match, sorted and without duplicates. The error names every
// pattern without a match.
func Expand(ctx context.Context, patterns []string) ([]string, error) {
	var names, missing []string
	for _, pattern := range patterns {
		fs, err := filesystem.New(ctx, pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		found, err := list(ctx, fs, pattern)
		fs.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: cannot be listed: %w", pattern, err)
		}
		if len(found) == 0 {
			missing = append(missing, pattern)
		}
		names = append(names, found...)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("no file has these names or matches these patterns: %s; nothing was analysed", strings.Join(missing, ", "))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// list returns the files that a pattern matches. If a file of this machine has exactly this name, it
// is the only match, even if the name, such as rank[0].sgt, is also a pattern.
func list(ctx context.Context, fs filesystem.Interface, pattern string) ([]string, error) {
	if !strings.Contains(pattern, "://") {
		if _, err := os.Lstat(pattern); err == nil {
			return []string{pattern}, nil
		}
	}
	return fs.List(ctx, pattern)
}

// File is a file that can be read at any position.
type File struct {
	io.ReaderAt
	Bytes   int64
	Changed time.Time // time of the last change, or the zero time if it is unknown
	end     func() error
}

// Close closes the file, and removes its copy.
func (f *File) Close() error { return f.end() }

// Open opens a file for reading at any position. A file that is not on this machine, and whose store
// does not support ranges, is first copied to the folder temporary, or to the system's folder if temporary is "". If the system supports it, the
// copy has no name there, so that it disappears with the process.
func Open(ctx context.Context, name, temporary string) (*File, error) {
	fs, err := filesystem.New(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer fs.Close()
	object, err := openObject(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	if object != nil {
		return withTime(ctx, fs, name, &File{object, object.bytes, time.Time{}, object.end})
	}
	r, err := fs.OpenRead(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	if local, ok := r.(*os.File); ok {
		st, err := local.Stat()
		if err == nil && !st.Mode().IsRegular() {
			err = errors.New("it is no file")
		}
		if err != nil {
			local.Close()
			return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
		}
		return &File{local, st.Size(), st.ModTime(), local.Close}, nil
	}
	defer r.Close()
	copied, err := os.CreateTemp(temporary, "stackglass-*"+path.Ext(name))
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be copied to this machine: %w", name, err)
	}
	// A copy without a name disappears with this process, however the process ends. On systems where
	// open files need their names, the copy is removed when it is closed.
	unnamed := os.Remove(copied.Name()) == nil
	end := func() error {
		err := copied.Close()
		if !unnamed {
			err = errors.Join(err, os.Remove(copied.Name()))
		}
		return err
	}
	n, err := io.Copy(copied, r)
	if err != nil {
		end()
		return nil, fmt.Errorf("%s: cannot be copied to this machine: %w", name, err)
	}
	return withTime(ctx, fs, name, &File{copied, n, time.Time{}, end})
}

// withTime adds the time of the last change to a file, if the file system knows it.
func withTime(ctx context.Context, fs filesystem.Interface, name string, f *File) (*File, error) {
	told, ok := fs.(filesystem.LastModifiedGetter)
	if !ok {
		return f, nil
	}
	var err error
	if f.Changed, err = told.LastModified(ctx, name); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: the time of its last change cannot be read: %w", name, err)
	}
	return f, nil
}

// Prefixes of files that DynamoRIO writes to the folder of a trace, but that are not part of it.
var beside = []string{"cpu_schedule.", "serial_schedule.", "modules.log", "encodings.bin", "funclist.log", "v2p.textproto", "."}

// Folder returns the files of a trace that DynamoRIO has stored in a folder of this machine: one file
// for each thread or core, in the folder or in its folder "trace".
func Folder(name string) (list []string, err error) {
	folder := name
	if st, err := os.Stat(Join(name, "trace")); err == nil && st.IsDir() {
		folder = Join(name, "trace")
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	for _, e := range entries {
		isBeside := slices.ContainsFunc(beside, func(prefix string) bool { return strings.HasPrefix(e.Name(), prefix) })
		if e.Type().IsRegular() && !isBeside && !strings.Contains(e.Name(), ".raw") {
			list = append(list, Join(folder, e.Name()))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: the folder contains no trace of DynamoRIO; give the path of a trace", name)
	}
	return list, nil
}

// OpenFolder returns the records of a trace that DynamoRIO has stored in several files, in the order
// of their timestamps, and a function that closes the files.
func OpenFolder(ctx context.Context, name string, list []string, temporary string, packings []open.Packing) (content io.Reader, closer func(), err error) {
	var parts []drmemtrace.Part
	var opened []*File
	closer = func() {
		for _, f := range opened {
			f.Close()
		}
	}
	for _, one := range list {
		f, err := Open(ctx, one, temporary)
		if err != nil {
			closer()
			return nil, nil, err
		}
		opened = append(opened, f)
		unpacked, err := open.Unpack(one, io.NewSectionReader(f, 0, f.Bytes), open.Options{Packings: packings})
		if err == nil {
			err = drmemtrace.CheckPart(one, unpacked)
		}
		if err != nil {
			closer()
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		parts = append(parts, drmemtrace.Part{Name: one, Reader: unpacked})
	}
	return drmemtrace.Merge(parts), closer, nil
}

// Same reports whether a file still has the size and the time of change that it had when it was
// opened.
func (f *File) Same(ctx context.Context, name string) bool {
	fs, err := filesystem.New(ctx, name)
	if err != nil {
		return false
	}
	defer fs.Close()
	if !f.Changed.IsZero() {
		told, ok := fs.(filesystem.LastModifiedGetter)
		if !ok {
			return false
		}
		at, err := told.LastModified(ctx, name)
		if err != nil || !at.Equal(f.Changed) {
			return false
		}
	}
	bytes, err := sizeOf(ctx, fs, name)
	return err == nil && bytes == f.Bytes
}

// sizeOf returns the size of a file. Beam's Size never closes local files, so it is not used for them.
func sizeOf(ctx context.Context, fs filesystem.Interface, name string) (int64, error) {
	if st, err := os.Stat(name); err == nil && !strings.Contains(name, "://") {
		return st.Size(), nil
	}
	return fs.Size(ctx, name)
}

// Write creates a file with the content that put writes. The file exists only if it is complete: file
// systems that can rename files first store it under another name, and object stores show only
// complete files.
func Write(ctx context.Context, name, unique string, put func(io.Writer) error) (err error) {
	fs, err := filesystem.New(ctx, name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer fs.Close()
	at := name
	renamer, renames := fs.(filesystem.Renamer)
	if renames = renames && !strings.HasPrefix(name, "gs://"); renames {
		at = name + "." + unique + ".tmp"
	}
	w, err := fs.OpenWrite(ctx, at)
	if err != nil {
		return fmt.Errorf("%s: cannot be written: %w", name, err)
	}
	err = put(w)
	if closed := w.Close(); err == nil {
		err = closed
	}
	if err == nil && renames {
		err = renamer.Rename(ctx, at, name)
	}
	if err != nil {
		if remover, ok := fs.(filesystem.Remover); ok && renames {
			err = errors.Join(err, ignoreMissing(remover.Remove(ctx, at)))
		}
		return fmt.Errorf("%s: cannot be written: %w", name, err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Read returns the content of a file. found reports whether the file exists.
func Read(ctx context.Context, name string) (content []byte, found bool, err error) {
	fs, err := filesystem.New(ctx, name)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	defer fs.Close()
	if found, err := list(ctx, fs, name); err != nil {
		return nil, false, fmt.Errorf("%s: cannot be found: %w", name, err)
	} else if len(found) == 0 {
		return nil, false, nil
	}
	r, err := fs.OpenRead(ctx, name)
	if err != nil {
		return nil, false, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	defer r.Close()
	content, err = io.ReadAll(r)
	if err != nil {
		return nil, false, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	return content, true, nil
}

// Remove deletes a file if it exists and if the file system supports deletion.
func Remove(ctx context.Context, name string) error {
	fs, err := filesystem.New(ctx, name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer fs.Close()
	remover, ok := fs.(filesystem.Remover)
	if !ok {
		return nil
	}
	if found, err := list(ctx, fs, name); err != nil || len(found) == 0 {
		return err
	}
	return ignoreMissing(remover.Remove(ctx, name))
}

// RemoveFolder deletes the files of a folder, which has no folders inside, and then the folder. It
// returns nil if the folder does not exist.
func RemoveFolder(ctx context.Context, folder string) error {
	fs, err := filesystem.New(ctx, folder)
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	defer fs.Close()
	names, err := fs.List(ctx, Join(folder, "*"))
	if err != nil {
		return fmt.Errorf("%s: cannot be listed: %w", folder, err)
	}
	for _, name := range names {
		if err := Remove(ctx, name); err != nil {
			return fmt.Errorf("%s: cannot be deleted: %w", name, err)
		}
	}
	if _, err := os.Stat(folder); err != nil { // object stores have no folders
		return nil
	}
	return ignoreMissing(os.Remove(folder))
}

// Writable creates a file in a folder, and returns an error if this fails.
func Writable(ctx context.Context, folder, unique string) error {
	name := Join(folder, ".stackglass-"+unique)
	if err := Write(ctx, name, unique, func(io.Writer) error { return nil }); err != nil {
		return fmt.Errorf("%s: cannot be written to (%w); give a folder to which every worker can write", folder, err)
	}
	return Remove(ctx, name)
}

// Join returns the path of a file in a folder of any file system.
func Join(folder, name string) string { return strings.TrimSuffix(folder, "/") + "/" + name }

// Base returns a name without its folders.
func Base(name string) string {
	if i := strings.LastIndexAny(name, "/\\"); i >= 0 {
		return name[i+1:]
	}
	return name
}
