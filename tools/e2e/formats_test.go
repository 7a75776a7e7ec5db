package e2e

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
)

// TestFormats drops a trace in every format that the first screen lists.
func TestFormats(t *testing.T) {
	needStage(t)
	p := openPage(t)
	packed := p.read(lackeyTrace(t))
	text, err := io.ReadAll(lz4.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		".lackey":      p.write("a.lackey", text),
		".lackey.lz4":  p.write("a.lackey.lz4", packed),
		".lackey.gz":   p.write("a.lackey.gz", pack(t, text, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })),
		".lackey.zst":  p.write("a.lackey.zst", pack(t, text, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })),
		".lackey.xz":   p.write("a.lackey.xz", pack(t, text, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) })),
		".sgt":         p.write("a.sgt", demoFile(t, demos(t)[0].Name)),
		".din":         p.write("a.din", rewrite(text, "", "$KIND $ADDR\n")),
		".csv":         p.write("a.csv", rewrite(text, "addr,rw,size\n", "0x$ADDR,$KIND,$BYTES\n")),
		".csv.zst.txt": p.write("a.csv.zst.txt", pack(t, rewrite(text, "addr,rw,size\n", "0x$ADDR,$KIND,$BYTES\n"), func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })),
	}
	named := p.text("#formats") + p.text("#accepted")
	for ending, path := range files {
		want := truthOf(t, path)
		p.drop(path)
		if got := p.finished(); got != want.Digest {
			t.Errorf("%s: digest %s, the command has %s", ending, got, want.Digest)
		}
		p.home()
	}
	for _, name := range regexp.MustCompile(`\.[a-z0-9]+`).FindAllString(named, -1) {
		if name != ".sgp" && name != ".ll" && files[name] == "" && files[".lackey"+name] == "" {
			t.Errorf("the first screen lists %s, which was not tested", name)
		}
	}
}

// TestCapturedTrace drops the trace of a multi-threaded program, and then the same trace cut short.
func TestCapturedTrace(t *testing.T) {
	needStage(t)
	p := openPage(t)
	captured := demoFile(t, "openmp-stencil")
	path := p.write("stencil.sgt", captured)
	p.drop(path)
	if got, want := p.finished(), truthOf(t, path).Digest; got != want {
		t.Errorf("digest %s, the command has %s", got, want)
	}
	if threads := p.text("#fact-threads"); !strings.HasPrefix(threads, "2") {
		t.Errorf("the page shows %q", threads)
	}
	p.openView("counters", "#counters")
	p.click("#by-function")
	p.waitFor("#table-functions tbody tr")
	if table := p.text("#table-functions"); !strings.Contains(table, "step.omp_outlined") || !strings.Contains(table, "openmp-stencil.c") {
		t.Errorf("the functions are %q", table)
	}
	cut := p.write("cut.sgt", captured[:len(captured)-len(captured)/8])
	p.drop(cut)
	if said := p.problem(); !strings.HasPrefix(said, "The analysis of cut.sgt is partial: ") {
		t.Errorf("for a file that was cut short, the page says %q", said)
	}
	if got, want := p.finished(), truthOf(t, cut).Digest; got != want {
		t.Errorf("digest %s of the remaining trace, the command has %s", got, want)
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

// rewrite converts the loads and stores of a lackey trace to lines in another format.
func rewrite(lackey []byte, head, line string) []byte {
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
