package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// maxArchive limits the download of one package, in bytes.
const maxArchive = 64 << 20

// fetcher installs the npm packages that the lock file in one folder lists.
type fetcher struct {
	folder, registry string
	names            []string // names of the packages to install; empty: all packages
	client           *http.Client
	log              io.Writer
}

func (f *fetcher) run(ctx context.Context) error {
	all, err := readLock(filepath.Join(f.folder, "package-lock.json"))
	if err != nil {
		return err
	}
	list, err := selectPackages(all, f.names)
	if err != nil {
		return err
	}
	modules := filepath.Join(f.folder, "node_modules")
	for _, p := range list {
		place := filepath.Join(modules, filepath.FromSlash(p.name))
		if p.isInstalled(place) {
			continue
		}
		fmt.Fprintf(f.log, "fetching %s from %s\n", p, f.registry)
		if err := f.install(ctx, p, modules, place); err != nil {
			return fmt.Errorf("%s: %w\nif npm is installed, `npm ci --ignore-scripts --prefix %s` does the same", p, err, f.folder)
		}
	}
	return nil
}

// install downloads one package, verifies it, and unpacks it in its folder.
func (f *fetcher) install(ctx context.Context, p lockedPackage, modules, place string) error {
	archive, err := f.download(ctx, p.archiveURL(f.registry))
	if err != nil {
		return err
	}
	if sum := sha512.Sum512(archive); !bytes.Equal(sum[:], p.sha512) {
		return fmt.Errorf("%s: its SHA-512 is %s, but the lock file wants %s: the download is damaged or is a different package, and was not unpacked",
			p.archiveURL(f.registry), base64.StdEncoding.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(p.sha512))
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	// The temporary folder is in the same file system as the final folder, and has a name that no
	// program looks for.
	fresh, err := os.MkdirTemp(modules, ".npmfetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := errors.Join(unpack(bytes.NewReader(archive), fresh), os.Chmod(fresh, 0o755)); err != nil {
		return err
	}
	if !p.isInstalled(fresh) {
		return errors.New("the archive has no package.json, or its package.json names a different package or version")
	}
	if err := os.RemoveAll(place); err != nil {
		return err
	}
	return os.Rename(fresh, place)
}

// download returns the body of the registry's response.
func (f *fetcher) download(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%w; check the URL of the registry in $npm_config_registry", err)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w; the first build needs the network, or a registry set in $npm_config_registry", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: the registry returned %s, want 200 OK; set $npm_config_registry to use another registry", address, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxArchive+1))
	if err != nil {
		return nil, fmt.Errorf("%s: the download ended after %d bytes: %w; try again", address, len(body), err)
	}
	if len(body) > maxArchive {
		return nil, fmt.Errorf("%s: the archive is larger than %d bytes", address, maxArchive)
	}
	return body, nil
}

// These limits apply to one unpacked package. The largest package currently has half of this size.
const (
	maxUnpacked = 256 << 20 // in bytes
	maxFiles    = 20000
)

// unpack writes the files of an archive to a folder. It omits the first element of each file's
// path, which is usually "package". It rejects paths that lead out of the folder, and everything
// except regular files and folders.
func unpack(archive io.Reader, folder string) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("the archive is not a gzip file: %w", err)
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
			return fmt.Errorf("the archive is truncated or damaged: %w", err)
		}
		if left -= h.Size; left < 0 || n >= maxFiles {
			return fmt.Errorf("the archive contains more than %d bytes or %d files", maxUnpacked, maxFiles)
		}
		if err := unpackOne(root, h, files); err != nil {
			return fmt.Errorf("%q in the archive %w", h.Name, err)
		}
	}
}

// unpackOne writes one entry of an archive to a file.
func unpackOne(root *os.Root, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil // skip this entry; unpackOne creates folders when a file needs them
	case tar.TypeReg:
	default:
		return errors.New("is a link or device; want regular files only")
	}
	_, name, found := strings.Cut(h.Name, "/")
	if name = filepath.FromSlash(name); !found || strings.HasPrefix(h.Name, "/") || !filepath.IsLocal(name) {
		return errors.New("has a path outside the package's folder")
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755 // the file is executable, but this program never executes it
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}
