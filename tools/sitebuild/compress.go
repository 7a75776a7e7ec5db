package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/andybalholm/brotli"
	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
)

// compressible lists the extensions of the files that compression makes smaller.
var compressible = []string{".html", ".css", ".js", ".json", ".svg", ".wasm", ".names", ".webmanifest", ".c", ".md", ".txt"}

// firstVisitFiles lists the files that a first visit transfers before the page can be used. All other files
// are transferred later, for offline use.
var firstVisitFiles = []string{
	"index.html", "page.css", "theme.js", "page.js", "wasm_exec.js", "worker.js", "app.wasm", "icon.svg",
	"manifest.webmanifest",
}

// compressAll writes a .br and a .gz file next to each compressible file, and reports the size of a
// first visit.
func (b *build) compressAll() error {
	names, err := b.files()
	if err != nil {
		return err
	}
	made := map[string]string{}
	for name, hashed := range b.hashed {
		made[hashed] = name
	}
	first, later := 0, 0
	for _, file := range names {
		if !slices.Contains(compressible, path.Ext(file)) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(b.out, file))
		if err != nil {
			return err
		}
		brotli, err := b.compressFile(file, content)
		if err != nil {
			return err
		}
		name := cmp.Or(made[file], file)
		if slices.Contains(firstVisitFiles, name) {
			first += brotli
		} else if name == unpacker {
			later += brotli
		}
		if len(content) > 100_000 {
			fmt.Fprintf(b.log, "%-20s %9d bytes, %8d as brotli\n", name, len(content), brotli)
		}
	}
	fmt.Fprintf(b.log, "first visit: %d bytes as brotli\nlater, on demand or for offline use: %d bytes\n", first, later)
	return nil
}

// compressFile writes the compressed copies (.br and .gz) of a file, and returns the size of the
// .br file.
func (b *build) compressFile(file string, content []byte) (brotli int, err error) {
	br, err := brotliContent(content)
	if err != nil {
		return 0, err
	}
	gz, err := gzipContent(content)
	if err != nil {
		return 0, err
	}
	return len(br), errors.Join(b.write(file+".br", br), b.write(file+".gz", gz))
}

// gzipContent compresses content with gzip. It stores neither a name nor a time.
func gzipContent(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(content)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// brotliContent compresses content with brotli, or reads the compressed content that an earlier run
// has cached.
func brotliContent(content []byte) ([]byte, error) {
	sum := sha256.Sum256(content)
	kept := filepath.Join("build", "brotli", hex.EncodeToString(sum[:])+".br")
	if packed, err := os.ReadFile(kept); err == nil {
		return packed, nil
	}
	var buf bytes.Buffer
	w := brotli.NewWriterOptions(&buf, brotli.WriterOptions{Quality: brotli.BestCompression, LGWin: 24}) // the compression window must be large, because programs are larger than 4 MiB
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return nil, err
	}
	// An interrupted run must not leave an incomplete file.
	half := kept + ".new"
	if err := os.WriteFile(half, buf.Bytes(), 0o644); err != nil {
		return nil, err
	}
	return buf.Bytes(), os.Rename(half, kept)
}

// minifyContent returns the minified content of scripts and style sheets, and other content unchanged.
func minifyContent(name string, content []byte) ([]byte, error) {
	const script, style = "text/javascript", "text/css"
	m := minify.New()
	m.AddFunc(style, css.Minify)
	m.AddFunc(script, js.Minify)
	mediaType := map[string]string{".js": script, ".css": style}[path.Ext(name)]
	if mediaType == "" {
		return content, nil
	}
	short, err := m.Bytes(mediaType, content)
	if err != nil {
		return nil, fmt.Errorf("minifying %s: %w", name, err)
	}
	return short, nil
}
