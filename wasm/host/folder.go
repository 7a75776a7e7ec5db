//go:build js && wasm

package host

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall/js"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace/drmemtrace"
	"github.com/stackglass/stackglass/wasm/file"
)

// folderLine is the first line of the file into which boot.js joins the files of a dropped DynamoRIO
// folder. The next lines contain the size in bytes and the name of each file. After an empty line, the
// contents follow.
const folderLine = "stackglass folder"

// mostParts is the maximum number of files in a folder. Each compressed file needs a separate
// decompressor, which uses about 20 MB.
const mostParts = 64

// folderFile is a trace that is merged from the files of a folder.
type folderFile struct {
	io.Reader
	traceFile
}

func (f folderFile) Read(p []byte) (int, error) { return f.Reader.Read(p) }

// openFolder opens the trace in a blob that boot.js made from a folder. For any other blob, it
// returns nil.
func (t *traces) openFolder(blob js.Value, whole *file.File) (io.ReadCloser, error) {
	at, err := file.OpenAt(blob)
	if err != nil {
		return nil, nil // without OpenAt, the browser cannot open folders
	}
	head := make([]byte, len(folderLine)+1)
	if n, _ := at.ReadAt(head, 0); string(head[:n]) != folderLine+"\n" {
		return nil, nil
	}
	list := bufio.NewReader(io.NewSectionReader(at, int64(len(head)), at.Size()))
	type entry struct {
		name string
		size int64
	}
	var entries []entry
	begin := int64(len(head))
	for {
		line, err := list.ReadString('\n')
		if begin += int64(len(line)); err != nil {
			return nil, err
		}
		size, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok {
			break
		}
		bytes, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name, bytes})
	}
	if len(entries) > mostParts {
		return nil, errors.New("the folder contains " + strconv.Itoa(len(entries)) + " files, but at most " + strconv.Itoa(mostParts) +
			" can be merged here: run stackglass convert on the folder, and open the resulting .sgt file")
	}
	var parts []drmemtrace.Part
	for _, e := range entries {
		f, err := file.Open(blob.Call("slice", begin, begin+e.size))
		if err != nil {
			return nil, err
		}
		begin += e.size
		unpacked, err := open.Unpack(e.name, f, open.Options{Packings: t.unpackers.Packings()})
		if err != nil {
			return nil, err
		}
		if err := drmemtrace.CheckPart(e.name, unpacked); err != nil {
			return nil, err
		}
		parts = append(parts, drmemtrace.Part{Name: e.name, Reader: unpacked})
	}
	return folderFile{drmemtrace.Merge(parts), traceFile{whole, &t.unpackers}}, nil
}
