// Package files reads and writes files of every file system that Beam knows, by the
// scheme of their names: none for this machine's, gs:// and s3:// for object stores,
// memfs:// for tests.
//
// Beam's file systems give streams. A trace is read at many places, so that a file of
// this machine is read where it lies, and one of another system is copied first, once
// for each process, to a folder for temporary files.
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

	// The file systems that names may be of.
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/gcs"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/memfs"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/s3"
)

// Expand gives the files that patterns match, sorted, each once. The error names every
// pattern that matches none.
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
		return nil, fmt.Errorf("no such file, and none that matches: %s; nothing was analysed", strings.Join(missing, ", "))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// list gives the files that a pattern matches. A file of this machine that has just that
// name is the one that is meant, though patterns read rank[0].sgt in another way.
func list(ctx context.Context, fs filesystem.Interface, pattern string) ([]string, error) {
	if !strings.Contains(pattern, "://") {
		if _, err := os.Lstat(pattern); err == nil {
			return []string{pattern}, nil
		}
	}
	return fs.List(ctx, pattern)
}

// File is a file that can be read at any place.
type File struct {
	io.ReaderAt
	Bytes   int64
	Changed time.Time // when it was written to last; zero where the file system does not tell
	end     func() error
}

// Close ends reading.
func (f *File) Close() error { return f.end() }

// Open prepares to read a file at any place. What is not of this machine is copied to
// the folder temporary first; "" is the system's own. Where the system can, the copy has
// no name there, and goes with the process.
func Open(ctx context.Context, name, temporary string) (*File, error) {
	fs, err := filesystem.New(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer fs.Close()
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
	// Without its name the copy goes with this process, however that ends. Systems that
	// keep the names of open files take it away when reading ends.
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
	f := &File{copied, n, time.Time{}, end}
	if told, ok := fs.(filesystem.LastModifiedGetter); ok {
		if f.Changed, err = told.LastModified(ctx, name); err != nil {
			end()
			return nil, fmt.Errorf("%s: when it was written is not told: %w", name, err)
		}
	}
	return f, nil
}

// Same tells whether a file is still the one that was opened, as far as its size and when
// it was written to tell.
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

// sizeOf is Size; that of Beam's local file system never closes the file.
func sizeOf(ctx context.Context, fs filesystem.Interface, name string) (int64, error) {
	if st, err := os.Stat(name); err == nil && !strings.Contains(name, "://") {
		return st.Size(), nil
	}
	return fs.Size(ctx, name)
}

// Write makes a file of what put writes: all of it, or none under its name. A file
// system that can rename is given the whole under another name first; object stores
// show nothing before it is complete.
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

// Read gives a whole file; found is false where there is none.
func Read(ctx context.Context, name string) (content []byte, found bool, err error) {
	fs, err := filesystem.New(ctx, name)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	defer fs.Close()
	if found, err := list(ctx, fs, name); err != nil {
		return nil, false, fmt.Errorf("%s: cannot be looked for: %w", name, err)
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

// Remove takes a file away, if there is one and the file system can.
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

// Writable tells whether files can be made in a folder, by making one.
func Writable(ctx context.Context, folder, unique string) error {
	name := Join(folder, ".stackglass-"+unique)
	if err := Write(ctx, name, unique, func(io.Writer) error { return nil }); err != nil {
		return fmt.Errorf("%s: nothing can be written there (%w); name a folder that every worker can write to", folder, err)
	}
	return Remove(ctx, name)
}

// Join puts a name into a folder of any file system.
func Join(folder, name string) string { return strings.TrimSuffix(folder, "/") + "/" + name }

// Base is a name without its folders.
func Base(name string) string {
	if i := strings.LastIndexAny(name, "/\\"); i >= 0 {
		return name[i+1:]
	}
	return name
}
