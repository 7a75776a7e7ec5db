package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"
)

// bundleFolder is the folder inside the archive.
const bundleFolder = "stackglass/"

// archiveTime is the modification time of all files in an archive. It is constant, so that the same
// files always produce the same archive.
var archiveTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// writeBundle writes an archive for use without a network. The archive contains the output folder
// of an earlier run, the page as a single file, which needs no server, and README.txt, which
// explains both. The archive omits the compressed copies in the output folder, because few servers
// use them.
func (b *build) writeBundle(to, version string) error {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	add := func(name string, content []byte) error {
		header := &zip.FileHeader{Name: bundleFolder + name, Method: zip.Deflate, Modified: archiveTime}
		header.SetMode(0o644)
		w, err := archive.CreateHeader(header)
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	}
	readme, err := os.ReadFile("site/bundle/README.txt")
	if err == nil {
		err = add("README.txt", bytes.Replace(readme, []byte("@VERSION@"), []byte("This is version "+version+"."), 1))
	}
	if err == nil {
		err = b.bundleSingle(add)
	}
	if err == nil {
		err = b.bundleFiles(add)
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		return err
	}
	fmt.Fprintf(b.log, "%s: %d bytes\n", to, out.Len())
	return writeFile(to, out.Bytes())
}

func (b *build) bundleSingle(add func(string, []byte) error) error {
	folder, err := os.MkdirTemp("", "sitebuild")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "stackglass.html")
	quiet := &build{out: b.out, compress: b.compress, log: io.Discard}
	if err := quiet.writeSingle(file); err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return add("stackglass.html", content)
}

func (b *build) bundleFiles(add func(string, []byte) error) error {
	names, err := b.files()
	if err != nil {
		return err
	}
	for _, name := range names {
		if ending := path.Ext(name); ending == ".br" || ending == ".gz" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(b.out, filepath.FromSlash(name)))
		if err == nil {
			err = add(name, content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
