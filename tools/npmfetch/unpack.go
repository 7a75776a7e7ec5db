package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of one unpacked package; the largest of today has half as many bytes.
const (
	maxUnpacked = 256 << 20 // bytes
	maxFiles    = 20000
)

// unpack writes the files of an archive below folder, without the first part of their paths, "package" as a
// rule. It rejects paths that lead out of it, and everything but plain files and folders.
func unpack(archive io.Reader, folder string) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("the archive is no gzip: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	left := int64(maxUnpacked)
	files := tar.NewReader(unzipped)
	for n := 0; ; n++ {
		h, err := files.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the archive is cut off or damaged: %w", err)
		}
		if left -= h.Size; left < 0 || n >= maxFiles {
			return fmt.Errorf("the archive holds more than %d bytes or %d files", maxUnpacked, maxFiles)
		}
		if err := unpackOne(root, h, files); err != nil {
			return fmt.Errorf("the archive's %q: %w", h.Name, err)
		}
	}
}

// unpackOne writes one entry of the archive.
func unpackOne(root *os.Root, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil // folders are made when a file needs them
	case tar.TypeReg:
	default:
		return errors.New("is a link or device, want plain files only")
	}
	_, name, found := strings.Cut(h.Name, "/")
	if name = filepath.FromSlash(name); !found || strings.HasPrefix(h.Name, "/") || !filepath.IsLocal(name) {
		return errors.New("leads out of the package's folder")
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755 // a program, which nothing here runs
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}
