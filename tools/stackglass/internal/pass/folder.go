package pass

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace/drmemtrace"
)

// Names of DynamoRIO's folders. The folder drmemtrace.app.1234.5678.dir contains a folder "raw"
// with raw files and, after post-processing, a folder "trace" with the trace.
const (
	drTraceFolder = "trace"
	drRawFolder   = "raw"
)

// otherFiles lists prefixes of files that DynamoRIO writes to the folder of a trace, but that are
// not part of the trace.
var otherFiles = []string{"cpu_schedule.", "serial_schedule.", "modules.log", "encodings.bin", "funclist.log", "v2p.textproto"}

// openFolder opens a folder of DynamoRIO as a single trace. The folder contains one file for each
// thread or core, and openFolder merges the records of these files by their timestamps.
func (in *Input) openFolder(ctx context.Context, name string) (io.Reader, error) {
	paths, err := traceFiles(name)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	in.close = func() error {
		var all []error
		for _, f := range files {
			all = append(all, f.Close())
		}
		return errors.Join(all...)
	}
	var parts []drmemtrace.Part
	for _, path := range paths {
		f, size, err := openCancellable(ctx, path)
		if err != nil {
			in.close()
			return nil, err
		}
		files = append(files, f)
		in.Bytes += size
		stored := countingReader{f, in}
		unpacked, err := open.Unpack(path, stored, open.Options{Packings: packings})
		if err == nil {
			err = drmemtrace.CheckPart(path, unpacked)
		}
		if err != nil {
			in.close()
			return nil, err
		}
		parts = append(parts, drmemtrace.Part{Name: path, Reader: unpacked})
	}
	in.sourceCounts = true
	return drmemtrace.Merge(parts), nil
}

// traceFiles returns the paths of a folder's trace files in ascending order.
func traceFiles(name string) ([]string, error) {
	folder := name
	if st, err := os.Stat(filepath.Join(name, drTraceFolder)); err == nil && st.IsDir() {
		folder = filepath.Join(name, drTraceFolder)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, errors.New(name + ": " + errorText(err))
	}
	var paths []string
	raw := false
	for _, e := range entries {
		raw = raw || e.IsDir() && e.Name() == drRawFolder || strings.HasSuffix(e.Name(), ".raw") || strings.Contains(e.Name(), ".raw.")
		isBeside := slices.ContainsFunc(otherFiles, func(prefix string) bool { return strings.HasPrefix(e.Name(), prefix) })
		if e.Type().IsRegular() && !isBeside && !strings.HasPrefix(e.Name(), ".") && !strings.Contains(e.Name(), ".raw") {
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	switch {
	case len(paths) > 0 && isDrmemtrace(paths):
		return paths, nil
	case raw:
		return nil, errors.New(name + " contains DynamoRIO's raw files, which DynamoRIO must decode first: " + open.DecodeRaw)
	}
	return nil, errors.New(name + " is a folder; give the path of a trace or a profile in the folder")
}

// isDrmemtrace reports whether one of the files is a trace of DynamoRIO.
func isDrmemtrace(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		f, err := os.Open(path)
		if err != nil {
			return false
		}
		defer f.Close()
		unpacked, err := open.Unpack(path, f, open.Options{Packings: packings})
		return err == nil && drmemtrace.CheckPart(path, unpacked) == nil
	})
}

// countingReader counts the bytes that are read from the files of a folder.
type countingReader struct {
	file io.Reader
	in   *Input
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	c.in.read.Add(int64(n))
	return n, err
}
