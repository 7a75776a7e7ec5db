package e2e

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
)

// TestFormats checks that the page opens a trace in every format that the first screen lists.
func TestFormats(t *testing.T) {
	needStage(t)
	p := openPage(t)
	packed := p.read(lackeyTrace(t))
	text, err := io.ReadAll(lz4.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		".lackey":      p.writeFile("a.lackey", text),
		".lackey.lz4":  p.writeFile("a.lackey.lz4", packed),
		".lackey.gz":   p.writeFile("a.lackey.gz", pack(t, text, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })),
		".lackey.zst":  p.writeFile("a.lackey.zst", pack(t, text, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })),
		".lackey.xz":   p.writeFile("a.lackey.xz", pack(t, text, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) })),
		".lackey.zip":  p.writeFile("a.lackey.zip", packZip(t, text)),
		".lackey.sz":   p.writeFile("a.lackey.sz", pack(t, text, func(w io.Writer) (io.WriteCloser, error) { return snappy.NewBufferedWriter(w), nil })),
		".sgt":         p.writeFile("a.sgt", demoFile(t, demos(t)[0].Name)),
		".din":         p.writeFile("a.din", rewriteTrace(text, "", "$KIND $ADDR\n")),
		".csv":         p.writeFile("a.csv", rewriteTrace(text, "addr,rw,size\n", "0x$ADDR,$KIND,$BYTES\n")),
		".csv.zst.txt": p.writeFile("a.csv.zst.txt", pack(t, rewriteTrace(text, "addr,rw,size\n", "0x$ADDR,$KIND,$BYTES\n"), func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })),
	}
	named := p.textOf("#formats") + p.textOf("#accepted")
	for ending, path := range files {
		want := truthOf(t, path)
		p.dropFiles(path)
		if got := p.waitFinished(); got != want.Digest {
			t.Errorf("%s: digest %s, want the command's digest %s", ending, got, want.Digest)
		}
		p.goHome()
	}
	for _, name := range regexp.MustCompile(`\.[a-z0-9]+`).FindAllString(named, -1) {
		if name != ".sgp" && name != ".ll" && files[name] == "" && files[".lackey"+name] == "" {
			t.Errorf("the first screen lists the format %s, but this test has no file of this format", name)
		}
	}
}

// packZip returns a ZIP archive that contains one file.
func packZip(t *testing.T, text []byte) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	member, err := w.Create("chunk.0000")
	if err == nil {
		_, err = member.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// TestFolder checks that the page opens the folder of a DynamoRIO trace with two files that are
// compressed in different ways.
func TestFolder(t *testing.T) {
	needStage(t)
	p := openPage(t)
	folder := filepath.Join(t.TempDir(), "drmemtrace.a.dir")
	if err := os.MkdirAll(filepath.Join(folder, "trace"), 0o777); err != nil {
		t.Fatal(err)
	}
	record := func(kind, size uint16, value uint64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, kind), size), value)
	}
	for thread := range uint64(2) {
		all := bytes.Join([][]byte{record(25, 0, 2), record(22, 0, thread+1)}, nil)
		for n := range uint64(3000) {
			all = append(all, record(28, 2, 2*n+thread)...)
			all = append(all, record(1, 8, 0x1000+8*thread+(n%70)<<6)...)
		}
		name, packed := "a.1.trace.zip", packZip
		if thread == 1 {
			name, packed = "a.2.trace.gz", func(t *testing.T, text []byte) []byte {
				return pack(t, text, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
			}
		}
		if err := os.WriteFile(filepath.Join(folder, "trace", name), packed(t, all), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p.dropFiles(folder)
	if got, want := p.waitFinished(), truthOf(t, folder).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
	if threads := p.textOf("#fact-threads"); !strings.HasPrefix(threads, "2") {
		t.Errorf("number of threads = %q, want 2", threads)
	}
}

// TestCapturedTrace checks that the page analyses a multi-threaded program's trace, and then a
// truncated copy of it.
func TestCapturedTrace(t *testing.T) {
	needStage(t)
	p := openPage(t)
	captured := demoFile(t, "openmp-stencil")
	path := p.writeFile("stencil.sgt", captured)
	p.dropFiles(path)
	if got, want := p.waitFinished(), truthOf(t, path).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
	if threads := p.textOf("#fact-threads"); !strings.HasPrefix(threads, "2") {
		t.Errorf("number of threads = %q, want 2", threads)
	}
	p.openView("counters", "#counters")
	p.clickElement("#by-function")
	p.waitFor("#table-functions tbody tr")
	if table := p.textOf("#table-functions"); !strings.Contains(table, "step.omp_outlined") || !strings.Contains(table, "openmp-stencil.c") {
		t.Errorf("functions = %q, want step.omp_outlined in openmp-stencil.c", table)
	}
	cut := p.writeFile("cut.sgt", captured[:len(captured)-len(captured)/8])
	p.dropFiles(cut)
	if said := p.waitProblem(); !strings.HasPrefix(said, "The analysis of cut.sgt is partial: ") {
		t.Errorf("problem for a truncated file = %q, want a partial analysis", said)
	}
	if got, want := p.waitFinished(), truthOf(t, cut).Digest; got != want {
		t.Errorf("digest of the truncated trace = %s, want the command's digest %s", got, want)
	}
}

func pack(t *testing.T, content []byte, packer func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := packer(&out)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var lackeyLine = regexp.MustCompile(`(?m)^ ([LS]) ([0-9a-f]+),(\d+)$`)

// rewriteTrace converts the loads and stores in a lackey trace to text in another format.
func rewriteTrace(lackey []byte, head, line string) []byte {
	out := bytes.NewBufferString(head)
	for _, m := range lackeyLine.FindAllSubmatch(lackey, -1) {
		kind := "0"
		if string(m[1]) == "S" {
			kind = "1"
		}
		out.WriteString(strings.NewReplacer("$KIND", kind, "$ADDR", string(m[2]), "$BYTES", string(m[3])).Replace(line))
	}
	return out.Bytes()
}
