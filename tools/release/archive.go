package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

func (f *file) mode() int64 {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// tar returns a compressed tar archive of the given files, and of the folders that contain them.
// All paths in the archive begin with the given root folder.
func (r *release) tar(root string, files []file) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	header := tar.Header{ModTime: r.time, Format: tar.FormatGNU, Uname: "root", Gname: "root"}
	for _, folder := range append([]string{""}, folders(files)...) {
		h := header
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, root+folder, 0o755
		if folder != "" {
			h.Name += "/"
		}
		err = errors.Join(err, archive.WriteHeader(&h))
	}
	for _, f := range files {
		h := header
		h.Typeflag, h.Name, h.Mode, h.Size = tar.TypeReg, root+f.name, f.mode(), int64(len(f.content))
		err = errors.Join(err, archive.WriteHeader(&h))
		_, failed := archive.Write(f.content)
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, archive.Close(), compressed.Close())
	return out.Bytes(), err
}

// folders returns the folders that contain the given files. Each folder comes after its parent.
func folders(files []file) (list []string) {
	for _, f := range files {
		for folder := path.Dir(f.name); folder != "." && folder != "/"; folder = path.Dir(folder) {
			if !slices.Contains(list, folder) {
				list = append(list, folder)
			}
		}
	}
	slices.Sort(list)
	return list
}

// zip returns a zip archive of the given files. All paths in the archive begin with the given root
// folder.
func (r *release) zip(root string, files []file) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	var err error
	for _, f := range files {
		header := &zip.FileHeader{Name: root + f.name, Method: zip.Deflate, Modified: r.time}
		header.SetMode(fs.FileMode(f.mode()))
		w, failed := archive.CreateHeader(header)
		if failed == nil {
			_, failed = w.Write(f.content)
		}
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, archive.Close())
	return out.Bytes(), err
}
